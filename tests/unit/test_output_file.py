"""Following, paging and searching real files on this machine through the same interface as over SSH."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cockpit.formats.log_buffer import GONE, LogBuffer
from cockpit.formats.output_paths import OutputFile
from cockpit.hosts.base import Completed, Host
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources import output_file, remote_file
from cockpit.sources.output_file import FollowedFile, Where
from cockpit.sources.remote_file import PIECE, find_text, read_piece
from tests.unit.output_kit import ERROR, HungFile, eventually, numbered


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "slurm 48219 'quoted'.out"


def followed(path: Path, *others: str, host: Host | None = None) -> FollowedFile:
    place = Where("here", lambda: host or LocalHost())
    return FollowedFile(OutputFile("output", str(path), others), [place])


def texts(file: FollowedFile) -> list[str]:
    return [line.text for line in file.held().lines]


def read_all(file: FollowedFile) -> None:
    while file.read_on():
        pass


# One read.


def test_what_is_no_ordinary_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    host = LocalHost()
    assert read_piece(host, str(tmp_path / "fifo"), None).kind == "special"
    assert read_piece(host, str(tmp_path), None).kind == "directory"
    assert read_piece(host, "/dev/zero", None).kind == "special"
    assert read_piece(host, str(tmp_path / "none"), None).kind == "none"


class Nobody(LocalHost):
    """This machine as a login without any rights sees it."""

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if os.geteuid() == 0:
            argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv]
        return super().run(argv, **options)


def test_a_file_that_may_not_be_read_is_told_from_one_that_is_not_there() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "secret").write_text("x")
        (folder / "secret").chmod(0)
        (folder / "closed").mkdir()
        (folder / "closed" / "a").write_text("x")
        (folder / "closed").chmod(0)
        folder.chmod(0o755)
        try:
            kinds = [read_piece(Nobody(), str(folder / path), None).kind for path in ("secret", "closed/a", "none")]
        finally:
            (folder / "closed").chmod(0o700)
    assert kinds == ["denied", "denied", "none"]


def test_a_denied_file_is_told_with_the_next_step(path: Path) -> None:
    class Denied(LocalHost):
        def run(self, argv: Sequence[str], **options: Any) -> Completed:
            return Completed(0, b"kind=denied\n", b"", 0.01)

    with pytest.raises(FaultError) as error:
        followed(path, host=Denied()).open()
    assert error.value.fault.kind is FaultKind.DENIED
    assert error.value.fault.next_step


def test_a_huge_sparse_file_is_read_at_its_ends_only(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    found = followed(path)
    assert found.open()
    assert texts(found)[-1] == "the end"
    assert found.held().start >= 5 * 2**30 - PIECE
    found.to_start()
    assert found.held().start == 0
    assert found.held().end <= PIECE
    assert not found.following
    assert found.behind > 5 * 2**30 - 2 * PIECE


def test_a_path_is_never_seen_by_a_shell(tmp_path: Path) -> None:
    odd = tmp_path / "$(touch pwned) `id` \n -e \\ !x.out"
    odd.write_bytes(b"ok\n")
    piece = read_piece(LocalHost(), str(odd), None)
    assert piece.data == b"ok\n"
    assert find_text(LocalHost(), str(odd), ["ok"], 0, 100) == 0
    assert sorted(tmp_path.iterdir()) == [odd]


def test_a_hung_file_system_is_told_from_a_hung_machine(path: Path) -> None:
    host = HungFile()
    with pytest.raises(FaultError) as error:
        read_piece(host, str(path), None)
    assert "its file system hangs" in error.value.fault.why
    host.alive = False
    with pytest.raises(FaultError) as error:
        read_piece(host, str(path), None)
    assert "file system" not in error.value.fault.why


def test_a_file_system_that_hangs_costs_a_deadline_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # tail is what would hang there; here it is one that sleeps.
    (tmp_path / "tail").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    (tmp_path / "tail").chmod(0o755)
    (tmp_path / "file").write_text("x\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(remote_file, "READ_DEADLINE_S", 0.5)
    with pytest.raises(FaultError) as error:
        read_piece(LocalHost(), str(tmp_path / "file"), None)
    assert "its file system hangs" in error.value.fault.why
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


# Following.


def test_a_file_that_grows_is_read_on(path: Path) -> None:
    path.write_bytes(b"one\n")
    file = followed(path)
    assert file.open()
    with path.open("ab") as writer:
        for text in ("two\nth", "ree\n", "caf\u00e9"):
            writer.write(text.encode())
            writer.flush()
            read_all(file)
    assert texts(file) == ["one", "two", "three", "café"]
    assert file.size == path.stat().st_size
    assert not file.behind


def test_a_file_that_is_not_there_yet(path: Path) -> None:
    file = followed(path)
    assert not file.open()
    path.write_bytes(b"")
    assert file.open()
    assert texts(file) == []
    path.write_bytes(b"first\n")
    read_all(file)
    assert texts(file) == ["first"]


def test_a_truncated_file_is_read_anew_and_what_was_read_stays(path: Path) -> None:
    path.write_bytes(b"old 1\nold 2\n")
    file = followed(path)
    file.open()
    path.write_bytes(b"new\n")  # the same inode, as a requeued job's
    read_all(file)
    assert [texts(file)[0], texts(file)[1], texts(file)[-1]] == ["old 1", "old 2", "new"]
    assert file.held().lines[2].mark
    assert "was cut" in texts(file)[2]
    assert file.held().start == GONE
    file.to_start()
    assert texts(file) == ["new"]


def test_a_file_that_was_cut_and_has_grown_beyond_is_noticed(path: Path) -> None:
    path.write_bytes(b"old line\n")
    file = followed(path)
    file.open()
    path.write_bytes(b"something else, and much more of it\n")
    read_all(file)
    assert "was cut" in texts(file)[1]
    assert texts(file)[-1] == "something else, and much more of it"


def test_a_replaced_file_is_noticed_and_read(path: Path) -> None:
    path.write_bytes(b"old\n")
    file = followed(path)
    file.open()
    beside = path.with_name("beside")
    beside.write_bytes(b"old\nnew\n")
    beside.replace(path)
    read_all(file)
    assert "another file" in texts(file)[1]
    assert texts(file)[2:] == ["old", "new"]


def test_a_deleted_file_is_told_once_and_read_when_it_is_back(path: Path) -> None:
    path.write_bytes(b"old\n")
    file = followed(path)
    file.open()
    path.unlink()
    read_all(file)
    read_all(file)
    assert file.gone
    assert len(texts(file)) == 2
    path.write_bytes(b"new\n")
    read_all(file)
    assert texts(file)[-1] == "new"
    assert file.size == 4


def test_far_behind_following_jumps_to_the_end(path: Path) -> None:
    path.write_bytes(b"begin\n")
    file = followed(path)
    file.open()
    generation = file.generation
    with path.open("ab") as writer:
        writer.write(numbered(200_000))
    read_all(file)
    assert file.generation > generation
    assert texts(file)[-1] == "step 0199999 loss 1.23"
    assert not file.behind


def test_who_does_not_follow_keeps_what_is_held(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogBuffer, "__init__", _small(LogBuffer.__init__))
    path.write_bytes(numbered(40))
    file = followed(path)
    file.open()
    file.following = False
    read_all(file)
    first = file.held().lines[0]
    with path.open("ab") as writer:
        writer.write(numbered(500))
    read_all(file)
    assert file.held().lines[0] is not None
    assert file.held().lines[0] == first
    assert file.behind
    file.read_on(anyway=True)
    assert file.held().lines[0] != first


def _small(init: Callable[..., None]) -> Callable[..., None]:
    return lambda self: init(self, most_lines=40)


def test_the_beginning_of_a_big_file_does_not_pull_all_of_it(path: Path) -> None:
    path.write_bytes(numbered(60_000))
    file = followed(path)
    file.open()
    file.to_start()
    grown_at, end = file.grown_at, file.held().end
    assert not file.read_on()
    assert (file.grown_at, file.held().end) == (grown_at, end)
    file.read_on(anyway=True)
    assert file.held().end == end + PIECE


def test_binary_is_shown_harmless(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 40)
    file = followed(path)
    file.open()
    read_all(file)
    shown = "".join(texts(file))
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in shown)


# Moving about.


def test_paging_back_to_the_beginning_and_on_again(path: Path) -> None:
    data = numbered(40_000)
    path.write_bytes(data)
    file = followed(path)
    file.open()
    pages = 0
    while file.held().start > 0:
        before = file.held()
        file.earlier()
        held = file.held()
        assert held.lines[before.first - held.first] == before.lines[0]
        pages += 1
    assert pages == len(data) // PIECE
    assert texts(file) == data.decode().splitlines()
    file.to_end()
    with path.open("ab") as writer:
        writer.write(b"more\n")
    read_all(file)
    assert texts(file)[-1] == "more"
    assert file.held().start == 0


def test_another_spelling_and_another_place(tmp_path: Path) -> None:
    real = tmp_path / "50%t.out"
    real.write_bytes(b"found\n")
    file = FollowedFile(
        OutputFile("output", str(tmp_path / "500.out"), (str(real),)),
        [Where("head", _refusing), Where("node", LocalHost)],
    )
    assert file.open()
    assert (file.where, file.path) == ("node", str(real))
    assert texts(file) == ["found"]


def _refusing() -> Host:
    raise FaultError(Fault(FaultKind.UNREACHABLE, "head", "connection refused"))


def test_a_place_that_could_not_be_asked_is_told(path: Path) -> None:
    file = FollowedFile(OutputFile("output", str(path)), [Where("head", LocalHost), Where("node", _refusing)])
    with pytest.raises(FaultError) as error:
        file.open()
    assert "not on head" in error.value.fault.why
    assert "connection refused" in error.value.fault.why


# The first error.


def whole(_: int) -> bool:
    return True


def test_the_first_error_among_what_is_held(path: Path) -> None:
    path.write_bytes(numbered(20) + ERROR + numbered(5) + ERROR)
    file = followed(path)
    file.open()
    found = file.find_error(None, whole)
    assert found == 21
    assert file.find_error(found, whole) == 23  # ValueError
    assert file.find_error(10**6, whole) is None


def test_the_first_error_far_before_what_is_held(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "SPAN", 128 * 1024)
    looks_like = b"this rank keeps the same GPU\n"
    path.write_bytes(numbered(10_000) + looks_like + numbered(20_000) + ERROR + numbered(30_000))
    file = followed(path)
    file.open()
    told: list[int] = []

    def tell(at: int) -> bool:
        told.append(at)
        return True

    found = file.find_error(None, tell)
    assert found is not None
    held = file.held()
    assert held.lines[found - held.first].text == "Traceback (most recent call last):"
    assert told == sorted(told)
    assert not file.following
    assert file.behind
    file.to_end()
    assert texts(file)[-1] == "step 0029999 loss 1.23"


def test_an_effect_far_away_is_not_taken_for_the_first_error(path: Path) -> None:
    effect = b"Traceback (most recent call last):\n  File x\ntorch.distributed.DistBackendError: NCCL error in: x\n"
    path.write_bytes(effect + numbered(30_000) + b"OSError: [Errno 28] No space left on device\n" + numbered(30_000))
    file = followed(path)
    file.open()
    found = file.find_error(None, whole)
    assert found is not None
    assert "No space left" in file.held().lines[found - file.held().first].text


def test_a_search_can_be_given_up(path: Path) -> None:
    path.write_bytes(ERROR + numbered(30_000))
    file = followed(path)
    file.open()
    assert file.find_error(None, lambda at: False) is None


def test_no_error_at_all_but_something_that_follows_from_one(path: Path) -> None:
    path.write_bytes(numbered(3) + b"node-1:1:1 [0] NCCL INFO Using network Socket\n")
    file = followed(path)
    file.open()
    assert file.find_error(None, whole) is None
    assert file.find_effect() == 3
