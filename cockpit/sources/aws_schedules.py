"""Reads the schedules that the cockpit has made."""

from __future__ import annotations

from cockpit.schedules import Owner, Scheduled, parse_schedule
from cockpit.sources.aws_client import AwsCalls


def read_schedules(calls: AwsCalls, owner: Owner) -> tuple[Scheduled, ...]:
    """This cluster's schedules by name; raises FaultError."""
    pages = calls.pages("scheduler", "list_schedules", "reading the schedules", NamePrefix=owner.prefix)
    names = [str(entry["Name"]) for page in pages for entry in page.get("Schedules") or ()]
    ours = sorted(set(names) & set(owner.names))
    found = [calls.call("scheduler", "get_schedule", f"reading schedule {name}", Name=name) for name in ours]
    return tuple(parse_schedule(answer) for answer in found)
