"""The doctor before a real sshd: each fault is found at its own stage, and the rest is not tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.config import ClusterConfig
from cockpit.doctor.examine import examine
from cockpit.doctor.models import Result, Verdict
from cockpit.doctor.way_in import WayIn
from tests.sshd import Sshd, free_address, keygen, needs_sshd

pytestmark = needs_sshd
PASS, FAIL, NOT_TRIED = Verdict.PASS, Verdict.FAIL, Verdict.NOT_TRIED


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def config(ssh_config: Path) -> ClusterConfig:
    return ClusterConfig("prod", head="box", ssh_config=ssh_config)


def look(entry: ClusterConfig) -> dict[str, Result]:
    way = WayIn(entry)
    try:
        return {result.id: result for result in examine(way.steps())}
    finally:
        way.close()


def verdicts(results: dict[str, Result]) -> list[Verdict]:
    return [result.verdict for result in results.values()]


def test_an_open_way_passes_every_stage(server: Sshd) -> None:
    results = look(config(server.write_config()))
    assert verdicts(results) == [PASS] * 4
    assert server.address in results["dns"].finding.detail
    assert results["auth"].finding.detail == f"as {server.user}"


def test_a_name_without_an_address(server: Sshd) -> None:
    results = look(config(server.write_config("HostName no-such-host.invalid")))
    assert verdicts(results) == [FAIL, NOT_TRIED, NOT_TRIED, NOT_TRIED]
    assert "'no-such-host.invalid' has no address" in results["dns"].finding.detail
    assert "by hand: getent hosts no-such-host.invalid" in results["dns"].finding.remedy


def test_nobody_listens(server: Sshd) -> None:
    _, port = free_address()
    path = server.write_config(f"Port {port}")
    results = look(config(path))
    assert verdicts(results) == [PASS, FAIL, NOT_TRIED, NOT_TRIED]
    assert "refused" in results["tcp"].finding.detail
    assert f"by hand: ssh -v -F {path} box" in results["tcp"].finding.remedy


def test_a_host_key_that_nobody_knows_comes_with_the_line_that_accepts_it(server: Sshd, tmp_path: Path) -> None:
    results = look(config(server.write_config(f"UserKnownHostsFile {tmp_path}/empty")))
    assert verdicts(results) == [PASS, PASS, FAIL, NOT_TRIED]
    assert "not in known_hosts" in results["host_key"].finding.detail
    assert "StrictHostKeyChecking=ask" in results["host_key"].finding.remedy[0]


def test_a_host_key_that_has_changed(server: Sshd, tmp_path: Path) -> None:
    other = keygen(tmp_path / "other")
    (tmp_path / "known").write_text(f"{server.pattern} {server.public(other)}\n")
    results = look(config(server.write_config(f"UserKnownHostsFile {tmp_path}/known")))
    assert results["host_key"].verdict is FAIL
    assert "HAS CHANGED" in results["host_key"].finding.detail


def test_a_login_that_is_refused(server: Sshd, tmp_path: Path) -> None:
    stranger = keygen(tmp_path / "stranger")
    text = server.ssh_config().replace(str(server.client_key), str(stranger))
    path = tmp_path / "ssh_config"
    path.write_text(text)
    results = look(config(path))
    assert verdicts(results) == [PASS, PASS, PASS, FAIL]
    assert "was refused" in results["auth"].finding.detail
    assert f"by hand: ssh -v -F {path} box" in results["auth"].finding.remedy


def test_through_a_jump_host_the_stages_say_so(server: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "ssh_config"
    path.write_text(server.ssh_config("ProxyJump door") + server.ssh_config(alias="door"))
    results = look(config(path))
    assert verdicts(results) == [Verdict.NOT_APPLICABLE, PASS, PASS, PASS]
    assert "through door (ProxyJump)" in results["tcp"].finding.detail


def test_a_jump_host_that_is_not_there_is_named(server: Sshd, tmp_path: Path) -> None:
    _, port = free_address()
    path = tmp_path / "ssh_config"
    path.write_text(server.ssh_config("ProxyJump door") + server.ssh_config(f"Port {port}", alias="door"))
    results = look(config(path))
    assert verdicts(results)[1:] == [FAIL, NOT_TRIED, NOT_TRIED]
    assert "door" in results["tcp"].finding.detail


def test_on_the_head_itself_nothing_of_it_is_needed() -> None:
    results = look(replace(ClusterConfig("x"), head="local"))
    assert set(verdicts(results)) == {Verdict.NOT_APPLICABLE}
