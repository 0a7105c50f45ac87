"""The login of a web address: a token or a password from a file or the environment, read anew for each connection."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path

from cockpit.config import PrometheusSettings
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

_MOST_BYTES = 65536
_TOKEN = re.compile(r"[\x21-\x7e]+")  # anything else could begin another header
HIDDEN = "…"


class Login:
    """What goes into the header `Authorization`. It is never part of a fault, a log or a repr."""

    __slots__ = ("_secrets", "header")

    def __init__(self, header: str = "", *secrets: str) -> None:
        self.header = header
        self._secrets = tuple(secret for secret in (*secrets, header.partition(" ")[2]) if secret)

    def hidden(self, text: str) -> str:
        """A text of the other side without the secret, should it repeat it."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


def read_login(settings: PrometheusSettings, what: str) -> Login:
    """The login as it stands in the file or the environment now; raises FaultError, which names the place only."""
    if settings.token_file or settings.token_env:
        token = _secret(settings.token_file, settings.token_env, f"the token of {what}")
        if not _TOKEN.fullmatch(token):
            raise _fault(f"the token of {what}", _place(settings.token_file, settings.token_env), "holds no token")
        return Login(f"Bearer {token}", token)
    if settings.user:
        password = _secret(settings.password_file, settings.password_env, f"the password of {what}")
        both = base64.b64encode(f"{settings.user}:{password}".encode()).decode()
        return Login(f"Basic {both}", password)
    return Login()


def _secret(file: Path | None, name: str, what: str) -> str:
    """The text of the file without the newline at its end, or of the environment variable."""
    place = _place(file, name)
    if file is None:
        if not (text := os.environ.get(name, "").strip()):
            raise _fault(what, place, "is not set")
        return text
    try:
        with file.open("rb") as opened:
            raw = opened.read(_MOST_BYTES)
    except OSError as error:
        kind = FaultKind.DENIED if isinstance(error, PermissionError) else FaultKind.MISSING
        raise FaultError(Fault(kind, what, f"{place} cannot be read: {error.strerror}", _STEP)) from error
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:  # whose words would quote it
        text = ""
    if not text:
        raise _fault(what, place, "holds no text")
    return text


_STEP = "the keys below `prometheus` in the config name the place"


def _place(file: Path | None, name: str) -> str:
    return printable(str(file)) if file is not None else f"the environment variable {printable(name)}"


def _fault(what: str, place: str, why: str) -> FaultError:
    return FaultError(Fault(FaultKind.MISSING, what, f"{place} {why}", _STEP))
