"""The rig itself: real daemons answer, disturbances are what they claim to be, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.config_file import load_config
from tests.rig import Rig, RigError, Spec
from tests.rig.claim import lock_path
from tests.rig.files import USERS

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
CHECKOUT = Path(__file__).parents[2]


def state(rig: Rig, node: str) -> str:
    shown = rig.slurm("sinfo", "-h", "-a", "-N", "-n", node, "-O", "StateComplete:0").stdout
    return shown.decode().split()[0]


def jobs(rig: Rig) -> list[bytes]:
    return rig.slurm("squeue", "-h", "-a", "-o", "%A %t").stdout.splitlines()


def answers(rig: Rig) -> bool:
    return rig.slurm("scontrol", "ping", timeout_s=2).returncode == 0


def banner(rig: Rig, name: str, timeout_s: float = 1.0) -> bytes | None:
    """The first bytes of an sshd; None when it accepts the connection and stays silent."""
    with socket.create_connection(rig.address(name), timeout=timeout_s) as client:
        try:
            return client.recv(64)
        except TimeoutError:
            return None


def traces(folder: Path) -> list[str]:
    """Processes and mounts anywhere on this machine that name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "mountinfo"):
            try:
                if str(folder).encode() in (process / name).read_bytes():
                    found.append(f"{process.name}/{name}")
            except OSError:
                continue
    return found


def test_static_nodes_are_idle_and_dynamic_ones_powered_down(rig: Rig) -> None:
    assert {state(rig, node) for node in rig.static_nodes} == {"idle+cloud"}
    rig.wait_for(lambda: {state(rig, node) for node in rig.dynamic_nodes} == {"idle+cloud+powered_down"})
    partitions = rig.slurm("sinfo", "-h", "-a", "-o", "%P %a").stdout.decode().split("\n")
    assert {"gpu* up", "prio up", "old inactive"} <= set(partitions)
    # Root is shown hidden partitions everywhere, so sinfo cannot tell.
    assert "Hidden=YES" in rig.slurm("scontrol", "show", "partition", "old").stdout.decode()


def test_a_job_gets_real_gpu_indexes_on_two_nodes(rig: Rig) -> None:
    script = "srun sh -c 'echo $SLURMD_NODENAME $(hostname) $CUDA_VISIBLE_DEVICES'; echo done; sleep 600"
    job = rig.submit(script, nodes=2, ntasks_per_node=1, gpus_per_node="h100:4", output="out.txt")
    out = rig.state / "home" / "root" / "out.txt"
    rig.wait_for(lambda: out.exists() and "done" in out.read_text(), 30)
    lines = sorted(out.read_text().splitlines()[:-1])
    assert lines == [f"{node} {node} 0,1,2,3" for node in rig.static_nodes[:2]]
    shown = rig.slurm("scontrol", "-d", "show", "job", str(job)).stdout.decode()
    assert "GRES=gpu:h100:4(IDX:0-3)" in shown


def test_a_job_runs_as_another_user(rig: Rig) -> None:
    rig.submit("id -un; pwd", uid=USERS["bob"], output="who.txt")
    out = rig.state / "home" / "bob" / "who.txt"
    rig.wait_for(lambda: out.exists() and out.read_text().count("\n") == 2, 30)
    assert out.read_text().split() == ["bob", str(out.parent)]


def test_power_up_boots_a_machine_and_power_down_ends_it(rig: Rig) -> None:
    node = rig.dynamic_nodes[0]
    rig.wait_for(lambda: state(rig, node) == "idle+cloud+powered_down")
    rig.slurm("scontrol", "update", f"nodename={node}", "state=power_up")
    rig.wait_for(lambda: state(rig, node) == "idle+cloud", 30)
    assert rig.inside(node, "hostname").stdout.decode().strip() == node
    rig.slurm("scontrol", "update", f"nodename={node}", "state=power_down")
    rig.wait_for(lambda: state(rig, node) == "idle+cloud+powered_down", 30)
    with pytest.raises(RigError, match="not running"):
        rig.inside(node, "hostname")


def test_ssh_to_the_head_and_through_it_to_a_node(rig: Rig) -> None:
    node = rig.static_nodes[2]
    assert rig.head_ssh(["hostname"]).stdout == b"rig-head\n"
    assert rig.ssh(node, ["hostname"]).stdout.decode() == f"{node}\n"
    # The head reaches the nodes by name too, as on a cluster with a shared home.
    assert rig.head_ssh(["ssh", node, "hostname"]).stdout.decode() == f"{node}\n"


def test_ssh_refuses_a_machine_with_another_key(rig: Rig) -> None:
    known = rig.ssh_config.with_name("known_hosts")
    before = known.read_text()
    address, _ = rig.address("head")
    lines = [line for line in before.splitlines() if f"[{address}]" not in line]
    other_key = lines[0].split(" ", 1)[1]
    known.write_text("\n".join([f"[{address}]:{rig.layout.sshd_port} {other_key}", *lines, ""]))
    try:
        done = rig.head_ssh(["true"])
    finally:
        known.write_text(before)
    assert done.returncode == 255
    assert b"Host key verification failed" in done.stderr


def test_stand_ins_come_first_in_path(rig: Rig) -> None:
    node = rig.static_nodes[0]
    tool = rig.tools(node) / "fi_info"
    tool.write_text("#!/bin/sh\necho stand-in\n")
    tool.chmod(0o755)
    assert rig.ssh(node, ["fi_info"]).stdout == b"stand-in\n"
    assert rig.ssh(rig.static_nodes[1], ["fi_info"]).returncode == 127


def test_a_frozen_controller_hangs_its_clients_and_recovers(rig: Rig) -> None:
    assert answers(rig)
    rig.freeze("slurmctld")
    assert not answers(rig)
    assert rig.head_ssh(["hostname"]).stdout == b"rig-head\n"
    rig.thaw("slurmctld")
    rig.wait_for(lambda: answers(rig))


@pytest.mark.parametrize("name", ["head", "gpu-st-p5-4"])
def test_a_frozen_machine_accepts_connections_and_stays_silent(rig: Rig, name: str) -> None:
    rig.freeze(name)
    assert banner(rig, name) is None
    rig.thaw(name)
    assert (banner(rig, name, timeout_s=10) or b"").startswith(b"SSH-2.0-")


def test_a_killed_node_refuses_connections_and_boots_again(rig: Rig) -> None:
    node = rig.static_nodes[3]
    rig.kill_node(node)
    with pytest.raises(ConnectionRefusedError):
        banner(rig, node)
    rig.boot(node)
    rig.wait_for(lambda: rig.ssh(node, ["hostname"]).returncode == 0)


def test_a_rebooted_head_still_knows_its_queue(rig: Rig) -> None:
    job = rig.submit("true", hold=True)
    rig.slurm("scontrol", "shutdown", "slurmctld")
    rig.wait_for(lambda: (rig.layout.host_dir(rig.head) / "ended").exists())
    rig.kill_node("head")
    rig.boot("head")
    rig.wait_for(lambda: (rig.head_ssh(["true"]).returncode == 0) and answers(rig))
    assert f"{job} PD".encode() in jobs(rig)


def test_settle_undoes_what_tests_do(rig: Rig) -> None:
    one, two, three, four = rig.static_nodes
    rig.submit("sleep 600", nodelist=two)
    rig.slurm("scontrol", "update", f"nodename={one},{two}", "state=drain", "reason=test")
    rig.slurm("scontrol", "update", f"nodename={three}", "state=power_down")
    rig.freeze(two)
    rig.kill_node(four)
    rig.freeze("slurmctld")
    rig.settle()
    assert {state(rig, node) for node in rig.static_nodes} == {"idle+cloud"}
    assert jobs(rig) == []
    assert {rig.ssh(node, ["true"]).returncode for node in rig.static_nodes} == {0}


def test_a_reboot_comes_from_slurm(rig: Rig) -> None:
    node = rig.static_nodes[1]
    before = rig._init(node)
    rig.slurm("scontrol", "reboot", node)
    rig.wait_for(lambda: rig._init(node) not in (before, None))
    rig.wait_for(lambda: state(rig, node) == "idle+cloud", 60)


@pytest.mark.parametrize(
    "name",
    [
        b"two\nlines",
        b"unit\x1fseparator",
        b"record\x1eseparator",
        b"\x1b[2J\x1b]0;title\x07",
        b"latin-\xe9-\xff",
        "\u202egnp.exe".encode(),
    ],
)
def test_hostile_job_names_pass_through_unchanged(rig: Rig, name: bytes) -> None:
    job = rig.submit("true", hold=True, job_name=name)
    # Over ssh, the way a cockpit reads it.
    assert rig.head_ssh(["squeue", "-h", "-j", str(job), "-o", "%j"]).stdout == name + b"\n"


def test_the_written_config_is_a_valid_one(rig: Rig) -> None:
    config = load_config(rig.config("other.yaml", production=True, head="local", ssh_config=None))
    cluster = config.clusters["rig"]
    assert (cluster.head, cluster.production, cluster.ssh_config) == ("local", True, None)
    assert cluster.nodes.port == rig.address("head")[1]


def test_clients_outside_reach_the_controller_too(rig: Rig) -> None:
    done = subprocess.run(["sinfo", "-h"], env={**os.environ, **rig.local_env}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture(scope="module")
def second(rig: Rig) -> Iterator[Rig]:
    """Another, smaller rig beside the shared one."""
    small = Rig(spec=Spec(static=1, dynamic=0))
    try:
        yield small.up()
    finally:
        small.down()


def test_two_rigs_do_not_disturb_each_other(rig: Rig, second: Rig) -> None:
    assert rig.address("head") != second.address("head")
    second.submit("true", hold=True)
    assert (len(jobs(second)), jobs(rig)) == (1, [])
    second.freeze("head")
    assert answers(rig)
    assert rig.head_ssh(["hostname"]).returncode == 0


def test_down_leaves_nothing(rig: Rig, second: Rig) -> None:
    second.thaw("head")
    job = second.submit("sleep 600 & sleep 600")
    rig.wait_for(lambda: f"{job} R".encode() in jobs(second))
    second.freeze("head")  # stopped processes must go too
    assert traces(second.state)
    second.down()
    assert traces(second.state) == []
    assert not second.state.exists()
    assert not lock_path(second.layout.instance).exists()
    assert answers(rig)


def test_a_killed_starter_takes_its_rig_along() -> None:
    code = "from tests.rig import *; x = Rig(spec=Spec(static=0)).up(); print(x.state, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        folder = Path(starter.stdout.readline().decode().strip())
        assert folder.is_dir()
        assert traces(folder)
        starter.send_signal(signal.SIGKILL)
    Rig.wait_for(lambda: not traces(folder) and not folder.exists(), 10)


def test_a_rig_that_crashed_is_cleared_away(tmp_path: Path) -> None:
    spec = Spec(static=0, dynamic=1)
    crashed = Rig(tmp_path / "rig", spec).up(detach=True)
    assert crashed._root is not None
    os.kill(crashed._root[0], signal.SIGKILL)
    Rig.wait_for(lambda: not crashed.running and len(traces(tmp_path)) == 0)
    with pytest.raises(RigError, match="not empty"):
        Rig(tmp_path, spec).up()
    again = Rig(tmp_path / "rig", spec).up()
    again.down()
    crashed.down()
    assert list(tmp_path.iterdir()) == []
    assert traces(tmp_path) == []


def test_a_failed_start_names_the_daemon_and_shows_its_log() -> None:
    broken = Rig(spec=Spec(static=0, dynamic=1, resume_timeout_s=100_000))
    try:
        with pytest.raises(RigError, match=r"slurmctld on rig-head ended with status 1(?s:.*)ResumeTimeout"):
            broken.up()
        assert traces(broken.state) == []
    finally:
        broken.down()
