"""The demo's way to a simulated AWS: its process, keys that are no keys, and the daemon between it and Slurm."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from cockpit.demo import clustermgtd
from cockpit.demo.sim import CLUSTER, Simulation

PROFILE = "demo"
REGION = "us-east-1"
MISSING = "no simulated AWS, so P, costs and storage have nothing to show: pip install 'gpu-cockpit[demo]'"
_KEYS = f"[{PROFILE}]\naws_access_key_id = demo\naws_secret_access_key = demo\n"  # the simulation takes any


def is_installed() -> bool:
    """Whether moto's server is there; asking does not load it."""
    return all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors"))


class DemoAws:
    """Start it after the simulation and before the config is read; `stop` ends the process."""

    def __init__(self, sim: Simulation, folder: Path) -> None:
        self._sim, self._folder = sim, folder
        self._process: subprocess.Popen[str] | None = None
        self._before: dict[str, str | None] = {}
        self._port = 0

    @property
    def config_lines(self) -> str:
        """What the cluster's entry of the config has to say; connections wait until the simulation answers."""
        return (
            f"    region: {REGION}\n    profile: {PROFILE}\n    stack: {CLUSTER}\n"
            f"    endpoint_url: http://127.0.0.1:{self._port}\n    refresh: {{aws: 5}}\n"
        )

    def start(self) -> None:
        """Open the port, and let the process behind it come up by itself."""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        self._port = listener.getsockname()[1]
        self._point_to_keys()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cockpit.demo.aws_server", str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        listener.close()  # the process holds its own
        threading.Thread(target=self._follow, args=(self._process,), name="clustermgtd", daemon=True).start()

    def _point_to_keys(self) -> None:
        """The demo must never send anybody's real keys anywhere, and needs some that are there."""
        path = self._folder / "aws_keys"
        path.write_text(_KEYS, encoding="utf-8")
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            self._before[name] = os.environ.get(name)
            os.environ[name] = str(path)

    def _follow(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # the pipes end with the process
            self._answer_all(process.stdout, process.stdin)

    def _answer_all(self, asked: IO[str], answers: IO[str]) -> None:
        for line in asked:
            told: dict[str, Any] = json.loads(line)
            status = clustermgtd.follow(self._sim, told["status"])
            with self._sim.current():
                wanted = dict(clustermgtd.instances(self._sim))
            answers.write(json.dumps({"status": status, "instances": wanted}) + "\n")
            answers.flush()

    def stop(self) -> None:
        """End the process and put the environment back."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(5)  # its pipes end with it, and the thread with them
            self._process = None
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()
