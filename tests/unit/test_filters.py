"""The filter language."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from screens.filters import FilterError, Term, compile_filter, parse_filter

JOBS = [
    {
        "name": "llama-70b",
        "user": "alice",
        "state": "running",
        "gres": "gpu:h100:8",
        "note": "it's big, really",
    },
    {"name": "eval", "user": "Bob", "state": "pending", "gres": "", "note": "Straße 12:30"},
    {"name": "big job", "user": "bob", "state": "failed", "gres": "gpu:a100:4", "note": ""},
]
Job = dict[str, str]


def getter(name: str) -> Callable[[Job], str]:
    return lambda job: job[name]


FIELDS = {name: getter(name) for name in JOBS[0]}


def found(text: str) -> list[str]:
    return [job["name"] for job in JOBS if compile_filter(text, FIELDS)(job)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["llama-70b", "eval", "big job"]),
        ("   ", ["llama-70b", "eval", "big job"]),
        ("BOB", ["eval", "big job"]),
        ("bob pend", ["eval"]),
        ("bob alice", []),
        ("user:bob", ["eval", "big job"]),
        ("USER:bob", ["eval", "big job"]),
        ("state:run,fail", ["llama-70b", "big job"]),
        ("!bob", ["llama-70b"]),
        ("!user:alice", ["eval", "big job"]),
        ("!state:run,fail", ["eval"]),
        ('"big job"', ["big job"]),
        ("big job", ["big job"]),
        ('name:"big job"', ["big job"]),
        ('name:"big job",eval', ["eval", "big job"]),
        ('"gpu:h100"', ["llama-70b"]),
        ("gres:gpu:a100", ["big job"]),
        ("12:30", ["eval"]),
        ("it's", ["llama-70b"]),
        ("'big job'", ["big job"]),
        ('note:"big, really"', ["llama-70b"]),
        ("STRASSE", ["eval"]),
        ("[/] $(x)", []),
    ],
)
def test_meaning(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize("text", ["state:", "!state:", "!", '"', "state:,", 'state:"', "!state:,"])
def test_half_typed_terms_hide_nothing(text: str) -> None:
    assert len(found(text)) == len(JOBS)


def test_half_typed_field_is_no_term() -> None:
    assert parse_filter('state: ! "" !user:', FIELDS) == ()


def test_word_does_not_match_across_fields() -> None:
    assert found('"llama-70b alice"') == []
    assert found("70balice") == []


def test_unknown_field_names_the_known_ones() -> None:
    with pytest.raises(FilterError) as error:
        compile_filter("stat:run", FIELDS)
    assert 'no field "stat"' in str(error.value)
    assert "name, user, state" in str(error.value)


def test_parse_keeps_alternatives() -> None:
    assert parse_filter("!state:a,b x", FIELDS) == (Term(("a", "b"), "state", True), Term(("x",)))


def test_error_is_printable() -> None:
    with pytest.raises(FilterError) as error:
        compile_filter("a\x1b]52;c;x\x07b:1 zz:\x1b[31m", FIELDS)
    assert str(error.value).isprintable()


@given(st.text())
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    told = ""
    try:
        keep = compile_filter(text, FIELDS)
    except FilterError as error:
        told = str(error)
    else:
        assert {keep(job) for job in JOBS} <= {True, False}
    assert not set(told) & {chr(code) for code in (*range(32), *range(127, 160))}
