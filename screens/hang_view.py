"""Why a job hangs, filling in as its nodes answer: one text view over looks that run on threads of their own."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from cockpit.cluster import Cluster
from cockpit.diagnosing import Diagnosing, DiagnosisLook
from screens import outlet
from screens.hang_lines import Shown, hang_lines, hang_title
from screens.key_table import KEYS
from screens.keymap import Keymap
from screens.keys import bindings
from screens.text_view import TextView
from themes.glyphs import signs

KEPT = 4  # jobs whose last look is kept, to compare the next one with


class HangChanged(Message):
    """A look knows something new; any number of them waiting become one."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, HangChanged)


class HangView(TextView):
    """Opened on one job at a time; `leave` ends the look that is under way, what it has found stays."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("hang")

    def __init__(self, cluster: Cluster, keymap: Keymap, *, id: str) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._cluster = cluster
        self._action_keys = _action_keys(keymap)
        self._jobs: dict[str, Diagnosing] = {}
        self._here: Diagnosing | None = None
        self._way = ""
        self._drawn: DiagnosisLook | None = None

    @property
    def seen(self) -> DiagnosisLook | None:
        """What is known of the job in front."""
        return self._here.look() if self._here is not None else None

    def look_at(self, job: str) -> None:
        """Look at a job anew; whatever else was being looked at is let go."""
        self.leave()
        found = self._jobs.pop(job, None) or Diagnosing(self._cluster, job, self._heard)
        self._jobs[job] = found
        for old in list(self._jobs)[:-KEPT]:
            del self._jobs[old]
        self._here = found
        found.start()

    def _heard(self) -> None:
        self.post_message(HangChanged())

    def open(self, job: str, way: str) -> None:
        """Show what is known of a job; on the way back to it nothing is looked at anew."""
        if job not in self._jobs:
            self.look_at(job)
        self._here, self._way, self._drawn = self._jobs[job], way, None
        self.clear_search()
        self._show(keep=False)

    def leave(self) -> None:
        """End the look that is under way, if one is."""
        if self._here is not None:
            self._here.stop()

    def again(self) -> None:
        """Look once more, and compare."""
        if self._here is not None:
            self._here.start()

    def show_age(self) -> None:
        """Only the title tells an age."""
        look = self.seen
        if look is not None:
            self.set_title(hang_title(look, self._way, self._shown()))

    def on_unmount(self) -> None:
        """The screen ends."""
        for each in self._jobs.values():
            each.stop()

    def on_hang_changed(self) -> None:
        """Show what has come."""
        before = self._drawn
        if self.display and self._here is not None:
            self._show(keep=before is not None)
        look = self._drawn
        if look is not None and before is not None and before.keeping and not look.keeping:
            title = "evidence kept" if look.kept_well else "no evidence kept"
            outlet.tell(self.app, look.kept, title=title, severity="information" if look.kept_well else "error")

    def action_keep_evidence(self) -> None:
        """Everything that is known, twice, in one file of the user's own."""
        if self._here is not None:
            self._here.keep()

    def _show(self, *, keep: bool) -> None:
        look = self.seen
        if look is None:
            return
        self._drawn, shown = look, self._shown()
        self.show(hang_lines(look, shown), title=hang_title(look, self._way, shown), keep=keep)

    def _shown(self) -> Shown:
        return Shown(self._cluster.clock.steady(), signs(self.app), self._action_keys)


def _action_keys(keymap: Keymap) -> dict[str, str]:
    """The user's own keys of what changes the cluster, by the id of the action."""
    return {key.id.removeprefix("change."): keymap.shown(key) for key in KEYS if key.scope == "change"}
