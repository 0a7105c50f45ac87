"""Starting and stopping a ParallelCluster fleet: the one conditional write, and when it is legal. Pure.

It is what `pcluster update-compute-fleet` does: the write carries the status that was seen, so that of two people
who act at the same time one is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cockpit.aws_models import AwsScope, FleetItem, Stack
from cockpit.aws_orders import NOW, AwsOrder


class Wish(Enum):
    """What the fleet shall be: the word to ask for, the states on the way, the state at the end."""

    STOP = ("STOP_REQUESTED", "STOPPING", "STOPPED")
    START = ("START_REQUESTED", "STARTING", "RUNNING")

    @property
    def request(self) -> str:
        return self.value[0]

    @property
    def under_way(self) -> tuple[str, str]:
        return self.value[0], self.value[1]

    @property
    def end(self) -> str:
        return self.value[2]


_STATES = frozenset({*Wish.STOP.value, *Wish.START.value, "PROTECTED"})


@dataclass(frozen=True, slots=True)
class Decision:
    """Exactly one of the three: the order to give, why none is needed, why none may be given."""

    order: AwsOrder | None = None
    done: str = ""
    refusal: str = ""


def decide(wish: Wish, fleet: FleetItem, stack: Stack | None, scope: AwsScope) -> Decision:
    """What to write so that the fleet becomes what is wished for."""
    if stack is not None and not stack.takes_orders:
        return Decision(refusal=_stack_words(stack))
    if fleet.status not in _STATES:
        return Decision(refusal=f"the fleet's status is {fleet.status}, which this cockpit does not know")
    if fleet.status == wish.end:
        return Decision(done=f"the fleet is {fleet.status} already")
    if fleet.status in wish.under_way:
        return Decision(done=f"the fleet is {fleet.status}: it is on its way already, nothing is written")
    return Decision(_write(wish, fleet, scope))


def _stack_words(stack: Stack) -> str:
    if stack.status.endswith("_IN_PROGRESS"):
        return f"stack {stack.name} is {stack.status}: wait until it is done (ParallelCluster refuses, too)"
    return f"stack {stack.name} is {stack.word}: ParallelCluster takes no orders in that state"


def _write(wish: Wish, fleet: FleetItem, scope: AwsScope) -> AwsOrder:
    key = {"Id": {"S": "COMPUTE_FLEET"}}
    new, seen, now = {"S": wish.request}, {"S": fleet.status}, {"S": NOW}
    if fleet.old_form:  # before 3.2.0: plain attributes, written as a whole
        return AwsOrder(
            "dynamodb",
            "put_item",
            {
                "TableName": scope.fleet_table,
                "Item": {**key, "Status": new, "LastUpdatedTime": now},
                "ConditionExpression": "#s = :seen",
                "ExpressionAttributeNames": {"#s": "Status"},
                "ExpressionAttributeValues": {":seen": seen},
            },
            scope.region or "",
        )
    return AwsOrder(
        "dynamodb",
        "update_item",
        {
            "TableName": scope.fleet_table,
            "Key": key,
            "UpdateExpression": "SET #d.#s = :new, #d.#t = :now",
            "ConditionExpression": "#d.#s = :seen",
            "ExpressionAttributeNames": {"#d": "Data", "#s": "status", "#t": "lastStatusUpdatedTime"},
            "ExpressionAttributeValues": {":new": new, ":seen": seen, ":now": now},
            "ReturnValues": "ALL_NEW",
        },
        scope.region or "",
    )
