"""What can be done with the thing under the cursor, each with the reason when it cannot. Pure, no Textual."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from screens import subjects
from screens.commands import Command, Context, Entry
from screens.key_line import Key
from screens.key_table import EVERYWHERE
from screens.keymap import key_of

Reason = Callable[[Context], str]


def _always(context: Context) -> str:
    return ""


def _something(context: Context) -> str:
    return "" if context.targets else subjects.NOTHING


def _open(context: Context) -> str:
    return "" if context.subject else subjects.NOTHING


def _output(context: Context) -> str:
    return subjects.output_reason(context.view, context.subject)


def _diagnose(context: Context) -> str:
    return subjects.diagnose_reason(context.view, context.subject)


def _ssh(context: Context) -> str:
    return subjects.shell_node(context.view, context.subject)[1]


def _acknowledge(context: Context) -> str:
    return subjects.acknowledge_reason(context.problems, context.subject)


# In the order of the menu; those whose scope is not in front are left out.
_ACTIONS: tuple[tuple[str, Reason], ...] = (
    ("grid.open", _open),
    ("app.explain", _always),
    ("subject.output", _output),
    ("subject.diagnose", _diagnose),
    ("checks.efa", _always),
    ("checks.health", _always),
    ("subject.ssh", _ssh),
    ("subject.acknowledge", _acknowledge),
    ("grid.copy", _something),
    ("text.copy", _always),
    ("subject.copy_menu", _something),
    ("grid.export", _always),
)
IDS = frozenset(key_id for key_id, _ in _ACTIONS)


def subject_entries(context: Context) -> Iterator[Entry]:
    """Reading what the cursor is on: open, explain, output, diagnosis, shell, acknowledge, copy, export."""
    for key_id, reason in _ACTIONS:
        key = key_of(key_id)
        if key.scope in (*context.scopes, *EVERYWHERE):
            yield key_entry(key, context, reason(context))


def key_entry(key: Key, context: Context, reason: str = "") -> Entry:
    """The entry of a line of the key table; what the caller knows against it comes before `reason`."""
    why = context.disabled.get(key.id, reason)
    return Entry(Command(key.id), key.title, key.help, context.keymap.shown(key), disabled=why)


def targets_title(context: Context) -> str:
    """What a menu of these entries is about: `node p5-3`, `4 nodes`, or that nothing is chosen."""
    if len(context.targets) > 1:
        return f"{len(context.targets):,} marked"
    return subjects.title(context.targets[0], context.problems) if context.targets else "nothing under the cursor"
