"""Real output of squeue, read as its collectors say it must be read."""

from __future__ import annotations

from collections import Counter

import pytest

from cockpit.formats.arrays import count_states, fold_queue
from cockpit.formats.hostlist import count
from cockpit.formats.reasons import explain_reason
from cockpit.formats.squeue import parse_queue
from tests.formats.slurm_samples import (
    LETTERS,
    MARKS,
    QUEUE_7,
    QUEUE_39,
    RECOMMENDED,
    VERSIONS,
    queue_of,
    read,
    tally,
)

pytestmark = MARKS


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


def test_the_recommended_queue_call(version: str) -> None:
    jobs = parse_queue(read("recommended", f"squeue_O39_{version}.bin"), QUEUE_39.split())
    number, states = RECOMMENDED[version][0].split(": ")
    assert len(jobs) == int(number)
    assert Counter(job.state for job in jobs) == tally(states)
    holding = [job for job in jobs if job.state in ("R", "CF", "S")]
    # What the jobs say they hold is what the nodes say is in use.
    assert sum(job.gpus or 0 for job in holding) == RECOMMENDED[version][2]
    for job in jobs:
        assert job.submitted_at is not None
        assert job.submitted_at > 1_795_000_000
        assert all(found.known for found in explain_reason(job.reason))
        assert count(job.hostlist) == (job.node_count if job.hostlist else 0)


def test_the_queue_with_and_without_single_tasks(version: str) -> None:
    bundled, single = queue_of(version), queue_of(version, "squeue_ctrl_o.txt")
    assert (len(bundled), len(single)) == (26, 72)
    late_end = version == "24.11.7"  # job 22 had ended there
    expected = {"R": 6 if late_end else 7, "CF": 2, "S": 1, "PD": 58, "CD": 1, "F": 2, "CA": 1}
    expected |= {"TO": 1} if late_end else {}
    assert count_states(bundled) == expected
    assert count_states(single) == expected
    assert Counter(job.state for job in bundled)["PD"] == 12
    assert [row.key for row in fold_queue(bundled)] == [
        row.key for row in fold_queue(single) if row.key in {row.key for row in fold_queue(bundled)}
    ]
    (array,) = [row for row in fold_queue(bundled) if row.key == "3_"]
    assert array.tally == (("R", 3), ("PD", 47))
    assert [row.tally for row in fold_queue(single) if row.key == "3_"] == [array.tally]


REASONS = {
    3: "JobArrayTaskLimit",
    10: "Dependency",
    11: "DependencyNeverSatisfied",
    12: "BeginTime",
    13: "JobHeldUser",
    14: "JobHeldAdmin",
    15: "PartitionTimeLimit",
    20: "job requeued in held state",
    23: "Resources",
    24: "Resources",
    5: "NonZeroExitCode",
    16: "BadConstraints",
}


def test_reasons_gpus_and_names_of_jobs(version: str) -> None:
    jobs = {job.job_id: job for job in queue_of(version)}
    not_looked_at = {23: ""} if version in ("23.11.11", "24.05.8") else {}
    assert {number: jobs[number].reason for number in REASONS} == REASONS | not_looked_at
    assert jobs[18].reason.startswith("ReqNodeNotAvail, ")
    assert all(found.known for job in jobs.values() for found in explain_reason(job.reason))
    gpus = {number: jobs[number].gpus for number in (1, 2, 4, 7, 17, 23, 24, 26)}
    assert gpus == {1: 4, 2: 16, 4: 2, 7: 1, 17: 8, 23: 2, 24: 16, 26: 3}
    assert jobs[26].name == 'odd |name% "q" = x␉tab'
    assert jobs[26].comment == 'ticket=42 a|b "quoted" ;'
    assert jobs[2].limit_s == (None if version == "24.11.7" else 365 * 86_400)  # set when backfill started it
    assert (jobs[10].limit_s, jobs[10].limit_word) == (None, "UNLIMITED")
    assert (jobs[3].label, jobs[7].label) == ("3_[4-50%3]", "3_1")


@pytest.mark.parametrize("name", ["22.05", "25.11"])
def test_nasty_names(name: str) -> None:
    # These records begin with the mark: put it at their ends, where the product asks for it.
    pieces = read("tricky", f"squeue_ctrl_o_nasty_names_{name}.bin").split(b"\x1e")[1:]
    raw = b"".join(piece.removesuffix(b"\n") + b"\x1e\n" for piece in pieces)
    fields = [LETTERS[letter] for letter in QUEUE_7.split()]
    jobs = {job.job_id: job for job in parse_queue(raw, fields)}
    assert len(jobs) == 3
    assert {(job.state, job.reason) for job in jobs.values()} == {("PD", "JobHeldUser")}
    names = " ".join(job.name for job in jobs.values())
    assert names.isprintable()
    assert "␛[31mred␛[0m 訓練 🚀" in names
    assert "newline␉and␟sep" in names
    assert "long-array" in names
    assert "\ufffd" in "".join(job.comment + job.name for job in jobs.values())


@pytest.mark.parametrize("version", ["22.05.8", "25.11.8"])
def test_nasty_names_in_the_recommended_call(version: str) -> None:
    jobs = parse_queue(read("recommended", f"squeue_O39_{version}.bin"), QUEUE_39.split())
    (nasty,) = [job for job in jobs if job.name.startswith("na|me")]
    assert nasty.name == "na|me%x with␊newline␉and␟sep "
    assert nasty.comment == 'line1␊line2 = | "q" ␟ e\u0301 \ufffd'
    arrays = [job for job in jobs if job.name == "long-array"]
    assert arrays
    assert {job.task_count for job in arrays} == {112}
