"""Every key of the cockpit in one table: bindings, footer, help and docs/KEYS.md derive from it.

Lower case never changes a cluster; capitals are kept for what changes or loads it (see docs/ARCHITECTURE.md).
One id is one meaning in every pane, and the id is what a user's `keys:` entry remaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """One binding. `scope` is where it works: app, grid or text; `footer` names the scopes whose last line shows it."""

    id: str
    keys: str  # Textual key names, comma-separated
    action: str
    title: str  # at most two words, for the footer
    help: str  # one sentence for `?`
    scope: str
    footer: tuple[str, ...] = ()
    first: bool = False  # it moves the focus: it must take effect before the next key of a burst is looked at


KEYS: tuple[Key, ...] = (
    Key("pane.nodes", "2", "pane('nodes')", "nodes", "Show the nodes.", "app", footer=("grid", "text"), first=True),
    Key("pane.gpus", "3", "pane('gpus')", "gpus", "Show the GPUs.", "app", footer=("grid", "text"), first=True),
    Key("pane.queue", "4", "pane('queue')", "queue", "Show the queue.", "app", footer=("grid", "text"), first=True),
    Key(
        "app.problems",
        "e",
        "problems",
        "explain",
        "Every problem in full, with what to do.",
        "app",
        footer=("grid",),
        first=True,
    ),
    Key(
        "app.filter",
        "slash",
        "filter",
        "filter",
        "Show only lines with these words; `!` inverts, `field:value`.",
        "app",
        footer=("grid",),
        first=True,  # the rest of a burst such as `/maria` must go to the filter line
    ),
    Key("app.refresh", "r", "refresh_now", "refresh", "Read everything again now.", "app"),
    Key(
        "app.pause",
        "p",
        "pause",
        "pause",
        "Stop or resume reading; the last values stay, with their age.",
        "app",
    ),
    Key("app.redraw", "ctrl+l", "redraw", "redraw", "Draw the whole screen again.", "app"),
    Key(
        "app.help",
        "question_mark,f1",
        "help",
        "help",
        "What every key does here.",
        "app",
        footer=("grid", "text"),
    ),
    Key(
        "app.quit",
        "q,ctrl+q",
        "quit",
        "quit",
        "Leave the cockpit; nothing on the cluster changes.",
        "always",
        footer=("grid", "text"),
    ),
    Key(
        "app.back",
        "escape",
        "back",
        "back",
        "Close this, clear the filter, or leave the mark mode.",
        "app",
        footer=("text",),
    ),
    Key("grid.down", "j,down", "cursor_down", "down", "One line down.", "grid"),
    Key("grid.up", "k,up", "cursor_up", "up", "One line up.", "grid"),
    Key("grid.top", "g,home", "cursor_top", "top", "First line.", "grid"),
    Key("grid.bottom", "G,end", "cursor_bottom", "bottom", "Last line.", "grid"),
    Key("grid.half_down", "ctrl+d", "half_page_down", "half page", "Half a page down.", "grid"),
    Key("grid.half_up", "ctrl+u", "half_page_up", "half page", "Half a page up.", "grid"),
    Key("grid.page_down", "pagedown,ctrl+f", "page_down", "page", "One page down.", "grid"),
    Key("grid.page_up", "pageup", "page_up", "page", "One page up.", "grid"),
    Key("grid.left", "h,left", "scroll_columns(-1)", "left", "Columns to the left.", "grid"),
    Key("grid.right", "l,right", "scroll_columns(1)", "right", "Columns to the right.", "grid"),
    Key(
        "grid.open",
        "enter,d",
        "open",
        "details",
        "Everything known about this line.",
        "grid",
        footer=("grid",),
    ),
    Key(
        "grid.problems",
        "exclamation_mark",
        "problems_only",
        "problems",
        "Only what deviates, or all again.",
        "grid",
        footer=("grid",),
    ),
    Key(
        "grid.sort_left",
        "less_than_sign",
        "sort_column(-1)",
        "sort",
        "Sort by the column to the left.",
        "grid",
    ),
    Key(
        "grid.sort_right",
        "greater_than_sign",
        "sort_column(1)",
        "sort",
        "Sort by the column to the right.",
        "grid",
    ),
    Key("grid.invert", "I", "sort_invert", "invert", "Turn the sort order round.", "grid"),
    Key(
        "grid.mark",
        "space",
        "mark",
        "mark",
        "Mark this line, for copying or acting on several.",
        "grid",
    ),
    Key("grid.range", "v", "mark_range", "range", "Start a range; the next `v` marks up to here.", "grid"),
    Key("grid.mark_all", "asterisk", "mark_all", "all", "Mark every line shown.", "grid"),
    Key("grid.unmark", "U", "unmark_all", "none", "Take all marks away.", "grid"),
    Key("grid.wide", "w", "wide", "wide", "More columns, or the usual ones.", "grid"),
    Key("grid.zoom", "z", "zoom", "zoom", "This table over the whole screen, or back.", "grid"),
    Key("grid.copy", "y", "copy", "copy", "Copy the marked names, or this one.", "grid"),
    Key("grid.export", "x", "export", "export", "Write the lines shown to a CSV and a JSON file.", "grid"),
    Key(
        "filter.keep",
        "enter",
        "keep_filter",
        "keep",
        "Keep the filter and go back to the table.",
        "filter",
        footer=("filter",),
    ),
    Key(
        "filter.clear",
        "escape",
        "clear_filter",
        "clear",
        "Clear the filter and go back to the table.",
        "filter",
        footer=("filter",),
    ),
    Key("gpus.metric", "m", "metric", "metric", "The next metric on the heatmap.", "gpus", footer=("gpus",)),
    Key("gpus.jobs", "c", "colour_by_job", "by job", "Colour by job, or by value again.", "gpus", footer=("gpus",)),
    Key("gpus.heat", "t", "heat", "heatmap", "Hide the heatmap, or show it again.", "gpus"),
    Key("text.down", "j,down", "cursor_down", "down", "One line down.", "text"),
    Key("text.up", "k,up", "cursor_up", "up", "One line up.", "text"),
    Key("text.top", "g,home", "cursor_top", "top", "To the beginning.", "text"),
    Key("text.bottom", "G,end", "cursor_bottom", "bottom", "To the end.", "text"),
    Key("text.half_down", "ctrl+d", "half_page_down", "half page", "Half a page down.", "text"),
    Key("text.half_up", "ctrl+u", "half_page_up", "half page", "Half a page up.", "text"),
    Key("text.page_down", "pagedown,ctrl+f,space", "page_down", "page", "One page down.", "text"),
    Key("text.page_up", "pageup", "page_up", "page", "One page up.", "text"),
    Key("text.next_link", "tab", "next_link(1)", "next link", "The next line that leads elsewhere.", "text"),
    Key("text.prev_link", "shift+tab", "next_link(-1)", "link before", "The line before that leads elsewhere.", "text"),
    Key("text.left", "h,left", "sideways(-1)", "left", "The link to the left; unwrapped, scroll left.", "text"),
    Key("text.right", "l,right", "sideways(1)", "right", "The link to the right; unwrapped, scroll right.", "text"),
    Key("text.open", "enter", "open", "follow", "Open what the underlined words lead to.", "text", footer=("text",)),
    Key(
        "text.search",
        "slash",
        "search",
        "search",
        "Find words; a capital letter makes case matter.",
        "text",
        footer=("text",),
        first=True,
    ),
    Key("text.next", "n", "next_hit(1)", "next", "The next line with the words searched for.", "text"),
    Key("text.prev", "N", "next_hit(-1)", "before", "The line before with the words searched for.", "text"),
    Key("text.wrap", "w", "wrap", "wrap", "Break long lines, or let them run out to the right.", "text"),
    Key("text.copy", "y", "copy_text", "copy", "Copy this text.", "text", footer=("text",)),
)  # fmt: skip

SCOPES = {
    "app": "Everywhere",
    "always": "Always",
    "grid": "In a table",
    "gpus": "With the GPUs",
    "filter": "While typing a filter",
    "text": "In details and help",
}

_NAMES = {
    "slash": "/", "question_mark": "?", "exclamation_mark": "!", "less_than_sign": "<", "greater_than_sign": ">",
    "asterisk": "*", "escape": "esc", "colon": ":", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑",
    "left": "←", "right": "→",
}  # fmt: skip


def shown_keys(keys: str, most: int = 9) -> str:
    """Keys as a person writes them: `j ↓`."""
    return " ".join(_NAMES.get(key, key) for key in keys.split(",")[:most])


def bindings(scope: str) -> list[Binding | tuple[str, str] | tuple[str, str, str]]:
    """The bindings of one scope, for a widget's BINDINGS."""
    return [
        Binding(key.keys, key.action, key.title, show=bool(key.footer), tooltip=key.help, id=key.id, priority=key.first)
        for key in KEYS
        if key.scope == scope
    ]
