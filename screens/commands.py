"""What palette and menus offer, as data: entries from providers, and the command a choice stands for. No Textual.

The providers of the reading commands are in palette_entries.py and subject_entries.py; actions that change a
cluster add their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cockpit.cluster import View
from cockpit.models import Health, Problem
from screens.keymap import DEFAULT, Keymap
from screens.lines import Subject


@dataclass(frozen=True, slots=True)
class Command:
    """What was chosen: the id of a line of the key table or of a verb (node, job, theme, ...), and its argument.

    The argument of node, gpu, job and queue is the key that Subject has for it.
    """

    id: str
    argument: str = ""


# Commands that change the cluster, or whether it may be changed.
CHANGES = ("change", "undo", "arm", "disarm", "nccl-run", "nccl-sweep", "check-all", "efa-pair", "gpu-dcgm")

# Commands that are about the cockpit itself, not about what is in front.
OF_THE_APP = ("cluster", "clusters", "theme", "switch")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that can be done. `disabled` says why not now; an entry with `unfinished` still needs an argument."""

    command: Command
    text: str  # what one types for it
    help: str  # one sentence, or what is known of a name
    key: str = ""  # as shown, several apart by blanks
    tier: int = 0  # 0 reads; how hard a change is to confirm
    disabled: str = ""
    health: Health = Health.OK
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """Where somebody is, for providers. `scopes` are those of the pane in front, as the footer gets them.

    `subject` is what the cursor is on, `marked` what is marked besides. `disabled` maps ids to the reason why that
    is not possible now, for what only the caller can know.
    """

    view: View
    scopes: tuple[str, ...] = ("grid",)
    subject: Subject | None = None
    marked: tuple[Subject, ...] = ()
    problems: Sequence[Problem] = ()
    keymap: Keymap = DEFAULT
    disabled: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    clusters: tuple[str, ...] = ()
    theme: str = ""
    themes: tuple[str, ...] = ()
    switches: Mapping[str, bool] = field(default_factory=dict)  # of the cockpit itself: what is on
    changes: tuple[Entry, ...] = ()  # everything that changes the cluster

    @property
    def targets(self) -> tuple[Subject, ...]:
        """What an action is about: the marked, else what the cursor is on, else nothing."""
        return self.marked or (() if self.subject is None else (self.subject,))


Provider = Callable[[Context], Iterable[Entry]]


@dataclass(frozen=True, slots=True)
class Name:
    """Something that a verb can be given: `value` for the command, `shown` for the eye, `note` what is known of it."""

    value: str
    shown: str
    note: str = ""
    health: Health = Health.OK


@dataclass(frozen=True, slots=True)
class Names:
    """Every name that a verb can be given. There may be 20,000, so that only the few that are shown are told in full.

    `texts` and, in second place, `more` are searched; `tell` makes the name at an index.
    """

    texts: Sequence[str]
    tell: Callable[[int], Name]
    more: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verb:
    """A word that takes a name, such as `node`. `resolve` finds what is not in `names`, such as a task of an array.

    `lacking` says why there are no names at all; `quick` names are also found without the verb. With `as_typed`
    what `resolve` finds comes before the names that are only alike: `5m` is not `15m`.
    """

    id: str
    example: str
    help: str
    names: Callable[[Context], Names]
    lacking: str
    quick: bool = False
    quick_from: int = 2  # letters, before its names are also looked for without the verb
    resolve: Callable[[Context, str], Name | None] = lambda context, text: None
    as_typed: bool = False

    def entry(self, name: Name) -> Entry:
        """The entry of one name."""
        return Entry(Command(self.id, name.value), f"{self.id} {name.shown}", name.note, health=name.health)
