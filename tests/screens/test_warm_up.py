"""No key has to wait for modules: what one may need is there soon after the start, and no more than that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import screens

_PROGRAM = """
import sys
from screens import warm_up
warm_up._BREATH_S = 0
warm_up._load_all()
print(*sys.modules)
"""


def test_every_screen_and_action_is_loaded_and_no_library_of_the_network() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    there = {f"screens.{file.stem}" for file in Path(screens.__path__[0]).glob("[a-z]*.py")}
    assert {name for name in there - loaded if not name.startswith("screens.first_")} == set()
    assert {"screens.details.checks", "actions.nodes", "actions.runner"} <= loaded
    assert not loaded & {"boto3", "botocore", "paramiko", "pynvml", "screens.first_run"}
