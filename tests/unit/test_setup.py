"""Setting a cluster up: hosts of the ssh config, the entry, and a config that never loses a line."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.config import ClusterConfig, ConfigError, NodeAccess
from cockpit.config_file import load_config
from cockpit.demo.cluster import DemoCluster
from cockpit.setup.here import ssh_hosts
from cockpit.setup.write import draft, entry_of, write


def test_hosts_are_names_in_order_without_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "more").write_text("Host=third\nHost first\n")
    (tmp_path / ".ssh" / "config").write_text(
        'Host first second\n  HostName x\nHOST *.example !no *\nHost "quo ted" -oProxyCommand=x $(id)\n'
        "Include more\nMatch host fourth\nHost 'unclosed\n"
    )
    assert ssh_hosts() == ("first", "second", "third")


def test_no_ssh_config_is_no_host(tmp_path: Path) -> None:
    assert ssh_hosts(tmp_path / "none") == ()


def test_a_config_that_includes_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(f"Host a\nInclude {path}\n")
    assert ssh_hosts(path) == ("a",)


def test_an_entry_holds_only_what_differs_from_the_defaults() -> None:
    assert entry_of(ClusterConfig("x", head="a@b")) == {"head": "a@b"}
    config = ClusterConfig(
        "x", head="a@b", kind="slurm", nodes=NodeAccess(user="root", host_keys="head"), production=True
    )
    assert entry_of(config) == {
        "kind": "slurm",
        "head": "a@b",
        "nodes": {"user": "root", "host_keys": "head"},
        "production": True,
    }


def add(path: Path, config: ClusterConfig) -> str:
    text, _ = draft(config, path)
    write(path, text)
    return path.read_text()


def test_a_first_cluster_makes_the_file_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.yaml"
    add(path, ClusterConfig("prod", head="ops@head"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_config(path).clusters["prod"].head == "ops@head"
    assert [file.name for file in path.parent.iterdir()] == ["config.yaml"]


OLD = """\
# ours, since 2024
theme: cockpit-light   # bright room
clusters:
    # the big one
    prod:
        head: ops@prod   # do not touch

rules: {gpu_hot_c: 80}
"""


def test_what_was_there_stays_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(OLD)
    path.chmod(0o640)
    text = add(path, ClusterConfig("test", head="ops@test"))
    assert [line for line in OLD.splitlines() if line not in text.splitlines()] == []
    config = load_config(path)
    assert (list(config.clusters), config.default) == (["test", "prod"], "prod")
    assert (config.theme, config.rules.gpu_hot_c) == ("cockpit-light", 80)
    (backup,) = tmp_path.glob("config.yaml.*.bak")
    assert backup.read_text() == OLD


def test_other_keys_alone_get_their_clusters(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("theme: cockpit-light")
    add(path, ClusterConfig("a", head="b"))
    assert load_config(path).clusters["a"].head == "b"


@pytest.mark.parametrize("name", ["yes", "1", "null", "a: b", "- x", "ünï", "#x", "'q'"])
def test_any_name_comes_back_as_itself(tmp_path: Path, name: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(OLD)
    add(path, ClusterConfig(name, head="b"))
    assert name in load_config(path).clusters


@pytest.mark.parametrize(
    ("old", "words"),
    [
        (OLD.replace("prod:", "test:"), "has a cluster 'test' already"),
        ("clusters: {prod: {head: x}}\n", "is no block of lines"),
        ("clusters:\n  prod: [\n", "while it is broken"),
        ("[1, 2]", "is no block"),
        ("clusters:\n  prod: {head: x}\nthme: x\n", "is not a known key"),
    ],
)
def test_what_cannot_be_added_to_is_left_alone(tmp_path: Path, old: str, words: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(old)
    with pytest.raises(ConfigError, match=words):
        draft(ClusterConfig("test", head="x"), path)
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]
    assert path.read_text() == old


def test_a_linked_config_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.yaml", tmp_path / "config.yaml"
    real.write_text(OLD)
    link.symlink_to(real)
    text, _ = draft(ClusterConfig("test", head="x"), link)
    write(link, text)
    assert link.is_symlink()
    assert "test" in load_config(real).clusters


# -- the command


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoCluster]:
    cluster = DemoCluster()
    cluster.start()
    yield cluster
    cluster.stop()


def init(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "AWS_EC2_METADATA_DISABLED": "true"}
    argv = [sys.executable, "-m", "cockpit", "init", *words]
    return subprocess.run(
        argv, capture_output=True, text=True, env=env, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


def reached(demo: DemoCluster) -> list[str]:
    assert demo.folder is not None
    return ["--head", "demo-head", "--ssh-config", f"{demo.folder}/ssh_config", "--nodes-port", str(demo.port)]


def test_it_tests_the_way_and_writes_what_the_head_told(demo: DemoCluster, tmp_path: Path) -> None:
    done = init(tmp_path, *reached(demo), "--name", "mine", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass       login" in done.stdout
    path = tmp_path / ".config" / "cockpit" / "config.yaml"
    entry = load_config(path).clusters["mine"]
    assert (entry.head, entry.kind, entry.nodes.port) == ("demo-head", "slurm", demo.port)
    assert f"wrote {path}" in done.stdout


def test_without_yes_and_without_a_terminal_nothing_is_written(demo: DemoCluster, tmp_path: Path) -> None:
    done = init(tmp_path, *reached(demo))
    assert done.returncode == 4
    assert "say --yes" in done.stderr
    assert not (tmp_path / ".config" / "cockpit" / "config.yaml").exists()


def test_a_cluster_that_is_not_reached_is_not_written_unless_forced(tmp_path: Path) -> None:
    words = ["--head", "ops@no-such-host.invalid", "--name", "gone", "--yes"]
    done = init(tmp_path, *words)
    path = tmp_path / ".config" / "cockpit" / "config.yaml"
    assert (done.returncode, path.exists()) == (1, False)
    assert "nothing was written" in done.stderr
    assert "has no address" in done.stdout
    done = init(tmp_path, *words, "--force")
    assert load_config(path).clusters["gone"].head == "ops@no-such-host.invalid"
    assert done.returncode == 1


def test_without_a_head_it_says_what_it_found(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host prod-head\n")
    done = init(tmp_path, "--region", "us-east-1")
    assert done.returncode == 2
    assert "prod-head" in done.stdout
    assert "no cluster from AWS" in done.stdout
    assert "--head" in done.stderr


def test_a_dry_run_prints_the_config_and_touches_nothing(tmp_path: Path) -> None:
    done = init(tmp_path, "--head", "ops@head.prod", "--kind", "slurm", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  head:\n    kind: slurm\n    head: ops@head.prod\n" in done.stdout
    assert not (tmp_path / ".config" / "cockpit" / "config.yaml").exists()


def test_a_head_that_is_an_option_is_refused(tmp_path: Path) -> None:
    done = init(tmp_path, "--head=-oProxyCommand=x", "--dry-run")
    assert done.returncode == 2
    assert "--head" in done.stderr


def answered(home: Path, text: str, *words: str) -> tuple[int, str]:
    """`init` on a terminal where somebody types; the exit code and the screen."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "AWS_EC2_METADATA_DISABLED": "true"}
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "cockpit", "init", *words]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        os.write(ours, text.encode())
        shown = b""
        with contextlib.suppress(OSError):  # the terminal ends with the last process on it
            while piece := os.read(ours, 65536):
                shown += piece
        code = process.wait(60)
    os.close(ours)
    return code, shown.decode()


def test_somebody_may_choose_by_number_and_agree(demo: DemoCluster, tmp_path: Path) -> None:
    assert demo.folder is not None
    words = ["--ssh-config", f"{demo.folder}/ssh_config", "--nodes-port", str(demo.port), "--region", "us-east-1"]
    hosts = ssh_hosts(demo.folder / "ssh_config")
    before = 1 if shutil.which("squeue") else 0  # this machine's own Slurm stands first
    number = before + hosts.index("demo-head") + 1
    code, shown = answered(tmp_path, f"{number}\n\n", *words)
    path = tmp_path / ".config" / "cockpit" / "config.yaml"
    assert (code, path.exists()) == (0, True), shown
    assert load_config(path).clusters["demo-head"].head == "demo-head"


def test_ctrl_d_is_no_yes(tmp_path: Path) -> None:
    code, shown = answered(tmp_path, "\x04", "--head", "Ops@no-such-host.invalid")
    assert code == 1, shown
    assert "Ops@no-such-host.invalid" in shown
    assert not (tmp_path / ".config" / "cockpit" / "config.yaml").exists()
