import pytest

from cockpit.formats.slurm_errors import classify, complaint
from cockpit.models import FaultKind

LOAD = "slurm_load_jobs error: "
MUNGE = """squeue: error: If munged is up, restart with --num-threads=10
squeue: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory
slurm_load_jobs error: Protocol authentication error
"""
SKEW = """squeue: error: auth_g_unpack: authentication plugin unknown(1007) not found
squeue: error: [[head]:6817] Invalid Protocol Version 10752: Incompatible versions of client and server code
slurm_load_jobs error: Unspecified error
"""
NO_CONFIG = """squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
squeue: fatal: Could not establish a configuration source
"""
NO_SLURMCTLD = "Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    ("rc", "text", "kind"),
    [
        (1, f"{LOAD}{NO_SLURMCTLD}", FaultKind.CONTROLLER_DOWN),
        (1, f"slurm_load_partitions: {NO_SLURMCTLD}", FaultKind.CONTROLLER_DOWN),
        (8, f"scancel: error: Kill job error on job id 1: {NO_SLURMCTLD}", FaultKind.CONTROLLER_DOWN),
        (1, f"{LOAD}Slurm backup controller in standby mode", FaultKind.CONTROLLER_DOWN),
        (1, f"{LOAD}Unexpected message received", FaultKind.CONTROLLER_HUNG),
        (1, "slurm_update error: Socket timed out on send/recv operation", FaultKind.CONTROLLER_HUNG),
        (140, "scancel: error: Socket timed out on send/recv operation", FaultKind.CONTROLLER_HUNG),
        (1, MUNGE, FaultKind.AUTH),
        (1, f"{LOAD}Protocol authentication error", FaultKind.AUTH),
        (1, SKEW, FaultKind.GARBLED),
        (1, NO_CONFIG, FaultKind.MISSING),
        (1, "Slurm accounting storage is disabled", FaultKind.MISSING),
        (1, "sacct: error: Problem talking to the database", FaultKind.UNREACHABLE),
        (127, "bash: squeue: command not found", FaultKind.MISSING),
        (127, "/bin/sh: 1: squeue: not found", FaultKind.MISSING),
        (127, "", FaultKind.MISSING),
        (126, "", FaultKind.DENIED),
        (1, f"{LOAD}Invalid job id specified", FaultKind.MISSING),
        (1, "Invalid node name gpu-9", FaultKind.MISSING),
        (1, "slurm_update error: Invalid user id", FaultKind.DENIED),
        (1, "scontrol_reboot_nodes error: Permission denied", FaultKind.DENIED),
        (1, "Access/permission denied for job 4", FaultKind.DENIED),
        (210, "scancel: error: Kill job error on job id 4: Access/permission denied", FaultKind.DENIED),
        (1, "sudo: a password is required", FaultKind.DENIED),
        (1, "Sorry, user bob is not allowed to execute '/usr/bin/scontrol' as root", FaultKind.DENIED),
        (1, "srun: error: Unable to create step for job 7: Access/permission denied", FaultKind.DENIED),
        (1, "Rate limit exceeded, please retry momentarily", FaultKind.THROTTLED),
        (1, "You must specify a reason when DOWNING or DRAINING a node. Request denied", FaultKind.FAILED),
        (1, "slurm_update error: Invalid node state specified", FaultKind.FAILED),
        (1, "slurm_update error: Invalid node state transition requested for node", FaultKind.FAILED),
        (1, "Job is pending execution for job 5", FaultKind.FAILED),
        (1, "Job/step already completing or completed", FaultKind.FAILED),
        (1, "Requested nodes are busy", FaultKind.FAILED),
        (1, "sbatch: error: Required partition not available (inactive or drain)", FaultKind.FAILED),
        (1, "Invalid input: UPP\nslurm_update error: No error", FaultKind.FAILED),
    ],
)
def test_texts_on_stderr(rc: int, text: str, kind: FaultKind) -> None:
    fault = classify(rc, b"", text.encode(), what="asking Slurm")
    assert fault.kind is kind
    assert fault.what == "asking Slurm"
    assert fault.why
    assert fault.next_step


@pytest.mark.parametrize("rc", [124, 137])
def test_a_command_that_timeout_ended_is_a_timeout_whatever_it_said(rc: int) -> None:
    assert classify(rc, b"", b"Permission denied", what="w").kind is FaultKind.TIMEOUT


def test_some_errors_are_on_stdout() -> None:
    assert classify(1, b"Node x not found\n", b"", what="w").kind is FaultKind.MISSING
    ping = b"Slurmctld(primary) at head is DOWN\n*****\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n"
    assert classify(1, ping, b"", what="w").kind is FaultKind.CONTROLLER_DOWN


def test_names_of_jobs_are_no_error_texts() -> None:
    half_a_queue = b"7\x1fR\x1fPermission denied\x1e\n"
    fault = classify(1, half_a_queue, b"squeue: error: something new\n", what="w")
    assert (fault.kind, fault.why) == (FaultKind.FAILED, "exit status 1: squeue: error: something new")


def test_a_failure_without_a_word() -> None:
    assert classify(1, b"", b"", what="w").why == "exit status 1: it said nothing"
    assert classify(-9, b"", b"", what="w").why == "ended by signal 9 (it said nothing)"


def test_an_unknown_text_is_told_and_harmless() -> None:
    fault = classify(3, b"", b"squeue: error: \x1b[2Jflux\xff capacitor\n", what="w")
    assert fault.why == "exit status 3: squeue: error: ␛[2Jflux\ufffd capacitor"


def test_success_is_no_fault_even_with_complaints_about_a_column() -> None:
    complaints = b"Invalid job format specification: admin_comment\n"
    assert complaint(0, b"1\x1fx\x1e\n", complaints, what="w") is None
    assert complaint(0, b"", complaints, what="w") is None
    assert complaint(0, b"", b"", what="w") is None


def test_some_commands_fail_with_exit_status_0() -> None:
    fault = complaint(0, b"", b"job script retrieval failed: Invalid user id\n", what="w")
    assert fault is not None
    assert fault.kind is FaultKind.DENIED
    fault = complaint(0, b"", b"Invalid hostlist: n[1-\n", what="w")
    assert fault is not None
    assert fault.kind is FaultKind.GARBLED
    assert complaint(1, b"", b"", what="w") is not None


@pytest.mark.parametrize("rc", [137, -9])
def test_a_kill_well_before_the_deadline_is_no_timeout(rc: int) -> None:
    fault = classify(rc, b"", b"", what="w", took_s=1.5, deadline_s=12)
    assert fault.kind is FaultKind.FAILED
    assert "killed (SIGKILL), most likely out of memory on the head" in fault.why
    assert fault.next_step
    late = classify(rc, b"", b"", what="w", took_s=14.1, deadline_s=12)
    assert late.kind is FaultKind.TIMEOUT
    assert complaint(rc, b"", b"", what="w", took_s=1.5, deadline_s=12) == fault


def test_what_timeout_ended_itself_is_a_timeout_at_any_time() -> None:
    assert classify(124, b"", b"", what="w", took_s=1.5, deadline_s=12).kind is FaultKind.TIMEOUT
