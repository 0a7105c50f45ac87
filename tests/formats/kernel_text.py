"""Lines of a kernel's log as drivers print them, and how tests read them."""

from __future__ import annotations

import json

from cockpit.formats.kernel_lines import KernelLine
from cockpit.formats.kernel_log import KernelEvent, read_lines

AT = 1_796_000_000.0
BOOT = "d0a1c3b2e4f5061728394a5b6c7d8e9f"

X45 = "NVRM: Xid (PCI:0000:61:00): 45, pid=1496200, name=python, Ch 0000000a"
X79 = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
X94 = (
    "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No"
)
X149 = "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x1 0x2)"
X154 = "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
X154_CLEAR = "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x0 (None)"


def events(*texts: str) -> tuple[KernelEvent, ...]:
    return read_lines(KernelLine(text) for text in texts).events


def one(text: str) -> KernelEvent:
    (event,) = events(text)
    return event


def timed(*pairs: tuple[float, str], boot: str = "") -> tuple[KernelEvent, ...]:
    return read_lines(KernelLine(text, AT + after, boot) for after, text in pairs).events


def journal(**fields: object) -> bytes:
    whole = {"__REALTIME_TIMESTAMP": "1796000000123456", "_BOOT_ID": BOOT, "_TRANSPORT": "kernel", **fields}
    return json.dumps(whole).encode() + b"\n"
