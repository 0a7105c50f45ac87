"""`cockpit demo`: the cockpit on an embedded cluster."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cockpit import cli_completion
from cockpit.config import Config, ConfigError, keep_apart
from cockpit.demo.scenarios import SCENARIOS

if TYPE_CHECKING:
    from cockpit.cluster import Cluster
    from themes import Look

MAX_NODES = 1024
MAX_SECONDS = 86_400
HEADLESS_S = 5.0
Looks = Callable[[argparse.Namespace, Config], "Look"]


def add(commands: Any, look_options: Callable[..., None], look: Looks, print_status: Callable[[Cluster], int]) -> None:
    """Add the command; `print_status` reads a cluster and prints it."""
    demo = commands.add_parser("demo", help="the cockpit on an embedded cluster", description="Open a demo cluster.")
    demo.add_argument("--nodes", type=_node_count, default=12, metavar="N", help="number of nodes (default 12)")
    scenario = demo.add_argument(
        "--scenario", default="busy", metavar="NAME", help=f"starting conditions: {', '.join(SCENARIOS)} (default busy)"
    )
    cli_completion.complete_with(scenario, cli_completion.scenario_names)
    demo.add_argument("--headless", action="store_true", help="without a terminal, for checks; prints the status")
    demo.add_argument("--seconds", type=_seconds, metavar="N", help="end after N seconds (headless: default 5)")
    look_options(demo, theme=argparse.SUPPRESS, ascii=argparse.SUPPRESS)
    demo.set_defaults(run=lambda arguments: _demo(arguments, look, print_status))


def _node_count(word: str) -> int:
    if not word.isdigit() or not 1 <= int(word) <= MAX_NODES:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MAX_NODES}, not {word!r}")
    return int(word)


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 to {MAX_SECONDS:,}, not {word!r}")
    return seconds


def _demo(arguments: argparse.Namespace, look: Looks, print_status: Callable[[Cluster], int]) -> int:
    from cockpit.config_file import load_config
    from cockpit.demo.cluster import DemoCluster

    if arguments.scenario not in SCENARIOS:
        raise ConfigError(f"no scenario named {arguments.scenario!r}; known: {', '.join(SCENARIOS)}")
    # A real cluster may bear the same name; and what was found in one scenario is not true of another.
    keep_apart("demo", arguments.scenario)
    _hear(_end)
    demo = DemoCluster(nodes=arguments.nodes, scenario=arguments.scenario)
    try:
        if demo.lacks:
            print(f"cockpit: {demo.lacks}", file=sys.stderr)
        config = load_config(demo.start())
        if arguments.headless:
            return _headless(config, HEADLESS_S if arguments.seconds is None else arguments.seconds, print_status)
        return _show(config, arguments, look(arguments, config))
    finally:
        _hear(signal.SIG_IGN)  # on its way out already, and keys must not lie about
        demo.stop()
        _hear(signal.SIG_DFL)


def _hear(handler: signal.Handlers | Callable[[int, object], None]) -> None:
    """What a hang-up or a request to end does until the app listens itself, and once it has ended."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, handler)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _show(config: Config, arguments: argparse.Namespace, look: Look) -> int:
    gc.disable()
    from cockpit.app import run_app

    name = next(iter(config.clusters))
    return run_app(config, name, read_only=arguments.read_only, look=look, seconds=arguments.seconds)


def _headless(config: Config, seconds: float, print_status: Callable[[Cluster], int]) -> int:
    """Poll for a while without a screen, then print the status; what a demo shows is no failure of the command."""
    from cockpit.cluster import Cluster

    cluster = Cluster(next(iter(config.clusters.values())), rules=config.rules)
    cluster.start()
    try:
        time.sleep(seconds)
        code = print_status(cluster)
    finally:
        cluster.stop()
    return 0 if code == 1 else code
