"""`s`: the cockpit steps aside for the system's ssh and comes back when that ends; its sources go on meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from textual.app import App, SuspendNotSupported

from cockpit.cluster import Cluster
from cockpit.hosts.shell_command import find_shell
from cockpit.models import FaultError
from cockpit.text import printable
from screens import outlet
from screens.lines import Subject
from screens.subjects import shell_node

T = TypeVar("T")

SSH_FAILED = 255  # ssh's own status when it did not get through, or lost the connection
GROUP = "shell"
# Typed into a terminal they go to every program in front of it; they are meant for ssh, not for the cockpit.
_TYPED = (signal.SIGINT, signal.SIGQUIT)


def open_shell(app: App[Any], cluster: Cluster, subject: Subject | None) -> None:
    """Log in to the node behind what the cursor is on, or say why that is not possible."""
    node, why = shell_node(cluster.view, subject)
    why = why or unavailable(app)
    if node is None or why:
        outlet.tell(app, why, title="no shell", severity="warning")
    elif not any(worker.group == GROUP and worker.is_running for worker in app.workers):
        work = _shell(app, cluster, node.name, node.address)
        app.run_worker(work, name=f"ssh {node.name}", group=GROUP, exit_on_error=False)


def unavailable(app: App[Any]) -> str:
    """Why no shell can be opened at all; empty where one can."""
    if shutil.which("ssh") is None:
        return "this machine has no `ssh` program"
    if app.is_headless:
        return "the cockpit has no terminal here that it could hand over"
    return ""


async def _shell(app: App[Any], cluster: Cluster, node: str, address: str) -> None:
    try:
        argv = await on_thread(lambda: find_shell(cluster.config, node, address))
    except FaultError as error:
        outlet.tell(app, error.fault.line(), title="no shell", severity="error")
        return
    rc = await run_aside(app, argv, f"ssh to {node}")
    if cluster.pace.touch():  # somebody is there, and was all the time
        cluster.refresh()
    if rc == SSH_FAILED:
        outlet.tell(app, f"ssh to {node} did not get through, or lost the connection", severity="error")
    elif rc:
        outlet.tell(app, f"the shell on {node} ended with {_ending(rc)}", severity="warning")


def _ending(rc: int) -> str:
    return f"status {rc}" if rc > 0 else f"signal {-rc}"


async def run_aside(app: App[Any], argv: Sequence[str], what: str) -> int | None:
    """Run a program in the terminal in the place of the app; its status, None when it could not be started.

    When it ends as ssh does that failed, its words stay until enter is pressed.
    """
    rc: int | None = None
    try:
        # Without the batch every change of the screen would go to a writer that has stopped, and a few dozen
        # of them would stop the cockpit for good.
        with app.batch_update(), app.suspend(), _deaf():
            # Nothing may be raised in here: Textual would not take the terminal back.
            _say(f"{what}: {printable(shlex.join(argv))}\n")
            try:
                rc = await _wait_for(await asyncio.create_subprocess_exec(*argv))
            except OSError as error:
                _say(printable(f"{argv[0]} cannot be started: {error.strerror}"))
            if rc is None or rc == SSH_FAILED:
                _say("\r\nenter goes back to the cockpit ")
                await _enter()
    except SuspendNotSupported:
        outlet.tell(app, "the cockpit cannot step aside in this terminal", severity="warning")
    return rc


def _say(text: str) -> None:
    """Words beside those of the program; a terminal that is gone or cannot show them is no reason to fail."""
    with suppress(OSError, ValueError):
        print(text, end="", flush=True)


async def _wait_for(process: asyncio.subprocess.Process) -> int:
    try:
        return await process.wait()
    finally:
        if process.returncode is None:  # the cockpit ends first
            with suppress(ProcessLookupError):
                process.terminate()


@contextmanager
def _deaf() -> Iterator[None]:
    """Do nothing on the signals that keys send. A handler, since a child would inherit that they are ignored."""
    before = {}
    with suppress(ValueError):  # not on the main thread
        for number in _TYPED:
            before[number] = signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _enter(descriptor: int = 0) -> None:
    """Wait for a line, or for the end of the terminal."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def arrived() -> None:
        if not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, arrived)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
    with suppress(OSError):
        os.read(descriptor, 4096)


async def on_thread(work: Callable[[], T]) -> T:
    """The result of something that waits, from a daemon thread: quitting would wait for any other."""
    found: Future[T] = Future()

    def run() -> None:
        found.set_running_or_notify_cancel()
        try:
            found.set_result(work())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, name="find shell", daemon=True).start()
    return await asyncio.wrap_future(found)
