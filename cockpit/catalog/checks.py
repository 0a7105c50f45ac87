"""Checks as data: what is asked of a node, what each check means, thresholds, least versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from cockpit.catalog.reader import load


@dataclass(frozen=True, slots=True)
class CheckFact:
    """One check. `more` holds what only its own rule reads, such as other next steps."""

    id: str
    kinds: tuple[str, ...]
    title: str
    meaning: str
    next_step: str
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


@cache
def _facts() -> dict[str, CheckFact]:
    table = load("checks")
    return {entry["id"]: _fact(entry, table["sources"]) for entry in table["checks"]}


def _fact(entry: Mapping[str, Any], sources: Mapping[str, str]) -> CheckFact:
    usual = ("id", "for", "title", "means", "next", "thresholds", "sources")
    return CheckFact(
        id=entry["id"],
        kinds=tuple(entry["for"]),
        title=entry["title"],
        meaning=entry["means"],
        next_step=entry["next"],
        thresholds={name: float(value) for name, value in entry.get("thresholds", {}).items()},
        sources=tuple(sources[name] for name in entry["sources"]),
        more={key: value for key, value in entry.items() if key not in usual},
    )


def check_fact(check_id: str) -> CheckFact:
    """The fact about a check; a site's own check is known by its id only."""
    return _facts().get(check_id) or CheckFact(check_id, ("own",), check_id.removeprefix("own."), "", "")


def known_checks() -> tuple[str, ...]:
    """Every check of the catalogue, in the order in which they are shown."""
    return tuple(_facts())


def checks_for(kind: str) -> tuple[str, ...]:
    """The checks of `efa`, `health`, `pair` or `deep`, in the order in which they are shown."""
    return tuple(name for name, fact in _facts().items() if kind in fact.kinds)


def parts_for(kind: str) -> dict[str, dict[str, Any]]:
    """What is asked of a node for `efa` or `health`, by name."""
    parts = load("checks")["parts"]
    return {
        name: {key: value for key, value in part.items() if key != "for"}
        for name, part in parts.items()
        if kind in part["for"]
    }


def least_versions(instance_type: str) -> Mapping[str, str]:
    """The least versions for a type: some of nccl, plugin, installer, driver; empty for unknown ones."""
    for entry in load("checks")["minimums"]:
        if fnmatchcase(instance_type, entry["types"]):
            return {name: version for name, version in entry.items() if name != "types"}
    return {}


def has_gpudirect(instance_type: str) -> bool:
    """False for types that are known to have none over EFA."""
    return not any(fnmatchcase(instance_type, pattern) for pattern in load("checks")["no_gpudirect"])


def setting_rules() -> list[dict[str, str]]:
    """Settings that harm: name and value as patterns, verdict, says."""
    rules: list[dict[str, str]] = load("checks")["settings"]
    return rules


def drift_items(kind: str) -> tuple[tuple[str, str], ...]:
    """(name, title) of the versions that should be one within a queue."""
    return tuple((item["name"], item["title"]) for item in load("checks")["drift"] if kind in item["for"])
