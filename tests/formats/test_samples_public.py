"""Slurm output that public repositories hold, read as they say or show it must be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from cockpit.formats.gres import gpus_of, job_gpus, parse_gres
from cockpit.formats.node_state import judge, parse_state, written_by_program
from cockpit.formats.reasons import explain_reason
from tests.formats.slurm_samples import MARKS, SAMPLES, read

pytestmark = MARKS


def public(pattern: str) -> Iterator[tuple[str, list[str]]]:
    for path in sorted((SAMPLES / "public" / "slurm_exporter").glob(pattern)):
        for line in path.read_text().splitlines():
            if words := line.split():
                yield path.name, words


def test_every_public_gres_text_is_read() -> None:
    texts = 0
    for _, words in public("*gpus*.txt"):
        for word in words:
            if re.match(r"gpu:|gres", word):
                texts += 1
                gpus = gpus_of(parse_gres(word))
                assert gpus.count is not None
                if gpus.indices is not None:
                    assert len(gpus.indices) == gpus.count
    assert texts > 50


def test_totals_of_public_clusters() -> None:
    totals: Counter[str] = Counter()
    for name, words in public("*_sinfo_gpus_total.txt"):
        totals[name] += int(words[0]) * (gpus_of(parse_gres(words[1])).count or 0)
    assert totals["slurm-25.05_sinfo_gpus_total.txt"] == 1058 * 4
    assert totals["slurm-23.11.10_sinfo_gpus_total.txt"] == 58 * 4
    assert totals["slurm-23.11.10-2_sinfo_gpus_total.txt"] == 4 + 4 + 2
    assert totals["slurm-20.11.8_sinfo_gpus_total.txt"] == 48
    expected = 2 * 4 + 2 + 3 + 2 * 3 + 3 * 2 + 10 * 4 + 4 + 21 + 4 * 16
    assert totals["slurm-25.11.1-1_sinfo_gpus_total.txt"] == expected


def test_two_types_and_a_used_index_on_one_node() -> None:
    (_, words), *_ = public("slurm-25.11.2_node_detail_gres_multitype.txt")
    total, used = gpus_of(parse_gres(words[-2])), gpus_of(parse_gres(words[-1]))
    assert (total.count, total.type) == (4, "model_a,model_b")
    assert (used.count, used.indices) == (1, (2,))


def test_states_of_a_public_snapshot() -> None:
    states: Counter[str] = Counter()
    for _, (number, state, *_) in public("gpus_snapshot.txt"):
        states[judge(parse_state(state))[0]] += int(number)
    assert states["invalid registration"] == 1
    assert states["drained"] == 5
    assert states["reserved"] == 5
    assert parse_state("mixed-").has("planned")
    assert parse_state("drained*").has("not_responding")


def test_gpus_tracked_in_tres() -> None:
    counts = {}
    for name in ("squeue_jobs_accounts_view.txt", "squeue_jobs_users_view.txt"):
        for line in read("public", "slurm_exporter", name).decode().splitlines():
            words = [word.strip() for word in line.split("|")]
            counts[words[0]] = job_gpus(tres_alloc=words[-1]).count
    assert (counts["9722"], counts["10422"], counts["10243"]) == (32, 4, None)


def test_reasons_and_states_of_public_queues() -> None:
    for name in ("queue_all_states.txt", "slurm-24.11.7_queue_all_states.txt"):
        for line in read("public", "slurm_exporter", name).decode().splitlines():
            _, _, _, reason, _ = line.split("|")
            assert all(found.known for found in explain_reason(reason)), reason
    assert written_by_program("planned_maintenance") is None
