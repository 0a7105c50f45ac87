"""The Textual app: wiring only. What is shown is in screens/, what is known is in the cluster."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import BindingType

import themes
from cockpit.clusters import Clusters
from cockpit.config import Config, ConfigError
from screens.cluster_app import ClusterApp
from screens.key_line import QUIT
from screens.start_screen import bound

if TYPE_CHECKING:
    from screens.column_choice import Choice
    from screens.keymap import Keymap

TERMINAL_TICK_S = 1.0


class CockpitApp(ClusterApp):
    """The cockpit over the clusters of a config. It waits for nothing on its way out."""

    TITLE = "cockpit"
    CSS_PATH: ClassVar = [themes.STYLESHEET, themes.STYLESHEET.with_name("layout.tcss")]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [bound(QUIT)]

    def __init__(
        self,
        clusters: Clusters,
        *,
        look: themes.Look | None = None,
        keymap: Keymap | None = None,
        redact: bool = False,
        seconds: float | None = None,
        staged: bool = False,
    ) -> None:
        """`staged`: draw the start screen before everything else is loaded."""
        super().__init__(clusters, look=look, keymap=keymap, redact=redact)
        self._staged = staged
        self.animation_level = "none"  # a page down would cost 24 times the bytes
        self._seconds = seconds

    async def on_mount(self) -> None:
        """Make everything ready that the first paint does not need."""
        if self._seconds is not None:
            self.set_timer(self._seconds, self.exit)
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # not on the main thread: as in tests
                asyncio.get_running_loop().add_signal_handler(number, self._told_to_end, number)
        if self._staged:
            self.call_after_refresh(self.load_first)
        else:
            await self.open_first()

    async def open_first(self) -> None:
        await super().open_first()
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        # What start-up made lives as long as the app: a full collection over it would stall a key for 60 ms.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 100)
        gc.enable()
        self.set_interval(TERMINAL_TICK_S, self._end_without_terminal)

    def _end_without_terminal(self) -> None:
        """End when the terminal is gone and no SIGHUP came: the kernel tells only the session's leader, make say."""
        if not self.is_headless and not os.isatty(0):  # run_app began with a terminal there
            self._told_to_end(signal.SIGHUP)

    def _told_to_end(self, number: int) -> None:
        from screens import outlet

        outlet.end_in_any_case(128 + number, self.clusters.stop)
        if active := self.unfinished:
            from screens import leaving

            leaving.then(active, lambda: self.call_from_thread(self.exit, return_code=128 + number))
        else:
            self.exit(return_code=128 + number)

    async def on_event(self, event: events.Event) -> None:
        """Any key tells the sources that somebody is there."""
        if isinstance(event, events.Key | events.MouseDown):
            front = self.front
            if front is not None and front.cluster.pace.touch():
                front.cluster.refresh()
        await super().on_event(event)

    def action_help_quit(self) -> None:
        """ctrl+c does nothing; say what does."""
        from screens import outlet

        outlet.tell(self, "q leaves the cockpit")


def run_app(config: Config, first: str, *, read_only: bool, look: themes.Look, seconds: float | None = None) -> int:
    """Run the cockpit on the cluster `first` until the user leaves; returns the exit code.

    Raises ConfigError without a terminal, and for `keys:` and `columns:` that cannot be meant.
    The caller may have turned garbage collection off for the start; it is on after the first paint.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "") in ("", "dumb"):
        raise ConfigError("this is no terminal that can show the cockpit; `cockpit status` prints the same as text")
    sys.setswitchinterval(0.001)  # the default lets a key wait 5 ms for each thread that reads an answer
    clusters, keymap = Clusters.of_config(config, first, read_only=read_only), _keymap(config)
    columns = _columns(config)
    app = CockpitApp(clusters, look=look, keymap=keymap, redact=config.redact_screenshots, seconds=seconds, staged=True)
    app.remember, app.columns_of_user = config.remember, columns
    try:
        app.run()
    finally:
        clusters.stop()
    return app.return_code or 0


def _keymap(config: Config) -> Keymap | None:
    """The user's own keys, checked before anything is drawn; without any the key table need not be there yet."""
    if not config.keys:
        return None
    from screens.keymap import read_keymap

    return read_keymap(config.keys)


def _columns(config: Config) -> dict[str, Choice]:
    """The columns that the user wants, by table; checked before anything is drawn as well."""
    if not config.columns:
        return {}
    from screens.column_names import read_columns

    return read_columns(config.columns)
