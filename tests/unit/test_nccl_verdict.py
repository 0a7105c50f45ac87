"""The verdict: only large rows count, the transport is proven by a line, and no healthy run is called bad."""

from __future__ import annotations

import pytest

from cockpit.config import Rules
from cockpit.formats.nccl_names import hints_from_name
from cockpit.formats.nccl_tests import NcclReader
from cockpit.nccl.models import Judgement, NcclRun, Shape, Verdict
from cockpit.nccl.shape import Known, cap_gbs, derived_ranks, shape_of
from cockpit.nccl.verdict import expectation, from_history, judge
from tests.formats import nccl_text as text

PASS, WARN, FAIL = Judgement.PASS, Judgement.WARN, Judgement.FAIL
INCOMPLETE, UNJUDGED = Judgement.INCOMPLETE, Judgement.UNJUDGED


def read(content: str) -> NcclRun:
    return NcclReader().feed_all(content.splitlines()).runs()[-1]


def verdict(content: str, given: Known = Known(), rules: Rules | None = None) -> Verdict:  # noqa: B008
    run = read(content)
    return judge(run, shape_of(run, given), rules or Rules())


def test_two_p5_nodes_at_444_pass_although_above_their_nics_400() -> None:
    found = verdict(text.whole(444, log=text.EFA_LOG))
    assert (found.word, found.busbw_large_gbs) == (PASS, 444)
    assert found.cap_gbs == 750
    assert found.expectation is not None
    assert found.expectation.good_gbs == 430
    assert "as two nodes may" in found.reasons[0]


@pytest.mark.parametrize(("busbw", "word"), [(480, PASS), (430, PASS), (429, WARN), (371, WARN), (369, FAIL)])
def test_one_h100_node(busbw: float, word: Judgement) -> None:
    assert verdict(text.whole(busbw, nodes=1, size=2**32)).word is word


def test_360_on_one_h100_node_is_nvls_off() -> None:
    found = verdict(text.whole(360, nodes=1, size=2**33))
    assert found.word is FAIL
    assert "nvls_off" in found.flags
    assert any("NVLS off" in reason for reason in found.reasons)
    log = "n:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"
    proven = verdict(text.whole(360, nodes=1, size=2**33, log=log))
    assert any("NVLS multicast support is not available" in reason for reason in proven.reasons)
    assert "nvls_off" not in verdict(text.whole(230, nodes=1, gpu="NVIDIA A100-SXM4-80GB")).flags


def test_a_socket_run_is_named_with_the_line_that_proves_it() -> None:
    found = verdict(text.whole(4.1, log=text.SOCKET_LOG))
    assert found.word is FAIL
    assert {"socket_fallback", "socket_suspected"} <= set(found.flags)
    assert "Using network Socket" in found.reasons[0]
    assert "Could not find: libnccl-net.so" in found.reasons[0]


def test_without_a_line_a_slow_run_is_only_suspected_of_sockets() -> None:
    found = verdict(text.whole(4.9))
    assert found.word is FAIL
    assert found.flags == ("socket_suspected",)
    assert "no line of the log tells" in found.reasons[0]


def test_sockets_inside_one_node_or_on_purpose_are_no_fall_back() -> None:
    assert verdict(text.whole(480, nodes=1, size=2**32, log=text.SOCKET_LOG)).word is PASS
    meant = "n:1:1 [0] NCCL INFO NCCL_NET_PLUGIN set by environment to none\n" + text.SOCKET_LOG
    found = verdict(text.whole(444, log=meant))
    assert (found.word, "socket_fallback" in found.flags) == (WARN, False)


def test_efa_with_too_few_devices_or_without_gpudirect_is_a_warning() -> None:
    few = text.EFA_LOG.replace("found 32 nics", "found 3 nics")
    assert verdict(text.whole(444, log=few)).flags == ("efa", "nics_missing")
    no_gdr = text.EFA_LOG.replace("GDR 1", "GDR 0").replace("/GDRDMA", "")
    found = verdict(text.whole(444, log=no_gdr))
    assert (found.word, "no_gdr" in found.flags) == (WARN, True)


def test_wrong_values_fail_whatever_the_bandwidth() -> None:
    found = verdict(text.whole(444, wrong="7"))
    assert (found.word, found.wrong) == (FAIL, 14)
    assert found.reasons[0].startswith("wrong data: 14 wrong values at 2 GiB")
    footer = text.FOOTER.replace(": 0 OK", ": 3 FAILED")
    assert verdict(text.OLD_ALL_REDUCE + footer).word is FAIL


def test_data_that_was_not_checked_is_said_not_praised() -> None:
    found = verdict(text.whole(444, wrong="N/A", validation=0))
    assert (found.word, found.wrong, found.data_checked) == (PASS, None, False)
    assert any("not checked" in reason for reason in found.reasons)


def test_small_sizes_are_not_judged() -> None:
    found = verdict(text.whole(12, size=2**29))
    assert (found.word, found.busbw_large_gbs) == (UNJUDGED, None)
    assert "too small to judge" in found.reasons[0]
    assert "512 MiB" in found.reasons[0]
    assert found.latency_us == 70.78


def test_a_size_below_that_of_the_catalogue_does_not_warn() -> None:
    assert verdict(text.whole(380, size=2**30)).word is UNJUDGED
    assert verdict(text.whole(200, size=2**30)).word is FAIL
    assert verdict(text.whole(440, size=2**30)).word is PASS


def test_a_missing_footer_is_incomplete_and_tells_how_far_it_came() -> None:
    found = verdict(text.whole(444, footer=""))
    assert (found.word, found.busbw_large_gbs) == (INCOMPLETE, 444)
    assert "no footer after the row of 2 GiB" in found.reasons[0]
    assert verdict(text.whole(100, footer="")).word is INCOMPLETE
    assert verdict(text.header()).word is INCOMPLETE


def test_copies_and_single_ranks_are_no_test() -> None:
    lines = text.whole(444).splitlines()
    found = verdict("\n".join(line for line in lines for _ in range(2)))
    assert (found.word, found.pct) == (UNJUDGED, None)
    assert found.reasons[0].startswith("not one job")
    one = text.header() + text.device_list(1, 1) + text.HEAD + text.row(2**30, 0.0, 2) + text.FOOTER
    assert "one_rank" in verdict(one).flags


def test_more_than_the_network_can_carry_is_another_network() -> None:
    found = verdict(text.whole(182.8, gpu="NVIDIA A100-SXM4-80GB", size=2**30))
    assert (found.word, found.pct) == (UNJUDGED, None)
    assert found.flags == ("above_cap",)


def test_equal_errors_of_several_nodes_are_one_reason() -> None:
    failures = "".join(f"node-{at}: Test CUDA failure c.cu:1 'system not yet initialized'\n" for at in range(1, 6))
    found = verdict(text.header() + failures)
    assert found.word is FAIL
    assert len(found.reasons) == 1
    assert "on node-1, node-2, node-3 and 2 more" in found.reasons[0]
    assert "fabricmanager" in found.reasons[0]


def test_repeats_that_differ_and_a_curve_that_falls() -> None:
    rows = [text.row(2**31, busbw) for busbw in (828, 829, 15, 830)]
    found = verdict(text.header() + text.device_list(gpu="NVIDIA B300") + text.HEAD + "".join(rows) + text.FOOTER)
    assert (found.word, found.busbw_large_gbs) == (FAIL, 828.5)
    assert "row 3" in found.reasons[0]
    falling = text.row(2**30, 440) + text.row(2**31, 300)
    found = verdict(text.header() + text.device_list() + text.HEAD + falling + text.FOOTER)
    assert "falls" in found.flags


def test_an_old_stack_is_named_before_a_node_is() -> None:
    log = text.EFA_LOG.replace("Using Libfabric version 2.4", "NCCL version 2.9.9+cuda11.2")
    content = text.whole(43.8, gpu="NVIDIA A100-SXM4-40GB", size=2**32, log=log)
    found = verdict(content.replace("(found 32 nics)", ""))
    assert found.word is WARN
    assert "NCCL 2.9.9" in found.reasons[0]
    assert verdict(text.whole(43.8, gpu="NVIDIA A100-SXM4-40GB", size=2**32)).word is FAIL


def test_ring_is_measured_by_its_own_lines() -> None:
    found = verdict(text.whole(345, size=2**32), Known(ring=True))
    assert found.expectation is not None
    assert (found.word, found.expectation.good_gbs, found.cap_gbs) == (PASS, 350, 400)
    log = "n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
    assert verdict(text.whole(345, size=2**32, log=log)).shape.algorithm == "ring"


def test_what_nothing_is_expected_of_is_unjudged_and_says_what_is_published() -> None:
    two = (
        text.header() + text.device_list(2, 2, "NVIDIA RTX PRO 6000") + text.HEAD + text.row(2**31, 30, 4) + text.FOOTER
    )
    found = verdict(two, Known("g7e.12xlarge"))
    assert (found.word, found.busbw_large_gbs) == (UNJUDGED, 30)
    assert "33.4 (over EFA, WV)" in found.reasons[0]
    assert verdict(two).word is UNJUDGED


def test_the_site_moves_the_lines() -> None:
    content = text.whole(380)
    assert verdict(content).word is WARN
    assert verdict(content, rules=Rules(nccl_min_pct=80)).word is PASS
    assert verdict(text.whole(425), rules=Rules(nccl_min_pct=99)).word is WARN
    low = expectation(Shape("p5.48xlarge", "given", 2, 16, 8, "all_reduce"), Rules(nccl_min_pct=50))
    assert low is not None
    assert low.fail_below_gbs is not None
    assert low.warn_below_gbs is not None
    assert low.fail_below_gbs <= low.warn_below_gbs


def test_the_own_history_counts_before_the_catalogue() -> None:
    run = read(text.whole(444))
    own = from_history([600, 610, 590])
    found = judge(run, shape_of(run), Rules(), own)
    assert (found.word, found.pct) == (FAIL, 74.0)
    assert "usual" in found.reasons[0]
    assert judge(run, shape_of(run), Rules(), from_history([450])).word is PASS
    assert from_history([]) is None


@pytest.mark.parametrize(
    ("shape", "cap"),
    [
        (("p5.48xlarge", 2, 8, "all_reduce", "default"), 750),
        (("p5.48xlarge", 2, 8, "all_reduce", "ring"), 400),
        (("p4d.24xlarge", 2, 8, "all_reduce", "default"), 93.75),
        (("p5.48xlarge", 16, 8, "all_reduce", "default"), 423.3),
        (("p5.48xlarge", 2, 8, "alltoall", "default"), 93.75),
        (("p5.48xlarge", 4, 8, "all_gather", "default"), 400),
        (("p5.48xlarge", 1, 8, "all_reduce", "default"), None),
        (("p5.48xlarge", 2, 1, "all_reduce", "default"), None),
        (("unknown", 2, 8, "all_reduce", "default"), None),
    ],
)
def test_what_the_network_can_carry(shape: tuple[str, int, int, str, str], cap: float | None) -> None:
    kind, nodes, gpus, collective, algorithm = shape
    found = cap_gbs(Shape(kind, "given", nodes, nodes * gpus, gpus, collective, algorithm))
    assert found == (None if cap is None else pytest.approx(cap, rel=1e-3))


def test_ranks_follow_from_the_two_bandwidths() -> None:
    rows = read(text.HEAD + text.row(2**34, 487.1, 16) + text.row(2**33, 479.3, 16)).rows
    assert derived_ranks(rows, "all_reduce") == 16
    assert derived_ranks(rows, "broadcast") is None
    many = read(text.HEAD + text.row(2**34, 369.9, 128)).rows
    assert derived_ranks(many, "all_reduce", 8) == 128


def test_names_help_only_where_the_text_is_silent() -> None:
    told = hints_from_name("/logs/P5en_2node_allreduce_ring.txt")
    assert (told.instance_type, told.nodes, told.collective, told.ring) == ("p5en.48xlarge", 2, "all_reduce", True)
    assert hints_from_name("p4d_1to4node.txt").nodes is None
    assert hints_from_name("capture-5.txt").instance_type == ""
    assert hints_from_name("p5.4xlarge-2-nodes.log").instance_type == "p5.4xlarge"
    run = read(text.whole(444))
    shape = shape_of(run, name=Known("p4d.24xlarge", 4))
    assert (shape.instance_type, shape.nodes) == ("p5.48xlarge", 2)  # H100s in two hosts say otherwise
