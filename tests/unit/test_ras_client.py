"""Asking NCCL's RAS: which versions are asked at all, what is sent, and what two answers mean together."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cockpit.diagnosis.diagnose import diagnose
from cockpit.hosts.local import LocalHost
from cockpit.models import FaultError
from cockpit.sources.ras_client import COMMANDS, ask, refusal
from tests.formats.test_ras import STRAGGLER
from tests.unit.diagnosis_kit import gathered

TABLE = b"""Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  MISMATCH

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 6 has launched up to operation 60 -- GPU 2 managed by process 1006 on node p5-2
"""


@pytest.mark.parametrize(
    ("version", "asked", "with_consent"),
    [
        ("", False, True),
        ("2.23.4", False, False),
        ("2.24.3", False, True),
        ("2.27.2", False, True),
        ("2.27.3", True, True),
        ("2.30.7", True, True),
        ("nonsense", False, True),
    ],
)
def test_which_versions_are_asked(version: str, asked: bool, with_consent: bool) -> None:
    assert (refusal(version, consent=False) == "") == asked
    assert (refusal(version, consent=True) == "") == with_consent


@contextmanager
def server(answer: Callable[[list[str]], bytes]) -> Iterator[tuple[str, list[list[str]]]]:
    """A RAS that answers once all lines have come; told are the lines of each connection."""
    told: list[list[str]] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    received = b""
                    while not received.endswith(b"STATUS\n"):
                        received += peer.recv(4096)
                    told.append(received.decode().splitlines())
                    peer.sendall(answer(told[-1]))

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", told


def test_only_lines_of_the_list_are_sent() -> None:
    with server(lambda _: b"SERVER PROTOCOL 2\nOK\nOK\n" + TABLE) as (address, told):
        assert ask(LocalHost(), address).startswith(b"Communicators")
    assert told == [list(COMMANDS)]
    assert not any(word in line for line in COMMANDS for word in ("CONTROL", "VERBOSE", "MONITOR"))


def test_an_old_server_is_asked_again_in_text() -> None:
    def answer(lines: list[str]) -> bytes:
        wants_json = any(line.startswith("SET FORMAT") for line in lines)
        return (
            b"SERVER PROTOCOL 2\nOK\nERROR: Unknown command SET\n" if wants_json else b"SERVER PROTOCOL 2\nOK\n" + TABLE
        )

    with server(answer) as (address, told):
        assert b"launched up to operation 60" in ask(LocalHost(), address)
    assert len(told) == 2


def test_nobody_listens() -> None:
    with pytest.raises(FaultError):
        ask(LocalHost(), "127.0.0.1:1")


def test_two_equal_answers_name_the_rank_behind() -> None:
    found = diagnose(replace(gathered(), ras=(TABLE, TABLE)))
    behind = next(each for each in found.hypotheses if each.id == "ras-behind")
    assert (behind.ranks, behind.nodes) == ((6,), ("p5-2",))
    assert any("launches only" in word for word in behind.speaks_against)


def test_counts_that_move_are_no_hang_and_one_answer_proves_nothing() -> None:
    later = TABLE.replace(b"64", b"69").replace(b"60", b"65")
    assert diagnose(replace(gathered(), ras=(TABLE, later))).verdict.state == "not hung"
    alone = diagnose(replace(gathered(), ras=(TABLE,)))
    assert not [each for each in alone.hypotheses if each.id.startswith("ras")]


def test_a_process_that_ras_calls_silent() -> None:
    found = diagnose(replace(gathered(), ras=(STRAGGLER, STRAGGLER)))
    gone = next(each for each in found.hypotheses if each.id == "ras-dead")
    assert gone.ranks == (7,)
