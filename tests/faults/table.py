"""What was broken on purpose, how, what must come of it, and which tests hold it. `make reliability` runs them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One line of docs/RELIABILITY.md. `tests` are pytest's node ids, or their beginnings."""

    fault: str
    how: str
    holds: str
    tests: tuple[str, ...]


OUTAGES = "tests/faults/test_outages.py::"
HERE = "tests/faults/test_here.py::"

CASES = (
    Case(
        "sshd of the head restarted",
        "every login killed, the listener told to start itself anew",
        "rows stay, all sources and one probe a node are back by themselves",
        (OUTAGES + "test_the_heads_sshd_is_restarted",),
    ),
    Case(
        "head unreachable for a while",
        "a relay on the way swallows everything, also what newly connects",
        "stale, then the fault by name; back without a restart",
        (OUTAGES + "test_the_line_to_the_head_goes_silent_and_comes_back",),
    ),
    Case(
        "half-open TCP, as after a suspended laptop",
        "the connections there are are swallowed without a word, new ones work",
        "found out by the missing sign of life, dialled anew; old probes end for want of a heartbeat",
        (
            OUTAGES + "test_a_half_open_connection_as_after_a_suspended_laptop",
            HERE + "test_a_suspended_laptop_wakes_up",
        ),
    ),
    Case(
        "head gone and booted again",
        "its namespaces killed, then booted",
        "refused is told as refused; nodes are dialled again as soon as Slurm answers",
        (OUTAGES + "test_the_head_is_gone_and_boots_again",),
    ),
    Case(
        "head frozen",
        "SIGSTOP to everything on it",
        "told as a timeout; `q` leaves at once",
        (
            "tests/rig/test_cockpit.py::test_a_frozen_head_is_told_and_recovers",
            "tests/rig/test_cockpit.py::test_q_quits_while_the_head_hangs",
        ),
    ),
    Case(
        "slurmctld frozen",
        "SIGSTOP",
        "stale, named as the controller and not as the head; never an empty queue",
        ("tests/rig/test_cockpit.py::test_a_stopped_controller_goes_stale_then_recovers_and_is_never_empty",),
    ),
    Case(
        "slurmctld stopped and started again",
        "SIGTERM, then started",
        "slurmctld is named in the line with the trouble; live at the first answer",
        (
            OUTAGES + "test_the_controller_stops_and_is_started_again",
            "tests/rig/test_cockpit.py::test_a_controller_that_does_not_run_is_named",
        ),
    ),
    Case(
        "slurmctld frozen in the middle of a change",
        "SIGSTOP between two commands",
        "the command is not sent twice, the outcome is looked at later and told",
        ("tests/rig/test_actions.py::test_a_controller_that_hangs_in_the_middle_is_told_and_looked_at_later",),
    ),
    Case(
        "slurmctld slow",
        "SIGSTOP and SIGCONT in pulses: it answers every two seconds or so",
        "asked less often, its answers live for as long as that; never called dead",
        ("tests/faults/test_slow.py::test_a_controller_that_is_slow_is_asked_less_often",),
    ),
    Case(
        "slurmctld limits requests (rl_enable)",
        "the words of Slurm 23.02 and later in place of an answer; the rig's Slurm (22.05) has no such limit",
        "named as what it is, the queue kept, no ping in place of the answer, a change sent once",
        ("tests/faults/test_limits.py",),
    ),
    Case(
        "packets lost on the way to the head",
        "a relay that delays, stalls and resets (`tc netem` is not in every kernel)",
        "live again after each reset, in that weather; rows stay",
        ("tests/faults/test_slow.py::test_a_line_that_loses_packets",),
    ),
    Case(
        "node frozen",
        "SIGSTOP to everything on it",
        "its GPUs keep their rows and grow stale, the others keep their pace",
        ("tests/rig/test_gpus.py::test_a_frozen_node_goes_stale_and_the_others_keep_their_pace",),
    ),
    Case(
        "node gone and booted again",
        "its namespaces killed, then booted",
        "named, its GPUs keep their rows; one new probe after the boot",
        (OUTAGES + "test_a_node_is_gone_and_boots_again",),
    ),
    Case(
        "GPU driver hung",
        "the stand-in for NVIDIA's library never returns",
        "only this node's GPUs fall silent, and say so within 5 s; no second child joins the first",
        ("tests/rig/test_gpus.py::test_a_hung_driver_leaves_the_nodes_other_readings_alive",),
    ),
    Case(
        "mount hung",
        "a FUSE file system that never answers",
        "one child waits, the probe and the reading of logs go on, nothing is left behind",
        (
            "tests/unit/test_probe_node.py::test_a_real_file_system_that_hangs",
            "tests/unit/test_probe_node.py::test_a_hung_mount_hangs_nothing_else_and_is_not_asked_again",
            "tests/unit/test_output_file.py::test_a_file_system_that_hangs_costs_a_deadline_and_leaves_nothing",
        ),
    ),
    Case(
        "probe killed",
        "SIGKILL to it and its children",
        "one new probe, and no more",
        (OUTAGES + "test_a_probe_is_killed",),
    ),
    Case(
        "node floods, trickles, or answers with nonsense",
        "its sshd runs an endless loop in the probe's place: lines, one line, escape codes, errors, a byte a second",
        "the node is named, the others live, memory bounded, nothing of it in the terminal",
        (OUTAGES + "test_a_node_answers_with", "tests/unit/test_gpu_streams.py::test_a_flood_of_lines_is_not_read"),
    ),
    Case(
        "job name of a megabyte",
        "squeue tells names of 1 MB with escape codes",
        "one row a job, cut; no key waits for it",
        (HERE + "test_a_job_name_of_a_megabyte",),
    ),
    Case(
        "the longest job name that Slurm takes",
        "a real sbatch, the length found by trying",
        "every line of the screen as wide as the screen, details and JSON bear it",
        ("tests/faults/test_slow.py::test_the_longest_name_that_slurm_takes",),
    ),
    Case(
        "AWS throttled, denied or silent",
        "moto's server and botocore's stub",
        "only the part that failed keeps its older time; an order is sent a single time",
        (
            "tests/aws/test_parts.py::test_a_throttled_part_keeps_its_last_data_and_time",
            "tests/aws/test_parts.py::test_a_refused_call_names_its_permission_and_the_rest_is_read",
            "tests/aws/test_faults.py",
        ),
    ),
    Case(
        "state folder without a free byte",
        "a full file system mounted there",
        "no change without its record (exit 4); all that only reads works",
        (HERE + "TestTheDiskIsFull", "tests/unit/test_actions_audit.py::test_a_full_disk_at_the_end"),
    ),
    Case(
        "wall clock jumps",
        "a day forth, a day back, thirty years back",
        "ages count on the steady clock: live stays live, nothing looks newer than it is",
        (HERE + "test_the_wall_clock_jumps",),
    ),
    Case(
        "terminal resized to 20x5, 1x1 and back",
        "tmux, and keys by chance on all sizes, also faster than screens close",
        "the same screen afterwards",
        (OUTAGES + "test_the_terminal_shrinks_to_20x5_and_grows_again", "tests/faults/test_keys_at_random.py"),
    ),
    Case(
        "terminal closed (SIGHUP)",
        "the tmux server killed after all of the above",
        "it ends, and no process of it is left on the head or a node",
        (
            OUTAGES + "test_the_terminal_is_closed_and_nothing_is_left_anywhere",
            "tests/unit/test_signals.py",
        ),
    ),
    Case(
        "cockpit killed (SIGKILL)",
        "SIGKILL",
        "its probes end by themselves",
        ("tests/rig/test_gpus.py::test_no_probe_is_left_after_a_cockpit_was_killed",),
    ),
    Case(
        "SIGTERM or SIGKILL during an action",
        "sent while the action waits for what it has ordered",
        "the line before is whole on the disk, and the outcome is said to be unknown",
        (
            HERE + "test_sigterm_in_the_middle_of_an_action_leaves_the_record",
            "tests/unit/test_actions_audit.py::test_a_cockpit_killed_between_the_two_lines_leaves_the_first",
        ),
    ),
    Case(
        "SIGTERM half-way through an action",
        "four nodes go into quarantine one by one; the controller answers, or hangs just then",
        "nothing more is sent; the record says what was and how it ended, or that nobody knows; no orphan",
        ("tests/faults/test_half_way.py",),
    ),
    Case(
        "24 hours of changes",
        "a simulated day in which every job, reason, reading, Xid and fault is a new one, and a log that is followed",
        "no more memory at its end than after two hours, by the weight of all that the cluster holds",
        ("tests/faults/test_day.py",),
    ),
)

# The ids of all of them, or their beginnings.
FAULT_TESTS = tuple(dict.fromkeys(test for case in CASES for test in case.tests))
