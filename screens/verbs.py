"""What keys do with the thing that the cursor is on, and what palette and menus are told of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual import on
from textual.screen import Screen

import themes
from cockpit.cluster import Cluster
from cockpit.config import theme_names
from cockpit.models import FaultError, Job, Problem
from screens import grid_messages, outlet
from screens.change_targets import Pointed
from screens.commands import CHANGES, OF_THE_APP, Command, Context, Entry
from screens.filters import field_filter
from screens.grid import Grid
from screens.heatmap import Heatmap
from screens.keymap import Keymap
from screens.keys import press
from screens.lines import Line, Subject
from screens.pane import TablePane
from screens.pane_spec import PaneSpec
from screens.panes import pane_specs
from screens.problem_table import problem_spec
from screens.subjects import NOTHING, job_behind, output_reason, problems_of, title
from screens.text_messages import CopyText, PagerWanted
from screens.text_view import TextView

if TYPE_CHECKING:
    from screens.cluster_app import ClusterApp
    from screens.output_view import OutputView

OUTPUT = "output"  # the view of what a job writes

_DETAILS = ("node", "gpu", "job", "queue", "problem", "traffic", "setting")


class Verbs(Screen[None]):
    """The part of CockpitScreen that acts on a subject. Dialogs are imported when they are first opened."""

    cluster: Cluster

    if TYPE_CHECKING:

        @property
        def pane(self) -> TablePane: ...

        def scopes(self) -> tuple[str, ...]: ...
        def subject(self) -> Subject | None: ...
        async def go(self, subject: Subject, view: str = "detail") -> None: ...
        async def go_to_output(self, subject: Subject, job: Job) -> None: ...
        async def action_pane(self, name: str) -> None: ...
        def text_view(self) -> TextView | None: ...
        def pointed(self) -> Pointed: ...
        def change_entries(self, pointed: Pointed) -> tuple[Entry, ...]: ...
        def disabled_keys(self, pointed: Pointed) -> dict[str, str]: ...
        async def do_change(self, command: Command, pointed: Pointed) -> None: ...
        def output_view(self) -> OutputView | None: ...
        async def diagnose(self, subject: Subject | None) -> None: ...

    # What is known of where one is.

    @property
    def host(self) -> ClusterApp:
        """The app with what it has for every cluster."""
        return cast("ClusterApp", self.app)

    @property
    def keymap(self) -> Keymap:
        """The user's own keys."""
        return self.host.keymap_of_user

    def context(self) -> Context:
        """Where somebody is, for palette, menus and help."""
        pane = None if self.text_view() or isinstance(self.focused, Heatmap) else self.pane
        marked = tuple(Subject(pane.spec.kind, key) for key in pane.marked_keys) if pane else ()
        return Context(
            self.cluster.view,
            self.scopes(),
            self.subject(),
            marked,
            problems=self.cluster.problems(),
            keymap=self.keymap,
            cluster=self.cluster.config.name,
            clusters=self.host.clusters.names,
            theme=self.app.theme,
            themes=theme_names(),
            switches=self.host.switches,
        )

    def context_with_changes(self, pointed: Pointed) -> Context:
        """The same with everything that changes the cluster, for palette and menu."""
        return replace(self.context(), changes=self.change_entries(pointed))

    async def run_command(self, pointed: Pointed, command: Command | None) -> None:
        """Do what was chosen in the palette or a menu, to what they were opened on."""
        if command is None:
            return
        name, argument = command.id, command.argument
        if name in _DETAILS:
            await self.go(Subject(name, argument))
        elif name == "diagnose":
            await self.diagnose(Subject("job", argument))
        elif name == "user":
            await self.action_pane("queue")
            self.pane.set_filter(field_filter("user", argument))
        elif name in OF_THE_APP:
            self.host.do(command)
        elif name in CHANGES:
            await self.do_change(command, pointed)
        elif name == "screenshot":
            # The dialog is still on the screen when its result is told.
            self.call_after_refresh(self.take_screenshot)
        else:
            await press(self, name, [self.pane])

    def take_screenshot(self) -> None:
        """Write what is on the screen to files."""
        outlet.screenshot(self.app, self.cluster.config.name, redact=self.host.redact_screenshots)

    # What keys do.

    async def action_palette(self) -> None:
        """Go somewhere, or do something by its name."""
        from screens.palette import PaletteScreen

        pointed = self.pointed()
        screen = PaletteScreen(self.context_with_changes(pointed))
        await self.app.push_screen(screen, partial(self.run_command, pointed))

    async def action_action_menu(self) -> None:
        """Everything that can be done with what the cursor is on."""
        from screens.action_menu import ActionMenuScreen

        pointed = self.pointed()
        screen = ActionMenuScreen(self.context_with_changes(pointed))
        await self.app.push_screen(screen, partial(self.run_command, pointed))

    async def action_copy_menu(self) -> None:
        """Copy as a table, JSON, markdown or command."""
        from screens.copy_menu import CopyMenuScreen
        from screens.copy_offers import row_offers, text_offers

        text = self.text_view()
        if text is not None:
            spec, rows = self._behind()
            offers = [*text_offers(text.text, text.current_line), *(row_offers(spec, rows) if spec and rows else ())]
            about = title(here, self.cluster.problems()) if rows and (here := self.subject()) else "this text"
            await self.app.push_screen(CopyMenuScreen(about, offers))
            return
        wanted, spec = set(self.pane.target_keys), shown_spec(self.pane)
        rows = [row for row in self.pane.visible_rows if spec.key(row) in wanted]
        if not rows:
            outlet.tell(self.app, NOTHING)
            return
        from screens.subject_entries import targets_title

        await self.app.push_screen(CopyMenuScreen(targets_title(self.context()), row_offers(spec, rows)))

    def _behind(self) -> tuple[PaneSpec | None, Sequence[Any]]:
        """The line of a table that the details in front are about: there too one copies its name, or its nodes."""
        subject = self.subject()
        specs = (*pane_specs(self.cluster), problem_spec(self.cluster))
        spec = next((spec for spec in specs if subject is not None and spec.kind == subject.kind), None)
        if spec is None or subject is None:
            return None, ()
        return spec, [row for row in spec.rows(self.cluster.view) or () if spec.key(row) == subject.key]

    async def action_help(self) -> None:
        """What every key does here."""
        from screens.help import HelpScreen
        from screens.help_lines import LEGENDS

        fields = () if self.text_view() else self.pane.fields
        legend = LEGENDS.get(self.pane.spec.id, ())
        disabled = {**self.cannot(), **self.disabled_keys(self.pointed())}
        await self.app.push_screen(HelpScreen(self.scopes(), self.keymap, disabled, fields=fields, legend=legend))

    def cannot(self) -> dict[str, str]:
        """Why keys that only read have nothing to do with what the cursor is on."""
        from screens.subject_entries import subject_entries

        return {entry.command.id: entry.disabled for entry in subject_entries(self.context()) if entry.disabled}

    async def action_output(self) -> None:
        """What the job under the cursor writes; there, its other stream."""
        output, subject, view = self.output_view(), self.subject(), self.cluster.view
        if output is not None:
            output.action_other_stream()
        elif why := output_reason(view, subject):
            outlet.tell(self.app, why, title="no output", severity="warning")
        elif (row := job_behind(view, subject)[0]) is not None:
            await self.go_to_output(Subject("job", row.key), row.lead)

    @on(PagerWanted)
    def page(self, event: PagerWanted) -> None:
        """Show a file in the pager."""
        from screens.pager import open_pager

        open_pager(self.app, self.cluster, event.node, event.path)

    def action_ssh(self) -> None:
        """A shell on the node behind what the cursor is on."""
        from screens.ssh_shell import open_shell

        open_shell(self.app, self.cluster, self.subject())

    # Problems.

    async def action_acknowledge(self) -> None:
        """Set a problem aside with a note, or take it back."""
        subject = self.subject()
        about = problems_of(self.cluster.problems(), subject) if subject else ()
        if not about:
            outlet.tell(self.app, f"no problem is known of {title(subject)}" if subject else NOTHING)
            return
        problem = about[0]
        if problem.acknowledged is not None:
            self._book(lambda: self.cluster.take_back(problem.key), f"taken back: {problem.subject}: {problem.title}")
            return
        from screens.note_dialog import NoteDialog

        def keep(note: str | None) -> None:
            if note is not None:
                done = f"set aside: {problem.subject}: {problem.title}"
                self._book(lambda: self.cluster.acknowledge(problem.key, note), done)

        dialog = NoteDialog("set this problem aside", _problem_lines(problem), "why: who takes care of it, until when")
        await self.app.push_screen(dialog, keep)

    def _book(self, change: Any, done: str) -> None:
        """Write it down on a thread, since a home directory may hang."""

        def work() -> None:
            try:
                change()
            except FaultError as error:
                self.app.call_from_thread(outlet.tell, self.app, error.fault.line(), severity="error")
                return
            self.app.call_from_thread(outlet.tell, self.app, done)

        threading.Thread(target=work, name="acknowledge", daemon=True).start()

    # What tables and texts ask for.

    @on(grid_messages.CopyRequested)
    def copy_rows(self, event: grid_messages.CopyRequested) -> None:
        """Put the names of rows on the clipboard."""
        outlet.copy(self.app, spec_of(event).copied(event.keys))

    @on(CopyText)
    def copy_details(self, event: CopyText) -> None:
        """Put a text on the clipboard."""
        outlet.copy(self.app, event.text)

    @on(grid_messages.ColumnsRequested)
    def choose_columns(self, event: grid_messages.ColumnsRequested) -> None:
        """Which columns that table shows."""
        from screens.column_chooser import ColumnsScreen, kept_words

        self.app.push_screen(ColumnsScreen(event.grid, kept_words(remember=self.host.remember)))

    @on(grid_messages.ExportRequested)
    def export_rows(self, event: grid_messages.ExportRequested) -> None:
        """Write the lines shown to files of the user's own, with every column, those that are shown first to last."""
        outlet.export_rows(self.app, self.cluster.config.name, shown_spec(event.grid), event.grid.visible_rows)


def spec_of(event: grid_messages.GridMessage) -> PaneSpec:
    """The spec of the pane that sent a message: by now another one may be in front."""
    assert isinstance(event.grid, TablePane)
    return event.grid.spec


def shown_spec(grid: Grid[Any]) -> PaneSpec:
    """The same with the columns as they stand in the table: chosen, and of checks those that there are."""
    assert isinstance(grid, TablePane)
    return replace(grid.spec, columns=grid.columns)


def _problem_lines(problem: Problem) -> Sequence[Line]:
    return [
        [(problem.subject, themes.STATE_TOKENS[problem.health]), f"  {problem.title}"],
        [(problem.evidence[:300], "dim")],
    ]
