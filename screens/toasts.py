"""Toasts: never over a question, never the same twice at once, never more than a few; what has to wait comes later."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ReturnType, ScreenStackError
from textual.notifications import Notification, Notify
from textual.timer import Timer

from cockpit.words import plural
from screens.last_steps import LookApp
from screens.modal import Modal, Result
from themes import Look

MOST_HELD = 5
READ_S = 3.0  # one that was up for less was hardly read
LINES_A_TOAST = 12  # lines of the screen for each toast that may stand there
LOOK_S = 0.2  # between two looks whether what waits may come
_RANK = {"information": 0, "warning": 1, "error": 2}


class Undisturbed(Modal[Result]):
    """A screen that asks something: what is told meanwhile is shown when it is closed, not over it."""

    def on_mount(self) -> None:
        """Take away what is up already."""
        if isinstance(self.app, ToastApp):
            self.app.hold_toasts()
        else:
            self.app.clear_notifications()


class Held:
    """The toasts that wait: at most MOST_HELD, the least severe and oldest give way and are counted."""

    def __init__(self) -> None:
        self.notes: list[Notification] = []
        self.left_out = 0

    def add(self, note: Notification) -> None:
        """Keep it; one with the same words takes the place of the one before."""
        self.notes = [each for each in self.notes if _words(each) != _words(note)] + [note]
        if len(self.notes) > MOST_HELD:
            self.notes.remove(min(self.notes, key=_weight))
            self.left_out += 1

    def take(self) -> Notification | None:
        """The oldest; at the end one that says how many are missing; None when nothing waits."""
        if self.notes:
            return self.notes.pop(0)
        if not self.left_out:
            return None
        count, self.left_out = self.left_out, 0
        return Notification(f"{plural(count, 'less important message')} came meanwhile; 9 shows what was done")

    def __bool__(self) -> bool:
        return bool(self.notes or self.left_out)


def _words(note: Notification) -> tuple[str, str, str]:
    return note.title, note.message, note.severity


def _weight(note: Notification) -> tuple[int, float]:
    """What gives way first has the least."""
    return _RANK[note.severity], note.raised_at


class ToastApp(LookApp[ReturnType]):
    """An app whose toasts know their place."""

    def __init__(self, look: Look | None = None) -> None:
        super().__init__(look)
        self._up: list[Notification] = []
        self._held = Held()
        self._looking: Timer | None = None

    def on_notify(self, event: Notify) -> None:
        """Let Textual show it, or keep it for later."""
        note = event.notification
        self._up = [each for each in self._up if not each.has_expired]
        if any(each is note for each in self._up):
            return  # put up again, since another was taken down
        if any(_words(each) == _words(note) and each.time_left >= READ_S for each in self._up):
            event.prevent_default()
        elif self._asks or not self._makes_room(note):
            event.prevent_default()
            self._hold(note)
        else:
            self._up.append(note)

    @property
    def _asks(self) -> bool:
        """Whether something is asked just now."""
        try:
            return isinstance(self.screen, Undisturbed)
        except ScreenStackError:  # on the way out
            return False

    @property
    def _room(self) -> int:
        """How many more toasts may stand on the screen; none or less when there are enough."""
        return max(2, min(4, self.size.height // LINES_A_TOAST)) - len(self._up)

    def hold_toasts(self) -> None:
        """Take down what is up; warnings and errors that were not up for long come again."""
        for note in self._up:
            if not note.has_expired and note.severity != "information":
                self._hold(replace(note, timeout=max(note.time_left, READ_S)))
        self._up = []
        self.clear_notifications()

    def _makes_room(self, note: Notification) -> bool:
        """Take down the least important where there are too many; False when that is this one."""
        if self._room > 0:
            return True
        least = min([*self._up, note], key=_weight)
        if least is note:
            return False
        self._up.remove(least)
        if least.severity != "information" and least.timeout - least.time_left < READ_S:
            self._hold(least)
        self.clear_notifications()
        for each in self._up:
            self.post_message(Notify(each))
        return True

    def _hold(self, note: Notification) -> None:
        self._held.add(note)
        if self._looking is None:
            self._looking = self.set_interval(LOOK_S, self._let_come)

    def _let_come(self) -> None:
        """Show what waits, as soon as nothing is asked and as far as there is room."""
        self._up = [each for each in self._up if not each.has_expired]
        for _ in range(0 if self._asks else self._room):
            note = self._held.take()
            if note is not None:
                self.notify(note.message, title=note.title, severity=note.severity, timeout=note.timeout, markup=False)
        if not self._held and self._looking is not None:
            self._looking.stop()
            self._looking = None
