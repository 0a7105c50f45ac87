"""Answers about prices to numbers: the Pricing API's products and EC2's spot history. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cockpit.formats.aws_ec2 import epoch, text

Answer = Mapping[str, Any]


def parse_on_demand(pages: Iterable[Answer]) -> float | None:
    """USD per hour on demand out of GetProducts' pages; None when there is none or when several contradict.

    Each element is a JSON text of its own. A price of 0 belongs to offers that are not sold by the hour.
    """
    prices = {price for page in pages for item in page.get("PriceList") or () for price in _prices(item)}
    return prices.pop() if len(prices) == 1 else None


def _prices(item: object) -> Iterable[float]:
    product = json.loads(item) if isinstance(item, str) else item
    if not isinstance(product, Mapping):
        return
    for term in ((product.get("terms") or {}).get("OnDemand") or {}).values():
        for dimension in (term.get("priceDimensions") or {}).values():
            price = _number((dimension.get("pricePerUnit") or {}).get("USD"))
            if price and str(dimension.get("unit", "Hrs")) == "Hrs":
                yield price


def parse_spot(pages: Iterable[Answer]) -> dict[tuple[str, str], float]:
    """(type, zone) -> USD per hour, the newest of each, out of DescribeSpotPriceHistory's pages."""
    newest: dict[tuple[str, str], tuple[float, float]] = {}
    for page in pages:
        for entry in page.get("SpotPriceHistory") or ():
            price, at = _number(entry.get("SpotPrice")), epoch(entry.get("Timestamp")) or 0.0
            key = text(entry.get("InstanceType")), text(entry.get("AvailabilityZone"))
            if price is not None and at >= newest.get(key, (-1.0, 0.0))[0]:
                newest[key] = at, price
    return {key: price for key, (_, price) in newest.items()}


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
