"""NCCL's and the OFI plugin's own log lines -> evidence: which network, which versions, GPUDirect, NVLS."""

from __future__ import annotations

import re
from dataclasses import replace

from cockpit.formats.nccl_env import shown_setting
from cockpit.nccl.models import NcclVersions, NetEvidence
from cockpit.text import printable

_MAX_SHOWN = 300
_MAX_LINE = 2000
_MAX_WARNINGS = 20
_MAX_SETTINGS = 100

_VERSION = re.compile(r"NCCL version (\d[\w.]*)(?:\+cuda([\d.]+))?")
_PLUGIN = re.compile(r"(?:Initializing|Using) aws-ofi-nccl (?:GitHub-dev ?)?([\w.+-]+)")
_LIBFABRIC = re.compile(r"Using Libfabric version ([\w.]+)")
_DRIVER = re.compile(r"cudaDriverVersion (\d{4,6})")
_PROVIDER = re.compile(r"Selected [Pp]rovider is ([\w;-]+)(?:, fabric is ([\w-]+))?(?: \(found (\d{1,4}) nics?\))?")
_PROTOCOL = re.compile(r"Using transport protocol (\w+)")
_NETWORK = re.compile(r"(?:Using network|Assigned NET plugin) ([\w -]+?)(?: to comm.*)?$")
_VIA = re.compile(r" via NET/([\w -]+?)/")
_GDR = re.compile(r"use ring PXN \d GDR ([01])")
_PLATFORM = re.compile(r"Running on (\S+) platform|for platform ?: ?([\w.-]+)")
_RANKS = re.compile(r"\bn[rR]anks (\d{1,7})\b")
_NODES = re.compile(r"\bnNodes (\d{1,6})\b")
_SETTING = re.compile(r"\b((?:NCCL|OFI_NCCL|FI)_[A-Z0-9_]+) set by environment to (.*)")
_NVLS = re.compile(r"NVLS multicast support is (not )?available")
_NVLS_CHANNELS = re.compile(r"\b(\d{1,3}) nvls channels")
_NET_SETTING = re.compile(r"NCCL_(?:NET|NET_PLUGIN) set by environment")
_FALLBACK = (
    "Could not find: libnccl-net.so",
    "Failed to initialize sendrecv protocol",
    "Unable to find a protocol that worked",
    "No eligible providers",
    "aws-ofi-nccl initialization failed",
    "NET/Plugin : No plugin found",
    "NET/Plugin: No plugin found",
)
_HARMLESS = ("Failed to open libibverbs",)


class LogReader:
    """Feed it log lines; `evidence` and `versions` are what they have told so far. Memory is bounded."""

    def __init__(self) -> None:
        self.evidence = NetEvidence()
        self.versions = NcclVersions()

    def version_line(self, text: str) -> bool:
        """NCCL's version, also from the line that it prints without any prefix."""
        found = _VERSION.search(text)
        if found is None:
            return False
        self.versions = replace(self.versions, nccl=found[1], cuda=found[2] or self.versions.cuda)
        return True

    def feed(self, line: str) -> None:
        """Read one line of the form `host:pid:tid [dev] NCCL INFO text`."""
        text = line[:_MAX_LINE].rstrip()
        if "NCCL WARN" in text and not any(words in text for words in _HARMLESS):
            self._warning(text)
        self.version_line(text)
        self._software(text)
        self._network(text)
        self._nvls(text)
        self._size(text)
        if (found := _SETTING.search(text)) and len(self.evidence.settings) < _MAX_SETTINGS:
            setting = {found[1]: shown_setting(found[1], found[2].rstrip(". "))}
            self.evidence = replace(self.evidence, settings={**self.evidence.settings, **setting})

    def _warning(self, text: str) -> None:
        if len(self.evidence.warnings) < _MAX_WARNINGS:
            self.evidence = replace(self.evidence, warnings=(*self.evidence.warnings, _shown(text)))

    def _software(self, text: str) -> None:
        if found := _PLUGIN.search(text):
            self.versions = replace(self.versions, plugin=found[1])
        elif found := _LIBFABRIC.search(text):
            self.versions = replace(self.versions, libfabric=found[1])
        elif found := _DRIVER.search(text):
            number = int(found[1])
            self.versions = replace(self.versions, driver=f"CUDA {number // 1000}.{number % 1000 // 10}")

    def _network(self, text: str) -> None:
        if found := _PROVIDER.search(text):
            self._carries("efa" if found[1] == "efa" else "tcp", text)
            if found[3]:
                nics = int(found[3])
                fewest = nics if self.evidence.nics is None else min(nics, self.evidence.nics)
                self.evidence = replace(self.evidence, nics=fewest)
        elif found := _PROTOCOL.search(text):
            self.evidence = replace(self.evidence, protocol=found[1])
        elif (found := _VIA.search(text)) or (found := _NETWORK.search(text)):
            self._carries(_kind(found[1], self.evidence.transport), text)
        elif not self.evidence.fallback_line and any(words in text for words in _FALLBACK):
            self.evidence = replace(self.evidence, fallback_line=_shown(text))
        if found := _GDR.search(text):
            gdr = found[1] == "1" and self.evidence.gdr is not False
            self.evidence = replace(self.evidence, gdr=gdr)
        elif "/GDRDMA" in text and self.evidence.gdr is None:
            self.evidence = replace(self.evidence, gdr=True)

    def _carries(self, kind: str, text: str) -> None:
        """One more line that names the network; a plugin that some ranks lack makes it `mixed`."""
        known = self.evidence.transport
        if kind in ("", known) or known == "mixed":
            return
        if not known:
            self.evidence = replace(self.evidence, transport=kind, transport_line=_shown(text))
        elif "socket" in (kind, known):
            line = _shown(text) if kind == "socket" else self.evidence.transport_line
            self.evidence = replace(self.evidence, transport="mixed", transport_line=line)

    def _nvls(self, text: str) -> None:
        if found := _NVLS.search(text):
            on: bool | None = found[1] is None and self.evidence.nvls is not False
        elif "NCCL_NVLS_ENABLE set by environment to 0" in text:
            on = False
        elif (found := _NVLS_CHANNELS.search(text)) and self.evidence.nvls is None:
            on = found[1] != "0"
        else:
            return
        line = self.evidence.nvls_line if on == self.evidence.nvls else _shown(text)
        self.evidence = replace(self.evidence, nvls=on, nvls_line=line)

    def _size(self, text: str) -> None:
        if found := _PLATFORM.search(text):
            self.evidence = replace(self.evidence, platform=printable(found[1] or found[2]).rstrip(","))
        if found := _RANKS.search(text):
            self.evidence = replace(self.evidence, ranks=max(int(found[1]), self.evidence.ranks or 0))
        if found := _NODES.search(text):
            self.evidence = replace(self.evidence, nodes=max(int(found[1]), self.evidence.nodes or 0))


def _kind(network: str, known: str) -> str:
    """efa, socket or ib for the name that NCCL gives a network; libfabric over tcp keeps its provider's kind."""
    name = network.strip().lower()
    if "libfabric" in name or name in ("ofi", "aws-ofi"):
        return known if known in ("efa", "tcp") else "efa"
    return {"socket": "socket", "ib": "ib", "ibext": "ib"}.get(name, "ib" if name.startswith("ib") else "")


def _shown(text: str) -> str:
    return printable(text.strip()[:_MAX_SHOWN])
