"""Executables named squeue, sinfo, ... for what a shell on the demo runs, and the socket behind them."""

from __future__ import annotations

import json
import shlex
import shutil
import socketserver
import sys
import threading
from pathlib import Path

from cockpit.demo.programs.registry import PROGRAMS, is_simulated, run
from cockpit.demo.sim import Simulation

_CLIENT = Path(__file__).with_name("client.py")
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_SUDO = r"""#!/bin/sh
# Like a login with password-less sudo: options are accepted, the command runs as it is.
while :; do
    case "$1" in
        -l) printf 'User demo may run the following commands:\n    (ALL) NOPASSWD: ALL\n'; exit 0 ;;
        -u|-g) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
DEMO_ROOT=1 exec "$@"
"""
# The demo's login is the same whoever runs the demo: no root, and no administrator of Slurm.
_ID = """#!/bin/sh
case "$*" in
    -un) echo demo ;;
    -u) echo 1000 ;;
    *) exec /usr/bin/id "$@" ;;
esac
"""
# Its server waits for a call that never comes by this way, and is ended with its channel; its client prints a table.
_PINGPONG = """#!/bin/sh
case "$*" in *" -B "*) exec sleep 60 ;; esac
echo 'bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec'
echo '64      10      =10      1.2k        0.00s      1.75      36.52       0.03'
echo '1k      10      =10      20k         0.00s     57.30      17.87       0.06'
echo '64k     10      =10      1.2m        0.00s   2410.66      27.19       0.04'
echo '1m      10      =10      20m         0.00s   9702.04     108.08       0.01'
"""
_TIMEOUT = """#!/bin/sh
# macOS has no timeout(1); the demo's commands end with their channel anyway.
while :; do
    case "$1" in
        -k|-s) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
shift
exec "$@"
"""


def install(folder: Path, socket_path: Path) -> None:
    """Write the stub programs into `folder`, which is made."""
    folder.mkdir(mode=0o700)
    python = shlex.quote(sys.executable)
    for program in PROGRAMS:
        call = f"{python} -I -S {shlex.quote(str(_CLIENT))} {shlex.quote(str(socket_path))}"
        _script(folder / program, f'#!/bin/sh\nexec {call} "${{DEMO_HOST:-demo-head}}" {program} "$@"\n')
    _script(folder / "hostname", '#!/bin/sh\necho "${DEMO_HOST:-demo-head}"\n')
    _script(folder / "sudo", _SUDO)
    _script(folder / "id", _ID)
    _script(folder / "fi_pingpong", _PINGPONG)
    if shutil.which("timeout", path=_SYSTEM_PATH) is None:
        _script(folder / "timeout", _TIMEOUT)
    if shutil.which("python3", path=_SYSTEM_PATH) is None:
        (folder / "python3").symlink_to(sys.executable)


def search_path(folder: Path) -> str:
    """PATH of everything that runs on the demo's machines."""
    return f"{folder}:{_SYSTEM_PATH}"


def _script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)


class _Handler(socketserver.StreamRequestHandler):
    """One call of a stub: a JSON line in, a JSON line and the raw output back."""

    server: StubServer
    timeout = 5.0

    def handle(self) -> None:
        call = json.loads(self.rfile.readline())
        if not is_simulated(call["argv"][0]):
            return
        answer = run(self.server.sim, call["argv"], call["env"], call["host"], root="DEMO_ROOT" in call["env"])
        head = {"rc": answer.rc, "stdout": len(answer.stdout), "stderr": len(answer.stderr)}
        self.wfile.write(json.dumps(head).encode() + b"\n" + answer.stdout + answer.stderr)


class StubServer(socketserver.ThreadingUnixStreamServer):
    """Answers the stub programs on a unix socket in the demo's private folder."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, sim: Simulation, path: Path) -> None:
        self.sim = sim
        super().__init__(str(path), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="demo-stubs", daemon=True
        )
        self._thread.start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A stub that was killed half-way is no event."""

    def stop(self) -> None:
        """Stop answering; returns when no thread of it is left."""
        self.shutdown()
        self._thread.join()
        self.server_close()
