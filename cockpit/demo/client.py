"""The far end of the stub programs: passes a call to the demo over its unix socket and prints the answer.

Started directly, isolated and without site-packages, so that it is up in a few milliseconds; it imports
nothing of the cockpit.
"""

from __future__ import annotations

import json
import os
import socket
import sys

_PASSED = ("SLURM_", "SQUEUE_", "SINFO_", "SCONTROL_", "TZ", "LC_", "LANG", "DEMO_ROOT")


def main(argv: list[str]) -> int:
    """Run `argv` (socket path, host, program, arguments...) on the demo; returns its exit status."""
    path, host, *call = argv
    env = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(path)
        link.sendall(json.dumps({"argv": call, "env": env, "host": host}).encode() + b"\n")
        with link.makefile("rb") as answer:
            head = json.loads(answer.readline())
            stdout, stderr = answer.read(head["stdout"]), answer.read(head["stderr"])
    sys.stdout.buffer.write(stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(stderr)
    return int(head["rc"])


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(141) from None
    except (OSError, ValueError) as error:
        sys.stderr.write(f"slurm_load_jobs error: Unable to contact slurm controller ({error})\n")
        raise SystemExit(1) from None
