"""Plans made off the UI's thread: one daemon thread a plan."""

from __future__ import annotations

import threading

from textual.message import Message
from textual.message_pump import MessagePump

from actions.errors import ActionError, Refusal
from actions.spec import Options, Plan
from cockpit.models import FaultError
from cockpit.sources.base import unexpected
from cockpit.text import printable
from screens.question import Question


class Planned(Message):
    """A plan, or the words for why there is none; `turn` numbers the tries. `again`: trying again may help."""

    def __init__(self, turn: int, plan: Plan | None, words: tuple[str, ...] = (), *, again: bool = False) -> None:
        super().__init__()
        self.turn, self.plan, self.words, self.again = turn, plan, words, again


def plan_on_thread(to: MessagePump, turn: int, question: Question, options: Options) -> None:
    """Make the plan on a daemon thread and post Planned; the head may hang for as long as it likes."""

    def work() -> None:
        to.post_message(_planned(turn, question, options))

    threading.Thread(target=work, name="plan", daemon=True).start()


def _planned(turn: int, question: Question, options: Options) -> Planned:
    try:
        return Planned(turn, question.make(options))
    except ActionError as error:
        words = tuple(printable(line) for line in str(error).split("\n"))
        return Planned(turn, None, words, again=error.kind is Refusal.UNREACHED)
    except FaultError as error:
        fault = error.fault
        words = tuple(printable(word) for word in (f"{fault.what}: {fault.why}", fault.next_step) if word)
        return Planned(turn, None, words, again=True)
    except Exception as error:  # told where it was asked for, whatever it is
        return Planned(turn, None, (unexpected("planning", error).line(),), again=True)
