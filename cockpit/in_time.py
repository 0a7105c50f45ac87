"""An answer within a deadline, of something that may never give one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Late(Exception):  # noqa: N818 - not an error of whoever was asked
    """There was no answer by the deadline."""


def in_time(ask: Callable[[], T], deadline_s: float, name: str) -> T:
    """What `ask` returns or raises; raises Late when neither has come by the deadline.

    It runs on a daemon thread called `name`, which then ends by itself and is not heard: a question that hangs for
    good keeps no program from ending.
    """
    found: list[T] = []
    broken: list[BaseException] = []

    def work() -> None:
        try:
            found.append(ask())
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    thread.join(deadline_s)
    if broken:
        raise broken[0]
    if not found:
        raise Late(f"no answer within {deadline_s:g} s")
    return found[0]
