"""Settings in the palette: switches that take effect at once, and every key of the config by its name. No Textual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from screens.commands import Command, Context, Entry, Name, Names, Verb


@dataclass(frozen=True, slots=True)
class Switch:
    """Something of the cockpit's own that is on or off; `key` is the config's, which keeps it."""

    id: str
    key: str
    help: str


SWITCHES: Sequence[Switch] = (
    Switch("ascii", "ascii", "Draw with ASCII characters only."),
    Switch("utc", "utc", "The time zone of all times of day: UTC, not that of this machine."),
    Switch("redact", "redact_screenshots", "Hide account ids and public addresses in screenshots."),
)


def switch_entries(context: Context) -> Iterator[Entry]:
    """Each switch the other way round than it is."""
    for switch in SWITCHES:
        on = context.switches.get(switch.id, False)
        words = f"{switch.help} It is {'on' if on else 'off'}; `{switch.key}:` in the config keeps it."
        yield Entry(Command("switch", switch.id), f"{switch.id} {'off' if on else 'on'}", words)


def setting_names(context: Context) -> Names:
    """Every key of the config, found by its words too."""
    from cockpit.config_reference import keys  # not before somebody looks for one

    found = list(keys())
    shown = [key.path.removeprefix("clusters.*.").replace("[]", "") for key in found]
    return Names(
        shown, lambda index: Name(found[index].path, shown[index], found[index].meaning), [key.meaning for key in found]
    )


SETTING = Verb("setting", "setting NAME", "A key of the config: what it does, what it is now, how to change it.",
               setting_names, "", quick=True, quick_from=4)  # fmt: skip
