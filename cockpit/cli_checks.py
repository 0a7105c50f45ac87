"""`cockpit efa` and `cockpit check`: nodes asked in parallel. Imports at the top stay few: every command loads this."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cockpit.config import Config

if TYPE_CHECKING:
    from actions.outcome import Result as Outcome
    from actions.spec import Action, Plan, Targets
    from cockpit.checks.history import CheckHistory, KeptRun
    from cockpit.checks.models import CheckRun, NodeResult
    from cockpit.checks.runner import CheckRunner
    from cockpit.checks.targets import Chosen
    from cockpit.cluster import Cluster

OK, WRONG, USAGE, UNREACHED, REFUSED = range(5)
INTERRUPTED = 130

Common = Callable[[argparse.ArgumentParser], None]
Load = Callable[[argparse.Namespace], tuple[Config, str]]
Subparsers = Any  # argparse keeps the class of its subparsers to itself


def add_checks(commands: Subparsers, common: Common, load: Load) -> None:
    """Put `efa` and `check` below `cockpit`."""
    efa = _command(commands, common, "efa", "EFA of nodes: devices, drivers, versions, counters, settings")
    efa.add_argument("--window", type=_seconds, metavar="S", help="watch the counters for S seconds (default 5)")
    efa.add_argument("--pair", nargs=2, metavar=("A", "B"), help="whether two nodes reach each other over EFA")
    efa.add_argument("--pairs", action="store_true", help="the same for all of the nodes, two by two")
    efa.set_defaults(run=lambda arguments: _efa(arguments, load), kind="efa")
    check = _command(commands, common, "check", "health of nodes: GPUs, memory, disks, clock, kernel")
    check.add_argument("--deep", type=int, metavar="LEVEL", help="dcgmi diag of that level (1 to 3) on idle nodes")
    check.set_defaults(run=lambda arguments: _check(arguments, load), kind="health")
    for command in (efa, check):
        command.add_argument("--job", action="store_true", help="ask idle nodes by one Slurm job instead of SSH")
        command.add_argument("--dry-run", action="store_true", help="print the plan of --pair(s), --deep or --job only")
        command.add_argument("--yes", action="store_true", help="do not ask before --pair(s), --deep or --job")
        command.set_defaults(confirm="")


def _command(commands: Subparsers, common: Common, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{name}: {text}.")
    common(command)
    command.add_argument("nodes", nargs="?", default="", metavar="NODES", help="a hostlist (default: all that are up)")
    command.add_argument("--queue", default="", metavar="Q", help="only nodes of this queue")
    command.add_argument("--all", action="store_true", help="print the checks that are fine, too")
    command.add_argument("--json", action="store_true", help="one JSON object instead of text")
    return command


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0.1 <= seconds <= 60:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0.1 to 60, not {word!r}")
    return seconds


def _efa(arguments: argparse.Namespace, load: Load) -> int:
    if arguments.job and (arguments.pair or arguments.pairs or arguments.window is not None):
        print("cockpit: --job goes with neither --pair, --pairs nor --window", file=sys.stderr)
        return USAGE
    if not arguments.pair and not arguments.pairs:
        return _job(arguments, load) if arguments.job else _look(arguments, load)
    if arguments.pair and (arguments.pairs or arguments.nodes or arguments.queue):
        print("cockpit: --pair names its two nodes itself", file=sys.stderr)
        return USAGE
    return _pairs(arguments, load)


def _check(arguments: argparse.Namespace, load: Load) -> int:
    if arguments.job and arguments.deep is not None:
        print("cockpit: --deep is a Slurm job already: leave --job out", file=sys.stderr)
        return USAGE
    if arguments.deep is not None:
        return _deep(arguments, load)
    return _job(arguments, load) if arguments.job else _look(arguments, load)


@contextmanager
def _cluster(arguments: argparse.Namespace, load: Load) -> Iterator[Cluster]:
    from cockpit.cluster import Cluster

    config, name = load(arguments)
    cluster = Cluster(
        config.clusters[name],
        rules=config.rules,
        read_only=arguments.read_only,
        watch_gpus=False,
        checks=config.checks,
    )
    try:
        yield cluster
    finally:
        cluster.stop()


# -- looking


def _look(arguments: argparse.Namespace, load: Load) -> int:
    from cockpit.checks.from_aws import from_aws
    from cockpit.checks.runner import AT_ONCE, CheckRunner
    from cockpit.checks.targets import choose, opener, with_job_settings
    from cockpit.models import FaultError, FaultKind

    with _cluster(arguments, load) as cluster:
        cluster.read_once()
        try:
            aws = from_aws(cluster, arguments.kind)
            chosen = choose(cluster, arguments.nodes, arguments.queue, aws)
        except FaultError as error:
            print(f"cockpit: {error.fault.line()}", file=sys.stderr)
            return USAGE if error.fault.kind in (FaultKind.MISSING, FaultKind.GARBLED) else UNREACHED
        _say_alone(cluster, chosen)
        if len(chosen.targets) > cluster.config.nodes.max:
            many = f"{len(chosen.targets)} nodes over SSH, {AT_ONCE} at a time"
            print(f"cockpit: {many}; --job asks the idle ones of them through Slurm instead", file=sys.stderr)
        targets = chosen.targets
        if arguments.kind == "efa" and cluster.view.nodes is not None:
            targets = with_job_settings(cluster, targets)
        runner = CheckRunner(
            arguments.kind,
            lambda name: opener(cluster, name),
            settings=cluster.checks,
            window_s=arguments.window if arguments.kind == "efa" else None,
            clock=cluster.clock,
        )
        run = _with_left_out(_run(runner, targets), chosen.left_out)
        return _told(arguments, cluster, run)


def _say_alone(cluster: Cluster, chosen: Chosen) -> None:
    if cluster.view.nodes is None and chosen.targets:
        names = ", ".join(target.node for target in chosen.targets[:4])
        why = next((state.error.line() for state in cluster.store.states() if state.error is not None), "")
        print(f"cockpit: Slurm tells no nodes; asking {names} only ({why})", file=sys.stderr)


def _with_left_out(run: CheckRun, left_out: Sequence[tuple[str, str]]) -> CheckRun:
    from dataclasses import replace

    return replace(run, left_out=(*run.left_out, *left_out))


def _run(runner: CheckRunner, targets: Sequence[Any]) -> CheckRun:
    """Ask all of them; ctrl-c waits for none any more, and tells what has come."""
    done = 0

    def count(_: NodeResult) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            print(f"\r{done} of {len(targets)} nodes", end="", file=sys.stderr, flush=True)

    try:
        return runner.run(targets, count)
    except KeyboardInterrupt:
        runner.cancel()
        raise
    finally:
        if sys.stderr.isatty() and done:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _told(arguments: argparse.Namespace, cluster: Cluster, run: CheckRun) -> int:
    """Keep the run, print it, and return the exit code."""
    from cockpit.checks.history import CheckHistory
    from cockpit.checks.place import history_path
    from cockpit.checks.report import exit_code, run_lines, run_record
    from cockpit.report import envelope

    history = _kept(CheckHistory(history_path(cluster.config.name)), run)
    if arguments.json:
        json.dump(envelope(cluster) | run_record(run, history), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
        print("\n".join(run_lines(run, history, everything=arguments.all, width=width)))
    return exit_code(run)


def _kept(history: CheckHistory, run: CheckRun) -> tuple[KeptRun, ...]:
    """All kept runs with this one; a disk that is full costs the history only, and is said."""
    try:
        history.append(run)
        return history.load()
    except OSError as error:
        print(f"cockpit: {history.path}: this run is not kept: {error.strerror or error}", file=sys.stderr)
        return ()


# -- what loads a node goes through the runner


def _pairs(arguments: argparse.Namespace, load: Load) -> int:
    from actions.checks import pair_action, pair_targets
    from cockpit.checks.pair import pairs_of
    from cockpit.checks.targets import choose

    def pick(cluster: Cluster) -> tuple[Action, Targets]:
        if arguments.pair:
            pairs = [(arguments.pair[0], arguments.pair[1])]
        else:
            names = [target.node for target in choose(cluster, arguments.nodes, arguments.queue).targets]
            pairs = [pair for round_ in pairs_of(names) for pair in round_]
        return pair_action(pairs), pair_targets(pairs)

    with _cluster(arguments, load) as cluster:
        return _session(arguments, cluster, pick, _pair_run)


def _deep(arguments: argparse.Namespace, load: Load) -> int:
    from actions.checks import deep_action
    from actions.spec import Scope, Targets
    from cockpit.checks.deep import DeepRequest
    from cockpit.checks.targets import choose

    def pick(cluster: Cluster) -> tuple[Action, Targets]:
        names = tuple(target.node for target in choose(cluster, arguments.nodes, arguments.queue).targets)
        return deep_action(DeepRequest(names, arguments.deep)), Targets(Scope.NODE, names)

    with _cluster(arguments, load) as cluster:
        return _session(arguments, cluster, pick)


def _job(arguments: argparse.Namespace, load: Load) -> int:
    from actions.check_jobs import job_check, run_of
    from actions.spec import Scope, Targets
    from cockpit.checks.from_aws import from_aws
    from cockpit.checks.targets import Chosen, choose

    chosen = Chosen()

    def pick(cluster: Cluster) -> tuple[Action, Targets]:
        nonlocal chosen
        chosen = choose(cluster, arguments.nodes, arguments.queue, from_aws(cluster, arguments.kind))
        names = tuple(target.node for target in chosen.targets)
        return job_check(arguments.kind, arguments.queue), Targets(Scope.NODE, names)

    def found(result: Outcome) -> CheckRun | None:
        run = run_of(cluster, arguments.kind, chosen.targets, result)
        return run and _with_left_out(run, chosen.left_out)

    with _cluster(arguments, load) as cluster:
        return _session(arguments, cluster, pick, found)


def _session(
    arguments: argparse.Namespace,
    cluster: Cluster,
    pick: Callable[[Cluster], tuple[Action, Targets]],
    found: Callable[[Outcome], CheckRun | None] = lambda _: None,
) -> int:
    """Plan, show, ask and run as every change does; what it `found` is told as every run of checks is."""
    from cockpit.cli_actions import Session

    class Checks(Session):
        def _told(self, result: Outcome) -> int:
            run = found(result)
            return super()._told(result) if run is None else _told(arguments, cluster, run)

    def plan() -> Plan:
        action, targets = pick(cluster)
        return action.plan(cluster, targets)

    return Checks(arguments, cluster, plan).run()


def _pair_run(result: Outcome) -> CheckRun | None:
    from actions.checks import pairs_found
    from cockpit.checks.models import CheckRun
    from cockpit.kept_lines import run_id

    if not (pairs := pairs_found(result)):
        return None
    at = min(pair.at for pair in pairs)
    return CheckRun(run_id(at), "pair", at, sum(pair.took_s for pair in pairs), pairs=tuple(pairs))
