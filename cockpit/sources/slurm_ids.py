"""Which instance each node says it runs on: Slurm's own InstanceId, where slurmd tells one (23.11 and later)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cockpit.formats.scontrol_show import parse_node_details
from cockpit.sources.slurm import SlurmClient

FIRST_WITH_IDS = (23, 11)
ASK_AGAIN_AFTER = 20  # polls, once a cluster has told no id at all: ParallelCluster fills them from 3.16 only
_ID = re.compile(r"i-[0-9a-f]{8,40}")
_VERSION = re.compile(r"(\d+)\.(\d+)")


class SlurmIds:
    """Reads the ids of all nodes by one `scontrol show node`, and seldom where there are none."""

    def __init__(self, client: SlurmClient, version: Callable[[], str]) -> None:
        self._client, self._version = client, version
        self._skip = 0

    def read(self) -> Mapping[str, str]:
        """Node -> instance id; raises FaultError when the head or the controller does not answer."""
        match = _VERSION.match(self._version())
        if match is None or (int(match[1]), int(match[2])) < FIRST_WITH_IDS:
            return {}
        if self._skip > 0:
            self._skip -= 1
            return {}
        raw = self._client.read("scontrol", ["show", "node"], "reading the nodes' instance ids")
        told = {detail.name: detail.get("InstanceId") for detail in parse_node_details(raw)}
        ids = {name: word for name, word in told.items() if _ID.fullmatch(word)}
        if not ids:
            self._skip = ASK_AGAIN_AFTER
        return ids
