"""paramiko's transport with what it lacks. Everything that touches paramiko's inside is in this file."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import Any, ClassVar

import paramiko
from paramiko.channel import Channel
from paramiko.common import MSG_CHANNEL_REQUEST, cMSG_GLOBAL_REQUEST
from paramiko.message import Message

from cockpit.hosts.wire import Wire

# paramiko logs tracebacks as errors; without a handler Python would print them into the screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
MACS = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
)


def _handle_request(channel: Any, message: Any) -> None:
    """Note which signal ended the command, which paramiko drops, before paramiko sees the request."""
    start = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        channel.exit_signal = message.get_text()
    message.packet.seek(start)
    channel._handle_request(message)


_PARAMIKO_HANDLERS: dict[int, Any] = vars(paramiko.Transport)["_channel_handler_table"]


class Bell:
    """Stands in for the event of paramiko's buffers: rings for both, and is silenced by the reader only."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        """Called by a buffer that has run empty, which says nothing about the other one."""

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)

    def silence(self) -> None:
        self._event.clear()


class Transport(paramiko.Transport):
    """Safe algorithms only, compression, exit signals, and a pulse that expects an answer."""

    _channel_handler_table: ClassVar[dict[int, Any]] = {
        **_PARAMIKO_HANDLERS,
        MSG_CHANNEL_REQUEST: _handle_request,
    }

    def __init__(self, wire: Wire, *, compress: bool) -> None:
        super().__init__(wire)  # type: ignore[arg-type]
        self.wire = wire
        self.parting_words = ""
        options = self.get_security_options()
        options.ciphers = CIPHERS
        options.digests = MACS
        self.use_compression(compress)

    def watch(self, *, every_s: float, dead_after_s: float) -> None:
        """Ask for a sign of life after every_s of silence; kill the wire after dead_after_s without one.

        paramiko's keepalive wants no answer, so it cannot tell a frozen sshd from an idle one: the kernel
        of a frozen machine still acknowledges.
        """
        self._every_s, self._dead_after_s = every_s, dead_after_s
        self._pinged_at = 0.0
        proxy, look_s = weakref.proxy(self), min(1.0, every_s / 2)
        self.packetizer.set_keepalive(look_s, lambda: proxy._pulse())
        # paramiko looks round ten times a second at every connection, which with hundreds of them costs a quarter of a
        # core. What comes, and the end of the stream, wake it at once all the same.
        self.wire.settimeout(look_s)

    def _parse_disconnect(self, message: Any) -> None:
        """Keep the server's parting words, which paramiko only logs."""
        start = message.packet.tell()
        message.get_int()
        self.parting_words = message.get_text()
        message.packet.seek(start)
        super()._parse_disconnect(message)  # type: ignore[misc]

    def _pulse(self) -> None:
        now = time.monotonic()
        silence = now - self.wire.last_rx
        if silence > self._dead_after_s:
            self.wire.kill(f"no sign of life for {silence:.0f} s")
        elif silence > self._every_s and now - self._pinged_at > self._every_s:
            self._pinged_at = now
            # During a key exchange sending would wait for this very thread.
            if self.clear_to_send.is_set():
                self.ping()

    def ping(self) -> None:
        """Send a request that any server answers, if only with a refusal."""
        message = Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        self._send_user_message(message)  # type: ignore[attr-defined]


def listen(channel: Channel) -> Bell:
    """A bell that rings when either stream of the channel has data, ends or breaks."""
    bell = Bell()
    buffers: Any = channel
    buffers.in_buffer.set_event(bell)
    buffers.in_stderr_buffer.set_event(bell)
    return bell


def wake_request(channel: Channel) -> None:
    """Make an exec_command that waits for its answer on another thread give up; sends nothing."""
    waiting: Any = channel
    waiting.event.set()


def exit_signal(channel: Channel) -> str | None:
    """Name without SIG of the signal that ended the command; None when it exited by itself."""
    return getattr(channel, "exit_signal", None)
