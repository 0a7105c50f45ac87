"""Prometheus, where the config names one: does it answer the way it is asked, and does it know any GPU?"""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from cockpit.config import ClusterConfig, PrometheusSettings
from cockpit.doctor.models import Finding, Step, Verdict, failed, not_applicable, of_fault
from cockpit.hosts.base import Host
from cockpit.models import FaultError
from cockpit.sources.prometheus_client import PrometheusClient

_METRIC = "DCGM_FI_DEV_GPU_UTIL"
_TIMEOUT_S = 10.0


def steps(config: ClusterConfig, head: Host) -> tuple[Step, ...]:
    """The one step."""
    settings = config.prometheus
    after = ("config", "auth") if settings is not None and settings.via == "head" else ("config",)
    return (Step("prometheus", "Prometheus", lambda: _look(config, head), after, 2 * _TIMEOUT_S + 5.0),)


def _look(config: ClusterConfig, head: Host) -> Finding:
    settings = config.prometheus
    if settings is None:
        return not_applicable("the config names none")
    select = f"{{{settings.select}}}" if settings.select else ""
    question = f"count({_METRIC}{select})"
    client = PrometheusClient(settings, head, deadline_s=_TIMEOUT_S)
    try:
        series = client.query(question)
    except FaultError as error:
        return of_fault(error.fault, f"by hand: {_by_hand(config, settings, question)}")
    finally:
        client.close()
    number = int(series[0].points[-1][1]) if series and series[0].points else 0
    if not number:
        return failed(f"it answers, but has no series {_METRIC}{select}", "is DCGM-exporter on the nodes, and scraped?")
    way = ", asked from the head" if settings.via == "head" else ""
    return Finding(Verdict.PASS, f"{number} GPUs have {_METRIC}{way}", tuple(_advice(settings)))


def _by_hand(config: ClusterConfig, settings: PrometheusSettings, question: str) -> str:
    """The same with curl; secrets are named by where they are, and never shown."""
    words = ["curl", "-sS"]
    words += ["--cacert", shlex.quote(str(settings.ca_file))] if settings.ca_file else []
    if settings.token_file or settings.token_env:
        words += ["--oauth2-bearer", _shell_secret(settings.token_file, settings.token_env)]
    elif settings.user:
        words += [
            "-u",
            f"{shlex.quote(settings.user + ':')}{_shell_secret(settings.password_file, settings.password_env)}",
        ]
    words.append(shlex.quote(f"{settings.url.rstrip('/')}/api/v1/query?{urlencode({'query': question})}"))
    where = f"on {config.head}: " if settings.via == "head" and config.head != "local" else ""
    return where + " ".join(words)


def _shell_secret(file: Path | None, name: str) -> str:
    return f'"$(cat {shlex.quote(str(file))})"' if file is not None else f'"${name}"'


def _advice(settings: PrometheusSettings) -> list[str]:
    """What works and should be otherwise."""
    found = []
    if settings.has_login and settings.url.startswith("http:"):
        found.append("the login goes to it in clear text: is there an https:// address?")
    for file in (settings.token_file, settings.password_file):
        with suppress(OSError):
            if file is not None and file.stat().st_mode & 0o077:
                found.append(f"others may read it: chmod 600 {shlex.quote(str(file))}")
    return found
