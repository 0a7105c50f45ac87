"""The way from a pane to what is in front now: esc goes back along it. Imports no Textual."""

from __future__ import annotations

from dataclasses import dataclass, field

from screens.lines import Subject
from screens.subjects import title

MOST = 50  # places kept; nobody walks back further


@dataclass(frozen=True, slots=True)
class Place:
    """What can be in front: `view` is the id of a widget in the switcher, `subject` what it shows, if not all."""

    view: str
    subject: Subject | None = None
    name: str = field(default="", compare=False)  # what to call the subject, where its key says little

    @property
    def words(self) -> str:
        """What to call it."""
        if self.subject is None:
            return self.view.removeprefix("pane-")
        told = self.name or title(self.subject)
        return told if self.view == "detail" else f"{told} {self.view}"


class Trail:
    """Never empty; its first place is a pane."""

    def __init__(self, pane: Place) -> None:
        self._places = [pane]

    @property
    def here(self) -> Place:
        """What is in front."""
        return self._places[-1]

    @property
    def pane(self) -> Place:
        """The pane that the way began at."""
        return self._places[0]

    def holds(self, view: str) -> bool:
        """Whether the way leads through such a view."""
        return any(place.view == view for place in self._places)

    def begin(self, pane: Place) -> None:
        """A new way, from a pane."""
        self._places = [pane]

    def go(self, place: Place) -> None:
        """One step on; a step to where one is already is none."""
        if place != self.here:
            self._places = [self._places[0], *self._places[1:][-MOST:], place]

    def back(self) -> bool:
        """One step back; False at the beginning."""
        if len(self._places) == 1:
            return False
        self._places.pop()
        return True

    def words(self, most: int = 4) -> str:
        """From the pane to what is in front, as `queue › job 48219 › gpu p5-2/3`; a long way begins with `…`."""
        told = [place.words for place in self._places]
        return " › ".join(told if len(told) <= most else ["…", *told[1 - most :]])
