"""`b`: the cockpit steps aside for the pager on the machine that has the file, and comes back when that ends."""

from __future__ import annotations

from typing import Any

from textual.app import App

from cockpit.cluster import Cluster
from cockpit.hosts.pager_command import find_pager
from cockpit.models import FaultError
from cockpit.text import printable
from screens import outlet
from screens.ssh_shell import GROUP, on_thread, run_aside, unavailable


def open_pager(app: App[Any], cluster: Cluster, node: str, path: str) -> None:
    """Show a file of the node, or of the head when that is "", or say why that is not possible."""
    if why := unavailable(app):
        outlet.tell(app, why, title="no pager", severity="warning")
    elif not any(worker.group == GROUP and worker.is_running for worker in app.workers):
        app.run_worker(_page(app, cluster, node, path), name="pager", group=GROUP, exit_on_error=False)


async def _page(app: App[Any], cluster: Cluster, node: str, path: str) -> None:
    address = next((known.address for known in cluster.view.nodes or () if known.name == node), "")
    try:
        argv = await on_thread(lambda: find_pager(cluster.config, path, node, address))
    except FaultError as error:
        outlet.tell(app, error.fault.line(), title="no pager", severity="error")
        return
    rc = await run_aside(app, argv, printable(path))
    if rc:
        outlet.tell(app, f"the pager ended with {rc}", severity="warning")
