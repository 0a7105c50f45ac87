"""The bundled on-demand list prices, with their date and region."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load


@dataclass(frozen=True, slots=True)
class ListPrice:
    """USD per hour of one instance type, on demand; where and when it holds, and who says so."""

    type: str
    usd_h: float
    region: str
    as_of: str
    source: str


def priced_types() -> tuple[str, ...]:
    """Every type of the list."""
    return tuple(load("prices")["types"])


@cache
def list_price(name: str) -> ListPrice | None:
    """The bundled price of a type; None when there is none."""
    table = load("prices")
    entry = table["types"].get(name)
    if entry is None:
        return None
    region, source = entry.get("region", table["region"]), entry.get("sure", table["source"])
    return ListPrice(name, entry["usd_h"], region, str(table["as_of"]), source)
