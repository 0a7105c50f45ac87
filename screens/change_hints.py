"""What may be typed into the fields of a dialog, by what is known already. Imports no Textual."""

from __future__ import annotations

from collections.abc import Iterable

from actions import blast
from actions.capture import MOST
from actions.errors import ActionError
from actions.spec import Option, Scope, Targets
from actions.targets import records_of, short_list
from cockpit.cluster import Cluster
from cockpit.formats.job_states import STARTED
from cockpit.joins import nodes_of
from cockpit.models import Job
from cockpit.words import plural
from screens.change_offers import Offer


def fields_of(cluster: Cluster, offer: Offer, targets: Targets) -> tuple[Option, ...]:
    """What the dialog asks here: sizes of groups where there are groups, evidence where a running job is hit."""
    reading = cluster.view.aws
    asked = {
        "groups": reading is not None and bool(reading.scope.hyperpod),
        "capture": 0 < sum(job.state in STARTED for job in _jobs(cluster, targets)) <= MOST,
        "nodes": not offer.options.nodes,
    }
    return tuple(field for field in offer.fields if asked.get(field.name, True))


def _jobs(cluster: Cluster, targets: Targets) -> Iterable[Job]:
    """The jobs that are meant, or those on the nodes that are."""
    if targets.scope is Scope.NODE:
        return blast.jobs_on(cluster, targets.names)
    queue = cluster.view.queue
    if targets.scope is not Scope.JOB or queue is None:
        return ()
    return (job for jobs in records_of(targets.names, queue).values() for job in jobs)


def hints(cluster: Cluster, offer: Offer, targets: Targets) -> tuple[str, ...]:
    """A line or two for above the question; nothing where the title of the option says it all."""
    if offer.id == "drain-requeue":
        held = dict.fromkeys(name for job in _jobs(cluster, targets) for name in nodes_of(job.hostlist))
        return (f"it runs on {short_list(held)}",) if held else ()
    if offer.id != "scale":
        return ()
    from actions.scale import bounds

    try:
        known = bounds(cluster, targets.names[0])
    except ActionError:
        return ()
    words = [f"{known.now} of {known.total} are up now; it can be from {known.least} to {known.most}"]
    if known.least:
        words.append(f"{known.least} have jobs, are static, or are kept up: those are never let go")
    if beyond := known.total - known.most:
        words.append(f"{plural(beyond, 'node')} cannot be started now: out of service, reserved or powering down")
    return tuple(words)
