"""Heads, controllers, nodes and lines that fail under one cockpit, which lives through all of it without a restart."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest

from cockpit.formats.hostlist import expand
from tests.faults.conftest import Seen
from tests.faults.seat import Seat, commands
from tests.rig import Rig
from tests.rig.nvml import missing
from tests.rig.spec import HEAD
from tests.screens.tmux import needs_tmux

pytestmark = [
    pytest.mark.rig,
    pytest.mark.xdist_group("rig"),
    *needs_tmux,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


def named(text: str) -> set[str]:
    """The nodes that the line with the worst trouble names."""
    words = text.split("\n")[2].split()
    return set(expand(words[1].rstrip(":"))) if words[:1] and words[0] in "▲✖" and len(words) > 1 else set()


def test_the_heads_sshd_is_restarted(rig: Rig, seat: Seat, seen: Seen) -> None:
    rig.restart_sshd(HEAD)
    time.sleep(0.5)
    seen(f"everything live again {seat.wait_live():.1f} s later")


def test_the_line_to_the_head_goes_silent_and_comes_back(rig: Rig, seat: Seat, seen: Seen) -> None:
    """Packets vanish: no reset, no answer, also not for new connections."""
    seat.line.silence()
    stale_s = seat.wait_stale()
    told_s = stale_s + seat.wait(lambda text: "failing" in text.split("\n")[1], "the fault in the strip")
    seat.line.mend()
    back_s = seat.wait_live(60)
    seen(f"stale after {stale_s:.1f} s, the fault named after {told_s:.1f} s, live {back_s:.1f} s after the end")


def test_a_half_open_connection_as_after_a_suspended_laptop(rig: Rig, seat: Seat, seen: Seen) -> None:
    """The old connections never answer again, new ones would: the cockpit must find that out by itself."""
    seat.line.cut()
    stale_s = seat.wait_stale()
    back_s = stale_s + seat.wait_live(60)
    seen(f"stale after {stale_s:.1f} s, on new connections and live after {back_s:.1f} s")


def test_the_head_is_gone_and_boots_again(rig: Rig, seat: Seat, seen: Seen) -> None:
    """Nothing listens: neither sshd nor slurmctld."""
    (controller,) = rig.pids(HEAD, "slurmctld")
    os.kill(controller, signal.SIGTERM)  # it saves its state, as on a reboot
    rig.wait_for(lambda: not rig.pids(HEAD, "slurmctld"), 10, "slurmctld to end")
    rig.kill_node(HEAD)
    told_s = seat.wait(lambda text: "failing" in text.split("\n")[1], "the fault in the strip")
    rig.boot(HEAD)
    seen(f"named after {told_s:.1f} s; live {seat.wait_live(60):.1f} s after the boot was asked for")


def test_the_controller_stops_and_is_started_again(rig: Rig, seat: Seat, seen: Seen) -> None:
    (pid,) = rig.pids(HEAD, "slurmctld")
    os.kill(pid, signal.SIGTERM)
    told_s = seat.wait(lambda text: "slurmctld" in text.split("\n")[2], "slurmctld named")
    rig.slurm("sh", "-c", f"slurmctld -f {rig.layout.slurm_conf} >/dev/null 2>&1 </dev/null")
    seen(f"slurmctld named after {told_s:.1f} s; live {seat.wait_live(60):.1f} s after it was started")
    rig.settle()  # the head reboots, so that its own supervisor has its slurmctld again
    seat.wait_live(60)


def test_a_probe_is_killed(rig: Rig, seat: Seat, seen: Seen) -> None:
    node = rig.static_nodes[0]
    killed = seat.probe_pids(node)
    assert killed
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):  # with one of them another one has ended
            os.kill(pid, signal.SIGKILL)
    took_s = seat.wait(lambda _: bool(set(seat.probe_pids(node)) - set(killed)), "a new probe")
    seat.wait_live()
    seen(f"a new one ran after {took_s:.1f} s, one and no more")


def test_a_node_is_gone_and_boots_again(rig: Rig, seat: Seat, seen: Seen) -> None:
    node = rig.static_nodes[1]
    rig.kill_node(node)
    named_s = seat.wait(lambda text: node in named(text), "the node named in the line of problems")
    seat.keys("3")
    seat.wait(lambda text: node in text, "its GPUs keep their rows")
    seat.keys("2")
    rig.boot(node)
    seen(f"named after {named_s:.1f} s, rows kept; live {seat.wait_live(60):.1f} s after the boot was asked for")


# What a compromised node may answer instead of the probe. `printf` is the shell's own, so no process is left to find.
HOSTILE = {
    "lines without an end": """printf '%s\\n' '{"k":"s","n":1}' '{"k":"s","n":2}' '{'""",
    "one line without an end": "printf aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "escape codes": r"""printf '\\033]0;owned\\007\\033[2J{"k":"h","host":"\\\\u001b[31m"}\\n'; sleep 0.2""",
    "errors without an end": r"printf '\\033[31mno\\n' >&2",
    "a byte a second": "printf a; sleep 1",
}


@pytest.mark.parametrize(("kind", "index"), [*zip(HOSTILE, (2, 3, 0, 1, 2), strict=True)])
def test_a_node_answers_with(rig: Rig, seat: Seat, seen: Seen, kind: str, index: int) -> None:
    node, other = rig.static_nodes[index], rig.static_nodes[index - 1]
    seat.wait(lambda text: node not in named(text), "the problem of the fault before to be over")
    config = rig.layout.host_dir(node) / "sshd_config"
    before, rss_mib = config.read_text(), seat.rss_mib()
    config.write_text(f"ForceCommand while :; do {HOSTILE[kind]}; done\n{before}")
    try:
        rig.restart_sshd(node)
        named_s = seat.wait(lambda text: node in named(text), "the node named in the line of problems", 60)
        seat.hold(1.0)
        grown_mib = seat.rss_mib() - rss_mib
        assert seat.probes(other) == 1
        assert other not in named(seat.text())
    finally:
        config.write_text(before)
        rig.restart_sshd(node)
    time.sleep(0.5)
    seat.keys("r")  # at once, whatever the back-off of a node that has misbehaved
    back_s = seat.wait_live(60)
    assert grown_mib < 60, "what nobody can use must not pile up"
    memory = f"memory +{max(0, grown_mib):.0f} MiB"
    seen(f"named after {named_s:.1f} s, the others live, {memory}; live {back_s:.1f} s after its end")


def test_the_terminal_shrinks_to_20x5_and_grows_again(rig: Rig, seat: Seat, seen: Seen) -> None:
    def nodes(text: str) -> list[str]:  # some may still power down: their states, and with them the order, change
        return sorted(word for word in text.split() if word.startswith("gpu-") and word in names)

    names = set(rig.static_nodes) | {f"gpu-dy-p5-{number}" for number in (1, 2)}
    before = nodes(seat.text())
    assert set(before) == names
    for width, height in ((20, 5), (1, 1), (200, 60), (20, 5)):
        seat.tmux.run("resize-window", "-x", str(width), "-y", str(height))
        time.sleep(0.3)
        seat.text()
    seat.tmux.run("resize-window", "-x", "120", "-y", "30")
    seat.wait(lambda text: nodes(text) == before, "the same screen as before")
    seen("the same screen as before")


def test_the_terminal_is_closed_and_nothing_is_left_anywhere(rig: Rig, seat: Seat, seen: Seen) -> None:
    """SIGHUP: the last of the seat, after everything else it has lived through."""
    assert seat.pid()
    machines = (HEAD, *rig.static_nodes)
    pid = seat.pid()
    seat.tmux.run("kill-server")
    rig.wait_for(lambda: not os.path.exists(f"/proc/{pid}"), 10, "the cockpit to end")

    def ours() -> list[str]:
        lines = [line for name in machines for line in commands(rig, name)]
        return [line for line in lines if "python" in line or "@notty" in line or " interval=" in line]

    rig.wait_for(lambda: not ours(), 20, "everything on the machines to end")
    seen("it ended, and no process of it was left on the head or a node")
