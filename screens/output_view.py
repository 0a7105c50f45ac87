"""What a job writes, followed as it grows: one text view over a reader that waits for the machines."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer

from cockpit.cluster import Cluster
from cockpit.formats.scontrol_show import JobDetail
from cockpit.models import Job
from cockpit.outputs import open_output
from cockpit.sources.output_reader import OutputReader, OutputReading
from screens import outlet
from screens.keys import bindings
from screens.lines import Line
from screens.output_lines import Meaning, Titled, above, bare_text, below, meaning, output_line, output_title
from screens.text_messages import CopyText, PagerWanted
from screens.text_view import TextView
from themes.glyphs import signs

TICK_S = 1.0


class OutputChanged(Message):
    """The reader knows something new; any number of them waiting become one."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, OutputChanged)


class OutputView(TextView):
    """Opened on one job at a time by `open`; `close`, or leaving the screen, ends the reading.

    At the end it follows the file; scrolling up stays where one reads. At the top earlier text is loaded.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("output")

    def __init__(self, *, id: str | None = "output") -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._cluster: Cluster | None = None
        self._job: Job | None = None
        self._reader: OutputReader | None = None
        self._reading = OutputReading()
        self._lines_of_file: list[Line] = []  # those of `_reading`, as they are drawn
        self._meaning: Meaning | None = None
        self._asked_at: tuple[int, int, int] | None = None  # where more was asked for
        self._paused = False  # the reader was told that nobody follows
        self._ticking: Timer | None = None

    def open(self, cluster: Cluster, job: Job, detail: JobDetail | None = None) -> None:
        """Follow the output of a job. Without its `detail` Slurm is asked for it first."""
        self.close()
        self._cluster, self._job = cluster, job
        self._reading, self._lines_of_file, self._meaning, self._asked_at = OutputReading(), [], None, None
        self.clear_search()
        self.state.follow = True
        self._reader = open_output(cluster, job, detail, lambda: self.post_message(OutputChanged()))
        self._reader.start()
        self._show(self._reader.look())
        if self._ticking is None and self.is_attached:
            self._ticking = self.set_interval(TICK_S, self._tick)

    @property
    def text(self) -> str:
        """Everything that is loaded, as it stands in the file."""
        return "\n".join(line.text for line in self._reading.held.lines)

    @property
    def current_line(self) -> str:
        """The line under the cursor, as it stands in the file."""
        return bare_text(self.state.lines[self.state.cursor]) if self.state.count else ""

    def close(self) -> None:
        """Read no longer; what is shown stays."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    def read_now(self) -> None:
        """Read on now, whatever has failed before."""
        if self._reader is not None:
            self._reader.read_now()

    def on_hide(self) -> None:
        """Something else is in front, unless it has been opened again meanwhile."""
        if not self.display:
            self.close()

    def on_unmount(self) -> None:
        """The screen ends."""
        self.close()

    def on_output_changed(self) -> None:
        """Show what the reader has read."""
        if self._reader is not None:
            self._show(self._reader.look())

    def _tick(self) -> None:
        self.set_title(self._title_pieces())

    # What is shown.

    def _show(self, reading: OutputReading) -> None:
        before, self._reading = self._reading, reading
        new = reading.generation != before.generation
        offset = len(above(before.held))
        found = reading.turn != before.turn and reading.found is not None
        if new:
            self._meaning = None
            self.state.follow = reading.following
        self._paused = self._paused and reading.following
        self._lines_of_file = self._drawn(before, reading, new)
        if found:
            self._meaning = meaning(reading.held, reading.found or 0)
        self.empty = "\n".join(words for words in (reading.trouble, reading.waiting) if words)
        shift = len(above(reading.held)) + before.held.first - reading.held.first - offset
        self.show(self._all_lines(), title=self._title_pieces(), keep=not new, shift=0 if new else shift)
        if found and reading.found is not None:
            self.state.follow = False
            self.point_at(self._place_of(reading.found))

    def _drawn(self, before: OutputReading, reading: OutputReading, new: bool) -> list[Line]:
        """The lines of the file; only those that were not held before are made, and the last, which may have grown."""
        old, now = before.held, reading.held
        first = max(old.first, now.first)
        last = min(old.first + len(old.lines) - 1, now.first + len(now.lines))
        look = signs(self.app)
        if new or first >= last:
            return [output_line(line, look) for line in now.lines]
        kept = self._lines_of_file[first - old.first : last - old.first]
        ahead = [output_line(line, look) for line in now.lines[: first - now.first]]
        return [*ahead, *kept, *(output_line(line, look) for line in now.lines[last - now.first :])]

    def _all_lines(self) -> list[Line]:
        held, lines = self._reading.held, self._lines_of_file
        if self._meaning is not None:
            at = self._meaning.number - held.first + 1
            if 0 < at <= len(lines):
                lines = [*lines[:at], *self._meaning.lines, *lines[at:]]
        return [*above(held), *lines, *below(self._reading)]

    def _place_of(self, number: int) -> int:
        """The place of a line of the file, by its number, among all lines; right up to the meaning."""
        return len(above(self._reading.held)) + number - self._reading.held.first

    def _title_pieces(self) -> list[tuple[str, str]]:
        job, cluster = self._job, self._cluster
        if job is None or cluster is None:
            return []
        found = f"error: {self._meaning.title}" if self._meaning is not None else ""
        titled = Titled(job.label, job.state == "R", found, cluster.clock.steady())
        pieces = output_title(self._reading, titled, self.size.width, signs(self.app))
        return [(piece, "") if isinstance(piece, str) else (piece[0], piece[1]) for piece in pieces]

    # What keys do, where that is more than in other texts.

    def _announce(self) -> None:
        """See after every movement whether more of the file is wanted, and whether it is still followed."""
        reader, reading, state = self._reader, self._reading, self.state
        if reader is None or not state.count or state.follow:
            return
        if reading.following and not self._paused:
            self._paused = True
            reader.pause()
        asked = (reading.generation, reading.held.start, reading.held.end)
        if asked == self._asked_at:
            return
        if state.top == 0 and state.skip == 0 and reading.held.start > 0:
            self._asked_at = asked
            reader.earlier()
        elif state.at_end and reading.behind:
            self._asked_at = asked
            reader.later()

    def _follow_at_end(self) -> None:
        """Whoever comes to the very end follows again."""
        if self._reader is not None and self.state.at_end and not self.state.follow and not self._reading.behind:
            self.action_cursor_bottom()

    def action_cursor_down(self) -> None:
        """One line down."""
        super().action_cursor_down()
        self._follow_at_end()

    def action_half_page_down(self) -> None:
        """Half a page down."""
        super().action_half_page_down()
        self._follow_at_end()

    def action_page_down(self) -> None:
        """One page down."""
        super().action_page_down()
        self._follow_at_end()

    def action_cursor_top(self) -> None:
        """To the beginning of the file, also when that is not held."""
        self.state.follow = False
        if self._reader is not None and self._reading.held.start != 0:
            self._reader.to_start()
        else:
            super().action_cursor_top()

    def action_cursor_bottom(self) -> None:
        """To the end of the file, and follow it."""
        if self._reader is not None:
            self._reader.to_end()
        self._paused = False
        self.set_follow(True)

    def action_first_error(self) -> None:
        """To the first error in all of the file; once there, to the next one."""
        if self._reader is None:
            return
        known = self._meaning
        here = known is not None and self.state.cursor == self._place_of(known.number)
        self._reader.first_error(known.number if here and known is not None else None)

    def action_other_stream(self) -> None:
        """The job's other file."""
        if self._reader is None:
            return
        if self._reading.others:
            self._reader.other_stream()
        elif self._reading.file is not None:
            outlet.tell(self.app, "standard output and standard error go to this one file")

    def action_pager(self) -> None:
        """Ask for the file in the pager, in the place of the cockpit."""
        if self._reading.path and self._cluster is not None:
            self.post_message(PagerWanted(self._reading.node, self._reading.path))

    def action_copy_text(self) -> None:
        """Ask to copy the lines on screen: all of a log is too much for a clipboard."""
        lines = dict.fromkeys(line for line, _ in self.state.visible())
        self.post_message(CopyText("\n".join(bare_text(self.state.lines[line]) for line in lines)))
