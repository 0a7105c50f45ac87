"""What a plan dialog is about, and what it is closed with. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from actions.spec import Option, Options, Plan

Make = Callable[[Options], Plan]


@dataclass(frozen=True, slots=True)
class Question:
    """What a dialog is about. `make` plans for targets that are frozen in it; `fields` are what it asks.

    Without a value for the field named `first` there is no plan; `hints` say what may be typed into it.
    """

    title: str
    make: Make
    options: Options = field(default_factory=Options)
    fields: tuple[Option, ...] = ()
    first: str = ""
    hints: tuple[str, ...] = ()
    note: str = ""
    reason: str = ""  # what is typed already
    instead: Callable[[str], Question] | None = None  # the same targets, another action


@dataclass(frozen=True, slots=True)
class Agreed:
    """A plan that was confirmed, and how: what was typed."""

    plan: Plan
    typed: str
    question: Question
