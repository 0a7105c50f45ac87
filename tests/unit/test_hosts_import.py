"""paramiko stays out until a connection is wanted."""

import subprocess
import sys

_PROBE = """
import sys
import cockpit.hosts, cockpit.hosts.local, cockpit.hosts.ssh_target, cockpit.hosts.known_hosts
cockpit.hosts.open_host("local")
print("paramiko" in sys.modules)
host = cockpit.hosts.open_host("someone@127.0.0.1:1")
print("paramiko" in sys.modules)
try:
    host.run(["true"], deadline_s=5)
except Exception:
    print("paramiko" in sys.modules)
"""


def test_importing_hosts_does_not_import_paramiko() -> None:
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]
