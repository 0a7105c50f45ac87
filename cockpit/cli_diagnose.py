"""`cockpit explain`, `diagnose` and `bundle`. Imports at the top stay few: every command line loads this."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cockpit.config import Config, ConfigError

if TYPE_CHECKING:
    from cockpit.cluster import Cluster
    from cockpit.diagnosis.gathered import Gathered
    from cockpit.diagnosis.log_cause import Explanation

OK, WRONG = 0, 1
_TELL_EVERY_S = 0.5
_TRIGGER_S, _SHIP_S = 20.0, 10.0  # longer than a look that only reads
_BETWEEN_S = 5.0  # between the two looks of a bundle

Common = Callable[[argparse.ArgumentParser], None]
Load = Callable[[argparse.Namespace], tuple[Config, str]]
Subparsers = Any  # argparse keeps the class of its subparsers to itself


def add_diagnose(commands: Subparsers, common: Common, load: Load) -> None:
    """Put the commands below `cockpit`."""
    text = "what a log tells: the first cause, what only follows from it, what to do next"
    explain = commands.add_parser("explain", help="what a log tells of trouble", description=f"Print {text}.")
    explain.add_argument("file", metavar="FILE", help="a log of any size, - for standard input")
    explain.add_argument("--json", action="store_true", help="one JSON object instead of text")
    common(explain)
    explain.set_defaults(run=_explain)
    text = "which rank of a job hangs, on which node, why, and what to do; reads only, within ten seconds"
    diagnose = commands.add_parser("diagnose", help="why a job hangs", description=f"Print {text}.")
    diagnose.add_argument("job", nargs="?", metavar="JOB", help="123, 123_7 or 123+1")
    diagnose.add_argument("--from", dest="bundle", metavar="BUNDLE", help="read a bundle instead of a cluster")
    diagnose.add_argument(
        "--ras", action="store_true", help="also ask NCCL's RAS, twice; read-only, but has crashed jobs"
    )
    diagnose.add_argument("--ras-anyway", action="store_true", help="ask it even where the version is known to crash")
    _add_on_demand(diagnose)
    diagnose.add_argument("--json", action="store_true", help="one JSON object instead of text")
    common(diagnose)
    diagnose.set_defaults(run=lambda arguments: _diagnose(arguments, load))
    text = "all evidence about a job, gathered twice, in one tar.gz with a report; secrets are made unreadable"
    bundle = commands.add_parser("bundle", help="keep the evidence of a job", description=f"Write {text}.")
    bundle.add_argument("job", metavar="JOB", help="123, 123_7 or 123+1")
    bundle.add_argument("-o", "--output", metavar="FILE", help="where to (default: here, job-JOB-TIME.tar.gz)")
    bundle.add_argument("--redact-aws", action="store_true", help="also make ids and ARNs of AWS unreadable")
    _add_on_demand(bundle)
    bundle.add_argument("--json", action="store_true", help="one JSON object: the file and the diagnosis")
    common(bundle)
    bundle.set_defaults(run=lambda arguments: _bundle(arguments, load))


def _add_on_demand(command: argparse.ArgumentParser) -> None:
    """What does more than read."""
    command.add_argument(
        "--ship-py-spy",
        metavar="FILE",
        help="send this py-spy binary to nodes that have none; it is run there and removed again",
    )
    command.add_argument(
        "--trigger-recorder",
        action="store_true",
        help="have PyTorch's flight recorders write a dump through their pipes; takes up to half a minute",
    )


# -- explain


def _explain(arguments: argparse.Namespace) -> int:
    from cockpit.diagnosis.log_report import explanation_json, explanation_lines

    name = "standard input" if arguments.file == "-" else arguments.file
    explained = _explained(arguments.file)
    if arguments.json:
        json.dump(explanation_json(explained, name), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        from cockpit.text import printable

        print("\n".join(explanation_lines(explained, printable(name))))
    return OK if explained.cause is None else WRONG


def _explained(name: str) -> Explanation:
    """The file read once, from its beginning; raises ConfigError when it cannot be read."""
    from cockpit.diagnosis.log_cause import explain
    from cockpit.formats.log_digest import digest_of

    try:
        if name == "-":
            return explain(digest_of(_with_progress(sys.stdin.buffer, None)))
        with _opened(name) as file:
            return explain(digest_of(_with_progress(file, os.fstat(file.fileno()).st_size)))
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from error


def _opened(name: str) -> BinaryIO:
    mode = Path(name).stat().st_mode
    if stat.S_ISDIR(mode):
        raise ConfigError(f"{name}: is a directory; name a file in it")
    return Path(name).open("rb")


def _with_progress(file: BinaryIO, total: int | None) -> Iterator[bytes]:
    """The file's pieces; on a terminal a line tells how far it is."""
    from cockpit.formats.log_digest import chunks_of
    from cockpit.words import size

    told_at, done, shows = time.monotonic(), 0, sys.stderr.isatty()
    told = False
    for chunk in chunks_of(file):
        yield chunk
        done += len(chunk)
        if shows and time.monotonic() - told_at >= _TELL_EVERY_S:
            told_at, told = time.monotonic(), True
            print(f"\rreading, {size(done)}{f' of {size(total)}' if total else ''} … ", end="", file=sys.stderr)
    if told:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


# -- diagnose


def _diagnose(arguments: argparse.Namespace, load: Load) -> int:
    from cockpit.diagnosis.diagnose import diagnose
    from cockpit.diagnosis.hypothesis import HUNG, SLOW
    from cockpit.diagnosis.report import diagnosis_json, diagnosis_lines

    if (arguments.job is None) == (arguments.bundle is None):
        raise ConfigError("name a JOB, or a bundle with --from" if arguments.job is None else "either JOB or --from")
    diagnosis = diagnose(_gathered(arguments, load))
    if arguments.json:
        json.dump(diagnosis_json(diagnosis), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        print("\n".join(diagnosis_lines(diagnosis)))
    return WRONG if diagnosis.verdict.state in (HUNG, SLOW) else OK


def _gathered(arguments: argparse.Namespace, load: Load) -> Gathered:
    if arguments.bundle is not None:
        from cockpit.diagnosis.bundle import read_bundle

        return read_bundle(Path(arguments.bundle))
    with _cluster(arguments, load) as cluster:
        gathered = _look(cluster, arguments)
        if arguments.ras or arguments.ras_anyway:
            from cockpit.gather_ras import with_ras

            gathered = with_ras(cluster, gathered, consent=arguments.ras_anyway)
        return gathered


@contextmanager
def _cluster(arguments: argparse.Namespace, load: Load) -> Iterator[Cluster]:
    """The cluster with its nodes and queue read; raises FaultError when Slurm's nodes could not be."""
    from cockpit.cluster import Cluster
    from cockpit.models import FaultError

    config, name = load(arguments)
    cluster = Cluster(config.clusters[name], rules=config.rules, read_only=True)
    cluster.only_nodes = frozenset()  # GPUs are watched on the job's nodes alone, once they are known
    try:
        cluster.read_once()
        for state in cluster.store.states():
            if state.error is not None and state.name in ("nodes", "queue"):
                raise FaultError(state.error)
        yield cluster
    finally:
        cluster.stop()


def _look(cluster: Cluster, arguments: argparse.Namespace) -> Gathered:
    """Gather, while the GPUs of the job's nodes begin to stream; on a terminal the verdict fills in."""
    from cockpit.diagnosis.read import job_facts
    from cockpit.gather import DEADLINE_S, Gatherer
    from cockpit.outputs import find_job

    job, spy = arguments.job, _spy(arguments)
    longer_s = (_TRIGGER_S if arguments.trigger_recorder else 0.0) + (_SHIP_S if spy else 0.0)
    cluster.only_nodes = frozenset(job_facts(find_job(cluster, job)[0], job).nodes)
    threading.Thread(target=cluster.wait_for_gpus, args=(DEADLINE_S - 2,), name="gpus", daemon=True).start()
    told = _teller() if sys.stderr.isatty() else None
    gathered = Gatherer(
        cluster,
        job,
        deadline_s=DEADLINE_S + longer_s,
        changed=told,
        packed_spy=spy,
        trigger=arguments.trigger_recorder,
    ).run()
    if told is not None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return gathered


def _spy(arguments: argparse.Namespace) -> bytes:
    """The py-spy to send along, said before it goes; raises ConfigError."""
    if arguments.ship_py_spy is None:
        return b""
    from cockpit.probe.bundle import packed_tool
    from cockpit.text import printable
    from cockpit.words import size

    packed = packed_tool(Path(arguments.ship_py_spy))
    name = printable(arguments.ship_py_spy)
    print(f"cockpit: {name} ({size(len(packed))} packed) goes to nodes without py-spy and is removed", file=sys.stderr)
    return packed


def _teller() -> Callable[[Gathered], object]:
    def tell(gathered: Gathered) -> None:
        done = sum(1 for node in gathered.nodes if node.answered)
        print(f"\r{done} of {len(gathered.nodes)} nodes have answered … ", end="", file=sys.stderr, flush=True)

    return tell


# -- bundle


def _bundle(arguments: argparse.Namespace, load: Load) -> int:
    from cockpit.diagnosis.bundle import write_bundle
    from cockpit.diagnosis.report import diagnosis_json

    with _cluster(arguments, load) as cluster:
        looks = [_look(cluster, arguments)]
        time.sleep(_BETWEEN_S)
        looks.append(_look(cluster, arguments))
    path = Path(arguments.output or _bundle_name(arguments.job))
    try:
        diagnosis = write_bundle(path, looks, aws=arguments.redact_aws)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    if arguments.json:
        told = {"file": str(path), "size_bytes": path.stat().st_size, **diagnosis_json(diagnosis)}
        json.dump(told, sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        print(f"{path}: {diagnosis.verdict.sentence}")
    return OK


def _bundle_name(job: str) -> str:
    from cockpit.export import file_word

    return f"job-{file_word(job)}-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz"
