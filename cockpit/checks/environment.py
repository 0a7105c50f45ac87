"""Limits and settings around EFA: locked memory, huge pages, ptrace, what /etc and job scripts set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.catalog.checks import setting_rules
from cockpit.catalog.nccl_env import env_remarks
from cockpit.checks.efa_devices import result
from cockpit.checks.facts import Facts, unanswered
from cockpit.checks.models import Result, Verdict
from cockpit.formats.nccl_env import shown_setting
from cockpit.text import printable
from cockpit.words import mib, plural

_ASSIGNED = re.compile(r"((?:NCCL|OFI_NCCL|FI|RDMAV)_[A-Z0-9_]+) *=(.*)")


def memlock(facts: Facts) -> Result:
    """The limit inside a job where one runs, else slurmd's, which its steps start from."""
    check, parts = "limits.memlock", ("limits", "login_limit")
    rows = [row for row in facts.part("limits").rows if len(row) == 4]
    inside = [(f"{row[0]} {row[1]} of job {row[2]}", row[3]) for row in rows if row[2]]
    daemon = [(f"{row[0]} {row[1]}", row[3]) for row in rows if not row[2]]
    counted = inside or daemon
    login = facts.part("login_limit").first
    where = "a job's process" if inside else "slurmd"
    if not counted:
        counted = [("this login", _bytes_of_login(login))] if login else []
        where = "this login (no slurmd here)"
    lines = [f"{who}: {_shown(limit)}" for who, limit in (*inside, *daemon)]
    lines += [f"this login: {_shown(_bytes_of_login(login))}"] if login else []
    known = [kib for _, limit in counted if (kib := _kib(limit)) is not None]
    if not known:
        return result(facts, check, Verdict.UNKNOWN, "no limit could be read", *lines, parts=parts)
    least = min(known)
    says = f"{_size(least)} for {where}"
    # What a login may lock says little of jobs, so it is never more than a hint.
    weak = where.startswith("this")
    if least <= facts.limit(check, "fail_kib"):
        return result(facts, check, Verdict.WARN if weak else Verdict.FAIL, says, *lines, parts=parts)
    if least < facts.limit(check, "warn_below_kib"):
        return result(facts, check, Verdict.UNKNOWN if weak else Verdict.WARN, says, *lines, parts=parts)
    return result(facts, check, Verdict.PASS, says, *lines[:8], parts=parts)


def _bytes_of_login(word: str) -> str:
    """`ulimit -l` counts in KiB, /proc in bytes."""
    return str(int(word) * 1024) if word.isdecimal() and len(word) < 15 else word


def _kib(limit: str) -> float | None:
    if limit == "unlimited":
        return float("inf")
    return int(limit) / 1024 if limit.isdecimal() and len(limit) < 20 else None


def _size(kib: float) -> str:
    if kib == float("inf"):
        return "unlimited"
    return mib(kib / 1024) if kib >= 1024 else f"{kib:.0f} KiB"


def _shown(limit: str) -> str:
    kib = _kib(limit)
    return printable(limit) if kib is None else _size(kib)


def hugepages(facts: Facts) -> Result:
    """None at all is worth a word."""
    check = "efa.hugepages"
    pairs = (row[1].partition(":") for row in facts.part("memory").rows if len(row) == 2)
    found = {name: value for name, _, value in pairs}
    total = found.get("HugePages_Total", "").strip()
    if not total.isdecimal():
        why = unanswered(facts.part("memory")) or "not told"
        return result(facts, check, Verdict.UNKNOWN, why, parts=("memory",))
    free = found.get("HugePages_Free", "").strip()
    says = f"{total} pages, {free or '?'} free"
    bad = int(total[:12]) < facts.limit(check, "warn_below")
    says = "none are reserved" if bad and total == "0" else says
    return result(facts, check, Verdict.WARN if bad else Verdict.PASS, says, parts=("memory",))


def ptrace(facts: Facts) -> Result:
    """Only a hint: libfabric then takes another way inside the node."""
    check, word = "efa.ptrace", facts.file("ptrace", "/proc/sys/kernel/yama/ptrace_scope")
    if not word:
        return result(facts, check, Verdict.NA, "the kernel has no such protection", parts=("ptrace",))
    if word == "0":
        return result(facts, check, Verdict.PASS, "off", parts=("ptrace",))
    says = f"ptrace_scope {word}: libfabric leaves its shared memory unused"
    # Ubuntu's default, and without effect on NCCL, so no alarm: the line stands there for who compares numbers.
    return result(facts, check, Verdict.PASS, says, parts=("ptrace",))


def settings(facts: Facts) -> Result:
    """What breaks EFA, what harms, and how many have no effect."""
    check, part = "efa.settings", facts.part("settings")
    if not part.done:
        return result(facts, check, Verdict.UNKNOWN, unanswered(part), parts=("settings",))
    verdict, bad, lines = Verdict.PASS, [], []
    useless: set[str] = set()
    for where, name, value in _assignments(facts):
        judged, says = _judge(name, value, facts)
        if says:
            lines.append(f"{where}: {name}={shown_setting(name, value)} - {says}")
        if judged in (Verdict.FAIL, Verdict.WARN):
            verdict = min(verdict, judged, key=lambda one: one.rank)
            bad.append(f"{name}={shown_setting(name, value)}")
        elif says:
            useless.add(name)
    if bad:
        says = ", ".join(dict.fromkeys(bad[:4])) + (f" and {len(bad) - 4} more" if len(bad) > 4 else "")
    else:
        says = f"{plural(len(useless), 'setting')} without effect" if useless else "nothing that breaks EFA"
    return result(facts, check, verdict, says, *lines[:40], parts=("settings",))


def _assignments(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """(where, name, value) of files and of job scripts."""
    told = [(row[0], row[1]) for row in facts.part("settings").rows if len(row) == 2]
    for where, line in (*told, *facts.known.job_settings):
        found = _ASSIGNED.search(line)
        if found:
            value = found[2].strip().split(" #")[0].strip().strip("\"'").rstrip("\"'")
            yield printable(where), found[1], value


def _judge(name: str, value: str, facts: Facts) -> tuple[Verdict, str]:
    if name == "NCCL_SOCKET_IFNAME":
        return _interface(value, facts)
    for rule in setting_rules():
        if re.fullmatch(rule["name"], name) and re.search(rule["value"], value):
            return Verdict(rule["verdict"]), rule["says"]
    remark = env_remarks([name])
    return Verdict.PASS, remark[0].partition(": ")[2] if remark else ""


def _interface(value: str, facts: Facts) -> tuple[Verdict, str]:
    """A name that no interface begins with leaves NCCL without a socket to start over."""
    there = [row[0].rpartition("/")[2] for row in facts.part("interfaces").rows]
    if not there or "$" in value or value.startswith("^"):
        return Verdict.PASS, ""
    exact = value.startswith("=")
    wanted = [word.strip() for word in value.lstrip("=").split(",") if word.strip()]
    fits = any(name == word if exact else name.startswith(word) for word in wanted for name in there)
    if fits or not wanted:
        return Verdict.PASS, ""
    return Verdict.FAIL, f"no such interface here ({', '.join(there[:6])}): NCCL finds no socket interface"
