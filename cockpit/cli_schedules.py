"""`cockpit schedules`: the stops and starts at a time that were made for a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cockpit.config import Config

Load = Callable[[argparse.Namespace], "tuple[Config, str]"]


def add(commands: Any, common: Callable[[argparse.ArgumentParser], None], load: Load) -> None:
    """Add the command to the command line."""
    text = "the stops and starts at a time of a cluster"
    command = commands.add_parser("schedules", help=text, description=f"Print {text}; see `cockpit stop --at`.")
    common(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    command.set_defaults(run=lambda arguments: run(arguments, load))


def run(arguments: argparse.Namespace, load: Load) -> int:
    """Ask EventBridge and print; raises FaultError, which is exit code 3."""
    from cockpit.cluster import Cluster
    from cockpit.report import envelope
    from cockpit.schedules import Owner
    from cockpit.sources.aws_schedules import read_schedules

    config, name = load(arguments)
    cluster = Cluster(config.clusters[name], rules=config.rules, read_only=arguments.read_only, watch_gpus=False)
    try:
        scope = cluster.aws.scope()
        found = read_schedules(cluster.aws.calls(), Owner(name, scope, scope.region or "", ""))
        if arguments.json:
            json.dump(envelope(cluster) | {"schedules": [asdict(one) for one in found]}, sys.stdout, indent=1)
            print()
        for one in () if arguments.json else found:
            state = "" if one.state == "ENABLED" else f" {one.state}"
            print(f"{one.name}  {one.expression} {one.zone}{state}  {one.action}  {one.text}")
        if not found and not arguments.json:
            print(f"no schedule stops or starts {name}")
    finally:
        cluster.stop()
    return 0
