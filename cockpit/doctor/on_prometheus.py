"""Prometheus, where the config names one: does it answer, and does it know any GPU?"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request

from cockpit.config import ClusterConfig, PrometheusSettings
from cockpit.doctor.models import Finding, Step, failed, not_applicable, passed
from cockpit.text import printable

_METRIC = "DCGM_FI_DEV_GPU_UTIL"
_TIMEOUT_S = 10.0
_MOST_BYTES = 2**20


def steps(config: ClusterConfig) -> tuple[Step, ...]:
    """The one step."""
    return (Step("prometheus", "Prometheus", lambda: _look(config.prometheus), ("config",), _TIMEOUT_S + 5.0),)


def _look(settings: PrometheusSettings | None) -> Finding:
    if settings is None:
        return not_applicable("the config names none")
    url, select = settings.url, f"{{{settings.select}}}" if settings.select else ""
    asked = f"{url.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': f'count({_METRIC}{select})'})}"
    by_hand = f"by hand: curl -sS '{asked}'"
    try:
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the config admits http(s) only
            found = json.loads(answer.read(_MOST_BYTES))
        series = found["data"]["result"]
        number = int(series[0]["value"][1]) if series else 0
    except urllib.error.HTTPError as error:
        return failed(f"{url} answers with HTTP {error.code} {printable(str(error.reason))}", by_hand)
    except (OSError, urllib.error.URLError) as error:
        return failed(f"{url} does not answer: {printable(str(getattr(error, 'reason', error)))}", by_hand)
    except (ValueError, KeyError, IndexError, TypeError):
        return failed(f"what answers at {url} is no Prometheus", by_hand)
    if not number:
        return failed(f"it answers, but has no series {_METRIC}{select}", "is DCGM-exporter on the nodes, and scraped?")
    return passed(f"{number} GPUs have {_METRIC}")
