"""The lines around the panes: header, sources with their ages, the worst trouble, and the keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from cockpit.clock import Clock
from cockpit.cluster import Cluster
from cockpit.models import Freshness, Health, Problem
from cockpit.sources.aws import AWS
from cockpit.store import SourceState
from cockpit.words import clock_time, plural, slow_span, span
from screens.content import styled
from screens.grid_paint import fit
from screens.key_line import Key
from screens.key_table import KEYS
from screens.keymap import DEFAULT, Keymap
from screens.lines import Piece
from themes import STATE_TOKENS, state_token
from themes.glyphs import signs

_FRESHNESS_HEALTH = {
    Freshness.LIVE: Health.OK,
    Freshness.STALE: Health.WARN,
    Freshness.LOST: Health.CRITICAL,
    Freshness.NEVER: Health.UNKNOWN,
}


class Line(Widget):
    """One line that repaints only when its pieces change."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._pieces: tuple[Piece, ...] = ()

    def say(self, pieces: Iterable[Piece]) -> None:
        """Show these pieces: plain text, or (text, style token)."""
        pieces = tuple(pieces)
        if pieces != self._pieces:
            self._pieces = pieces
            self.refresh()

    def render(self) -> Content:
        return styled(self._pieces)


class ClockLine(Line):
    """The wall clock, as wide as it is, so that a tick repaints a dozen cells."""

    DEFAULT_CSS = "ClockLine { width: auto; dock: right; }"

    def __init__(self, clock: Clock, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id)
        self._clock = clock

    def on_mount(self) -> None:
        self.tick()
        self.set_interval(1, self.tick)

    def tick(self) -> None:
        """Show the time now; the zone stands here once and nowhere else."""
        words = f" {clock_time(self._clock.now())} "
        wider = len(words) != self._width
        self._width = len(words)
        self.say([(words, "header")])
        if wider:
            self.refresh(layout=True)

    _width = 0


def header_pieces(cluster: Cluster, width: int, changes: Iterable[Piece] = ()) -> list[Piece]:
    """Cluster, fleet, what must not be overlooked, then region · kind · what it holds · who, as far as there is room.

    `changes` tells what runs, and for how long the cluster is armed.
    """
    config, facts, view = cluster.config, cluster.slurm.known_facts(), cluster.view
    pieces: list[Piece] = [(f" {config.name} ", "production" if config.production else "bright")]
    if cluster.read_only:
        pieces.append(("READ-ONLY ", "armed"))
    pieces += [*fleet_pieces(cluster), *changes]
    if cluster.pace.paused:
        pieces.append(("PAUSED, p resumes ", "warning"))
    if view.site is not None and view.site.sees_all_jobs is False:
        pieces.append(("own jobs only ", "warning"))
    told = [config.region or "", cluster.kind.title if cluster.kind else ""]
    if view.nodes is not None:
        told.append(plural(len(view.nodes), "node"))
    if view.gpus.total is not None:
        told.append(f"GPUs {view.gpus.allocated}/{view.gpus.total}, {view.gpus.free} free")
    if view.queue is not None:
        told.append(f"{view.queue.by_state.get('R', 0)} running {view.queue.by_state.get('PD', 0)} pending")
    told.append(f"{facts.user}@{facts.hostname}" if facts else config.head)
    room = width - sum(cell_len(piece if isinstance(piece, str) else piece[0]) for piece in pieces)
    return [*pieces, (_joined([word for word in told if word], room), "header")]


# What a person has to know of a fleet: up, off on purpose, on its way, or fallen over.
_FLEET_HEALTH = {"RUNNING": Health.OK, "STOPPED": Health.DRAINED, "PROTECTED": Health.CRITICAL}


def fleet_pieces(cluster: Cluster) -> list[Piece]:
    """The fleet's state as ParallelCluster tells it; with a question mark when it could not be read just now."""
    reading = cluster.view.aws
    fleet = reading.fleet if reading is not None else None
    if fleet is None or fleet.data is None:
        return []
    if fleet.fault is not None or not cluster.trusts(AWS):
        return [(f"{fleet.data.status}? ", state_token(Health.UNKNOWN))]
    return [(f"{fleet.data.status} ", state_token(_FLEET_HEALTH.get(fleet.data.status, Health.WARN)))]


def _joined(words: list[str], room: int) -> str:
    """As many of the words as fit, from the first on."""
    while words and cell_len(" · ".join(words)) > room:
        words = words[:-1]
    return " · ".join(words)


def source_pieces(states: Sequence[SourceState[Any]], steady: float, app: object, width: int = 0) -> list[Piece]:
    """Each source with its sign, its age, and a word when it is not live or fails just now.

    What has no room in `width` (0: there is no limit) gives way in this order: notes, the ages of the live ones, their
    names (they are only counted then), the words of the others, which then stand together by their sign with the
    oldest age, and at last their names. How old what is not live is can always be read.
    """
    pieces: list[tuple[str, str]] = []
    for shorter in range(_LEVELS):
        pieces = _source_line([_Shown.of(state, steady) for state in states], app, shorter)
        if not width or sum(cell_len(text) for text, _ in pieces) <= width:
            break
    return list(pieces)


_LEVELS = 7
_COUNTED, _NO_WORDS, _TOGETHER, _NO_NAMES = 3, 4, 5, 6  # from which level on


@dataclass(frozen=True, slots=True)
class _Shown:
    """One source as the strip shows it."""

    name: str
    health: Health
    live: bool  # read just now, and nothing fails
    words: tuple[str, ...]  # stale, lost, failing
    age_s: float | None  # None: nothing was ever read
    note: str

    @classmethod
    def of(cls, state: SourceState[Any], steady: float) -> _Shown:
        freshness = state.freshness(steady)
        health, failing = _FRESHNESS_HEALTH[freshness], state.error is not None
        if failing:
            health = Health.CRITICAL if health in (Health.CRITICAL, Health.UNKNOWN) else Health.WARN
        late = freshness.value if freshness in (Freshness.STALE, Freshness.LOST) else ""
        age_s = None if freshness is Freshness.NEVER else state.age_s(steady)
        live = freshness is Freshness.LIVE and not failing
        return cls(state.name, health, live, (late, "failing" if failing else ""), age_s, state.note)

    def text(self, shorter: int) -> str:
        late, failing = self.words if shorter < _NO_WORDS else ("", "")
        age = "" if self.live and shorter >= 2 else _age(self.age_s)
        note = f"({self.note})" if self.note and not shorter else ""
        return " ".join(word for word in (self.name, late, age, failing, note) if word)


def _source_line(shown: Sequence[_Shown], app: object, shorter: int) -> list[tuple[str, str]]:
    def piece(health: Health, text: str) -> tuple[str, str]:
        return f" {signs(app).states[health]} {text} ", state_token(health)

    if shorter < _COUNTED:
        return [piece(each.health, each.text(shorter)) for each in shown]
    odd = [each for each in shown if not each.live]
    live = [piece(Health.OK, f"{len(shown) - len(odd)} live")] if len(odd) < len(shown) else []
    if shorter < _TOGETHER:
        return [*(piece(each.health, each.text(shorter)) for each in odd), *live]
    alike: dict[tuple[Health, bool], list[_Shown]] = defaultdict(list)
    for each in odd:
        alike[each.health, each.age_s is None].append(each)
    return [*(piece(health, _together(of, shorter)) for (health, _), of in alike.items()), *live]


def _together(alike: Sequence[_Shown], shorter: int) -> str:
    names = plural(len(alike), "source") if shorter >= _NO_NAMES else ", ".join(each.name for each in alike)
    return f"{names} {_age(max((each.age_s for each in alike if each.age_s is not None), default=None))}"


def _age(age_s: float | None) -> str:
    return Freshness.NEVER.value if age_s is None else span(age_s)


def trouble_pieces(problems: Sequence[Problem], now: float, app: object, width: int) -> list[Piece]:
    """The worst problem in one line, and how many more there are; nothing at all when all is well.

    On a narrow screen what to do gives way first, then the end of the title; how many there are is always seen.
    """
    if not problems:
        return []
    worst = problems[0]
    age = f" · {slow_span(now - worst.since)}" if worst.since else ""
    more = f"  +{len(problems) - 1} more" if len(problems) > 1 else ""
    seen, cut = signs(app), signs(app).cut
    subject = _short(f" {seen.states[worst.health]} {worst.subject}", width // 2, cut)
    room = width - cell_len(subject) - cell_len(more)
    told = _short(f": {worst.title}", max(0, room - len(age)), cut) + age
    left = room - cell_len(told)
    if left >= len(_SHOWS_ALL):
        more, left = more + _SHOWS_ALL, left - len(_SHOWS_ALL)
    step = _short(f"  → {worst.next_step}", left, cut) if worst.next_step and left > _STEP_LEAST else ""
    return [(subject, STATE_TOKENS[worst.health]), told, (more, "dim"), (step, "dim")]


_SHOWS_ALL = "  1 shows all"
_STEP_LEAST = 20  # cells; less of a next step says nothing


def _short(text: str, width: int, cut: str) -> str:
    """The text, cut where it has no room."""
    return text if cell_len(text) <= width else fit(text, width, cut)


def key_pieces(width: int, *scopes: str, keymap: Keymap = DEFAULT, lead: str = "") -> list[Piece]:
    """The footer: the keys that matter in these scopes, as many as fit; help and quit always do.

    Where not all fit, those of the panes are one: `1-9 panes`. `lead` is the id of the key that one is here for: it
    comes before those that are for the same places, and stays.
    """
    told = _led([key for key in KEYS if not set(scopes).isdisjoint(key.footer)], lead)
    named = [(key, *_texts(key, keymap)) for key in told]
    texts = _fitted(named, width, _LESS_THAN_PANES, lead)
    if _width(texts) > width:
        texts = _fitted(_gathered_panes(named), width, 0, lead)
    while _width(texts) > width and len(texts) > 1:  # a few columns of a terminal: no key is cut, quit stays
        del texts[0]
    return [piece for _, press, title in texts for piece in ((press, "accent"), title)]


def _fitted(texts: Sequence[_ShownKey], width: int, least: int, lead: str) -> list[_ShownKey]:
    """Without as many of the keys whose `drop` is at least that as have no room; too wide where that is not enough."""
    left = list(texts)
    while _width(left) > width:
        may_go = [
            place for place, (key, *_) in enumerate(left) if key.drop >= least and key.id not in (*_KEPT_KEYS, lead)
        ]
        if not may_go:
            break
        del left[max(may_go, key=lambda place: (left[place][0].drop, place))]
    return left


_ShownKey = tuple[Key, str, str]  # the key, what to press, what it is called
_LESS_THAN_PANES = 6  # keys with such a `drop` give way to the names of the panes


def _texts(key: Key, keymap: Keymap) -> tuple[str, str]:
    return f" {keymap.shown(key, most=1)} ", key.title


def _width(texts: Iterable[_ShownKey]) -> int:
    return sum(cell_len(press) + cell_len(title) for _, press, title in texts)


def _led(keys: list[Key], lead: str) -> list[Key]:
    """With `lead` before the keys that are shown in the same places as it."""
    one = next((key for key in keys if key.id == lead), None)
    if one is None:
        return keys
    first = next(place for place, key in enumerate(keys) if key.footer == one.footer)
    return [*keys[:first], one, *(key for key in keys[first:] if key is not one)]


def _gathered_panes(texts: Sequence[_ShownKey]) -> list[_ShownKey]:
    """The keys of the panes as the first one alone, which is the last to go."""
    panes = [each for each in texts if each[0].id.startswith(_PANE)]
    if len(panes) < 2:
        return list(texts)
    pressed = [press.strip() for _, press, _ in panes]
    digits = "".join(pressed)
    between = "-" if digits.isdecimal() and digits in "123456789" else "…"
    whole = (panes[0][0], f" {pressed[0]}{between}{pressed[-1]} ", "panes")
    return [whole, *(each for each in texts if not each[0].id.startswith(_PANE))]


_PANE = "pane."
_KEPT_KEYS = ("app.help", "app.quit")  # what must never leave the line
