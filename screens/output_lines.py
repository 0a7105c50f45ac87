"""A job's output as the lines and the title of a text view: pure functions. Imports no Textual."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from cockpit.catalog.log_patterns import CRITICAL, WARN
from cockpit.formats.log_buffer import Held, LogLine, named_exception
from cockpit.models import Health
from cockpit.sources.output_reader import OutputReading
from cockpit.words import size, span
from screens.lines import Line, Piece, fact
from themes.glyphs import Signs

QUIET_S = 300.0  # a running job that has written nothing for so long stands out
_GUTTER = "  "
_LOOKS = {CRITICAL: (Health.CRITICAL, "critical"), WARN: (Health.WARN, "warning")}


def output_line(line: LogLine, signs: Signs) -> Line:
    """One line of output behind two cells for a sign; what tells of trouble has the sign and colour of its state."""
    if line.mark:
        return ((signs.rule + " ", "accent"), (line.text, "accent"))
    if line.sign is None:
        return (_GUTTER, line.text)
    health, token = _LOOKS.get(line.sign.severity, (Health.UNKNOWN, "dim"))
    return ((f"{signs.states[health]} ", token), (line.text, token))


def bare_text(line: Line) -> str:
    """The same without the two cells, for copying."""
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in list(line)[1:])


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the line of that number means, and the lines that say so, which are shown below it."""

    number: int
    title: str
    lines: list[Line]


def meaning(held: Held, number: int) -> Meaning | None:
    """What a line means and what to do; None for one that is not held, or means nothing."""
    at = number - held.first
    sign = held.lines[at].sign if 0 <= at < len(held.lines) else None
    if sign is None:
        return None
    named = named_exception(held.lines, at)
    told = [fact("what", sign.title, "bright"), fact("means", sign.meaning, "accent")]
    told += [fact("it says", named.text)] if named is not None else []
    return Meaning(number, sign.title, [*told, fact("next", sign.next_step, "accent")])


def above(held: Held) -> list[Line]:
    """What to say over the first line that is held."""
    if held.start <= 0 or not held.lines:
        return []
    told = f"{size(held.start)} before this are not loaded: scroll up for more, g goes to the beginning"
    return [[(_GUTTER, ""), (told, "dim")]]


def below(reading: OutputReading) -> list[Line]:
    """What to say under the last line that is held."""
    if not reading.behind or reading.following or not reading.held.lines:
        return []
    told = f"{size(reading.behind)} behind this are not loaded: scroll down for more, G goes to the end"
    return [[(_GUTTER, ""), (told, "dim")]]


@dataclass(frozen=True, slots=True)
class Titled:
    """What a title says besides the reading: the job, whether it runs, what a search has found, the time now."""

    job: str
    running: bool
    found: str
    steady: float


def output_title(reading: OutputReading, titled: Titled, width: int, signs: Signs) -> list[Piece]:
    """Job and stream, trouble, whether it is followed, when it has grown, its size, and where it lies."""
    stream = f" {reading.file.stream}" if reading.file is not None and reading.others else ""
    pieces: list[Piece] = [(f"output {signs.right} {titled.job}{stream}", "bright")]
    for words, token in _states(reading, titled, signs):
        pieces += [(f" {signs.dot} ", "dim"), (words, token)]
    if reading.where and not reading.trouble:
        told = sum(cell_len(piece if isinstance(piece, str) else piece[0]) for piece in pieces)
        pieces += [(f" {signs.dot} ", "dim"), (_place(reading, width - told - 10, signs), "dim")]
    return pieces


def _states(reading: OutputReading, titled: Titled, signs: Signs) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    if reading.trouble:
        told.append((f"{signs.states[Health.WARN]} {reading.trouble}", "warning"))
    if reading.gone:
        told.append(("the file is gone", "warning"))
    if titled.found:
        told.append((titled.found, "critical"))
    if reading.note:
        told.append((reading.note, "accent"))
    if reading.size is None:
        return told
    told.append(("following", "") if reading.following else ("G follows", "dim"))
    if reading.grown_at is not None:
        age_s = max(0.0, titled.steady - reading.grown_at)
        quiet = titled.running and age_s >= QUIET_S
        told.append((f"grew {span(age_s)} ago", "warning" if quiet else ""))
    return [*told, (size(reading.size), "")]


def _place(reading: OutputReading, room: int, signs: Signs) -> str:
    """Machine and path; of a long one the end, which tells the files apart."""
    whole = f"{reading.where}:{reading.path}"
    if cell_len(whole) <= room:
        return whole
    keep = max(12, room - 1)
    while cell_len(whole) > keep:
        whole = whole[1:]
    return signs.cut + whole
