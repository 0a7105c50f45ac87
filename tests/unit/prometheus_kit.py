"""A real Prometheus that scrapes one node's exporter, plain or behind TLS and a login; a certificate to trust."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NODE = "gpu-st-p5-1"
PROGRAM = shutil.which("prometheus")
METRICS = """\
DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",UUID="GPU-{gpu}",pci_bus_id="00000000:{bus:02X}:00.0",device="nvidia{gpu}",\
modelName="NVIDIA H100 80GB HBM3",Hostname="{node}",DCGM_FI_DRIVER_VERSION="570.133.20"}} {util}
DCGM_FI_DEV_GPU_TEMP{{gpu="{gpu}",UUID="GPU-{gpu}",pci_bus_id="00000000:{bus:02X}:00.0",device="nvidia{gpu}",\
modelName="NVIDIA H100 80GB HBM3",Hostname="{node}",DCGM_FI_DRIVER_VERSION="570.133.20"}} {temp}
DCGM_FI_DEV_XID_ERRORS{{gpu="{gpu}",UUID="GPU-{gpu}",pci_bus_id="00000000:{bus:02X}:00.0",device="nvidia{gpu}",\
modelName="NVIDIA H100 80GB HBM3",Hostname="{node}",DCGM_FI_DRIVER_VERSION="570.133.20"}} {xid}
"""


class Exporter(ThreadingHTTPServer):
    """dcgm-exporter's page of one node with two GPUs."""

    util, xid, broken = 91.0, 0, False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Exporter)
        parts = [
            METRICS.format(
                gpu=g, bus=0x53 + g, node=NODE, util=server.util + g, temp=60 + g, xid=server.xid if g else 0
            )
            for g in (0, 1)
        ]
        self.send_response(500 if server.broken else 200)
        self.end_headers()
        self.wfile.write("".join(parts).encode())

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def real_prometheus(folder: Path, *, web: str = "", address: str = "127.0.0.1") -> Iterator[tuple[str, Exporter]]:
    """Its address and the exporter it scrapes every second; `web` is its own file for TLS and logins."""
    if PROGRAM is None:
        pytest.skip("prometheus is not installed (Debian, Ubuntu: apt-get install prometheus)")
    exporter = Exporter()
    with socket.create_server((address, 0)) as spare:
        port = spare.getsockname()[1]
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: dcgm\n    static_configs:\n"
        f"      - targets: ['127.0.0.1:{exporter.server_address[1]}']\n"
    )
    (folder / "web.yml").write_text(web)
    argv = [PROGRAM, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    argv += [f"--web.listen-address={address}:{port}", *([f"--web.config.file={folder}/web.yml"] if web else [])]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield f"{'https' if 'tls_server_config' in web else 'http'}://{address}:{port}", exporter
    finally:
        process.kill()
        process.wait()
        exporter.shutdown()
        exporter.server_close()


def certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """A certificate for this address, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, key_pem = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pem, key_pem
