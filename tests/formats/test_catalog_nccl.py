"""The catalogues of collective tests: every figure has a source, every line of a verdict is in order."""

from __future__ import annotations

import re

import pytest

from cockpit.catalog.instances import instance_type
from cockpit.catalog.nccl_env import env_remarks
from cockpit.catalog.nccl_errors import error_fact, exit_code_fact, failing_line
from cockpit.catalog.nccl_expected import network_facts, published, threshold, type_of_gpu, without_nvls
from cockpit.catalog.reader import load

EXPECTED = load("nccl_expected")


@pytest.mark.parametrize("entry", EXPECTED["thresholds"], ids=lambda entry: f"{entry['types'][0]}-{entry['nodes']}")
def test_thresholds_descend_and_name_their_source(entry: dict[str, object]) -> None:
    lines = [entry[key] for key in ("good", "warn_below", "fail_below") if key in entry]
    assert lines == sorted(lines, reverse=True)  # type: ignore[type-var]
    assert "fail_below" in entry
    tags = re.findall(r"\b[A-Z]{2,3}\b|\bown\b", str(entry["source"]))
    assert tags
    assert set(tags) <= set(EXPECTED["sources"]) | {"GB"}
    assert all(network_facts(kind) for kind in entry["types"])  # type: ignore[attr-defined]


def test_published_figures_name_their_source() -> None:
    assert all(entry["source"] in EXPECTED["sources"] for entry in EXPECTED["published"])
    assert [each.lowest_gbs for each in published("p6-b300.48xlarge", 2, "all_reduce")] == [827, 14.9]


def test_the_network_agrees_with_the_instance_types() -> None:
    for name in EXPECTED["types"]:
        facts, known = network_facts(name), instance_type(name)
        assert facts is not None
        if known is not None:
            assert (facts.gpus, facts.nics) == (known.count, known.efa)
            assert known.network_gbps is None or facts.nic_gbs == known.network_gbps / 8


def test_ring_and_default_have_lines_of_their_own() -> None:
    default, ring = (threshold("p5.48xlarge", 2, "all_reduce", algorithm) for algorithm in ("default", "ring"))
    assert default is not None
    assert ring is not None
    assert (default.good_gbs, ring.good_gbs) == (430, 350)
    assert threshold("p5.48xlarge", 64, "all_reduce", "default") is not None
    assert threshold("p5.48xlarge", 2, "alltoall", "default") is None
    learned = threshold("p6-b200.48xlarge", 2, "all_reduce", "default")
    assert learned is not None
    assert (learned.good_gbs, learned.fail_below_gbs) == (None, 200)


def test_gpus_stand_for_types() -> None:
    assert type_of_gpu("A100-SXM4-80GB") == "p4d.24xlarge"
    assert type_of_gpu("H200") == "p5e.48xlarge"
    assert type_of_gpu("GeForce RTX 5090") == ""
    assert without_nvls("H100", 365)
    assert not without_nvls("A100", 365)


def test_error_texts() -> None:
    assert all(re.compile(entry["match"]) for entry in load("nccl_errors")["errors"])
    fact = error_fact("unhandled cuda error (run with NCCL_DEBUG=INFO for details)")
    assert fact is not None
    assert fact.kind == "cuda"
    assert failing_line("unhandled cuda error") is None
    code = exit_code_fact(7)
    assert code is not None
    assert code.kind == "data"
    assert exit_code_fact(42) is None


def test_every_remark_has_words() -> None:
    assert all(entry["says"] for entry in load("nccl_env")["remarks"])
    assert env_remarks(["NCCL_DEBUG", "NCCL_IB_DISABLE"]) == (
        "NCCL_IB_DISABLE: no effect on EFA, which does not use NCCL's verbs transport; harmless",
    )
