"""EFA hardware as a node shows it: devices, device files, driver, GPUDirect, what the cards counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.catalog.checks import check_fact, has_gpudirect, least_versions
from cockpit.checks.facts import Device, Facts, below, unanswered, version_key
from cockpit.checks.models import Result, Verdict
from cockpit.formats.efa_counters import (
    DROPS,
    ERRORS,
    REFUSED,
    REMOTE,
    RETRANSMITTED,
    SENT,
    STUCK,
    TIMEOUTS,
    Window,
)
from cockpit.words import byte_rate, plural, span

_SHOWN = 12


def result(facts: Facts, check: str, verdict: Verdict, says: str, *evidence: str, parts: tuple[str, ...] = (),
           next_step: str = "") -> Result:  # fmt: skip
    """A result with the catalogue's next step where something is wrong and no better one is given."""
    bad = verdict in (Verdict.FAIL, Verdict.WARN)
    step = next_step or (check_fact(check).next_step if bad else "")
    return Result(check, verdict, says, tuple(line for line in evidence if line)[:60], step, facts.asked(*parts))


def devices(facts: Facts) -> Result:
    """As many as the type has. Two different causes of none have two different cures."""
    there, expected, more = len(facts.devices), facts.expected_efa, check_fact("efa.devices").more
    parts = ("drivers", "devices")
    names = ", ".join(device.name for device in facts.devices)
    if not there and expected == 0:
        return result(facts, "efa.devices", Verdict.NA, f"{facts.type_name} has no EFA", parts=parts)
    if not there and facts.part("drivers").state.value in ("late", "not asked"):
        return result(facts, "efa.devices", Verdict.UNKNOWN, unanswered(facts.part("drivers")), parts=parts)
    if not there and facts.on_bus:
        says = f"no EFA device: {facts.on_bus} on the PCI bus, and no driver serves them"
        return result(facts, "efa.devices", Verdict.FAIL, says, parts=(*parts, "pci"), next_step=more["unloaded_next"])
    if not there:
        of = f", {facts.type_name} has {expected}" if expected else ""
        return result(facts, "efa.devices", Verdict.FAIL, f"no EFA device{of}", "/sys/class/infiniband has none",
                      parts=parts, next_step=more["none_next"])  # fmt: skip
    if expected is None:
        says = f"{plural(there, 'device')}; how many {facts.type_name or 'this instance type'} should have is not known"
        return result(facts, "efa.devices", Verdict.UNKNOWN, says, names, parts=parts)
    if there < expected:
        return _too_few(facts, there, expected, names)
    says = f"{there} of {expected}"
    return result(facts, "efa.devices", Verdict.PASS, says, names, parts=parts)


def _too_few(facts: Facts, there: int, expected: int, names: str) -> Result:
    young = facts.uptime_s is not None and facts.uptime_s < facts.limit("efa.devices", "late_s")
    step = check_fact("efa.devices").more["late_next"] if young else ""
    up = f"up for {span(facts.uptime_s)}" if facts.uptime_s is not None else ""
    bus = f"{facts.on_bus} on the PCI bus" if facts.on_bus else ""
    return result(facts, "efa.devices", Verdict.FAIL, f"{there} of {expected} devices", names, bus, up,
                  parts=("drivers", "pci"), next_step=step)  # fmt: skip


def access(facts: Facts) -> Result:
    """One uverbs file for each device, which this login may open."""
    part, rows = facts.part("uverbs"), facts.part("uverbs").rows
    if not part.done:
        return result(facts, "efa.access", Verdict.UNKNOWN, f"/dev/infiniband: {unanswered(part)}", parts=("uverbs",))
    shut = [row[0] for row in rows if row[-1] != "rw"]
    lines = [" ".join(row) for row in rows]
    if len(rows) < len(facts.devices):
        says = f"{plural(len(rows), 'device file')} for {plural(len(facts.devices), 'device')}"
        return result(facts, "efa.access", Verdict.FAIL, says, *lines, parts=("uverbs",))
    if shut:
        says = f"{plural(len(shut), 'device file')} may not be opened by this login"
        return result(facts, "efa.access", Verdict.FAIL, says, *lines, parts=("uverbs",))
    return result(facts, "efa.access", Verdict.PASS, plural(len(rows), "device file"), *lines[:2], parts=("uverbs",))


def driver(facts: Facts) -> Result:
    """Loaded, the same as installed, and not below the least for this generation."""
    loaded, installed = facts.versions.get("efa", ""), facts.part("modinfo")
    least = least_versions(facts.type_name).get("driver", "")
    parts = ("host", "modinfo")
    if not loaded:
        return result(facts, "efa.driver", Verdict.UNKNOWN, "the loaded driver tells no version", parts=parts)
    if least and below(loaded, least):
        says = f"{loaded}, {facts.type_name} needs {least}"
        return result(facts, "efa.driver", Verdict.FAIL, says, parts=parts)
    if installed.done and installed.first and version_key(installed.first) != version_key(loaded):
        says = f"{loaded} is loaded, {installed.first} is installed"
        return result(facts, "efa.driver", Verdict.WARN, says, parts=parts)
    return result(facts, "efa.driver", Verdict.PASS, loaded, parts=parts)


def gpudirect(facts: Facts) -> Result:
    """Peer memory by each device's own word, else DMA-BUF where driver and GPU driver can do it."""
    check, parts = "efa.gpudirect", ("devices", "modules", "nvidia")
    if facts.has_gpus is False:
        return result(facts, check, Verdict.NA, "no accelerators", parts=parts)
    if facts.type_name and not has_gpudirect(facts.type_name):
        return result(facts, check, Verdict.NA, f"{facts.type_name} has none: host staging is normal", parts=parts)
    if facts.has_gpus is None and all(not device.p2p for device in facts.devices):
        return result(facts, check, Verdict.UNKNOWN, "whether the node has GPUs is not known", parts=parts)
    without = [device for device in facts.devices if not device.p2p]
    providers = sorted({device.p2p for device in facts.devices if device.p2p})
    if not without:
        return result(facts, check, Verdict.PASS, f"peer memory by {', '.join(providers)}", parts=parts)
    evidence = [f"{device.name}: {_p2p(device)}" for device in without[:_SHOWN]]
    if len(without) < len(facts.devices):
        says = f"{len(without)} of {plural(len(facts.devices), 'device')} without a peer-memory path"
        return result(facts, check, Verdict.FAIL, says, *evidence, parts=parts)
    least, loaded = check_fact(check).more["dmabuf_driver"], facts.versions.get("efa", "")
    is_open = "Open Kernel Module" in facts.file("nvidia", "/proc/driver/nvidia/version")
    if is_open and loaded and not below(loaded, least):
        says = f"no peer-memory module; DMA-BUF can serve (EFA driver {loaded}, NVIDIA's open modules)"
        return result(facts, check, Verdict.PASS, says, *evidence, parts=parts)
    return result(facts, check, Verdict.WARN, "no peer-memory path, and DMA-BUF is not sure", *evidence, parts=parts)


def _p2p(device: Device) -> str:
    return "no p2p file (driver before 2.6)" if device.p2p is None else "p2p is empty"


# -- counters


def counters(facts: Facts) -> Iterator[Result]:
    """On the wire, and between driver and card."""
    found, window = facts.counters
    part = facts.part("counters")
    if not found:
        why = unanswered(part) or "no counters"
        stuck = "a stuck card may hold the reader" if part.state.value == "late" else ""
        yield result(facts, "efa.counters", Verdict.UNKNOWN, f"counters: {why}", stuck, parts=("counters",))
        return
    yield _admin(facts, found, window)
    if window is None:
        says = "only one reading was possible; absolute values say nothing"
        yield result(facts, "efa.counters", Verdict.UNKNOWN, says, parts=("counters",))
    else:
        yield _wire(facts, window)


def _wire(facts: Facts, window: Window) -> Result:
    remote, errors = window.growth(*REMOTE), window.growth(*ERRORS)
    timeouts, drops = window.growth(TIMEOUTS), window.growth(DROPS)
    evidence = (*_lines(window), _retransmission(window))
    said = f"in {window.seconds:.0f} s"
    verdict, says = Verdict.PASS, ""
    if remote or errors:
        verdict = Verdict.FAIL
        names = " and ".join(_named(window, *(*REMOTE, *ERRORS)))
        says = f"{names} {said} on {_on({**errors, **remote}, window)}"
    elif timeouts and sum(timeouts.values()) >= facts.limit("efa.counters", "timeouts_warn"):
        verdict, says = (
            Verdict.WARN,
            f"{sum(timeouts.values())} retransmission time-outs {said} on {_on(timeouts, window)}",
        )
    elif drops and sum(drops.values()) >= facts.limit("efa.counters", "drops_warn"):
        verdict, says = Verdict.WARN, f"{sum(drops.values())} receiver drops {said} on {_on(drops, window)}"
    elif (share := _share_pct(window)) >= facts.limit("efa.counters", "retransmitted_pct_warn"):
        verdict, says = Verdict.WARN, f"{share:.1f} % of packets retransmitted {said}"
    elif window.reset:
        verdict, says = Verdict.UNKNOWN, f"{plural(len(window.reset), 'device')} reset their counters {said}"
    else:
        says = _quiet(window, said)
    return result(facts, "efa.counters", verdict, says, *evidence, parts=("counters",))


def _quiet(window: Window, said: str) -> str:
    sent, received = window.total.get("tx_bytes", 0), window.total.get("rx_bytes", 0)
    moving = len(window.growth("tx_bytes", "rx_bytes"))
    traffic = "nothing sent or received"
    if moving:
        each = byte_rate(max(sent, received) / window.seconds / moving)
        rates = f"sends {byte_rate(sent / window.seconds)}, receives {byte_rate(received / window.seconds)}"
        traffic = f"{rates} over {moving} of {plural(len(window.devices), 'device')}, {each} a device"
    lacks = "" if window.has_srd else "; this card or driver has no retransmission counters"
    return f"{traffic}, no trouble {said}{lacks}"


def _named(window: Window, *counters: str) -> list[str]:
    """`3 unresponsive remotes`, for those that grew."""
    words = {
        "unresponsive_remote_events": "unresponsive remotes",
        "impaired_remote_conn_events": "impaired connections",
        "rdma_read_wr_err": "failed RDMA reads",
        "rdma_write_wr_err": "failed RDMA writes",
    }
    return [f"{window.total[name]} {words[name]}" for name in counters if window.total.get(name)]


def _on(devices: Mapping[str, int], window: Window) -> str:
    if len(devices) == len(window.devices) > 1:
        return f"all {len(devices)} devices"
    names = sorted(devices)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} ({len(names)} of {len(window.devices)})"


def _lines(window: Window) -> list[str]:
    """The signs of trouble that grew, device by device; traffic only as a sum."""
    signs = (*REMOTE, *ERRORS, TIMEOUTS, DROPS, RETRANSMITTED)
    rows = [
        f"{device}: " + ", ".join(f"{name} +{values[name]}" for name in signs if values.get(name))
        for device, values in sorted(window.grown.items())
        if any(values.get(name) for name in signs)
    ]
    return rows[:40]


def _share_pct(window: Window) -> float:
    """Retransmitted packets of those sent, in percent; called so and not loss, which nobody counts."""
    sent = window.total.get(SENT, 0)
    return 100.0 * window.total.get(RETRANSMITTED, 0) / sent if sent else 0.0


def _retransmission(window: Window) -> str:
    again = window.total.get(RETRANSMITTED, 0)
    return f"retransmitted {again} of {window.total.get(SENT, 0)} packets ({_share_pct(window):.3f} %)" if again else ""


def _admin(facts: Facts, found: Mapping[str, Mapping[str, int | None]], window: Window | None) -> Result:
    silent = {device: value for device, values in found.items() for name in STUCK if (value := values.get(name))}
    refused = window.growth(*(f"{place}{name}" for name in REFUSED for place in ("", "dev."))) if window else {}
    if silent:
        says = f"{plural(sum(silent.values()), 'command')} without an answer on {', '.join(sorted(silent)[:4])}"
        lines = [f"{device}: no_completion_cmds {value}" for device, value in sorted(silent.items())]
        return result(facts, "efa.admin", Verdict.FAIL, says, *lines, parts=("counters",))
    if refused:
        says = f"{plural(sum(refused.values()), 'refused command')} on {', '.join(sorted(refused)[:4])}"
        lines = [f"{device}: +{value}" for device, value in sorted(refused.items())]
        return result(facts, "efa.admin", Verdict.WARN, says, *lines, parts=("counters",))
    return result(facts, "efa.admin", Verdict.PASS, "every command was answered", parts=("counters",))
