"""Reads the catalogue's YAML files, each once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(name: str) -> Any:
    """The content of catalog/`name`.yaml; callers must not change it."""
    import yaml  # not before it is needed: the command line starts without it

    # libyaml's loader is ten times as fast; PyYAML has it on every usual platform, but not on all.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("cockpit.catalog").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=loader)  # noqa: S506  (a safe loader either way)
