"""The user's config file: read, checked key by key, and frozen.

A mistake is one line with file, line and key (ConfigError). Nothing here opens a connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cockpit.text import printable

KINDS = ("parallelcluster", "slurm", "hyperpod")

# The themes that come with the cockpit, in themes/; the first is the usual one.
THEMES = ("cockpit-dark", "cockpit-light", "cockpit-contrast", "cockpit-ansi", "cockpit-plain")
ANSI_THEME, PLAIN_THEME = THEMES[3:]
AUTO_THEME = "auto"  # the one that suits the terminal


class ConfigError(Exception):
    """A config that cannot be used; str() is one harmless line with file, line and key."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))  # it quotes file names and values


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """How compute nodes are reached: `via` is head or direct; `max` is the most nodes dialled at once.

    `host_keys` is strict (known_hosts only) or head, which needs `via` head: a node that known_hosts holds no
    key of is trusted when it is first seen through the head, and must keep its key until Slurm powers the node
    down, gives it another address, or it leaves the cluster.
    """

    via: str = "head"
    user: str | None = None
    port: int = 22
    max: int = 256
    host_keys: str = "strict"


@dataclass(frozen=True, slots=True)
class Refresh:
    """Seconds between two polls of each source."""

    slurm: float = 5.0
    gpus: float = 2.0
    aws: float = 30.0
    storage: float = 60.0


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A Prometheus with the series of dcgm-exporter; `node_labels` may name a node, the first that is set counts.

    `select` is more of a selector in PromQL, such as `cluster="prod"`, where several clusters share it. `via` is
    direct, or head: then the head connects to it. A login is only ever named here, by file or environment variable.
    """

    url: str = ""
    node_labels: tuple[str, ...] = ("Hostname", "instance")
    select: str = ""
    via: str = "direct"
    ca_file: Path | None = None
    token_file: Path | None = None
    token_env: str = ""
    user: str = ""
    password_file: Path | None = None
    password_env: str = ""

    @property
    def has_login(self) -> bool:
        """Whether it is asked with a token or a password."""
        return bool(self.token_file or self.token_env or self.user)

    def mistake(self) -> str:
        """What cannot be meant, "" when all fits together; never quotes a secret."""
        token, password = (self.token_file, self.token_env), (self.password_file, self.password_env)
        if wrong := _wrong_url(self.url):
            return wrong
        if all(token) or all(password):
            return "a secret from a file or from the environment, not both"
        if any(token) and (self.user or any(password)):
            return "a token or a user with a password, not both"
        if bool(self.user) != any(password):
            return "`user` and one of `password_file` and `password_env` need each other"
        return "`ca_file` is only for https" if self.ca_file and self.url.startswith("http:") else ""


def _wrong_url(url: str) -> str:
    from urllib.parse import urlsplit  # only where there is one: a start need not load it

    if not url:
        return "needs `url`"
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        return "its `url` is no address"
    if parts.username is not None:
        return "no login in the address: `user` and `password_file` or `password_env` (or `token_file`)"
    return "" if parts.hostname and port != 0 else "its `url` names no host"


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One entry under `clusters:`; see docs/CONFIG.md for each key."""

    name: str
    kind: str | None = None  # None: found out on the head
    head: str = "local"
    ssh_config: Path | None = None
    nodes: NodeAccess = NodeAccess()
    region: str | None = None
    profile: str | None = None
    endpoint_url: str | None = None
    stack: str | None = None
    instances: Mapping[str, str] = field(default_factory=dict)
    schedule_role: str | None = None  # ARN of the role that EventBridge Scheduler takes for `stop --at`
    production: bool = False
    read_only: bool = False
    refresh: Refresh = Refresh()
    prometheus: PrometheusSettings | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds of problems; the defaults are the design's."""

    gpu_hot_c: float = 85.0
    gpu_idle_pct: float = 60.0
    gpu_idle_for_s: float = 300.0
    gpu_hang_for_s: float = 60.0
    straggler_pct: float = 20.0
    nccl_min_pct: float = 90.0


@dataclass(frozen=True, slots=True)
class KeySetting:
    """The keys a user wants for one action, as written; which ids and keys there are is known to the screens only."""

    keys: str
    place: str  # FILE:LINE

    def error(self, key_id: str, message: str) -> ConfigError:
        """What to raise when this cannot be done."""
        return ConfigError(f"{self.place}: keys.{key_id}: {message}")


@dataclass(frozen=True, slots=True)
class ColumnsSetting:
    """The columns a user wants for one pane, as written; which panes and columns there are is known to the screens."""

    names: tuple[str, ...]
    place: str  # FILE:LINE

    def error(self, pane: str, message: str) -> ConfigError:
        """What to raise when this cannot be done."""
        return ConfigError(f"{self.place}: columns.{pane}: {message}")


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """A check of the site's: a command on every node, and how its answer is read.

    `parse`: exit (0 is good), nagios (0 good, 1 warn, 2 fail), match or no_match (`pattern` in the output), number
    (the first group of `pattern`, or the first number, against the limits). `severity` is what bad means.
    """

    name: str
    argv: tuple[str, ...]
    parse: str = "exit"
    pattern: str = ""
    severity: str = "warn"
    above: float | None = None
    below: float | None = None
    next_step: str = ""
    timeout_s: float = 10.0
    kinds: tuple[str, ...] = ("health",)


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What a site wants otherwise than the catalogue of checks."""

    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    off: tuple[str, ...] = ()
    commands: tuple[OwnCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file. `default` is always a key of `clusters` when that is not empty."""

    clusters: Mapping[str, ClusterConfig]
    default: str | None = None
    rules: Rules = Rules()
    path: Path | None = None
    theme: str = AUTO_THEME
    ascii: bool = False
    keys: Mapping[str, KeySetting] = field(default_factory=dict)  # by id, in the file's order
    columns: Mapping[str, ColumnsSetting] = field(default_factory=dict)  # by pane
    redact_screenshots: bool = False
    remember: bool = False
    utc: bool = False
    checks: CheckSettings = CheckSettings()


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the config is looked for when no --config is given."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "cockpit" / "config.yaml"


def themes_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's own themes are looked for."""
    return config_path(environ).parent / "themes"


def theme_names(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Every theme there is by name: ours, then the user's."""
    return (*THEMES, *sorted({path.stem for path in themes_dir(environ).glob("*.yaml")} - {*THEMES, AUTO_THEME}))


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where audit, history and exports live; the caller creates it with mode 0700."""
    base = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".local/state")
    return Path(base, "cockpit", *_apart)


_apart: list[str] = []


def keep_apart(*names: str) -> None:
    """From now on all that this process writes down lies in a folder of its own there, beside that of clusters."""
    _apart[:] = names
