"""`python -m tests.pyz WHEEL OUT`: one file with the cockpit and everything it needs, for heads without pip.

It holds compiled libraries, so it is good for one version of Python on one kind of machine, and says so elsewhere.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path

_PREAMBLE = """\
#!/usr/bin/env python3
import platform, sys
made = ({major}, {minor}, {machine!r})
here = (sys.version_info[0], sys.version_info[1], platform.machine())
if here != made:
    sys.exit(
        "cockpit.pyz was made for Python %d.%d on %s, and this is Python %d.%d on %s; "
        "run it with that Python, or make one here: make pyz PYTHON=python%d.%d" % (made + here + here[:2])
    )
"""


def main(wheel: Path, out: Path) -> None:
    """Write `out`; takes the dependencies from the package index."""
    major, minor = sys.version_info[:2]
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        preamble = Path(folder) / "preamble.py"
        preamble.write_text(_PREAMBLE.format(major=major, minor=minor, machine=platform.machine()))
        preamble.chmod(0o755)
        argv = [sys.executable, "-m", "shiv.cli", "--console-script", "cockpit", "--output-file", str(out)]
        argv += ["--python", f"/usr/bin/env python{major}.{minor}", "--compressed", "--reproducible"]
        subprocess.run([*argv, "--preamble", str(preamble), str(wheel)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
