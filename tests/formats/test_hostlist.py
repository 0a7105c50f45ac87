import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import MAX_HOSTS, count, expand, fold
from cockpit.models import FaultKind


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-st-p5-1", ["gpu-st-p5-1"]),
        ("gpu-st-p5-[1-3,7]", ["gpu-st-p5-1", "gpu-st-p5-2", "gpu-st-p5-3", "gpu-st-p5-7"]),
        ("b04-[09-10]", ["b04-09", "b04-10"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[001-3]", ["n001", "n002", "n003"]),
        ("rack[1-2]n[01-02]-ib", ["rack1n01-ib", "rack1n02-ib", "rack2n01-ib", "rack2n02-ib"]),
        ("a[1-2]b[1-2]c[3]", ["a1b1c3", "a1b2c3", "a2b1c3", "a2b2c3"]),
        ("a,b[1,3],c", ["a", "b1", "b3", "c"]),
        ("gpu-dy-p5-3,gpu-st-p5-6", ["gpu-dy-p5-3", "gpu-st-p5-6"]),
        ("n08,n8", ["n08", "n8"]),
        ("(null)", []),
        ("", []),
        ("None assigned", []),
        ("n/a", []),
    ],
)
def test_expand_and_count(text: str, names: list[str]) -> None:
    assert expand(text) == names
    assert count(text) == len(names)


@pytest.mark.parametrize(
    "text",
    [
        "n[3-1]",
        "n[1-3",
        "n1-3]",
        "n[1-[2-3]]",
        "n[]",
        "n[a-c]",
        "n[1,,2]",
        "n[-3]",
        "n[0-65536]",
        "a[0-999]b[0-999]",
        "n[0-99999999999999999999999]",
    ],
)
def test_what_slurm_refuses_is_refused_by_all(text: str) -> None:
    for read in (expand, count):
        with pytest.raises(FormatError) as caught:
            read(text)
        assert caught.value.fault.kind is FaultKind.GARBLED


def test_a_huge_list_is_counted_without_writing_it_out() -> None:
    assert count(",".join(f"a{n}[0-65535]" for n in range(1000))) == 1000 * MAX_HOSTS


def test_control_characters_in_a_list_become_visible() -> None:
    assert expand("n\x1b[1-2]") == ["n␛1", "n␛2"]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n3", "n1", "n2", "n2"], "n[1-3]"),
        (["n10", "n9", "n2"], "n[2,9-10]"),
        (["n08", "n09", "n10", "n11"], "n[08-11]"),
        (["n8", "n08", "n9", "n09", "n10"], "n[8-10,08-09]"),
        (["head", "n1"], "head,n1"),
        (["b1", "a2", "a1", "a10"], "a[1-2,10],b1"),
        (["rack1n1-ib", "rack1n2-ib", "rack2n1-ib"], "rack1n1-ib,rack1n2-ib,rack2n1-ib"),
        (["gpu-st-p5-7", "gpu-dy-p5-1", "gpu-st-p5-8"], "gpu-dy-p5-1,gpu-st-p5-[7-8]"),
        (["r10n1", "r9n1"], "r9n1,r10n1"),
    ],
)
def test_fold(names: list[str], text: str) -> None:
    assert fold(names) == text


def test_more_hosts_than_a_range_may_have_are_folded_into_two() -> None:
    names = [f"n{n}" for n in range(MAX_HOSTS + 5)]
    assert fold(names) == "n[0-65535],n[65536-65540]"
    assert expand(fold(names)) == names


PARTS = st.sampled_from(["n", "rack", "-", "gpu-st-", "1", "09", "010", "100", "007", "p5", "-ib", "."])
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("".join)


@given(st.lists(NAMES, max_size=40))
def test_folding_loses_and_invents_nothing(names: list[str]) -> None:
    folded = fold(names)
    assert sorted(expand(folded)) == sorted(set(names))
    assert count(folded) == len(set(names))
    assert fold(expand(folded)) == folded


@given(st.text(alphabet="ab01289[],- ", max_size=30))
def test_any_text_is_read_or_refused_and_both_agree(text: str) -> None:
    try:
        names = expand(text)
    except FormatError:
        with pytest.raises(FormatError):
            count(text)
    else:
        assert count(text) == len(names)


def test_a_name_with_thousands_of_digits_is_still_a_name() -> None:
    names = ["n" + "9" * 5000, "n2"]
    assert set(expand(fold(names))) == set(names)
