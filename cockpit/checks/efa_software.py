"""What has to be installed around EFA, in versions that fit the instance generation."""

from __future__ import annotations

from cockpit.catalog.checks import check_fact, least_versions
from cockpit.checks.efa_devices import result
from cockpit.checks.facts import Facts, below, unanswered, version_key
from cockpit.checks.models import Result, Verdict
from cockpit.formats.look import PartState
from cockpit.words import plural


def provider(facts: Facts) -> Result:
    """As many distinct reliable-datagram domains as devices; -61 read as what it is."""
    part, told, check = facts.part("fi_info"), facts.fi_info, "efa.provider"
    lines = part.lines[:8]
    version = facts.versions.get("libfabric", told.provider_version)
    with_version = f", libfabric {version}" if version else ""
    if part.state is PartState.ABSENT:
        says, step = "fi_info is not on the node: libfabric with EFA is not installed", "Run EFA's installer."
        return result(facts, check, Verdict.FAIL, says, *lines, parts=("fi_info",), next_step=step)
    if part.state in (PartState.LATE, PartState.UNASKED):
        return result(facts, check, Verdict.UNKNOWN, f"fi_info {unanswered(part)}", *lines, parts=("fi_info",))
    if told.error:
        says = f"libfabric finds no EFA device ({told.error})" if told.no_device else f"fi_info says {told.error}"
        return result(facts, check, Verdict.FAIL, says, *lines, parts=("fi_info",), next_step=_cause(facts))
    if not part.done and not told.devices:
        says = f"fi_info failed: {unanswered(part)}"
        return result(facts, check, Verdict.UNKNOWN, says, *lines, parts=("fi_info",))
    if len(told.devices) < len(facts.devices):
        missing = sorted({device.name for device in facts.devices} - set(told.devices))
        says = f"libfabric sees {len(told.devices)} of {plural(len(facts.devices), 'device')}{with_version}"
        return result(facts, check, Verdict.FAIL, says, f"not seen: {', '.join(missing[:16])}", parts=("fi_info",))
    fabrics = f"fabrics: {', '.join(told.fabrics[:4])}"
    says = f"{plural(len(told.devices), 'device')}{with_version}"
    return result(facts, check, Verdict.PASS, says, fabrics, parts=("fi_info", "fi_version"))


def _cause(facts: Facts) -> str:
    """The likeliest cause of -61, by what else is known of the node."""
    if not facts.devices:
        return check_fact("efa.devices").next_step
    files = facts.part("uverbs").rows
    if len(files) < len(facts.devices) or any(row[-1] != "rw" for row in files):
        return "The devices are there, but /dev/infiniband/uverbs* is missing or shut: see EFA device files."
    return "Devices and files are there: is another libfabric first in LD_LIBRARY_PATH, or is the node just booting?"


def installer(facts: Facts) -> Result:
    """The version that the installer noted, against the least for this generation."""
    check, version = "efa.installer", facts.installed.version
    least = least_versions(facts.type_name).get("installer", "")
    if not version:
        why = unanswered(facts.part("installed"))
        says = f"efa_installed_packages: {why}" if why else "no note of EFA's installer: installed in another way"
        return result(facts, check, Verdict.UNKNOWN, says, parts=("installed",))
    if least and below(version, least):
        says = f"{version}, {facts.type_name} needs {least}"
        return result(facts, check, Verdict.FAIL, says, *_packages(facts), parts=("installed",))
    return result(facts, check, Verdict.PASS, version, *_packages(facts), parts=("installed",))


def _packages(facts: Facts) -> list[str]:
    names = ("efa", "libfabric-aws", "libfabric-aws-bin", "libnccl-ofi", "aws-ofi-nccl", "rdma-core", "openmpi50-aws")
    packages = facts.installed.packages
    return [f"{name} {version}" for name, version in packages if name in names]


def plugin(facts: Facts) -> Result:
    """There, and not below the least. Several copies are usual; which one is loaded only the job's log tells."""
    check, found, part = "efa.plugin", facts.libraries("plugin"), facts.part("plugin")
    least = least_versions(facts.type_name).get("plugin", "")
    lines = [f"{path}: {version or 'no version inside'}" for path, version in found]
    if not part.done:
        says = f"looking for libnccl-net*.so {unanswered(part)}"
        return result(facts, check, Verdict.UNKNOWN, says, parts=("plugin",))
    if facts.has_gpus is False:
        return result(facts, check, Verdict.NA, "no accelerators", parts=("plugin",))
    if not found:
        says = "no libnccl-net*.so on the node: NCCL falls back to TCP"
        return result(facts, check, Verdict.FAIL, says, parts=("plugin",))
    version = facts.versions.get("plugin", "")
    if not version:
        return result(facts, check, Verdict.PASS, "there, version not told", *lines, parts=("plugin",))
    if least and below(version, least):
        says = f"{version}, {facts.type_name} needs {least}"
        return result(facts, check, Verdict.FAIL, says, *lines, parts=("plugin",))
    copies = f" ({len(found)} copies)" if len(found) > 1 else ""
    return result(facts, check, Verdict.PASS, f"{version}{copies}", *lines, parts=("plugin",))


def nccl(facts: Facts) -> Result:
    """The host's own NCCL; most jobs bring another one."""
    check, version, part = "efa.nccl", facts.versions.get("nccl", ""), facts.part("nccl")
    fact, least = check_fact("efa.nccl"), least_versions(facts.type_name).get("nccl", "")
    lines = [f"{path}: {number or 'no version inside'}" for path, number in facts.libraries("nccl")]
    if not part.done:
        return result(facts, check, Verdict.UNKNOWN, f"looking for libnccl {unanswered(part)}", parts=("nccl",))
    if not version:
        says = "not on the host: jobs bring their own, their log tells which"
        return result(facts, check, Verdict.NA, says, *lines, parts=("nccl",))
    if least and below(version, least):
        return result(
            facts, check, Verdict.FAIL, f"{version}, {facts.type_name} needs {least}", *lines, parts=("nccl",)
        )
    if any(version_key(version)[:2] == version_key(odd) for odd in fact.more["hanging"]):
        says = f"{version} turns errors of EFA into hangs"
        step = fact.more["hanging_next"]
        return result(facts, check, Verdict.WARN, says, *lines, parts=("nccl",), next_step=step)
    return result(facts, check, Verdict.PASS, version, *lines, parts=("nccl",))


def gpu_driver(facts: Facts) -> Result:
    """The one pair of drivers that is known not to fit."""
    check, more = "efa.gpu_driver", check_fact("efa.gpu_driver").more
    nvidia, efa = facts.versions.get("nvidia", ""), facts.versions.get("efa", "")
    if facts.has_gpus is False or (facts.type and facts.type.accelerator.startswith(("Trainium", "Inferentia"))):
        return result(facts, check, Verdict.NA, "no NVIDIA GPUs", parts=("host",))
    if not nvidia or not efa:
        says = "no NVIDIA driver is loaded" if not nvidia else "EFA's driver tells no version"
        return result(facts, check, Verdict.UNKNOWN, says, parts=("host",))
    if not below(nvidia, more["nvidia_from"]) and below(efa, more["needs_efa"]):
        says = f"NVIDIA {nvidia} with EFA {efa}: needs EFA {more['needs_efa']}"
        return result(facts, check, Verdict.FAIL, says, parts=("host",))
    return result(facts, check, Verdict.PASS, f"NVIDIA {nvidia} with EFA {efa}", parts=("host",))


def gdrcopy(facts: Facts) -> Result:
    """Missing only matters where somebody installed it."""
    check, parts = "efa.gdrcopy", ("gdrcopy", "modules")
    there = {row[0] for row in facts.part("gdrcopy").rows}
    if not facts.part("gdrcopy").done:
        return result(facts, check, Verdict.UNKNOWN, unanswered(facts.part("gdrcopy")), parts=parts)
    if "/dev/gdrdrv" in there or "gdrdrv" in facts.modules:
        return result(facts, check, Verdict.PASS, "gdrdrv is loaded", parts=parts)
    if there:
        return result(facts, check, Verdict.WARN, "installed, but gdrdrv is not loaded", *sorted(there), parts=parts)
    return result(facts, check, Verdict.NA, "not installed (optional)", parts=parts)
