"""Every key of the cockpit in one table: bindings, footer, help, palette and docs/KEYS.md derive from it.

Lower case never changes a cluster; capitals are kept for what changes or loads it (see docs/ARCHITECTURE.md).
One id is one meaning in every pane, and the id is what a user's `keys:` entry remaps. Imports no Textual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType

from actions.table import ACTIONS
from screens.key_line import QUIT, Key

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "app": "Everywhere",
        "always": "Always",
        "overview": "In the overview",
        "subject": "On what the cursor is on, and in its details",
        "change": "Changes of the cluster: each shows its plan and asks first",
        "grid": "In a table",
        "gpus": "With the GPUs",
        "checks": "With the checks",
        "text": "In details and help",
        "output": "In a job's output",
        "hang": "In a job's diagnosis",
        "filter": "While typing a filter",
        "palette": "In the palette",
        "menu": "In a menu",
        "columns": "In the list of columns",
        "lineup": "Over all clusters",
    }
)
# These work wherever a pane is in front, besides the scopes of the pane itself.
EVERYWHERE = ("subject", "change", "app", "always")
# Scopes that can be heard at the same time: there one key must not stand for two things.
TOGETHER = (
    (*EVERYWHERE, "grid", "gpus"),
    (*EVERYWHERE, "grid", "checks"),
    (*EVERYWHERE, "grid", "overview"),
    (*EVERYWHERE, "text", "output"),
    (*EVERYWHERE, "text", "hang"),
    ("filter",),
    ("palette",),
    ("menu",),
    ("columns",),
    ("grid", "lineup"),
)

# Capitals that are kept for what changes or loads a cluster, and for nothing else.
CAPITALS: Mapping[str, str] = MappingProxyType(
    {
        "D": "drain", "R": "resume", "B": "reboot", "T": "replace", "S": "scale a queue", "E": "EFA check",
        "C": "health check", "N": "NCCL test", "H": "hang diagnosis", "K": "cancel", "Q": "requeue",
        "L": "hold or release", "P": "power: start or stop the cluster",
    }
)  # fmt: skip
OWN_WAY = frozenset("NHEC")  # capitals that open something of their own, with a plan only where they change anything
# Those of them that no action has yet.
RESERVED: Mapping[str, str] = MappingProxyType(
    {key: words for key, words in CAPITALS.items() if key not in {*OWN_WAY, *(action.key for action in ACTIONS)}}
)
# What the cursor is on, or the pane is about: beside the scopes of a pane, for the last line to show what fits.
ON = ("node", "job", "queue", "nccl")
_FOOTERS: Mapping[str, tuple[tuple[str, ...], int]] = MappingProxyType(
    {
        "drain": (("node",), 2), "resume": (("node",), 4), "cancel": (("job",), 2), "requeue": (("job",), 4),
        "scale": (("queue",), 8), "stop": (("grid",), 5),
    }
)  # fmt: skip
_TITLES: Mapping[str, str] = MappingProxyType({"stop": "power"})  # where those of the actions would take too much room


def _change_keys() -> tuple[Key, ...]:
    """One line for each key of the table of actions; `L` stands for hold and for release."""
    keyed = [action for action in ACTIONS if action.key]
    lines = []
    for letter, same in groupby(keyed, lambda action: action.key):
        of = tuple(same)
        footer, drop = _FOOTERS.get(of[0].id, ((), 0))
        title = _TITLES.get(of[0].id) or "/".join(action.title for action in of)
        words = " ".join(action.help for action in of)
        # The palette has a line for each action, so these are not listed.
        lines.append(
            Key(f"change.{of[0].id}", letter, f"change('{of[0].id}')", title, words, "change", footer, first=True,
                drop=drop, listed=False)
        )  # fmt: skip
    return tuple(lines)


_PANES = ("grid", "text", "output")  # those of a diagnosis are those of a text

# The footer shows its keys in this order.
KEYS: tuple[Key, ...] = (
    Key("pane.overview", "1", "pane('overview')", "overview", "Problems first, then the panes at a glance.", "app",
        _PANES, first=True),
    Key("pane.nodes", "2", "pane('nodes')", "nodes", "Show the nodes.", "app", _PANES, first=True),
    Key("pane.gpus", "3", "pane('gpus')", "gpus", "Show the GPUs.", "app", _PANES, first=True),
    Key("pane.queue", "4", "pane('queue')", "queue", "Show the queue.", "app", _PANES, first=True),
    Key("pane.nccl", "5", "pane('nccl')", "NCCL", "NCCL tests: what was measured, how it compares, the trend.", "app",
        _PANES, first=True),
    Key("pane.checks", "6", "pane('checks')", "checks", "EFA and health checks of the nodes, worst first.", "app",
        _PANES, first=True),
    Key("pane.storage", "7", "pane('storage')", "storage", "What is mounted on the nodes, how full it is, what hangs.",
        "app", _PANES, first=True),
    Key("pane.cost", "8", "pane('cost')", "cost", "What runs costs by the hour, and what of it does nothing.", "app",
        _PANES, first=True),
    Key("pane.log", "9", "pane('log')", "log", "What the cockpit did and met: errors in full, and the audit.", "app",
        _PANES, first=True),
    Key("app.filter", "slash", "filter", "filter", "Show only lines with these words; `!` inverts, `field:value`.",
        "app", ("grid",), first=True),
    Key("overview.next", "tab", "next_panel(1)", "next", "The next panel.", "overview", ("overview",), first=True,
        listed=False),
    Key("overview.previous", "shift+tab", "next_panel(-1)", "previous", "The panel before.", "overview", first=True,
        listed=False),
    Key("gpus.metric", "m", "metric", "metric", "The next metric on the heatmap.", "gpus", ("gpus",)),
    Key("checks.view", "m", "check_view", "view", "The next of EFA checks, health checks and versions.", "checks",
        ("checks",), drop=3),
    Key("gpus.jobs", "c", "colour_by_job", "by job", "Colour by job, or by value again.", "gpus", ("gpus",), drop=3),
    Key("grid.open", "enter,d", "open", "details", "Everything known about this line.", "grid", ("grid",), drop=6),
    Key("grid.problems", "exclamation_mark", "problems_only", "problems", "Only what deviates, or all again.", "grid",
        ("grid",), drop=7),
    *_change_keys(),
    Key("nccl.run", "N", "screen.nccl_test", "NCCL test",
        "Measure idle nodes: form and plan come first. While one runs: how it goes.", "grid", ("nccl",), first=True,
        listed=False),
    Key("subject.diagnose", "H", "diagnose", "why it hangs",
        "Which rank of the job hangs, on which node, why, and what to do: only reads.", "subject", ("job",), first=True,
        drop=3),
    Key("hang.keep", "x", "keep_evidence", "capture",
        "Write all evidence about the job into one file, before it is ended.", "hang", ("hang",)),
    Key("checks.efa", "E", "check('efa')", "EFA check", "Is it the network? Ask the marked nodes, or this one.",
        "subject", ("checks",), first=True, drop=3),
    Key("checks.health", "C", "check('health')", "health check",
        "GPUs, memory, disks, clock: the marked nodes, or this one.", "subject", ("checks",), first=True, drop=3),
    Key("text.open", "enter", "open", "follow", "Open what the underlined words lead to.", "text", ("text",), drop=4),
    Key("output.error", "f", "first_error", "first error",
        "The first error in all of the file, and what it means; there, the next one.", "output", ("output",)),
    Key("output.pager", "b", "pager", "pager", "Read the file in $PAGER on its machine.", "output", ("output",),
        drop=4),
    Key("text.search", "slash", "search", "search", "Find words; a capital letter makes case matter.", "text",
        ("text", "output"), first=True),
    Key("text.copy", "y", "copy_text", "copy", "Copy this text.", "text", ("text",), drop=3),
    Key("app.explain", "e", "explain", "explain", "What it means here, in plain words, and what to do.", "app",
        _PANES, first=True, drop=2),
    Key("app.actions", "a", "action_menu", "actions", "Everything that can be done here, and why not.", "app",
        _PANES, first=True, drop=1),
    Key("app.command", "colon", "palette", "go to", "Go to a node, job, queue or user, or run anything by its name.",
        "app", _PANES, first=True, drop=7, listed=False),
    Key("app.palette", "ctrl+p", "palette", "go to", "The same, also while a filter is typed.", "app", first=True,
        listed=False),
    Key("app.help", "question_mark,f1", "help", "help", "What every key does here.", "app", _PANES),
    replace(QUIT, footer=_PANES),
    Key("app.back", "escape", "back", "back", "Close this, clear the filter, or leave the mark mode.", "app",
        ("text", "output"), listed=False),
    Key("app.refresh", "r", "refresh_now", "refresh", "Read everything again now.", "app"),
    Key("app.pause", "p", "pause", "pause", "Stop or resume reading; the last values stay, with their age.", "app"),
    Key("app.runs", "u", "runs", "runs", "The change that runs, or the last: how it goes, and the way back.", "app",
        first=True),
    Key("app.redraw", "ctrl+l", "redraw", "redraw", "Draw the whole screen again.", "app"),
    Key("subject.output", "o", "output", "output", "What the job writes; there, its other stream.", "subject",
        ("output",), first=True, drop=3),
    Key("subject.ssh", "s", "ssh", "ssh", "A shell on the node; the cockpit comes back when it ends.", "subject"),
    Key("subject.acknowledge", "i", "acknowledge", "acknowledge",
        "Set this problem aside, with a note; or take it back.", "subject", first=True),
    Key("subject.copy_menu", "Y", "copy_menu", "copy as", "Copy as a table, JSON, markdown or Slurm command.",
        "subject", first=True),
    Key("grid.down", "j,down", "cursor_down", "down", "One line down.", "grid", listed=False),
    Key("grid.up", "k,up", "cursor_up", "up", "One line up.", "grid", listed=False),
    Key("grid.top", "g,home", "cursor_top", "top", "First line.", "grid", listed=False),
    Key("grid.bottom", "G,end", "cursor_bottom", "bottom", "Last line.", "grid", listed=False),
    Key("grid.half_down", "ctrl+d", "half_page_down", "half page", "Half a page down.", "grid", listed=False),
    Key("grid.half_up", "ctrl+u", "half_page_up", "half page", "Half a page up.", "grid", listed=False),
    Key("grid.page_down", "pagedown,ctrl+f", "page_down", "page", "One page down.", "grid", listed=False),
    Key("grid.page_up", "pageup", "page_up", "page", "One page up.", "grid", listed=False),
    Key("grid.left", "h,left", "scroll_columns(-1)", "left", "Columns to the left.", "grid", listed=False),
    Key("grid.right", "l,right", "scroll_columns(1)", "right", "Columns to the right.", "grid", listed=False),
    Key("grid.next", "tab", "app.focus_next", "next", "To the next table or map on the screen.", "grid", listed=False),
    Key("grid.previous", "shift+tab", "app.focus_previous", "previous", "To the one before.", "grid", listed=False),
    Key("grid.sort_left", "less_than_sign", "sort_column(-1)", "sort left", "Sort by the column to the left.", "grid"),
    Key("grid.sort_right", "greater_than_sign", "sort_column(1)", "sort right", "Sort by the column to the right.",
        "grid"),
    Key("grid.invert", "I", "sort_invert", "invert", "Turn the sort order round.", "grid"),
    Key("grid.mark", "space", "mark", "mark", "Mark this line, for copying or acting on several.", "grid"),
    Key("grid.range", "v", "mark_range", "range", "Start a range; the next `v` marks up to here.", "grid"),
    Key("grid.mark_all", "asterisk", "mark_all", "mark all", "Mark every line shown.", "grid"),
    Key("grid.unmark", "U", "unmark_all", "unmark", "Take all marks away.", "grid"),
    Key("grid.wide", "w", "wide", "wide", "More columns, or the usual ones.", "grid"),
    Key("grid.columns", "W", "columns", "columns", "Which columns this table shows, and in which order.", "grid"),
    Key("grid.zoom", "z", "zoom", "zoom", "This table over the whole screen, or back.", "grid"),
    Key("grid.copy", "y", "copy", "copy", "Copy the marked names, or this one.", "grid"),
    Key("grid.export", "x", "export", "export", "Write the lines shown: CSV, Markdown, JSON and JSONL.", "grid"),
    Key("gpus.heat", "t", "heat", "heatmap", "Hide the heatmap, or show it again.", "gpus"),
    Key("text.down", "j,down", "cursor_down", "down", "One line down.", "text", listed=False),
    Key("text.up", "k,up", "cursor_up", "up", "One line up.", "text", listed=False),
    Key("text.top", "g,home", "cursor_top", "top", "To the beginning.", "text", listed=False),
    Key("text.bottom", "G,end", "cursor_bottom", "bottom", "To the end.", "text", listed=False),
    Key("text.half_down", "ctrl+d", "half_page_down", "half page", "Half a page down.", "text", listed=False),
    Key("text.half_up", "ctrl+u", "half_page_up", "half page", "Half a page up.", "text", listed=False),
    Key("text.page_down", "pagedown,ctrl+f,space", "page_down", "page", "One page down.", "text", listed=False),
    Key("text.page_up", "pageup", "page_up", "page", "One page up.", "text", listed=False),
    Key("text.next_link", "tab", "next_link(1)", "next link", "The next line that leads elsewhere.", "text",
        listed=False),
    Key("text.prev_link", "shift+tab", "next_link(-1)", "link before", "The line before that leads elsewhere.", "text",
        listed=False),
    Key("text.left", "h,left", "sideways(-1)", "left", "The link to the left; unwrapped, scroll left.", "text",
        listed=False),
    Key("text.right", "l,right", "sideways(1)", "right", "The link to the right; unwrapped, scroll right.", "text",
        listed=False),
    Key("text.next", "n", "next_hit(1)", "next hit", "The next line with the words searched for.", "text"),
    Key("text.prev", "N", "next_hit(-1)", "hit before", "The line before with the words searched for.", "text"),
    Key("text.wrap", "w", "wrap", "wrap", "Break long lines, or let them run out to the right.", "text", ("output",),
        drop=5),
    Key("filter.keep", "enter", "keep_filter", "keep", "Keep the filter and go back to the table.", "filter",
        ("filter",), listed=False, fixed=True),
    Key("filter.clear", "escape", "clear_filter", "clear", "Clear the filter and go back to the table.", "filter",
        ("filter",), listed=False, fixed=True),
    Key("palette.run", "enter", "run", "run", "Go there, or do it.", "palette", listed=False, fixed=True),
    Key("palette.complete", "tab", "complete", "complete", "Type the rest of the line that is chosen.", "palette",
        listed=False, fixed=True),
    Key("palette.down", "down,ctrl+n", "down", "down", "The next line.", "palette", listed=False, fixed=True),
    Key("palette.up", "up,ctrl+p", "up", "up", "The line before.", "palette", listed=False, fixed=True),
    Key("palette.page_down", "pagedown", "page_down", "page", "One page down.", "palette", listed=False, fixed=True),
    Key("palette.page_up", "pageup", "page_up", "page", "One page up.", "palette", listed=False, fixed=True),
    Key("palette.close", "escape", "close", "close", "Close without doing anything.", "palette", listed=False,
        fixed=True),
    Key("menu.run", "enter", "run", "choose", "Do what the cursor is on; a line's own key does it at once.", "menu",
        listed=False, fixed=True),
    Key("columns.toggle", "space", "show_or_hide", "show/hide", "Show the column, or hide it; it can be sorted by.",
        "columns", listed=False, fixed=True),
    Key("columns.later", "J,shift+down", "move(1)", "later", "The column further to the right.", "columns",
        listed=False, fixed=True),
    Key("columns.earlier", "K,shift+up", "move(-1)", "earlier", "The column further to the left.", "columns",
        listed=False, fixed=True),
    Key("columns.reset", "0,backspace", "reset", "usual", "The usual columns again.", "columns", listed=False,
        fixed=True),
    Key("columns.close", "escape,enter,q,W", "close", "close", "Back to the table.", "columns", listed=False,
        fixed=True),
    Key("lineup.filter", "slash", "filter", "filter", "Show only clusters with these words.", "lineup", ("lineup",),
        first=True, listed=False),
    Key("lineup.refresh", "r", "refresh_now", "refresh", "Read all clusters again now.", "lineup", ("lineup",),
        listed=False),
    Key("lineup.close", "escape,q", "close", "back", "Back to the cluster one came from.", "lineup", ("lineup",),
        listed=False, fixed=True),
    Key("menu.close", "escape,q", "close", "close", "Close without doing anything.", "menu", listed=False, fixed=True),
)  # fmt: skip
