"""How Prometheus is asked: with a login that nobody sees, over TLS that is checked, and from the head."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

import bcrypt
import pytest

from cockpit.config import ClusterConfig, PrometheusSettings
from cockpit.doctor import on_prometheus
from cockpit.doctor.models import Verdict
from cockpit.gpu_models import known
from cockpit.hosts.local import LocalHost
from cockpit.hosts.ssh import SshHost
from cockpit.models import FaultError
from cockpit.sources import prometheus_client
from cockpit.sources.gpu_history import GpuHistory
from cockpit.sources.prometheus import PrometheusReads
from cockpit.sources.prometheus_client import PrometheusClient
from tests.sshd import Sshd, missing
from tests.still import still_cluster
from tests.unit.prometheus_kit import NODE, certificate, real_prometheus

SECRET = "s3cr3t-of-the-night"
ONE = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"a": "b"}, "value": [1, "7"]}]}}


class Web(ThreadingHTTPServer):
    """Answers every question the same way, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status, self.body, self.headers = 200, json.dumps(ONE).encode(), dict[str, str]()
        self.asked: list[tuple[str, str]] = []  # path, Authorization
        self.connections: set[int] = set()
        self.close_after = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        web = self.server
        assert isinstance(web, Web)
        self.rfile.read(int(self.headers["Content-Length"]))
        web.asked.append((self.path, self.headers.get("Authorization", "")))
        web.connections.add(self.client_address[1])
        self.close_connection = web.close_after  # without a word of it, as after a pause that was too long
        self.send_response(web.status)
        for name, value in {"Content-Length": str(len(web.body)), **web.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(web.body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.shutdown()
    server.server_close()


def fault_of(client: PrometheusClient) -> str:
    with pytest.raises(FaultError) as error:
        client.query("up")
    assert SECRET not in str(error.value)
    assert SECRET not in repr(error.value.__cause__)
    return error.value.fault.line()


def test_one_connection_serves_a_look_and_a_closed_one_is_opened_anew(web: Web) -> None:
    client = PrometheusClient(PrometheusSettings(f"{web.url}/below/"))
    for _ in range(3):
        assert client.query("up")[0].points == ((1.0, 7.0),)
    assert len(web.connections) == 1
    assert {path for path, _ in web.asked} == {"/below/api/v1/query"}
    web.close_after = True
    client.query("up")
    client.query("up")
    assert len(web.connections) == 2
    client.close()


def test_a_packed_answer_is_unpacked_within_its_bound(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.body, web.headers = gzip.compress(web.body), {"Content-Encoding": "gzip"}
    client = PrometheusClient(PrometheusSettings(web.url))
    assert client.query("up")[0].points == ((1.0, 7.0),)
    monkeypatch.setattr(prometheus_client, "MAX_BYTES", 2**20)
    web.body = gzip.compress(b" " * 2**26)
    assert "more than 1 MiB" in fault_of(client)


@pytest.mark.parametrize("place", ["file", "environment"])
def test_a_token_comes_from_a_file_or_the_environment(
    web: Web, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv("PROM_TOKEN", SECRET)
    how = {"token_file": file} if place == "file" else {"token_env": "PROM_TOKEN"}
    client = PrometheusClient(PrometheusSettings(web.url, **how))
    client.query("up")
    assert web.asked[-1][1] == f"Bearer {SECRET}"
    file.write_text("another-one")  # tokens of a rotation are taken without a restart
    monkeypatch.setenv("PROM_TOKEN", "another-one")
    client.query("up")
    assert web.asked[-1][1] == "Bearer another-one"
    client.close()


def test_a_password_goes_along_with_its_user(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROM_PASSWORD", SECRET)
    client = PrometheusClient(PrometheusSettings(web.url, user="ops", password_env="PROM_PASSWORD"))
    client.query("up")
    assert web.asked[-1][1] == "Basic b3BzOnMzY3IzdC1vZi10aGUtbmlnaHQ="
    client.close()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot be read"),
        ("", "holds no text"),
        (f"{SECRET}\r\nX-Evil: 1", "holds no token"),
        (b"\xff", "no text"),
    ],
)
def test_a_token_that_is_none_is_named_by_its_place_only(
    web: Web, tmp_path: Path, text: str | bytes | None, told: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    line = fault_of(PrometheusClient(PrometheusSettings(web.url, token_file=file)))
    assert told in line
    assert str(file) in line
    assert not web.asked


def test_an_environment_variable_that_is_not_set_is_named(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROM_TOKEN", raising=False)
    assert "PROM_TOKEN is not set" in fault_of(PrometheusClient(PrometheusSettings(web.url, token_env="PROM_TOKEN")))


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_server_that_repeats_the_login_shows_it_to_nobody(web: Web, status: int, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    settings = PrometheusSettings(web.url, token_file=tmp_path / "token")
    for body in (f'{{"status": "error", "error": "no right: Bearer {SECRET}"}}', f"<h1>Bearer {SECRET}</h1>"):
        web.status, web.body = status, body.encode()
        line = fault_of(PrometheusClient(settings))
        assert f"HTTP {status}" in line
        assert "Bearer …" in line
    assert ("is the login right?" in line) is (status != 500)
    web.status, web.body = 401, b""
    assert "does it want a login? `token_file`" in fault_of(PrometheusClient(PrometheusSettings(web.url)))


def test_a_login_is_not_sent_where_it_is_sent_on_to(web: Web, tmp_path: Path) -> None:
    other = Web()
    (tmp_path / "token").write_text(SECRET)
    for status in (301, 302, 307, 308):
        web.status, web.headers = status, {"Location": f"{other.url}/?token={SECRET}"}
        line = fault_of(PrometheusClient(PrometheusSettings(web.url, token_file=tmp_path / "token")))
        assert f"it sends on to {other.url}/?token=…" in line
    assert not other.asked
    other.shutdown()
    other.server_close()


def test_a_proxy_of_the_environment_is_used_and_left_out_as_it_says(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", web.url)
    monkeypatch.delenv("no_proxy", raising=False)
    client = PrometheusClient(PrometheusSettings("http://prom.invalid:9090/x"))
    client.query("up")
    assert web.asked == [("http://prom.invalid:9090/x/api/v1/query", "")]
    client.close()
    monkeypatch.setenv("no_proxy", "prom.invalid")
    assert "reachable from this machine" in fault_of(client)


# -- a real Prometheus behind TLS and a login, asked through a real sshd


class Guarded:
    """A Prometheus with its own certificate and one user, and settings that fit it."""

    def __init__(self, folder: Path) -> None:
        self.pem, self.key = certificate(folder, "127.0.0.1")
        hashed = bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(4)).decode()
        tls = f"tls_server_config: {{cert_file: {self.pem}, key_file: {self.key}}}\n"
        self.web = f"{tls}basic_auth_users: {{ops: '{hashed}'}}\n"
        (folder / "password").write_text(f"{SECRET}\n")
        (folder / "password").chmod(0o600)
        self.settings = PrometheusSettings(via="head", ca_file=self.pem, user="ops", password_file=folder / "password")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[PrometheusSettings]:
    found = Guarded(tmp_path)
    with real_prometheus(tmp_path, web=found.web) as (url, _):
        yield replace(found.settings, url=url)


@pytest.fixture
def head(tmp_path: Path) -> Iterator[SshHost]:
    with Sshd(tmp_path / "sshd") as server:
        host = server.host()
        yield host
        host.close()


@pytest.mark.sshd
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_real_one_behind_tls_and_a_login_through_the_head(
    guarded: PrometheusSettings, head: SshHost, tmp_path: Path
) -> None:
    cluster, _, _ = still_cluster()
    cluster.read_once()
    reads = PrometheusReads(
        guarded, lambda: cluster.view.nodes or (), GpuHistory(), client=PrometheusClient(guarded, head)
    )
    watch = until(lambda: reads.read().nodes.get(NODE))
    assert watch.reading is not None
    assert known(watch.reading.gpus[0].util_pct) == 91
    reads.history(NODE)
    until(lambda: not head.busy)  # nothing is left open between two looks
    config = ClusterConfig("x", head="box", prometheus=guarded)
    (step,) = on_prometheus.steps(config, head)
    found = step.look()
    assert (found.verdict, found.remedy) == (Verdict.PASS, ())
    assert found.detail == "2 GPUs have DCGM_FI_DEV_GPU_UTIL, asked from the head"
    (tmp_path / "password").chmod(0o644)
    assert "chmod 600" in step.look().remedy[0]

    assert "certificate" in fault_of(PrometheusClient(replace(guarded, ca_file=None), head))
    (tmp_path / "password").write_text("wrong")
    assert "HTTP 401" in fault_of(PrometheusClient(guarded, head))
    (step,) = on_prometheus.steps(config, head)
    found = step.look()
    assert found.verdict is Verdict.FAIL
    assert f'on box: curl -sS --cacert {guarded.ca_file} -u ops:"$(cat {tmp_path}/password)"' in found.remedy[-1]
    nowhere = replace(guarded, url="https://127.0.0.1:1")
    assert "through box" in fault_of(PrometheusClient(nowhere, head))
    head.close()
    assert "closed by the cockpit" in fault_of(PrometheusClient(guarded, head))


def test_a_real_one_behind_tls_straight_from_here(guarded: PrometheusSettings) -> None:
    direct = replace(guarded, via="direct")
    client = PrometheusClient(direct, LocalHost())
    assert until(lambda: client.query("up"))[0].points[-1][1] == 1
    client.close()
    other = replace(direct, url=direct.url.replace("127.0.0.1", "localhost"))  # a name that the certificate lacks
    assert "certificate" in fault_of(PrometheusClient(other))


T = TypeVar("T")


def until(ask: Callable[[], T | None]) -> T:
    """Its first answer that is one: Prometheus takes a moment to start and to scrape."""
    end = time.monotonic() + 30
    while True:
        try:
            if found := ask():
                return found
        except FaultError:
            pass
        assert time.monotonic() < end
        time.sleep(0.3)
