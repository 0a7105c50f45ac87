"""`cockpit nccl read` and `history`; `run` and `sweep` are beside. Imports stay few: every command line loads this."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cockpit.config import Config, ConfigError, Rules, config_path

if TYPE_CHECKING:
    from cockpit.nccl.history import History
    from cockpit.nccl.models import NcclRun, Shape, Verdict

OK, WRONG = 0, 1
_CHUNK = 2**20
_MAX_LINE = 64 * 1024

Common = Callable[[argparse.ArgumentParser], None]
Load = Callable[[argparse.Namespace], tuple[Config, str]]
Subparsers = Any  # argparse keeps the class of its subparsers to itself


def add_nccl(commands: Subparsers, common: Common, load: Load) -> None:
    """Put `nccl` with its commands below `cockpit`."""
    nccl = commands.add_parser("nccl", help="NCCL tests: run one, find the bad node, read a result, list earlier ones")
    verbs = nccl.add_subparsers(title="commands", metavar="COMMAND", required=True)
    read = verbs.add_parser("read", help="read and judge the output of nccl-tests (text or -J file)")
    read.add_argument("file", metavar="FILE", help="file with the output, - for standard input")
    read.add_argument("--type", metavar="TYPE", default="", help="EC2 instance type, when the text does not tell it")
    read.add_argument("--nodes", metavar="N", type=_count, help="number of nodes, when the text does not tell it")
    read.add_argument("--ring", action="store_true", help="the run was made with NCCL_ALGO=Ring")
    read.add_argument("--save", action="store_true", help="keep it in the history of the cluster")
    read.set_defaults(run=lambda arguments: _read(arguments, load))
    history = verbs.add_parser("history", help="earlier results of this cluster")
    history.add_argument("--node", metavar="NAME", help="only runs on this node")
    history.add_argument("--collective", metavar="NAME", help="only this collective")
    history.add_argument("--limit", metavar="N", type=_count, default=50, help="at most so many, the newest (50)")
    history.set_defaults(run=lambda arguments: _history(arguments, load))
    from cockpit.cli_nccl_run import add_run

    add_run(verbs, common, load)
    for command in (read, history):
        common(command)
        command.add_argument("--json", action="store_true", help="one JSON object instead of text")


def _count(word: str) -> int:
    if not word.isdigit() or not 1 <= int(word[:9]) <= 100_000:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 100,000, not {word!r}")
    return int(word)


# -- read


def _read(arguments: argparse.Namespace, load: Load) -> int:
    from cockpit.nccl.models import Judgement
    from cockpit.nccl.report import reading_json, reading_lines, worst

    runs = _runs(arguments.file)
    history, cluster = _own_history(arguments, load)
    readings = [(run, _judge(run, arguments, history)) for run in runs]
    if arguments.save and history is not None:
        _save(history, readings, arguments.file)
    if arguments.json:
        content = reading_json(readings, arguments.file, time.time(), cluster)
        json.dump(content, sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        print("\n".join(reading_lines(readings, width)))
    return WRONG if worst(readings)[1].word is Judgement.FAIL else OK


def _runs(name: str) -> tuple[NcclRun, ...]:
    """Every run of a file; at least one, which may be empty. Raises ConfigError when it cannot be read."""
    from cockpit.nccl.models import NcclRun

    try:
        if name == "-":
            return _read_stream(sys.stdin.buffer) or (NcclRun(),)
        with Path(name).open("rb") as file:
            return _read_stream(file) or (NcclRun(),)
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from error


def _read_stream(file: BinaryIO) -> tuple[NcclRun, ...]:
    """Line by line, so that a file of any size needs little memory; a -J file as a whole."""
    from cockpit.formats.nccl_json import MAX_BYTES, looks_like_json, parse_json
    from cockpit.formats.nccl_tests import NcclReader
    from cockpit.hosts.lines import LineCutter

    first = file.read(_CHUNK)
    if looks_like_json(first):
        return (parse_json(first + file.read(MAX_BYTES + 1 - len(first))),)
    reader, cutter = NcclReader(), LineCutter(_MAX_LINE)
    for chunk in _chunks(first, file):
        for line in cutter.feed(chunk):
            reader.feed(line)
    reader.feed(cutter.rest())
    reader.close()
    return reader.runs()


def _chunks(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    chunk = first
    while chunk:
        yield chunk
        chunk = file.read(_CHUNK)


def _own_history(arguments: argparse.Namespace, load: Load) -> tuple[History | None, str | None]:
    """The history to compare with and to save to: only when a cluster is named or --save asks for it."""
    from cockpit.nccl.history import History
    from cockpit.nccl.place import history_path

    if not arguments.save and arguments.cluster is None:
        return None, None
    _, cluster = load(arguments)
    return History(history_path(cluster)), cluster


def _judge(run: NcclRun, arguments: argparse.Namespace, history: History | None) -> Verdict:
    from cockpit.formats.nccl_names import hints_from_name
    from cockpit.nccl.history import baseline
    from cockpit.nccl.shape import Known, shape_of
    from cockpit.nccl.verdict import judge, large_rows

    told = hints_from_name("" if arguments.file == "-" else arguments.file)
    name = Known(told.instance_type, told.nodes, told.collective, told.ring)
    shape: Shape = shape_of(run, Known(arguments.type, arguments.nodes, "", arguments.ring), name)
    rules, large = _rules(arguments), large_rows(run)
    own = None
    if history is not None and large:
        own = baseline(_loaded(history), shape, large[0].size_bytes, rules)
    return judge(run, shape, rules, own)


def _rules(arguments: argparse.Namespace) -> Rules:
    """The site's thresholds; the defaults where there is no config."""
    path = arguments.config or config_path()
    if arguments.config is None and not path.exists():
        return Rules()
    from cockpit.config_file import load_config

    return load_config(path).rules


def _save(history: History, readings: list[tuple[NcclRun, Verdict]], origin: str) -> None:
    from cockpit.nccl.history import history_record

    try:
        for run, verdict in readings:
            history.append(history_record(run, verdict, at=time.time(), kind="read", origin=Path(origin).name))
    except OSError as error:
        raise ConfigError(f"{history.path}: the result cannot be kept: {error.strerror or error}") from error


# -- history


def _loaded(history: History) -> tuple[Any, ...]:
    try:
        return history.load()
    except OSError as error:
        raise ConfigError(f"{history.path}: cannot be read: {error.strerror or error}") from error


def _history(arguments: argparse.Namespace, load: Load) -> int:
    from cockpit.nccl.history import History
    from cockpit.nccl.place import history_path
    from cockpit.nccl.report import history_json, history_lines

    _, cluster = load(arguments)
    history = History(history_path(cluster))
    runs = [
        run
        for run in _loaded(history)
        if (not arguments.node or arguments.node in run.nodes)
        and (not arguments.collective or arguments.collective == run.shape.collective)
    ][-arguments.limit :]
    if arguments.json:
        json.dump(history_json(runs, cluster, time.time(), history.skipped), sys.stdout, ensure_ascii=False, indent=1)
        print()
    elif runs:
        print("\n".join(history_lines(runs)))
    else:
        print(f"no NCCL test of {cluster} is kept yet")
    return OK
