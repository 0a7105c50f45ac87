"""Real output of scontrol and real failures, read as their collectors say they must be read."""

from __future__ import annotations

from datetime import timezone

import pytest

from cockpit.formats.gres import gpus_of, parse_gres
from cockpit.formats.hostlist import count
from cockpit.formats.node_state import judge
from cockpit.formats.reasons import explain_reason
from cockpit.formats.scontrol import Controller, parse_partitions, parse_ping
from cockpit.formats.scontrol_show import parse_job_details, parse_node_details
from cockpit.formats.slurm_errors import complaint
from cockpit.formats.times import instant
from cockpit.models import FaultKind, Health
from tests.formats.slurm_samples import MARKS, SAMPLES, VERSIONS, nodes_of, read

pytestmark = MARKS


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


def test_job_details(version: str) -> None:
    details = {detail.job_id: detail for detail in parse_job_details(read(version, "scontrol_show_job_dd.txt"))}
    assert len(details) == 26
    assert dict(details[2].gpu_indices) == {name: tuple(range(8)) for name in ("gpu-st-p5-2", "gpu-st-p5-3")}
    assert dict(details[1].gpu_indices) == {"gpu-st-p5-1": (0, 1, 2, 3)}
    assert [dict(details[number].gpu_indices) for number in (7, 8, 9)] == [
        {"gpu-st-p5-1": (index,)} for index in (4, 5, 6)
    ]
    assert (details[2].gpus, details[26].gpus) == (16, 3)
    assert details[1].std_out == "/dev/null"
    assert details[1].work_dir == "/fsx/alice/run"
    assert details[1].command == "/fsx/alice/run/train.sh"
    assert details[26].get("JobName") == 'odd |name% "q" = x␉tab'
    assert details[26].get("Comment") == 'ticket=42 a|b "quoted" ;'
    assert details[20].get("Reason") == "job_requeued_in_held_state"
    assert instant(details[1].get("SubmitTime"), timezone.utc) is not None
    for detail in details.values():
        assert all(found.known for found in explain_reason(detail.get("Reason")))


def test_node_details_say_the_same_as_sinfo(version: str) -> None:
    details = parse_node_details(read(version, "scontrol_show_node.txt"), timezone.utc)
    nodes = nodes_of(version)
    assert [detail.name for detail in details] == list(nodes)
    for detail in details:
        node = nodes[detail.name]
        assert judge(detail.state, detail.reason) == (node.word, node.health)
        assert detail.reason == node.reason
        assert bool(detail.reason_by) == bool(detail.reason)
        assert gpus_of(parse_gres(detail.get("Gres"))).count == node.gpus_total
        assert detail.get("RealMemory") == str(node.mem_mib)


def test_partitions_and_ping(version: str) -> None:
    partitions = {found.name: found for found in parse_partitions(read(version, "scontrol_show_partition_oneline.txt"))}
    assert list(partitions) == ["gpu", "prio", "cpu", "old", "test"]
    assert {name for name, found in partitions.items() if found.hidden} == {"test"}
    assert {name for name, found in partitions.items() if found.default} == {"gpu"}
    assert {name: found.state for name, found in partitions.items() if found.state != "UP"} == {"old": "INACTIVE"}
    for found in partitions.values():
        assert count(found.hostlist) == found.total_nodes
    assert parse_ping(read(version, "scontrol_ping.txt")) == (Controller("primary", "head", True),)


@pytest.mark.parametrize("name", ["22.05", "25.11"])
def test_names_with_newlines_do_not_break_a_job_record(name: str) -> None:
    (detail,) = parse_job_details(read("tricky", f"scontrol_show_job_newline_name_{name}.txt"))
    assert detail.get("JobName") == "na|me%x with␊newline␉and␟sep"
    assert detail.get("Comment") == 'line1␊line2 = | "q" ␟ e\u0301 \ufffd'
    assert (detail.get("JobState"), detail.get("Reason")) == ("PENDING", "JobHeldUser")
    assert (detail.std_out, detail.work_dir) == ("/dev/null", "/fsx/alice/run")


def test_nodes_of_parallelcluster() -> None:
    raw = read("public", "parallelcluster", "scontrol_show_nodes_22.05.7_23.02.4.txt")
    first, second, third = parse_node_details(raw)
    for detail in (first, second):
        assert judge(detail.state, detail.reason) == ("rebooting", Health.DRAINED)
        assert (detail.reason, detail.reason_by) == ("Reboot ASAP : reboot issued", "slurm")
        assert (detail.comment, detail.get("NextState")) == ("some comment", "RESUME")
    assert judge(third.state) == ("maintenance", Health.DRAINED)
    assert third.get("ReservationName") == "root_5"


KINDS = {
    "sacct": FaultKind.MISSING,
    "ctld_down": FaultKind.CONTROLLER_DOWN,
    "denied": FaultKind.DENIED,
    "munge_down": FaultKind.AUTH,
    "no_config": FaultKind.MISSING,
    "notfound": FaultKind.MISSING,
    "version_skew_client22.05": FaultKind.GARBLED,
    "version_skew_client25.11": FaultKind.AUTH,  # looks like nothing else
}


def failures() -> list[str]:
    folder = SAMPLES / "failures"
    names = sorted(path.stem for path in folder.glob("*.rc")) if folder.is_dir() else []
    return [name for name in names if "json" not in name]


@pytest.mark.parametrize("name", failures())
def test_failures(name: str) -> None:
    def part(suffix: str) -> bytes:
        path = SAMPLES / "failures" / f"{name}.{suffix}"
        return path.read_bytes() if path.exists() else b""

    kind = next(kind for start, kind in KINDS.items() if start in name)
    fault = complaint(int(part("rc")), part("stdout"), part("stderr"), what="asking Slurm")
    assert fault is not None
    assert fault.kind is kind
    assert fault.next_step
    if name.endswith("scontrol_ping"):
        assert [found.up for found in parse_ping(part("stdout"))] == [False]
