"""What changes a cluster, as a part of CockpitScreen: from a key or a name to a plan, its dialog, its run, its undo.

Every way ends in the one runner of the cluster, which alone may refuse or send anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message
from textual.screen import Screen

from actions import spec
from actions.spec import Options, Plan, Scope, Targets
from cockpit.cluster import Cluster
from screens import outlet
from screens.change_offers import OFFERS, Offer, entries, offer_of, same_key
from screens.change_targets import Aim, Pointed, aim, fits
from screens.commands import Command, Entry
from screens.heatmap import Heatmap
from screens.keymap import Keymap
from screens.lines import Piece, Subject
from screens.question import Agreed, Question

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from screens.pane import TablePane
    from screens.runs import Run, Runs
    from screens.text_view import TextView
    from screens.trail import Trail

_SEVERITY: Mapping[str, SeverityLevel] = {"ok": "information", "failed": "error"}


class RunEnded(Message):
    """An action has ended, and its end is on the disk."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


class Changes(Screen[None]):
    """Dialogs, the runner and the record are imported when they are first needed."""

    cluster: Cluster
    trail: Trail
    _runs: Runs | None = None

    if TYPE_CHECKING:

        @property
        def keymap(self) -> Keymap: ...

        @property
        def pane(self) -> TablePane: ...

        def subject(self) -> Subject | None: ...
        def text_view(self) -> TextView | None: ...
        def refresh_chrome(self) -> None: ...
        def check_entries(self, pointed: Pointed) -> Iterator[Entry]: ...
        async def do_check(self, command: Command, pointed: Pointed) -> None: ...
        def proposed_reason(self, offer_id: str, pointed: Pointed) -> str: ...
        async def nccl_form(self, *, sweep: bool = False) -> None: ...
        def suggested(self) -> list[list[Subject]]: ...
        def suggested_reason(self) -> str: ...
        async def suggested_change(self, offer_id: str) -> bool: ...

    # What is offered, and why not.

    @property
    def runs(self) -> Runs:
        """The actions of this cluster since the start."""
        if self._runs is None:
            from actions.runner import Runner
            from screens.runs import Runs

            self._runs = Runs(Runner(self.cluster))
        return self._runs

    @property
    def active_runs(self) -> list[Run]:
        """Those that have not ended."""
        return self._runs.active if self._runs is not None else []

    def on_descendant_focus(self) -> None:
        """The last line follows the panel that has the focus at once."""
        if self.is_mounted:
            self.call_later(self.refresh_chrome)

    def on_scopes(self, pointed: Pointed) -> tuple[str, ...]:
        """What the cursor is on, for the last line and the menu: node, job, queue."""
        return fits(self.cluster.problems(), pointed)

    def change_entries(self, pointed: Pointed) -> tuple[Entry, ...]:
        """Every change for palette and menu, with the reason of those that cannot be done now."""
        from screens.change_verbs import other_entries

        return (
            *entries(self.keymap, lambda offer: self._why_not(offer, pointed)[0]),
            *other_entries(self.cluster.lock, pointed),
            *self.check_entries(pointed),
        )

    def disabled_keys(self, pointed: Pointed) -> dict[str, str]:
        """The keys of the table that change nothing now, with the reason."""
        whys: dict[str, str] = {}
        for offer in OFFERS:
            if offer.action.key and offer.id == offer.action.id:
                same = [self._why_not(each, pointed)[0] for each in same_key(offer.id)]
                if all(same):
                    whys[f"change.{offer.id}"] = same[0]
        if self.cluster.lock.on:
            whys["nccl.run"] = self.cluster.lock.why()
        return whys

    def _why_not(self, offer: Offer, pointed: Pointed) -> tuple[str, Aim]:
        """Why it cannot be done now ("" when it can), and to what."""
        lock = self.cluster.lock
        if lock.on:
            return lock.why(), Aim()
        cluster = self.cluster
        found = aim(cluster.view, cluster.problems(), pointed, offer.action.scope, cluster.config.name)
        if found.targets is None:
            return found.why, found
        chosen = found.targets
        if offer.action.scope is Scope.QUEUE and len(chosen) > 1:
            chosen = replace(chosen, names=chosen.names[:1])  # which of them is asked
        return offer.action.disabled_reason(spec.Context(self.cluster, chosen)) or "", found

    # From a key or a name to a dialog.

    def pointed(self) -> Pointed:
        """The marked rows, else what the cursor is on; in a text the link under the cursor, then what it is about."""
        subject = self.subject()
        if (text := self.text_view()) is not None:
            page = self.trail.here.subject
            if text.subject is not None and not text.state.chosen:
                subject = None  # nobody has put the cursor on that line
            # A list of everything, as one comes to with nothing under the cursor, is no target.
            told = [[each] for each in dict.fromkeys((subject, page)) if each is not None and each.key]
            return [*told[:1], *self.suggested(), *told[1:]]
        if not isinstance(self.focused, Heatmap):
            marked = [Subject(self.pane.spec.kind, key) for key in self.pane.marked_keys]
            if marked:
                return [marked]
        return [] if subject is None else [[subject]]

    async def action_change(self, offer_id: str) -> None:
        """A key of the table of actions."""
        if not await self.suggested_change(offer_id):
            await self.change(offer_id, self.pointed(), self.suggested_reason())

    async def change(
        self, offer_id: str, pointed: Pointed, reason: str = "", *, options: Options | None = None
    ) -> None:
        """Plan a change of these subjects, which are frozen from here on; or say why that is not possible.

        `reason` is what stands in its line already; with `options` what the dialog would ask first is known.
        """
        reason = reason or self.proposed_reason(offer_id, pointed)
        offers = same_key(offer_id) if offer_of(offer_id).action.key else (offer_of(offer_id),)
        if offer_id != offers[0].id:  # by its own name, not by the key that it shares
            offers = (offer_of(offer_id),)
        if options is not None:
            offers = tuple(replace(offer, options=options, first="") for offer in offers)
        told = [(offer, *self._why_not(offer, pointed)) for offer in offers]
        possible = [(offer, found) for offer, why, found in told if not why]
        if not possible:
            outlet.tell(self.app, f"{told[0][0].title}: {told[0][1]}", severity="warning")
        elif len(possible) > 1 and (fits_state := self._by_state(possible)) is not None:
            await self._aimed(*fits_state)
        elif len(possible) > 1:
            await self._ask_which(possible)
        else:
            await self._aimed(*possible[0], reason)

    def _by_state(self, possible: Sequence[tuple[Offer, Aim]]) -> tuple[Offer, Aim] | None:
        """Of stop and start the one that the fleet's state leaves; None when that does not say."""
        if possible[0][0].action.scope is not Scope.CLUSTER:
            return None
        from actions.fleet import by_state

        chosen = by_state(self.cluster)
        return next((each for each in possible if each[0].id == chosen), None)

    async def _ask_which(self, possible: Sequence[tuple[Offer, Aim]]) -> None:
        """Some are held and some are not, or the fleet is in between: only the person knows which is meant."""
        from screens.choice import ChoiceMenu

        by_id = {offer.id: (offer, found) for offer, found in possible}
        letters = [offer.id[0] for offer, _ in possible]
        keys = letters if len(set(letters)) == len(letters) else [str(at) for at in range(1, len(letters) + 1)]
        told = [
            Entry(Command(offer.id), offer.title, offer.help, key)
            for (offer, _), key in zip(possible, keys, strict=True)
        ]

        async def chosen(name: str | None) -> None:
            if name is not None:
                await self._aimed(*by_id[name])

        await self.app.push_screen(ChoiceMenu("which of both", told), chosen)

    async def _aimed(self, offer: Offer, found: Aim, reason: str = "") -> None:
        """One queue at a time: ask for it where there are several."""
        assert found.targets is not None
        if offer.action.scope is not Scope.QUEUE or len(found.targets) == 1:
            await self._ask(replace(self._question(offer, found.targets, found.note), reason=reason))
            return
        from screens.choice import ChoiceMenu

        names = found.targets.names
        told = [Entry(Command(name), name, "", str(number)) for number, name in enumerate(names[:9], 1)]

        async def chosen(name: str | None) -> None:
            if name is not None:
                await self._ask(self._question(offer, Targets(Scope.QUEUE, (name,)), found.note))

        await self.app.push_screen(ChoiceMenu(f"{offer.title}: which queue", told), chosen)

    def _question(self, offer: Offer, targets: Targets, note: str) -> Question:
        def instead(action_id: str) -> Question:
            return self._question(offer_of(action_id), targets, note)

        def make(options: Options) -> Plan:
            return offer.action.plan(self.cluster, targets, options)

        from screens.change_hints import fields_of, hints

        return Question(
            f"{offer.title} {_short(targets)}",
            make,
            offer.options,
            fields_of(self.cluster, offer, targets),
            offer.first,
            hints(self.cluster, offer, targets),
            note,
            instead=instead,
        )

    async def _ask(self, question: Question) -> None:
        from screens.plan_dialog import PlanDialog

        config = self.cluster.config
        dialog = PlanDialog(question, config.name, production=config.production)
        await self.app.push_screen(dialog, self._agreed)

    async def _agreed(self, answer: Agreed | Question | None) -> None:
        if isinstance(answer, Question):
            await self._ask(answer)
        elif answer is not None:
            run = self.runs.start(answer.plan, answer.typed, lambda run: None, self._ended)
            run.question = answer.question
            self.refresh_chrome()
            await self.show_run(run)

    # What runs, and what came of it.

    def _ended(self, run: Run) -> None:
        self.post_message(RunEnded(run))

    def on_run_ended(self, event: RunEnded) -> None:
        """Tell the end of what nobody looks at any more."""
        from screens.log_book import log_book
        from screens.run_text import OUTCOMES

        result = event.run.result
        log_book(self.cluster).read()
        self.refresh_chrome()
        if result is not None and event.run.left:
            word = OUTCOMES[result.outcome][1] if result.outcome in OUTCOMES else result.outcome
            more = "; u shows it, and the way back" if result.can_undo else "; u shows it"
            outlet.tell(self.app, f"{result.text}{more}", title=word, severity=_SEVERITY.get(result.outcome, "warning"))

    def make_log(self, heard: Callable[[str], None]) -> TablePane:
        """The pane of the record; `heard` is called on a thread when there is something new in it."""
        from screens.log_book import log_book
        from screens.log_table import log_spec
        from screens.pane import TablePane

        log_book(self.cluster).listen(heard)
        return TablePane(log_spec(self.cluster))

    async def action_runs(self) -> None:
        """What is being changed just now, else what was changed last."""
        every = self._runs.all if self._runs is not None else []
        if not every:
            outlet.tell(self.app, "nothing was changed since the start; 9 shows the record")
            return
        await self.show_run((self.active_runs or every)[-1])

    async def show_run(self, run: Run) -> None:
        """Follow an action."""
        from screens.run_view import RunView

        await self.app.push_screen(RunView(self.runs, run), self._after_run)

    async def _after_run(self, wish: tuple[str, Run] | None) -> None:
        self.refresh_chrome()
        if wish is None:
            return
        verb, run = wish
        if verb == "again" and run.question is not None:
            await self._ask(run.question)
        elif verb == "undo" and run.result is not None:
            await self.undo(run.result.audit_id)

    def run_pieces(self) -> list[Piece]:
        """For the header: what runs, or for how long the cluster is armed."""
        from cockpit.words import span

        pieces: list[Piece] = []
        armed_s = self.cluster.lock.armed_for_s
        if armed_s is not None:
            pieces.append((f"ARMED {span(armed_s)} ", "armed"))
        active = self.active_runs
        if active:
            more = f" +{len(active) - 1}" if len(active) > 1 else ""
            pieces.append((f"{active[-1].words()}{more}, u shows it ", "accent"))
        return pieces

    async def undo(self, audit_id: str = "") -> None:
        """The way back from a recorded action, the last one with a way back when none is named."""
        from screens.undoing import undo_question

        lock = self.cluster.lock
        if lock.on:
            outlet.tell(self.app, f"undo: {lock.why()}", severity="warning")
            return
        await self._ask(undo_question(self.cluster, self.runs.runner.audit, audit_id))

    # Commands of palette and menus.

    async def do_change(self, command: Command, pointed: Pointed) -> None:
        """Do what was chosen by its name; the subjects are those of the moment when the list was opened."""
        if command.id == "change":
            await self.change(command.argument, pointed)
        elif command.id in ("nccl-run", "nccl-sweep"):
            await self.nccl_form(sweep=command.id == "nccl-sweep")
        elif command.id in ("check-all", "efa-pair", "gpu-dcgm"):
            await self.do_check(command, pointed)
        elif command.id == "undo":
            await self.undo(command.argument)
        elif command.id == "arm":
            await self.arm(command.argument)
        elif command.id == "disarm":
            self.cluster.lock.disarm()
            outlet.tell(self.app, "read-only again")
            self.refresh_chrome()

    async def arm(self, text: str) -> None:
        """Allow changes of a read-only cluster for a while, once its name is typed."""
        from screens.arm import arm_dialog, arm_seconds

        try:
            seconds = arm_seconds(text, self.cluster.lock)
        except PermissionError as error:
            outlet.tell(self.app, str(error), severity="warning")
            return
        await self.app.push_screen(arm_dialog(self.cluster.config, seconds), partial(self._armed, seconds))

    def _armed(self, seconds: float, typed: str | None) -> None:
        if typed is None:
            return
        try:
            self.cluster.lock.arm(seconds)
        except PermissionError as error:
            outlet.tell(self.app, str(error), severity="warning")
        self.refresh_chrome()


def _short(targets: Targets) -> str:
    folded = targets.folded
    return folded if len(folded) <= 40 else targets.counted()
