"""What an hour costs: the Pricing API and the spot history where they may be asked, else the bundled list.

List prices are kept on disk for a day; spot prices are asked for again every few minutes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cockpit.aws_models import Instance, Market
from cockpit.catalog.prices import list_price
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.config import state_dir
from cockpit.export import private_dir
from cockpit.formats.aws_prices import parse_on_demand, parse_spot
from cockpit.models import Fault, FaultError
from cockpit.price_models import Price, Prices, Wanted
from cockpit.sources.aws_client import AwsCalls

KEEP_S = 86_400.0
SPOT_EVERY_S = 300.0
REFUSED_FOR_S = 3600.0
API_REGION = "us-east-1"  # the Pricing API lives in three regions and knows the prices of all
_FILTERS = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


class PriceReads:
    """Finds prices for instances; one object for each cluster, used by one thread at a time."""

    def __init__(self, calls: AwsCalls, clock: Clock = SYSTEM_CLOCK, folder: Path | None = None) -> None:
        self._calls, self._clock = calls, clock
        self._file = (folder or state_dir()) / "prices.json"
        self._listed: dict[str, tuple[float, float | None]] = {}  # region/type -> (asked at, USD/h; None: none told)
        self._spot: dict[tuple[str, str], float] = {}
        self._spot_at: float | None = None
        self._refused: dict[str, tuple[float, Fault]] = {}
        self._lock = threading.Lock()
        self._loaded = False

    def find(self, instances: Iterable[Instance], region: str) -> Prices:
        """A price for every kind of instance that is there; what cannot be found out stays out."""
        wanted = {Wanted.of(instance) for instance in instances if instance.type}
        with self._lock:
            self._load()
            spot = sorted({one.type for one in wanted if one.market is Market.SPOT})
            if spot:
                self._read_spot(spot)
            found = {one: price for one in wanted if (price := self._price(one, region)) is not None}
            return Prices(found, tuple(fault for _, fault in self._refused.values()))

    def _price(self, wanted: Wanted, region: str) -> Price | None:
        if wanted.market is Market.CAPACITY_BLOCK or wanted.type.startswith("ml."):
            return None  # paid in advance; and SageMaker has prices of its own
        if wanted.market is Market.SPOT:
            usd_h = self._spot.get((wanted.type, wanted.zone))
            return None if usd_h is None else Price(usd_h, "spot", wanted.zone, "now")
        return self._list_price(wanted.type, region)

    def _list_price(self, name: str, region: str) -> Price | None:
        asked = self._listed.get(f"{region}/{name}")
        if (asked is None or self._clock.now() - asked[0] > KEEP_S) and not self._is_refused("pricing") and region:
            asked = self._ask(name, region) or asked
        if asked is not None and asked[1] is not None:
            day = datetime.fromtimestamp(asked[0], timezone.utc).date().isoformat()
            return Price(asked[1], "list price", region, day)
        bundled = list_price(name)
        if bundled is None:
            return None
        return Price(bundled.usd_h, "bundled list price", bundled.region, bundled.as_of)

    def _ask(self, name: str, region: str) -> tuple[float, float | None] | None:
        fields = {"instanceType": name, "regionCode": region, **_FILTERS}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]
        what = f"asking for the price of {name}"
        try:
            pages = self._calls.pages(
                "pricing", "get_products", what, region=API_REGION, ServiceCode="AmazonEC2", Filters=filters
            )
            answer = self._clock.now(), parse_on_demand(pages)
        except FaultError as error:
            self._refused["pricing"] = self._clock.now(), error.fault
            return None
        self._refused.pop("pricing", None)
        self._listed[f"{region}/{name}"] = answer
        self._save()
        return answer

    def _read_spot(self, types: list[str]) -> None:
        now = self._clock.now()
        known = {name for name, _ in self._spot}
        fresh = self._spot_at is not None and now - self._spot_at < SPOT_EVERY_S and known >= set(types)
        if fresh or self._is_refused("spot"):
            return
        try:
            pages = self._calls.pages(
                "ec2",
                "describe_spot_price_history",
                "asking for spot prices",
                InstanceTypes=types,
                ProductDescriptions=["Linux/UNIX"],
                StartTime=datetime.fromtimestamp(now, timezone.utc),
            )
            self._spot, self._spot_at = parse_spot(pages), now
        except FaultError as error:
            self._refused["spot"] = now, error.fault
        else:
            self._refused.pop("spot", None)

    def _is_refused(self, what: str) -> bool:
        refused = self._refused.get(what)
        return refused is not None and self._clock.now() - refused[0] < REFUSED_FOR_S

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        try:
            told: Any = json.loads(self._file.read_text(encoding="utf-8"))
            self._listed = {str(k): (float(v["at"]), None if v["usd_h"] is None else float(v["usd_h"]))
                            for k, v in told.items()}  # fmt: skip
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            self._listed = {}  # no cache, or a broken one: it is only a cache

    def _save(self) -> None:
        told = {key: {"at": at, "usd_h": usd_h} for key, (at, usd_h) in self._listed.items()}
        new = self._file.with_suffix(".new")
        try:
            private_dir(self._file.parent)
            new.write_text(json.dumps(told), encoding="utf-8")
            new.chmod(0o600)
            new.replace(self._file)
        except OSError:
            return  # without it the prices are asked for again


def bundled(instances: Iterable[Instance]) -> Prices:
    """What the bundled list knows, without asking anybody; spot and capacity blocks are not in it."""
    found: dict[Wanted, Price] = {}
    for instance in instances:
        price = list_price(instance.type) if instance.market in (None, Market.ON_DEMAND) else None
        if price is not None:
            found[Wanted.of(instance)] = Price(price.usd_h, "bundled list price", price.region, price.as_of)
    return Prices(found)
