"""How a reading is written on the wire: a number, or a short word that says why there is none."""

import json

UNSUPPORTED = "-"
DENIED = "p"

# Return codes of NVML's header that say "this value does not exist here".
_UNSUPPORTED_CODES = (3, 13, 21, 25, 26)
_DENIED_CODE = 4


def code_word(code: int) -> str:
    """The wire word of an NVML return code: `-`, `p`, or `e15`."""
    if code in _UNSUPPORTED_CODES:
        return UNSUPPORTED
    return DENIED if code == _DENIED_CODE else f"e{code}"


def failed(why: str) -> str:
    """The wire word of a failure that has no code."""
    return "?" + why[:80]


def decode(raw: bytes) -> str:
    """A C string as text: what follows the first NUL is dropped, undecodable bytes are replaced."""
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def pci_id(text: str) -> str:
    """`00000000:61:00.0`, `0000:61:00.0` and `61:00.0` as domain:bus:device in lower-case hex, else ''."""
    parts = text.strip().split(".")[0].split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    try:
        domain, bus, device = (int(part, 16) for part in parts)
    except ValueError:
        return ""
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def mib(count: "int | float") -> int:
    """Bytes as whole MiB."""
    return int(count) >> 20


def shrink(row: "list[object]") -> "list[object]":
    """One word instead of a row of which every value failed in the same way."""
    first = row[0] if row else None
    same = isinstance(first, str) and first[:1] in "e?" and all(value == first for value in row)
    return [first] if same else row


def compact(value: object) -> bytes:
    """JSON in as few bytes as the format allows, always ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()


def read_file(path: str, limit: int = 65536) -> "bytes | None":
    """The first bytes of a small file, None where it cannot be read."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(limit)
    except OSError:
        return None


def read_text(path: str) -> str:
    """The same as stripped text; empty where it cannot be read."""
    return decode(read_file(path) or b"").strip()
