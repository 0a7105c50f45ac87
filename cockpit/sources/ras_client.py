"""Asks NCCL's RAS of a job for its report, through one node's loopback. Only ever on demand, and only to read.

Asking has crashed jobs (NVIDIA/nccl issues 1669, 1718, 1762, 1996, 2346), so the version decides whether it is done.
"""

from __future__ import annotations

import re
import time

from cockpit.hosts.base import Channel, Host
from cockpit.models import Fault, FaultError, FaultKind

PORT = 28028
TIMEOUT_S = 5
HARD_S = 30.0
MAX_BYTES = 32 * 2**20
# The only lines that are ever sent. CONTROL, which changes a running job, is not among them.
COMMANDS = ("CLIENT PROTOCOL 2", f"TIMEOUT {TIMEOUT_S}", "SET FORMAT json", "STATUS")
_ADDRESS = re.compile(r"([A-Za-z0-9.:-]{1,253}):(\d{1,5})")


def refusal(version: str, *, consent: bool) -> str:
    """Why RAS of an NCCL of that version is not asked, "" when it may be; an unknown version counts as a risky one."""
    parts = tuple(int(word) for word in version.split(".")) if re.fullmatch(r"\d+\.\d+\.\d+", version) else None
    if parts is not None and parts < (2, 24, 3):
        return f"NCCL {version} has no RAS; it came with 2.24.3"
    if parts is not None and parts >= (2, 27, 3):
        return ""
    if consent:
        return ""
    which = f"NCCL {version}" if parts else "an NCCL whose version its log does not tell"
    return f"asking {which} may crash the job (fixed in 2.27.3); --ras-anyway asks all the same"


def warning(version: str) -> str:
    """What is said before it is asked."""
    which = version or "of an unknown version"
    return f"NCCL {which} was asked: that such asking crashes no job is not confirmed (issues 1996, 2346)"


def ask(host: Host, address: str = "") -> bytes:
    """One report, as JSON where the server knows that form. Raises FaultError.

    `address` is the job's NCCL_RAS_ADDR, when it has one.
    """
    named = _ADDRESS.fullmatch(address)
    where, port = (named[1], int(named[2])) if named else ("localhost", PORT)
    what = f"asking NCCL's RAS on {host.name}"
    until = time.monotonic() + HARD_S
    for form in (True, False):
        answer = _asked(host.open_tcp(where, port, deadline_s=TIMEOUT_S), until, as_json=form)
        report = _body(answer)
        if report:
            return report
        if b"ERROR" not in answer:
            break
    raise FaultError(Fault(FaultKind.GARBLED, what, "it answered without a report"))


def _asked(channel: Channel, until: float, *, as_json: bool) -> bytes:
    lines = [line for line in COMMANDS if as_json or not line.startswith("SET FORMAT")]
    try:
        channel.settimeout(max(1.0, min(TIMEOUT_S + 6.0, until - time.monotonic())))
        channel.sendall("".join(f"{line}\n" for line in lines).encode())
        return _received(channel, until)
    except (OSError, TimeoutError) as error:
        fault = Fault(FaultKind.TIMEOUT, "asking NCCL's RAS", str(error) or "no answer in time")
        raise FaultError(fault) from error
    finally:
        channel.close()


def _received(channel: Channel, until: float) -> bytes:
    """Everything up to the end that the server makes."""
    received = bytearray()
    while time.monotonic() < until and len(received) < MAX_BYTES:
        chunk = channel.recv(65536)
        if not chunk:
            break
        received += chunk
    return bytes(received)


def _body(answer: bytes) -> bytes:
    """The report behind the server's short answers; empty when there is none."""
    at = answer.find(b"{")
    lines = answer.split(b"\n")
    if at >= 0 and not any(line.startswith(b"ERROR") for line in lines[:4]):
        return answer[at:]
    kept = [line for line in lines if not line.startswith((b"SERVER PROTOCOL", b"OK", b"ERROR:"))]
    text = b"\n".join(kept).strip()
    return text + b"\n" if b"Communicators" in text or b"Job summary" in text or b"Errors" in text else b""
