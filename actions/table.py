"""Every action in one table: footer, help, palette, command line, docs/KEYS.md, read-only and audit derive from it."""

from __future__ import annotations

from actions import fleet, jobs, nodes, power, quarantine, queues, scale, timetable
from actions.spec import COUNTED, NAMED, UNDONE_EASILY, Action, Context, Option, Scope

_NOW = Option("now", "flag", "now: kill its jobs instead of waiting for them")
_KEEP = Option("keep", "flag", "keep them up when idle, until they are let go")
_COUNT = Option("count", "number", "how many nodes shall be up")


def _many(ctx: Context) -> str | None:
    return "one queue at a time" if ctx.targets is not None and len(ctx.targets) > 1 else None


def _cannot_keep(ctx: Context) -> str | None:
    site = ctx.cluster.view.site
    return power.cannot_keep(site) or None if site is not None else None


ACTIONS: tuple[Action, ...] = (
    Action(
        "drain",
        "D",
        "drain",
        "Take nodes out of service; their jobs run on.",
        Scope.NODE,
        COUNTED,
        nodes.drain,
        nodes.NEEDS,
        needs_reason=True,
    ),
    Action(
        "resume",
        "R",
        "resume",
        "Put nodes back into service, and see why they were out of it.",
        Scope.NODE,
        UNDONE_EASILY,
        nodes.resume,
        nodes.NEEDS,
        why_not=nodes.resume_why,
    ),
    Action(
        "reboot",
        "B",
        "reboot",
        "Reboot nodes once their jobs have ended, then back into service.",
        Scope.NODE,
        NAMED,
        nodes.reboot,
        nodes.NEEDS,
        needs_reason=True,
    ),
    Action(
        "replace",
        "T",
        "replace",
        "Give nodes a new instance, after their jobs or now.",
        Scope.NODE,
        NAMED,
        nodes.replace,
        nodes.NEEDS,
        needs_reason=True,
        options=(_NOW,),
    ),
    Action(
        "quarantine",
        "",
        "quarantine",
        "Keep bad nodes as they are for a look: no new jobs, no replacement.",
        Scope.NODE,
        COUNTED,
        quarantine.quarantine,
        nodes.NEEDS,
        needs_reason=True,
    ),
    Action(
        "unquarantine",
        "",
        "end quarantine",
        "Give quarantined nodes back to everybody.",
        Scope.NODE,
        UNDONE_EASILY,
        quarantine.unquarantine,
        nodes.NEEDS,
    ),
    Action(
        "down",
        "",
        "down",
        "Declare nodes dead: their jobs are killed at once.",
        Scope.NODE,
        NAMED,
        nodes.down,
        nodes.NEEDS,
        needs_reason=True,
    ),
    Action(
        "cancel-reboot",
        "",
        "cancel reboot",
        "Take back a reboot that was not issued yet.",
        Scope.NODE,
        UNDONE_EASILY,
        nodes.cancel_reboot,
        nodes.NEEDS,
    ),
    Action(
        "pin",
        "",
        "keep up",
        "Keep nodes up however long they idle.",
        Scope.NODE,
        UNDONE_EASILY,
        power.pin,
        nodes.NEEDS,
        why_not=_cannot_keep,
    ),
    Action(
        "unpin",
        "",
        "let go",
        "Let nodes power down again when they idle.",
        Scope.NODE,
        UNDONE_EASILY,
        power.unpin,
        nodes.NEEDS,
        why_not=_cannot_keep,
    ),
    Action(
        "scale",
        "S",
        "scale",
        "So many nodes of a queue up: start some, or let idle ones go.",
        Scope.QUEUE,
        COUNTED,
        scale.scale,
        nodes.NEEDS,
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
        queues.set_state,
        nodes.NEEDS,
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
        jobs.cancel,
        jobs.NEEDS,
        options=(
            Option("signal", "word", "send this signal instead, such as USR1"),
            Option("batch", "flag", "the signal goes to the batch script only"),
            Option("full", "flag", "the signal goes to the batch script and all steps"),
        ),
    ),
    Action(
        "requeue",
        "Q",
        "requeue",
        "Stop running jobs and put them back into the queue.",
        Scope.JOB,
        COUNTED,
        jobs.requeue,
        jobs.NEEDS,
    ),
    Action(
        "requeue-hold",
        "",
        "requeue, hold",
        "Stop running jobs and put them back into the queue, held.",
        Scope.JOB,
        COUNTED,
        jobs.requeue_hold,
        jobs.NEEDS,
    ),
    Action(
        "hold",
        "L",
        "hold",
        "Keep waiting jobs from starting.",
        Scope.JOB,
        UNDONE_EASILY,
        jobs.hold,
        jobs.NEEDS,
        options=(Option("user_hold", "flag", "their owners may release them"),),
        why_not=jobs.hold_why,
    ),
    Action(
        "release",
        "L",
        "release",
        "Let held jobs start.",
        Scope.JOB,
        UNDONE_EASILY,
        jobs.release,
        jobs.NEEDS,
        why_not=jobs.release_why,
    ),
    Action(
        "top",
        "",
        "first in line",
        "Put waiting jobs before the others of their owner.",
        Scope.JOB,
        UNDONE_EASILY,
        jobs.top,
        jobs.NEEDS,
    ),
    Action(
        "nice",
        "",
        "nice",
        "Lower waiting jobs' priority by a number, or raise it by a negative one.",
        Scope.JOB,
        UNDONE_EASILY,
        jobs.nice,
        jobs.NEEDS,
        options=(Option("count", "number", "the nice value"),),
    ),
    fleet.STOP,
    fleet.START,
    timetable.SCHEDULE,
    timetable.UNSCHEDULE,
)
_BY_ID = {action.id: action for action in ACTIONS}


def by_key(key: str) -> tuple[Action, ...]:
    """The actions of a key, in the order in which they are offered; `L` holds, or releases what is held."""
    return tuple(action for action in ACTIONS if action.key == key)


def action(action_id: str) -> Action:
    """The action of that id; KeyError when there is none."""
    return _BY_ID[action_id]
