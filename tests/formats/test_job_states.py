import pytest

from cockpit.formats.job_states import HOLDING, STARTED, compact_state, job_state, order


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("R", "R"),
        ("OOM", "OOM"),
        ("RUNNING", "R"),
        ("OUT_OF_MEMORY", "OOM"),
        ("CANCELLED by 1000", "CA"),
        ("EXPEDITING", "EXPEDITING"),
        ("", ""),
    ],
)
def test_both_spellings_give_the_code(text: str, code: str) -> None:
    assert compact_state(text) == code


def test_a_state_in_words() -> None:
    assert (job_state("PD").word, job_state("PENDING").kind) == ("pending", "waiting")
    assert job_state("CF").kind == "active"
    assert job_state("NF").kind == "bad"


def test_an_unknown_state_is_named_as_it_is() -> None:
    found = job_state("EXPEDITING")
    assert (found.kind, found.word) == ("unknown", "expediting")
    assert "EXPEDITING" in found.meaning


@pytest.mark.parametrize(
    "code",
    "PD R CF CG S ST SI SO RS RQ RH RF RD SE CD CA F TO NF PR BF DL OOM RV".split(),  # noqa: SIM905
)
def test_every_code_of_slurms_manual_is_explained(code: str) -> None:
    found = job_state(code)
    assert found.kind != "unknown"
    assert found.meaning.endswith(".")


CODES = "PD R CF CG S ST SI SO RS RQ RH RF RD SE CD CA F TO NF PR BF DL OOM RV".split()  # noqa: SIM905


def test_the_states_that_hold_nodes_are_the_active_ones() -> None:
    assert {code for code in CODES if job_state(code).kind == "active"} == HOLDING


def test_a_configuring_job_holds_nodes_but_has_not_started() -> None:
    assert {"CF"} == HOLDING - STARTED
    assert STARTED < HOLDING


def test_the_order_of_states() -> None:
    assert sorted(["F", "PD", "S", "CF", "CG", "R"], key=order) == ["R", "CG", "CF", "S", "PD", "F"]
    assert order("EXPEDITING") == order("CD") == max(map(order, CODES))
    kinds = [job_state(code).kind for code in sorted(CODES, key=order)]
    assert kinds == sorted(kinds, key=lambda kind: {"active": 0, "waiting": 1}.get(kind, 2))
