import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.arrays import count_states, count_tasks, fold_queue
from cockpit.models import Job, QueueRow


def task(job_id: int, tasks: str, state: str) -> Job:
    return Job(job_id, state, array_job_id=3, array_tasks=tasks, task_count=count_tasks(tasks))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("7", 1),
        ("1-100%5", 100),
        ("[1-100%5]", 100),
        ("1,3,7-9", 5),
        ("20-30:2%7", 6),
        ("1,3,7-9,20-30:2%7", 11),
        ("1%1", 1),
        ("0-0", 1),
        ("1,3,5...%7", 3),
        ("4-50%3", 47),
        ("", 1),
        ("nonsense", 1),
        ("9-1", 1),
        ("1-9:0", 9),
    ],
)
def test_count_tasks(text: str, count: int) -> None:
    assert count_tasks(text) == count


RANGES = st.tuples(st.integers(0, 5000), st.integers(0, 300), st.integers(1, 9))


@given(st.lists(RANGES, min_size=1, max_size=20))
def test_count_tasks_counts_what_it_names(ranges: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{low}-{low + span}:{step}" for low, span, step in ranges) + "%4"
    assert count_tasks(text) == sum(len(range(low, low + span + 1, step)) for low, span, step in ranges)


def test_an_array_folds_to_one_row_with_the_running_tasks_first() -> None:
    jobs = [
        Job(1, "R"),
        task(3, "4-50%3", "PD"),
        task(7, "1", "R"),
        Job(9, "PD"),
        task(8, "2", "R"),
        task(10, "3", "CG"),
        task(11, "0", "F"),
    ]
    rows = fold_queue(jobs)
    assert [row.key for row in rows] == ["1", "3_", "9"]
    assert [job.job_id for job in rows[1].jobs] == [7, 8, 10, 3, 11]
    assert rows[1].tally == (("R", 2), ("CG", 1), ("PD", 47), ("F", 1))
    assert rows[1].lead.job_id == 7
    assert rows[0].tally == (("R", 1),)


def test_an_array_keeps_its_key_when_only_one_record_is_left() -> None:
    assert [row.key for row in fold_queue([task(3, "4-50%3", "PD")])] == ["3_"]
    assert [row.key for row in fold_queue([task(7, "1", "R")])] == ["3_"]


def test_parts_of_a_het_job_keep_a_row_each() -> None:
    parts = [Job(24, "PD", het_job_id=24, het_offset=0), Job(25, "PD", het_job_id=24, het_offset=1)]
    assert [row.key for row in fold_queue(parts)] == ["24+0", "24+1"]


def test_rows_of_unchanged_jobs_are_the_same_objects_and_the_cache_forgets_the_rest() -> None:
    cache: dict[str, QueueRow] = {}
    single, array = Job(1, "R"), [task(7, "1", "R"), task(3, "2-9", "PD")]
    first = fold_queue([single, *array], cache)
    again = fold_queue([single, *array], cache)
    assert again[0] is first[0]
    assert again[1] is first[1]
    changed = fold_queue([Job(1, "CG"), array[0]], cache)
    assert changed[0].lead.state == "CG"
    assert changed[1].tally == (("R", 1),)
    fold_queue([], cache)
    assert cache == {}


def test_states_count_every_task_of_an_array() -> None:
    jobs = [Job(5, "CD"), task(3, "4-50%3", "PD"), task(7, "1", "R"), Job(9, "PD"), Job(10, "XX")]
    assert list(count_states(jobs).items()) == [("R", 1), ("PD", 48), ("CD", 1), ("XX", 1)]


def test_tallies_are_in_the_order_of_all_lists() -> None:
    states = ["CD", "PD", "S", "CF", "CG", "R"]
    (row,) = fold_queue([task(at, str(at), state) for at, state in enumerate(states)])
    assert [state for state, _ in row.tally] == ["R", "CG", "CF", "S", "PD", "CD"]
    assert list(count_states(row.jobs)) == ["R", "CG", "CF", "S", "PD", "CD"]
