"""`cockpit cost`: what the cluster costs by the hour and what of that is for nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cockpit.config import Config


def add(commands: Any, common: Callable[[argparse.ArgumentParser], None], load: Load) -> None:
    """Add the command to the command line; `common` adds the options that all have, `load` reads the config."""
    text = "what the cluster costs by the hour, and what is idle"
    command = commands.add_parser("cost", help=text, description=f"Print {text}.")
    common(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    command.set_defaults(run=lambda arguments: run(arguments, load))


Load = Callable[[argparse.Namespace], "tuple[Config, str]"]


def run(arguments: argparse.Namespace, load: Load) -> int:
    """Read once and print; 3 when neither EC2 nor Slurm could be read, else 0."""
    from cockpit import cost_report
    from cockpit.cluster import Cluster

    config, name = load(arguments)
    cluster = Cluster(config.clusters[name], rules=config.rules, read_only=arguments.read_only, watch_gpus=False)
    try:
        cluster.read_once()
        known = cost_report.cost_of(cluster) is not None
        if arguments.json:
            json.dump(cost_report.record(cluster), sys.stdout, ensure_ascii=False, indent=1)
            print()
        else:
            print("\n".join(cost_report.lines(cluster)))
    finally:
        cluster.stop()
    return 0 if known else 3
