import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.gres import Gpus, gpus_of, job_gpus, memory_mib, number, parse_gres
from cockpit.models import Gres


@pytest.mark.parametrize(
    ("text", "gres"),
    [
        ("gpu:8", [Gres("gpu", None, 8)]),
        ("gpu:h100:8", [Gres("gpu", "h100", 8)]),
        ("gpu:h100:8(S:0-1)", [Gres("gpu", "h100", 8)]),
        ("gpu:h100:4(IDX:0-3)", [Gres("gpu", "h100", 4, (0, 1, 2, 3))]),
        ("gpu:h100:3(IDX:0,2,5-6)", [Gres("gpu", "h100", 3, (0, 2, 5, 6))]),
        ("gpu:h100:0(IDX:N/A)", [Gres("gpu", "h100", 0, ())]),
        ("gpu:h100:0", [Gres("gpu", "h100", 0)]),
        ("gpu:p100:2(IDX:1,3),lscratch:0", [Gres("gpu", "p100", 2, (1, 3)), Gres("lscratch", None, 0)]),
        ("gpu:a:2,gpu:b:2", [Gres("gpu", "a", 2), Gres("gpu", "b", 2)]),
        ("gres:gpu:8", [Gres("gpu", None, 8)]),
        ("gres/gpu:8", [Gres("gpu", None, 8)]),
        ("gres/gpu:h100=8", [Gres("gpu", "h100", 8)]),
        ("gpu:(null):2(IDX:0-1)", [Gres("gpu", None, 2, (0, 1))]),
        ("shard:h100:16,mps:100", [Gres("shard", "h100", 16), Gres("mps", None, 100)]),
        ("gpu:a100_3g.20gb:2", [Gres("gpu", "a100_3g.20gb", 2)]),
        ("gpu:tesla_v100-sxm3-32gb:16(S:0-1)", [Gres("gpu", "tesla_v100-sxm3-32gb", 16)]),
        ("lscratch:2K", [Gres("lscratch", None, 2048)]),
        ("craynetwork:no_consume:4", [Gres("craynetwork", None, 4)]),
        ("gpu", [Gres("gpu", None, None)]),
        ("gpu:h100:1,shard:h10", [Gres("gpu", "h100", 1), Gres("shard", "h10", None)]),
        ("gpu:h100:8(IDX:0-99999999)", [Gres("gpu", "h100", 8, None)]),
        ("(null)", []),
        ("N/A", []),
        ("", []),
    ],
)
def test_every_spelling(text: str, gres: list[Gres]) -> None:
    assert list(parse_gres(text)) == gres


def test_a_request_without_a_count_asks_for_one() -> None:
    assert parse_gres("gres/gpu", implied=1) == (Gres("gpu", None, 1),)
    assert parse_gres("gres/gpu:h100", implied=1) == (Gres("gpu", "h100", 1),)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:a:2(IDX:0-1),gpu:b:1(IDX:4)", Gpus(3, "a,b", (0, 1, 4))),
        ("gpu:a:8,mig:a_3g.40gb:7,gpu:b:4", Gpus(12, "a,b", None)),
        ("gres/gpu=4,gres/gpu:h100=4", Gpus(4, "h100")),
        ("cpu=9,gres/gpu:a=2,gres/gpu:b=2", Gpus(4, "a,b")),
        ("billing=64,cpu=9,gres/gpu:a100_3g.20gb=1,gres/gpu=1,mem=60G,node=1", Gpus(1, "a100_3g.20gb")),
        ("gpu:0", Gpus(0)),
        ("gpu:a:2,gpu:b", Gpus(None, "a,b")),
        ("gpu,gpu:a:2", Gpus(None, "a")),
        ("gres/gpu=4,gres/gpu:h100", Gpus(4, "h100")),
        ("shard:4", Gpus()),
        ("(null)", Gpus()),
    ],
)
def test_gpus_are_counted_plain_or_by_type_but_never_twice(text: str, gpus: Gpus) -> None:
    assert gpus_of(parse_gres(text)) == gpus


def test_gpus_of_a_job_come_from_the_first_text_that_tells_them() -> None:
    plain = "cpu=8,mem=8000M,node=2,billing=8"
    assert job_gpus(tres_alloc=f"{plain},gres/gpu=16,gres/gpu:h100=16", nodes=2) == Gpus(16, "h100")
    assert job_gpus(tres_alloc=f"{plain},gres/gpu=16", per_node="gres/gpu:h100:8", nodes=2) == Gpus(16, "h100")
    assert job_gpus(tres_alloc=plain, per_node="gres:gpu:8", nodes=2) == Gpus(16)
    assert job_gpus(tres_alloc=plain, per_node="gres/gpu:h100:4", nodes=1) == Gpus(4, "h100")
    assert job_gpus(tres_alloc=plain, per_node="N/A", per_job="gres/gpu:3", nodes=2) == Gpus(3)
    assert job_gpus(per_task="cpu=8,gres/gpu=1", tasks=16) == Gpus(16)
    assert job_gpus(per_task="cpu=8,gres/gpu=1", tasks=None) == Gpus()
    assert job_gpus(per_node="gres/gpu", nodes=4) == Gpus(4)
    assert job_gpus(per_node="gres/gpu:a:2,gres/gpu:b:1", nodes=2) == Gpus(6, "a,b")
    assert job_gpus(tres_alloc=plain, per_node="N/A", per_task="cpu=8", nodes=2, tasks=2) == Gpus()


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("375G", 384_000),
        ("37.50G", 38_400),
        ("2000000M", 2_000_000),
        ("2000000", 2_000_000),
        ("1T", 1_048_576),
        ("512K", 1),
        ("4Gn", 4096),
        ("0", 0),
        ("N/A", None),
        ("", None),
        ("4294967294", None),
        ("lots", None),
    ],
)
def test_memory(text: str, mib: int | None) -> None:
    assert memory_mib(text) == mib


def test_numbers_know_slurms_units_and_its_words_for_nothing() -> None:
    assert [number(text) for text in ("0", "384", "2K", "1M")] == [0, 384, 2048, 1_048_576]
    assert [number(text) for text in ("N/A", "", "(null)", "4294967294", "4294967295", "-1", "x")] == [None] * 7


HUGE = "9" * 5000


@pytest.mark.parametrize("text", ["9" * 19, HUGE, f"{HUGE}K", f"{HUGE}.5G"])
def test_what_is_too_long_is_no_number(text: str) -> None:
    assert number(text) is None
    assert memory_mib(text) is None
    assert gpus_of(parse_gres(f"gpu:{text}")).count is None
    assert gpus_of(parse_gres(f"gpu:h100:1(IDX:{text})")).indices is None


TYPES = st.text(alphabet="abh019_-.", min_size=1, max_size=12).filter(lambda text: not text.isdigit())
INDICES = st.sets(st.integers(0, 15), min_size=1, max_size=8)


USED = st.dictionaries(TYPES, INDICES, min_size=1, max_size=4)


@given(USED, st.sampled_from(["gpu", "gres/gpu", "gres:gpu"]))
def test_whatever_is_written_is_read_back(used: dict[str, set[int]], name: str) -> None:
    items = [f"{name}:{kind}:{len(at)}(IDX:{','.join(map(str, sorted(at)))})" for kind, at in used.items()]
    gpus = gpus_of(parse_gres(",".join(items)))
    assert gpus.count == sum(map(len, used.values()))
    assert gpus.type == ",".join(used)
    assert gpus.indices == tuple(sorted(set().union(*used.values())))


@given(st.text(alphabet="gpu:h10()IDX,-=/ K", max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    gpus_of(parse_gres(text))
    memory_mib(text)
