"""Reading known_hosts files, once each, line by line.

A damaged line is skipped with a warning and never loses the file. Plain names have an index, so that a
look-up does not depend on the size of the file; hashed names are tried only when the plain ones are not
enough. Format: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_HASH_MAGIC = "|1|"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One key of one line. `blob` is the key in SSH's wire format, line numbers start at 1."""

    key_type: str
    blob: bytes
    path: str
    line: int
    revoked: bool = False

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.blob)

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"


def fingerprint(blob: bytes) -> str:
    """SHA256:... as OpenSSH prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def host_pattern(hostname: str, port: int) -> str:
    """The name a host has in known_hosts: bare on port 22, [host]:port elsewhere, always lower case."""
    return hostname.lower() if port == 22 else f"[{hostname.lower()}]:{port}"


class KnownHostsFile:
    """The usable lines of one file, and `warnings` about the others."""

    def __init__(self, path: str, lines: Iterable[bytes] = ()) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.ca_names: list[str] = []  # host fields of @cert-authority lines, which are not supported
        self._plain: dict[str, list[KnownKey]] = {}
        self._patterns: list[tuple[str, KnownKey]] = []
        self._hashed: list[tuple[bytes, bytes, KnownKey]] = []
        self._found: dict[str, tuple[KnownKey, ...]] = {}
        for number, raw in enumerate(lines, 1):
            self._take(raw, number)

    def _take(self, raw: bytes, number: int) -> None:
        words = raw.decode("utf-8", "replace").split()
        if not words or words[0].startswith("#"):
            return
        marker = words.pop(0) if words[0].startswith("@") else ""
        if marker not in ("", "@revoked", "@cert-authority"):
            self.warnings.append(f"{self.path}:{number}: unknown marker, line skipped")
            return
        key = self._key(words, number, revoked=marker == "@revoked")
        if key is None:
            self.warnings.append(f"{self.path}:{number}: cannot be read, line skipped")
        elif marker == "@cert-authority":
            self.ca_names.append(words[0])
            self.warnings.append(f"{self.path}:{number}: host certificates are not supported, line skipped")
        elif not self._index(words[0], key):
            self.warnings.append(f"{self.path}:{number}: damaged hashed name, line skipped")

    def _key(self, words: list[str], number: int, *, revoked: bool) -> KnownKey | None:
        if len(words) < 3:
            return None
        try:
            blob = base64.b64decode(words[2], validate=True)
        except binascii.Error:
            return None
        # The blob begins with its own type; a line whose two types differ was damaged or edited.
        size = int.from_bytes(blob[:4], "big")
        if blob[4 : 4 + size] != words[1].encode() or len(blob) <= 4 + size:
            return None
        return KnownKey(words[1], blob, self.path, number, revoked)

    def _index(self, names: str, key: KnownKey) -> bool:
        if names.startswith(_HASH_MAGIC):
            try:
                salt, digest = (base64.b64decode(part, validate=True) for part in names[3:].split("|"))
            except ValueError:
                return False
            self._hashed.append((salt, digest, key))
        elif any(char in names for char in "*?!"):
            self._patterns.append((names.lower(), key))
        else:
            for name in names.lower().split(","):
                self._plain.setdefault(name, []).append(key)
        return True

    def plain(self, name: str) -> list[KnownKey]:
        """Keys under this name (see host_pattern) in readable lines, patterns included."""
        matching = [key for names, key in self._patterns if _matches(name, names)]
        return self._plain.get(name, []) + matching

    def hashed(self, name: str) -> tuple[KnownKey, ...]:
        """Keys under this name in hashed lines; tries every one of them the first time."""
        if name not in self._found:
            wanted = name.encode()
            self._found[name] = tuple(
                key
                for salt, digest, key in self._hashed
                if hmac.compare_digest(hmac.digest(salt, wanted, "sha1"), digest)
            )
        return self._found[name]

    def has_ca_for(self, name: str) -> bool:
        """True when only a @cert-authority line would vouch for this name."""
        return any(_matches(name, names.lower()) for names in self.ca_names)


def _matches(name: str, names: str) -> bool:
    """OpenSSH's pattern list: a matching negated pattern wins over everything else."""
    hit = False
    for pattern in names.split(","):
        negated = pattern.startswith("!")
        # fnmatch reads [..] as a set; in known_hosts the brackets of [host]:port are just characters.
        if fnmatch.fnmatchcase(name, pattern.lstrip("!").replace("[", "[[]")):
            if negated:
                return False
            hit = True
    return hit


_cache: dict[str, tuple[tuple[int, int], KnownHostsFile]] = {}
_cache_lock = threading.Lock()


def load(path: str) -> KnownHostsFile:
    """The file, read again only when it has changed; one that is not there or unreadable is empty."""
    try:
        stat = Path(path).stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        with _cache_lock:
            held = _cache.get(path)
            if held is None or held[0] != stamp:
                held = (stamp, KnownHostsFile(path, Path(path).read_bytes().splitlines()))
                _cache[path] = held
        return held[1]
    except FileNotFoundError:
        return KnownHostsFile(path)
    except OSError as error:
        empty = KnownHostsFile(path)
        empty.warnings.append(f"{path}: {error.strerror}")
        return empty


class KnownHosts:
    """Several files as one, in the order of the config."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.files = [load(path) for path in paths]

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(text for file in self.files for text in file.warnings)

    def plain(self, name: str) -> list[KnownKey]:
        return [key for file in self.files for key in file.plain(name)]

    def hashed(self, name: str) -> list[KnownKey]:
        return [key for file in self.files for key in file.hashed(name)]

    def key_types(self, names: Iterable[str]) -> list[str]:
        """Types we hold a valid key of, for the first kind of line (plain, hashed) that has any."""
        wanted = list(names)
        for look_up in (self.plain, self.hashed):
            types = [key.key_type for name in wanted for key in look_up(name) if not key.revoked]
            if types:
                return list(dict.fromkeys(types))
        return []

    def has_ca_for(self, name: str) -> bool:
        return any(file.has_ca_for(name) for file in self.files)
