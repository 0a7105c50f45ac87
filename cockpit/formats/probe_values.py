"""The words and rows of the probe's protocol, read without trust in who sent them."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

from cockpit.catalog.gpu_codes import ReturnKind, nvml_return
from cockpit.gpu_models import NOT_READ, Lack, Missing, Value
from cockpit.text import printable

MAX_LINE = 512 * 1024
MAX_TEXT = 200
_MAX_DIGITS = 18
_LIMIT = 1e15  # beyond it a number is nonsense, and no longer exact as a float
_CODE = re.compile(r"e(\d{1,3})")
_GARBLED = Missing(Lack.FAILED, "unreadable value")
_INVALID_ARGUMENT = 2
_YEAR_S = 366 * 86400.0


def parse_line(line: bytes) -> dict[str, Any]:
    """One line as a JSON object; raises ValueError with the reason for anything else."""
    if len(line) > MAX_LINE:
        raise ValueError(f"a line of {len(line)} bytes")
    try:
        found = json.loads(
            line.decode("utf-8", "replace"), parse_int=_integer, parse_constant=lambda _: "?not a number"
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no JSON: {str(error)[:60]}") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _integer(digits: str) -> int | str:
    # Turning a million digits into an int takes seconds on a Python without the limit of 3.10.7.
    return int(digits) if len(digits) <= _MAX_DIGITS else "?too large"


def value(raw: object) -> Value:
    """A reading of the protocol: a number, or a Missing with the reason."""
    if type(raw) is int:  # by far the most frequent; bool is no number here
        return float(raw) if -_LIMIT < raw < _LIMIT else _GARBLED
    if isinstance(raw, float):
        return raw if math.isfinite(raw) and abs(raw) < _LIMIT else _GARBLED
    if isinstance(raw, str):
        return _word(raw[:MAX_TEXT])
    return NOT_READ if raw is None else _GARBLED


@lru_cache(maxsize=1024)
def _word(word: str) -> Missing:
    if word == "-":
        return Missing(Lack.UNSUPPORTED, "not supported")
    if word == "p":
        return Missing(Lack.DENIED, "not permitted")
    if match := _CODE.fullmatch(word):
        return nvml_missing(int(match[1]))
    return Missing(Lack.FAILED, printable(word[1:]) if word.startswith("?") else "unreadable value")


def nvml_missing(code: int) -> Missing:
    """What an NVML return code says of the value that was asked for."""
    told = nvml_return(code)
    lacks = {ReturnKind.UNSUPPORTED: Lack.UNSUPPORTED, ReturnKind.DENIED: Lack.DENIED, ReturnKind.GPU: Lack.LOST}
    # A single question may be refused as invalid by a GPU that is well.
    lack = Lack.FAILED if code == _INVALID_ARGUMENT else lacks.get(told.kind, Lack.FAILED)
    return Missing(lack, told.word, code)


def text(raw: object, limit: int = MAX_TEXT) -> str:
    """A string made harmless and cut; empty for anything else."""
    return printable(raw[:limit]) if isinstance(raw, str) else ""


def number(raw: object) -> float | None:
    """A finite number of sane size, None for anything else."""
    found = value(raw)
    return None if isinstance(found, Missing) else found


def wall_time(raw: object, now: float) -> float | None:
    """Seconds since the epoch; None for what is more than a year away from `now`, which no clock of a node means."""
    found = number(raw)
    return None if found is None or abs(found - now) > _YEAR_S else found


def whole(raw: object) -> int | None:
    """An integer, None for anything else."""
    return raw if type(raw) is int else None


def items(raw: object, limit: int) -> list[Any]:
    """At most `limit` items of a list; empty for anything else."""
    return raw[:limit] if isinstance(raw, list) else []


def at(row: list[Any], place: int) -> Any:
    """row[place], None where the row is shorter."""
    return row[place] if place < len(row) else None
