"""What the details of a key of the config say: what it does, what it is, how to change it. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import Cluster
from cockpit.config import config_path
from cockpit.config_reference import Key, keys, now_words
from screens.lines import Line, facts, section

_NEEDED = "VALUE"


def setting_lines(cluster: Cluster, path: str) -> list[Line]:
    """Meaning, what it takes, what it is now, and the lines to write."""
    key = next((key for key in keys() if key.path == path), None)
    if key is None:
        return [["the config has no such key"]]
    now = now_words(path, cluster.settings, cluster.config)
    file = cluster.settings.path or config_path()
    return [
        [(path.replace("clusters.*", f"clusters.{cluster.config.name}"), "bright")],
        [],
        *facts([("what", _plain(key.meaning)), ("takes", key.form), ("usually", _plain(key.default)), ("now", now)]),
        [],
        section("to change it"),
        [f"  in {file}, then start the cockpit again; a mistake there is told with its line"],
        [],
        *_snippet(key, cluster.config.name, now),
    ]


def _snippet(key: Key, cluster: str, now: str) -> list[Line]:
    """The lines of YAML, with what it is now or usually is as the value."""
    words = (
        ["clusters", cluster, *key.path.split(".")[2:]] if key.path.startswith("clusters.*") else key.path.split(".")
    )
    value = next((one for one in (now, _plain(key.default)) if one != "not set" and " " not in one), _NEEDED)
    lines: list[Line] = [
        [(f"    {'  ' * depth}{word.removesuffix('[]')}:", "accent")] for depth, word in enumerate(words)
    ]
    if any(word.endswith("[]") for word in words):
        lines[-1] = [(f"    {'  ' * (len(words) - 2)}- {words[-1]}: {_NEEDED}", "accent")]
    else:
        lines[-1] = [*lines[-1], f" {value}"]
    return lines


def _plain(markdown: str) -> str:
    return markdown.replace("`", "")
