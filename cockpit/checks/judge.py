"""All checks of one node from its look, in the catalogue's order; a rule that breaks costs only its own check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cockpit.catalog.checks import drift_items, known_checks
from cockpit.checks import efa_devices, efa_software, environment, gpu_checks, host_checks
from cockpit.checks.facts import Facts
from cockpit.checks.models import Drift, NodeResult, Result, Verdict
from cockpit.checks.own import judge_own

Rule = Callable[[Facts], "Result | Iterator[Result]"]

# Judged whether or not there is a device, since they have a meaning of their own without EFA.
_HARDWARE: tuple[tuple[str, Rule], ...] = (("efa.devices", efa_devices.devices),)
_WITH_DEVICES: tuple[tuple[str, Rule], ...] = (
    ("efa.access", efa_devices.access),
    ("efa.driver", efa_devices.driver),
    ("efa.provider", efa_software.provider),
    ("efa.installer", efa_software.installer),
    ("efa.plugin", efa_software.plugin),
    ("efa.nccl", efa_software.nccl),
    ("efa.gpu_driver", efa_software.gpu_driver),
    ("efa.gpudirect", efa_devices.gpudirect),
    ("efa.gdrcopy", efa_software.gdrcopy),
    ("limits.memlock", environment.memlock),
    ("efa.hugepages", environment.hugepages),
    ("efa.ptrace", environment.ptrace),
    ("efa.counters", efa_devices.counters),
    ("efa.settings", environment.settings),
)
_HEALTH: tuple[tuple[str, Rule], ...] = (
    ("gpu.driver", gpu_checks.gpus),
    ("gpu.fabric", gpu_checks.services),
    ("efa.gdrcopy", efa_software.gdrcopy),
    ("limits.memlock", environment.memlock),
    ("host.shm", host_checks.host),
)


def judge(facts: Facts, kind: str, extra: Iterable[Result] = ()) -> tuple[Result, ...]:
    """Every check of `efa` or `health`, and what others found (AWS); those that the site switched off are left out."""
    found = list(_efa(facts) if kind == "efa" else _all(facts, _HEALTH))
    found += [judge_own(facts, check) for check in facts.settings.commands if kind in check.kinds]
    found += extra
    order = {name: place for place, name in enumerate(known_checks())}
    wanted = [result for result in found if result.check not in facts.settings.off]
    return tuple(sorted(wanted, key=lambda result: order.get(result.check, len(order))))


def _efa(facts: Facts) -> Iterator[Result]:
    hardware = list(_all(facts, _HARDWARE))
    yield from hardware
    if facts.devices:
        yield from _all(facts, _WITH_DEVICES)
        return
    # One cause, one finding: what rests on a device is not judged without one.
    unknown = hardware[0].verdict is Verdict.UNKNOWN
    word = Verdict.UNKNOWN if unknown else Verdict.NA
    for check in (*(name for name, _ in _WITH_DEVICES), "efa.admin"):
        yield Result(check, word, "whether there is a device is not known" if unknown else "no EFA device")


def _all(facts: Facts, rules: Sequence[tuple[str, Rule]]) -> Iterator[Result]:
    for name, rule in rules:
        try:
            found = rule(facts)
            yield from [found] if isinstance(found, Result) else list(found)
        except Exception as error:  # the node's answer is foreign text: one bad rule must not hide the others
            says = f"could not be judged ({type(error).__name__}); please report this"
            yield Result(name, Verdict.UNKNOWN, says)


def drift(nodes: Iterable[NodeResult], kind: str) -> tuple[Drift, ...]:
    """Versions that are not one within a queue. A node that does not tell a version is no odd one."""
    queues: dict[tuple[str, str], list[NodeResult]] = {}
    for node in nodes:
        if node.fault is None:
            queues.setdefault((node.queue, node.instance_type), []).append(node)
    return tuple(
        odd
        for (queue, _), members in queues.items()
        for name, title in drift_items(kind)
        if (odd := _odd(queue, name, title, members)) is not None
    )


def _odd(queue: str, name: str, title: str, members: Sequence[NodeResult]) -> Drift | None:
    by_version: dict[str, list[str]] = {}
    for node in members:
        if version := node.versions.get(name, ""):
            by_version.setdefault(version, []).append(node.node)
    if len(by_version) < 2:
        return None
    ranked = sorted(by_version.items(), key=lambda item: (-len(item[1]), item[0]))
    usual, others = ranked[0], ranked[1:]
    return Drift(queue, name, title, usual[0], len(usual[1]), tuple((word, tuple(names)) for word, names in others))


def versions_by_node(nodes: Iterable[NodeResult], kind: str) -> Mapping[str, Mapping[str, str]]:
    """For the drift view: node -> title -> version, "" where it is not told."""
    return {
        node.node: {title: node.versions.get(name, "") for name, title in drift_items(kind)}
        for node in nodes
        if node.fault is None
    }
