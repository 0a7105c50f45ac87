"""How much memory hangs on an object, and on which of its attributes: what a leak is found by."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

OURS = ("cockpit", "screens", "actions", "themes")
_LEFT_OUT = (
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType, type),
    *(threading.Thread, type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event),
)


def weigh(root: object, left_out: Iterable[object] = ()) -> Counter[str]:
    """Bytes of everything that hangs on it, by the attribute that holds it: `GpuHistory._nodes`.

    Each object counts once, where it is met first. Functions, classes, threads and locks are not followed.
    """
    found: Counter[str] = Counter()
    seen = {id(each) for each in left_out}
    left: deque[tuple[str, Any]] = deque([(type(root).__name__, root)])
    while left:
        path, one = left.popleft()
        if id(one) in seen or isinstance(one, _LEFT_OUT):
            continue
        seen.add(id(one))
        found[path] += sys.getsizeof(one)
        left += _parts(path, one)
    return found


def _parts(path: str, one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, str | bytes | int | float):
        return
    if isinstance(one, Mapping):
        for key, value in list(one.items()):
            yield path, key
            yield path, value
    elif isinstance(one, list | tuple | set | frozenset | deque):
        yield from ((path, each) for each in list(one))
    elif isinstance(one, types.MethodType):
        yield path, one.__self__
    else:
        name = type(one).__name__
        values = dict(getattr(one, "__dict__", ()))
        slots = (slot for kind in type(one).__mro__ for slot in getattr(kind, "__slots__", ()))
        values |= {slot: getattr(one, slot) for slot in slots if hasattr(one, slot) and slot != "__weakref__"}
        yield from ((f"{name}.{key}", value) for key, value in values.items())


def endless_caches() -> dict[str, int]:
    """How full each cache without a bound is that one of our functions has."""
    found = {}
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__.split(".")[0] in OURS:
            info = one.cache_info()
            if info.maxsize is None:
                found[f"{one.__module__}.{one.__qualname__}"] = info.currsize
    return found
