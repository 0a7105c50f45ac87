"""What keys act on: marked rows, the cursor, problems, GPUs; and what is offered of it."""

from __future__ import annotations

import pytest

from actions.spec import Scope
from cockpit.models import Health, Problem
from screens.change_offers import OFFERS, entries, offer_of, same_key
from screens.change_targets import aim, fits
from screens.change_verbs import seconds_of
from screens.keymap import Keymap
from screens.lines import Subject
from tests.still import still_cluster

CLUSTER = still_cluster()[0]
CLUSTER.read_once()
VIEW = CLUSTER.view
PROBLEM = Problem(
    "hang:48219", Health.CRITICAL, "48219", "hangs", "", about=(("job", "48219"), ("gpu", "n1/3"), ("node", "n2"))
)


def names(scope: Scope, *subjects: Subject) -> tuple[str, ...]:
    found = aim(VIEW, [PROBLEM], [subjects], scope)
    return found.targets.names if found.targets else ()


def test_each_kind_of_subject_stands_for_targets() -> None:
    assert names(Scope.NODE, Subject("node", "n1"), Subject("node", "n2")) == ("n1", "n2")
    assert names(Scope.NODE, Subject("gpu", "n1/0"), Subject("gpu", "n1/1")) == ("n1",)
    assert names(Scope.NODE, Subject("problem", PROBLEM.key)) == ("n1", "n2")
    assert names(Scope.JOB, Subject("problem", PROBLEM.key)) == ("48219",)
    assert names(Scope.JOB, Subject("job", "123_")) == ("123",)
    assert names(Scope.JOB, Subject("job", "123+1")) == ("123",)
    assert names(Scope.QUEUE, Subject("queue", "gpu")) == ("gpu",)
    node = next(node for node in VIEW.nodes or () if len(node.partitions) > 1)
    assert set(names(Scope.QUEUE, Subject("node", node.name))) == set(node.partitions)
    assert names(Scope.QUEUE, Subject("gpu", f"{node.name}/0")) == names(Scope.QUEUE, Subject("node", node.name))


def test_what_stands_for_more_than_was_pointed_at_says_so() -> None:
    assert (
        aim(VIEW, [], [[Subject("gpu", "n1/3")]], Scope.NODE).note
        == "gpu n1/3 stands for 1 node: it is done to whole nodes"
    )
    assert "the problem is about" in aim(VIEW, [PROBLEM], [[Subject("problem", PROBLEM.key)]], Scope.NODE).note
    assert aim(VIEW, [], [[Subject("node", "n1")]], Scope.NODE).note == ""


def test_why_there_are_no_targets() -> None:
    assert aim(VIEW, [], [], Scope.NODE).why == "there is nothing under the cursor"
    assert aim(VIEW, [], [[Subject("job", "1")]], Scope.NODE).why == "it is for a node, and this is job 1"
    assert aim(VIEW, [], [[Subject("problem", "gone")]], Scope.NODE).why == "this problem is about no node"
    assert "is no job id" in aim(VIEW, [], [[Subject("job", "[@click=x]")]], Scope.JOB).why


def test_the_link_under_the_cursor_comes_before_the_page_that_it_stands_on() -> None:
    page, link = Subject("node", "n1"), Subject("job", "7")
    assert aim(VIEW, [], [[link], [page]], Scope.NODE).targets == aim(VIEW, [], [[page]], Scope.NODE).targets
    assert aim(VIEW, [], [[link], [page]], Scope.JOB).targets == aim(VIEW, [], [[link]], Scope.JOB).targets
    assert set(fits([], [[link], [page]])) == {"node", "job", "queue"}


def test_every_action_is_offered_and_the_keys_are_those_of_the_table() -> None:
    told = {entry.command.argument: entry for entry in entries(Keymap(), lambda offer: "")}
    assert len(told) == len(OFFERS)
    assert (told["drain"].key, told["hold"].key, told["release"].key, told["quarantine"].key) == ("D", "L", "L", "")
    assert [offer.id for offer in same_key("hold")] == ["hold", "release"]
    assert [offer.id for offer in same_key("signal")][:1] == ["cancel"]
    remapped = {e.command.argument: e.key for e in entries(Keymap({"change.drain": "X"}), lambda offer: "")}
    assert remapped["drain"] == "X"
    assert offer_of("queue-down").options.state == "DOWN"
    assert offer_of("scale").first == "count"
    assert [field.name for field in offer_of("cancel").fields] == ["capture"]
    assert offer_of("release").fields == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900.0),
        ("1h", 3600.0),
        ("90s", 90.0),
        ("5", 300.0),
        ("x", None),
        ("", None),
        ("-5m", None),
        ("1e9h", None),
    ],
)
def test_how_long_to_arm(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
