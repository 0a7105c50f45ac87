"""How one step of a plan is carried out; the runner alone calls these."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from actions.aws_steps import AWS, on_aws
from actions.capture import CAPTURE, on_capture
from actions.outcome import StepResult
from actions.rights import site_now
from actions.spec import Step
from cockpit.formats.slurm_errors import complaint
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable
from cockpit.words import plural

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

Executor = Callable[["Cluster", Step], StepResult]

_LEAST_S = 20.0
_MORE_S = 10.0  # than Slurm's own patience, so that its error text is still seen
_TAIL_BYTES = 2000
# `Invalid job id specified for job 999`, `Kill job error on job id 12_3: ...`
_ABOUT_JOB = re.compile(r"(?:for job|job id) ([0-9]+(?:_[0-9]+)?)\b")
_MAY_BE = "it may still have happened: its effect is looked for"


def on_head(cluster: Cluster, step: Step) -> StepResult:
    """Run the step's command on the head, once; whatever happens becomes the result."""
    began = cluster.clock.steady()
    deadline_s = step.patience_s or _deadline_s(cluster)
    try:
        done = cluster.slurm.send(step.argv, deadline_s=deadline_s)
    except FaultError as error:
        fault = _patient(error.fault)
        return StepResult(step, None, cluster.clock.steady() - began, "", fault, frozenset(step.subjects))
    said = printable((done.stderr.strip() or done.stdout.strip())[-_TAIL_BYTES:])
    fault_or_none = complaint(
        done.rc, done.stdout, done.stderr, what=step.title, took_s=done.took_s, deadline_s=deadline_s
    )
    if fault_or_none is None:
        return StepResult(step, done.rc, done.took_s, said)
    about = _about(done.stderr.decode("utf-8", "replace"), step)
    return StepResult(step, done.rc, done.took_s, said, _patient(fault_or_none), about)


def _patient(fault: Fault) -> Fault:
    """A change is never sent again by itself, so no next step may say so."""
    return Fault(fault.kind, fault.what, fault.why, _MAY_BE) if fault.kind is FaultKind.TIMEOUT else fault


def _deadline_s(cluster: Cluster) -> float:
    try:
        timeout_s = site_now(cluster).message_timeout_s
    except FaultError:
        timeout_s = None
    return max(_LEAST_S, (timeout_s or 0.0) + _MORE_S)


def _about(errors: str, step: Step) -> frozenset[str]:
    """The subjects that an error names; all of them when it names none."""
    ids = set(_ABOUT_JOB.findall(errors))
    plain = {name.partition("_")[0] for name in ids}
    named = {name for name in step.subjects if name in ids or name.partition("_")[0] in plain}
    return frozenset(named or step.subjects)


def on_pair(cluster: Cluster, step: Step) -> StepResult:
    """A pair over EFA (see actions.checks.pair_step): a server on one node, a client on the other; ends both."""
    from cockpit.checks.models import Verdict
    from cockpit.checks.pair import Ends, PairCheck

    server, client = step.subjects
    check = PairCheck(cluster.node_host, settings=cluster.checks, clock=cluster.clock)
    found = check.run(Ends(server, client, step.argv[-1], int(step.argv[-2])))
    verdict, told = found.result.verdict, f"{server} and {client}"
    said = f"{verdict.value}: {found.result.says}"
    if verdict in (Verdict.PASS, Verdict.WARN):
        return StepResult(step, 0, found.took_s, said, found=found)
    # That it could not be tried is another thing than that it failed.
    kind = FaultKind.FAILED if verdict is Verdict.FAIL else FaultKind.MISSING
    fault = Fault(kind, told, found.result.says, found.result.next_step)
    return StepResult(step, 1, found.took_s, said, fault, frozenset(step.subjects), found)


def _on_look(kind: str) -> Executor:
    """One srun that brings a look to all its nodes (see actions.check_jobs); what is found are the looks by node."""

    def on_look(cluster: Cluster, step: Step) -> StepResult:
        from actions.check_jobs import looker
        from cockpit.checks.by_job import answers
        from cockpit.formats.look import looks_of
        from cockpit.probe.look import look_stdin

        began, stdin = cluster.clock.steady(), look_stdin(looker(cluster, kind).asking())
        try:
            done = cluster.slurm.send(step.argv, deadline_s=step.patience_s or _deadline_s(cluster), stdin=stdin)
        except FaultError as error:
            took_s = cluster.clock.steady() - began
            return StepResult(step, None, took_s, "", _patient(error.fault), frozenset(step.subjects), {})
        looks = looks_of(answers(done.stdout, step.subjects), cluster.clock.now)
        silent = frozenset(step.subjects) - looks.keys()
        said = f"{len(looks)} of {plural(len(step.subjects), 'node')} answered"
        if not silent:
            return StepResult(step, 0, done.took_s, said, found=looks)
        fault = complaint(done.rc or 1, b"", done.stderr, what=step.title)
        return StepResult(step, done.rc or 1, done.took_s, said, fault, silent, looks)

    return on_look


EXECUTORS: Mapping[str, Executor] = {
    "head": on_head,
    AWS: on_aws,
    "pair": on_pair,
    CAPTURE: on_capture,
    "look-efa": _on_look("efa"),
    "look-health": _on_look("health"),
}
