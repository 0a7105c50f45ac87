"""Arming a read-only cluster for a while: its name is typed, the header counts down."""

from __future__ import annotations

from actions.spec import NAMED, confirm_for
from cockpit.arming import LONGEST_S, ReadOnly
from cockpit.config import ClusterConfig
from cockpit.words import span
from screens.ask_dialog import AskDialog
from screens.change_verbs import seconds_of
from screens.lines import Line


def arm_seconds(text: str, lock: ReadOnly) -> float:
    """The seconds that were asked for; raises PermissionError with the reason why not."""
    if lock.forced:
        raise PermissionError(lock.why())
    if not lock.configured:
        raise PermissionError("this cluster is not read-only: there is nothing to arm")
    seconds = seconds_of(text)
    if seconds is None or not 0 < seconds <= LONGEST_S:
        raise PermissionError(f"arm for how long? such as 15m or 1h, at most {span(LONGEST_S)}")
    return seconds


def arm_dialog(config: ClusterConfig, seconds: float) -> AskDialog:
    """The question, with what it means."""
    about: list[Line] = [
        [(f"For {span(seconds)} the cluster {config.name} may be changed from here.", "bright")],
        ["Every change still shows its plan and asks. The header counts down; `:disarm` ends it at once."],
    ]
    if config.production:
        about.append([("This is a production cluster.", "production")])
    confirm = confirm_for(NAMED, 1, config.name)
    question: Line = ["to arm it, type its name: ", (config.name, "bright")]
    return AskDialog(f"arm {config.name}", about, question, confirm, production=config.production)
