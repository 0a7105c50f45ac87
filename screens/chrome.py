"""The lines around the panes: header, sources with their ages, the worst trouble, and the keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from cockpit.clock import Clock
from cockpit.cluster import Cluster
from cockpit.models import Freshness, Health, Problem
from cockpit.sources.aws import AWS
from cockpit.store import SourceState
from cockpit.words import clock_time, plural, span
from screens.content import styled
from screens.grid_paint import fit
from screens.key_table import KEYS, Key
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
    names (they are only counted then), the ages of the others, and at last their words: the sign and the name stay.
    """
    for shorter in range(_LEVELS):
        pieces = [_source_piece(state, steady, app, shorter) for state in states]
        if shorter >= _COUNTED:
            pieces = _gathered(pieces, signs(app).states[Health.OK])
        if not width or sum(cell_len(text) for text, _ in pieces) <= width:
            break
    return list(pieces)


_LEVELS = 6
_COUNTED, _NO_AGES, _NAMES = 3, 4, 5  # from which level on


def _source_piece(state: SourceState[Any], steady: float, app: object, shorter: int) -> tuple[str, str]:
    freshness = state.freshness(steady)
    health = _FRESHNESS_HEALTH[freshness]
    live = freshness is Freshness.LIVE and state.error is None
    words = [state.name, "" if freshness is Freshness.LIVE else freshness.value, span(state.age_s(steady))]
    if freshness is Freshness.NEVER or (live and shorter >= 2) or shorter >= _NO_AGES:
        words.pop()
    if state.error is not None:
        health = Health.CRITICAL if health in (Health.CRITICAL, Health.UNKNOWN) else Health.WARN
        words = [*(words[:1] if shorter >= _NO_AGES else words), "failing"]
    if shorter >= _NAMES:
        words = words[:1]
    if state.note and not shorter:
        words.append(f"({state.note})")
    return f" {signs(app).states[health]} {' '.join(word for word in words if word)} ", state_token(health)


def _gathered(pieces: Sequence[tuple[str, str]], sign: str) -> list[tuple[str, str]]:
    """Those that deviate first, and how many are well."""
    odd = [piece for piece in pieces if not piece[0].startswith(f" {sign} ")]
    well = len(pieces) - len(odd)
    return [*odd, *([(f" {sign} {well} live ", state_token(Health.OK))] if well else [])]


def trouble_pieces(problems: Sequence[Problem], now: float, app: object, width: int) -> list[Piece]:
    """The worst problem in one line, and how many more there are; nothing at all when all is well.

    On a narrow screen what to do gives way first, then the end of the title; how many there are is always seen.
    """
    if not problems:
        return []
    worst = problems[0]
    age = f" · {span(now - worst.since)}" if worst.since else ""
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


def key_pieces(width: int, *scopes: str, keymap: Keymap = DEFAULT) -> list[Piece]:
    """The footer: the keys that matter in these scopes, as many as fit; help and quit always do."""
    told = [key for key in KEYS if not set(scopes).isdisjoint(key.footer)]
    while sum(map(cell_len, _texts(told, keymap))) > width:
        may_go = [place for place, key in enumerate(told) if key.id not in _KEPT_KEYS]
        if not may_go:
            break
        del told[max(may_go, key=lambda place: (told[place].drop, place))]
    shown = _texts(told, keymap)
    return [piece for key, title in zip(shown[::2], shown[1::2], strict=True) for piece in ((key, "accent"), title)]


def _texts(keys: Sequence[Key], keymap: Keymap) -> list[str]:
    """For each key what to press and what it is called."""
    return [text for key in keys for text in (f" {keymap.shown(key, most=1)} ", key.title)]


_KEPT_KEYS = ("app.help", "app.quit")  # what must never leave the line
