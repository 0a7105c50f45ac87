"""The details of jobs: from a job to its odd rank and the pid of any rank, to its nodes, problems and other jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.gpu_models import GpuProcess, Lack, Missing
from cockpit.joins import find_row
from cockpit.models import Job, QueueReading, QueueRow
from cockpit.sources.gpus import NodeWatch
from screens.detail_registry import details
from screens.details.ranks import Census, census, census_lines
from screens.lines import Line, Subject
from tests.unit.details_cluster import (
    Change,
    lead,
    leads_to,
    link_texts,
    row_named,
    text,
    texts,
    watched,
    with_gpu,
    with_reading,
    with_text,
)


def of(key: str, change: dict[str, Change] | None = None) -> list[Line]:
    cluster, _, _ = watched(change)
    return details(cluster, Subject("job", key))


def test_from_a_running_job_to_the_pid_of_rank_3_and_its_gpu_and_node() -> None:
    cluster, _, _ = watched()
    row = lead(cluster)
    lines = details(cluster, Subject("job", row.key))
    rank = next(
        (gpu, process)
        for gpu in cluster.view.gpu_rows
        for process in gpu.processes
        if process.rank == 3 and process.job_id == row.lead.job_id
    )
    line = with_text(lines, f"rank 3  pid {rank[1].pid}  maria")
    assert link_texts(line) == [f"GPU {rank[0].slot}"]
    above = [text(one) for one in lines[: lines.index(line)] if "  ranks " in text(one) and rank[0].node in text(one)]
    assert above
    assert {("gpu", rank[0].key), ("node", rank[0].node), ("queue", "gpu")} <= leads_to(lines)
    assert "ranks        0-23 of 24, 8 on each of 3 nodes" in texts(lines)
    assert "1d07h of 5d00h, 3d17h left" in texts(lines)


def test_the_gpu_that_is_not_like_the_others_comes_first_with_its_rank() -> None:
    lines = of("48219", {"gpu-st-p5-3": with_gpu(5, util_pct=0.0)})
    odd = with_text(lines, "utilisation 0 % now, the others 93 %")
    assert link_texts(odd) == ["gpu-st-p5-3/5"]
    assert "rank 13" in text(odd)
    where = texts(lines).partition("where: 3 nodes")[2]
    assert where.index("gpu-st-p5-3  allocated") < where.index("gpu-st-p5-2  allocated")


def test_gpus_that_are_all_alike_are_nothing_odd() -> None:
    assert "not like the others" not in texts(of("48219"))


def without_processes(of_slots: set[int]) -> Change:
    def change(one: NodeWatch) -> NodeWatch:
        assert one.reading is not None
        kept = tuple(p for p in one.reading.processes if int(p.gpu.rpartition("-")[2]) not in of_slots)
        return replace(one, reading=replace(one.reading, processes=kept))

    return change


def test_a_rank_without_a_process_is_missing_only_when_it_could_have_been_seen() -> None:
    told = texts(of("48219", {"gpu-st-p5-3": without_processes({5})}))
    assert "missing      13: no process of theirs holds a GPU" in told
    assert "no process of the job on it" in told
    blind = texts(of("48219", {"gpu-st-p5-3": with_reading(processes=(), processes_at=None)}))
    assert "not seen     8-15: nothing is told of the processes on gpu-st-p5-3" in blind
    assert "missing" not in blind


def test_a_silent_node_says_since_when_and_its_numbers_are_called_old() -> None:
    lines = of("48219", {"gpu-st-p5-3": lambda one: replace(one, seen_at=(one.seen_at or 0) - 125)})
    assert "readings 2m old" in text(with_text(lines, "gpu-st-p5-3  allocated"))
    assert "as of 2m ago" in texts(lines)


def test_a_lost_gpu_shows_no_number_and_what_is_wrong() -> None:
    gone = Missing(Lack.LOST, "GPU is lost", 15)
    lines = of("48219", {"gpu-st-p5-3": with_gpu(5, lost=gone)})
    assert "GPU 5  not readable now" in texts(lines)
    assert {("problem", "gpu:gpu-st-p5-3:lost"), ("gpu", "gpu-st-p5-3/5")} <= leads_to(lines)


def test_a_fault_of_a_neighbours_gpu_is_no_problem_of_the_job() -> None:
    change = {"gpu-st-p5-1": with_gpu(7, ecc_uncorrected=2.0)}  # of qwen2-eval, on a node that several jobs share
    cluster, _, _ = watched(change)
    mine = row_named(cluster, "qwen2-eval").key
    other = row_named(cluster, "jupyter").key
    fault = ("problem", "gpu:gpu-st-p5-1:ecc")
    assert fault in leads_to(details(cluster, Subject("job", mine)))
    assert fault not in leads_to(details(cluster, Subject("job", other)))


def test_an_array_tells_its_tasks_by_state_each_a_link_of_its_own() -> None:
    cluster, _, _ = watched()
    row = row_named(cluster, "eval-sweep")
    lines = details(cluster, Subject("job", row.key))
    assert "4 running · 20 pending" in texts(lines)
    assert ("job", "48213_2") in leads_to(lines)
    assert "pending: 20 tasks" in texts(lines)
    task = details(cluster, Subject("job", "48213_2"))
    assert "where: 1 node" in texts(task)
    assert "ends by" in texts(task)
    assert "ends by" not in texts(lines)


def test_dependencies_and_het_components_lead_to_the_other_jobs() -> None:
    cluster, _, _ = watched()
    waiting = details(cluster, Subject("job", row_named(cluster, "405b-evals").key))
    assert link_texts(with_text(waiting, "afterok:")) == ["48219"]
    assert ("reason", "Dependency") in leads_to(waiting)
    actor = details(cluster, Subject("job", row_named(cluster, "rlhf-actor").key))
    assert ("job", row_named(cluster, "rlhf-rollout").key) in leads_to(actor)
    gone = details(cluster, Subject("job", row_named(cluster, "dpo-merge").key))
    assert link_texts(with_text(gone, "afterok:")) == []


def test_a_job_that_left_and_a_queue_that_was_never_read() -> None:
    cluster, _, _ = watched()
    assert "has left the queue" in texts(details(cluster, Subject("job", "1")))
    cluster.view = replace(cluster.view, queue=None)
    assert "not read yet" in texts(details(cluster, Subject("job", "1")))


def process(pid: int, rank: float, world: float | None = None) -> tuple[str, GpuProcess]:
    told = GpuProcess("GPU-0", pid, exists=True, rank=rank)
    return "gpu-1", told if world is None else replace(told, world_size=world)


def test_ranks_are_told_by_the_jobs_own_environment_and_may_be_anything() -> None:
    wild = census([process(1, 10.0**15, 10.0**18), process(2, -1.0), process(3, 0.0, 2.0**40)])
    assert wild == Census({"gpu-1": (0,)}, None, 2, ())
    assert wild.missing == set()


def test_two_steps_with_the_same_ranks_are_told_and_a_process_on_two_gpus_is_one() -> None:
    told = census([process(1, 0.0, 2.0), process(1, 0.0, 2.0), process(2, 1.0, 2.0), process(9, 1.0, 2.0)])
    assert (told.doubled, told.missing) == ((1,), set())
    assert "twice        1" in texts(census_lines(told, []))


@pytest.mark.parametrize("key", ["123_", "123_7", "907"])
def test_a_job_is_found_by_its_line_its_task_and_its_real_id(key: str) -> None:
    rest = Job(123, "PD", array_job_id=123, array_tasks="8-9%2", task_count=2)
    task = Job(907, "R", array_job_id=123, array_tasks="7")
    other = Job(5, "R")
    queue = QueueReading(
        (other, rest, task), (QueueRow("5", (other,), ()), QueueRow("123_", (task, rest), (("R", 1), ("PD", 2))))
    )
    found = find_row(queue, key)
    assert found is not None
    assert (found.lead is task, len(found.jobs)) == (True, 2 if key == "123_" else 1)
    assert find_row(queue, "123_99") is None
    assert find_row(None, key) is None
    assert [job.key for job in (rest, task, other)] == ["123_", "123_7", "5"]
