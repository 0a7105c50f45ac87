"""`cockpit nccl run` and `cockpit nccl sweep`: plan, ask, submit, and tell every row as it comes.

Ctrl-C cancels the job and waits until Slurm has ended it. Nothing of `actions` is imported before one of them runs.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cockpit.cli_actions import INTERRUPTED, OK, UNREACHED, WRONG, Load, Session, changing, with_cluster
from cockpit.text import printable
from cockpit.words import binary_size, plural

if TYPE_CHECKING:
    from actions.nccl_bench import Bench, NcclOptions
    from actions.nccl_live import Live, LiveSweep, LiveTest
    from actions.outcome import Result
    from actions.runner import Running
    from actions.spec import Plan
    from cockpit.cluster import Cluster
    from cockpit.nccl.measured import Outcome, Trial

TICK_S = 0.2
_END_S = 45.0  # for cancelling after ctrl-C
_TRIES, _TRY_S = 4, 2.0  # what is still being sent may come late

Subparsers = Any
Common = Callable[[argparse.ArgumentParser], None]


def add_run(verbs: Subparsers, common: Common, load: Load) -> None:
    """Put `run` and `sweep` below `cockpit nccl`."""
    run = verbs.add_parser("run", help="measure idle nodes: one test as a Slurm job, judged and kept")
    sweep = verbs.add_parser("sweep", help="find the node or pair that is slow or fails, among 2 to 128 idle nodes")
    for command in (run, sweep):
        common(command)
        changing(command)
        command.add_argument("--json", action="store_true", help="one JSON object instead of text")
        command.add_argument("nodes", nargs="?", default="", metavar="NODES", help="a hostlist such as gpu-st-p5-[1-3]")
        command.add_argument("--count", type=int, metavar="N", help="any N idle nodes instead")
        command.add_argument("--queue", default="", metavar="QUEUE", help="the queue to run in, and to take nodes from")
        command.add_argument("--collective", default="", metavar="NAME", help="all_reduce (usual), all_gather, ...")
        command.add_argument("--ring", action="store_true", help="with NCCL_ALGO=Ring")
        command.add_argument("--program", default="", metavar="PATH", help="the binary's full path, or a container")
        command.add_argument("--mpi", default="", metavar="TYPE", help="for srun --mpi; the usual: what Slurm has")
        command.add_argument("--account", default="", metavar="NAME")
        command.add_argument("--reservation", default="", metavar="NAME", help="test nodes inside a reservation")
    run.add_argument("--sizes", default="", metavar="MIN:MAX", help="1G:8G (usual); only 1 GiB and more is judged")
    run.set_defaults(run=lambda arguments: _started(arguments, load, sweep=False))
    sweep.set_defaults(run=lambda arguments: _started(arguments, load, sweep=True), sizes="")


def _started(arguments: argparse.Namespace, load: Load, *, sweep: bool) -> int:
    from actions.nccl_bench import Bench

    with with_cluster(arguments, load) as cluster:
        bench = Bench(cluster, sweep=sweep)
        return _NcclSession(arguments, cluster, bench, _options(arguments)).run()


def _options(arguments: argparse.Namespace) -> NcclOptions:
    from actions.nccl_bench import NcclOptions

    return NcclOptions(
        count=arguments.count,
        test=arguments.collective,
        size=arguments.sizes,
        nodes=arguments.nodes,
        program=arguments.program,
        queue=arguments.queue,
        ring=arguments.ring,
        mpi=arguments.mpi,
        account=arguments.account,
        reservation=arguments.reservation,
    )


class _NcclSession(Session):
    """A change like any other up to its end; then the test that it has started is followed."""

    def __init__(self, arguments: argparse.Namespace, cluster: Cluster, bench: Bench, options: NcclOptions) -> None:
        super().__init__(arguments, cluster, lambda: bench.plan(options))
        self._bench = bench
        self._live: Live | None = None  # what is followed

    def run(self) -> int:
        """The exit code."""
        from actions.errors import ActionError, Refusal

        arguments = self._arguments
        whole = self._bench.sweep or arguments.nodes or arguments.count is not None
        if not whole or (arguments.nodes and arguments.count is not None):
            self._read()
            error = ActionError(Refusal.USAGE, "name the nodes, or how many with --count; not both")
            return self._refused(error)
        try:
            return super().run()
        except KeyboardInterrupt:  # wherever it came: between two waits there is a job, too
            if self._interrupted or self._sender is None:
                raise
            self._interrupted = True
            for running in list(self._sender.active):
                running.cancel()
                running.wait()
            return self._given_up()

    def _cut_short(self, running: Running) -> None:
        """A salloc that waits for the prologs of its nodes does not see that its job is gone: then it waits alone."""
        for _ in range(_TRIES):
            fault = self._clean()
            if running.done.wait(_TRY_S):
                return
        print(f"cockpit: stopped; {fault or 'its job is cancelled'}", file=sys.stderr)
        raise KeyboardInterrupt

    def _told(self, result: Result) -> int:
        """Follow what was submitted; anything else is told as for every change."""
        if result.outcome == "refused":
            return super()._told(result)
        if result.outcome == "cancelled" or self._interrupted:  # it may have been too late to be cut short
            return self._given_up()
        live = self._live = self._followed(result.plan)
        if not live.begin(result):
            code = super()._told(result)
            if fault := self._clean():  # what was not seen may be there all the same
                print(f"cockpit: {fault}", file=sys.stderr)
            return code if code != OK else WRONG
        print(f"job {live.job_id} on {printable(result.plan.targets.folded)}; ctrl-C cancels it", file=sys.stderr)
        self._follow(live)
        if live.stopped.is_set():
            return self._stopped(live)
        return self._end(live, result.plan)

    def _followed(self, plan: Plan) -> Live:
        from actions.nccl_live import LiveSweep, LiveTest

        test = self._bench.request_of(plan)
        if not self._bench.sweep:
            return LiveTest(self._cluster, test)
        live = LiveSweep(self._cluster, test, self._bench.sweep_options(test), self._bench.name)
        live.on_outcome = self._outcome
        return live

    def _follow(self, live: Live) -> None:
        """Print what is new until the end; the first ctrl-C stops it, and waits for that."""
        threading.Thread(target=live.run, name="nccl-live", daemon=True).start()
        told = _Teller(live, self._say)
        while not live.over.is_set():
            try:
                live.over.wait(TICK_S)
                told.tell()
            except KeyboardInterrupt:
                if self._interrupted:
                    raise
                self._interrupted = True
                print("cockpit: cancelling the job …", file=sys.stderr, flush=True)
                live.stop()
        told.tell()

    def _stopped(self, live: Live) -> int:
        fault = self._clean() or live.fault
        print(f"cockpit: stopped; {fault or 'its job is cancelled'}", file=sys.stderr)
        return INTERRUPTED

    def _given_up(self) -> int:
        """Ctrl-C while nobody waited for its end: the job may be there."""
        if self._live is not None:
            self._live.stopped.set()  # its cut-off end is no result
        print("cockpit: cancelling the job …", file=sys.stderr, flush=True)
        fault = self._clean()
        print(f"cockpit: stopped; {fault or 'no job of it is left'}", file=sys.stderr)
        return INTERRUPTED

    def _clean(self) -> str:
        """End its jobs, by their name; what went wrong, "" for nothing."""
        from actions.nccl_live import end_jobs
        from cockpit.models import FaultError

        try:
            end_jobs(self._cluster, self._bench.name, deadline_s=_END_S)
        except FaultError as error:
            return f"a job {self._bench.name} may be left: {error.fault.line()}"
        return ""

    def _say(self, line: str) -> None:
        print(printable(line), file=sys.stderr if self._arguments.json else sys.stdout, flush=True)

    def _outcome(self, trial: Trial, outcome: Outcome) -> None:
        value = f"{outcome.busbw_gbs:.1f} GB/s" if outcome.busbw_gbs is not None else outcome.text or "no result"
        self._say(f"round {trial.round:>2}  {trial.phase:<8}  {', '.join(trial.nodes)}: {value}")

    def _end(self, live: Live, plan: Plan) -> int:
        from actions.plan_lines import plan_record
        from cockpit.report import envelope

        verdict, more = _sweep_end(live, self._say) if self._bench.sweep else _test_end(live, self._say)
        if live.fault:
            print(f"cockpit: {printable(live.fault)}", file=sys.stderr)
        if self._arguments.json:
            record = {"plan": plan_record(plan), "job_id": live.job_id, "kept": live.record is not None, **more}
            self._print_json(envelope(self._cluster) | record | {"fault": live.fault or None})
        if not verdict:
            return UNREACHED
        return WRONG if verdict in ("fail", "incomplete") else OK


class _Teller:
    """Prints rows and states that were not printed yet."""

    def __init__(self, live: Live, say: Callable[[str], None]) -> None:
        self._live, self._say, self._rows, self._state = live, say, 0, ""

    def tell(self) -> None:
        live = self._live
        if live.state != self._state and not live.over.is_set():
            self._state = live.state
            print(f"   {printable(live.state)}", file=sys.stderr, flush=True)
        rows = getattr(live, "rows", ())
        for row in rows[self._rows :]:
            busbw = "-" if row.busbw_gbs is None else f"{row.busbw_gbs:.2f} GB/s"
            wrong = f"  {row.wrong} wrong" if row.wrong else ""
            self._say(f"{binary_size(row.size_bytes):>10}  {busbw:>14}{wrong}")
        self._rows = len(rows)


def _test_end(live: Any, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    from cockpit.nccl.report import reading_json, reading_lines

    test: LiveTest = live
    if test.record is None or test.result is None or test.verdict is None:
        return "", {"reading": None}
    readings = [(test.result, test.verdict)]
    for line in list(reading_lines(readings, 0))[: 2 + len(test.verdict.reasons)]:
        say(line)
    told = reading_json(readings, f"job {test.job_id}", time.time(), test.cluster.config.name)
    return test.verdict.word.value, {"reading": told}


def _sweep_end(live: Any, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    sweep: LiveSweep = live
    found = sweep.found
    if sweep.record is None:
        return "", {"sweep": None}
    for finding in found.findings:
        say(finding.text)
    if not found.findings:
        say(found.nothing)
    pairs = f"{found.pairs_measured} of {plural(found.pairs_possible, 'pair')} measured"
    say(f"{plural(found.jobs, 'test')} in {plural(found.rounds, 'round')}, {pairs}")
    for node in found.bad_nodes:
        reason = next(finding.reason for finding in found.findings if finding.nodes[0] == node)
        say(f"next: cockpit drain {node} --reason '{reason}'")
    told = asdict(found) | {"verdict": sweep.record.verdict, "bad_nodes": list(found.bad_nodes)}
    return sweep.record.verdict, {"sweep": told}
