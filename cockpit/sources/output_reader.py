"""The thread that follows a job's output for one viewer: it waits for machines so that nobody else has to."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.formats.log_buffer import Held
from cockpit.formats.output_paths import JobOutputs, OutputFile
from cockpit.models import FaultError, FaultKind
from cockpit.sources.base import unexpected
from cockpit.sources.output_file import FollowedFile, Where
from cockpit.words import size

SEARCH_S = 60.0  # how long a whole file is searched for its first error
TELL_EVERY_S = 0.1
_RETRY_S = (2.0, 5.0, 15.0, 60.0)
# Each read on a hung file system leaves a process there that nothing can end, so these come rarely.
_HUNG_RETRY_S = (30.0, 120.0, 300.0)
_PACE_S = ((60.0, 1.0), (600.0, 2.0))  # grown within so many seconds: read every so many
_SLOW_S = 5.0
_ASK_EVERY_S = 15.0  # how often Slurm is asked again while there is no file


@dataclass(frozen=True, slots=True)
class OutputReading:
    """What a viewer shows. Empty words mean that there is nothing to say.

    `found` is the number of the line that was asked for last, `turn` counts the answers, so that the same line
    may be found twice. `grown_at` is on the steady clock.
    """

    generation: int = 0
    held: Held = Held()  # noqa: RUF009 - frozen
    file: OutputFile | None = None
    path: str = ""
    where: str = ""
    node: str = ""
    others: bool = False  # there is another stream to switch to
    size: int | None = None
    behind: int = 0  # bytes of the file that follow what is held
    grown_at: float | None = None
    following: bool = True
    gone: bool = False
    trouble: str = ""  # what keeps us from reading just now
    waiting: str = ""  # why there is nothing to see yet
    note: str = ""  # how the last search went, or goes
    found: int | None = None
    turn: int = 0


class OutputReader:
    """Start it for one job; `changed` is called on its thread, at most ten times a second. close() ends it."""

    def __init__(
        self,
        outputs: Callable[[], JobOutputs],
        places: Callable[[JobOutputs], Sequence[Where]],
        changed: Callable[[], object],
        *,
        stream: str = "stdout",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._ask, self._places_of, self._changed, self._clock = outputs, places, changed, clock
        self._stream = stream
        self._outputs: JobOutputs | None = None
        self._places: Sequence[Where] = ()
        self._file: FollowedFile | None = None
        self._wishes: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._reading = OutputReading(waiting="asking Slurm where it goes …")
        self._changes: dict[str, Any] = {}
        self._failures = 0
        self._asked_at = self._told_at = self._again_at = 0.0  # steady clock

    def start(self) -> None:
        """Begin, on a daemon thread."""
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def close(self) -> None:
        """End soon; waits for nothing. Nothing is left running on any machine."""
        self._closed.set()
        self._wishes.put(None)

    def look(self) -> OutputReading:
        """What is known by now; from any thread."""
        return self._reading

    # What a viewer may wish; each returns at once.

    def earlier(self) -> None:
        """A piece more before what is held."""
        self._wishes.put(self._earlier)

    def later(self) -> None:
        """A piece more behind what is held, whether anybody follows or not."""
        self._wishes.put(self._later)

    def to_start(self) -> None:
        """The beginning of the file."""
        self._wishes.put(self._to_start)

    def to_end(self) -> None:
        """The end of the file, and follow it."""
        self._wishes.put(self._to_end)

    def pause(self) -> None:
        """Follow no longer: what is held stays, though the file may grow."""
        self._wishes.put(self._pause)

    def first_error(self, after: int | None = None) -> None:
        """Find the first error in all of the file, or the first one behind a line."""
        self._wishes.put(lambda: self._first_error(after))

    def other_stream(self) -> None:
        """The job's other file."""
        self._wishes.put(self._other_stream)

    def read_now(self) -> None:
        """Read on now, whatever has failed before."""
        self._wishes.put(self._read_now)

    # The thread.

    def _run(self) -> None:
        while not self._closed.is_set():
            # After a failure no key makes it come back sooner: each read on a hung file system leaves a process there.
            wait_s = self._again_at - self._clock.steady()
            if wait_s <= 0:
                wait_s = self._tried(self._read_on)
            self._tell()
            self._fulfil(wait_s)

    def _fulfil(self, wait_s: float) -> None:
        """Wait for a wish that long, and fulfil all there are by then."""
        with contextlib.suppress(queue.Empty):
            wish = self._wishes.get(timeout=wait_s)
            while wish is not None:
                self._tried(wish)
                wish = self._wishes.get_nowait()

    def _tried(self, act: Callable[[], float | None]) -> float:
        """Do it; what goes wrong is told. Returns how long to wait before reading on."""
        try:
            wait_s = act()
        except FaultError as error:
            fault = error.fault
        except Exception as error:  # told where it was asked for, whatever it is
            fault = unexpected("reading the output", error)
        else:
            if act == self._read_on:
                self._failures = 0
                self._note(trouble="")
            return self._pace_s() if wait_s is None else wait_s
        waits = _HUNG_RETRY_S if fault.kind is FaultKind.TIMEOUT else _RETRY_S
        wait_s = waits[min(self._failures, len(waits) - 1)]
        self._failures += 1
        self._again_at = self._clock.steady() + wait_s
        self._note(trouble=fault.line())
        return wait_s

    def _pace_s(self) -> float:
        file = self._file
        if file is None or not file.found:
            return 2.0
        idle_s = self._clock.steady() - (file.grown_at or 0.0)
        return next((every_s for within_s, every_s in _PACE_S if idle_s < within_s), _SLOW_S)

    def _read_on(self) -> float | None:
        file = self._file
        if file is None or not file.found:
            return self._look_for_it()
        return 0.0 if file.read_on() else None

    def _look_for_it(self) -> float | None:
        stale = self._clock.steady() - self._asked_at >= _ASK_EVERY_S
        if self._outputs is None or (stale and not (self._file and self._file.found)):
            self._outputs, self._file = self._ask(), None
            self._asked_at = self._clock.steady()
        file = self._file or self._choose(self._outputs)
        if file is None:
            self._note(waiting=self._outputs.why)
            return None
        if file.open():
            self._note(waiting="")
            return 0.0
        looked = "not there: looked on " + " and ".join(place.name for place in self._places)
        not_begun = "the job has not started: Slurm makes the file when it does"
        self._note(waiting=not_begun if self._outputs.pending else looked)
        return None

    def _choose(self, outputs: JobOutputs) -> FollowedFile | None:
        """The file of the wanted stream, not opened yet; None when there is none."""
        files = outputs.files
        if files:
            wanted = next((file for file in files if file.stream == self._stream), files[0])
            self._places = self._places_of(outputs)
            self._file = FollowedFile(wanted, self._places, self._clock)
            self._file.generation = self._reading.generation + 1
            self._note(waiting="looking for the file …", others=len(files) > 1)
        return self._file

    def _earlier(self) -> None:
        if self._file is not None:
            self._file.earlier()

    def _later(self) -> None:
        if self._file is not None and self._file.found:
            self._file.read_on(anyway=True)

    def _to_start(self) -> None:
        if self._file is not None:
            self._file.to_start()

    def _to_end(self) -> None:
        if self._file is not None:
            self._file.to_end()

    def _pause(self) -> None:
        if self._file is not None:
            self._file.following = False

    def _read_now(self) -> None:
        self._failures, self._again_at = 0, 0.0

    def _other_stream(self) -> None:
        files = self._outputs.files if self._outputs is not None else ()
        if len(files) > 1:
            now = self._file.file.stream if self._file is not None else ""
            self._stream = next(file.stream for file in files if file.stream != now)
            self._file = None
            self._choose(self._outputs or JobOutputs())

    def _first_error(self, after: int | None) -> None:
        file = self._file
        if file is None or not file.found:
            return
        until, searched = self._clock.steady() + SEARCH_S, 0
        stopped = False

        def tell(at: int) -> bool:
            nonlocal searched, stopped
            searched = at
            self._note(note=f"searching, {size(at)} of {size(file.size)} …")
            self._tell()
            stopped = self._closed.is_set() or not self._wishes.empty() or self._clock.steady() > until
            return not stopped

        found, note = file.find_error(after, tell), ""
        if found is None and stopped:
            note = f"no known error up to {size(searched)} of {size(file.size)}; not searched further"
        elif found is None and after is not None:
            note = "no known error behind this line"
        elif found is None:
            found = file.find_effect()
            note = "no first error; this may follow from something else" if found is not None else ""
            note = note or f"no known error in all {size(file.size)}"
        if found is not None:
            file.following = False
        self._note(note=note, found=found, turn=self._reading.turn + 1)

    def _note(self, **changes: object) -> None:
        """Have it told with what is held then: the two must fit together."""
        self._changes |= changes

    def _tell(self) -> None:
        file = self._file
        if file is not None:
            self._note(
                generation=file.generation,
                held=file.held(),
                file=file.file,
                path=file.path,
                where=file.where,
                node=file.node,
                size=file.size if file.found else None,
                behind=file.behind if file.found else 0,
                grown_at=file.grown_at,
                following=file.following,
                gone=file.gone,
            )
        self._reading = replace(self._reading, **self._changes)
        self._changes.clear()
        if self._closed.is_set():
            return
        wait_s = self._told_at + TELL_EVERY_S - self._clock.steady()
        if 0 < wait_s <= TELL_EVERY_S:
            self._closed.wait(wait_s)
        self._told_at = self._clock.steady()
        self._changed()
