"""Every parser of cockpit/formats on its own words in any order: its documented error or a harmless answer, no more."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.demo.programs.registry import run
from cockpit.demo.sim import Simulation
from cockpit.formats.errors import FormatError
from cockpit.formats.prometheus import FIELDS, GPU_LABELS
from cockpit.formats.sinfo import node_args
from cockpit.formats.squeue import queue_args
from cockpit.text import printable
from tests.formats import fuzz

# Of hypothesis about itself: huge representations, and the demo's own use of random.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
Strategy = st.SearchStrategy[Any]
Shape = Callable[[str], Strategy]
MARK = "m0"


def raw(module: str) -> Strategy:
    return fuzz.raw(module)


def text(module: str) -> Strategy:
    return st.one_of(fuzz.soup(module), fuzz.broken().map(lambda data: data.decode("utf-8", "surrogateescape")))


def shown(module: str) -> Strategy:
    """A line as `shown_line` made it harmless."""
    return text(module).map(printable)


def lines(module: str) -> Strategy:
    return text(module).map(str.splitlines)


def chunks(module: str) -> Strategy:
    return st.lists(fuzz.raw(module), max_size=6)


def value(module: str) -> Strategy:
    return fuzz.answers(module)


def answer(module: str) -> Strategy:
    """What botocore gives: always an object."""
    return st.dictionaries(st.sampled_from(fuzz.words_of(module)), fuzz.answers(module), max_size=8)


def pages(module: str) -> Strategy:
    return st.lists(answer(module), max_size=3)


def as_json(module: str) -> Strategy:
    return st.one_of(fuzz.answers(module).map(lambda found: json.dumps(found).encode()), fuzz.raw(module))


def by_node(module: str) -> Strategy:
    return st.dictionaries(st.sampled_from(["n1", "n2"]), as_json(module))


def of_demo(argv: list[str]) -> tuple[bytes, ...]:
    """A real answer of the simulated Slurm, to be broken."""
    return (run(Simulation(), argv, {}, "head", root=False).stdout,)


def queue(module: str) -> Strategy:
    return st.one_of(fuzz.raw(module, of_demo(["squeue", *queue_args(MARK)])), fuzz.raw(module))


def nodes(module: str) -> Strategy:
    return st.one_of(fuzz.raw(module, of_demo(["sinfo", *node_args(MARK)])), fuzz.raw(module))


def pairs(module: str) -> Strategy:
    return st.lists(st.tuples(text(module), text(module)), max_size=6)


def probe_lines(module: str) -> Strategy:
    """A hello and samples with the protocol's own keys, and whatever else a hostile node may send."""
    keys = st.sampled_from([word for word in fuzz.words_of(module) if len(word) < 5])
    told = st.dictionaries(keys, fuzz.answers(module), max_size=10)
    kinds = st.sampled_from([{"k": "h", "v": 1, "rev": 1}, {"k": "s", "rev": 1, "n": 1, "t": 1.0}, {"k": "b"}, {}])
    line = st.builds(lambda kind, more: json.dumps({**more, **kind}).encode(), kinds, told)
    return st.lists(st.one_of(line, line, line, fuzz.raw(module)), max_size=8)


def series(module: str) -> Strategy:
    """An answer of Prometheus whose labels, names and numbers are anything."""
    words = st.sampled_from((*fuzz.words_of(module), *fuzz.NASTY))
    names = st.sampled_from(["DCGM_FI_DEV_" + word for word in FIELDS] + ["", "up"])
    more = dict.fromkeys(GPU_LABELS, words)
    labels = st.fixed_dictionaries({"__name__": names, "Hostname": words}, optional=more)
    number = st.one_of(st.floats().map(str), st.integers(-(2**70), 2**70).map(str), words)
    point = st.one_of(st.tuples(st.floats(0, 2e9), number).map(list), fuzz.answers(module))
    one = st.builds(lambda label, points: {"metric": label, "values": points}, labels, st.lists(point, max_size=4))
    found = st.lists(st.one_of(one, one, fuzz.answers(module)), max_size=6)
    told = found.map(lambda result: {"status": "success", "data": {"resultType": "matrix", "result": result}})
    return st.one_of(told.map(lambda answer: json.dumps(answer).encode()), as_json(module))


def of(module: str, shape: Shape, *names: str) -> dict[str, Shape]:
    return {f"{module}.{name}": shape for name in names}


# What each parser takes. Its error is FormatError, unless ERRORS names another one that its callers expect.
PARSERS: dict[str, Shape] = {
    **of("arrays", text, "count_tasks", "task_ranges"),
    **of("aws_ec2", value, "text", "epoch"),
    **of("aws_ec2", pages, "parse_instances", "parse_statuses", "parse_reservations"),
    **of("aws_fleet", answer, "parse_fleet_item", "parse_stack", "parse_caller", "parse_hyperpod", "is_cluster"),
    **of("aws_fleet", pages, "parse_mapping"),
    **of("aws_preflight", answer, "parse_quota", "parse_placement"),
    **of("aws_preflight", pages, "parse_subnets", "parse_groups"),
    **of("aws_prices", pages, "parse_on_demand", "parse_spot"),
    **of("aws_storage", pages, "parse_file_systems", "parse_metric_names"),
    **of("columns", lines, "numbers", "instants"),
    **of("efa_counters", text, "parse_counters"),
    **of("efa_counters", value, "counters_of_rows"),
    **of("efa_tools", text, "parse_ibv_devinfo", "parse_ping", "size_of", "parse_installed", "parse_ls_devices"),
    **of("efa_tools", text, "parse_efa_table"),
    **of("fi_info", text, "parse_fi_info", "libfabric_version", "parse_fi_version"),
    **of("flight_recorder", as_json, "parse_record"),
    **of("gres", text, "parse_gres", "memory_mib", "number"),
    **of("hostlist", text, "expand", "count", "split_outside"),
    **of("hostlist", lines, "fold", "brief"),
    **of("job_now", raw, "parse_jobs_now"),
    **of("job_states", text, "job_state", "compact_state", "order"),
    **of("kernel_hosts", text, "host_event"),
    **of("kernel_lines", raw, "kernel_lines"),
    **of("kernel_log", raw, "parse_kernel_log"),
    **of("kernel_log", text, "bus_id"),
    **of("lfs_quota", raw, "parse_lfs_quota"),
    **of("listpids", raw, "parse_listpids"),
    **of("log_buffer", chunks, "LogBuffer"),
    **of("log_digest", chunks, "LogReader", "digest_of"),
    **of("log_lines", raw, "shown_line", "last_state"),
    **of("log_lines", shown, "sign_of"),
    **of("log_voice", text, "rank_of", "node_of", "group_of", "moment_of"),
    **of("look", as_json, "parse_look", "json_object"),
    **of("look", by_node, "looks_of"),
    **of("nccl_env", pairs, "redact"),
    **of("nccl_failures", lines, "FailureReader"),
    **of("nccl_json", as_json, "parse_json", "looks_like_json"),
    **of("nccl_lines", raw, "take_apart"),
    **of("nccl_log", lines, "LogReader"),
    **of("nccl_names", text, "hints_from_name"),
    **of("nccl_rows", text, "read_head", "starts_row", "part_of_row"),
    **of("nccl_tests", lines, "NcclReader"),
    **of("node_history", raw, "parse_node_history"),
    **of("node_state", text, "written_by_program"),
    **of("pcluster_events", as_json, "parse_events", "parse_resume_log"),
    **of("plain_pickle", raw, "load_plain"),
    **of("probe", probe_lines, "ProbeReader"),
    **of("probe_gpus", value, "gpus"),
    **of("probe_node", value, "reasons", "stuck"),
    **of("probe_smi", text, "bus_id"),
    **of("probe_values", as_json, "parse_line"),
    **of("probe_values", value, "value", "text", "number", "whole"),
    **of("prometheus", series, "parse_answer"),
    **of("ras", as_json, "parse_ras", "parse_event"),
    **of("scontrol", raw, "parse_ping", "parse_config", "parse_partitions", "parse_reservations"),
    **of("scontrol", text, "version_of"),
    **of("scontrol_show", raw, "parse_job_details", "parse_job_detail", "parse_node_details", "parse_node_detail"),
    **of("scontrol_show", raw, "parse_partition_pairs"),
    **of("sinfo", nodes, "parse_nodes"),
    **of("squeue", queue, "parse_queue"),
    **of("sweep", chunks, "read_sweep"),
    **of("sweep", text, "unpacked"),
    **of("times", text, "duration_s", "instant", "config_seconds"),
    **of("words", text, "word", "digits"),
}
# What needs more than one argument.
WITH: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "flight_recorder.parse_record": ((0,), {}),
    "job_now.parse_jobs_now": ((MARK,), {}),
    "sinfo.parse_nodes": ((), {"mark": MARK}),
    "squeue.parse_queue": ((), {"mark": MARK}),
}
# botocore checks shapes against the service's own model: a type that is none there cannot come.
BOTO = (KeyError, TypeError, AttributeError, ValueError, OverflowError, OSError)
ERRORS: dict[str, tuple[type[Exception], ...]] = {
    **{name: BOTO for name in PARSERS if name.startswith("aws_")},
    "efa_tools.size_of": (ValueError,),
    "look.json_object": (ValueError,),
    "plain_pickle.load_plain": (ValueError,),
    "probe_values.parse_line": (ValueError,),
    "sweep.unpacked": (ValueError,),
}
# These give words to be compared or used, not shown; whoever shows them passes them through `printable`.
RAW = {
    "columns", "hostlist.split_outside", "job_states", "kernel_lines.kernel_lines", "look.json_object",
    "nccl_lines.take_apart", "plain_pickle.load_plain", "probe_values.parse_line", "log_lines.last_state",
}  # fmt: skip
# What is no parser of text from outside, each with the reason.
OTHERS: dict[str, str] = {
    **dict.fromkeys(
        ("job_now.job_now_args", "job_now.on_nodes_args", "job_now.named_args", "job_now.waiting_args"), "builds argv"
    ),
    **dict.fromkeys(("listpids.listpids_args", "node_history.history_args", "records.format_args"), "builds argv"),
    **dict.fromkeys(("sinfo.node_args", "squeue.queue_args"), "builds argv"),
    **dict.fromkeys(("arrays.fold_queue", "arrays.count_states", "gres.gpus_of"), "takes what a parser made"),
    **dict.fromkeys(("kernel_fold.fold", "kernel_log.read_lines", "kernel_log.health_of"), "takes what a parser made"),
    **dict.fromkeys(("log_buffer.first_error", "log_buffer.first_effect"), "takes what a parser made"),
    **dict.fromkeys(("log_buffer.named_exception", "nccl_tests.sequences"), "takes what a parser made"),
    **dict.fromkeys(("nccl_tests.interleaved", "output_paths.job_outputs"), "takes what a parser made"),
    **dict.fromkeys(("node_state.judge", "node_state.explain_state", "node_state.state_words"), "takes what was read"),
    **dict.fromkeys(("node_state.next_step", "output_paths.expand_pattern"), "takes what was read"),
    **dict.fromkeys(("efa_counters.window", "probe_slots.merge", "probe_slots.bus_only"), "takes what a parser made"),
    **dict.fromkeys(("aws_preflight.ask_of_template", "aws_preflight.ask_of_peer"), "takes what a parser made"),
    **dict.fromkeys(("aws_preflight.vcpus_in_use", "probe_slots.unlisted"), "takes what a parser made"),
    **dict.fromkeys(("aws_errors.code_of", "aws_errors.message_of", "aws_errors.fault_of"), "takes exceptions"),
    **dict.fromkeys(
        (
            "aws_fleet.parse_hyperpod_nodes", "aws_preflight.parse_cluster_quotas", "aws_storage.queries",
            "aws_storage.parse_use",
        ),
        "botocore's shapes with a second argument; tests/aws reads them over HTTP",
    ),
    **dict.fromkeys(("arrays.share_tasks", "columns.each", "gres.job_gpus"), "fuzzed through squeue.parse_queue"),
    **dict.fromkeys(("nccl_rows.read_row", "nccl_env.shown_setting"), "fuzzed through nccl_tests.NcclReader"),
    **dict.fromkeys(("records.split_records", "records.split_fields"), "fuzzed through squeue and sinfo"),
    **dict.fromkeys(("slurm_errors.classify", "slurm_errors.complaint"), "fuzzed below"),
    **dict.fromkeys(("listpids.says_none",), "fuzzed below"),
    **dict.fromkeys(("prometheus.read_machines", "prometheus.xid_events"), "fuzzed below"),
    **dict.fromkeys(("prometheus.value_of", "prometheus.label_of"), "fuzzed through prometheus.read_machines"),
    **dict.fromkeys(
        (
            "probe_gpus.with_fast", "probe_gpus.with_slow", "probe_gpus.row_error", "probe_gpus.throttle_words",
            "probe_gpus.recovery_words", "probe_gpus.instances", "probe_gpus.processes", "probe_node.mounts",
            "probe_node.efa_devices", "probe_node.efa_counters", "probe_node.messages", "probe_smi.read_smi",
            "probe_values.nvml_missing", "probe_values.wall_time", "probe_values.items", "probe_values.at",
        ),
        "fuzzed through probe.ProbeReader",
    ),
    "log_digest.chunks_of": "reads a file in pieces",
}  # fmt: skip

CHECKS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def called(name: str, given_value: Any) -> Any:
    """What the parser makes of it, all of it."""
    module, _, function = name.partition(".")
    parser = getattr(importlib.import_module(f"cockpit.formats.{module}"), function)
    more, named = WITH.get(name, ((), {}))
    if isinstance(parser, type):
        return fed(parser(), given_value)
    found = parser(given_value, *more, **named)
    return list(itertools.islice(found, 1000)) if hasattr(found, "__next__") else found


def fed(reader: Any, pieces: Any) -> Any:
    """A reader of a stream after all of its pieces, and whatever it offers at the end."""
    told = [reader.feed(piece) for piece in pieces]
    ends = [getattr(reader, end)() for end in ("errors", "close", "runs", "held") if hasattr(reader, end)]
    return [told, ends]


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_of_anything(name: str) -> None:
    shape = PARSERS[name](name.partition(".")[0])
    allowed: tuple[type[Exception], ...] = (FormatError, *ERRORS.get(name, ()))

    @CHECKS
    @given(shape)
    def fuzzed(given_value: Any) -> None:
        try:
            found = called(name, given_value)
        except allowed:
            return
        if name not in RAW and name.partition(".")[0] not in RAW:
            assert not fuzz.harmful(found)

    fuzzed()


@CHECKS
@given(st.integers(-20, 300), fuzz.raw("slurm_errors"), fuzz.raw("slurm_errors"))
def test_what_slurm_complains_of(rc: int, stdout: bytes, stderr: bytes) -> None:
    from cockpit.formats.listpids import says_none
    from cockpit.formats.slurm_errors import classify, complaint

    assert not fuzz.harmful(classify(rc, stdout, stderr, what="squeue"))
    assert not fuzz.harmful(complaint(rc, stdout, stderr, what="squeue"))
    assert says_none(stdout, stderr) in (True, False)


@CHECKS
@given(series("prometheus"), series("prometheus"))
def test_what_prometheus_tells(values: bytes, times: bytes) -> None:
    from cockpit.formats.prometheus import parse_answer, read_machines, xid_events

    try:
        told, when = parse_answer(values), parse_answer(times)
    except FormatError:
        return
    assert not fuzz.harmful(read_machines(told, when, ("Hostname", "instance")))
    assert not fuzz.harmful(xid_events(told, 0.0))


def test_every_parser_is_fuzzed() -> None:
    """A new one needs a line in PARSERS; what is none, a reason in OTHERS."""
    there = {f"{module}.{name}" for module in fuzz.modules() for name in fuzz.public(module)}
    assert there == set(PARSERS) | set(OTHERS)
    assert not set(PARSERS) & set(OTHERS)
