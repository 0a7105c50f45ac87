"""A look at a node without Python: the same parts as shell commands, one after the other, in the same JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

# `part NAME SECONDS COMMAND` prints one member of the answer. What is inside must be one shell command.
_HEAD = r"""
json() {
  tr -d '\000-\011\013-\037\177' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{printf "%s%s", sep, $0; sep="\\n"}'
}
part() {
  said=$(LC_ALL=C timeout -k 1 "$2" sh -c "$3" 2>&1 </dev/null | head -c 65536; exit 0)
  case $said in *"$mark"[0-9]*) rc=${said##*"$mark"}; said=${said%"$mark"*} ;; *) rc=null ;; esac
  late=false; [ "$rc" = null ] && late=true
  said=$(printf '%s' "$said" | json)
  printf '%s"%s":{"rc":%s,"late":%s,"sh":true,"s":0,"out":"%s"}' "$sep" "$1" "$rc" "$late" "$said"
  sep=,
}
mark='#rc='
sep=
host=$(uname -n | json)
printf '{"k":"look","v":1,"t":%s,"host":"%s","py":"","s":0,"parts":{' "$(date +%s)" "$host"
"""
_TAIL = "printf '}}\\n'\n"
_ACCESS = r'r=-; w=-; [ -r "$f" ] && r=r; [ -w "$f" ] && w=w; printf "%s|%s%s\n" "$f" $r $w'


def fallback_script(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """The script for these parts; what a shell cannot do is told as not asked."""
    lines = [_line(name, part) for name, part in parts.items()]
    return _HEAD + "".join(lines) + _TAIL


def _line(name: str, part: Mapping[str, Any]) -> str:
    command = _command(part)
    if command is None:
        return ""
    # The status travels in the output, since a pipe would lose it; without it the command was late.
    told = shlex.quote(f'{command}; echo "#rc=$?"')
    return f"part {shlex.quote(name)} {float(part['timeout_s']):g} {told}\n"


def _command(part: Mapping[str, Any]) -> str | None:
    kind = part["kind"]
    if kind == "run":
        return _run(part["argv"], part.get("paths", ()))
    if kind == "counters":
        return "grep -H . /sys/class/infiniband/*/ports/*/hw_counters/* /sys/class/infiniband/*/hw_counters/*"
    each = _each(part) if "globs" in part else None
    return None if each is None else f"for f in {_globs(part['globs'])}; do {each}; done; :"


def _each(part: Mapping[str, Any]) -> str | None:
    """What is done with every file $f of a part."""
    if part["kind"] == "files":
        size = int(part.get("limit", 200))
        return rf'[ -r "$f" ] && printf "%s|%s\n" "$f" "$(head -c {size} "$f" | tr "\n\t" "  ")"'
    if part["kind"] == "links":
        return r'[ -e "$f" ] && printf "%s|%s\n" "$f" "$(readlink -f "$f")"'
    if part["kind"] == "list":
        return f'[ -e "$f" ] && {{ {_ACCESS}; }}'
    if part["kind"] == "grep":
        return rf'[ -r "$f" ] && grep -oE {shlex.quote(_extended(part["pattern"]))} "$f" | sed "s@^@$f|@"'
    return None


def _run(argv: Sequence[str], paths: Sequence[str]) -> str:
    if not paths:
        return shlex.join(argv)
    find = f'p={shlex.quote(argv[0])}; for f in {shlex.join(paths)}; do [ -x "$f" ] && {{ p=$f; break; }}; done'
    return f'{find}; "$p" {shlex.join(argv[1:])}'


def _globs(patterns: Sequence[str]) -> str:
    """The patterns for a shell, which may expand * ? and [ ] and nothing else."""
    return " ".join(re.sub(r"[^A-Za-z0-9_./*?\[\]+:@-]", lambda found: f"\\{found[0]}", word) for word in patterns)


def _extended(pattern: str) -> str:
    """A pattern of the catalogue for grep -E, which knows no groups that do not count and no \\s in brackets."""
    return pattern.replace("(?:", "(").replace(r"\s", "[[:space:]]").replace(r"\b", "")
