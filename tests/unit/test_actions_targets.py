"""What may be named: nodes that exist, jobs as Slurm writes them, and never a command line that is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.errors import ActionError, Refusal
from actions.targets import LIST_BYTES, Label, host_batches, job_batches, job_targets, label_of
from cockpit.formats.hostlist import expand
from tests.unit.action_kit import Kit


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nope", "no such node on still: nope"),
        ("gpu-st-p5-[1-3],gpu-st-p5-77", "no such node on still: gpu-st-p5-77"),
        ("gpu-st-p5-[1-60000]", "names 60,000 nodes; 10,000 at most"),
        ("gpu-st-p5-[1-100000]", "more than 65,536 hosts"),
        ("gpu-st-p5-[1-60000],x[1-40000]", "100,000 nodes; 10,000 at most"),
        ("gpu-st-p5-[3", "a bracket that is not closed"),
        ("gpu-st-p5-1; rm -rf /", "no such node"),
        ("\x1b[2J", "a bracket that is not closed: ␛[2J"),
        ("\x1bx", "no such node on still: ␛x"),
    ],
)
def test_what_is_no_node_is_named_and_nothing_is_sent(kit: Kit, text: str, says: str) -> None:
    with pytest.raises(ActionError) as refused:
        kit.nodes(text)
    assert refused.value.kind is Refusal.USAGE
    assert says in str(refused.value)
    assert kit.writes == []


def test_a_queue_that_is_not_there_is_named_with_those_that_are(kit: Kit) -> None:
    with pytest.raises(ActionError, match="no queue gpux on still; there are: gpu, interactive, prio"):
        kit.queue("gpux")


@pytest.mark.parametrize(
    ("word", "label"),
    [
        ("123", "123"),
        ("0123", "123"),
        ("123_", "123"),  # the key of a folded row
        ("123_7", "123_7"),
        ("123_[1-9,12]", "123_[1-9,12]"),
        ("123_[1-100%5]", "123_[1-100]"),
        ("123_[7%1]", "123_7"),
        ("123+1", "123"),
    ],
)
def test_job_labels_are_what_slurm_takes(word: str, label: str) -> None:
    assert label_of(word) == label


@pytest.mark.parametrize("word", ["abc", "-1", "12 3", "1;2", "123_[1-9:2]", "--signal=KILL", "1e3", ""])
def test_what_is_no_job_is_refused(word: str) -> None:
    with pytest.raises(ActionError):
        label_of(word)


def test_commas_and_doubles() -> None:
    assert job_targets(["1,2", "3_[1,2]", "2"]).names == ("1", "2", "3_[1,2]")


def test_a_label_covers_its_records() -> None:
    assert Label.of("9_[1-4]").covers(12, 9, "3", None)
    assert Label.of("9_[1-4]").covers(9, 9, "4-30%2", None)
    assert not Label.of("9_[1-4]").covers(9, 9, "5-30%2", None)
    assert not Label.of("9_3").covers(9, None, "", None)
    assert Label.of("9").covers(12, 9, "3", None)
    assert Label.of("9").covers(10, None, "", 9)
    assert not Label.of("9").covers(10, 8, "9", None)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3000, unique=True))
def test_no_command_line_is_too_long_and_no_target_is_lost(numbers: list[int]) -> None:
    names = [f"node-with-a-long-name-{number}-rack{number % 7}" for number in numbers]
    batches = list(host_batches(names))
    assert all(len(hosts) <= LIST_BYTES for hosts, _ in batches)
    assert sorted(name for hosts, _ in batches for name in expand(hosts)) == sorted(names)
    labels = [str(number) for number in numbers]
    chunks = list(job_batches(labels))
    assert [label for chunk in chunks for label in chunk] == labels
    assert all(len(",".join(chunk)) <= LIST_BYTES and len(chunk) <= 200 for chunk in chunks)
