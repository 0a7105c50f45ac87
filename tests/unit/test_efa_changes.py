"""What EFA's error counters grew by since a job began, and what a diagnosis makes of it."""

from __future__ import annotations

import json
from dataclasses import replace

from cockpit.diagnosing import DiagnosisLook
from cockpit.diagnosis.diagnose import diagnose
from cockpit.diagnosis.gathered import GatheredEfa, gathered_from, gathered_json
from cockpit.diagnosis.report import diagnosis_json
from cockpit.gpu_models import EfaDevice, NodeReading
from cockpit.sources.efa_changes import EfaChanges
from screens.hang_lines import Shown, hang_lines
from screens.text_state import line_text
from tests.unit.diagnosis_kit import NOW, R, gathered, steps


def reading(at: float, *devices: dict[str, int | None]) -> NodeReading:
    efa = tuple(EfaDevice(f"rdmap{number}", counters=counters) for number, counters in enumerate(devices))
    return NodeReading(at, 1, efa=efa, efa_at=at)


def timeouts(count: int) -> dict[str, int | None]:
    return {"retrans_timeout_events": count, "tx_pkts": 1_000 * count, "rx_drops": None}


def test_what_grew_since_the_job_began_over_all_devices() -> None:
    changes = EfaChanges()
    changes.add("p5-1", reading(100.0, timeouts(5), timeouts(0)))
    changes.add("p5-1", reading(160.0, timeouts(7), timeouts(0)))
    changes.add("p5-1", reading(300.0, timeouts(9), timeouts(1)))
    grown = changes.since("p5-1", 200.0)
    assert grown is not None
    assert (grown.since, grown.grown) == (200.0, {"retrans_timeout_events": 3})


def test_of_a_job_that_began_before_anybody_watched_only_what_was_seen_is_told() -> None:
    changes = EfaChanges()
    changes.add("p5-1", reading(100.0, timeouts(5)))
    changes.add("p5-1", reading(160.0, timeouts(9)))
    grown = changes.since("p5-1", 0.0)
    assert grown is not None
    assert (grown.since, grown.grown) == (100.0, {"retrans_timeout_events": 4})
    assert changes.since("p5-2", 0.0) is None


def test_a_card_that_was_reset_begins_anew_and_a_node_can_be_forgotten() -> None:
    changes = EfaChanges()
    changes.add("p5-1", reading(100.0, timeouts(500)))
    changes.add("p5-1", reading(160.0, timeouts(2)))
    changes.add("p5-1", reading(200.0, timeouts(3)))
    grown = changes.since("p5-1", 0.0)
    assert grown is not None
    assert (grown.since, grown.grown) == (160.0, {"retrans_timeout_events": 1})
    changes.forget("p5-1")
    assert changes.since("p5-1", 0.0) is None


def test_years_of_changes_stay_few_and_keep_the_first() -> None:
    changes = EfaChanges()
    for number in range(500):
        changes.add("p5-1", reading(float(number), timeouts(number)))
    grown = changes.since("p5-1", -1.0)
    assert grown is not None
    assert grown.grown == {"retrans_timeout_events": 499}
    assert len(changes._nodes["p5-1"]) <= 64


EFA = (
    GatheredEfa("p5-1", NOW - 600),
    GatheredEfa("p5-2", NOW - 600, (("unresponsive_remote_events", 3), ("retrans_timeout_events", 41))),
)


def test_a_job_that_stands_still_while_a_card_counts_time_outs() -> None:
    found = diagnose(replace(gathered(log=steps(), age_s=900.0), efa=EFA))
    one = next(each for each in found.hypotheses if each.id == "efa-counters")
    assert one.sentence == "EFA on p5-2: 3 unresponsive remotes, 41 retransmission time-outs within 10m"
    assert (one.nodes, one.confidence) == (("p5-2",), "possible")
    assert one.speaks_against == ("1 node of the job counted none",)
    assert diagnosis_json(found)["evidence"]["efa"][1]["grown"]["retrans_timeout_events"] == 41
    text = "\n".join(line_text(line) for line in hang_lines(DiagnosisLook("77", found), Shown()))
    assert "  EFA       p5-2: 3 unresponsive remotes, 41 retransmission time-outs within 10m" in text


def test_a_job_that_goes_on_is_not_accused_by_some_time_outs() -> None:
    working = gathered(default=R(moves=True), log=steps(), age_s=1.0, grown=True)
    found = diagnose(replace(working, efa=EFA))
    assert found.verdict.state == "not hung"
    assert not [each for each in found.hypotheses if each.id == "efa-counters"]


def test_cards_that_count_only_what_is_harmless_say_nothing() -> None:
    calm = (GatheredEfa("p5-1", NOW - 600, (("rx_drops", 2),)),)
    found = diagnose(replace(gathered(log=steps(), age_s=900.0), efa=calm))
    assert not [each for each in found.hypotheses if each.id == "efa-counters"]


def test_a_bundle_keeps_them_and_an_older_one_is_still_read() -> None:
    whole = replace(gathered(), efa=EFA)
    told = json.loads(json.dumps(gathered_json(whole)))
    assert gathered_from(told).efa == EFA
    del told["efa"]
    assert gathered_from(told).efa == ()
