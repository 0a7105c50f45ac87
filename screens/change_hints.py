"""What may be typed into the fields of a dialog, by what is known already. Imports no Textual."""

from __future__ import annotations

from actions.errors import ActionError
from actions.spec import Option, Targets
from cockpit.cluster import Cluster
from cockpit.words import plural
from screens.change_offers import Offer


def fields_of(cluster: Cluster, offer: Offer) -> tuple[Option, ...]:
    """What the dialog asks on this cluster: sizes of groups only where there are groups."""
    reading = cluster.view.aws
    grouped = reading is not None and bool(reading.scope.hyperpod)
    return tuple(field for field in offer.fields if field.name != "groups" or grouped)


def hints(cluster: Cluster, offer: Offer, targets: Targets) -> tuple[str, ...]:
    """A line or two for above the question; nothing where the title of the option says it all."""
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
