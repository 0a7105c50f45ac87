"""A reader of pickles that knows plain values only: dicts, lists, tuples, text, numbers, None.

A pickle is a program, and pickle.load runs it. This reader has no operation that could name a class, call
anything or ask for more memory than the file has bytes, so that a file from a job can be looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

MAX_BYTES = 64 * 2**20
MAX_STEPS = 30_000_000
_MARK = object()


class NotPlainError(ValueError):
    """The file holds more than plain values, or is damaged; the words say what."""


def load_plain(data: bytes) -> Any:
    """The value in a pickle of protocol 2 to 5; raises NotPlainError. Nothing in the file is ever run."""
    if len(data) > MAX_BYTES:
        raise NotPlainError(f"it is bigger than {MAX_BYTES >> 20} MiB")
    try:
        return _Reader(data).read()
    except (IndexError, struct.error, KeyError, TypeError, UnicodeDecodeError, OverflowError):
        raise NotPlainError("it is damaged or cut off") from None


class _Reader:
    """A stack, a memo, and one method for each operation that is allowed."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self) -> Any:
        table = _TABLE
        for _ in range(MAX_STEPS):
            code = self._data[self._at]
            self._at += 1
            if code == 0x2E:  # STOP
                return self._stack.pop()
            act = table.get(code)
            if act is None:
                raise NotPlainError(_refusal(code))
            act(self)
        raise NotPlainError("it takes too many steps to read")

    def _take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise IndexError
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def since_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError
        items = self._stack[at + 1 :]
        del self._stack[at:]
        return items

    def text(self, form: str) -> None:
        self.push(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def raw(self, form: str) -> None:
        self.push(self._take(self._number(form)))

    def number(self, form: str) -> None:
        self.push(self._number(form))

    def real(self) -> None:
        self.push(struct.unpack(">d", self._take(8))[0])

    def long(self) -> None:
        self.push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def put(self, form: str) -> None:
        self._memo[self._number(form)] = self._stack[-1]

    def get(self, form: str) -> None:
        self.push(self._memo[self._number(form)])

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def skip(self, count: int) -> None:
        self._take(count)

    def tuple_of(self, count: int) -> None:
        if count > len(self._stack):
            raise IndexError
        items = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        self.push(tuple(items))

    def set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise TypeError
        for at in range(0, len(items), 2):
            key = items[at]
            if not isinstance(key, (str, int, float, bytes)) and key is not None:
                raise NotPlainError("a key in it is no plain value")
            target[key] = items[at + 1]

    def append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)

    def one(self) -> list[Any]:
        return [self._stack.pop()]

    def pair(self) -> list[Any]:
        value = self._stack.pop()
        return [self._stack.pop(), value]


_Act = Callable[[_Reader], None]
_TABLE: dict[int, _Act] = {
    0x80: lambda r: r.skip(1),  # PROTO
    0x95: lambda r: r.skip(8),  # FRAME
    ord("("): lambda r: r.push(_MARK),
    ord("}"): lambda r: r.push({}),
    ord("]"): lambda r: r.push([]),
    ord(")"): lambda r: r.push(()),
    ord("N"): lambda r: r.push(None),
    0x88: lambda r: r.push(True),
    0x89: lambda r: r.push(False),
    ord("K"): lambda r: r.number("<B"),
    ord("M"): lambda r: r.number("<H"),
    ord("J"): lambda r: r.number("<i"),
    0x8A: lambda r: r.long(),
    ord("G"): lambda r: r.real(),
    ord("X"): lambda r: r.text("<I"),
    0x8C: lambda r: r.text("<B"),
    ord("B"): lambda r: r.raw("<I"),
    ord("C"): lambda r: r.raw("<B"),
    ord("q"): lambda r: r.put("<B"),
    ord("r"): lambda r: r.put("<I"),
    0x94: lambda r: r.memoize(),
    ord("h"): lambda r: r.get("<B"),
    ord("j"): lambda r: r.get("<I"),
    ord("t"): lambda r: r.push(tuple(r.since_mark())),
    0x85: lambda r: r.tuple_of(1),
    0x86: lambda r: r.tuple_of(2),
    0x87: lambda r: r.tuple_of(3),
    ord("s"): lambda r: r.set_items(r.pair()),
    ord("u"): lambda r: r.set_items(r.since_mark()),
    ord("a"): lambda r: r.append(r.one()),
    ord("e"): lambda r: r.append(r.since_mark()),
    ord("l"): lambda r: r.push(r.since_mark()),
}
_CLASSES = frozenset(b"cioRb\x81\x92\x93\x82\x83\x84PQ")


def _refusal(code: int) -> str:
    if code in _CLASSES:
        return "it wants to make an object or call a function, which a flight record never does; it is refused"
    return f"it holds an operation that is not known here (0x{code:02x})"
