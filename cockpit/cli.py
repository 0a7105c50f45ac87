"""The command line: every read and every change is here too, with --json, and exit codes that a script can trust.

0 fine · 1 something is wrong with the cluster · 2 wrong usage or config · 3 not reached · 4 refused.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cockpit import cli_completion
from cockpit.config import ClusterConfig, Config, ConfigError, config_path
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable
from cockpit.words import show_utc

if TYPE_CHECKING:
    from cockpit.cluster import Cluster
    from themes import Look

GPU_WAIT_S = 10.0  # a probe through a head on another continent is up within that
OK, WRONG, USAGE, UNREACHED, REFUSED = range(5)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal in another encoding gets ? for what it lacks
    arguments = _parsed(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
    except ConfigError as error:
        print(f"cockpit: {printable(str(error))}", file=sys.stderr)
        return USAGE
    except FaultError as error:
        print(f"cockpit: {error.fault.line()}", file=sys.stderr)
        return UNREACHED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:  # the disk of what is printed to is full, say: no word on the cluster
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = f": {error.filename}" if error.filename else ""
        print(f"cockpit: {printable(error.strerror or str(error))}{where}", file=sys.stderr)
        return UNREACHED
    except KeyboardInterrupt:
        return 130
    return code


def _run(arguments: argparse.Namespace) -> int:
    """Do what the line says; what is printed is in ASCII where that is wanted, JSON as it is."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    on_screen = arguments.run is _open or (arguments.command == "demo" and not arguments.headless)
    if on_screen or getattr(arguments, "json", False) or not (arguments.ascii or "utf" not in encoding):
        return int(arguments.run(arguments))
    from themes.ascii_out import printed_in_ascii

    with printed_in_ascii(sys.stdout):
        return int(arguments.run(arguments))


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that costs 20 ms, a tenth of the first paint."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from cockpit.version import version_line

        print(version_line())
        parser.exit()


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """What the line says. One that only opens the cockpit builds no command: that takes a tenth of the first paint."""
    if not cli_completion.is_asked():
        with suppress(argparse.ArgumentError):
            arguments, rest = _opening_parser(add_help=False, exit_on_error=False).parse_known_args(words)
            if not rest:
                return arguments
    parser = _parser()
    cli_completion.complete(parser)
    return parser.parse_args(words)


def _opening_parser(**how: Any) -> argparse.ArgumentParser:
    """The line without a command."""
    parser = argparse.ArgumentParser(prog="cockpit", description="A cockpit for GPU clusters on AWS.", **how)
    _common(parser, {"config": None, "cluster": None, "read_only": False})
    _look_options(parser, theme=None, ascii=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version with its commit, and leave")
    parser.set_defaults(run=_open, command=None)
    return parser


def _parser() -> argparse.ArgumentParser:
    from cockpit import cli_actions, cli_cost, cli_demo, cli_doctor, cli_init, cli_keys, cli_output, cli_schedules
    from cockpit.cli_checks import add_checks
    from cockpit.cli_diagnose import add_diagnose
    from cockpit.cli_nccl import add_nccl

    parser = _opening_parser()
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name, text in (
        ("status", "counts, GPUs and problems"),
        ("nodes", "every node with its state"),
        ("gpus", "every GPU as its node's driver tells it"),
        ("jobs", "every queue entry"),
    ):
        command = commands.add_parser(name, help=text, description=f"Print {text}.")
        _common_after(command)
        command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
        command.set_defaults(run=_read, command=name)
    cli_cost.add(commands, _common_after, _load)
    cli_schedules.add(commands, _common_after, _load)
    cli_doctor.add(commands, _common_after, _load)
    cli_init.add(commands, _common_after)
    _ack_parser(commands)
    cli_output.add(commands, _common_after, _load)
    cli_keys.add(commands, _common_after)
    cli_actions.register(commands, _common, _load)
    cli_demo.add(commands, _look_options, _look, lambda cluster: _print_read(cluster, "status", as_json=False))
    cli_completion.add(commands)
    add_checks(commands, _common_after, _load)
    add_nccl(commands, _common_after, _load)
    add_diagnose(commands, _common_after, _load)
    return parser


def _common_after(parser: argparse.ArgumentParser) -> None:
    """The same options behind the command, where they do not undo those in front of it."""
    _common(parser, dict.fromkeys(("config", "cluster", "read_only"), argparse.SUPPRESS))
    parser.add_argument("--ascii", action="store_true", default=argparse.SUPPRESS, help="ASCII characters only")


def _ack_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "put a problem out of the way, with a note, until it gets worse, grows, or comes back; changes no cluster"
    ack = commands.add_parser("ack", help="acknowledge a problem", description=f"{text[0].upper()}{text[1:]}.")
    _common(ack, dict.fromkeys(("config", "cluster", "read_only"), argparse.SUPPRESS))
    ack.add_argument("key", nargs="?", metavar="KEY", help="the problem, as `status --json` names it in `key`")
    what = ack.add_mutually_exclusive_group(required=True)
    what.add_argument("--note", metavar="TEXT", help="what is known of it, or who takes care")
    what.add_argument("--undo", action="store_true", help="take it back: the problem is an open one again")
    what.add_argument("--list", action="store_true", help="print what is acknowledged, without asking the cluster")
    ack.add_argument("--json", action="store_true", help="one JSON object: everything that is acknowledged then")
    ack.set_defaults(run=_ack)


def _common(parser: argparse.ArgumentParser, defaults: Mapping[str, Any]) -> None:
    """The options that may stand before or after the command."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        default=defaults["config"],
        help=f"config file (default: {config_path()})",
    )
    cluster = parser.add_argument(
        "--cluster",
        metavar="NAME",
        default=defaults["cluster"],
        help="which cluster of the config (default: its `default`)",
    )
    cli_completion.complete_with(cluster, cli_completion.cluster_names)
    parser.add_argument(
        "--read-only",
        action="store_true",
        default=defaults["read_only"],
        help="refuse every change, whatever the config says",
    )


def _look_options(parser: argparse.ArgumentParser, **defaults: Any) -> None:
    """How the screen is drawn, before or after `demo`; without them as the config says."""
    parser.add_argument("--theme", metavar="NAME", default=defaults["theme"], help="a theme of ours or of your own")
    parser.add_argument("--ascii", action="store_true", default=defaults["ascii"], help="ASCII characters only")


def _look(arguments: argparse.Namespace, config: Config) -> Look:
    """How to draw: the options go before the config. Raises ConfigError for an unknown or a broken theme."""
    from themes import choose_look

    return choose_look(arguments.theme or config.theme, ascii=arguments.ascii or config.ascii)


def _load(arguments: argparse.Namespace) -> tuple[Config, str]:
    """The config, and which of its clusters the options name; raises ConfigError."""
    from cockpit.config_file import load_config

    path = arguments.config or config_path()
    without_file = arguments.config is None and not path.exists()
    config = _without_file(path) if without_file else load_config(path)
    show_utc(config.utc)
    name = arguments.cluster or config.default
    if name is None:
        raise ConfigError(f"{path}: several clusters and no `default`; name one: --cluster {'|'.join(config.clusters)}")
    if name not in config.clusters:
        raise ConfigError(f"{path}: no cluster named {name!r}; known: {', '.join(config.clusters)}")
    return config, name


def _without_file(path: Path) -> Config:
    """Without any config the cockpit works where Slurm is; elsewhere it says what to do."""
    from cockpit.setup.here import has_slurm

    if not has_slurm():
        step = "`cockpit init` sets a cluster up, `cockpit demo` shows one"
        raise ConfigError(f"{path}: not there, and this machine has no Slurm; {step}")
    return Config({"local": ClusterConfig("local")}, "local")


def _open(arguments: argparse.Namespace) -> int:
    gc.disable()  # the app turns it on after its first paint, which a collection would delay by a tenth
    from cockpit.app import run_app

    if _is_first_run(arguments):
        return _first_run(arguments)
    config, name = _load(arguments)
    return run_app(config, name, read_only=arguments.read_only, look=_look(arguments, config))


def _is_first_run(arguments: argparse.Namespace) -> bool:
    """Nothing to open, and somebody who can be asked; where nobody can, the error says what to do."""
    from cockpit.setup.here import has_slurm

    if arguments.config is not None or config_path().exists() or has_slurm():
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def _first_run(arguments: argparse.Namespace) -> int:
    """Ask what to do, then do it; a cluster that was set up is opened at once."""
    from screens.first_run import FirstRunApp

    gc.enable()
    chosen = FirstRunApp(config_path(), _look(arguments, Config({}))).run()
    if chosen is None:
        return OK
    if chosen.demo:
        return main([*_look_words(arguments), "demo"])
    arguments.cluster = chosen.cluster
    return _open(arguments)


def _look_words(arguments: argparse.Namespace) -> list[str]:
    return [*(["--theme", arguments.theme] if arguments.theme else []), *(["--ascii"] if arguments.ascii else [])]


def _read(arguments: argparse.Namespace) -> int:
    from cockpit.cluster import Cluster

    config, name = _load(arguments)
    with_gpus = arguments.command in ("status", "gpus")
    cluster = Cluster(config.clusters[name], rules=config.rules, read_only=arguments.read_only, watch_gpus=with_gpus)
    try:
        _read_all(cluster)
        cluster.acknowledged.sync()  # what has ended by what was read now
        return _print_read(cluster, arguments.command, as_json=arguments.json)
    finally:
        cluster.stop()


def _read_all(cluster: Cluster) -> None:
    cluster.read_once()
    if cluster.watches_gpus and cluster.view.nodes is not None:
        cluster.wait_for_gpus(GPU_WAIT_S)


def _ack(arguments: argparse.Namespace) -> int:
    from cockpit.cluster import Cluster

    if arguments.list == (arguments.key is not None):
        print(f"cockpit: {'--list takes no KEY' if arguments.list else 'name the KEY of a problem'}", file=sys.stderr)
        return USAGE
    config, name = _load(arguments)
    cluster = Cluster(config.clusters[name], rules=config.rules, read_only=arguments.read_only)
    try:
        if arguments.note is None:
            cluster.acknowledged.sync()
        else:
            _read_all(cluster)  # how bad it is now is what it may not exceed
        try:
            if fault := cluster.acknowledged.fault():
                raise FaultError(fault)
            code = _acknowledge(cluster, arguments)
        except FaultError as error:
            print(f"cockpit: {error.fault.line()}", file=sys.stderr)
            return USAGE if error.fault.kind is FaultKind.MISSING else REFUSED
        if code == OK:
            _print_acknowledged(cluster, as_json=arguments.json)
        return code
    finally:
        cluster.stop()


def _acknowledge(cluster: Cluster, arguments: argparse.Namespace) -> int:
    """Do what was asked; raises FaultError."""
    if arguments.undo:
        if arguments.key not in cluster.acknowledged.book():
            why = "that is not acknowledged"
            fault = Fault(FaultKind.MISSING, printable(arguments.key), why, "`cockpit ack --list` shows what is")
            raise FaultError(fault)
        cluster.take_back(arguments.key)
    elif arguments.note is not None:
        if cluster.view.nodes is None or cluster.view.queue is None:
            return exit_code(cluster, "status")
        cluster.acknowledge(arguments.key, arguments.note)
    return OK


def _print_acknowledged(cluster: Cluster, *, as_json: bool) -> None:
    from cockpit import report

    if as_json:
        json.dump(report.acknowledged(cluster), sys.stdout, ensure_ascii=False, indent=1)
        print()
        return
    from screens.print_table import acknowledged_lines

    print("\n".join(acknowledged_lines(cluster)))


def _print_read(cluster: Cluster, command: str, *, as_json: bool) -> int:
    from cockpit import report

    if as_json:
        json.dump(getattr(report, command)(cluster), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        from screens.print_table import lines

        print("\n".join(lines(cluster, command)))
    return exit_code(cluster, command)


def exit_code(cluster: Cluster, command: str) -> int:
    """3 when what was asked for could not be read at all; 1 when `status` found an open problem; else 0."""
    view = cluster.view
    missing = {"nodes": view.nodes is None, "gpus": view.nodes is None, "jobs": view.queue is None}
    if missing.get(command, view.nodes is None or view.queue is None):
        for state in cluster.store.states():
            if state.error is not None:
                print(f"cockpit: {state.error.line()}", file=sys.stderr)
        return UNREACHED
    is_open = any(problem.acknowledged is None for problem in cluster.problems())
    return WRONG if command == "status" and is_open else OK
