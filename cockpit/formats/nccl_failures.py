"""Failures in the output of nccl-tests: its own lines, the launcher's, and the chain of `Test failure` lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.catalog.nccl_errors import error_fact, exit_code_fact, failing_line
from cockpit.nccl.models import NcclError
from cockpit.text import printable

MAX_ERRORS = 50
_MAX_TEXT = 300
_MAX_LINE, _MAX_LAUNCHER_LINE = 1000, 400  # expressions below are quadratic in the worst case

_CALL = re.compile(r"\s*(?:([^\s':]{1,255}): )?Test (NCCL|CUDA) failure (\S{1,80}:\d{1,7}) '(.*?)'?\s*$")
_TIMEOUT = re.compile(r"\s*(?:([^\s':]{1,255}): )?Test timeout \((\d{1,9})s\)(?: (\S{1,80}:\d{1,7}))?")
_CHAIN = re.compile(r"\s*\.\. ([^\s:]{1,255})(?: pid (\d{1,9}))?: Test failure (\S{1,80}:\d{1,7})")
_EXIT = re.compile(r"[Ee]xit(?:ed with exit)? (?:code|status)[: ]+(\d{1,3})\b")
_LAST_ERROR = re.compile(r"#\s*error: (.+)")
_DATA = "the check of the results failed"


class FailureReader:
    """Feed it lines that are neither rows nor NCCL's log; `errors` gives what they mean together."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], NcclError] = {}
        self._chain: dict[str, NcclError] = {}
        self._last = ""
        self.exit_code: int | None = None

    def feed(self, text: str, task: str = "") -> bool:
        """True when the line tells a failure. Only its first 1,000 characters are looked at."""
        text = text[:_MAX_LINE]
        if found := _CALL.match(text):
            kind = "cuda" if found[2] == "CUDA" else "nccl"
            self._add(NcclError(kind, _text(found[4]), printable(found[1] or ""), found[3], task))
        elif found := _TIMEOUT.match(text):
            words = f"no result within {found[2]} s (-T)"
            self._add(NcclError("timeout", words, printable(found[1] or ""), found[3] or "", task))
        elif found := _CHAIN.match(text):
            if len(self._chain) < MAX_ERRORS:
                self._chain.setdefault(found[1], NcclError("data", _DATA, printable(found[1]), found[3], task))
        elif found := _LAST_ERROR.match(text):
            self._last = _text(found[1])
        else:
            return self._launcher(text, task)
        return True

    def _launcher(self, text: str, task: str) -> bool:
        if found := _EXIT.search(text):
            code = int(found[1])
            self.exit_code = max(code, self.exit_code or 0)
        fact = failing_line(text[:_MAX_LAUNCHER_LINE])
        if fact is None:
            return found is not None
        self._add(NcclError(fact.kind, _text(text), task=task, cause=fact.means, next_step=fact.next_step))
        return True

    def _add(self, error: NcclError) -> None:
        if len(self._found) < MAX_ERRORS:
            self._found.setdefault((error.kind, error.text, error.host), error)

    def errors(self, warnings: Sequence[str] = ()) -> tuple[NcclError, ...]:
        """Every failure once, each with its cause where the catalogue knows it; `warnings` are NCCL WARN lines."""
        found = list(self._found.values()) or list(self._chain.values())
        if not found and self._last:
            found = [NcclError("nccl", self._last)]
        if not found and self.exit_code and (fact := exit_code_fact(self.exit_code)):
            found = [NcclError(fact.kind, f"exit code {self.exit_code}: {fact.means}")]
        return tuple(_explained(error, warnings) for error in found)


def _explained(error: NcclError, warnings: Sequence[str]) -> NcclError:
    """With cause and next step; a WARN line tells more than the text that refers to it."""
    if error.cause:
        return error
    facts = (error_fact(text) for text in (*warnings, error.text))
    fact = next((fact for fact in facts if fact is not None), None)
    if fact is None or error.kind == "data":
        return error
    return NcclError(error.kind, error.text, error.host, error.where, error.task, fact.means, fact.next_step)


def _text(text: str) -> str:
    """NCCL's text without the empty last error behind the slash."""
    return printable(text[:_MAX_TEXT].strip().removesuffix("/").rstrip())
