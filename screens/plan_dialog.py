"""The dialog before every change: its plan, whom it hurts, and the question. Nothing is sent from here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from actions.errors import ActionError
from actions.spec import Options, Plan
from cockpit.words import span
from screens.change_fields import Chosen, Field, Flag, ReasonLine
from screens.confirm import HIDDEN, Answered, ConfirmLine, Void, YesNo, in_sight
from screens.content import plain, styled
from screens.guard import SETTLE_S, Guard
from screens.lines import Line, Piece
from screens.plan_text import head_lines, plan_text
from screens.planning import Planned, plan_on_thread
from screens.question import Agreed, Question
from screens.text_view import TextView
from screens.toasts import Undisturbed

TICK_S = 1.0


class PlanDialog(Undisturbed[Agreed | Question | None]):
    """Opens at once, plans on a thread, then asks.

    Dismissed with what was agreed to, with another question that is asked instead, or None when it was left.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("ctrl+o", "instead", show=False),
        Binding("r,ctrl+r", "again", show=False),
        Binding("down", "scroll_plan(1)", show=False),
        Binding("up", "scroll_plan(-1)", show=False),
        Binding("pagedown", "page_plan(1)", show=False),
        Binding("pageup", "page_plan(-1)", show=False),
        # Before a line that is typed in, where they would do next to nothing.
        Binding("end", "plan_end(1)", show=False, priority=True),
        Binding("home", "plan_end(-1)", show=False, priority=True),
        Binding("G", "plan_end(1)", show=False),
        Binding("g", "plan_end(-1)", show=False),
        Binding("tab", "next_entry(1)", show=False),
        Binding("shift+tab", "next_entry(-1)", show=False),
    ]
    DEFAULT_CSS = """
    PlanDialog { align: center middle; }
    PlanDialog > #plan {
        width: 116;
        max-width: 100%;
        height: 100%;
        max-height: 40;
        border: solid $cockpit-accent;
        background: $background;
        padding: 0 1;
    }
    PlanDialog.-production > #plan { border: heavy $cockpit-production; }
    PlanDialog #plan-head { height: auto; max-height: 10; }
    PlanDialog #plan-ask { height: auto; }
    PlanDialog #plan-confirm { height: auto; }
    PlanDialog #plan-prompt { width: auto; max-width: 75%; height: auto; padding: 0 1 0 0; }
    PlanDialog ConfirmLine { width: 1fr; height: 1; background: $surface; }
    PlanDialog #plan-note { height: auto; color: $cockpit-warning; }
    PlanDialog #plan-keys { height: 1; }
    """

    def __init__(self, question: Question, cluster: str, *, production: bool = False) -> None:
        super().__init__()
        self._question, self._cluster, self._production = question, cluster, production
        self._guard = Guard()
        self._fields = [Field(option, self._guard) for option in question.fields]
        self._reason = ReasonLine(self._guard, question.reason)
        self._typed, self._yes = ConfirmLine(self._guard, id="confirm"), YesNo(self._guard, id="yes-no")
        self._text = TextView(title=[("plan", "dim")], id="plan-text")
        self._text.can_focus = False  # the keys stay with the question
        self._plan: Plan | None = None
        self._turn, self._asked_at = 0, 0.0
        self._planning = self._again = False

    def compose(self) -> ComposeResult:
        with Vertical(id="plan") as box:
            box.border_title = self._box_title()
            yield Static(id="plan-head")
            yield self._text
            with Vertical(id="plan-ask"):
                yield from self._fields
                yield self._reason
                with Horizontal(id="plan-confirm"):
                    yield Static(id="plan-prompt")
                    yield self._typed
                    yield self._yes
            yield Static(id="plan-note")
            yield Static(id="plan-keys")

    def _box_title(self) -> Content:
        where: list[Piece] = [(f" {self._question.title} ", "bright"), ("on ", "dim"), (f"{self._cluster} ", "bright")]
        if self._production:
            where.append(("PRODUCTION ", "production"))
        return styled(where)

    def on_mount(self) -> None:
        """Begin to plan, or to ask what the plan rests on."""
        self.set_class(self._production, "-production")
        self.set_interval(TICK_S, self._tick)
        if self._question.first:
            self._ask_first()
        else:
            self._make_plan()

    # Planning.

    def _ask_first(self) -> None:
        question, first = self._question, self._question.first
        asked = next(field.option.title for field in self._fields if field.option.name == first)
        told: list[Line] = [[(f"{asked}?", "bright")], *([word] for word in question.hints)]
        self._show_head([*told, [(question.note, "accent")]] if question.note else told)
        self._text.show([], title=[("no plan yet", "dim"), (" · enter plans", "dim")])
        self._arrange()
        self._settle()

    def _make_plan(self) -> None:
        self._turn += 1
        self._plan, self._planning, self._asked_at = None, True, time.monotonic()
        self.set_focus(None)  # nothing that is typed now answers what is not there yet
        plan_on_thread(self, self._turn, self._question, self._options())
        self._note("")
        self._tick()
        self._arrange()

    def _options(self) -> Options:
        given = {field.option.name: field.value for field in self._fields}
        return replace(self._question.options, **given)

    def _tick(self) -> None:
        if self._planning:
            waited_s = time.monotonic() - self._asked_at
            waits = f" {span(waited_s)}, waiting for the head; esc leaves" if waited_s >= 1 else ""
            self._show_head([[("planning …", "bright"), (waits, "dim")]])

    @on(Chosen)
    def replan(self) -> None:
        """An option has changed."""
        first = next((field for field in self._fields if field.option.name == self._question.first), None)
        if first is not None and first.value in (None, ""):
            if isinstance(self.focused, Flag):
                return  # there will be a plan once the first question is answered
            self._note("type a whole number" if first.option.kind == "number" else f"type {first.option.title}")
            return
        self._make_plan()

    def on_planned(self, event: Planned) -> None:
        """Show the plan, or why there is none."""
        if event.turn != self._turn:
            return
        self._planning, self._plan, self._again = False, event.plan, event.again
        if event.plan is not None:
            self._show_plan()
        else:
            first, *rest = event.words or ("no plan",)
            self._show_head([[("cannot be done: ", "warning"), first]])
            self._text.show([[line] for line in rest], title=[("", "")], keep=False)
        self._arrange()
        self._settle()

    def _show_plan(self) -> None:
        plan = self._named()
        if plan is not None:
            self._show_head(head_lines(plan, self._question.note))
            title: list[Piece] = [("plan", "dim"), (" · ↑ ↓ pgdn end scroll", "dim")]
            self._text.show(plan_text(plan), title=title)

    def _named(self) -> Plan | None:
        """The plan with the words that are typed so far."""
        if self._plan is None or not (self._plan.needs_reason and self._reason.words):
            return self._plan
        try:
            return self._plan.with_reason(self._reason.words)
        except ActionError as error:
            self._note(str(error))
            return self._plan

    # What stands on the screen.

    def _show_head(self, lines: Sequence[Line]) -> None:
        self.query_one("#plan-head", Static).update(Content("\n").join(styled(line) for line in lines))

    def _note(self, words: str) -> None:
        self.query_one("#plan-note", Static).update(plain(words))
        self.query_one("#plan-note").display = bool(words)

    def _arrange(self) -> None:
        plan, prompt = self._plan, self.query_one("#plan-prompt", Static)
        kind = plan.confirm.kind if plan is not None else ""
        self._reason.display = plan is not None and plan.needs_reason
        self._typed.display, self._yes.display = kind in ("count", "cluster"), kind in ("yes", "none")
        self._typed.value = ""
        self._yes.reset()
        prompt.display = plan is not None
        if plan is not None:
            prompt.update(styled(_prompt(plan)))
        self.query_one("#plan-keys", Static).update(styled(self._keys()))

    def _keys(self) -> list[Piece]:
        pieces: list[Piece] = [(" esc ", "accent"), "leave it"]
        if self._plan is not None:
            pieces += [("  enter ", "accent"), "takes what is typed"]
        if (offer := self._offer()) is not None:
            pieces += [("  ctrl+o ", "accent"), f"{offer} instead"]
        if len(self._entries()) > 1:
            pieces += [("  tab ", "accent"), "next line"]
        if any(field.option.kind == "flag" for field in self._fields):
            pieces += [("  space ", "accent"), "turns it on"]
        if self._plan is None and self._again and not self._planning:
            pieces += [("  r ", "accent"), "try again"]
        return pieces

    def _offer(self) -> str | None:
        offers = self._plan.offers if self._plan is not None and self._question.instead is not None else ()
        return offers[0].action_id if offers else None

    def _entries(self) -> list[Widget]:
        """What may have the focus, from top to bottom."""
        if self._planning:
            return []
        every: list[Widget] = [field.entry for field in self._fields]
        if self._reason.display:
            every.append(self._reason.line)
        return [*every, *(widget for widget in (self._typed, self._yes) if widget.display)]

    def _settle(self) -> None:
        """From now on the dialog is read; in a moment it hears."""
        self._guard.shut(time.monotonic())
        self.set_focus(None)
        turn = self._turn
        self.set_timer(SETTLE_S, lambda: self._listen(turn))

    def _listen(self, turn: int) -> None:
        if turn == self._turn and not self._planning and self.focused is None and self._entries():
            self.set_focus(self._first_entry())

    def _first_entry(self) -> Widget:
        if self._plan is not None and self._plan.needs_reason and not self._reason.words:
            return self._reason.line
        if self._plan is None:
            return self._entries()[0]
        return self._entry()

    def _entry(self) -> Widget:
        """Where the answer is given."""
        return self._typed if self._typed.display else self._yes

    # Answers.

    @on(Input.Changed, "#reason")
    def words_changed(self) -> None:
        """The commands with the words in them."""
        self._note("")
        self._show_plan()

    @on(Input.Submitted, "#reason")
    def words_done(self, event: Input.Submitted) -> None:
        """On to the confirmation."""
        event.stop()
        if self._reason.words:
            self.set_focus(self._entry())
        else:
            self._note("say why first")

    @on(Void)
    def void(self, event: Void) -> None:
        """What came was no answer."""
        self._note(event.why)

    @on(Answered)
    def answered(self, event: Answered) -> None:
        """Close with the plan when it is confirmed; No leaves it, anything else is asked for again."""
        plan = self._named()
        if plan is None or self._planning:
            return
        if not event.typed and self._yes.display:
            self.dismiss(None)
        elif plan.needs_reason and not plan.reason:
            self._note("say why first")
            self.set_focus(self._reason.line)
        elif not in_sight(
            self, *self.query("#plan-head, #plan-prompt"), self._typed if self._typed.display else self._yes
        ):
            self._note(HIDDEN)
        elif not plan.confirm.fits(event.typed):
            self._typed.clear()
            self._note(f"{event.typed!r} is not it: {plan.confirm.prompt}" if event.typed else plan.confirm.prompt)
        else:
            self.dismiss(Agreed(plan, event.typed, self._question))

    # Keys.

    def action_leave(self) -> None:
        """Close; nothing was changed."""
        self.dismiss(None)

    def action_again(self) -> None:
        """Plan once more, after an error."""
        if self._again and not self._planning:
            self._make_plan()

    def action_instead(self) -> None:
        """The other action for the same targets."""
        offer, change = self._offer(), self._question.instead
        if offer is None or change is None or not self._guard.is_open(time.monotonic()):
            return
        self.dismiss(replace(change(offer), reason=self._reason.words))

    def action_scroll_plan(self, rows: int) -> None:
        """One row of the plan."""
        self._text.state.scroll(rows)
        self._text.sync()

    def action_page_plan(self, pages: int) -> None:
        """A page of the plan."""
        self._text.state.page(pages * max(1, self._text.state.height - 1))
        self._text.sync()

    def action_plan_end(self, step: int) -> None:
        """To the last line of the plan, or to the first."""
        if step > 0:
            self._text.state.end()
        else:
            self._text.state.home()
        self._text.sync()

    def action_next_entry(self, step: int) -> None:
        """The next field, or the one before."""
        entries = self._entries()
        if not entries or not self._guard.is_open(time.monotonic()):
            return
        place = entries.index(self.focused) if self.focused in entries else -1 if step > 0 else 0
        self.set_focus(entries[(place + step) % len(entries)])


def _prompt(plan: Plan) -> list[Piece]:
    """The question in the words of the tier; what has to be typed comes early, so that it is never cut off."""
    kind, word = plan.confirm.kind, (plan.confirm.word, "bright")
    where: list[Piece] = [f" on {plan.cluster}", (" PRODUCTION" if plan.production else "", "production")]
    if kind == "count":
        return ["type ", word, ", how many it changes, to do it", *where, ":"]
    if kind == "cluster":
        return ["type ", word, ", the cluster's name, to do it:"]
    return ["do it", *where, "?"]
