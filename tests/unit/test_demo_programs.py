"""The demo's squeue, sinfo and scontrol: shapes, filters, exit codes and texts of Slurm 23.11."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from cockpit.demo.machines import SimNode
from cockpit.demo.programs import jobfields, nodefields
from cockpit.demo.programs.registry import run
from cockpit.demo.programs.table import Answer
from cockpit.demo.sim import Simulation
from cockpit.formats.hostlist import expand

T0 = 1_795_993_917.0
SEP, END = "\x1f", "\x1e"
_SQUEUE = """
    JobID ArrayJobID ArrayTaskID HetJobID HetJobOffset StateCompact State Partition UserName Account QOS
    NumNodes NumCPUs tres-alloc tres-per-node tres-per-job tres-per-task SubmitTime EligibleTime StartTime
    EndTime TimeLimit TimeUsed PriorityLong NodeList SchedNodes Dependency Reservation RestartCnt Requeue
    BatchHost Feature WorkDir StdOut Reason Comment admin_comment system_comment Name
"""
_SINFO = """
    NodeList PartitionName Available StateLong StateComplete Gres GresUsed CPUsState CPUsLoad Memory AllocMem
    FreeMem Version NodeAddr NodeHost Features features_act Weight Reservation User Timestamp Comment Extra
    Reason
"""
SQUEUE_FIELDS, SINFO_FIELDS = _SQUEUE.split(), _SINFO.split()


@pytest.fixture(name="sim")
def a_sim() -> Simulation:
    return Simulation(clock=lambda: T0)


def ask(sim: Simulation, *argv: str, **env: str) -> Answer:
    return run(sim, argv, env, "demo-head")


def table(sim: Simulation, program: str, names: Sequence[str], *argv: str, **env: str) -> list[dict[str, str]]:
    """Rows of a separated -O call by field name; fails when one row has another number of fields."""
    spec = ",".join([f"{name}:0{SEP}" for name in names[:-1]] + [f"{names[-1]}:0{END}"])
    answer = ask(sim, program, "-h", "-a", *argv, "-O", spec, **env)
    assert (answer.rc, answer.stderr) == (0, b"")
    records = answer.stdout.decode().split(f"{END}\n")
    assert records.pop() == ""
    rows = [record.split(SEP) for record in records]
    assert {len(row) for row in rows} <= {len(names)}
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_every_squeue_field_is_aligned(sim: Simulation) -> None:
    names = sorted(jobfields.LONG)
    assert {name.lower() for name in SQUEUE_FIELDS} <= set(names)
    assert len(table(sim, "squeue", names, "-t", "all")) == len(sim.jobs)


def test_every_sinfo_field_is_aligned(sim: Simulation) -> None:
    names = sorted(nodefields.LONG)
    assert {name.lower() for name in SINFO_FIELDS} <= set(names)
    rows = table(sim, "sinfo", names, "-N")
    assert len(rows) == sum(len(node.partitions) for node in sim.nodes.values())


def test_field_alone_prints_what_it_prints_in_a_list(sim: Simulation) -> None:
    together = table(sim, "squeue", SQUEUE_FIELDS)
    for name in SQUEUE_FIELDS:
        assert [row[name] for row in table(sim, "squeue", [name])] == [row[name] for row in together]


def test_squeue_record_of_each_kind(sim: Simulation) -> None:
    rows = table(sim, "squeue", SQUEUE_FIELDS, SLURM_TIME_FORMAT="%s", SLURM_BITSTR_LEN="0")
    by_name = {(row["Name"], row["StateCompact"]): row for row in rows}
    array = by_name["eval-sweep", "PD"]
    assert (array["ArrayTaskID"], array["JobID"], array["EligibleTime"]) == (
        "4-23%4",
        array["ArrayJobID"],
        "N/A",
    )
    task = by_name["eval-sweep", "R"]
    assert task["JobID"] != task["ArrayJobID"] == array["JobID"]
    waking = by_name["moe-8x22b-anneal", "CF"]
    assert (waking["State"], waking["NodeList"], waking["BatchHost"]) == (
        "CONFIGURING",
        "gpu-dy-p5-[1-2]",
        "gpu-dy-p5-1",
    )
    actor, rollout = by_name["rlhf-actor", "PD"], by_name["rlhf-rollout", "PD"]
    assert (actor["HetJobID"], actor["HetJobOffset"]) == (actor["JobID"], "0")
    assert (rollout["HetJobID"], rollout["HetJobOffset"]) == (actor["JobID"], "1")
    whole = by_name["asr-debug", "R"]
    assert (whole["tres-per-node"], whole["tres-per-job"]) == ("N/A", "gres/gpu:2")
    held = by_name["lr-search", "PD"]
    assert (held["PriorityLong"], held["StartTime"], held["EndTime"], held["NodeList"]) == (
        "0",
        "N/A",
        "N/A",
        "",
    )
    assert by_name["repro-inc-4821", "PD"]["Reason"] == "ReqNodeNotAvail, UnavailableNodes:gpu-st-p5-6"
    pretrain = by_name["llama3-405b-pretrain", "R"]
    assert int(pretrain["EndTime"]) - int(pretrain["StartTime"]) == 5 * 86400
    assert pretrain["tres-alloc"] == "cpu=576,mem=5760G,node=3,billing=576"
    assert any("训练[ckpt=3]" in row["Name"] for row in rows)


def test_empty_values_are_spelled_as_slurm_does(sim: Simulation) -> None:
    for row in table(sim, "squeue", SQUEUE_FIELDS):
        assert (row["Account"], row["QOS"], row["Reservation"], row["Feature"]) == ("(null)",) * 4
        assert row["BatchHost"] == ("n/a" if not row["NodeList"] else expand(row["NodeList"])[0])
        assert row["Comment"] in ("(null)", "nightly", "ask before draining")


def indices(text: str) -> set[int]:
    """GPU numbers of `gpu:h100:3(IDX:0,2,5-6)`."""
    found = re.search(r"\(IDX:([0-9,-]+)\)", text)
    if found is None:
        return set()
    return {int(name) for name in expand(f"[{found[1]}]")}


def test_gres_of_sinfo_equals_gres_of_jobs(sim: Simulation) -> None:
    for minutes in range(0, 240, 20):
        sim.advance(T0 + 60.0 * minutes)
        by_node = {row["NodeList"]: indices(row["GresUsed"]) for row in table(sim, "sinfo", SINFO_FIELDS, "-N")}
        from_jobs: dict[str, set[int]] = {name: set() for name in by_node}
        details = ask(sim, "scontrol", "-d", "show", "job").stdout.decode()
        for record in details.split("\n\n"):
            if not re.search(r"JobState=(RUNNING|CONFIGURING)", record):
                continue
            for nodes, gres in re.findall(r"  Nodes=(\S+) .* GRES=(\S+)", record):
                for name in expand(nodes):
                    assert not from_jobs[name] & indices(gres)
                    from_jobs[name] |= indices(gres)
        assert from_jobs == by_node


def test_sinfo_states_of_the_start(sim: Simulation) -> None:
    rows = {row["NodeList"]: row for row in table(sim, "sinfo", SINFO_FIELDS, "-N")}
    assert rows["gpu-dy-p5-1"]["StateComplete"] == "allocated+cloud+not_responding+powering_up"
    assert rows["gpu-dy-p5-1"]["StateLong"] == "allocated#"
    assert rows["gpu-dy-p5-1"]["FreeMem"] == "N/A"
    assert rows["gpu-dy-p5-4"]["StateComplete"] == "idle+cloud+powering_down"
    assert rows["gpu-st-p5-6"]["StateComplete"] == "idle+cloud+drain"
    assert rows["gpu-st-p5-6"]["CPUsState"] == "0/0/192/192"
    assert rows["gpu-st-p5-6"]["Reason"].startswith("INC-4821")
    assert rows["gpu-st-p5-8"]["StateComplete"] == "down+cloud+not_responding"
    assert rows["gpu-st-p5-8"]["StateLong"] == "down*"
    assert rows["gpu-st-p5-1"]["NodeAddr"] == "127.77.0.1"
    assert (rows["gpu-st-p5-1"]["Reason"], rows["gpu-st-p5-1"]["Timestamp"]) == ("none", "Unknown")


def test_powered_down_node_has_only_its_name_as_address() -> None:
    sim = Simulation(scenario="calm", clock=lambda: T0)
    rows = {row["NodeList"]: row for row in table(sim, "sinfo", SINFO_FIELDS, "-N")}
    row = rows["gpu-dy-p5-4"]
    assert (row["NodeAddr"], row["StateLong"], row["Version"]) == ("gpu-dy-p5-4", "idle~", "N/A")
    assert row["GresUsed"] == "gpu:h100:0(IDX:N/A)"


def test_default_tables_have_slurms_headers(sim: Simulation) -> None:
    squeue = ask(sim, "squeue").stdout.decode().splitlines()
    assert squeue[0] == "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    assert "    48213_[4-23%4]       gpu eval-swe    kenji PD       0:00      1 (JobArrayTaskLimit)" in squeue
    sinfo = ask(sim, "sinfo").stdout.decode().splitlines()
    assert sinfo[0] == "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST"
    assert "gpu*         up   infinite      1  down* gpu-st-p5-8" in sinfo
    summary = ask(sim, "sinfo", "-s").stdout.decode().splitlines()
    assert summary[0] == "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST"
    assert summary[1] == "gpu*         up   infinite         9/1/2/12 gpu-dy-p5-[1-4],gpu-st-p5-[1-8]"


def test_sinfo_without_node_flag_folds_nodes_that_look_alike(sim: Simulation) -> None:
    rows = table(sim, "sinfo", ["PartitionName", "Nodes", "NodeList"])
    assert [(row["PartitionName"], row["Nodes"]) for row in rows] == [
        ("gpu", "12"),
        ("prio", "8"),
        ("interactive", "2"),
    ]
    answer = ask(sim, "sinfo", "-h", "-o", "%R|%a")
    assert answer.stdout == b"gpu|up\nprio|up\ninteractive|up\n"


def test_width_cuts_by_bytes_and_without_a_separator(sim: Simulation) -> None:
    answer = ask(sim, "squeue", "-h", "-t", "R", "-n", "训练[ckpt=3]-lr{1e-4}", "-O", "Name:4,State:.9,Partition:5|")
    assert answer.stdout == "训".encode() + "练".encode()[:1] + b"  RUNNINGgpu  |\n"


def test_unknown_field_keeps_its_column(sim: Simulation) -> None:
    answer = ask(sim, "squeue", "-h", "-O", "JobID:0|,Nonsense:0|,State:0")
    assert answer.stderr == b"squeue: error: Invalid job format specification: Nonsense\n"
    assert answer.rc == 0
    assert all(len(line.split("|")) == 3 for line in answer.stdout.decode().splitlines())


def test_unknown_letter_stays_in_the_row(sim: Simulation) -> None:
    answer = ask(sim, "squeue", "-h", "-t", "CF", "-o", "%t %-5j")
    assert answer.stdout == b"CF %-5j\n"
    assert b"Invalid job format specification: -" in answer.stderr


def ids(sim: Simulation, *argv: str) -> list[str]:
    return [row["JobID"] for row in table(sim, "squeue", ["JobID"], *argv)]


def test_filters(sim: Simulation) -> None:
    everything = ids(sim, "-t", "all")
    assert len(everything) == len(ids(sim)) + 4
    assert set(ids(sim, "-t", "PD")) | set(ids(sim, "-t", "R,CF")) == set(ids(sim))
    assert not set(ids(sim, "-t", "running")) & set(ids(sim, "-t", "CF"))
    assert ids(sim, "-p", "nosuch") == []
    assert set(ids(sim, "-p", "prio,gpu")) < set(ids(sim))
    assert ids(sim, "-u", "wei") == ids(sim, "-u", "1006")
    assert len(ids(sim, "-w", "gpu-dy-p5-[1-2]")) == 1
    assert len(ids(sim, "-j", "48213")) == 5
    assert len(ids(sim, "-j", "48213_2")) == 1
    assert ids(sim, "-j", "48213_99") == []
    assert ids(sim, "--jobs=48212,99999") == ["48212"]
    assert len(ids(sim, "-r", "-j", "48213")) == 24


@pytest.mark.parametrize(
    ("line", "rc", "stdout", "stderr"),
    [
        ("squeue -j 99999", 1, "", "slurm_load_jobs error: Invalid job id specified\n"),
        ("squeue -j abc", 1, "", "squeue: error: Invalid job id: abc\n"),
        ("squeue -w nosuch", 1, "", "squeue: error: Invalid node name nosuch\n"),
        ("squeue -h -u nosuch", 0, "", "squeue: error: Invalid user: nosuch\n\n"),
        (
            "squeue --bogus",
            1,
            "",
            "squeue: unrecognized option '--bogus'\nTry \"squeue --help\" for more information\n",
        ),
        ("squeue -Z", 1, "", "squeue: invalid option -- 'Z'\nTry \"squeue --help\" for more information\n"),
        (
            "squeue -O",
            1,
            "",
            "squeue: option requires an argument -- 'O'\nTry \"squeue --help\" for more information\n",
        ),
        ("squeue --version", 0, "slurm 23.11.10\n", ""),
        ("sinfo -V", 0, "slurm 23.11.10\n", ""),
        ("sinfo -h -p nosuch", 0, "", ""),
        ("scontrol -V", 0, "slurm 23.11.10\n", ""),
        ("scontrol version", 0, "slurm 23.11.10\n", ""),
        ("scontrol ping", 0, "Slurmctld(primary) at demo-head is UP\n", ""),
        ("scontrol ping extra", 1, "", "too many arguments for keyword:ping\n"),
        ("scontrol show job 99999", 1, "", "slurm_load_jobs error: Invalid job id specified\n"),
        ("scontrol show job abc", 1, "", "scontrol_print_job error: Invalid job id specified\n"),
        ("scontrol show job 48213_500", 1, "Job 48213_500 not found\n", ""),
        ("scontrol show node nosuch", 1, "Node nosuch not found\n", ""),
        ("scontrol show partition nosuch", 1, "Partition nosuch not found\n", ""),
        ("scontrol show reservation", 0, "No reservations in the system\n", ""),
        ("scontrol show foo", 1, "", "invalid entity:foo for keyword:show \n"),
        ("scontrol show", 1, "", "too few arguments for keyword:show\n"),
        ("scontrol foo", 1, "", "invalid keyword: foo\n"),
        ("scontrol show hostnames n[08-10],x", 0, "n08\nn09\nn10\nx\n", ""),
        ("scontrol show hostnames (null)", 0, "(null)\n", ""),
        ("scontrol show hostnames a[3-1]", 0, "", "Invalid hostlist: a[3-1]\n"),
        ("scontrol show hostlist a1,a2,a3", 0, "a[1-3]\n", ""),
        ("scontrol update nodename=gpu-st-p5-1 state=drain reason=x", 1, "", "slurm_update error: Invalid user id\n"),
        ("sacct -X", 1, "", "Slurm accounting storage is disabled\n"),
        ("hostname", 0, "demo-head\n", ""),
    ],
)
def test_exit_codes_and_texts(sim: Simulation, line: str, rc: int, stdout: str, stderr: str) -> None:
    answer = ask(sim, *line.split(" "))
    assert (answer.rc, answer.stdout.decode(), answer.stderr.decode()) == (rc, stdout, stderr)


def test_bad_state_names_the_valid_ones(sim: Simulation) -> None:
    answer = ask(sim, "squeue", "-t", "FOO")
    assert answer.rc == 1
    assert answer.stderr.startswith(b"squeue: error: Invalid job state specified: FOO\n")
    assert ask(sim, "sinfo", "-t", "foo").rc == 1
    assert b"Conflicting options, -a and -p" in ask(sim, "sinfo", "-a", "-p", "gpu").stderr


def test_scontrol_shows_one_of_many(sim: Simulation) -> None:
    both = ask(sim, "scontrol", "show", "node", "gpu-st-p5-[1,99]")
    assert both.rc == 1
    assert both.stdout.startswith(b"NodeName=gpu-st-p5-1 ")
    assert both.stdout.endswith(b"Node gpu-st-p5-99 not found\n")
    array = ask(sim, "scontrol", "-o", "show", "job", "48213").stdout.decode()
    assert len(array.splitlines()) == 5
    task = ask(sim, "scontrol", "-o", "show", "jobs", "48213_1").stdout.decode()
    assert "ArrayJobId=48213 ArrayTaskId=1 ArrayTaskThrottle=4 " in task


def test_oneliner_is_the_record_with_blanks(sim: Simulation) -> None:
    for words in (["show", "node"], ["-d", "show", "job"], ["show", "partition"]):
        many = ask(sim, "scontrol", *words).stdout.decode().removesuffix("\n\n").split("\n\n")
        one = ask(sim, "scontrol", "-o", *words).stdout.decode().splitlines()
        assert [record.replace("\n   ", " ") for record in many] == one


def test_reason_of_scontrol_has_no_blanks(sim: Simulation) -> None:
    text = ask(sim, "scontrol", "-o", "show", "job").stdout.decode()
    assert "Reason=ReqNodeNotAvail,_UnavailableNodes:gpu-st-p5-6 " in text


def test_config_tells_the_settings_the_simulation_keeps(sim: Simulation) -> None:
    text = ask(sim, "scontrol", "show", "config", SLURM_TIME_FORMAT="%s").stdout.decode()
    pairs = dict(re.findall(r"^(\S+) += (.*)$", text, re.MULTILINE))
    assert pairs["ClusterName"] == "demo"
    assert pairs["SLURM_VERSION"] == "23.11.10"
    assert pairs["PrivateData"] == "cloud"
    assert pairs["MessageTimeout"] == "60 sec"
    assert pairs["SuspendTime"] == "600 sec"
    assert pairs["SuspendTimeout"] == "120 sec"
    assert pairs["ResumeTimeout"] == "1800 sec"
    assert pairs["SuspendExcNodes"] == "gpu-st-p5-[1-8]"
    assert pairs["BOOT_TIME"] == str(int(T0))


def test_completing_node_is_told_as_such(sim: Simulation) -> None:
    node = next(iter(sim.nodes.values()))
    lone = SimNode("x", 0, True, ("gpu",), completing={1})
    sim.nodes = {"x": lone}
    row = table(sim, "sinfo", ["StateComplete", "StateLong", "StateCompact"], "-N")[0]
    assert tuple(row.values()) == ("idle+cloud+completing", "completing", "comp")
    assert node.name != lone.name
