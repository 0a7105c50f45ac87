"""One way to details, records and explanations of every kind of subject, whatever is in the texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cockpit.cluster import Cluster
from cockpit.formats.listpids import JobPid
from cockpit.gpu_models import GpuProcess
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind, Job, Node
from cockpit.sources.gpus import NodeWatch
from cockpit.text import printable
from screens.content import styled
from screens.detail_registry import DETAILS, EXPLAIN, RECORDS, details, explain, read_more
from screens.details import records
from screens.lines import Line, Subject
from screens.subjects import title
from tests.still import StillClock
from tests.unit.details_cluster import (
    Change,
    lead,
    leads_to,
    row_named,
    text,
    texts,
    watched,
    with_reading,
    with_text,
)

NODE = "gpu-st-p5-3"
HOSTILE = [
    "a|b|c",
    "two\nlines",
    "field\x1fand\x1erecord",
    "[/]",
    "[@click=app.quit]x[/]",
    "\x1b]52;c;eA==\x07\x1b[31mred",
    "汉字汉字汉字",
    "\u202egnp.exe\u202c",
    "n" * 200,
    "caf\udce9",
    "JobId=1 JobName=x",
    "{node} {job} %s",
]


def test_the_kinds_are_the_same_everywhere_and_others_are_refused() -> None:
    assert set(DETAILS) == set(EXPLAIN)
    assert set(RECORDS) <= set(DETAILS)
    cluster, _, _ = watched()
    for say in (details, explain):
        with pytest.raises(KeyError):
            say(cluster, Subject("moon", "1"))


def test_titles() -> None:
    told = {
        ("node", "gpu-1"): "node gpu-1",
        ("job", "123_"): "job 123",
        ("problem", ""): "problems",
        ("problem", "gpu:gpu-1:xid:79"): "problem",
        ("xid", "79"): "Xid 79",
        ("sxid", "20034"): "SXid 20034",
        ("throttle", "8"): "clock reason HW slowdown",
        ("throttle", "no bit"): "clock reason no bit",
        ("log", "20260101-120000-abcd"): "log line",
        ("cost", "idle:down::"): "cost: idle, down",
        ("cost", "runs:gpu:p5.48xlarge:spot"): "cost: runs, gpu, p5.48xlarge, spot",
        ("storage", "mount:/fsx:10.0.0.1@tcp:/fsx:"): "storage /fsx",
        ("storage", "fsx:fs-0123"): "storage fs-0123",
        ("pane", "checks-efa"): "table checks-efa",
    }
    assert {key: title(Subject(*key)) for key in told} == told


@pytest.mark.parametrize("kind", DETAILS)
@pytest.mark.parametrize("say", [details, explain], ids=["details", "explain"])
def test_nothing_read_yet_and_keys_that_name_nothing(kind: str, say: Callable[[Cluster, Subject], list[Line]]) -> None:
    read, _, _ = watched()
    from tests.still import still_cluster

    for cluster in (read, still_cluster()[0]):
        for key in ("", "nope", "1/2/3", "_", "[", "9" * 40, "\x1b[2J"):
            assert say(cluster, Subject(kind, key))


def all_subjects(cluster: Cluster) -> list[Subject]:
    view = cluster.view
    queue = view.queue
    assert queue is not None
    return [
        *(Subject("node", node.name) for node in view.nodes or ()),
        *(Subject("job", row.key) for row in queue.rows),
        *(Subject("job", job.key) for job in queue.jobs),
        *(Subject("gpu", row.key) for row in view.gpu_rows),
        *(Subject("problem", problem.key) for problem in cluster.problems()),
        *(Subject("queue", name) for name in ("gpu", "prio", "")),
        Subject("problem", ""),
    ]


def hostile_processes(one: NodeWatch) -> NodeWatch:
    assert one.reading is not None
    held = tuple(
        replace(p, user=printable(HOSTILE[n % len(HOSTILE)]), command=printable(HOSTILE[-n % len(HOSTILE)]))
        for n, p in enumerate(one.reading.processes)
    )
    not_read = {"kernel log": HOSTILE[3], "EFA counters": printable(HOSTILE[5])}
    return replace(one, reading=replace(one.reading, processes=held, not_read=not_read))


def hostile_cluster() -> Cluster:
    changes: dict[str, Change] = {f"gpu-st-p5-{n}": hostile_processes for n in range(1, 9)}
    cluster, head, clock = watched(changes)
    for job, name in zip(head.sim.jobs.values(), HOSTILE * 9, strict=False):
        job.ask = replace(job.ask, name=name, comment=name)
        job.reason = name if job.state == "PENDING" else job.reason
        job.dependency = f"afterok:{name}"
    for node, reason in zip(head.sim.nodes.values(), HOSTILE, strict=False):
        node.drain, node.reason, node.reason_by, node.reason_at = True, reason, reason, clock.now() - 60
    cluster.read_once()
    return cluster


def test_hostile_texts_stay_one_harmless_line_each_wherever_they_are_told() -> None:
    cluster = hostile_cluster()
    for subject in all_subjects(cluster):
        for lines in (details(cluster, subject), explain(cluster, subject), read_more(cluster, subject)):
            assert lines or subject.kind in ("gpu", "problem", "queue")
            for line in lines:
                assert text(line) == printable(text(line)), subject
                styled(line)  # no token that the themes do not know


def test_every_link_of_a_cluster_with_troubles_leads_to_something() -> None:
    cluster = hostile_cluster()
    seen: set[tuple[str, str]] = set()
    for subject in all_subjects(cluster):
        seen |= leads_to(details(cluster, subject)) | leads_to(explain(cluster, subject))
    assert len({kind for kind, _ in seen}) >= 6
    gone = ("left the queue", "no longer", "is gone", "is over", "names no", "is no ")
    for kind, key in seen:
        told = texts(details(cluster, Subject(kind, key)))
        assert not told.startswith(gone), (kind, key)
        assert not any(word in told.split("\n")[0] for word in gone), (kind, key)


def test_a_node_tells_its_history_when_accounting_keeps_one() -> None:
    cluster, head, _ = watched()
    assert "no accounting database" in texts(read_more(cluster, Subject("node", NODE)))
    assert cluster.view.site is not None
    cluster.view = replace(cluster.view, site=replace(cluster.view.site, accounting=True))
    raw = b"1764413600|1764417200|DRAIN|maria(1001)|Xid 79 [/] \x1b[31m\n"
    head.answers["sacctmgr"] = lambda argv: Completed(0, raw, b"", 0.1)
    told = texts(read_more(cluster, Subject("node", NODE)))
    assert "for 1h00m" in told
    assert "DRAIN  maria  Xid 79 [/] ␛[31m" in told
    assert f"NodeName={NODE}" in told
    head.answers["sacctmgr"] = lambda argv: Completed(1, b"", b"Sending PersistInit msg: Connection refused", 0.1)
    told = texts(read_more(cluster, Subject("node", NODE)))
    assert "slurmdbd does not answer" in told
    assert f"NodeName={NODE}" in told


def test_a_jobs_record_tells_where_its_output_goes_and_which_gpus_are_its() -> None:
    cluster, _, _ = watched()
    lines = read_more(cluster, Subject("job", "48224"))
    told = texts(lines)
    assert "output       /fsx/" in told
    assert ("gpu", "gpu-st-p5-1/7") in leads_to(lines)
    assert "JobId=48224" in told
    assert "processes by Slurm" not in told  # a probe has told them already
    pending = texts(read_more(cluster, Subject("job", row_named(cluster, "vit-g-distill").key)))
    assert "processes by Slurm" not in pending


def test_a_record_that_cannot_be_read_is_a_fault_with_its_reason() -> None:
    cluster, head, _ = watched()
    head.answers["scontrol"] = lambda argv: Completed(1, b"", b"slurm_load_jobs error: Invalid job id specified", 0.1)
    with pytest.raises(FaultError) as gone:
        read_more(cluster, Subject("job", lead(cluster).key))
    assert "does not know this job" in gone.value.fault.why


def blind_cluster() -> Cluster:
    """No probe tells a process of the big run's."""
    blind = with_reading(processes=(), processes_at=None)
    return watched({f"gpu-st-p5-{n}": blind for n in range(2, 5)})[0]


def test_ranks_that_no_probe_tells_come_from_slurm_on_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = blind_cluster()

    def pids(node: Node, job: Job) -> tuple[JobPid, ...]:
        if node.name == NODE:
            raise FaultError(Fault(FaultKind.TIMEOUT, "asking", "no answer within 10 s"))
        return (JobPid(44, job.job_id, "batch"), JobPid(64, job.job_id, "0", 0, 3)) if node.name.endswith("2") else ()

    monkeypatch.setattr(cluster, "job_pids", pids)
    lines = read_more(cluster, Subject("job", "48219"))
    told = texts(lines)
    assert "rank 3  pid 64  step 0" in told
    assert "step batch: pid 44" in told
    assert "no process of it" in text(with_text(lines, "  gpu-st-p5-4"))
    assert f"{NODE}: no answer within 10 s" in told


def test_processes_that_tell_no_rank_are_asked_of_slurm_too(monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = (GpuProcess("GPU-0", 77, exists=True, job_id=48219),)
    cluster, _, _ = watched({NODE: with_reading(processes=nameless)})
    asked: list[str] = []

    def pids(node: Node, job: Job) -> tuple[JobPid, ...]:
        asked.append(node.name)
        return ()

    monkeypatch.setattr(cluster, "job_pids", pids)
    assert "pid 77" in texts(details(cluster, Subject("job", "48219")))
    read_more(cluster, Subject("job", "48219"))
    assert asked == [NODE]


def test_nodes_that_hang_do_not_hold_up_the_record_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = blind_cluster()

    def pids(node: Node, job: Job) -> tuple[JobPid, ...]:
        clock = cluster.clock
        assert isinstance(clock, StillClock)
        clock.time += 15  # as if each took so long
        raise FaultError(Fault(FaultKind.TIMEOUT, "asking", "no answer in time"))

    monkeypatch.setattr(cluster, "job_pids", pids)
    monkeypatch.setattr(records, "AT_ONCE", 1)
    told = texts(read_more(cluster, Subject("job", "48219")))
    assert "gpu-st-p5-[2-3]: no answer in time" in told
    assert "gpu-st-p5-4: not asked, since the others took 20 s" in told
