"""Shared fixtures, and lines at the end that say how many tests of the real cluster and of faults ran."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.table import FAULT_TESTS

if TYPE_CHECKING:
    from tests.rig import Rig

# What is counted at the end. With xdist a worker's reports bring their tests' counts along as properties.
RIG, FAULTS = "rig tests", "fault suite"

# No test may reach the AWS account of whoever runs it, nor wait for a metadata service.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
os.environ.update(
    {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nowhere/config",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
    }
)


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """A running Slurm cluster, shared by all tests that ask for it; settle() runs between them."""
    from tests.rig import Rig

    cluster = Rig()
    try:
        yield cluster.up()
    finally:
        cluster.down()


@pytest.fixture(autouse=True)
def _settled_rig(request: pytest.FixtureRequest) -> Iterator[None]:
    cluster: Rig | None = request.getfixturevalue("rig") if "rig" in request.fixturenames else None
    yield
    if cluster is not None:
        cluster.settle()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "rig" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.rig)
        if item.get_closest_marker("rig") is not None:
            # One worker runs them all, so that the cluster is started once.
            item.add_marker(pytest.mark.xdist_group("rig"))
            item.user_properties.append(("counted", RIG))
        if item.nodeid.startswith(FAULT_TESTS):
            item.user_properties.append(("counted", FAULTS))


@functools.cache
def _uses_rig(module: Path) -> bool:
    return re.search(r"\brig: Rig\b|mark\.rig\b", module.read_text(encoding="utf-8")) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    def group(nodeid: str) -> str:
        module = config.rootpath / nodeid.partition("::")[0]
        if nodeid.startswith("tests/packaging/"):
            return "packaging"  # one worker builds, and all its tests use that
        return "rig" if _uses_rig(module) else str(by_mark(nodeid))

    if config.getvalue("dist") != "loadgroup":
        return None
    # With pytest 9.2 xdist 3.8 can no longer write a test's group into its id, and ids are all that a
    # scheduler is given, hence the look at the module's source.
    scheduler = LoadGroupScheduling(config, log)
    by_mark = scheduler._split_scope
    scheduler._split_scope = group
    return scheduler


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("rig") is not None:
        from tests.rig.require import missing

        if (reason := missing()) is not None:
            pytest.skip(reason)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for what in (RIG, FAULTS):
        terminalreporter.write_line(_count(what, terminalreporter.stats))


def _count(what: str, stats: Mapping[str, Sequence[Any]]) -> str:
    """How many of these tests ran, how many were left out, and why."""
    ran: set[str] = set()
    left_out: dict[str, str] = {}
    for outcome in ("passed", "failed", "error", "xfailed", "xpassed", "skipped"):
        for report in stats.get(outcome, ()):
            if ("counted", what) not in (tuple(pair) for pair in getattr(report, "user_properties", ())):
                continue
            if outcome == "skipped":
                left_out[report.nodeid] = str(report.longrepr[2]).removeprefix("Skipped: ")
            else:
                ran.add(report.nodeid)
    if not ran and not left_out:
        return f"{what}: none selected"
    line = f"{what}: {len(ran)} ran, {len(left_out)} left out"
    return line + (": " + "; ".join(sorted(set(left_out.values()))) if left_out else "")
