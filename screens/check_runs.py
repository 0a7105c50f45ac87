"""A check run of this cockpit while it runs, and what is said of it. Imports no Textual.

Looking is tier 0: it changes nothing, so that it needs no runner and no record (see actions/checks.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cockpit.cluster import Cluster
from cockpit.formats.hostlist import brief, fold
from cockpit.models import FaultError
from cockpit.sources.base import unexpected
from cockpit.words import plural, span
from screens.check_book import check_book

if TYPE_CHECKING:
    from cockpit.checks.models import CheckRun, NodeResult
    from cockpit.checks.runner import CheckRunner

TITLES = {"efa": "EFA check", "health": "health check"}
_MOST_NAMES = 60  # cells that names may take in a sentence


class CheckSession:
    """One run over some nodes, on threads of its own. `heard` is called there for each node, `ended` at the end."""

    def __init__(
        self,
        cluster: Cluster,
        kind: str,
        nodes: Iterable[str] = (),
        *,
        heard: Callable[[], None] = lambda: None,
        ended: Callable[[CheckSession], None] = lambda session: None,
    ) -> None:
        """`nodes` by name; without any, all that are up."""
        self.kind, self.names = kind, tuple(nodes)
        self.began_at = cluster.clock.steady()
        self.total: int | None = None if not self.names else len(self.names)
        self.done = self.failed = self.warned = self.silent = 0
        self.run: CheckRun | None = None
        self.trouble = ""  # why there was nothing to ask, or why it is not kept
        self.over = threading.Event()
        self.stopping = False
        self._cluster, self._book = cluster, check_book(cluster)
        self._heard, self._ended = heard, ended
        self._runner: CheckRunner | None = None

    @property
    def title(self) -> str:
        """`EFA check`, `health check`."""
        return TITLES[self.kind]

    def start(self) -> None:
        """Ask them; returns at once."""
        self._book.asking(self.kind, self.names)
        threading.Thread(target=self._work, name=f"{self.kind}-check", daemon=True).start()

    def stop(self) -> None:
        """Ask no further node and wait for none; what has answered stays."""
        self.stopping = True
        if self._runner is not None:
            self._runner.cancel()

    def _work(self) -> None:
        try:
            self._ask()
        except FaultError as error:
            self.trouble = error.fault.line()
        except Exception as error:  # told where it was asked for, whatever it is
            self.trouble = unexpected(f"the {self.title}", error).line()
        finally:
            self._book.asking(self.kind, ())
            self.over.set()
            self._ended(self)

    def _ask(self) -> None:
        from cockpit.checks.from_aws import from_aws
        from cockpit.checks.runner import CheckRunner
        from cockpit.checks.targets import choose, opener, with_job_settings

        cluster = self._cluster
        self._runner = CheckRunner(
            self.kind, lambda name: opener(cluster, name), settings=cluster.checks, clock=cluster.clock
        )
        chosen = choose(cluster, fold(self.names) if self.names else "", aws=from_aws(cluster, self.kind))
        targets = chosen.targets
        self.total = len(targets)
        if not targets:
            why = ", ".join(f"{name} {why}" for name, why in chosen.left_out[:4])
            self.trouble = f"there is no node to ask: {why}" if why else "there is no node that is up"
            return
        self._book.asking(self.kind, [target.node for target in targets])
        if self.kind == "efa" and cluster.view.nodes is not None and not self.stopping:
            targets = with_job_settings(cluster, targets)
        if self.stopping:
            self._runner.cancel()
        run = self._runner.run(targets, self._one)
        self.run = replace(run, left_out=(*run.left_out, *chosen.left_out))
        try:
            self._book.keep(self.run)
        except OSError as error:
            self.trouble = f"this run is not kept: {error.strerror or error}"

    def _one(self, node: NodeResult) -> None:
        from cockpit.checks.models import Verdict

        self.done += 1
        self.silent += node.fault is not None
        self.failed += node.verdict is Verdict.FAIL
        self.warned += node.verdict is Verdict.WARN
        self._book.add(self.kind, node)
        self._heard()

    # In words.

    def words(self) -> str:
        """`41 of 64 nodes, 3 fail, 2 do not answer`, while it runs."""
        if self.total is None or (not self.done and self._runner is None):
            return "looking which nodes are up"
        parts = [f"{self.done} of {plural(self.total, 'node')}", *self._bad()]
        return ", ".join(parts)

    def short(self) -> str:
        """For the header: `EFA check 41/64, 3 fail`."""
        count = f"{self.done}/{self.total}" if self.total is not None else "…"
        return f"{self.title} {count}" + (f", {self.failed} fail" if self.failed else "")

    def end_words(self, *, names: bool = True) -> str:
        """What came of it, with the `names` of the worst."""
        run = self.run
        if run is None:
            return f"{self.title}: {self.trouble or 'it was stopped'}"
        count = f"{len(run.nodes)} of {plural(self.total or 0, 'node')}" if run.cancelled else plural(self.done, "node")
        told = ", ".join([count, *(self._bad() or ["all well"])])
        stopped = "stopped: " if run.cancelled else ""
        kept = f"; {self.trouble}" if self.trouble else ""
        if run.drift:
            told += f"; versions differ: {', '.join(dict.fromkeys(each.title for each in run.drift))}"
        named = self._names() if names else ""
        return f"{self.title}: {stopped}{told}, in {span(run.took_s)}{named}{kept}"

    def _bad(self) -> list[str]:
        fail = f"{self.failed} fail{'s' * (self.failed == 1)}"
        warn = f"{self.warned} with a warning" if self.warned == 1 else f"{self.warned} with warnings"
        silent = f"{self.silent} do{'es' * (self.silent == 1)} not answer"
        return [words for number, words in ((self.failed, fail), (self.warned, warn), (self.silent, silent)) if number]

    def _names(self) -> str:
        from cockpit.checks.models import Verdict

        run = self.run
        assert run is not None
        failed = [node.node for node in run.nodes if node.verdict is Verdict.FAIL]
        silent = [node.node for node in run.nodes if node.fault is not None]
        told = [("fails", failed), ("no answer", silent)]
        return "".join(f"; {word}: {brief(names, _MOST_NAMES)}" for word, names in told if names)
