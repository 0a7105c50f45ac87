"""The thread that reads a job's output for one viewer: it follows, switches streams, tells trouble, and ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cockpit.formats.output_paths import JobOutputs, OutputFile
from cockpit.hosts.base import Completed
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.output_file import Where
from cockpit.sources.output_reader import OutputReader, OutputReading
from tests.unit.output_kit import ERROR, HungFile, eventually, numbered


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "slurm 48219 'quoted'.out"


class Watch:
    """A reader, and the means to wait for what it tells."""

    def __init__(self, outputs: Callable[[], JobOutputs], places: Sequence[Where] | None = None) -> None:
        self._told = threading.Condition()
        there = places or [Where("here", LocalHost)]
        self.reader = OutputReader(outputs, lambda _: there, self._changed)
        self.reader.start()

    def _changed(self) -> None:
        with self._told:
            self._told.notify_all()

    def until(self, true: Callable[[OutputReading], object]) -> OutputReading:
        with self._told:
            assert self._told.wait_for(lambda: true(self.reader.look()), 20), self.reader.look()
        return self.reader.look()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()


def outputs(*files: OutputFile, **changes: str) -> Callable[[], JobOutputs]:
    return lambda: JobOutputs(files, **{"state": "RUNNING", **changes})


def last(reading: OutputReading) -> str:
    return reading.held.lines[-1].text if reading.held.lines else ""


def test_a_reader_follows_and_switches_streams(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"out 1\n")
    (tmp_path / "err").write_bytes(b"err 1\n")
    both = outputs(OutputFile("stdout", str(path)), OutputFile("stderr", str(tmp_path / "err")))
    with Watch(both) as watch:
        watch.until(lambda reading: last(reading) == "out 1")
        with path.open("ab") as writer:
            writer.write(b"out 2\n")
        reading = watch.until(lambda reading: last(reading) == "out 2")
        assert reading.others
        assert reading.grown_at is not None
        watch.reader.other_stream()
        switched = watch.until(lambda reading: last(reading) == "err 1")
        assert switched.generation != reading.generation
        assert switched.path == str(tmp_path / "err")


def test_a_reader_says_why_there_is_nothing(path: Path) -> None:
    with Watch(outputs(why="it goes to /dev/null")) as watch:
        watch.until(lambda reading: reading.waiting == "it goes to /dev/null")
    with Watch(outputs(OutputFile("output", str(path)), state="PENDING")) as watch:
        watch.until(lambda reading: "has not started" in reading.waiting)
        path.write_bytes(b"now\n")
        watch.until(lambda reading: last(reading) == "now" and not reading.waiting)


def test_a_reader_tells_trouble_and_goes_on(path: Path) -> None:
    asked: list[int] = []

    def ask() -> JobOutputs:
        asked.append(1)
        if len(asked) == 1:
            raise FaultError(Fault(FaultKind.UNREACHABLE, "head", "connection refused"))
        return JobOutputs((OutputFile("output", str(path)),))

    path.write_bytes(b"here\n")
    with Watch(ask) as watch:
        watch.until(lambda reading: "connection refused" in reading.trouble)
        watch.reader.read_now()
        watch.until(lambda reading: last(reading) == "here" and not reading.trouble)


def test_no_key_makes_a_hung_file_system_be_read_sooner(path: Path) -> None:
    path.write_bytes(numbered(3))
    reads: list[int] = []

    class Hangs(HungFile):
        def run(self, argv: Sequence[str], **options: Any) -> Completed:
            if argv[0] == "sh":
                reads.append(1)
            return super().run(argv, **options)

    host = Hangs()
    with Watch(outputs(OutputFile("output", str(path))), [Where("here", lambda: host)]) as watch:
        watch.until(lambda reading: "its file system hangs" in reading.trouble)
        for _ in range(3):
            watch.reader.pause()
            watch.reader.to_start()
        watch.reader.first_error()
        eventually(watch.reader._wishes.empty)
        assert len(reads) == 1
        watch.reader.read_now()
        eventually(lambda: len(reads) == 2)


def test_a_reader_finds_the_first_error_and_says_when_there_is_none(path: Path) -> None:
    path.write_bytes(numbered(10) + ERROR)
    with Watch(outputs(OutputFile("output", str(path)))) as watch:
        watch.until(last)
        watch.reader.first_error()
        reading = watch.until(lambda reading: reading.turn == 1)
        assert reading.found == 11
        watch.reader.first_error(13)
        assert "behind this line" in watch.until(lambda reading: reading.turn == 2).note
    path.write_bytes(numbered(10))
    with Watch(outputs(OutputFile("output", str(path)))) as watch:
        watch.until(last)
        watch.reader.first_error()
        assert "no known error" in watch.until(lambda reading: reading.turn == 1).note


def test_a_program_error_in_the_reader_is_told_and_does_not_end_it(path: Path) -> None:
    def ask() -> JobOutputs:
        raise ZeroDivisionError

    with Watch(ask) as watch:
        watch.until(lambda reading: "ZeroDivisionError" in reading.trouble)


def test_a_closed_reader_tells_nothing_more(path: Path) -> None:
    path.write_bytes(b"x\n")
    with Watch(outputs(OutputFile("output", str(path)))) as watch:
        watch.until(last)
    before = threading.active_count()
    eventually(lambda: not any(thread.name == "output" for thread in threading.enumerate()), 5)
    assert threading.active_count() <= before
