"""`cockpit output`: the end of what a job writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cockpit.config import Config

Load = Callable[[argparse.Namespace], "tuple[Config, str]"]
MAX_LINES = 50_000


def add(commands: Any, common: Callable[[argparse.ArgumentParser], None], load: Load) -> None:
    """Add the command to the command line."""
    output = commands.add_parser("output", help="what a job writes", description="Print the end of what a job writes.")
    common(output)
    output.add_argument("job", metavar="JOB", help="123, 123_7 or 123+1")
    output.add_argument("--stderr", action="store_true", help="standard error, where that has a file of its own")
    output.add_argument("--follow", action="store_true", help="go on as it grows, until ctrl+c")
    output.add_argument("--lines", type=_line_count, default=100, metavar="N", help="how many lines (default 100)")
    output.set_defaults(run=lambda arguments: run(arguments, load))


def _line_count(word: str) -> int:
    if not word.isdigit() or int(word) > MAX_LINES:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {MAX_LINES:,}, not {word!r}")
    return int(word)


def run(arguments: argparse.Namespace, load: Load) -> int:
    """Print it; raises FaultError."""
    from cockpit.cluster import Cluster
    from cockpit.print_output import print_output

    config, name = load(arguments)
    cluster = Cluster(config.clusters[name], watch_gpus=False)
    try:
        return print_output(cluster, arguments.job, arguments.lines, stderr=arguments.stderr, follow=arguments.follow)
    finally:
        cluster.stop()
