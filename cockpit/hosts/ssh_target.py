"""From what a user writes (`user@host:port`, an alias, a name) to everything a connection needs to know.

OpenSSH itself is asked (`ssh -G`), since only it reads its config rightly. Where it is not installed
paramiko's reader is used, which ignores Include and takes a Match keyword it does not know as matching.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.addresses import Written, refuse_odd_name, take_apart
from cockpit.hosts.local import LocalHost
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.hosts.host_keys import Pins

RESOLVE_DEADLINE_S = 10.0
CONNECT_TIMEOUT_S = 10.0
# Where OpenSSH looks for keys when the config names none; ssh -G lists them as if they were configured.
_DEFAULT_KEYS = tuple(
    f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)
_TOKEN = re.compile(r"%(.)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class SshTarget:
    """One machine to log in to. File names are expanded; a jump is still the text of the config."""

    alias: str
    hostname: str
    user: str
    port: int = 22
    identity_files: tuple[str, ...] = ()
    identities_explicit: bool = False  # the config names them; otherwise they are OpenSSH's defaults
    identities_only: bool = False
    identity_agent: str | None = None  # path of the agent's socket; None: no agent
    certificate_files: tuple[str, ...] = ()
    user_known_hosts_files: tuple[str, ...] = ()
    global_known_hosts_files: tuple[str, ...] = ()
    proxy_jump: tuple[str, ...] = ()
    proxy_command: str | None = None
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    host_key_alias: str | None = None
    config_file: Path | None = None
    via: str | None = None  # the host a pool reaches this one through, for commands we print
    pins: Pins | None = None  # where a key that known_hosts lacks is trusted at first sight

    @property
    def address(self) -> str:
        """user@host:port, for messages."""
        return f"{self.user}@{self.hostname}:{self.port}"


def _refuse(text: str, why: str) -> FaultError:
    return FaultError(Fault(FaultKind.FAILED, f"host {printable(text)!r}", why, "correct it in the config"))


def parse_written(text: str) -> Written:
    """Take `user@host:port` apart; raises FaultError for what could be read as an option or a command."""
    try:
        return take_apart(text)
    except ValueError as error:
        raise _refuse(text, str(error)) from None


def check_name(host: str) -> None:
    """Raise FaultError for a host name that begins with a dash or holds shell characters."""
    try:
        refuse_odd_name(host)
    except ValueError as error:
        raise _refuse(host, str(error)) from None


def resolve(text: str | Written, *, ssh_config: Path | None = None) -> SshTarget:
    """Everything the user's ssh_config says about a host. Reads files, may take a few milliseconds.

    Raises FaultError when the name is refused, or when OpenSSH cannot read its config.
    """
    written = parse_written(text) if isinstance(text, str) else text
    if ssh_config is not None:
        ssh_config = ssh_config.expanduser()
        if not ssh_config.is_file():
            raise FaultError(Fault(FaultKind.MISSING, str(ssh_config), "there is no such file", "correct `ssh_config`"))
    ask = ask_openssh if shutil.which("ssh") else read_with_paramiko
    options = ask(written, ssh_config)
    return build_target(written, options, ssh_config)


def ask_openssh(written: Written, ssh_config: Path | None) -> dict[str, list[str]]:
    """What `ssh -G` prints: lower-case keyword -> its values in order."""
    argv = ["ssh", "-G"]
    if ssh_config is not None:
        argv += ["-F", str(ssh_config)]
    if written.user is not None:
        argv += ["-l", written.user]
    if written.port is not None:
        argv += ["-p", str(written.port)]
    fix = "try the same command by hand and correct the ssh config"
    what = f"ssh -G {written.host}"
    try:
        done = LocalHost().run([*argv, "--", written.host], deadline_s=RESOLVE_DEADLINE_S)
    except FaultError as error:  # a `Match exec` of the user's config can run anything
        raise FaultError(Fault(error.fault.kind, what, error.fault.why, fix)) from None
    if done.rc != 0:
        said = done.stderr.decode("utf-8", "replace").strip() or f"status {done.rc}"
        raise FaultError(Fault(FaultKind.FAILED, what, printable(said.splitlines()[0]), fix))
    options: dict[str, list[str]] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        keyword, _, value = line.partition(" ")
        options.setdefault(keyword.lower(), []).append(value.strip())
    return options


def read_with_paramiko(written: Written, ssh_config: Path | None) -> dict[str, list[str]]:
    """The same from paramiko's reader, for machines without OpenSSH's client."""
    from paramiko import SSHConfig

    config = SSHConfig()
    path = ssh_config or Path("~/.ssh/config").expanduser()
    with contextlib.suppress(FileNotFoundError), path.open() as stream:
        config.parse(stream)
    options: dict[str, list[str]] = {}
    found: Mapping[str, str | list[str]] = config.lookup(written.host)
    for keyword, value in found.items():
        options[keyword] = [value] if isinstance(value, str) else value
    if written.user is not None:
        options["user"] = [written.user]
    if written.port is not None:
        options["port"] = [str(written.port)]
    return options


def build_target(written: Written, options: Mapping[str, list[str]], ssh_config: Path | None = None) -> SshTarget:
    """Turn keyword -> values into a target; what the config leaves out gets OpenSSH's defaults."""
    first = {keyword: values[0] for keyword, values in options.items() if values}
    hostname = first.get("hostname", written.host)
    check_name(hostname)
    user = first.get("user") or written.user or getpass.getuser()
    port = int(first.get("port") or written.port or 22)
    alias_key = _unless_none(first.get("hostkeyalias"))
    tokens = _tokens(written.host, hostname, user, port, alias_key or hostname)
    keys = tuple(value for value in options.get("identityfile", ()) if value.lower() != "none")
    jump = _unless_none(first.get("proxyjump"))
    command = _unless_none(first.get("proxycommand"))
    return SshTarget(
        alias=written.host,
        hostname=hostname,
        user=user,
        port=port,
        identity_files=tuple(expand(key, tokens) for key in keys or _DEFAULT_KEYS),
        identities_explicit=bool(keys) and not set(keys) <= set(_DEFAULT_KEYS),
        identities_only=first.get("identitiesonly", "no").lower() in ("yes", "true"),
        identity_agent=_agent(first.get("identityagent"), tokens),
        certificate_files=tuple(
            expand(value, tokens) for value in options.get("certificatefile", ()) if value.lower() != "none"
        ),
        user_known_hosts_files=_known_hosts_files(
            first.get("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2"), tokens
        ),
        global_known_hosts_files=_known_hosts_files(
            first.get("globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"), tokens
        ),
        proxy_jump=tuple(hop.strip() for hop in jump.split(",")) if jump else (),
        proxy_command=expand_tokens(command, tokens) if command and not jump else None,
        connect_timeout_s=_seconds(first.get("connecttimeout")),
        host_key_alias=alias_key,
        config_file=ssh_config,
    )


def _unless_none(value: str | None) -> str | None:
    return None if value is None or value.strip().lower() in ("none", "") else value.strip()


def _seconds(value: str | None) -> float:
    if value is not None and value.isdigit() and int(value) > 0:
        return float(value)
    return CONNECT_TIMEOUT_S


def _agent(value: str | None, tokens: Mapping[str, str]) -> str | None:
    if value is not None and value.lower() == "none":
        return None
    if value is None or value == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if value.startswith("$") and not value.startswith("${"):
        return os.environ.get(value[1:]) or None
    return expand(value, tokens)


def _known_hosts_files(value: str, tokens: Mapping[str, str]) -> tuple[str, ...]:
    """Take the file list of ssh -G apart, which prints names with spaces in them without quotes."""
    files: list[str] = []
    for word in value.split(" "):
        if files and not word.startswith(("/", "~")) and word.lower() != "none":
            files[-1] += f" {word}"
        elif word:
            files.append(word)
    return tuple(expand(name.strip('"'), tokens) for name in files if name.lower() != "none")


def _tokens(alias: str, hostname: str, user: str, port: int, key_alias: str) -> dict[str, str]:
    local = socket.gethostname()
    return {
        "%": "%",
        "h": hostname,
        "n": alias,
        "p": str(port),
        "r": user,
        "k": key_alias,
        "u": getpass.getuser(),
        "i": str(os.getuid()),
        "d": str(Path.home()),
        "l": local,
        "L": local.partition(".")[0],
    }


def expand_tokens(text: str, tokens: Mapping[str, str]) -> str:
    """Replace %h and its like; an unknown one is left as it is."""
    return _TOKEN.sub(lambda match: tokens.get(match[1], match[0]), text)


def expand(path: str, tokens: Mapping[str, str]) -> str:
    """A file name of the config with ~, ${VARIABLE} and %-tokens replaced, which ssh -G leaves in."""
    named = _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), path)
    return os.path.expanduser(expand_tokens(named, tokens))
