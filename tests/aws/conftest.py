"""moto's server, started once per worker, over real HTTP on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aws.moto_cluster import KEYS, MotoCluster, reset


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def _nobodys_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def moto(moto_endpoint: str) -> MotoCluster:
    """An empty account with one ParallelCluster of four nodes."""
    reset(moto_endpoint)
    return MotoCluster(moto_endpoint).build([f"gpu-st-p5-{n}" for n in range(1, 5)])
