"""What an hour of an instance costs, and where that number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.aws_models import Instance, Market
from cockpit.models import Fault


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a price depends on: the zone matters for spot only."""

    type: str
    market: Market | None
    zone: str = ""

    @classmethod
    def of(cls, instance: Instance) -> Wanted:
        return cls(instance.type, instance.market, instance.zone if instance.market is Market.SPOT else "")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per hour. `source`: list price (asked), bundled list price, or spot; `where` and `as_of` it holds."""

    usd_h: float
    source: str
    where: str
    as_of: str


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices found, and why others could not be asked for."""

    found: Mapping[Wanted, Price] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def of(self, instance: Instance) -> Price | None:
        """The price of an instance's hour; None when nobody knows it."""
        return self.found.get(Wanted.of(instance))
