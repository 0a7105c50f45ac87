"""Every action in one table: footer, help, palette, command line, docs/KEYS.md, read-only and audit derive from it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from actions.spec import (
    COUNTED,
    JOB_NEEDS,
    NAMED,
    NODE_NEEDS,
    UNDONE_EASILY,
    Action,
    Build,
    Context,
    Option,
    Options,
    Plan,
    Scope,
    Targets,
)
from cockpit.sources.aws import AWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.cluster import Cluster

_NOW = Option("now", "flag", "now: kill its jobs instead of waiting for them")
_KEEP = Option("keep", "flag", "keep them up when idle, until they are let go")
_CAPTURE = Option("capture", "flag", "capture first: keep the evidence of its running jobs in a file")
_COUNT = Option("count", "number", "how many nodes shall be up")


def _named(path: str) -> Any:
    """`nodes.drain`, imported when it is first needed: the keys of this table are bound before the first paint."""
    family, _, name = path.partition(".")
    return getattr(import_module(f"actions.{family}"), name)


def _plan(path: str) -> Build:
    def build(cluster: Cluster, targets: Targets, options: Options) -> Plan:
        plan: Plan = _named(path)(cluster, targets, options)
        return plan

    return build


def _why(path: str) -> Callable[[Context], str | None]:
    def why_not(ctx: Context) -> str | None:
        why: str | None = _named(path)(ctx)
        return why

    return why_not


def _many(ctx: Context) -> str | None:
    return "one queue at a time" if ctx.targets is not None and len(ctx.targets) > 1 else None


def _cannot_keep(ctx: Context) -> str | None:
    site = ctx.cluster.view.site
    return _named("power.cannot_keep")(site) or None if site is not None else None


ACTIONS: tuple[Action, ...] = (
    Action(
        "drain",
        "D",
        "drain",
        "Take nodes out of service; their jobs run on.",
        Scope.NODE,
        COUNTED,
        _plan("nodes.drain"),
        NODE_NEEDS,
        needs_reason=True,
        options=(_CAPTURE,),
    ),
    Action(
        "resume",
        "R",
        "resume",
        "Put nodes back into service, and see why they were out of it.",
        Scope.NODE,
        UNDONE_EASILY,
        _plan("nodes.resume"),
        NODE_NEEDS,
        why_not=_why("nodes.resume_why"),
    ),
    Action(
        "reboot",
        "B",
        "reboot",
        "Reboot nodes once their jobs have ended, then back into service.",
        Scope.NODE,
        NAMED,
        _plan("nodes.reboot"),
        NODE_NEEDS,
        needs_reason=True,
    ),
    Action(
        "replace",
        "T",
        "replace",
        "Give nodes a new instance, after their jobs or now.",
        Scope.NODE,
        NAMED,
        _plan("nodes.replace"),
        NODE_NEEDS,
        needs_reason=True,
        options=(_NOW, _CAPTURE),
    ),
    Action(
        "quarantine",
        "",
        "quarantine",
        "Keep bad nodes as they are for a look: no new jobs, no replacement.",
        Scope.NODE,
        COUNTED,
        _plan("quarantine.quarantine"),
        NODE_NEEDS,
        needs_reason=True,
    ),
    Action(
        "unquarantine",
        "",
        "end quarantine",
        "Give quarantined nodes back to everybody.",
        Scope.NODE,
        UNDONE_EASILY,
        _plan("quarantine.unquarantine"),
        NODE_NEEDS,
    ),
    Action(
        "down",
        "",
        "down",
        "Declare nodes dead: their jobs are killed at once.",
        Scope.NODE,
        NAMED,
        _plan("nodes.down"),
        NODE_NEEDS,
        needs_reason=True,
        options=(_CAPTURE,),
    ),
    Action(
        "cancel-reboot",
        "",
        "cancel reboot",
        "Take back a reboot that was not issued yet.",
        Scope.NODE,
        UNDONE_EASILY,
        _plan("nodes.cancel_reboot"),
        NODE_NEEDS,
    ),
    Action(
        "pin",
        "",
        "keep up",
        "Keep nodes up however long they idle.",
        Scope.NODE,
        UNDONE_EASILY,
        _plan("power.pin"),
        NODE_NEEDS,
        why_not=_cannot_keep,
    ),
    Action(
        "unpin",
        "",
        "let go",
        "Let nodes power down again when they idle.",
        Scope.NODE,
        UNDONE_EASILY,
        _plan("power.unpin"),
        NODE_NEEDS,
        why_not=_cannot_keep,
    ),
    Action(
        "scale",
        "S",
        "scale",
        "So many nodes of a queue up: start some, or let idle ones go.",
        Scope.QUEUE,
        COUNTED,
        _plan("scale.scale"),
        NODE_NEEDS,
        options=(_COUNT, _KEEP),
        why_not=_many,
    ),
    Action(
        "queue",
        "",
        "queue state",
        "Set a queue up, down (jobs wait) or to drain (no new jobs).",
        Scope.QUEUE,
        UNDONE_EASILY,
        _plan("queues.set_state"),
        NODE_NEEDS,
        options=(Option("state", "word", "UP, DOWN or DRAIN"),),
        why_not=_many,
    ),
    Action(
        "cancel",
        "K",
        "cancel",
        "End jobs, or send them a signal.",
        Scope.JOB,
        COUNTED,
        _plan("jobs.cancel"),
        JOB_NEEDS,
        options=(
            Option("signal", "word", "which signal, such as USR1"),
            Option("batch", "flag", "the signal goes to the batch script only"),
            Option("full", "flag", "the signal goes to the batch script and all steps"),
            _CAPTURE,
        ),
    ),
    Action(
        "requeue",
        "Q",
        "requeue",
        "Stop running jobs and put them back into the queue.",
        Scope.JOB,
        COUNTED,
        _plan("jobs.requeue"),
        JOB_NEEDS,
        options=(_CAPTURE,),
    ),
    Action(
        "requeue-hold",
        "",
        "requeue, hold",
        "Stop running jobs and put them back into the queue, held.",
        Scope.JOB,
        COUNTED,
        _plan("jobs.requeue_hold"),
        JOB_NEEDS,
        options=(_CAPTURE,),
    ),
    Action(
        "drain-requeue",
        "",
        "drain and requeue",
        "Drain the bad nodes of a running job, then put the job back into the queue.",
        Scope.JOB,
        COUNTED,
        _plan("rescue.drain_requeue"),
        NODE_NEEDS,
        needs_reason=True,
        options=(Option("nodes", "word", "which of its nodes to drain, such as gpu-[3,7]"), _CAPTURE),
    ),
    Action(
        "hold",
        "L",
        "hold",
        "Keep waiting jobs from starting.",
        Scope.JOB,
        UNDONE_EASILY,
        _plan("jobs.hold"),
        JOB_NEEDS,
        options=(Option("user_hold", "flag", "their owners may release them"),),
        why_not=_why("jobs.hold_why"),
    ),
    Action(
        "release",
        "L",
        "release",
        "Let held jobs start.",
        Scope.JOB,
        UNDONE_EASILY,
        _plan("jobs.release"),
        JOB_NEEDS,
        why_not=_why("jobs.release_why"),
    ),
    Action(
        "top",
        "",
        "first in line",
        "Put waiting jobs before the others of their owner.",
        Scope.JOB,
        UNDONE_EASILY,
        _plan("jobs.top"),
        JOB_NEEDS,
    ),
    Action(
        "nice",
        "",
        "nice",
        "Lower waiting jobs' priority by a number, or raise it by a negative one.",
        Scope.JOB,
        UNDONE_EASILY,
        _plan("jobs.nice"),
        JOB_NEEDS,
        options=(Option("count", "number", "the nice value"),),
    ),
    Action(
        "stop",
        "P",
        "stop the cluster",
        "Stop the whole cluster: every compute instance, and the head when asked for.",
        Scope.CLUSTER,
        NAMED,
        _plan("fleet.stop"),
        (AWS, *NODE_NEEDS),
        options=(
            Option("after_jobs", "flag", "once the running jobs have ended; queues are closed until then"),
            Option("head", "flag", "the head node, too, once everything else is down"),
        ),
        why_not=_why("fleet.why_not"),
    ),
    Action(
        "start",
        "P",
        "start the cluster",
        "Start the whole cluster, the head first when it is off.",
        Scope.CLUSTER,
        NAMED,
        _plan("fleet.start"),
        (AWS,),
        options=(Option("groups", "word", "HyperPod: sizes of the groups, NAME=COUNT,NAME=COUNT"),),
        why_not=_why("fleet.why_not"),
    ),
    Action(
        "schedule",
        "",
        "stop and start at a time",
        "Stop the whole cluster at a time, and start it again, without an open cockpit.",
        Scope.CLUSTER,
        NAMED,
        _plan("timetable.schedule"),
        (AWS,),
        options=(
            Option("at", "word", "when to stop, such as Fri 19:00"),
            Option("start_at", "word", "when to start again, such as Mon 07:00"),
            Option("every", "word", "day, weekday or week; nothing: once"),
            Option("head", "flag", "the head node, too, once everything else is down"),
        ),
        why_not=_why("timetable.why_not"),
    ),
    Action(
        "unschedule",
        "",
        "no stops and starts at a time",
        "Delete the schedules that stop and start this cluster.",
        Scope.CLUSTER,
        COUNTED,
        _plan("timetable.unschedule"),
        (AWS,),
        why_not=_why("timetable.why_not"),
    ),
)
_BY_ID = {action.id: action for action in ACTIONS}


def by_key(key: str) -> tuple[Action, ...]:
    """The actions of a key, in the order in which they are offered; `L` holds or releases, `P` stops or starts."""
    return tuple(action for action in ACTIONS if action.key == key)


def action(action_id: str) -> Action:
    """The action of that id; KeyError when there is none."""
    return _BY_ID[action_id]
