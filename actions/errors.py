"""The one error of this package: an action that is not planned or not run."""

from __future__ import annotations

from enum import Enum


class Refusal(str, Enum):
    """Why an action does not happen; exit codes follow from it."""

    USAGE = "usage"  # what was asked for makes no sense: unknown node, no reason, impossible number
    REFUSED = "refused"  # read-only, stale, not confirmed, changed meanwhile, nothing to do
    UNREACHED = "unreached"  # what the plan rests on could not be read


class ActionError(Exception):
    """str() is one harmless line for the person in front of the screen."""

    def __init__(self, kind: Refusal, text: str) -> None:
        super().__init__(text)
        self.kind = kind
