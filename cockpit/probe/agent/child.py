"""Child processes that may hang for ever, seen from a parent that must not."""

import contextlib
import ctypes
import errno
import os
import signal

from cockpit.probe.agent.values import compact

TYPE_CHECKING = False  # as typing has it, whose import would cost the node a few ms
if TYPE_CHECKING:
    from collections.abc import Callable

    Body = Callable[[], None]
    Ask = Callable[[], object]

_PR_SET_PDEATHSIG = 1
_MAX_OUTPUT = 4 * 2**20
_MAX_READS = 16
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/opt/aws/neuron/bin"

_libc: "ctypes.CDLL | None"
try:
    _libc = ctypes.CDLL(None)
except OSError:
    _libc = None


class Child:
    """A forked process that runs `body`; what it writes to its standard output collects in `out`.

    It stands in a process group of its own, so that whatever it starts is ended with it.
    """

    def __init__(self, body: "Body", talks: bool = False) -> None:
        self.out = bytearray()
        self.eof = False
        self.status: int | None = None  # as waitpid gives it; None: not reaped
        self.killed = False
        self.awaited = True  # False: nobody is in a hurry to read what it says
        self.asks: int | None = None
        reader, writer = os.pipe()
        hears, self.asks = os.pipe() if talks else (os.open(os.devnull, os.O_RDONLY), None)
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _run(body, hears, writer, parent)
        os.close(writer)
        os.close(hears)
        os.set_blocking(reader, False)
        if self.asks is not None:
            os.set_blocking(self.asks, False)
        self.fd = reader
        with contextlib.suppress(OSError):  # the child was quicker, or is gone
            os.setpgid(self.pid, self.pid)

    def read(self) -> None:
        """Take what is there, at most 1 MiB; never blocks."""
        for _ in range(_MAX_READS):
            if self.eof:
                return
            try:
                chunk = os.read(self.fd, 65536)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            self.out += chunk
            if not chunk:
                self.eof = True
                self._close()
            elif len(self.out) > _MAX_OUTPUT:
                self.kill()

    def lines(self) -> "list[bytes]":
        """Whole lines that have come since the last call."""
        self.read()
        whole, mark, rest = bytes(self.out).rpartition(b"\n")
        self.out = bytearray(rest if mark else whole + rest)
        return whole.split(b"\n") if mark else []

    def tell(self, data: bytes) -> bool:
        """Send a few bytes to a child that talks; False when it no longer listens."""
        try:
            return self.asks is not None and os.write(self.asks, data) == len(data)
        except OSError:
            return False

    def kill(self) -> None:
        """SIGKILL to the group, without waiting: in D state it may stay for hours."""
        self.killed = True
        self.eof = True
        self._close()
        if self.status is None:
            for send in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    send(self.pid, signal.SIGKILL)

    def reap(self) -> bool:
        """True once the process is gone."""
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except OSError:
                pid, status = self.pid, 0
            if pid == self.pid:
                self.status = status
        return self.status is not None

    def ending(self) -> str:
        """How it ended, in words."""
        status = self.status or 0
        if os.WIFSIGNALED(status):
            return f"signal {os.WTERMSIG(status)}"
        return f"status {os.WEXITSTATUS(status)}"

    @property
    def code(self) -> int:
        """Exit status; negative: killed by that signal."""
        status = self.status or 0
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _close(self) -> None:
        for fd in (self.fd, self.asks):
            try:
                if fd is not None and fd >= 0:
                    os.close(fd)
            except OSError:
                pass
        self.fd = -1
        self.asks = None


class Nursery:
    """Every child of this process, from its start until it has been reaped."""

    def __init__(self) -> None:
        self.children: list[Child] = []

    def start(self, body: "Body", talks: bool = False) -> Child:
        """Fork; raises OSError when the machine gives no process."""
        child = Child(body, talks)
        self.children.append(child)
        return child

    def reap(self) -> None:
        """Collect the dead."""
        self.children = [child for child in self.children if not child.reap()]

    def end(self) -> None:
        """Kill them all and collect those that can die."""
        for child in self.children:
            child.kill()
        self.reap()


def program(argv: "list[str]") -> "Body":
    """A body that becomes another program, its errors among its output; status 127 when it is not there.

    The usual places come before PATH, where a user may have put a directory that hangs; the search itself
    runs in the child.
    """

    def body() -> None:
        os.dup2(1, 2)
        os.environ["LC_ALL"] = "C"
        os.environ["PATH"] = f"{_SYSTEM_PATH}:{os.environ.get('PATH', '')}"
        try:
            os.execvp(argv[0], argv)  # noqa: S606
        except OSError as error:
            os.write(1, f"{argv[0]}: {error.strerror}".encode("utf-8", "replace"))
            os._exit(127 if error.errno == errno.ENOENT else 126)

    return body


def answer(ask: "Ask") -> "Body":
    """A body that writes what `ask` returns as JSON; an exception becomes `{"error": ...}`."""

    def body() -> None:
        try:
            said: object = ask()
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:200]}
        data = compact(said)
        while data:
            data = data[os.write(1, data) :]

    return body


def _run(body: "Body", hears: int, writer: int, parent: int) -> None:
    # Nothing below may return or raise: this is the child.
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.dup2(hears, 0)
        os.dup2(writer, 1)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.closerange(3, 1024)
        body()
        os._exit(0)
    finally:
        os._exit(1)
