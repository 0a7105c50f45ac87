"""`fi_info -p efa`: which devices libfabric can use, and what its error -61 really means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cockpit.text import printable

NO_DATA = -61
_ERROR = re.compile(r"fi_getinfo: (-?\d{1,6})(?: \((.{0,80})\))?")
_PAIR = re.compile(r"\s*(provider|fabric|domain|version|type|protocol): ?(.*)")
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")
_MOST = 4096


@dataclass(frozen=True, slots=True)
class FiInfo:
    """`devices`: names of the devices with a reliable-datagram endpoint, each once. `error` 0: there was none."""

    devices: tuple[str, ...] = ()
    entries: int = 0
    fabrics: tuple[str, ...] = ()
    provider_version: str = ""  # of libfabric, as 1.22 or 2.4
    error: int = 0
    error_text: str = ""

    @property
    def no_device(self) -> bool:
        """True for -61: this process finds no EFA device it may use. A security group is never the cause."""
        return self.error == NO_DATA


def parse_fi_info(text: str | Iterable[str]) -> FiInfo:
    """Count domains that end in -rdm: a device has one to three entries, by version and by endpoint type."""
    lines = text.splitlines() if isinstance(text, str) else list(text)
    found: dict[str, list[str]] = {}
    error, error_text = 0, ""
    for line in lines[:_MOST]:
        if told := _ERROR.search(line):
            error, error_text = int(told[1]), printable(told[2] or "")
        elif pair := _PAIR.fullmatch(line.rstrip()):
            found.setdefault(pair[1], []).append(printable(pair[2].strip()[:80]))
    domains = dict.fromkeys(found.get("domain", ()))
    versions = {libfabric_version(word) for word in found.get("version", ())} - {""}
    return FiInfo(
        devices=tuple(name.removesuffix("-rdm") for name in domains if name.endswith("-rdm")),
        entries=len(found.get("provider", ())),
        fabrics=tuple(dict.fromkeys(found.get("fabric", ()))),
        provider_version=next(iter(versions)) if len(versions) == 1 else "",
        error=error,
        error_text=error_text,
    )


def libfabric_version(word: str) -> str:
    """`122.0` is libfabric 1.22, `204.0` is 2.4; "" for the scheme of very old providers, which tells nothing."""
    found = _VERSION.fullmatch(word)
    number = int(found[1]) if found else 0
    return f"{number // 100}.{number % 100}" if number >= 100 else ""


def parse_fi_version(text: str) -> str:
    """`fi_info --version`: the version of libfabric, such as 1.22.0amzn4.0; "" when it tells none."""
    found = dict(re.findall(r"^\s*(libfabric|fi_info): ?(\S{1,60})", text, re.MULTILINE))
    return printable(found.get("libfabric") or found.get("fi_info") or "")
