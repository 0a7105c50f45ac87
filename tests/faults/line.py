"""A TCP relay between a cockpit and a machine: the network that fails, without touching this machine's own."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: throw away what is unsent, and send a reset


@dataclass(frozen=True, slots=True)
class Weather:
    """What lost packets look like above TCP: each piece comes late, and some only after a retransmission or three."""

    delay_s: float = 0.0
    stall_share: float = 0.0
    stall_s: float = 0.0


class Line:
    """Forwards connections to one address. What it swallowed stays swallowed, as after a suspended laptop."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._silent = False
        self.weather = Weather()
        self._chance = random.Random(1)
        self._lock = threading.Lock()
        self._live: list[threading.Event] = []  # of each connection: set when it is dead
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def alive(self) -> int:
        """How many connections it carries."""
        return len(self._live)

    def silence(self) -> None:
        """Nothing arrives any more, neither on the connections there are nor on new ones; nobody is told."""
        with self._lock:
            self._silent = True
            self._kill()

    def cut(self) -> None:
        """The connections there are are dead without a word (half open); new ones work."""
        with self._lock:
            self._kill()

    def reset(self) -> None:
        """The connections there are end with a reset, as by a firewall that has forgotten them; new ones work."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
            self._live.clear()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                each.shutdown(socket.SHUT_RD)  # wakes who reads from it
            each.close()

    def mend(self) -> None:
        """New connections work again; those that were silenced stay dead."""
        with self._lock:
            self._silent = False

    def close(self) -> None:
        """End everything."""
        with self._lock:
            self._kill()
            sockets = [self._listener, *self._sockets]
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _kill(self) -> None:
        for dead in self._live:
            dead.set()
        self._live.clear()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._sockets.append(near)
                silent = self._silent
            if not silent:
                self._join(near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._to, 5)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        dead = threading.Event()
        with self._lock:
            self._live.append(dead)
            self._sockets.append(far)
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._shovel, args=(source, sink, dead), daemon=True).start()

    def _shovel(self, source: socket.socket, sink: socket.socket, dead: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if dead.is_set():
                    continue  # taken, and never delivered
                self._wait()
                sink.sendall(data)
        if dead.is_set():
            return  # the end is not told either
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _wait(self) -> None:
        weather = self.weather
        stalls = weather.stall_share and self._chance.random() < weather.stall_share
        if wait_s := weather.delay_s + (weather.stall_s if stalls else 0.0):
            time.sleep(wait_s)
