"""The config's new entry: as text, put into what is there already, and written so that nothing is ever lost."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from cockpit.config import ClusterConfig, Config, ConfigError, NodeAccess
from cockpit.config_file import load_config
from cockpit.export import new_stem, write_private

_HEADER = (
    "# The clusters of the cockpit; every key is explained in docs/CONFIG.md. `cockpit doctor` tests the way in.\n"
)


@dataclass(frozen=True, slots=True)
class Written:
    """The config's place, and that of the copy of what was there before (None: nothing was)."""

    path: Path
    backup: Path | None = None


def entry_of(config: ClusterConfig) -> dict[str, Any]:
    """The keys of an entry that differ from the defaults, in the order of the documentation."""
    plain: dict[str, Any] = {"kind": config.kind, "head": config.head, "region": config.region}
    plain |= {"profile": config.profile, "endpoint_url": config.endpoint_url, "stack": config.stack}
    plain["ssh_config"] = str(config.ssh_config) if config.ssh_config else None
    usual = NodeAccess()
    access = {
        key: getattr(config.nodes, key)
        for key in ("via", "user", "port", "host_keys")
        if getattr(config.nodes, key) != getattr(usual, key)
    }
    plain |= {"nodes": access or None, "production": config.production or None}
    return {key: value for key, value in plain.items() if value is not None}


def merged(old: str, name: str, entry: Mapping[str, Any], path: Path) -> str:
    """The text of the config with one cluster more; everything that was there stays as it was written.

    Raises ConfigError when the name is taken, or when the old text cannot be added to by a program.
    """
    root = _root(old, path)
    if root is None:
        return old + _HEADER + _block({"clusters": {name: dict(entry)}}, 0)
    keys = {key.value: (key, value) for key, value in root.value}
    if "clusters" not in keys:
        return f"{old.rstrip()}\n{_block({'clusters': {name: dict(entry)}}, 0)}"
    at, clusters = keys["clusters"]
    if not isinstance(clusters, yaml.MappingNode) or clusters.flow_style or not clusters.value:
        raise ConfigError(f"{path}: its `clusters:` is no block of lines that one can be added to; write it as one")
    names = [key.value for key, _ in clusters.value]
    if name in names:
        raise ConfigError(f"{path}: has a cluster {name!r} already; choose another --name, or edit it there")
    lines = old.splitlines(keepends=True)
    lines.insert(at.start_mark.line + 1, _block({name: dict(entry)}, clusters.value[0][0].start_mark.column))
    if "default" not in keys and len(names) == 1:
        lines.insert(
            root.start_mark.line, f"default: {_scalar(names[0])}\n"
        )  # it was the only one, and stays the usual
    return "".join(lines)


def _root(old: str, path: Path) -> yaml.MappingNode | None:
    try:
        root = yaml.compose(old, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: cannot be added to while it is broken: {' '.join(str(error).split())}") from error
    if root is None:
        return None
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise ConfigError(f"{path}: is no block of `key: value` lines, so nothing can be added to it")
    return root


def _block(value: Mapping[str, Any], indent: int) -> str:
    text = yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, default_flow_style=False)
    return "".join(" " * indent + line for line in text.splitlines(keepends=True))


def _scalar(word: str) -> str:
    return str(yaml.safe_dump(word, allow_unicode=True)).splitlines()[0]


def draft(config: ClusterConfig, path: Path) -> tuple[str, Config]:
    """The whole new text for `path`, and what the reader makes of it; raises ConfigError. Writes nothing there."""
    text = merged(_old_text(path), config.name, entry_of(config), path)
    with tempfile.TemporaryDirectory(prefix="cockpit-") as folder:
        probe = Path(folder) / "config.yaml"
        write_private(probe, text)
        try:
            read = load_config(probe)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(probe), str(path))) from None
    return text, replace(read, path=path)


def write(path: Path, text: str) -> Written:
    """Put the text in place in one step; what was there is copied beside it first. Raises ConfigError."""
    path = path.resolve() if path.is_symlink() else path  # a dotfile manager's link stays one
    fresh = path.parent / f".{new_stem('config')}.tmp"
    backup = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.bak")
            write_private(backup, path.read_text(encoding="utf-8"))
        write_private(fresh, text)
        os.replace(fresh, path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    return Written(path, backup)


def _old_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
