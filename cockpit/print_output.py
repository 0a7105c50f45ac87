"""`cockpit output`: the end of what a job writes, on standard output, and what comes after it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from cockpit.cluster import Cluster
from cockpit.formats.log_buffer import MOST_BYTES, LogLine
from cockpit.formats.output_paths import JobOutputs
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.outputs import find_outputs, output_places
from cockpit.sources.output_file import FollowedFile
from cockpit.sources.remote_file import PIECE
from cockpit.words import size

FINE, WRONG = 0, 1
# What these faults tell is about the file; the others mean that nobody could look.
_OF_THE_FILE = (FaultKind.DENIED, FaultKind.MISSING, FaultKind.FAILED)
_BYTES_A_LINE = 256
_LOOK_EVERY_S = 1.0


def print_output(cluster: Cluster, job: str, lines: int, *, stderr: bool = False, follow: bool = False) -> int:
    """Print the last lines of a job's output; returns the exit code, 1 when there is none to be read.

    With `follow` it goes on until it is interrupted. Raises ConfigError for what is no job, and FaultError when a
    machine cannot be asked.
    """
    try:
        file = _opened(cluster, find_outputs(cluster, job), lines, "stderr" if stderr else "stdout")
        held = file.held()
        ended = held.lines[: len(held.lines) - (held.partial and follow)]
        if held.start > 0 and len(ended) < lines:
            print(f"cockpit: {size(held.start)} before these lines are not shown", file=sys.stderr)
        _print(ended[max(0, len(ended) - lines) :])
        known = (file.generation, held.first + len(ended))
        while follow:
            known = _go_on(file, known)
    except FaultError as error:
        if error.fault.kind not in _OF_THE_FILE:
            raise
        print(f"cockpit: {error.fault.line()}", file=sys.stderr)
        return WRONG
    return FINE


def _opened(cluster: Cluster, outputs: JobOutputs, lines: int, stream: str) -> FollowedFile:
    if not outputs.files:
        raise FaultError(Fault(FaultKind.MISSING, "no output", outputs.why))
    wanted = next((file for file in outputs.files if file.stream == stream), outputs.files[0])
    places = output_places(cluster, outputs)
    file = FollowedFile(wanted, places, cluster.clock)
    if not file.open(max(PIECE, min(MOST_BYTES, lines * _BYTES_A_LINE))):
        why = "not there: looked on " + " and ".join(place.name for place in places)
        if outputs.pending:
            why = "the job has not started: Slurm makes the file when it does"
        raise FaultError(Fault(FaultKind.MISSING, wanted.path, why))
    return file


def _go_on(file: FollowedFile, known: tuple[int, int]) -> tuple[int, int]:
    """Print the lines that have ended since; a known place is a generation and the number of the next line."""
    more = file.read_on()
    held = file.held()
    number = known[1] if file.generation == known[0] else held.first
    ended = held.lines[: len(held.lines) - held.partial]
    _print(ended[max(0, number - held.first) :])
    if not more:
        time.sleep(_LOOK_EVERY_S)
    return file.generation, held.first + len(ended)


def _print(lines: Iterable[LogLine]) -> None:
    for line in lines:
        print(f"cockpit: {line.text}" if line.mark else line.text, file=sys.stderr if line.mark else sys.stdout)
    sys.stdout.flush()
