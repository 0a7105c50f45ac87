"""`sacctmgr list event` as Slurm 22.05 prints it."""

from __future__ import annotations

from datetime import timezone

from cockpit.formats.node_history import NodeOutage, history_args, parse_node_history

RAW = b"""\
1796004444|1796004446|DRAIN|root(0)|INC-1 a|b pipes
and newline
1796004448|Unknown|DOWN*|slurm(401)|Not responding
"""


def test_the_newest_first_with_the_reason_whole() -> None:
    assert parse_node_history(RAW) == (
        NodeOutage(1796004448.0, None, "DOWN*", "slurm", "Not responding"),
        NodeOutage(1796004444.0, 1796004446.0, "DRAIN", "root", "INC-1 a|b pipes␊and newline"),
    )


def test_local_times_and_nothing() -> None:
    assert parse_node_history(b"") == ()
    raw = b"2026-11-30T02:07:24|Unknown|DRAIN|root(0)|\n"
    assert parse_node_history(raw, timezone.utc) == (NodeOutage(1796004444.0, None, "DRAIN", "root", ""),)


def test_nothing_in_it_reaches_a_screen_raw() -> None:
    [told] = parse_node_history(b"1796004444|Unknown|DOWN\x1b[2J|ev\xffil(7)|\x1b]52;c;eA==\x07\n")
    assert all(text.isprintable() for text in (told.state, told.user, told.reason))


def test_only_one_node_and_only_events_of_nodes_are_asked_for() -> None:
    args = history_args("gpu-1", 14)
    assert args[:2] == ["-n", "-P"]
    assert {"event=node", "nodes=gpu-1", "start=now-14days"} <= set(args)
    assert args[-1].endswith(",reason")
