"""`cockpit init`: find a cluster, test the way in, write the config. Asks only where somebody can answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cockpit.config import KINDS, ClusterConfig, ConfigError, NodeAccess, config_path
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.setup.find import Candidate, Found

OK, WRONG, USAGE, REFUSED = 0, 1, 2, 4


def add(commands: Any, common: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command to the command line."""
    text = "find a cluster, test the way in, write the config"
    command = commands.add_parser(
        "init",
        help=text,
        description=f"{text[0].upper()}{text[1:]}. What was in the config stays; a copy of it is kept beside it.",
    )
    common(command)
    command.add_argument("--head", metavar="HOST", help="user@host, an alias of ~/.ssh/config, or local")
    command.add_argument("--name", metavar="NAME", help="what the cluster is called (default: by stack or head)")
    command.add_argument("--kind", choices=KINDS, help="default: what the head shows")
    command.add_argument("--region", metavar="REGION", help="AWS region, where clusters are looked for too")
    command.add_argument("--profile", metavar="PROFILE", help="AWS profile")
    command.add_argument("--stack", metavar="STACK", help="ParallelCluster's stack, HyperPod's cluster")
    command.add_argument("--endpoint-url", metavar="URL", help=argparse.SUPPRESS)
    command.add_argument("--ssh-config", type=Path, metavar="FILE", help="instead of ~/.ssh/config")
    command.add_argument("--nodes-user", metavar="USER", help="login on the nodes (default: as on the head)")
    command.add_argument("--nodes-port", type=int, metavar="PORT", help="SSH port of the nodes (default 22)")
    command.add_argument(
        "--trust-new-nodes", action="store_true", help="nodes that come and go: trust their keys as the head sees them"
    )
    command.add_argument("--production", action="store_true", help="name the cluster in every dialog")
    command.add_argument("--yes", action="store_true", help="ask nothing; write when the way in is open")
    command.add_argument("--force", action="store_true", help="write although the way in is not open")
    command.add_argument("--dry-run", action="store_true", help="print what would be written, test and write nothing")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The whole way; raises ConfigError."""
    from cockpit.doctor.report import result_lines, terminal_width
    from cockpit.setup.trial import try_out
    from cockpit.setup.write import draft, write

    path: Path = arguments.config or config_path()
    candidate = _named(arguments) if arguments.head else _chosen(arguments)
    if candidate is None:
        return USAGE
    config = _entry(arguments, candidate)
    text, _ = draft(config, path)  # what cannot be written is said before anything is tested
    if arguments.dry_run:
        print(f"# {path}\n{text}", end="")
        return OK
    print(f"testing the way to {printable(config.head)}")
    trial = try_out(config, lambda result: print("\n".join(result_lines(result, terminal_width())), flush=True))
    if not trial.usable and not _all_the_same(arguments):
        print(
            "cockpit: nothing was written; mend the first failure and run it again, or write it with --force",
            file=sys.stderr,
        )
        return WRONG
    text, _ = draft(trial.config, path)
    if trial.usable and not _agreed(arguments, path):
        print("cockpit: nothing was written", file=sys.stderr)
        return REFUSED
    done = write(path, text)
    print(f"wrote {done.path}" + (f"; what was there before is {done.backup}" if done.backup else ""))
    print(f"open it with `cockpit --cluster {config.name}`; `cockpit doctor --cluster {config.name}` tests it again")
    return OK if trial.usable else WRONG


def _named(arguments: argparse.Namespace) -> Candidate:
    from cockpit.addresses import short_name, take_apart
    from cockpit.setup.find import Candidate

    try:
        host = "local" if arguments.head == "local" else take_apart(arguments.head).host
    except ValueError as error:
        raise ConfigError(f"--head {arguments.head!r} {error}") from None
    return Candidate(arguments.stack or short_name(host), arguments.head)


def _entry(arguments: argparse.Namespace, candidate: Candidate) -> ClusterConfig:
    """What was found, overruled by what was said."""
    from cockpit.setup.trial import config_of

    config = config_of(candidate)
    access = NodeAccess(
        user=arguments.nodes_user,
        port=arguments.nodes_port or 22,
        host_keys="head" if arguments.trust_new_nodes else "strict",
    )
    return replace(
        config,
        name=arguments.name or config.name,
        kind=arguments.kind or config.kind,
        region=arguments.region or config.region,
        profile=arguments.profile or config.profile,
        stack=arguments.stack or (config.stack if config.stack != (arguments.name or config.name) else None),
        endpoint_url=arguments.endpoint_url,
        ssh_config=arguments.ssh_config,
        nodes=access,
        production=arguments.production,
    )


def _chosen(arguments: argparse.Namespace) -> Candidate | None:
    """What was found, and which of it somebody wants; None when nobody can be asked."""
    from cockpit.setup.find import find

    found = find(
        arguments.profile or "",
        arguments.region or "",
        endpoint_url=arguments.endpoint_url,
        ssh_config=arguments.ssh_config,
    )
    _print_found(found)
    if not sys.stdin.isatty():
        print("cockpit: name one with --head, such as: cockpit init --head user@host", file=sys.stderr)
        return None
    return _asked(arguments, found)


def _print_found(found: Found) -> None:
    for number, one in enumerate(found.candidates, 1):
        print(f"{number:3}  {printable(one.name):24}  {printable(one.head):32}  {printable(one.told)}")
    if not found.candidates:
        print("no Slurm on this machine, no host in the ssh config")
    if found.fault is not None:
        print(f"no cluster from AWS: {found.fault.why} (--region and --profile say where to look)")


def _asked(arguments: argparse.Namespace, found: Found) -> Candidate | None:
    answer = _ask("number of the cluster, or its head as user@host (empty: none): ")
    if answer.isdigit() and 1 <= int(answer) <= len(found.candidates):
        return found.candidates[int(answer) - 1]
    if answer in ("", "-") or answer.isdigit():
        print("cockpit: nothing was chosen", file=sys.stderr)
        return None
    arguments.head = answer
    return _named(arguments)


def _all_the_same(arguments: argparse.Namespace) -> bool:
    """Whether a cluster is written that was not reached."""
    if arguments.force:
        return True
    return not arguments.yes and sys.stdin.isatty() and _says_yes("it is not reached; write it all the same? [y/N] ")


def _agreed(arguments: argparse.Namespace, path: Path) -> bool:
    if arguments.yes or arguments.force:
        return True
    if not sys.stdin.isatty():
        print("cockpit: say --yes to write it", file=sys.stderr)
        return False
    added = "add it to" if path.exists() else "write"
    return _says_yes(f"{added} {path}? [Y/n] ", nothing=True)


def _says_yes(question: str, *, nothing: bool = False) -> bool:
    """`nothing` is what just enter means."""
    answer = _ask(question).lower()
    return answer in ("y", "yes") or (nothing and not answer)


def _ask(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:  # ctrl+d is no yes
        return "-"
