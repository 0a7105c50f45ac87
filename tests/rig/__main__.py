"""python -m tests.rig up|down|missing|big: the rig by hand, for `make rig` and for benches."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.rig.big import big_spec, fill, local_squeue
from tests.rig.machines import RigError
from tests.rig.require import missing
from tests.rig.rig import Rig
from tests.rig.spec import Spec

CHECKOUT = Path(__file__).parents[2]


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (RigError, TimeoutError) as error:
        print(f"rig: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.rig", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run, state in (("up", _up, ".rig"), ("down", _down, ".rig"), ("big", _big, ".rig-big")):
        command = commands.add_parser(name)
        command.add_argument("--state", type=Path, default=CHECKOUT / state, help="default: %(default)s")
        command.set_defaults(run=run)
        if name == "big":
            command.add_argument("--nodes", type=int, default=1024)
            command.add_argument("--jobs", type=int, default=20_000)
    commands.add_parser("missing").set_defaults(run=_missing)
    return parser


def _up(args: argparse.Namespace) -> int:
    _say_how(_running(args.state) or _start(args.state, Spec()))
    return 0


def _down(args: argparse.Namespace) -> int:
    try:
        Rig.attach(args.state).down()
    except FileNotFoundError:
        print(f"no rig in {args.state}")
    return 0


def _missing(_: argparse.Namespace) -> int:
    reason = missing()
    if reason is not None:
        print(reason)
    return int(reason is not None)


def _big(args: argparse.Namespace) -> int:
    if (old := _running(args.state)) is not None:
        raise RigError(f"a rig already runs in {old.state}; python -m tests.rig down --state {old.state}")
    rig = _start(args.state, big_spec(args.nodes, args.jobs))
    began = time.monotonic()
    try:
        fill(rig, args.jobs)
    except BaseException:
        rig.down()
        raise
    print(f"filled in {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    argv, env = local_squeue(rig)
    shown = subprocess.run(argv, env=env, capture_output=True, check=True).stdout
    took_s = time.monotonic() - began
    entries = shown.count(b"\x1e")
    print(f"squeue: {entries} entries, {len(shown)} bytes, {took_s:.2f} s")
    _say_how(rig)
    print(f"or, past ssh: SLURM_CONF={rig.layout.local_slurm_conf} {_cockpit()} --config {_local_config(rig)}")
    return 0


def _running(state: Path) -> Rig | None:
    try:
        rig = Rig.attach(state)
    except FileNotFoundError:
        return None
    return rig if rig.running else None


def _start(state: Path, spec: Spec) -> Rig:
    began = time.monotonic()
    rig = Rig(state, spec).up(detach=True)
    address, port = rig.address("head")
    print(f"up in {time.monotonic() - began:.1f} s: {len(rig.nodes)} nodes, head at {address}:{port}")
    return rig


def _say_how(rig: Rig) -> None:
    print(f"{_cockpit()} --config {_short(rig.config())}")
    print(f"ssh -F {_short(rig.ssh_config)} {rig.head}")


def _local_config(rig: Rig) -> Path:
    return _short(rig.config("local.yaml", head="local", ssh_config=None))


def _cockpit() -> Path:
    return _short(CHECKOUT / ".venv" / "bin" / "cockpit")


def _short(path: Path) -> Path:
    # From the checkout the line is then one that can be read and typed.
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


if __name__ == "__main__":
    sys.exit(main())
