"""Every key of the config with what it takes, its default and its meaning: the table of docs/CONFIG.md. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cockpit import config_file as reader_of
from cockpit.config import ClusterConfig, Config, NodeAccess, OwnCheck, PrometheusSettings, Refresh, Rules
from cockpit.config_file import Reader
from cockpit.words import plural, span

_CLUSTER = "clusters.*"
_LOOKS = ("theme", "ascii", "redact_screenshots", "remember", "utc")  # top-level keys with a default in the code

for _read, _form in (
    (reader_of._scalar, "a word"),
    (reader_of._flag, "true or false"),
    (reader_of._duration, "30s, 5m, 2h or 1d"),
    (reader_of._file, "a file"),
    (reader_of._head, "local, user@host[:port] or an ssh alias"),
    (reader_of._web_address, "http:// or https://"),
    (reader_of._prometheus, "http:// or https://, or a block, see [PROMETHEUS.md](PROMETHEUS.md)"),
    (reader_of._role, "ARN of an IAM role"),
    (reader_of._words, "a block of words"),
    (reader_of._pattern, "a regular expression"),
    (reader_of._check_name, "lower-case letters, digits, - and _"),
    (reader_of._theme, "a theme"),
    (reader_of._keys, "a block: id to keys"),
    (reader_of._columns, "a block: pane to a list of columns"),
    (reader_of._thresholds, "a block: check to numbers"),
):
    _read.__dict__["form"] = _form

# Every key by the path of its block; the reference in docs/CONFIG.md is made of it.
SCHEMA: dict[str, dict[str, Reader]] = {
    "": {key: read for key, read in reader_of._TOP.items() if key not in ("clusters", "rules", "checks")},
    "clusters.*": reader_of._CLUSTER,
    "rules": reader_of._RULES,
    "checks": {key: read for key, read in reader_of._CHECKS.items() if key != "commands"},
    "checks.commands[]": reader_of._OWN_CHECK,
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key by its path; `default` in words."""

    path: str
    form: str
    default: str
    meaning: str


# What each key means; the second word is its default where the code has none that could be shown.
MEANINGS: dict[str, tuple[str, ...]] = {
    "default": ("the entry that opens without `--cluster`", "the only one"),
    "theme": (
        "`cockpit-dark`, `cockpit-light`, `cockpit-contrast`, `cockpit-ansi` (the terminal's own 16 colours), "
        "`cockpit-plain`, or one of your own; `auto` takes the dark one, with 16 colours the ANSI one; `NO_COLOR` "
        "always the plain one",
    ),
    "ascii": (
        "draws with ASCII characters; by itself where the terminal's encoding is not Unicode, or tmux or screen passes "
        "no Unicode on",
    ),
    "keys": ("other keys for actions, by id, see [below](#keys)", "none"),
    "columns": (
        "which columns a pane shows, from left to right, see [below](#columns); `w` shows all, `W` changes them",
        "the usual ones",
    ),
    "redact_screenshots": ("in screenshots the digits of account ids and of public IPv4 addresses become `x`",),
    "remember": (
        "begins where you left off: the pane, and the columns, sort, filter and width of each table; without it every "
        "start begins with the problems",
    ),
    "utc": ("times of day are shown in UTC, not in the zone of this machine; `:utc` switches",),
    "clusters.*.kind": ("what kind of cluster it is", "found out on the head"),
    "clusters.*.head": ("the head node; `local` when the cockpit runs on it",),
    "clusters.*.ssh_config": (
        "an ssh config; ProxyJump, ProxyCommand, IdentityFile, CertificateFile, UserKnownHostsFile work",
        "OpenSSH's own",
    ),
    "clusters.*.nodes.via": ("how compute nodes are reached",),
    "clusters.*.nodes.user": ("login on the nodes", "the ssh config's, else the head's"),
    "clusters.*.nodes.port": ("their SSH port",),
    "clusters.*.nodes.max": ("so many are watched at once",),
    "clusters.*.nodes.host_keys": (
        "`strict` takes only what known_hosts holds; `head` (with `via: head`) trusts a node of which known_hosts "
        "holds no key at all when it is first seen through the head (whose own key is always checked strictly), and "
        "holds it to that key until Slurm powers it down, gives it another address, or it leaves the cluster",
    ),
    "clusters.*.region": ("AWS is asked in it, see [AWS.md](AWS.md)", "the head's, where it tells one"),
    "clusters.*.profile": ("profile of ~/.aws/config", "boto3's own"),
    "clusters.*.endpoint_url": ("another address for all AWS calls", "AWS's own"),
    "clusters.*.stack": (
        "ParallelCluster's stack; the name of a HyperPod cluster",
        "the head's, else the entry's name",
    ),
    "clusters.*.instances": (
        "kind slurm: which EC2 instances belong to it, as filters: `{tag:Cluster: prod}`",
        "none",
    ),
    "clusters.*.schedule_role": (
        "the role that EventBridge Scheduler takes for stops and starts at a time ([PERMISSIONS.md](PERMISSIONS.md))",
        "none",
    ),
    "clusters.*.production": ("tints the cluster's name",),
    "clusters.*.read_only": (
        "every change is refused, from the command line too, unless it is armed for a while in the cockpit",
    ),
    "clusters.*.refresh.slurm": ("seconds between two polls; a poll never takes more than a tenth of the time",),
    "clusters.*.refresh.gpus": ("seconds between two readings of a node",),
    "clusters.*.refresh.aws": ("seconds between two readings of EC2 and the fleet",),
    "clusters.*.refresh.storage": ("seconds between two readings of FSx and CloudWatch",),
    "clusters.*.prometheus": (
        "a Prometheus that scrapes dcgm-exporter: GPUs of nodes not dialled; from here or from the head, with a login",
        "none",
    ),
    "rules.gpu_hot_c": ("a GPU is hot from here on, in °C",),
    "rules.gpu_idle_pct": ("a job's GPU counts as little used below this mean utilisation, in percent",),
    "rules.gpu_idle_for": ("for so long",),
    "rules.gpu_hang_for": ("a job looks hung when nearly all its GPUs have spun and moved no data for so long",),
    "rules.straggler_pct": (
        "a GPU of a job lags when its utilisation or power is below that of the others by so much, in percent",
    ),
    "rules.nccl_min_pct": ("an NCCL test falls short below this share of what is expected, in percent",),
    "checks.thresholds": ("`CHECK: {NAME: value}`, see [CHECKS.md](CHECKS.md)", "the catalogue's"),
    "checks.off": ("checks that are never shown", "none"),
    "checks.commands[].name": ("what your check is called; shown as `own.NAME`", "needed"),
    "checks.commands[].argv": ("the command, run on each node as it stands, without a shell", "needed"),
    "checks.commands[].parse": ("how its answer is read: exit status, Nagios' status, pattern found or not, a number",),
    "checks.commands[].pattern": ("for match, no_match, and the group that holds the number", "none"),
    "checks.commands[].severity": ("what bad means",),
    "checks.commands[].above": ("bad above it", "none"),
    "checks.commands[].below": ("bad below it", "none"),
    "checks.commands[].next": ("what to do then, in your words", "none"),
    "checks.commands[].timeout": ("it is ended after that",),
    "checks.commands[].for": ("whether `cockpit efa` or `cockpit check` runs it",),
}


def keys() -> Iterator[Key]:
    """Every key that the reader takes, in its order; KeyError for one without a meaning."""
    for block, readers in SCHEMA.items():
        for path, reader in _flat(block, readers):
            meaning, *default = MEANINGS[path]
            yield Key(
                path, reader.__dict__["form"], default[0] if default else _shown(_defaults()[path], path), meaning
            )


def _flat(block: str, readers: Mapping[str, Reader]) -> Iterator[tuple[str, Reader]]:
    for key, reader in readers.items():
        path = f"{block}.{key}" if block else key
        if below := reader.__dict__.get("below"):
            yield from _flat(path, below)
        else:
            yield path, reader


def _defaults() -> dict[str, Any]:
    """The defaults of the frozen config, by path."""
    cluster, config, own = ClusterConfig(""), Config({}), OwnCheck("", ())
    found: dict[str, Any] = {key: getattr(config, key) for key in _LOOKS}
    found |= {f"{_CLUSTER}.{key}": getattr(cluster, key) for key in ("head", "production", "read_only")}
    found |= _fields(f"{_CLUSTER}.nodes", NodeAccess()) | _fields(f"{_CLUSTER}.refresh", Refresh())
    found |= _fields("rules", Rules()) | _fields("checks.commands[]", own)
    return found | {"checks.commands[].for": own.kinds}


def now_words(path: str, config: Config, cluster: ClusterConfig) -> str:
    """What a key is at the moment: of that cluster where it is one of a cluster's; `not set` for none."""
    block, _, name = path.rpartition(".")
    if path.startswith("checks.commands[]"):
        return plural(len(config.checks.commands), "command")
    below = block.removeprefix(_CLUSTER).strip(".") if path.startswith(_CLUSTER) else block
    value: Any = cluster if path.startswith(_CLUSTER) else config
    for word in [*below.split("."), name] if below else [name]:
        value = getattr(value, word) if hasattr(value, word) else getattr(value, f"{word}_s", None)
    if isinstance(value, Mapping):
        return ", ".join(map(str, value)) or "not set"
    if isinstance(value, PrometheusSettings):
        return value.url
    return "not set" if value in (None, (), "") else _shown(value, path).strip("`")


def _fields(block: str, values: Any) -> dict[str, Any]:
    """A frozen block by the names that the file has for its fields: durations without the unit."""
    names = type(values).__dataclass_fields__
    return {f"{block}.{name.removesuffix('_s')}": getattr(values, name) for name in names}


def _shown(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{span(value)}`" if path.endswith(("_for", "timeout")) else f"`{value:g}`"
    return f"`{', '.join(value)}`" if isinstance(value, tuple) else f"`{value}`"


def table() -> str:
    """The table in Markdown."""
    rows = [f"| `{key.path}` | {key.form} | {key.default} | {key.meaning} |" for key in keys()]
    return "\n".join(["| key | takes | default | meaning |", "|---|---|---|---|", *rows])
