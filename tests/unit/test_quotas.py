"""Quotas on Lustre: asked by user, of root where it must be, given up where nobody would get an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cockpit.cluster import Cluster
from cockpit.gpu_models import MountReading
from cockpit.hosts.base import Completed
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.quotas import read_quota, read_quotas
from cockpit.storage_models import Quota
from screens.detail_registry import read_more
from screens.details import quotas
from screens.details.quotas import users_with_jobs
from screens.lines import Subject
from screens.storage_table import storage_rows
from tests.still import StillHost
from tests.unit.details_cluster import text, texts, watched, with_reading

NODE = "gpu-st-p5-3"
FSX = MountReading("/fsx", "lustre", "10.0.31.200@tcp:/fsxdemo", 1000.0, 500.0, 500.0)
HEAD = b"Disk quotas for usr x (uid 1):\n  Filesystem kbytes quota limit grace files quota limit grace\n"


def reached(monkeypatch: pytest.MonkeyPatch, mount: MountReading = FSX) -> tuple[Cluster, StillHost, str]:
    """A cluster whose nodes answer as its head does, and the key of that mount."""
    cluster, head, _ = watched({NODE: with_reading(mounts=(mount,))})
    monkeypatch.setattr(cluster, "node_host", lambda name: head)
    (key,) = [row.key for row in storage_rows(cluster.view) or () if row.what == mount.path]
    return cluster, head, key


def told(cluster: Cluster, key: str) -> list[str]:
    return [text(line) for line in read_more(cluster, Subject("storage", key))]


def test_those_who_have_jobs_are_told_the_tightest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, head, key = reached(monkeypatch)
    title, columns, *rows = told(cluster, key)
    assert title == f"quotas of those who have jobs, by lfs on {NODE}"
    assert columns.split() == ["user", "used", "of", "files", "of"]
    assert {row.split()[0] for row in rows} == set(users_with_jobs(cluster)) >= {"aisha", "kenji"}
    assert rows[0].split()[:2] == ["aisha", "31T"]
    assert rows[0].endswith("over the soft limit, 6d21h left")
    assert rows[1].split()[0] == "kenji"
    assert rows[1].endswith("93 % used")
    # Lustre tells nobody's quota but one's own to others than root.
    asked = [list(argv) for argv in head.calls if "lfs" in argv and "aisha" in argv]
    assert asked == [["lfs", "quota", "-u", "aisha", "/fsx"], ["sudo", "-n", "lfs", "quota", "-u", "aisha", "/fsx"]]


@pytest.mark.parametrize("kind", ["xfs", "nfs4"])
def test_other_file_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    cluster, head, key = reached(monkeypatch, MountReading("/data", kind, "x", 1000.0, 500.0, 500.0))
    head.calls.clear()
    assert told(cluster, key) == []
    assert head.calls == []


def test_a_mount_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, head, key = reached(monkeypatch, MountReading("/fsx", "lustre", "x", hung_since=1.0))
    head.calls.clear()
    assert "not asked: it does not answer" in "\n".join(told(cluster, key))
    assert head.calls == []


def test_what_one_user_is_refused_hides_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, head, key = reached(monkeypatch)

    def lfs(argv: Sequence[str]) -> Completed:
        if argv[-2] == "maria":
            return Completed(1, b"", b"lfs: can't find id for name maria: Invalid argument\n", 0.1)
        return Completed(0, HEAD + b"/fsx 1024 0 0 - 7 0 0 -\n", b"", 0.1)

    head.answers["lfs"] = lfs
    lines = told(cluster, key)
    assert any(line.startswith("  maria: ") and "can't find id" in line for line in lines)
    assert sum(line.count("no limit") == 2 for line in lines) == len(users_with_jobs(cluster)) - 1


@pytest.mark.parametrize(
    ("done", "kind"),
    [
        (Completed(127, b"", b"sh: lfs: not found", 0.1), FaultKind.MISSING),
        (Completed(124, b"", b"", 10.0), FaultKind.TIMEOUT),
    ],
)
def test_what_nobody_would_get_is_asked_once(monkeypatch: pytest.MonkeyPatch, done: Completed, kind: FaultKind) -> None:
    cluster, head, key = reached(monkeypatch)
    head.answers["lfs"] = lambda argv: done
    found = read_quotas(head, ["a", "b", "c"], "/fsx")
    assert list(found) == ["a"]
    fault = found["a"]
    assert isinstance(fault, Fault)
    assert fault.kind is kind
    assert "not asked after that" in "\n".join(told(cluster, key))


def test_words_for_every_state_of_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _, key = reached(monkeypatch)
    base: dict[str, Any] = {"path": "/fsx", "soft_kib": None, "hard_kib": 1000, "grace": "", "files": 5}
    more: dict[str, Any] = {"soft_files": None, "hard_files": 100, "files_grace": "", "over": False}
    states: dict[str, dict[str, Any]] = {
        "fine": {"used_kib": 10},
        "near": {"used_kib": 10, "files": 95},
        "full": {"used_kib": 1000, "over": True},
        "late": {"used_kib": 1000, "over": True, "grace": "expired"},
        "deaf": {"used_kib": 10, "uncertain": True, "files": None},
    }
    answer = {user: Quota(**{**base, **more, **change}) for user, change in states.items()}
    monkeypatch.setattr(quotas, "users_with_jobs", lambda cluster: list(states))
    monkeypatch.setattr(cluster, "quotas", lambda node, users, path: answer)
    _, _, *rows = told(cluster, key)
    ends = {row.split()[0]: row[65:].strip() for row in rows}
    assert ends == {
        "full": "over the limit: writes fail",
        "late": "over the limit: writes fail",
        "near": "95 % used",
        "fine": "",
        "deaf": "a storage target did not answer: it is more than this",
    }
    assert list(ends)[:3] == ["full", "late", "near"]


def test_nobody_has_a_job_and_too_many_have(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _, key = reached(monkeypatch)
    monkeypatch.setattr(quotas, "users_with_jobs", lambda cluster: [])
    assert "lfs quota -u USER /fsx" in "\n".join(told(cluster, key))
    asked: list[Sequence[str]] = []
    monkeypatch.setattr(quotas, "users_with_jobs", lambda cluster: [f"u{n}" for n in range(40)])

    def none(node: str, users: Sequence[str], path: str) -> dict[str, Quota | Fault]:
        asked.append(users)
        return {}

    monkeypatch.setattr(cluster, "quotas", none)
    assert "10 users more" in texts(read_more(cluster, Subject("storage", key)))
    assert len(asked[0]) == quotas.USERS_MAX


@pytest.mark.parametrize(("who", "path"), [("-x", "/fsx"), ("bob", "fsx")])
def test_no_option_comes_in_by_a_name(who: str, path: str) -> None:
    _, head, _ = watched()
    head.calls.clear()
    with pytest.raises(FaultError, match="no name or no absolute path"):
        read_quota(head, "user", who, path)
    assert head.calls == []


def test_a_project_is_asked_by_its_number() -> None:
    _, head, _ = watched()
    head.answers["lfs"] = lambda argv: Completed(0, HEAD + b"/fsx 1 0 0 - 1 0 0 -\n", b"", 0.1)
    assert read_quota(head, "project", "7", "/fsx").hard_kib is None
    assert head.calls[-1] == ["lfs", "quota", "-p", "7", "/fsx"]
