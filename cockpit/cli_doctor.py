"""`cockpit doctor`: the way in, step by step, each with its remedy."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cockpit.config import ConfigError
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.config import Config

Load = Callable[[argparse.Namespace], "tuple[Config, str]"]
OK, WRONG, USAGE = 0, 1, 2


def add(commands: Any, common: Callable[[argparse.ArgumentParser], None], load: Load) -> None:
    """Add the command to the command line."""
    text = "test the way in, from the config to a node's GPUs and AWS; changes nothing"
    command = commands.add_parser(
        "doctor", help=text, description=f"{text[0].upper()}{text[1:]}. Exit 1 when a step fails, 2 for a bad config."
    )
    common(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    command.add_argument("--policy", action="store_true", help="also print the AWS policies that this cluster needs")
    command.set_defaults(run=lambda arguments: run(arguments, load))


def run(arguments: argparse.Namespace, load: Load) -> int:
    """Every step, told as it comes."""
    from cockpit.doctor.examine import examine, worst
    from cockpit.doctor.models import Result, Verdict
    from cockpit.doctor.report import result_lines, summary, terminal_width
    from cockpit.doctor.wiring import Doctor

    try:
        config, name = load(arguments)
    except ConfigError as error:
        return _bad_config(error, as_json=arguments.json)

    def tell(result: Result) -> None:
        if not arguments.json:
            print("\n".join(result_lines(result, terminal_width())), flush=True)

    with Doctor(config, name, read_only=arguments.read_only) as doctor:
        results = examine(doctor.steps(), tell)
        policies = doctor.policies()
        if arguments.json:
            _print_json(doctor, results, policies)
        else:
            print(summary(results))
            lacks = any(result.id.startswith("aws_") and result.verdict is Verdict.FAIL for result in results)
            _print_policies(policies, wanted=arguments.policy or lacks)
    return WRONG if worst(results) is Verdict.FAIL else OK


def _print_policies(policies: Any, *, wanted: bool) -> None:
    from cockpit.doctor.on_aws import policy_text

    if wanted:
        print("\n".join(policy_text(policies)))


def _print_json(doctor: Any, results: Any, policies: Any) -> None:
    from cockpit.doctor.report import SCHEMA, result_json
    from cockpit.report import envelope

    about = envelope(doctor.cluster)
    about.pop("sources")  # nothing is polled here
    body = {"steps": [result_json(result) for result in results], "policies": policies}
    json.dump(about | {"schema": SCHEMA} | body, sys.stdout, ensure_ascii=False, indent=1)
    print()


def _bad_config(error: ConfigError, *, as_json: bool) -> int:
    """The first step failed, and none of the others can be tried."""
    from cockpit.doctor.models import Result, failed
    from cockpit.doctor.report import SCHEMA, result_json, result_lines

    result = Result(
        "config", "config", failed(printable(str(error)), "correct it there, then run `cockpit doctor` again"), 0.0
    )
    if as_json:
        json.dump(
            {"schema": SCHEMA, "cluster": None, "steps": [result_json(result)]},
            sys.stdout,
            ensure_ascii=False,
            indent=1,
        )
        print()
    else:
        print("\n".join(result_lines(result)))
        print("no other step was tried")
    return USAGE
