"""A p5 node in a folder, and real looks at it: the agent runs here, only its files and programs are the folder's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from cockpit.checks.facts import Known
from cockpit.checks.models import NodeResult, Verdict
from cockpit.checks.runner import CheckRunner, Target
from cockpit.config import CheckSettings
from cockpit.demo.node_files import NodeFiles
from cockpit.hosts.local import LocalHost

BOOTED = 1_700_000_000.0


class FolderNode:
    """Healthy until something is changed below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "node"
        NodeFiles(self.folder, "gpu-1", 1, BOOTED)

    def options(self) -> dict[str, str]:
        names = ("proc", "sys", "dev", "kmsg", "root", "tools")
        none = ("journalctl", "dmesg", "nvidia_smi", "neuron_ls", "neuron_monitor")
        return {name: str(self.folder / name) for name in names} | dict.fromkeys(none, "/none") | {
            "mount_check": str(self.folder / "df")
        }  # fmt: skip

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def tool(self, name: str, script: str) -> None:
        self.write(f"tools/{name}", f"#!/bin/sh\n{script}\n")
        (self.folder / "tools" / name).chmod(0o755)

    def devices(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "sys/class/infiniband").iterdir())

    def lose_device(self) -> str:
        """One EFA device gone, with its device file and its entries in fi_info."""
        name = self.devices()[-1]
        (self.folder / "sys/class/infiniband" / name).unlink()
        sorted((self.folder / "dev/infiniband").iterdir())[-1].unlink()
        listed = self.folder / "tools/fi_info.txt"
        blocks = listed.read_text().split("provider: efa\n")
        listed.write_text("provider: efa\n".join(block for block in blocks if f"domain: {name}-" not in block))
        return name

    def own_device(self) -> Path:
        """A device with counters of its own, of which nothing is shared with others; its port's counters."""
        name = self.devices()[0]
        link = self.folder / "sys/class/infiniband" / name
        copy = self.folder / "efa/own"
        shutil.copytree(link.resolve(), copy, symlinks=True)
        link.unlink()
        link.symlink_to(copy)
        return copy / "ports/1/hw_counters"

    def check(self, kind: str = "efa", known: Known | None = None, settings: CheckSettings | None = None,
              **options: Any) -> NodeResult:  # fmt: skip
        """One run over this node alone."""
        window_s = options.pop("window_s", 0.1)
        runner = CheckRunner(
            kind, lambda _: LocalHost(), settings=settings, window_s=window_s, options=self.options() | options
        )
        (node,) = runner.run([Target("gpu-1", known or Known("gpu-1"))]).nodes
        assert node.fault is None, node.fault
        return node


def found(node: NodeResult, *verdicts: Verdict) -> dict[str, str]:
    """check -> what it says, of those that are not fine (or of these verdicts)."""
    wanted = verdicts or (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)
    return {result.check: result.says for result in node.results if result.verdict in wanted}
