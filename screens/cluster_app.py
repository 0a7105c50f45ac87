"""The app as screens know it: the clusters and which of them is in front, the user's keys and colours."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

import themes
from cockpit.clusters import Clusters
from cockpit.words import show_utc, shows_utc
from screens.start_screen import StartScreen
from screens.toasts import ToastApp
from themes.look import is_unicode, load

if TYPE_CHECKING:
    from screens.cockpit_screen import CockpitScreen
    from screens.column_choice import Choice
    from screens.commands import Command
    from screens.keymap import Keymap
    from screens.leaving import Unfinished


class Loaded(Message):
    """All that a cluster's screen needs is there; `error` says why not."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error


class ClusterApp(ToastApp[int]):
    """One screen a cluster; those behind stay as they were and do no work.

    What a cluster's screen is made of takes as long to load as Textual itself. So the start screen is drawn first,
    then the engine is loaded and begins to read, and while the cluster answers the screens are loaded.
    """

    remember = False  # whether the next start begins where this one was left
    columns_of_user: Mapping[str, Choice] = MappingProxyType({})  # of the config, by pane
    lineup_choice: Choice | None = None

    def __init__(
        self,
        clusters: Clusters,
        *,
        look: themes.Look | None = None,
        keymap: Keymap | None = None,
        redact: bool = False,
    ) -> None:
        super().__init__(look)
        self.clusters, self.redact_screenshots = clusters, redact
        self._keymap_of_user = keymap
        self._screens_of: dict[str, CockpitScreen] = {}
        if keymap is not None:
            self.set_keymap(keymap.textual())

    @property
    def keymap_of_user(self) -> Keymap:
        """The keys of the table as this user has them."""
        from screens.keymap import DEFAULT

        return self._keymap_of_user or DEFAULT

    def get_default_screen(self) -> StartScreen:
        """What is there until the first cluster's screen is, and below it afterwards."""
        return StartScreen(self.clusters.first)

    def load_first(self) -> None:
        """Load, off the UI thread, what the first cluster's screen needs; then it comes to the front."""
        threading.Thread(target=self._load_first, name="load", daemon=True).start()

    def _load_first(self) -> None:
        error = None
        try:
            self.clusters.begin()
            import screens.cockpit_screen  # noqa: F401 - what open_first takes
        except Exception as failed:
            error = failed
        self.post_message(Loaded(error))

    async def on_loaded(self, event: Loaded) -> None:
        """Go on to the cluster, or fail as whatever failed."""
        if event.error is not None:
            raise event.error
        await self.open_first()

    async def open_first(self) -> None:
        """Bring the first cluster to the front, and hand it what was typed before it was there."""
        start = self.screen
        await self.push_screen(self._screen_of(self.clusters.first))
        if isinstance(start, StartScreen):
            for key in start.typed:
                self.post_message(events.Key(key.key, key.character))

    def _screen_of(self, name: str) -> CockpitScreen:
        if name not in self._screens_of:
            from screens.cockpit_screen import CockpitScreen

            self._screens_of[name] = CockpitScreen(self.clusters.open(name))
            self.install_screen(self._screens_of[name], f"cluster-{len(self._screens_of)}")
        return self._screens_of[name]

    @property
    def front(self) -> CockpitScreen | None:
        """The cluster in front, also while a dialog is over it; None before the first is there."""
        shown = [screen for screen in self._screens_of.values() if screen in self.screen_stack]
        return shown[0] if shown else None

    @property
    def cockpit(self) -> CockpitScreen:
        """The same once a cluster is there; raises LookupError before."""
        if self.front is None:
            raise LookupError("no cluster is open yet")
        return self.front

    def show_cluster(self, name: str) -> None:
        """Bring a cluster of the config to the front; the others stay as they were. KeyError for an unknown name."""
        screen = self._screen_of(name)
        if screen is not self.front:
            self.switch_screen(screen)

    def show_lineup(self) -> None:
        """All clusters, to choose one."""
        from screens.lineup import LineupScreen

        def choose(name: str | None) -> None:
            self.lineup_choice = screen.choice
            if name is not None:
                self.show_cluster(name)

        screen = LineupScreen(self.clusters, self.keymap_of_user, self.lineup_choice)
        self.push_screen(screen, choose)

    @property
    def unfinished(self) -> list[Unfinished]:
        """Everything that leaving would cut short, on whatever cluster."""
        return [one for screen in self._screens_of.values() for one in screen.unfinished]

    async def action_quit(self) -> None:
        """Leave; while something runs, only after asking."""
        active = self.unfinished
        if not active:
            self.exit()
            return
        from screens.leaving import LeaveDialog

        if not isinstance(self.screen, LeaveDialog):
            await self.push_screen(LeaveDialog(active), self._left)

    def _left(self, typed: str | None) -> None:
        if typed is not None:
            self.exit()

    def do(self, command: Command) -> None:
        """Do one of the commands in `commands.OF_THE_APP`."""
        if command.id == "clusters":
            self.show_lineup()
        elif command.id == "cluster":
            self.show_cluster(command.argument)
        elif command.id == "theme":
            self.show_theme(command.argument)
        else:
            self.turn(command.argument)

    @property
    def switches(self) -> dict[str, bool]:
        """What of the cockpit itself is on, by the ids of `setting_entries.SWITCHES`."""
        return {"ascii": self.ascii_only, "utc": shows_utc(), "redact": self.redact_screenshots}

    def turn(self, switch: str) -> None:
        """Turn one of them on, or off again; everything is drawn anew."""
        on = not self.switches[switch]
        if switch == "ascii":
            self.ascii_only = on or not is_unicode(self.look.encoding)
        elif switch == "utc":
            show_utc(on)
        else:
            self.redact_screenshots = on
        for screen in self._screens_of.values():
            screen.draw_anew()

    def show_theme(self, name: str) -> None:
        """Draw in the colours of that theme; raises ConfigError for a user's theme that is broken."""
        load(name)
        self.use_theme(name)
