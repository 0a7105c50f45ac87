"""The commands that change a cluster, each with --dry-run, --yes and --json, and the record of what was changed.

Nothing of `actions` is imported before one of them runs: `cockpit status` must not pay for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from cockpit.config import Config, ConfigError
from cockpit.text import printable, printable_lines

if TYPE_CHECKING:
    from actions.errors import ActionError
    from actions.outcome import Progress, Result
    from actions.runner import Runner, Running
    from actions.spec import Options, Plan, Targets
    from cockpit.cluster import Cluster

OK, WRONG, USAGE, UNREACHED, REFUSED = range(5)
INTERRUPTED = 130
_TRIES = 2  # a plan that changed while it was read is shown once more
_COMMON = ("config", "cluster", "read_only")

Common = Callable[[argparse.ArgumentParser, Mapping[str, Any]], None]
Load = Callable[[argparse.Namespace], tuple[Config, str]]
Commands = Any  # argparse keeps the type of add_subparsers() to itself

_NODE_COMMANDS = (
    ("drain", "take nodes out of service; their jobs run on", True),
    ("resume", "put nodes back into service, and say why they were out of it", False),
    ("down", "declare nodes dead: kills their jobs", True),
    ("reboot", "reboot nodes once their jobs have ended", True),
    ("cancel-reboot", "take back a reboot that was not issued yet", False),
    ("replace", "give nodes a new instance", True),
    ("quarantine", "keep bad nodes as they are for a look", True),
    ("unquarantine", "give quarantined nodes back", False),
    ("pin", "keep nodes up when idle", False),
    ("unpin", "let nodes power down when idle", False),
)
_JOB_COMMANDS = (
    ("cancel", "end jobs, or send them a signal"),
    ("hold", "keep waiting jobs from starting"),
    ("release", "let held jobs start"),
    ("requeue", "stop running jobs and put them back into the queue"),
    ("requeue-hold", "the same, and hold them there"),
    ("drain-requeue", "drain bad nodes of running jobs, then requeue the jobs: one plan"),
    ("top", "put waiting jobs before the others of their owner"),
)
_CAPTURES = ("drain", "down", "replace", "cancel", "requeue", "requeue-hold", "drain-requeue")
_CAPTURE_HELP = "first keep the evidence of the running jobs that it hits in a file; when that fails do nothing"


def register(commands: Commands, common: Common, load: Load) -> None:
    """Add the commands to the parser; `common` adds the options of every command, `load` reads the config."""

    def add(name: str, text: str, run: Callable[[argparse.Namespace, Load], int]) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{name}: {text}.")
        common(command, dict.fromkeys(_COMMON, argparse.SUPPRESS))
        command.add_argument("--json", action="store_true", help="one JSON object instead of text")
        command.set_defaults(run=lambda arguments: run(arguments, load), action=name)
        return command

    for name, text, with_reason in _NODE_COMMANDS:
        command = changing(add(name, text, _change))
        command.add_argument("nodes", metavar="NODES", help="a hostlist such as gpu-st-p5-[1-3,7]")
        command.set_defaults(pick=_nodes)
        if with_reason:
            command.add_argument("--reason", default="", metavar="TEXT", help="why; needed, and kept by Slurm")
        if name in _CAPTURES:
            command.add_argument("--capture", action="store_true", help=_CAPTURE_HELP)
        if name == "replace":
            command.add_argument("--now", action="store_true", help="do not wait for its jobs: kill them")
    _queue_commands(add)
    for name, text in _JOB_COMMANDS:
        _job_command(add(name, text, _change), name)
    nice = changing(add("nice", "lower waiting jobs' priority by a number", _change))
    nice.add_argument("count", type=int, metavar="N", help="the nice value; a negative one raises the priority")
    nice.add_argument("jobs", nargs="+", metavar="JOBS", help="job ids")
    nice.set_defaults(pick=_jobs)
    _cluster_commands(add)
    undo = changing(add("undo", "take back what a recorded action has changed", _undo))
    undo.add_argument("audit_id", metavar="ID", help="as `cockpit audit` shows it")
    audit = add("audit", "every change that was made from here, or refused", _audit)
    audit.add_argument("--since", default="", metavar="WHEN", help="2h, 3d, or 2026-11-30[T18:00]")
    audit.add_argument("--all", action="store_true", help="of every cluster, not only of this one")


def changing(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--dry-run", action="store_true", help="print the plan and do nothing")
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument(
        "--confirm", default="", metavar="CLUSTER", help="the cluster's name, for what cannot be undone (with --yes)"
    )
    return command


def _queue_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    scale = changing(add("scale", "so many nodes of a queue up", _change))
    scale.add_argument("queue", metavar="QUEUE")
    scale.add_argument("count", metavar="N", help="how many of its nodes shall be up: 0 to all that it has")
    scale.add_argument("--keep", action="store_true", help="keep what is started up when idle, until unpin")
    queue = changing(add("queue", "set a queue up, down (jobs wait) or to drain (no new jobs)", _change))
    queue.add_argument("state", choices=("up", "down", "drain", "inactive"))
    queue.add_argument("queue", metavar="QUEUE")
    scale.set_defaults(pick=_scaled)
    queue.set_defaults(pick=_queue)


def _cluster_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    stop = changing(add("stop", "stop the whole cluster, and see that nothing is left", _change))
    stop.add_argument("--after-jobs", action="store_true", help="close the queues, wait for running jobs, then stop")
    stop.add_argument("--head", action="store_true", help="the head node, too, once everything else is down")
    stop.add_argument("--at", default="", metavar="TIME", help="not now: at `Fri 19:00`, by itself, with nobody here")
    stop.add_argument("--start", default="", dest="start_at", metavar="TIME", help="with --at: start again then")
    stop.add_argument("--every", default="", choices=("day", "weekday", "week"), help="with --at: again and again")
    start = changing(add("start", "start the whole cluster, its head first", _change))
    start.add_argument("--groups", default="", metavar="NAME=COUNT,...", help="HyperPod: sizes of the instance groups")
    gone = changing(add("unschedule", "delete the schedules that stop and start this cluster", _change))
    for command in (stop, start, gone):
        command.set_defaults(pick=_whole)


def _job_command(command: argparse.ArgumentParser, name: str) -> None:
    changing(command).add_argument("jobs", nargs="+", metavar="JOBS", help="job ids: 123, 123_7, 123_[1-9]")
    command.set_defaults(pick=_jobs)
    if name in _CAPTURES:
        command.add_argument("--capture", action="store_true", help=_CAPTURE_HELP)
    if name == "drain-requeue":
        command.add_argument("--nodes", required=True, metavar="NODES", help="which of their nodes to drain")
        command.add_argument("--reason", default="", metavar="TEXT", help="why; needed, and kept by Slurm")
    if name == "cancel":
        command.add_argument("--signal", default="", metavar="NAME", help="send this signal instead, such as USR1")
        command.add_argument("--batch", action="store_true", help="the signal goes to the batch script only")
        command.add_argument("--full", action="store_true", help="the signal goes to the batch script and all steps")
    if name == "hold":
        command.add_argument("--user-hold", action="store_true", help="their owners may release them")


def _nodes(cluster: Cluster, arguments: argparse.Namespace) -> Targets:
    from actions.targets import node_targets

    return node_targets(cluster, arguments.nodes)


def _whole(cluster: Cluster, _: argparse.Namespace) -> Targets:
    from actions.fleet import cluster_target

    return cluster_target(cluster)


def _queue(cluster: Cluster, arguments: argparse.Namespace) -> Targets:
    from actions.targets import queue_target

    return queue_target(cluster, arguments.queue)


def _scaled(cluster: Cluster, arguments: argparse.Namespace) -> Targets:
    """The queue, and the number that was typed made one: what may stand there depends on the queue."""
    from actions.scale import no_count

    targets, word = _queue(cluster, arguments), str(arguments.count).strip()
    if not (word.isascii() and word.removeprefix("-").isdecimal() and len(word) < 20):
        raise no_count(cluster, arguments.queue, word)
    arguments.count = int(word)
    return targets


def _jobs(_: Cluster, arguments: argparse.Namespace) -> Targets:
    from actions.targets import job_targets

    return job_targets(arguments.jobs)


def _options(arguments: argparse.Namespace) -> Options:
    from actions.spec import Options

    given = {name: getattr(arguments, name) for name in Options.__dataclass_fields__ if hasattr(arguments, name)}
    return Options(**given)


@contextmanager
def with_cluster(arguments: argparse.Namespace, load: Load) -> Iterator[Cluster]:
    from cockpit.cluster import Cluster

    config, name = load(arguments)
    cluster = Cluster(config.clusters[name], rules=config.rules, read_only=arguments.read_only, watch_gpus=False)
    try:
        yield cluster
    finally:
        cluster.stop()


def _change(arguments: argparse.Namespace, load: Load) -> int:
    from actions.table import action

    chosen = action(_action_id(arguments))
    with with_cluster(arguments, load) as cluster:
        return Session(
            arguments,
            cluster,
            lambda: chosen.plan(cluster, arguments.pick(cluster, arguments), _options(arguments)),
        ).run()


def _action_id(arguments: argparse.Namespace) -> str:
    """A stop with a time is another action: it makes schedules. Raises ConfigError for a stop that stops nothing."""
    if arguments.action == "stop" and arguments.start_at and not arguments.at:
        raise ConfigError("stop --start TIME needs --at TIME: with --start alone nothing would be stopped")
    at_a_time = arguments.action == "stop" and (arguments.at or arguments.start_at)
    return "schedule" if at_a_time else str(arguments.action)


def _undo(arguments: argparse.Namespace, load: Load) -> int:
    from actions.audit import AuditLog
    from actions.undo import undo_of

    with with_cluster(arguments, load) as cluster:
        log = AuditLog(cluster.config.name)

        def plan() -> Plan:
            entry = log.find(arguments.audit_id)
            if entry is None:
                raise ConfigError(
                    f"no recorded action {arguments.audit_id!r} on {cluster.config.name}; see cockpit audit"
                )
            return undo_of(entry, cluster)

        return Session(arguments, cluster, plan).run()


class Session:
    """One change from the command line: read, plan, show, ask, run, tell."""

    def __init__(self, arguments: argparse.Namespace, cluster: Cluster, plan: Callable[[], Plan]) -> None:
        self._arguments, self._cluster, self._plan = arguments, cluster, plan
        self._sender: Runner | None = None  # what was sent is sent by it
        self._interrupted = False

    def run(self) -> int:
        """The exit code."""
        from actions.errors import ActionError

        try:
            self._read()
            return self._planned(self._plan(), 1)
        except ActionError as error:
            return self._refused(error)

    def _refused(self, error: ActionError) -> int:
        from actions.errors import Refusal

        print(f"cockpit: {printable_lines(str(error))}", file=sys.stderr)
        if error.kind is Refusal.UNREACHED:
            self._why_unread()
        return {Refusal.USAGE: USAGE, Refusal.UNREACHED: UNREACHED}.get(error.kind, REFUSED)

    def _read(self) -> None:
        self._cluster.read_once()

    def _why_unread(self) -> None:
        faults = (state.error.line() for state in self._cluster.store.states() if state.error is not None)
        for line in dict.fromkeys(faults):
            print(f"cockpit: {line}", file=sys.stderr)

    def _planned(self, plan: Plan, tries: int) -> int:
        from actions.plan_lines import plan_lines

        arguments = self._arguments
        out = sys.stderr if arguments.json else sys.stdout
        if not arguments.json or not (arguments.dry_run or arguments.yes):
            print("\n".join(plan_lines(plan)), file=out, flush=True)
        if arguments.dry_run:
            return self._dry(plan)
        typed, how = self._confirmed(plan)
        if typed is None:
            return self._told(self._runner().refuse(plan, how))
        self._read()  # the question may have stood there for an hour
        result = self._watched(plan, typed, how)
        if result.outcome == "refused" and "look at the new plan" in result.text and tries < _TRIES and how == "typed":
            print(f"cockpit: {result.text}", file=sys.stderr)
            return self._planned(self._plan(), tries + 1)
        return self._told(result)

    def _dry(self, plan: Plan) -> int:
        from actions.plan_lines import plan_record
        from cockpit.report import envelope

        if self._arguments.json:
            self._print_json(envelope(self._cluster) | {"plan": plan_record(plan), "result": None})
        if not self._cluster.read_only:
            return OK
        print(f"cockpit: it would be refused: {self._cluster.lock.why()}", file=sys.stderr)
        return REFUSED

    def _confirmed(self, plan: Plan) -> tuple[str | None, str]:
        """What was typed and how, or None and why it was not confirmed."""
        confirm, arguments = plan.confirm, self._arguments
        if self._cluster.read_only:
            return confirm.word, "--yes"  # there is nothing to ask: the runner refuses it, and records that
        if arguments.yes:
            if confirm.kind == "cluster":
                missing = f"not confirmed: this needs --confirm {plan.cluster} beside --yes"
                return (arguments.confirm, "--yes --confirm") if arguments.confirm else (None, missing)
            return confirm.word, "--yes"
        if not sys.stdin.isatty():
            return None, "not confirmed: without a terminal it needs --yes"
        _forget_typed_ahead()
        print(f"{confirm.prompt}: ", end="", file=sys.stderr, flush=True)
        typed = sys.stdin.readline()
        _forget_typed_ahead()  # the rest of a paste must not answer whatever asks next
        if not confirm.fits(typed):
            return None, f"not confirmed: {printable(typed.strip()) or 'nothing'!r} was typed; nothing was changed"
        return typed.strip(), "typed"

    def _runner(self) -> Runner:
        from actions.runner import Runner

        return Runner(self._cluster)

    def _watched(self, plan: Plan, typed: str, how: str) -> Result:
        """Run it on its own thread; ctrl-c sends nothing more and watches no longer, then tells what was done."""
        self._sender = sender = self._runner()
        running = sender.start(plan, typed, self._progress, how=f"{how} {typed!r}")
        while True:
            try:
                return cast("Result", running.wait())
            except KeyboardInterrupt:
                if running.cancelled.is_set():
                    raise
                running.cancel()
                self._interrupted = True
                print("cockpit: nothing more is sent; what runs now still ends", file=sys.stderr, flush=True)
                self._cut_short(running)

    def _cut_short(self, running: Running) -> None:
        """Ctrl-C came: see to it that what runs now ends soon, where that is possible."""

    def _progress(self, progress: Progress) -> None:
        """Steps and looks on stderr as they come; the end is told with the result."""
        if progress.kind == "end":
            return
        mark = {"step": "->", "done": "  ", "watch": "  ", "note": "!!"}.get(progress.kind, "  ")
        subject = f"{progress.target}: " if progress.target else ""
        print(f"{mark} {printable(subject + progress.text)}", file=sys.stderr, flush=True)

    def _told(self, result: Result) -> int:
        from actions.errors import Refusal
        from actions.plan_lines import plan_record, result_lines, result_record
        from cockpit.report import envelope

        if self._arguments.json:
            told = {"plan": plan_record(result.plan), "result": result_record(result)}
            self._print_json(envelope(self._cluster) | told)
        else:
            print("\n".join(result_lines(result)), file=sys.stderr if result.outcome == "refused" else sys.stdout)
        if result.outcome == "refused":
            return {Refusal.USAGE: USAGE, Refusal.UNREACHED: UNREACHED}.get(result.refusal or Refusal.REFUSED, REFUSED)
        return {"ok": OK, "cancelled": INTERRUPTED}.get(result.outcome, WRONG)

    def _print_json(self, record: Mapping[str, Any]) -> None:
        json.dump(record, sys.stdout, ensure_ascii=False, indent=1)
        print(flush=True)


def _forget_typed_ahead() -> None:
    """Drop what was typed or pasted before the question was there."""
    import termios

    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, OSError, ValueError):
        return


def _audit(arguments: argparse.Namespace, load: Load) -> int:
    from actions.audit import AuditError, AuditLog, clusters_with_records
    from actions.audit_lines import entry_record, lines, since

    begin = since(arguments.since)
    config, name = load(arguments) if not arguments.all else (None, "")
    logs = [AuditLog(name)] if config else [AuditLog.of(path) for path in clusters_with_records()]
    try:
        entries = [entry for log in logs for entry in log.entries() if entry.at >= begin]
    except AuditError as error:
        print(f"cockpit: {error}", file=sys.stderr)
        return WRONG
    entries.sort(key=lambda entry: (entry.at, entry.id))
    if arguments.json:
        json.dump({"schema": 1, "actions": [entry_record(entry) for entry in entries]}, sys.stdout, indent=1)
        print()
    else:
        print("\n".join(lines(entries)) if entries else "nothing was changed from here")
    return OK
