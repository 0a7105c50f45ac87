"""The app as screens know it: the clusters and which of them is in front, the user's keys and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import themes
from cockpit.clusters import Clusters
from screens.cockpit_screen import CockpitScreen
from screens.keymap import DEFAULT, Keymap
from screens.toasts import ToastApp
from themes.look import load

if TYPE_CHECKING:
    from screens.leaving import Unfinished


class ClusterApp(ToastApp[int]):
    """One screen a cluster; those behind stay as they were and do no work."""

    remember = False  # whether the next start begins where this one was left

    def __init__(
        self,
        clusters: Clusters,
        *,
        look: themes.Look | None = None,
        keymap: Keymap = DEFAULT,
        redact: bool = False,
    ) -> None:
        super().__init__(look)
        self.clusters, self.keymap_of_user, self.redact_screenshots = clusters, keymap, redact
        self.set_keymap(keymap.textual())

    def get_default_screen(self) -> CockpitScreen:
        """The screen of the cluster that opens first."""
        screen = CockpitScreen(self.clusters.open(self.clusters.first))
        self._screens_of = {self.clusters.first: screen}
        return screen

    @property
    def cockpit(self) -> CockpitScreen:
        """The cluster in front, also while a dialog is over it."""
        return next(screen for screen in reversed(self.screen_stack) if isinstance(screen, CockpitScreen))

    def show_cluster(self, name: str) -> None:
        """Bring a cluster of the config to the front; the others stay as they were. KeyError for an unknown name."""
        front = self.cockpit
        if name == front.cluster.config.name:
            return
        if name not in self._screens_of:
            self._screens_of[name] = CockpitScreen(self.clusters.open(name))
            self.install_screen(self._screens_of[name], f"cluster-{len(self._screens_of)}")
        # The first one lies below the others for ever: Textual cannot switch its default screen for another.
        if name == self.clusters.first:
            self.pop_screen()
        elif front.cluster.config.name == self.clusters.first:
            self.push_screen(self._screens_of[name])
        else:
            self.switch_screen(self._screens_of[name])

    def show_lineup(self) -> None:
        """All clusters, to choose one."""
        from screens.lineup import LineupScreen

        def choose(name: str | None) -> None:
            if name is not None:
                self.show_cluster(name)

        self.push_screen(LineupScreen(self.clusters, self.keymap_of_user), choose)

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

    def show_theme(self, name: str) -> None:
        """Draw in the colours of that theme; raises ConfigError for a user's theme that is broken."""
        load(name)
        self.use_theme(name)
