"""Is this the machine we think it is? Strict: a key that known_hosts does not hold is refused with words."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.hosts.known_hosts import KnownHosts, KnownKey, fingerprint, host_pattern
from cockpit.hosts.ssh_target import SshTarget
from cockpit.models import Fault, FaultError, FaultKind

_RSA_ALGORITHMS = ("rsa-sha2-512", "rsa-sha2-256")


def algorithms(key_type: str) -> tuple[str, ...]:
    """Signature algorithms of a key type; RSA keys sign with SHA-2 only."""
    return _RSA_ALGORITHMS if key_type == "ssh-rsa" else (key_type,)


class Pins:
    """Keys of machines that were trusted at first sight, by the name they were asked for.

    A new machine of the same name gets a new object: a login under way to the old one cannot reach that.
    """

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def holds(self, name: str, blob: bytes) -> bool:
        """True for the key that was seen first, which the first one asked about is."""
        with self._lock:
            return self._keys.setdefault(name, blob) == blob


@dataclass(frozen=True, slots=True)
class HostKeyCheck:
    """The known keys of one target."""

    target: SshTarget
    known: KnownHosts

    @staticmethod
    def for_target(target: SshTarget) -> HostKeyCheck:
        """Reads the target's known_hosts files, or takes them from memory when they have not changed."""
        paths = (*target.user_known_hosts_files, *target.global_known_hosts_files)
        return HostKeyCheck(target, KnownHosts(paths))

    @property
    def name(self) -> str:
        """The name under which the key is expected; HostKeyAlias is used as it stands, without the port."""
        alias = self.target.host_key_alias
        return alias.lower() if alias else host_pattern(self.target.hostname, self.target.port)

    @property
    def _fallback(self) -> tuple[str, ...]:
        # Like OpenSSH: a key of the bare host name is good for its other ports, too.
        bare = self.target.hostname.lower()
        return () if self.target.host_key_alias or bare == self.name else (bare,)

    def preferred(self, offered: Sequence[str]) -> tuple[str, ...]:
        """`offered` algorithms, those of the key types we know for this host first.

        Otherwise a host known by its RSA key would show us its Ed25519 key and pass for unknown.
        """
        types = self.known.key_types((self.name, *self._fallback))
        first = [name for key_type in types for name in algorithms(key_type) if name in offered]
        return (*first, *(name for name in offered if name not in first))

    def verify(self, key_type: str, blob: bytes) -> None:
        """Return when the key is known; raise FaultError(HOST_KEY) when it is unknown, changed or revoked."""
        others: list[KnownKey] = []
        if self._holds(self.name, blob, others):
            return
        clash = next((key for key in others if key.key_type == key_type), None)
        if clash is not None:
            raise self._changed(key_type, blob, clash)
        bare: list[KnownKey] = []
        if any(self._holds(name, blob, bare) for name in self._fallback):
            return
        pins = self.target.pins
        # A machine that is known by any key is no stranger that could be trusted at first sight.
        if pins is None or others or bare:
            raise self._unknown(key_type, blob, others if pins is None else [*others, *bare])
        if not pins.holds(self.target.alias, blob):
            why = f"it showed another key before; now {key_type} {fingerprint(blob)}"
            step = "was the node replaced? if so it is trusted anew once Slurm has powered it down or dropped it"
            raise self._fault(why, step)

    def _holds(self, name: str, blob: bytes, others: list[KnownKey]) -> bool:
        """True when `name` is known by this key; its other keys go to `others`. Raises when revoked."""
        # A revoked key may also stand in an ordinary line, so this never stops at the first match
        # among the plain lines; hashed ones are reached only when those hold no match.
        matched = False
        for key in self.known.plain(name):
            matched |= self._compare(key, blob, others)
        if not matched:
            for key in self.known.hashed(name):
                matched |= self._compare(key, blob, others)
        return matched

    def _compare(self, key: KnownKey, blob: bytes, others: list[KnownKey]) -> bool:
        if key.revoked and key.blob == blob:
            raise self._revoked(key)
        if not key.revoked and key.blob != blob:
            others.append(key)
        return not key.revoked and key.blob == blob

    def _fault(self, why: str, next_step: str) -> FaultError:
        what = f"host key of {self.target.alias} ({self.name})"
        return FaultError(Fault(FaultKind.HOST_KEY, what, why, next_step))

    def _unknown(self, key_type: str, blob: bytes, others: Sequence[KnownKey]) -> FaultError:
        why = f"not in known_hosts; the server shows {key_type} {fingerprint(blob)}"
        if others:
            held = ", ".join(f"{key.key_type} ({key.where})" for key in others[:3])
            other = "keys" if any(key.key_type == key_type for key in others) else "types"
            why += f", known for this host are only other {other}: {held}"
        if self.known.has_ca_for(self.name):
            why += "; a @cert-authority line covers it, but host certificates are not supported here"
        damaged = [text for text in self.known.warnings if "certificates" not in text]
        if damaged:
            why += f"; {len(damaged)} lines were skipped, the first: {damaged[0]}"
        if not self._writable():
            where = "the ssh config gives this host no known_hosts file that keeps anything"
            return self._fault(why, f"{where}: name a real one with UserKnownHostsFile, then log in once")
        compare = "compare the fingerprint with the machine's own (its console log, or ask its owner), then"
        return self._fault(why, f"{compare}: {self._accept(key_type, blob)}")

    def _writable(self) -> str | None:
        real = (path for path in self.target.user_known_hosts_files if path != os.devnull)
        return next(real, None)

    def _accept(self, key_type: str, blob: bytes) -> str:
        """One shell line that accepts exactly this key, through whatever proxy the config names."""
        if shutil.which("ssh") is None:
            line = f"{self.name} {key_type} {base64.b64encode(blob).decode()}"
            return f"echo {shlex.quote(line)} >> {shlex.quote(str(self._writable()))}"
        target = self.target
        options = {
            "StrictHostKeyChecking": "ask",
            "BatchMode": "no",
            # So that ssh shows the very fingerprint that is shown here.
            "HostKeyAlgorithms": ",".join(algorithms(key_type)),
        }
        words = ["ssh"]
        if target.config_file is not None:
            words += ["-F", str(target.config_file)]
        if target.via is not None:
            words += ["-J", target.via]
            if target.host_key_alias:
                options["HostKeyAlias"] = target.host_key_alias
        for keyword, value in options.items():
            words += ["-o", f"{keyword}={value}"]
        words += ["-l", target.user, "-p", str(target.port), target.alias, "true"]
        return shlex.join(words)

    def _changed(self, key_type: str, blob: bytes, held: KnownKey) -> FaultError:
        why = (
            f"THE KEY HAS CHANGED: the server shows {key_type} {fingerprint(blob)}, but {held.where} holds"
            f" {held.fingerprint}. Either the machine was rebuilt, or someone is between you and it"
        )
        remove = shlex.join(["ssh-keygen", "-R", self.name, "-f", held.path])
        step = "only when you know that it was rebuilt, remove the old key and try again"
        return self._fault(why, f"{step}: {remove}")

    def _revoked(self, key: KnownKey) -> FaultError:
        why = f"THE KEY IS REVOKED: {key.where} marks {key.key_type} {key.fingerprint} as no longer trusted"
        return self._fault(why, "do not log in; ask who revoked it, and why the machine still uses it")
