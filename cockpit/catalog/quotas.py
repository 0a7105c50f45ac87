"""Which service quota an instance type counts against."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from cockpit.catalog.reader import load

_LETTERS = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Family:
    """One group of types with common quotas in vCPU; a code is "" where there is no such quota."""

    name: str
    on_demand: str
    spot: str = ""
    more_spot: str = ""
    more_spot_types: tuple[str, ...] = ()

    def codes(self, type_name: str, *, spot: bool) -> tuple[str, ...]:
        """The quotas a type counts against, most important first."""
        if not spot:
            return (self.on_demand,)
        more = self.more_spot and type_name.split(".")[0] in self.more_spot_types
        return tuple(code for code in (self.spot, self.more_spot if more else "") if code)


@cache
def family_of(type_name: str) -> Family:
    """The family of a type by its first letters; all that have none of their own are standard ones."""
    match = _LETTERS.match(type_name)
    letters = match[0] if match else ""
    families = load("quotas")["families"]
    name = next((name for name, entry in families.items() if letters in entry["letters"]), "standard")
    entry = families[name]
    return Family(
        name,
        entry["on_demand"],
        entry.get("spot", ""),
        entry.get("more_spot", ""),
        tuple(entry.get("more_spot_types", ())),
    )
