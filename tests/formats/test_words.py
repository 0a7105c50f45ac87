import pytest

from cockpit.formats.words import NO_TEXT_QUEUE, NO_VALUE, digits, word


@pytest.mark.parametrize("text", ["", "(null)", "N/A", "n/a", "None", "none", "Unknown"])
def test_words_for_nothing_are_no_text(text: str) -> None:
    assert word(text) == ""


def test_each_program_has_its_own_words_for_nothing() -> None:
    assert [word(text, NO_TEXT_QUEUE) for text in ("None", "NONE", "none")] == ["", "", "none"]
    assert [word(text, NO_VALUE) for text in ("none", "NONE", "Unknown")] == ["", "", "Unknown"]


def test_texts_are_made_harmless_and_shared() -> None:
    assert word("a\x1bb") == "a␛b"
    assert word("".join(["al", "ice"])) is word("".join(["ali", "ce"]))


@pytest.mark.parametrize("text", ["", "-1", "1.5", "N/A", "9" * 19, "9" * 5000, "٣", "²"])
def test_what_is_no_number(text: str) -> None:
    assert digits(text) is None


def test_numbers() -> None:
    assert [digits(text) for text in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]
