"""Pickles of plain values are read; whatever else a pickle may want is refused and never run."""

from __future__ import annotations

import os
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.plain_pickle import NotPlainError, load_plain

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6) | st.tuples(inner, inner),
    max_leaves=30,
)


@given(PLAIN, st.sampled_from([3, 4, 5]))
def test_plain_values_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert load_plain(data) == value


@pytest.mark.parametrize("size", [1, 254, 255, 256, 70_000])
def test_many_values_and_shared_ones(size: int) -> None:
    shared = ["x" * 300, {"a": size}]
    value = {str(number): [number, -number, number * 10**9, shared] for number in range(size)}
    assert load_plain(pickle.dumps(value, 2)) == value


class Evil:
    def __reduce__(self) -> Any:
        return os.system, (f"touch {os.environ['EVIL_MARK']}",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_runs_something_is_refused(
    protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    monkeypatch.setenv("EVIL_MARK", str(mark))
    for value in (Evil(), {"entries": [{"state": Evil()}]}):
        with pytest.raises(NotPlainError):
            load_plain(pickle.dumps(value, protocol))
    assert not mark.exists()
    pickle.loads(pickle.dumps(Evil(), protocol))  # the file is really one that runs something
    assert mark.exists()


@pytest.mark.parametrize("code", sorted(set(range(256)) - {ord(".")}))
def test_every_single_operation_is_safe(code: int) -> None:
    """Whatever stands in the file, the answer is a value or a refusal."""
    for tail in (b".", b"\x01\x00\x00\x00a.", b"os\nsystem\n.", b"\xff\xff\xff\xff\xff\xff\xff\xff."):
        for before in (b"\x80\x02", b"\x80\x02}K\x01", b"\x80\x02(]K\x01"):
            try:
                load_plain(before + bytes([code]) + tail)
            except NotPlainError:
                continue


def test_a_claimed_size_takes_no_memory() -> None:
    for code, form in ((b"X", "<I"), (b"B", "<I"), (b"\x8e", "<Q"), (b"\x96", "<Q"), (b"r", "<I")):
        huge = 2**31 - 1 if form == "<I" else 2**40
        with pytest.raises(NotPlainError):
            load_plain(b"\x80\x04" + code + struct.pack(form, huge) + b"x.")


@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    try:
        load_plain(b"\x80\x02" + data)
    except NotPlainError:
        return


def test_a_file_that_is_cut_off() -> None:
    data = pickle.dumps({"entries": [{"state": "completed"}] * 3}, 2)
    for end in range(len(data)):
        with pytest.raises(NotPlainError):
            load_plain(data[:end])


def test_no_operation_is_known_that_makes_objects() -> None:
    from cockpit.formats.plain_pickle import _TABLE

    names = {operation.name for operation in pickletools.opcodes if ord(operation.code) in _TABLE}
    makes = {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID"}
    assert not names & (makes | {"EXT1", "EXT2", "EXT4", "NEXT_BUFFER"})
