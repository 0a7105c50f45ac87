"""The -J file of nccl-tests, its traps, and that no secret of its environment survives."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.errors import FormatError
from cockpit.formats.nccl_json import looks_like_json, parse_json

SECRETS = ["AWS_SECRET_ACCESS_KEY=s3cr3t", "HF_TOKEN=hf_s3cr3t", "NCCL_API_KEY=s3cr3t", "HOME=/home/s3cr3t"]


def content(**changes: Any) -> dict[str, Any]:
    half = {"time": 9074.5, "alg_bw": 236.65, "bus_bw": 443.72, "nwrong": 0.0}
    spread = {"min_us": 1.0, "max_us": 2.0, "avg_us": 1.5, "p99_us": 1.9, "cv_pct": 4.0, "times_us": [1.0, 2.0]}
    found = {
        "version": 2,
        "start_time": "2026-11-04 03:12:07",
        "args": ["/opt/nccl-tests/build/all_reduce_perf_mpi", "-b", "1G"],
        "env": ["NCCL_ALGO=Ring", "FI_PROVIDER=efa", *SECRETS],
        "nccl_version": 22903,
        "config": {
            "nthreads": 1,
            "maximum_bytes": 2**31,
            "validation": 1,
            "blocking_collectives": "false",
            "devices": [
                {"rank": 0, "group": 0, "pid": 7, "hostname": "node-1", "device": 0, "device_hex": "0000:53:00",
                 "device_info": "NVIDIA H100"},
            ],
        },
        "results": [
            {"size": 2**31, "count": 2**29, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": half,
             "in_place": {**half, "nwrong": None, "bus_bw": 440.0}, "out_of_place_per_iter": spread},
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 443.0, "okay": "unchecked"},
        "errors": [],
        "end_time": "2026-11-04 03:13:00",
    }  # fmt: skip
    return {**found, **changes}


def test_a_whole_file() -> None:
    run = parse_json(json.dumps(content()))
    assert run.collective == "all_reduce"
    assert run.parameters == {"nThread": 1, "maxBytes": 2**31, "validation": 1}
    assert (run.versions.nccl, run.hosts, run.complete) == ("2.29.3", ("node-1",), True)
    (row,) = run.rows
    assert (row.size_bytes, row.root, row.busbw_gbs, row.wrong) == (2**31, -1, 443.72, 0)
    assert row.out_of_place is not None
    assert row.out_of_place.iterations is not None
    assert row.out_of_place.iterations.cv_pct == 4.0
    assert row.in_place is not None
    assert row.in_place.wrong is None
    assert run.footer is not None
    assert (run.footer.out_of_bounds_ok, run.footer.average_ok) == (True, None)


@pytest.mark.parametrize("as_pairs", [False, True])
def test_no_secret_of_the_environment_is_kept(as_pairs: bool) -> None:
    env: list[Any] = ["NCCL_ALGO=Ring", *SECRETS]
    if as_pairs:
        env = [dict(zip(("name", "value"), each.split("="), strict=True)) for each in env]
    run = parse_json(json.dumps(content(env=env)))
    assert run.env == {"NCCL_ALGO": "Ring"}
    assert run.env_hidden == 4
    assert "s3cr3t" not in repr(run)


def test_the_misspelt_average_of_early_versions() -> None:
    early = content(average_bus_bandwidith={"bandwidith": 12.5, "okay": False})
    del early["average_bus_bandwidth"]
    footer = parse_json(json.dumps(early)).footer
    assert footer is not None
    assert (footer.average_gbs, footer.average_ok) == (12.5, False)


def test_numbers_that_are_none() -> None:
    raw = (
        json.dumps(content())
        .replace("443.72", "inf")
        .replace('"time": 9074.5', '"time": "nan"')
        .replace(": inf", ":inf")
    )
    half = parse_json(raw).rows[0].out_of_place
    assert half is not None
    assert (half.busbw_gbs, half.time_us) == (None, None)


def test_a_file_that_breaks_off_keeps_what_is_whole() -> None:
    raw = json.dumps(content())
    rows = set()
    for end in range(raw.index('"args"') + 60, len(raw) - 1):
        run = parse_json(raw[:end])
        rows.add(len(run.rows))
        assert run.collective == "all_reduce"
    assert rows == {0, 1}
    assert not parse_json(raw[: raw.index('"average')]).complete


def test_what_is_no_such_file_is_refused() -> None:
    for raw in ('{"a": 1}', "[1]", '{"a"', "{" * 100_000, ""):
        with pytest.raises(FormatError):
            parse_json(raw)
    assert looks_like_json(b'\n {"version": 1')
    assert not looks_like_json("# nccl-tests version")


KEYS = st.sampled_from(sorted(content()))


@given(st.text(max_size=60).map(lambda text: '{"results":' + text))
def test_any_text_is_read_or_refused(raw: str) -> None:
    with suppress(FormatError):
        parse_json(raw)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(content())), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_values_of_any_kind_break_nothing(value: Any) -> None:
    for key in ("config", "results", "env", "args", "errors", "average_bus_bandwidth", "out_of_bounds"):
        parse_json(json.dumps(content(**{key: value})))
