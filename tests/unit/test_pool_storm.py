"""The head's budget, counted where SSH meets the network: 256 nodes, half of them hung, and a head that goes away."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from cockpit.hosts.base import NotAskedError
from cockpit.hosts.budget import CONNECTIONS_PER_S, LOGINS_MAX, SESSIONS_MAX
from cockpit.models import FaultError
from tests.unit.pool_world import World

NODES, HUNG = 256, range(0, 256, 2)


@pytest.fixture(autouse=True)
def same_every_time() -> None:
    random.seed(7)


def healthy(world: World) -> set[str]:
    return set(world.names) - world.hung


WorldOf = Callable[..., World]


@pytest.fixture
def world_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorldOf]:
    """Makes a world; its threads end with the test."""
    made: list[World] = []

    def make(**how: Any) -> World:
        made.append(World(monkeypatch, **how))
        return made[-1]

    before = threading.active_count()
    yield make
    for world in made:
        world.sim.close()
        assert not world.sim.errors
    for _ in range(100):
        if threading.active_count() <= before:
            return
        time.sleep(0.01)  # the last lines of each
    raise AssertionError("threads stay behind")


def test_a_storm_stays_within_the_budget_of_the_head(world_of: WorldOf) -> None:
    world = world_of(nodes=NODES, hung=HUNG)
    world.sim.run(50)
    assert world.told() == healthy(world)  # each had its turn, though every other one hangs
    assert min(world.tries().values()) >= 1
    world.take_head_away()
    world.sim.run(60)
    assert world.connected() == set()
    world.up, back_at = True, world.sim.now
    world.sim.run(75)
    assert world.told(back_at) == healthy(world)
    assert world.worst_second() <= CONNECTIONS_PER_S
    assert world.sessions_most <= SESSIONS_MAX
    assert len(world.logins) <= 12
    tries = world.tries()
    assert {tries[name] for name in healthy(world)} == {2}
    # Those that hang are tried less and less often, and none of them more often than the others.
    hung = [tries[name] for name in world.hung]
    assert max(hung) <= 6
    assert max(hung) - min(hung) <= 2


def test_what_is_on_the_screen_comes_first_also_after_an_outage(world_of: WorldOf) -> None:
    world = world_of(nodes=96, hung=range(0, 64, 2))
    seen = {f"n{number}" for number in range(70, 90)}
    world.streams.prefer(seen)
    world.sim.run(30)
    assert set(first(world, 20)) == seen
    world.take_head_away()
    world.sim.run(60)
    world.up, back_at = True, world.sim.now
    world.sim.run(60)
    after = [name for at, name in world.opened if at >= back_at]
    assert seen <= set(after[:24])


def first(world: World, count: int) -> list[str]:
    return [name for _, name in world.opened[:count]]


def test_with_more_nodes_than_may_be_watched_those_on_the_screen_are(world_of: WorldOf) -> None:
    world = world_of(nodes=64, most=16)
    world.sim.run(30)
    assert world.told() == {f"n{number}" for number in range(16)}
    seen, again = {"n40", "n41", "n42", "n43"}, {"n50", "n51"}
    world.streams.prefer(seen, held=["n0"])
    world.sim.run(10)
    assert world.told() >= seen | {"n0"}
    assert len(world.connected()) <= 16
    world.streams.prefer(again)
    world.sim.run(40)
    assert world.told() >= again | seen  # those that were on the screen the longest ago, or never, have gone
    assert world.worst_second() <= CONNECTIONS_PER_S


def test_a_head_that_lets_us_in_and_throws_us_out_is_asked_less_and_less(world_of: WorldOf) -> None:
    world = world_of(nodes=64)
    world.throws_out_after_s = 0.3
    world.sim.run(180)
    assert len(world.logins) <= 24
    world.throws_out_after_s = None
    world.sim.run(120)
    assert world.told() == set(world.names)


def test_a_head_that_never_answers_is_waited_for_by_one(world_of: WorldOf) -> None:
    world = world_of(nodes=96)
    world.up = world.refuses = False
    world.sim.run(60)
    assert world.opened == []
    assert len(world.logins) <= 8
    world.up = True
    world.sim.run(120)
    assert world.told() == set(world.names)
    assert world.worst_second() <= CONNECTIONS_PER_S


def test_who_is_not_connected_to_in_time_is_told_from_who_does_not_answer(world_of: WorldOf) -> None:
    world = world_of(nodes=0, hung=range(200))
    errors: dict[str, FaultError] = {}
    began = world.sim.now

    def ask(name: str) -> None:
        try:
            world.pool.node(name, name).run(["true"], deadline_s=9)
        except FaultError as error:
            errors[name] = error

    for number in range(200):
        world.sim.start(partial(ask, f"n{number}"))
    world.sim.run(10)
    got_to = {name for at, name in world.opened if at < began + 9}
    assert 0 < len(got_to) < 200
    assert {name for name, error in errors.items() if not isinstance(error, NotAskedError)} == got_to
    assert len(errors) == 200


def test_sessions_of_the_head_are_never_more_than_it_gives(world_of: WorldOf) -> None:
    world = world_of(nodes=0)
    done, late = [], []

    def ask() -> None:
        try:
            done.append(world.head.run(["sacct"], deadline_s=60).rc)
        except FaultError as error:
            late.append(error.fault)

    for _ in range(100):
        world.sim.start(ask)
    world.sim.run(90)
    assert done == [0] * 100
    assert late == []
    assert world.sessions_most == SESSIONS_MAX
    assert len([each for each in world.transports if each.up]) <= LOGINS_MAX
