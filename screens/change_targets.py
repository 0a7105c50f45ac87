"""From what somebody has marked, or the cursor is on, to what an action would be done to. Pure, imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from actions.errors import ActionError
from actions.spec import Scope, Targets
from cockpit.cluster import View
from cockpit.models import Problem
from cockpit.words import plural
from screens.check_targets import OF_NODE
from screens.lines import Subject
from screens.subjects import NOTHING, title


@dataclass(frozen=True, slots=True)
class Aim:
    """The targets by name, or `why` there are none; `note` says how they follow from what was chosen."""

    targets: Targets | None = None
    why: str = ""
    note: str = ""


Pointed = Sequence[Sequence[Subject]]  # what is meant, best first: the link under the cursor, then the whole page


def aim(view: View, problems: Iterable[Problem], pointed: Pointed, scope: Scope, cluster: str = "") -> Aim:
    """What an action of that scope would be done to; the cluster itself wherever one is.

    Several queues are several targets; whoever asks lets choose.
    """
    if scope is Scope.CLUSTER:
        return Aim(Targets(scope, (cluster,)))
    told = tuple(problems)
    found = [_aim(view, told, subjects, scope) for subjects in pointed if subjects]
    return next((each for each in found if each.targets is not None), found[0] if found else Aim(why=NOTHING))


def _aim(view: View, problems: Sequence[Problem], subjects: Sequence[Subject], scope: Scope) -> Aim:
    from actions.targets import job_targets  # not before the first paint

    found = _meant(problems, subjects)
    queues = _Queues(view)
    names = tuple(dict.fromkeys(name for _, of in found for each in of for name in _named(queues, each, scope)))
    if not names:
        return Aim(why=_none(subjects, scope))
    try:
        targets = job_targets(names) if scope is Scope.JOB else Targets(scope, names)
    except ActionError as error:
        return Aim(why=str(error))
    return Aim(targets, note=_note(subjects, targets))


_KINDS = {
    Scope.NODE: {*OF_NODE, "gpu"},
    Scope.JOB: {"job"},
    Scope.QUEUE: {"queue", *OF_NODE, "gpu", "job"},
}


def fits(problems: Iterable[Problem], pointed: Pointed) -> tuple[str, ...]:
    """The scopes of actions that fit what somebody points at; looks at kinds only, since it is asked every second."""
    told = [subject for subjects in pointed for subject in subjects]
    if not told:
        return (Scope.CLUSTER.value,)
    kinds = {each.kind for _, of in _meant(problems, told) for each in of if each.key}
    return tuple(scope.value for scope, of in _KINDS.items() if kinds & of)


def _meant(problems: Iterable[Problem], subjects: Sequence[Subject]) -> list[tuple[Subject, tuple[Subject, ...]]]:
    """Each subject with what it stands for: a problem for what it is about, anything else for itself."""
    if all(subject.kind != "problem" for subject in subjects):
        return [(subject, (subject,)) for subject in subjects]
    about = {problem.key: problem.about for problem in problems}
    return [
        (
            subject,
            tuple(Subject(*pair) for pair in about.get(subject.key, ())) if subject.kind == "problem" else (subject,),
        )
        for subject in subjects
    ]


def _named(queues: _Queues, subject: Subject, scope: Scope) -> tuple[str, ...]:
    key = subject.key
    if not key or subject.kind not in _KINDS.get(scope, ()):
        return ()
    if scope is Scope.QUEUE:
        return queues.of(subject)
    return (key.rpartition("/")[0],) if subject.kind == "gpu" else (key,)


class _Queues:
    """Which queues things belong to; looked up once for however many are marked."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._nodes: dict[str, tuple[str, ...]] | None = None
        self._jobs: dict[str, tuple[str, ...]] | None = None

    def of(self, subject: Subject) -> tuple[str, ...]:
        """The queue itself, those that a node is in, or a job may run in."""
        if subject.kind == "queue":
            return (subject.key,)
        if subject.kind == "job":
            if self._jobs is None:
                rows = self._view.queue.rows if self._view.queue else ()
                self._jobs = {row.key: tuple(row.lead.partitions) for row in rows}
            return self._jobs.get(subject.key, ())
        if self._nodes is None:
            self._nodes = {node.name: tuple(sorted(node.partitions)) for node in self._view.nodes or ()}
        return self._nodes.get(subject.key.rpartition("/")[0] if subject.kind == "gpu" else subject.key, ())


def _none(subjects: Sequence[Subject], scope: Scope) -> str:
    if all(subject.kind == "problem" for subject in subjects):
        return f"this problem is about no {scope.value}"
    return f"it is for a {scope.value}, and this is {title(subjects[0])}"


def _note(subjects: Sequence[Subject], targets: Targets) -> str:
    """What has to be said, since it is more than was pointed at."""
    kinds = {subject.kind for subject in subjects}
    if targets.scope is Scope.NODE and kinds == {"gpu"}:
        told = title(subjects[0]) if len(subjects) == 1 else plural(len(subjects), "GPU")
        stands = "stands" if len(subjects) == 1 else "stand"
        return f"{told} {stands} for {targets.counted()}: it is done to whole nodes"
    if "problem" in kinds:
        return f"{targets.counted()} that the problem is about"
    return ""
