"""Reading config.yaml: YAML with line numbers in, frozen config out, one-line errors for every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cockpit.addresses import take_apart
from cockpit.config import (
    AUTO_THEME,
    KINDS,
    CheckSettings,
    ClusterConfig,
    ColumnsSetting,
    Config,
    ConfigError,
    KeySetting,
    NodeAccess,
    OwnCheck,
    PrometheusSettings,
    Refresh,
    Rules,
    theme_names,
)
from cockpit.words import nearest

Reader = Callable[["_Place", yaml.Node], Any]
_ENDLESS = 1e15  # no limit that anybody meets
_NULL = "tag:yaml.org,2002:null"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}"
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _told(read: Reader, form: str, below: Mapping[str, Reader] | None = None) -> Reader:
    """Note at a reader what it takes, and the keys below it, for docs/CONFIG.md."""
    read.__dict__.update(form=form, below=below or {})
    return read


class _Place:
    """Where in the file we are, for the one-line error."""

    def __init__(self, path: Path, key: str = "") -> None:
        self.path, self.key = path, key

    def below(self, key: str) -> _Place:
        return _Place(self.path, f"{self.key}.{key}" if self.key else key)

    def error(self, node: yaml.Node, message: str) -> ConfigError:
        where = f"{self.key}: " if self.key else ""
        return ConfigError(f"{self.path}:{node.start_mark.line + 1}: {where}{message}")


def load_config(path: Path) -> Config:
    """Read and check the file; raises ConfigError (also when it cannot be opened)."""
    place = _Place(path)
    root = _compose(path)
    if root is None:
        raise ConfigError(f"{path}: is empty; it needs `clusters:` with at least one entry")
    values = _section(_TOP)(place, root)
    at = {key: value for key, (_, value) in _pairs(place, root).items()}
    clusters: Mapping[str, ClusterConfig] = values.get("clusters") or {}
    if not clusters:
        raise place.below("clusters").error(at.get("clusters", root), "needs at least one entry")
    default = values.get("default") or (next(iter(clusters)) if len(clusters) == 1 else None)
    if default is not None and default not in clusters:
        raise place.below("default").error(at["default"], f"no cluster named {default!r} under `clusters`")
    shown = {key: values[key] for key in _SHOWN if key in values}
    return Config(clusters, default, Rules(**values.get("rules", {})), path, **shown)


def read_block(path: Path, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Read another YAML file of the user's, one block of these keys; raises ConfigError like load_config."""
    root = _compose(path)
    return {} if root is None else dict(_section(readers)(_Place(path), root))


def _compose(path: Path) -> yaml.Node | None:
    """The file as YAML nodes, which know their lines."""
    try:
        root: yaml.Node | None = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError:  # PyYAML calls itself for every level
        raise ConfigError(f"{path}: its values are nested too deeply") from None
    return root


def _pairs(place: _Place, node: yaml.Node) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Each key of a block with the nodes of the key itself and of its value."""
    if not isinstance(node, yaml.MappingNode):
        raise place.error(node, "must be a block of `key: value` lines")
    pairs: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _NULL:
            raise place.error(key, "a key must be one word")
        if key.value in pairs:
            raise place.below(key.value).error(key, "stands twice")
        pairs[key.value] = key, value
    return pairs


def _section(readers: Mapping[str, Reader]) -> Reader:
    def read(place: _Place, node: yaml.Node) -> dict[str, Any]:
        values = {}
        for key, (at, value) in _pairs(place, node).items():
            if key not in readers:
                raise place.below(key).error(at, f"is not a known key{nearest(key, readers)}")
            values[key] = readers[key](place.below(key), value)
        return values

    return _told(read, "a block", readers)


def _scalar(place: _Place, node: yaml.Node) -> str:
    # Unquoted, `null` and `~` mean "nothing" in YAML; as texts they would be the names of hosts and regions.
    if not isinstance(node, yaml.ScalarNode) or node.value == "" or node.tag == _NULL:
        raise place.error(node, "needs one value")
    return str(node.value)


def _flag(place: _Place, node: yaml.Node) -> bool:
    word = _scalar(place, node).lower()
    if word not in ("true", "false", "yes", "no", "on", "off"):
        raise place.error(node, f"must be true or false, not {word!r}")
    return word in ("true", "yes", "on")


def _number(low: float, high: float) -> Reader:
    def read(place: _Place, node: yaml.Node) -> float:
        try:
            value = float(_scalar(place, node))
        except ValueError:
            raise place.error(node, f"must be a number, not {_scalar(place, node)!r}") from None
        if not low <= value <= high:
            raise place.error(node, f"must lie between {low:g} and {high:g}, not {value:g}")
        return value

    return _told(read, f"a number, {low:g} to {high:g}" if high < _ENDLESS else "a number")


def _whole(low: int, high: int) -> Reader:
    number = _number(low, high)

    def read(place: _Place, node: yaml.Node) -> int:
        value: float = number(place, node)
        if value != int(value):
            raise place.error(node, f"must be a whole number, not {value:g}")
        return int(value)

    return _told(read, f"a whole number, {low} to {high}")


def _duration(place: _Place, node: yaml.Node) -> float:
    match = _DURATION.fullmatch(_scalar(place, node).strip())
    if match is None:
        raise place.error(node, "must be a duration such as 30s, 5m or 2h")
    return float(match[1]) * _SECONDS[match[2]]


def _one_of(*choices: str) -> Reader:
    def read(place: _Place, node: yaml.Node) -> str:
        word = _scalar(place, node)
        if word not in choices:
            raise place.error(node, f"must be one of {', '.join(choices)}, not {word!r}")
        return word

    return _told(read, ", ".join(choices))


def _file(place: _Place, node: yaml.Node) -> Path:
    return Path(_scalar(place, node)).expanduser()


def _head(place: _Place, node: yaml.Node) -> str:
    head = _scalar(place, node).strip()
    try:
        take_apart(head)
    except ValueError as error:
        raise place.error(node, f"must be `local`, user@host or an ssh_config alias: {head!r} {error}") from None
    return head


def _matching(pattern: str, must_be: str) -> Reader:
    def read(place: _Place, node: yaml.Node) -> str:
        word = _scalar(place, node)
        if not re.fullmatch(pattern, word):
            raise place.error(node, f"must be {must_be}, not {word!r}")
        return word

    return read


_web_address = _matching(r"https?://.*", "an http:// or https:// address")
_role = _matching(_ROLE, "the ARN of an IAM role, arn:aws:iam::123456789012:role/NAME")
_check_name = _matching(r"[a-z0-9][a-z0-9_-]{0,40}", "lower-case letters, digits, - and _")


def _prometheus(place: _Place, node: yaml.Node) -> PrometheusSettings:
    short = isinstance(node, yaml.ScalarNode)
    settings = PrometheusSettings(
        **({"url": _web_address(place, node)} if short else _section(_PROMETHEUS)(place, node))
    )
    if mistake := settings.mistake():
        raise place.error(node, mistake)
    return settings


def _words(place: _Place, node: yaml.Node) -> dict[str, str]:
    return {key: _scalar(place.below(key), value) for key, (_, value) in _pairs(place, node).items()}


def _clusters(place: _Place, node: yaml.Node) -> dict[str, ClusterConfig]:
    return {name: _cluster(place.below(name), name, value) for name, (_, value) in _pairs(place, node).items()}


def _cluster(place: _Place, name: str, node: yaml.Node) -> ClusterConfig:
    values = _section(_CLUSTER)(place, node)
    if "nodes" in values:
        values["nodes"] = access = NodeAccess(**values["nodes"])
        if access.via != "head" and access.host_keys == "head":
            below = place.below("nodes")
            at = _pairs(below, _pairs(place, node)["nodes"][1])["host_keys"][0]
            raise below.below("host_keys").error(at, "`head` needs `via: head`, which vouches for the node")
    values["refresh"] = Refresh(**values.get("refresh", {}))
    return ClusterConfig(name=name, **values)


_CLUSTER: dict[str, Reader] = {
    "kind": _one_of(*KINDS),
    "head": _head,
    "ssh_config": _file,
    "nodes": _section(
        {
            "via": _one_of("head", "direct"),
            "user": _scalar,
            "port": _whole(1, 65535),
            "max": _whole(1, 100_000),
            "host_keys": _one_of("strict", "head"),
        }
    ),
    **dict.fromkeys(("region", "profile"), _scalar),
    "endpoint_url": _web_address,
    "stack": _scalar,
    "instances": _words,
    "schedule_role": _role,
    **dict.fromkeys(("production", "read_only"), _flag),
    "refresh": _section(
        {**dict.fromkeys(("slurm", "gpus"), _number(1, 3600)), **dict.fromkeys(("aws", "storage"), _number(5, 86400))}
    ),
    "prometheus": _prometheus,
}

_RULES: dict[str, Reader] = {
    "gpu_hot_c": _number(30, 120),
    "gpu_idle_pct": _number(0, 100),
    **dict.fromkeys(("gpu_idle_for", "gpu_hang_for"), _duration),
    **dict.fromkeys(("straggler_pct", "nccl_min_pct"), _number(1, 100)),
}


def _rules(place: _Place, node: yaml.Node) -> dict[str, float]:
    return {f"{key}_s" if key.endswith("_for") else key: value for key, value in _section(_RULES)(place, node).items()}


def _theme(place: _Place, node: yaml.Node) -> str:
    name = _scalar(place, node)
    if name not in (known := (AUTO_THEME, *theme_names())):
        raise place.error(node, f"no theme named {name!r}; known: {', '.join(known)}")
    return name


def _list_of(read: Reader) -> Reader:
    def items(place: _Place, node: yaml.Node) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise place.error(node, "must be a list: one `- ` line each, or [a, b]")
        return tuple(read(place, item) for item in node.value)

    return _told(items, f"a list: {read.__dict__.get('form', 'words')}")


def _placed(read: Reader, setting: Callable[[Any, str], Any]) -> Reader:
    def settings(place: _Place, node: yaml.Node) -> dict[str, Any]:
        return {
            name: setting(read(place.below(name), value), f"{place.path}:{at.start_mark.line + 1}")
            for name, (at, value) in _pairs(place, node).items()
        }

    return settings


_keys, _columns = _placed(_scalar, KeySetting), _placed(_list_of(_scalar), ColumnsSetting)  # checked by the screens


def _pattern(place: _Place, node: yaml.Node) -> str:
    text = _scalar(place, node)
    try:
        re.compile(text)
    except re.error as error:
        raise place.error(node, f"is no regular expression: {error}") from None
    return text


def _check_id(place: _Place, node: yaml.Node) -> str:
    return _known_check(place, node, _scalar(place, node))


def _known_check(place: _Place, node: yaml.Node, name: str) -> str:
    from cockpit.catalog.checks import known_checks  # only when it is used: the catalogue costs 20 ms

    if name not in known_checks() and not name.startswith("own."):
        known = dict.fromkeys(known_checks())
        raise place.error(node, f"no check named {name!r}{nearest(name, known)}")
    return name


def _thresholds(place: _Place, node: yaml.Node) -> dict[str, dict[str, float]]:
    from cockpit.catalog.checks import check_fact

    found: dict[str, dict[str, float]] = {}
    for name, (at, value) in _pairs(place, node).items():
        below = place.below(name)
        readers = {key: _number(0, 1e12) for key in check_fact(_known_check(below, at, name)).thresholds}
        if not readers:
            raise below.error(at, "has no thresholds")
        found[name] = _section(readers)(below, value)
    return found


def _own_check(place: _Place, node: yaml.Node) -> OwnCheck:
    values = _section(_OWN_CHECK)(place, node)
    for key in ("name", "argv"):
        if not values.get(key):
            raise place.error(node, f"needs `{key}`")
    parse = values.get("parse", "exit")
    if parse in ("match", "no_match") and "pattern" not in values:
        raise place.error(node, f"`parse: {parse}` needs a `pattern`")
    if parse == "number" and "above" not in values and "below" not in values:
        raise place.error(node, "`parse: number` needs `above` or `below`")
    renamed = {"next": "next_step", "timeout": "timeout_s", "for": "kinds"}
    return OwnCheck(**{renamed.get(key, key): value for key, value in values.items()})


def _checks(place: _Place, node: yaml.Node) -> CheckSettings:
    settings = CheckSettings(**_section(_CHECKS)(place, node))
    names = [check.name for check in settings.commands]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise place.below("commands").error(node, f"{twice!r} stands twice")
    return settings


_PROMETHEUS: dict[str, Reader] = {
    "url": _web_address,
    "node_labels": _list_of(_scalar),
    "via": _one_of("direct", "head"),
    **dict.fromkeys(("select", "user", "token_env", "password_env"), _scalar),
    **dict.fromkeys(("ca_file", "token_file", "password_file"), _file),
}

_CHECKS = {"thresholds": _thresholds, "off": _list_of(_check_id), "commands": _list_of(_own_check)}

_OWN_CHECK: dict[str, Reader] = {
    "name": _check_name,
    "argv": _list_of(_scalar),
    "parse": _one_of("exit", "nagios", "match", "no_match", "number"),
    "pattern": _pattern,
    "severity": _one_of("warn", "fail"),
    **dict.fromkeys(("above", "below"), _number(-_ENDLESS, _ENDLESS)),
    "next": _scalar,
    "timeout": _duration,
    "for": _list_of(_one_of("efa", "health")),
}

_TOP: dict[str, Reader] = {
    "default": _scalar, "clusters": _clusters, "rules": _rules, "theme": _theme, "ascii": _flag, "keys": _keys,
    "columns": _columns, "redact_screenshots": _flag, "remember": _flag, "utc": _flag, "checks": _checks,
}  # fmt: skip

_SHOWN = tuple(key for key in _TOP if key not in ("default", "clusters", "rules"))  # fields of Config as they are read

Place = _Place  # what other files of the user's are read with, such as themes
scalar, section, one_of = _scalar, _section, _one_of
