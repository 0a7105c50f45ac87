"""Prometheus' HTTP API: asked from this machine or from the head, with a login, over TLS that is always checked."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from cockpit.config import PrometheusSettings
from cockpit.formats.errors import FormatError
from cockpit.formats.prometheus import Series, parse_answer
from cockpit.hosts.base import Host
from cockpit.hosts.tunnel import socket_through
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.sources.web_login import Login, read_login
from cockpit.text import printable

DEADLINE_S = 20.0
MAX_BYTES = 128 * 2**20  # 8,192 GPUs with 17 series each are about 25 MB
_GZIP = 31  # zlib's word for: with gzip's header
_LOGIN = "`token_file`, or `user` and `password_file`, in the config (docs/PROMETHEUS.md)"


class PrometheusClient:
    """Every call has a deadline, raises FaultError, and reads no more than MAX_BYTES.

    A connection serves all questions of its thread until close(). Redirections are not followed: the login is for
    the address that the config names.
    """

    def __init__(
        self, settings: PrometheusSettings, head: Host | None = None, *, deadline_s: float = DEADLINE_S
    ) -> None:
        self._settings, self._head, self._deadline_s = settings, head, deadline_s
        self._url = urlsplit(settings.url)
        self.what = f"Prometheus at {printable(settings.url)}"
        self._own = threading.local()  # .way: the open connection of each thread
        self._tls: ssl.SSLContext | None = None

    def query(self, expression: str) -> tuple[Series, ...]:
        """What is so now."""
        return self._ask("query", {"query": expression})

    def query_range(self, expression: str, start: float, end: float, step_s: float) -> tuple[Series, ...]:
        """What was so, at every step."""
        words = {"query": expression, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:g}"}
        return self._ask("query_range", words)

    def close(self) -> None:
        """Let go of this thread's connection; the next question opens another one."""
        way: _Way | None = self._own.__dict__.pop("way", None)
        if way is not None:
            way.connection.close()

    def _ask(self, path: str, words: Mapping[str, str]) -> tuple[Series, ...]:
        body = urlencode({**words, "timeout": f"{self._deadline_s:g}s"}).encode()
        try:
            return parse_answer(self._post(path, body, read_login(self._settings, self.what)))
        except Exception:
            self.close()
            raise

    def _post(self, path: str, body: bytes, login: Login) -> bytes:
        try:
            answer = self._answer(path, body, login)
            raw = self._read(answer)
        except TimeoutError as error:
            raise self._fault(FaultKind.TIMEOUT, f"no answer within {self._deadline_s:g} s") from error
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", "") or error.reason or str(error)
            step = "`ca_file` below `prometheus` in the config names the authority that signed it"
            raise self._fault(FaultKind.UNREACHABLE, f"its certificate or TLS is not good: {why}", step) from error
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            raise self._fault(FaultKind.UNREACHABLE, str(error) or type(error).__name__, self._reach()) from error
        if answer.status != 200:
            raise self._refused(answer, raw, login)
        return raw

    def _reach(self) -> str:
        if self._settings.via == "head":
            return "is the address right, seen from the head?"
        return "is the address right, and reachable from this machine? `via: head` asks from the head"

    def _fault(self, kind: FaultKind, why: str, step: str = "") -> FaultError:
        return FaultError(Fault(kind, self.what, printable(why), step))

    def _answer(self, path: str, body: bytes, login: Login) -> http.client.HTTPResponse:
        way: _Way | None = getattr(self._own, "way", None)
        if way is not None:
            # The other side may have closed it since; to ask twice does no harm.
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                return way.post(path, body, login)
            self.close()
        way = self._own.way = self._open()
        return way.post(path, body, login)

    def _open(self) -> _Way:
        secure, prefix = self._url.scheme == "https", self._url.path.rstrip("/")
        host, port = self._url.hostname or "", self._url.port or (443 if secure else 80)
        if self._settings.via == "head" and self._head is not None:
            return _Way(self._through(self._head, host, port, secure=secure), prefix)
        proxy = urlsplit("" if proxy_bypass(host) else getproxies().get(self._url.scheme, ""))
        to, at = (proxy.hostname, proxy.port or 80) if proxy.hostname else (host, port)
        if not secure:
            whole = f"http://{self._url.netloc}" if proxy.hostname else ""
            return _Way(http.client.HTTPConnection(to, at, timeout=self._deadline_s), whole + prefix)
        tls = http.client.HTTPSConnection(to, at, timeout=self._deadline_s, context=self._context())
        if proxy.hostname:
            tls.set_tunnel(host, port)
        return _Way(tls, prefix)

    def _through(self, head: Host, host: str, port: int, *, secure: bool) -> http.client.HTTPConnection:
        """A connection that the head makes; TLS ends at Prometheus, so the head reads none of it."""
        sock = socket_through(head, host, port, deadline_s=self._deadline_s)
        sock.settimeout(self._deadline_s)
        connection = http.client.HTTPConnection(host, port)
        try:
            connection.sock = self._context().wrap_socket(sock, server_hostname=host) if secure else sock
        except BaseException:
            sock.close()
            raise
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            file = self._settings.ca_file
            try:
                self._tls = ssl.create_default_context(cafile=None if file is None else str(file))
            except OSError as error:
                why = f"`ca_file` {file} cannot be used: {error.strerror or 'it holds no certificate'}"
                raise self._fault(FaultKind.MISSING, why) from error
        return self._tls

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        """The whole body; a server that trickles has the same deadline as one that is silent."""
        until, parts, size = time.monotonic() + self._deadline_s, list[bytes](), 0
        unpack = zlib.decompressobj(_GZIP) if answer.headers.get("Content-Encoding") == "gzip" else None
        with answer:
            while data := answer.read1(2**20):
                parts.append(unpack.decompress(data, MAX_BYTES + 1 - size) if unpack else data)
                size += len(parts[-1])
                if size > MAX_BYTES:
                    step = "narrow it by `prometheus: {select: …}`"
                    raise self._fault(FaultKind.GARBLED, f"more than {MAX_BYTES >> 20} MiB", step)
                if time.monotonic() > until:
                    raise TimeoutError
        return b"".join(parts)

    def _refused(self, answer: http.client.HTTPResponse, raw: bytes, login: Login) -> FaultError:
        """What a status other than 200 means; whatever it repeats of the login is taken out."""
        if 300 <= answer.status < 400:
            place = login.hidden(str(answer.headers.get("Location", "elsewhere")))
            step = "`url` in the config is to name that place; no login is sent along"
            return self._fault(FaultKind.FAILED, f"it sends on to {place}", step)
        why = login.hidden(_said(raw))
        if answer.status not in (401, 403):
            return self._fault(FaultKind.FAILED, f"HTTP {answer.status}{why}")
        ask = "is the login right?" if self._settings.has_login else "does it want a login?"
        return self._fault(FaultKind.DENIED, f"HTTP {answer.status}{why}", f"{ask} {_LOGIN}")


def _said(raw: bytes) -> str:
    """Prometheus' own words for an error, or the first ones of whatever else answered; ": " in front."""
    try:
        parse_answer(raw)
    except FormatError as told:
        why = told.fault.why.removeprefix("it answers with an error: ").removeprefix("it is no JSON")
        return f": {why.removeprefix(': ')}" if why else ""
    return ""


@dataclass(frozen=True, slots=True)
class _Way:
    """An open connection, and what stands before the path of each question on it."""

    connection: http.client.HTTPConnection
    prefix: str

    def post(self, path: str, body: bytes, login: Login) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept-Encoding": "gzip"}
        if login.header:
            headers["Authorization"] = login.header
        self.connection.request("POST", f"{self.prefix}/api/v1/{path}", body, headers)
        return self.connection.getresponse()
