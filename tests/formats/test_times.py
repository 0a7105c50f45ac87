from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.times import config_seconds, duration_s, instant


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:04", 4),
        ("1:44", 104),
        ("1:00", 60),
        ("2:00:00", 7200),
        ("02:00:00", 7200),
        ("1-12:00:00", 129_600),
        ("365-00:00:00", 31_536_000),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("00:00.250", 0.25),
        ("0:00", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "UNLIMITED",
        "NOT_SET",
        "Partition_Limit",
        "INVALID",
        "N/A",
        "",
        "(null)",
        "213503982334-14:25:51",
        "9" * 5000 + "-00:00:00",
        "9" * 5000 + ":00:00",
        "1:" + "9" * 5000 + ":00",
        "-1:00",
        "12",
        "1:2:3:4",
        "soon",
    ],
)
def test_words_and_absurd_values_are_no_duration(text: str) -> None:
    assert duration_s(text) is None


def test_an_instant_is_epoch_seconds_or_local_to_the_given_zone() -> None:
    east = timezone(timedelta(hours=2))
    assert instant("1795982090") == 1_795_982_090
    assert instant("2026-11-29T19:54:50", timezone.utc) == 1_795_982_090
    assert instant("2026-11-29T21:54:50", east) == 1_795_982_090
    assert instant("2026-11-29T19:54:50") == datetime(2026, 11, 29, 19, 54, 50).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "Unknown",
        "N/A",
        "None",
        "NONE",
        "(null)",
        "",
        "0",
        "4294967294",
        "4294967295",
        "99999999999999999999",
        "19:51:20",
        "Tue 07:51",
        "Ystday 10:00",
        "29 Nov 10:00",
        "2026-13-45T99:99:99",
        "٣٣٣",
    ],
)
def test_what_is_no_instant_is_none(text: str) -> None:
    assert instant(text, timezone.utc) is None


def test_times_of_the_configuration() -> None:
    assert config_seconds("60 sec") == 60
    assert config_seconds("300") == 300
    assert [config_seconds(text) for text in ("INFINITE", "NONE", "", "4294967295 sec")] == [None] * 4


@given(st.integers(0, 36_000 * 86_400 - 1))
def test_every_duration_is_read_back(seconds: int) -> None:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    assert duration_s(f"{days}-{hours:02}:{minutes:02}:{left:02}") == seconds
    if not days:
        assert duration_s(f"{hours}:{minutes:02}:{left:02}") == seconds


@given(st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)).map(lambda when: when.replace(microsecond=0)))
def test_every_instant_is_read_back(when: datetime) -> None:
    assert instant(when.isoformat(), timezone.utc) == when.replace(tzinfo=timezone.utc).timestamp()


@given(st.text(max_size=20))
def test_no_text_breaks_the_readers(text: str) -> None:
    duration_s(text)
    instant(text)
    config_seconds(text)


def test_a_setting_that_is_too_long_is_no_time() -> None:
    assert config_seconds("9" * 5000 + " sec") is None
