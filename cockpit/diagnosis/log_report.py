"""What one log tells, as JSON and as lines for a terminal."""

from __future__ import annotations

from typing import Any

from cockpit.diagnosis.log_cause import Cause, Explanation, Victim
from cockpit.diagnosis.naming import ranks_word
from cockpit.formats.log_models import Finding
from cockpit.words import plural, size

SCHEMA = 1
_SHOWN = 12


def explanation_json(explained: Explanation, name: str) -> dict[str, Any]:
    """One object; `cause` is null when the log tells of no trouble. Lines count from 1."""
    digest = explained.digest
    return {
        "schema": SCHEMA,
        "file": name,
        "size_bytes": digest.size_bytes,
        "lines": digest.lines,
        "sentence": explained.sentence,
        "cause": None if explained.cause is None else _cause(explained.cause),
        "findings": [_finding(each) for each in digest.findings],
        "victims": [_victim(each) for each in explained.victims],
        "next_steps": list(explained.next_steps),
        "nccl_version": digest.nccl_version or None,
        "last_line": {"text": digest.last_text, "at": digest.last_at or None} if digest.last_text else None,
        "kinds_left_out": digest.left_out,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "class": cause.class_,
        "severity": cause.severity,
        "title": cause.title,
        "sentence": cause.sentence,
        "line": cause.line,
        "text": cause.text,
        "at": cause.at or None,
        "ranks": list(cause.ranks),
        "nodes": list(cause.nodes),
        "meaning": cause.meaning,
        "next_step": cause.next_step,
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "id": found.sign.id,
        "class": found.sign.class_,
        "severity": found.sign.severity,
        "effect": found.sign.effect,
        "title": found.sign.title,
        "line": found.line,
        "last_line": found.last_line,
        "count": found.count,
        "text": found.text,
        "exception": found.name or None,
        "at": found.at or None,
        "ranks": list(found.ranks),
        "nodes": list(found.nodes),
        "facts": dict(found.sign.facts),
    }


def _victim(victim: Victim) -> dict[str, Any]:
    return {"id": victim.id, "sentence": victim.sentence, "line": victim.line or None, "ranks": list(victim.ranks)}


def explanation_lines(explained: Explanation, name: str) -> list[str]:
    """For a person: the cause, then what follows from it, then everything found."""
    digest, cause = explained.digest, explained.cause
    lines = [f"{name}: {plural(digest.lines, 'line')}, {size(digest.size_bytes)}", ""]
    if cause is None:
        return [*lines, explained.sentence, *_last(explained)]
    lines += [
        f"Cause    {cause.sentence}",
        f"         line {cause.line}{f', {cause.at}' if cause.at else ''}: {cause.text}",
        f"Means    {cause.meaning}",
    ]
    lines += [f"{'' if number else 'Next':<8} {step}" for number, step in enumerate(explained.next_steps)]
    if explained.victims:
        lines += ["", "Only follows from it, or from what it stands for:"]
        lines += [
            f"  {victim.sentence}{f' · line {victim.line}' if victim.line else ''}" for victim in explained.victims
        ]
    lines += ["", "All that was found:"]
    lines += [_row(found) for found in digest.findings[:_SHOWN]]
    if len(digest.findings) > _SHOWN:
        lines.append(f"  and {plural(len(digest.findings) - _SHOWN, 'kind')} more: --json lists all")
    return [*lines, *_last(explained)]


def _row(found: Finding) -> str:
    who = f" · {ranks_word(found.ranks)}" if found.ranks else ""
    times = f" · {found.count} times" if found.count > 1 else ""
    return f"  line {found.line:<8} {found.sign.class_:<9} {found.sign.title}{who}{times}"


def _last(explained: Explanation) -> list[str]:
    text = explained.digest.last_text
    return ["", f"Last line: {text}"] if text else []
