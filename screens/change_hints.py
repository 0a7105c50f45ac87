"""What may be typed into the fields of a dialog, by what is known already. Imports no Textual."""

from __future__ import annotations

from actions.errors import ActionError
from actions.spec import Targets
from cockpit.cluster import Cluster
from cockpit.words import plural
from screens.change_offers import Offer


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
