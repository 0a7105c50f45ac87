"""The argv of a shell really logs in to a node, by every way the cockpit knows."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from cockpit.config import NodeAccess
from cockpit.config_file import load_config
from cockpit.hosts.shell_command import find_shell
from tests.rig import Rig


@pytest.mark.parametrize("way", ["through the head", "from the head itself", "directly"])
def test_the_shell_gets_to_the_node(rig: Rig, way: str) -> None:
    config = next(iter(load_config(rig.config("shell.yaml")).clusters.values()))
    if way == "from the head itself":
        config = replace(config, head="local")
    elif way == "directly":
        config = replace(config, nodes=NodeAccess("direct", "root", rig.layout.sshd_port))
    node = rig.static_nodes[0]
    argv = find_shell(config, node, rig.layout.address(node))
    done = subprocess.run([*argv, "hostname"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, node), done.stderr
    failed = subprocess.run([*argv, "exit", "7"], capture_output=True, timeout=60, check=False)
    assert failed.returncode == 7
