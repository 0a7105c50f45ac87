"""What may be typed into the fields of a dialog, by what is known already. Imports no Textual."""

from __future__ import annotations

from actions.errors import ActionError
from actions.spec import Targets
from cockpit.cluster import Cluster
from cockpit.words import plural
from screens.change_offers import Offer


def hints(cluster: Cluster, offer: Offer, targets: Targets) -> tuple[tuple[str, str], ...]:
    """Pairs of a field's name and its words; those without any show the title of their option."""
    if offer.id != "scale":
        return ()
    from actions.scale import bounds

    try:
        known = bounds(cluster, targets.names[0])
    except ActionError:
        return ()
    beyond = known.total - known.most
    words = f"{known.now} up now; from {known.least} (with jobs, static or kept up) to {known.most}"
    unusable = f", {plural(beyond, 'node')} cannot be used" if beyond else ""
    return (("count", f"{words}{unusable}"),)
