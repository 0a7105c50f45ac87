"""Whether two nodes reach each other over EFA: fi_pingpong, a server on one and a client on the other.

Both ends are wrapped so that nothing stays behind: each ends with its connection to the cockpit, by its own `timeout`,
and the server also when its client is done.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from cockpit.catalog.checks import check_fact
from cockpit.checks.models import PairResult, Result, Verdict
from cockpit.clock import SYSTEM_CLOCK, Clock
from cockpit.config import CheckSettings
from cockpit.formats.efa_tools import Ping, parse_ping
from cockpit.hosts.base import Host, LineStream
from cockpit.models import FaultError
from cockpit.nccl.pairing import all_rounds
from cockpit.text import printable
from cockpit.words import binary_size

CONTROL_PORT = 47592  # fi_pingpong's own
_PORTS = 400  # several checks on one node must not meet
CLIENT_S, SERVER_S, LISTEN_S = 40.0, 75.0, 15.0
_TRIES = 3
_FIND = "p=fi_pingpong; [ -x /opt/amazon/efa/bin/fi_pingpong ] && p=/opt/amazon/efa/bin/fi_pingpong"
# The first line tells that the shell is there. Its end of stdin ends the server, whatever ended our side.
_SERVER = f"""{_FIND}
command -v "$p" >/dev/null 2>&1 || {{ echo '#missing'; exit 127; }}
env FI_EFA_ENABLE_SHM_TRANSFER=0 timeout -k 2 "$1" "$p" -p efa -e rdm -B "$2" </dev/null 2>&1 & s=$!
trap 'kill $s $w 2>/dev/null' EXIT HUP INT TERM
echo '#started'
(cat >/dev/null; kill $s 2>/dev/null) <&3 & w=$!
wait $s
echo "#rc=$?"
"""
_CLIENT = f"""{_FIND}
command -v "$p" >/dev/null 2>&1 || {{ echo '#missing'; exit 127; }}
exec env FI_EFA_ENABLE_SHM_TRANSFER=0 timeout -k 2 "$1" "$p" -p efa -e rdm -P "$2" "$3" 2>&1 </dev/null
"""


class OpenHost(Protocol):
    def __call__(self, node: str, /) -> Host: ...


@dataclass(frozen=True, slots=True)
class Ends:
    """Two nodes, and under which address the client finds the server."""

    server: str
    client: str
    address: str
    port: int = CONTROL_PORT


def new_port() -> int:
    """A control port that another check on the same node hardly has."""
    return CONTROL_PORT + random.randrange(_PORTS)  # noqa: S311  (no secret)


def server_argv(port: int) -> tuple[str, ...]:
    """The server's command for Host.stream."""
    # The shell's stdin is the connection; a background process would get /dev/null for it.
    return "sh", "-c", f"exec 3<&0\n{_SERVER}", "sh", f"{SERVER_S:g}", str(port)


def client_argv(port: int, address: str) -> tuple[str, ...]:
    """The client's command for Host.run."""
    return "sh", "-c", _CLIENT, "sh", f"{CLIENT_S:g}", str(port), address


def shown_commands(ends: Ends) -> tuple[str, str]:
    """The two ends as a person would type them."""
    return (
        f"{ends.server}: fi_pingpong -p efa -e rdm -B {ends.port}",
        f"{ends.client}: fi_pingpong -p efa -e rdm -P {ends.port} {ends.address}",
    )


def pairs_of(nodes: Sequence[str], how_many: int = 1) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Rounds of disjoint pairs over marked nodes, round robin; with an odd number one sits out each round."""
    return tuple(tuple(one) for one in all_rounds(list(nodes))[:how_many])


class PairCheck:
    """One pair after the other, or several at once from several threads. cancel() ends what runs."""

    def __init__(
        self, open_host: OpenHost, *, settings: CheckSettings | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._open, self._clock = open_host, clock
        limit = (settings or CheckSettings()).thresholds.get("efa.pair", {}).get("latency_warn_us")
        self._latency_us = check_fact("efa.pair").thresholds["latency_warn_us"] if limit is None else limit
        self.cancelled = threading.Event()
        self._streams: set[LineStream] = set()
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """End the servers at once; their clients then end by themselves."""
        self.cancelled.set()
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            with suppress(Exception):
                stream.close()

    def run(self, ends: Ends) -> PairResult:
        """One pair to its end; never raises, whatever happens is in the result."""
        began, at = self._clock.steady(), self._clock.now()
        try:
            verdict, says, lines, ping = self._measure(ends)
        except FaultError as error:
            verdict, says, lines, ping = Verdict.UNKNOWN, error.fault.line(), (), Ping()
        step = check_fact("efa.pair").next_step if verdict in (Verdict.FAIL, Verdict.WARN) else ""
        step = "" if "not on" in says else step
        found = Result("efa.pair", verdict, says, lines, step, shown_commands(ends))
        largest = ping.largest
        return PairResult(
            ends.server,
            ends.client,
            at,
            self._clock.steady() - began,
            found,
            mb_s=largest.mb_s if largest else None,
            latency_us=ping.latency_us,
            size_bytes=largest.size_bytes if largest else None,
        )

    def _measure(self, ends: Ends) -> tuple[Verdict, str, tuple[str, ...], Ping]:
        with _Server(self._open(ends.server), ends.port, self._keep) as server:
            if server.missing:
                return Verdict.UNKNOWN, f"fi_pingpong is not on {ends.server}", tuple(server.lines), Ping()
            client = self._open(ends.client)
            for left in reversed(range(_TRIES)):
                done = client.run(client_argv(ends.port, ends.address), deadline_s=CLIENT_S + 15)
                said = [printable(line.rstrip()) for line in done.stdout.decode("utf-8", "replace").splitlines()]
                # The server's port opens a moment after it was started.
                refused = any("refused" in line.lower() for line in said)
                if not refused or not left or server.ended or self.cancelled.wait(0.5):
                    break
        if "#missing" in said:
            return Verdict.UNKNOWN, f"fi_pingpong is not on {ends.client}", (), Ping()
        if self.cancelled.is_set():
            return Verdict.UNKNOWN, "stopped before it was done", (), Ping()
        lines = [f"{ends.client}: {line}" for line in said] + [f"{ends.server}: {line}" for line in server.lines]
        ping = parse_ping(said)
        verdict, says = judge_ping(ping, done.rc, ends, self._latency_us)
        return verdict, says, tuple(lines[:60]), ping

    def _keep(self, stream: LineStream, there: bool) -> None:
        with self._lock:
            if there:
                self._streams.add(stream)
            else:
                self._streams.discard(stream)


class _Server:
    """fi_pingpong's server for as long as the block lasts."""

    def __init__(self, host: Host, port: int, keep: Callable[[LineStream, bool], None]) -> None:
        self._host, self._port, self._keep = host, port, keep
        self.lines: list[str] = []
        self._started = threading.Event()
        self._over = threading.Event()
        self.missing = False

    @property
    def ended(self) -> bool:
        return self._over.is_set()

    def __enter__(self) -> _Server:
        self._stream = self._host.stream(server_argv(self._port), open_deadline_s=45.0)
        self._keep(self._stream, True)
        threading.Thread(target=self._read, name="efa-pair-server", daemon=True).start()
        self._started.wait(LISTEN_S)
        return self

    def _read(self) -> None:
        with suppress(FaultError):
            for raw in self._stream:
                line = printable(raw.rstrip())
                if line == "#missing":
                    self.missing = True
                elif not line.startswith("#"):
                    self.lines = [*self.lines, line][:100]
                self._started.set()
        self._over.set()
        self._started.set()

    def __exit__(self, *_: object) -> None:
        self._keep(self._stream, False)
        with suppress(Exception):
            self._stream.close()


_BLOCKED = ("unreachable", "unresponsive", "113", "103", "no route")


def judge_ping(ping: Ping, rc: int, ends: Ends, latency_warn_us: float) -> tuple[Verdict, str]:
    """What the client's output means."""
    told = " ".join(ping.errors).lower()
    largest = ping.largest
    if largest is not None and rc == 0 and largest.complete:
        slow = ping.latency_us is not None and ping.latency_us > latency_warn_us
        latency = f"{ping.latency_us:.0f} µs, " if ping.latency_us is not None else ""
        says = f"{latency}{largest.mb_s:,.0f} MB/s at {binary_size(largest.size_bytes)}"
        return (Verdict.WARN if slow else Verdict.PASS), f"{says}; slow for EFA" if slow else says
    if rc in (124, 137) or "timed out" in told:
        where = "in the middle" if ping.rows else "before the first message"
        return Verdict.FAIL, f"no answer within {CLIENT_S:.0f} s, {where}: a security group or network ACL blocks EFA"
    if "refused" in told:
        return Verdict.FAIL, f"{ends.server} refuses the control connection (TCP {ends.port})"
    if any(word in told for word in _BLOCKED):
        return Verdict.FAIL, f"{ends.server} is not reachable over EFA: security group of either side"
    if "-61" in told or "no data available" in told:
        return Verdict.FAIL, "one side finds no EFA device (-61): see the EFA checks"
    last = ping.errors[-1] if ping.errors else "it said nothing"
    return Verdict.FAIL, f"fi_pingpong ended with status {rc}: {last}"
