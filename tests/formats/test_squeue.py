import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.errors import FormatError
from cockpit.formats.squeue import QUEUE_FIELDS, parse_queue, queue_args
from cockpit.models import Job
from cockpit.text import printable
from tests.formats.slurm_text import HOSTILE, job, queue


def one(**values: str | bytes) -> Job:
    (found,) = parse_queue(queue(job(**values)))
    return found


def test_the_call_asks_for_every_partition_and_nothing_that_changes_each_second() -> None:
    hold_header, hidden, option, fields = queue_args()
    assert (hold_header, hidden, option) == ("-h", "-a", "-O")
    assert fields.startswith("JobID:0\x1f,")
    assert fields.endswith(",Name:0\x1e")
    assert not {"TimeUsed", "State", "WorkDir", "StdOut"} & set(QUEUE_FIELDS)


def test_a_running_job() -> None:
    assert one(NumNodes="2", NodeList="gpu-st-p5-[2-3]", Comment="ticket=42 a|b") == Job(
        job_id=1,
        state="R",
        name="train-a",
        partitions=("gpu",),
        user="alice",
        node_count=2,
        cpus=8,
        gpus=8,
        gpu_type="h100",
        submitted_at=1_795_982_090.0,
        eligible_at=1_795_982_090.0,
        started_at=1_795_982_091.0,
        ends_at=1_796_111_691.0,
        limit_s=129_600.0,
        limit_word="1-12:00:00",
        priority=4_294_901_759,
        hostlist="gpu-st-p5-[2-3]",
        batch_host="gpu-st-p5-1",
        restarts=0,
        requeueable=True,
        comment="ticket=42 a|b",
    )


def test_a_pending_job_without_anything_yet() -> None:
    found = one(
        StateCompact="PD",
        StartTime="N/A",
        EndTime="NONE",
        EligibleTime="N/A",
        TimeLimit="UNLIMITED",
        NodeList="",
        SchedNodes="gpu-dy-p5-3,gpu-st-p5-6",
        BatchHost="n/a",
        Reason="Resources",
        Partition="cpu,gpu",
        NumNodes="2K",
        tres_per_node="N/A",
        Requeue="0",
    )
    assert (found.started_at, found.ends_at, found.eligible_at, found.limit_s) == (None, None, None, None)
    assert (found.limit_word, found.hostlist, found.batch_host) == ("UNLIMITED", "", "")
    assert found.scheduled_hostlist == "gpu-dy-p5-3,gpu-st-p5-6"
    assert found.partitions == ("cpu", "gpu")
    assert (found.node_count, found.gpus, found.requeueable) == (2048, None, False)
    assert found.reason == "Resources"


@pytest.mark.parametrize(
    ("tasks", "count", "label"),
    [
        ("7", 1, "3_7"),
        ("1-100%5", 100, "3_[1-100%5]"),
        ("1,3,7-9,20-30:2%7", 11, "3_[1,3,7-9,20-30:2%7]"),
        ("1%1", 1, "3_[1%1]"),
    ],
)
def test_array_tasks(tasks: str, count: int, label: str) -> None:
    found = one(JobID="12", ArrayJobID="3", ArrayTaskID=tasks)
    assert (found.array_job_id, found.array_tasks, found.task_count, found.label) == (3, tasks, count, label)


def test_a_job_that_is_no_array_names_itself_as_array_job() -> None:
    assert one(JobID="5", ArrayJobID="5").array_job_id is None


def test_parts_of_a_het_job() -> None:
    found = one(JobID="25", HetJobID="24", HetJobOffset="1")
    assert (found.het_job_id, found.het_offset, found.label) == (24, 1, "24+1")


def test_merged_reasons_are_kept_as_slurm_joins_them() -> None:
    assert one(Reason="JobArrayTaskLimit,JobHeldAdmin").reason == "JobArrayTaskLimit,JobHeldAdmin"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_inside_its_record(name: bytes) -> None:
    jobs = parse_queue(queue(job(JobID="1"), job(JobID="2", Name=name), job(JobID="3")))
    assert [found.job_id for found in jobs] == [1, 2, 3]
    assert jobs[1].name == printable(name)
    assert jobs[1].comment == ""


@pytest.mark.parametrize("comment", HOSTILE)
def test_a_hostile_comment_stays_a_comment(comment: bytes) -> None:
    jobs = parse_queue(queue(job(JobID="1", Comment=comment, Name=b"x"), job(JobID="2")))
    assert [(found.job_id, found.name) for found in jobs] == [(1, "x"), (2, "train-a")]
    assert jobs[0].comment == ("" if comment == b"(null)" else printable(comment))


def test_texts_with_separators_everywhere_still_make_one_job() -> None:
    jobs = parse_queue(queue(job(Comment=b"a\x1fb", admin_comment=b"c\x1fd", Name=b"e\x1ff\x1e\ng")))
    assert len(jobs) == 1
    assert jobs[0].name.endswith("e␟f␞␊g")


def test_an_unchanged_record_gives_the_same_object_and_the_cache_forgets_the_rest() -> None:
    cache: dict[bytes, Job] = {}
    first = parse_queue(queue(job(JobID="1"), job(JobID="2")), cache=cache)
    second = parse_queue(queue(job(JobID="1"), job(JobID="2", StateCompact="CG"), job(JobID="3")), cache=cache)
    assert second[0] is first[0]
    assert [found.state for found in second] == ["R", "CG", "R"]
    third = parse_queue(queue(job(JobID="3")), cache=cache)
    assert third[0] is second[2]
    assert len(cache) == 1


def test_a_renamed_job_is_not_taken_from_the_cache() -> None:
    cache: dict[bytes, Job] = {}
    parse_queue(queue(job(Name=b"x")), cache=cache)
    (found,) = parse_queue(queue(job(Name=b"x\x1e\ny")), cache=cache)
    assert found.name == "x␞␊y"


def test_a_broken_answer_leaves_the_cache_as_it_was() -> None:
    cache: dict[bytes, Job] = {}
    raw = queue(job(JobID="1"), job(JobID="2"))
    parse_queue(raw, cache=cache)
    with pytest.raises(FormatError):
        parse_queue(raw[:-20], cache=cache)
    assert len(cache) == 2


def test_equal_texts_are_shared() -> None:
    first, second = parse_queue(queue(job(JobID="1"), job(JobID="2")))
    assert first.user is second.user
    assert first.name is second.name
    assert first.partitions is second.partitions


def test_any_columns_in_any_order() -> None:
    raw = queue(b"7\x1fPENDING\x1fResources\x1fx|y", b"8\x1fRUNNING\x1fNone\x1fz")
    jobs = parse_queue(raw, ["JobID", "State", "Reason", "Name"])
    assert [(found.job_id, found.state, found.reason, found.name) for found in jobs] == [
        (7, "PD", "Resources", "x|y"),
        (8, "R", "", "z"),
    ]
    assert jobs[0].user == ""
    assert jobs[0].submitted_at is None


def test_a_column_that_this_slurm_does_not_know_is_empty_and_nothing_moves() -> None:
    found = one(NumTasks="", admin_comment="", tres_per_task="")
    assert (found.name, found.gpus) == ("train-a", 4)


ROW = st.tuples(st.integers(1, 10**7), st.binary(max_size=30), st.binary(max_size=30))


@given(st.lists(ROW, max_size=8, unique_by=lambda row: row[0]))
def test_no_bytes_in_names_and_comments_lose_or_invent_a_job(rows: list[tuple[int, bytes, bytes]]) -> None:
    raw = queue(*(job(JobID=str(number), Comment=comment, Name=name) for number, comment, name in rows))
    jobs = parse_queue(raw)
    assert [found.job_id for found in jobs] == [number for number, _, _ in rows]
    for found, (_, comment, name) in zip(jobs, rows, strict=True):
        texts = found.name + found.comment + found.admin_comment + found.system_comment
        assert texts == printable(texts)
        if b"\x1f" not in name + comment:
            assert (found.name, found.comment) == (printable(name), _told(comment))


def _told(comment: bytes) -> str:
    nothing = (b"", b"(null)", b"N/A", b"n/a", b"None", b"NONE", b"Unknown")
    return "" if comment in nothing else printable(comment)


FORGED = b"x\x1e\n777\x1f" + b"\x1f".join([b"1"] * 40)


@given(st.sampled_from(["", "0", "12ab34cd56ef", "abcdef"]), st.binary(max_size=60))
def test_a_marked_answer_is_read_with_its_mark(mark: str, name: bytes) -> None:
    assert queue_args(mark)[3].endswith(f",Name:0\x1e{mark}")
    (first, second) = parse_queue(queue(job(JobID="1", Name=name), job(JobID="2"), mark=mark), mark=mark)
    assert (first.job_id, second.job_id) == (1, 2)


@pytest.mark.parametrize("column", ["Name", "Comment", "admin_comment"])
def test_no_text_forges_a_job_in_a_marked_answer(column: str) -> None:
    raw = queue(job(JobID="1", **{column: FORGED}), job(JobID="2"), mark="12ab34cd56ef")
    jobs = parse_queue(raw, mark="12ab34cd56ef")
    assert [found.job_id for found in jobs] == [1, 2]
    assert "777" not in {found.label for found in jobs}


def test_another_mark_ends_nothing() -> None:
    name = FORGED.replace(b"\x1e\n", b"\x1eabcdef\n")
    jobs = parse_queue(queue(job(JobID="1", Name=name), mark="12ab34"), mark="12ab34")
    assert [(found.job_id, found.name) for found in jobs] == [(1, printable(name))]


def test_an_answer_without_the_mark_that_was_asked_for_is_refused() -> None:
    with pytest.raises(FormatError):
        parse_queue(queue(job()), mark="12ab34")


def test_the_cache_outlives_a_mark() -> None:
    cache: dict[bytes, Job] = {}
    (first,) = parse_queue(queue(job(), mark="aa"), cache=cache, mark="aa")
    (second,) = parse_queue(queue(job(), mark="bb"), cache=cache, mark="bb")
    assert first is second


def test_a_number_that_is_too_long_costs_only_itself() -> None:
    huge = "9" * 5000
    raw = queue(
        job(JobID=huge, NumNodes=huge, PriorityLong=huge, TimeLimit=f"{huge}-00:00:00", SubmitTime=huge),
        job(JobID="2", tres_per_node=f"gres/gpu:{huge}", ArrayJobID="2", ArrayTaskID=f"1-{huge}"),
    )
    first, second = parse_queue(raw)
    assert (first.job_id, first.node_count, first.priority, first.limit_s) == (0, None, None, None)
    assert first.submitted_at is None
    assert (second.job_id, second.gpus) == (2, None)
