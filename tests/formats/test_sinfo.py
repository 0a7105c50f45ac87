import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.errors import FormatError
from cockpit.formats.sinfo import NODE_FIELDS, node_args, parse_nodes
from cockpit.models import Gres, Health, Node, NodeState, Partition
from cockpit.text import printable
from tests.formats.slurm_text import HOSTILE, node, queue


def one(**values: str | bytes) -> Node:
    (found,) = parse_nodes(queue(node(**values))).nodes
    return found


def test_the_call_asks_for_hidden_queues_too() -> None:
    assert node_args()[:4] == ["-h", "-a", "-N", "-O"]
    assert node_args()[4].startswith("NodeList:0\x1f,PartitionName:0\x1f,")
    assert node_args()[4].endswith("Reason:0\x1e")


def test_a_node() -> None:
    assert one() == Node(
        name="gpu-st-p5-1",
        state=NodeState("mixed"),
        word="mixed",
        health=Health.OK,
        partitions=("gpu",),
        gres=(Gres("gpu", "h100", 8),),
        gres_used=(Gres("gpu", "h100", 7, tuple(range(7))),),
        gpus_total=8,
        gpus_used=7,
        gpu_type="h100",
        gpu_indices=tuple(range(7)),
        cpus_total=192,
        cpus_used=14,
        cpu_load=0.99,
        mem_mib=2_000_000,
        mem_used_mib=14_000,
        mem_free_mib=21_413,
        features=("static", "p5.48xlarge", "gpu"),
        weight=1,
        address="10.0.0.1",
        hostname="ip-10-0-0-1",
        version="25.05.9",
    )


@pytest.mark.parametrize("load", ["N/A", "0.00"])
def test_a_node_that_never_registered_tells_no_load_and_no_free_memory(load: str) -> None:
    found = one(StateComplete="unknown+not_responding", CPUsLoad=load, FreeMem="N/A", Version="N/A")
    assert (found.cpu_load, found.mem_free_mib, found.version) == (None, None, "")
    assert one(CPUsLoad="0.00").cpu_load == 0


@pytest.mark.parametrize("used", ["gpu:0", "(null)"])
def test_a_node_without_gpus_has_none_rather_than_zero(used: str) -> None:
    found = one(Gres="(null)", GresUsed=used)
    assert (found.gpus_total, found.gpus_used, found.gpu_type) == (None, None, "")


def test_gpus_of_a_node_that_never_registered_are_configured_and_unused() -> None:
    found = one(GresUsed="gpu:h100:0")
    assert (found.gpus_total, found.gpus_used, found.gpu_indices) == (8, 0, None)


def test_a_reason_with_who_and_when() -> None:
    found = one(StateComplete="idle+drain", Reason="Xid 79: NVRM = x", User="root", Timestamp="1795982094")
    assert (found.reason, found.reason_by, found.reason_at) == ("Xid 79: NVRM = x", "root", 1_795_982_094.0)
    assert (found.word, found.health) == ("drained", Health.DRAINED)


def test_no_reason_has_nobody_who_wrote_it() -> None:
    found = one(Reason="none", User="root", Timestamp="Unknown")
    assert (found.reason, found.reason_by, found.reason_at) == ("", "", None)


def test_a_node_is_listed_once_with_all_its_queues() -> None:
    reading = parse_nodes(
        queue(
            node(NodeList="c1", PartitionName="cpu"),
            node(NodeList="c1", PartitionName="old", Available="inactive"),
            node(NodeList="g1", PartitionName="gpu"),
            node(NodeList="g1", PartitionName="old", Available="inact"),
        )
    )
    assert [(found.name, found.partitions) for found in reading.nodes] == [
        ("c1", ("cpu", "old")),
        ("g1", ("gpu", "old")),
    ]
    assert reading.partitions == (
        Partition("cpu", "up", ("c1",)),
        Partition("old", "inactive", ("c1", "g1")),
        Partition("gpu", "up", ("g1",)),
    )


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_hostile_reason_stays_inside_its_record(reason: bytes) -> None:
    reading = parse_nodes(queue(node(NodeList="a"), node(NodeList="b", Reason=reason), node(NodeList="c")))
    assert [found.name for found in reading.nodes] == ["a", "b", "c"]
    assert reading.nodes[1].reason == ("" if reason == b"(null)" else printable(reason))


def test_an_unchanged_node_gives_the_same_object_and_the_cache_forgets_the_rest() -> None:
    cache: dict[bytes, Node] = {}
    rows = [node(NodeList="a"), node(NodeList="a", PartitionName="prio"), node(NodeList="b")]
    first = parse_nodes(queue(*rows), cache=cache)
    again = parse_nodes(queue(*rows), cache=cache)
    assert all(new is old for new, old in zip(again.nodes, first.nodes, strict=True))
    changed = parse_nodes(queue(node(NodeList="a", StateComplete="down")), cache=cache)
    assert changed.nodes[0].word == "down"
    assert len(cache) == 1


def test_a_node_that_leaves_a_queue_is_not_taken_from_the_cache() -> None:
    cache: dict[bytes, Node] = {}
    parse_nodes(queue(node(), node(PartitionName="prio")), cache=cache)
    reading = parse_nodes(queue(node()), cache=cache)
    assert reading.nodes[0].partitions == ("gpu",)
    assert [found.name for found in reading.partitions] == ["gpu"]


def test_a_cut_answer_is_refused() -> None:
    raw = queue(node(NodeList="a"), node(NodeList="b"))
    with pytest.raises(FormatError):
        parse_nodes(raw[:-10])


def test_an_empty_answer_has_no_nodes() -> None:
    assert parse_nodes(b"").nodes == ()


def test_other_columns_in_another_order() -> None:
    raw = queue(b"a\x1fdrained*\x1fgpu:2\x1fx = y")
    (found,) = parse_nodes(raw, ["NodeList", "StateLong", "Gres", "Reason"]).nodes
    assert (found.name, found.word, found.gpus_total, found.reason) == ("a", "drained", 2, "x = y")
    assert found.partitions == ()


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_bytes_in_reasons_lose_or_invent_a_node(reasons: list[bytes]) -> None:
    rows = [node(NodeList=f"n{at}", Reason=reason) for at, reason in enumerate(reasons)]
    nodes = parse_nodes(queue(*rows)).nodes
    assert [found.name for found in nodes] == [f"n{at}" for at in range(len(reasons))]
    assert len(NODE_FIELDS) == 22


def test_no_reason_forges_a_row_in_a_marked_answer() -> None:
    mark = "12ab34cd56ef"
    assert node_args(mark)[4].endswith(f",Reason:0\x1e{mark}")
    forged = b"x\x1e\n" + node(NodeList="ghost")
    raw = queue(node(NodeList="a", Reason=forged), node(NodeList="b"), mark=mark)
    assert [found.name for found in parse_nodes(raw, mark=mark).nodes] == ["a", "b"]


def test_a_reason_that_imitates_a_row_is_not_taken_for_that_row_from_the_cache() -> None:
    cache: dict[bytes, Node] = {}
    rows = [node(), node(PartitionName="prio")]
    parse_nodes(queue(*rows, mark="ab"), cache=cache, mark="ab")
    reading = parse_nodes(queue(rows[0] + b"\x1e\n" + rows[1], mark="ab"), cache=cache, mark="ab")
    assert reading.nodes[0].partitions == ("gpu",)


def test_a_number_that_is_too_long_costs_only_itself() -> None:
    huge = "9" * 5000
    found = one(CPUsState=f"{huge}/1/0/{huge}", Memory=huge, Weight=huge, Gres=f"gpu:h100:{huge}")
    assert (found.name, found.cpus_used, found.mem_mib, found.weight) == ("gpu-st-p5-1", None, None, None)
    assert found.gpus_total is None
