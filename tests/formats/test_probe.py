"""The reader of the probe's lines: what healthy nodes tell, and what hostile ones may send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.formats.probe import ProbeReader
from cockpit.formats.probe_values import MAX_LINE, value
from cockpit.gpu_models import DriverState, Lack, Missing, NodeReading
from cockpit.text import printable

T0 = 1_760_000_000.0
FAST = [71, 33, 70000, 64, 77, 512, 1755, 0]
SLOW = [700, 0, 0, 0, 0, 0, 18, 5, 16, 0]


def gpu(place: int, **changes: object) -> dict[str, object]:
    entry: dict[str, object] = {
        "i": place,
        "minor": place,
        "uuid": f"GPU-{place}",
        "pci": f"0000:{0x53 + place:02x}:00",
        "name": "NVIDIA H100 80GB HBM3",
        "serial": "165",
        "max": [81559, 1980, 5, 16],
        "mig": 0,
    }
    return {**entry, **changes}


def hello(*gpus: dict[str, object], **changes: object) -> bytes:
    told = {
        "k": "h", "v": 1, "t": T0, "rev": 1, "iv": 2, "host": "gpu-1", "kernel": "6.1", "boot": "b-1",
        "booted": T0 - 3600, "cpus": 192, "drv": {"driver": "580.95.05", "nvml": "13.580.95.05", "cuda": 13000},
        "gpus": list(gpus) or [gpu(0), gpu(1)], "pci": ["0000:53:00"], "log": "journal", "no": {},
        "efa": [["rdmap16s27", "fe80::1", ["rx_drops", "tx_bytes"]]],
    }  # fmt: skip
    return json.dumps({**told, **changes}).encode()


def sample(number: int = 1, **changes: object) -> bytes:
    told = {"k": "s", "n": number, "t": T0 + number, "rev": 1, "l": [1, 2, 3], "m": [2048, 1024], "d": 0}
    return json.dumps({**told, **changes}).encode()


def fresh(last: NodeReading | None = None) -> ProbeReader:
    """A reader on the day of these lines."""
    return ProbeReader(last, now=lambda: T0)


def read(*lines: bytes) -> NodeReading:
    """The last reading."""
    reader = fresh()
    found = [reading for line in lines if (reading := reader.feed(line)) is not None]
    return found[-1]


def test_a_node() -> None:
    node = read(hello(), sample(g=[FAST, FAST], G=[SLOW, SLOW], q=1.5))
    assert (node.hostname, node.boot_id, node.cpus, node.uptime_s) == ("gpu-1", "b-1", 192, 3601)
    assert (node.load, node.mem_total_mib, node.mem_available_mib) == ((1, 2, 3), 2048, 1024)
    assert (node.driver.state, node.driver.cuda, node.driver.answer_ms) == (DriverState.OK, "13.0", 1.5)
    assert [one.gpu.key for one in node.gpus] == ["GPU-0", "GPU-1"]
    assert node.gpus[1].power_w == 512
    assert node.gpus[1].taken_at == node.gpus[1].slow_at == T0 + 1


def test_readings_stay_until_there_are_new_ones() -> None:
    node = read(hello(), sample(1, g=[FAST, FAST], mt=[["/", "ext4", "d", 10, 5, 4, 3, 2]]), sample(2))
    assert node.number == 2
    assert node.gpus[0].util_pct == 71
    assert node.gpus[0].taken_at == T0 + 1
    assert node.mounts[0].available_mib == 4


def test_rows_of_another_list_of_gpus_are_not_taken() -> None:
    node = read(hello(), sample(rev=2, g=[FAST, FAST], p=[[0, 1, 2, None]], x=[[T0, 0, 8, 79]]))
    assert isinstance(node.gpus[0].util_pct, Missing)
    assert (node.processes, node.events) == ((), ())


def test_a_new_list_keeps_what_was_read_of_gpus_that_stay() -> None:
    reader = fresh()
    for line in (hello(), sample(1, g=[FAST, FAST])):
        reader.feed(line)
    node = read_on(reader, hello(gpu(5), gpu(1), rev=2), sample(2, rev=2))
    assert [one.gpu.key for one in node.gpus] == ["GPU-0", "GPU-1", "GPU-5"]
    assert (node.gpus[0].lost or Missing(Lack.FAILED)).code == 28
    assert node.gpus[1].util_pct == 71
    assert isinstance(node.gpus[2].util_pct, Missing)


def test_times_that_cannot_be_are_none() -> None:
    far = T0 + 2e7 * 3
    process = [0, 7, 1, None, 1, "a", "b", 1.0, 1, "0", "0", "-", "-", "-", "-"]
    node = read(hello(booted=9e14), sample(dr=["hung", far, "", None], km=[[9e14, "NVRM: a"]], x=[[1, 0, 8, 79]],
                p=[process], mt=[["/x", "nfs4", "s", "?", 9e14]]))  # fmt: skip
    assert (node.booted_at, node.driver.since, node.messages, node.events) == (None, None, (), ())
    assert node.processes[0].started_at is None
    assert (node.mounts[0].hung_since, node.mounts[0].error) == (None, "does not answer")
    reader = fresh()
    reader.feed(hello())
    assert reader.feed(sample(t=9e14)) is None
    assert reader.bad_lines == 1


def read_on(reader: ProbeReader, *lines: bytes) -> NodeReading:
    return [reading for line in lines if (reading := reader.feed(line)) is not None][-1]


@pytest.mark.parametrize(
    ("word", "kind", "code"),
    [("-", Lack.UNSUPPORTED, None), ("p", Lack.DENIED, None), ("e27", Lack.FAILED, 27), ("e15", Lack.LOST, 15),
     ("e999", Lack.LOST, 999), ("e3", Lack.UNSUPPORTED, 3), ("?broken", Lack.FAILED, None), ("what", Lack.FAILED, None),
     (None, Lack.NOT_READ, None), (True, Lack.FAILED, None), ([1], Lack.FAILED, None)],
)  # fmt: skip
def test_words_for_missing_values(word: object, kind: Lack, code: int | None) -> None:
    found = value(word)
    assert isinstance(found, Missing)
    assert (found.kind, found.code) == (kind, code)
    assert found.why or kind is Lack.NOT_READ


def test_a_whole_row_that_failed() -> None:
    node = read(hello(), sample(1, g=[FAST, FAST]), sample(2, g=[["e15"], FAST]))
    assert node.gpus[0].lost == Missing(Lack.LOST, "GPU is lost", 15)
    assert node.gpus[0].util_pct == 71
    assert node.gpus[1].lost is None


def test_throttle_and_recovery_in_words() -> None:
    fast, slow = [*FAST[:-1], 0x4 | 0x40], [*SLOW[:-1], 2]
    node = read(hello(), sample(g=[fast, FAST], G=[slow, SLOW]))
    assert node.gpus[0].throttle == ("power cap", "HW thermal")
    assert node.gpus[0].recovery == "Node Reboot"
    assert (node.gpus[1].throttle, node.gpus[1].recovery) == ((), "None")


def corrected(*counts: object) -> list[float | None]:
    """The rates after samples 10 s apart."""
    reader = fresh()
    reader.feed(hello(gpu(0)))
    rates = []
    for place, count in enumerate(counts):
        node = reader.feed(sample(10 * place, G=[[700, count, *SLOW[2:]]]))
        assert node is not None
        rates.append(node.gpus[0].ecc_corrected_per_s)
    return rates


def test_rate_of_corrected_errors() -> None:
    assert corrected(100, 150, 150) == [None, 5.0, 0.0]
    assert corrected(100, 20, 40) == [None, None, 2.0]  # lower: counted from a new beginning
    assert corrected(100, "e27", 150) == [None, None, None]
    assert corrected(0, 0)[1] == 0.0


def test_the_driver_not_answering_keeps_the_rest() -> None:
    hung = ["hung", T0 - 60, "no answer within 30 s", None]
    node = read(hello(), sample(1, g=[FAST, FAST]), sample(2, dr=hung))
    assert (node.driver.state, node.driver.since) == (DriverState.HUNG, T0 - 60)
    assert node.driver.version == "580.95.05"
    assert list(node.load) == [1, 2, 3]
    assert node.gpus[0].taken_at == T0 + 1


def test_no_driver_is_absent_and_a_refusing_one_has_failed() -> None:
    assert read(hello(), sample(dr=["none", T0, "no NVIDIA driver", 12])).driver.state is DriverState.ABSENT
    refused = read(hello(), sample(dr=["none", T0, "Driver Not Loaded", 9])).driver
    assert (refused.state, refused.code, refused.why) == (DriverState.FAILED, 9, "Driver Not Loaded")
    assert read(hello(), sample(dr=["new word", T0, "", None])).driver.state is DriverState.UNKNOWN


def test_processes() -> None:
    rows: list[Any] = [
        [1, 4711, 5120, 7, 1, "alice", "python", T0, 88, "0", "3", 11, 3, "p", "-"],
        [0, 99, "-", None, 0],
        [0, 100, 1, None],
        [9, 5, 1, None],
    ]
    node = read(hello(), sample(p=rows))
    full, vanished, new = node.processes
    assert (full.gpu, full.pid, full.mem_mib, full.gpu_instance, full.exists) == ("GPU-1", 4711, 5120, 7, True)
    assert (full.user, full.command, full.started_at) == ("alice", "python", T0)
    assert (full.job_id, full.step, full.task, full.rank, full.local_rank) == (88, "0", "3", 11, 3)
    assert isinstance(full.procid, Missing)
    assert full.procid.kind is Lack.DENIED
    assert isinstance(full.world_size, Missing)
    assert full.world_size.kind is Lack.UNSUPPORTED
    assert (vanished.exists, new.exists) == (False, None)
    assert read(hello(), sample(1, p=rows), sample(2)).processes == node.processes
    assert read(hello(), sample(1, p=rows), sample(2, p=[])).processes == ()


def test_mounts() -> None:
    rows = [["/fsx", "lustre", "10.0.0.1@tcp:/a", "?", T0], ["/home", "nfs4", "s", "!", "Stale file handle"], ["", "x"]]
    hung, broken = read(hello(), sample(mt=rows)).mounts
    assert (hung.path, hung.hung_since, hung.total_mib) == ("/fsx", T0, None)
    assert (broken.error, broken.hung_since) == ("Stale file handle", None)


def test_efa_changes_are_joined() -> None:
    node = read(hello(), sample(1, e=[[0, 0, 0, 1, 5000]]), sample(2, e=[[0, 1, 7000]]), sample(3))
    assert dict(node.efa[0].counters) == {"rx_drops": 0, "tx_bytes": 7000}
    assert node.efa_at == T0 + 2
    # The same device after a new hello keeps its values, another one starts without any.
    other = hello(rev=2, efa=[["rdmap32s27", "fe80::2", ["rx_drops"]]])
    assert dict(read(hello(), sample(1, e=[[0, 0, 3]]), other, sample(2, e=[])).efa[0].counters) == {"rx_drops": None}


def test_kernel_messages_and_events_belong_to_one_line() -> None:
    lines = (
        sample(1, km=[[T0, "NVRM: a"], [T0, "NVRM: b", "b-0"]], x=[[T0, 1, 8, 79], [T0, 5, 0x4000, 0]], kd=3),
        sample(2),
    )
    first = read(hello(), lines[0])
    assert [(message.text, message.boot_id) for message in first.messages] == [("NVRM: a", "b-1"), ("NVRM: b", "b-0")]
    assert [(event.gpu, event.kind, event.data) for event in first.events] == [
        ("GPU-1", "xid", 79),
        ("", "gpu unavailable", 0),
    ]
    second = read(hello(), *lines)
    assert (second.messages, second.events, second.messages_dropped) == ((), (), 3)


def test_stuck_processes_stay_while_there_are_any() -> None:
    lines = (sample(1, d=2, D=[[7, "nvidia-smi", "nvidia_ioctl", 310]]), sample(2, d=2), sample(3, d=0))
    assert read(hello(), *lines[:2]).stuck[0].wait_channel == "nvidia_ioctl"
    assert read(hello(), *lines).stuck == ()


def test_duplicates_have_keys_of_their_own() -> None:
    node = read(hello(gpu(0), gpu(0), {"i": 0}, {}, {}), sample())
    keys = [one.gpu.key for one in node.gpus]
    assert len(set(keys)) == 5
    assert keys[0] == "GPU-0"


def test_unified_memory() -> None:
    assert read(hello(gpu(0, max=[0, 1, "-", "-"])), sample()).gpus[0].gpu.unified_memory


BAD = [
    b"",
    b"not json",
    b"[]",
    b"12",
    b'{"k":"s"',
    b'{"k":"s","n":1,"t":1e999,"rev":1}',
    b'{"k":"x"}',
    b'{"k":["s"]}',
    b"[" * 100_000,
    b'{"k":' + b'{"a":' * 50_000,
    b'{"n":' + b"9" * 200_000 + b"}",
    b"\xff\xfe\x00",
    b"x" * (MAX_LINE + 1),
    b'{"k":"h","v":2}',
]


@pytest.mark.parametrize("line", BAD, ids=range(len(BAD)))
def test_a_bad_line_is_counted_and_told(line: bytes) -> None:
    reader = fresh()
    reader.feed(hello())
    assert reader.feed(line) is None
    node = reader.feed(sample())
    assert node is not None
    assert (node.bad_lines, reader.bad_lines) == (1, 1)
    assert node.bad_line
    assert node.bad_line == printable(node.bad_line)


def test_a_sample_before_any_hello_is_a_bad_line() -> None:
    reader = fresh()
    assert reader.feed(sample()) is None
    assert reader.bad_lines == 1


def test_numbers_that_are_none() -> None:
    row = b"[NaN,1e999,%s,1,1,1,1,1]" % (b"9" * 5000)
    line = b'{"k":"s","n":1,"t":1760000001,"rev":1,"m":[NaN,-Infinity],"l":[1e999,true,"x"],"d":1e400,"g":[%s]}'
    node = read(hello(), line % row)
    assert (node.mem_total_mib, node.mem_available_mib, node.load, node.stuck_count) == (None, None, (), None)
    for odd in (node.gpus[0].util_pct, node.gpus[0].mem_util_pct, node.gpus[0].mem_used_mib):
        assert isinstance(odd, Missing)
        assert odd.kind is Lack.FAILED
    assert node.gpus[0].temp_c == 1


def strings(of: object) -> list[str]:
    """Every string inside a model."""
    if isinstance(of, str):
        return [of]
    if isinstance(of, dict):
        return [text for pair in of.items() for one in pair for text in strings(one)]
    if isinstance(of, (tuple, list)):
        return [text for one in of for text in strings(one)]
    slots = getattr(of, "__slots__", ())
    return [text for name in slots for text in strings(getattr(of, name))]


def test_escape_codes_are_made_visible_everywhere() -> None:
    evil = "\x1b[31m\x9b2J\u202e\n" + "x" * 5000
    entry = gpu(0, uuid=evil, pci=evil, name=evil, serial=evil, inst=[[1, 2, evil, evil, 5]])
    line = sample(
        g=[["?" + evil]], i=[[[1, 2, 3]]], p=[[0, 1, "?" + evil, None, 1, evil, evil, 1, 2, evil, evil, 1, 1, 1, 1]],
        mt=[[evil, evil, evil, "!", evil]], km=[[T0, evil, evil]], D=[[1, evil, evil, 1]], d=1, dr=["smi", 1, evil, 1],
        c={"f": [evil, "uuid"], "rc": 1, "out": evil}, e=[],
    )  # fmt: skip
    reader = fresh()
    reader.feed(hello(entry, host=evil, boot=evil, kernel=evil, log=evil, no={evil: evil}, pci=[evil],
                      drv={"driver": evil, "nvml": evil}, efa=[[evil, evil, [evil]]]))  # fmt: skip
    node = reader.feed(line)
    assert node is not None
    found = strings(node)
    assert any("␛" in text for text in found)
    assert all(text == printable(text) for text in found)
    assert max(map(len, found)) < 1000
    assert reader.feed(json.dumps({"k": "b", "why": evil}).encode()) is None
    assert reader.ended == printable(reader.ended)


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=25,
)
KEYS = ["n", "t", "rev", "l", "m", "d", "D", "dr", "q", "g", "G", "i", "p", "x", "e", "mt", "km", "kd", "c"]
HELLO_KEYS = ["v", "t", "rev", "iv", "host", "boot", "booted", "cpus", "drv", "gpus", "pci", "efa", "log", "no"]
ROWS = st.lists(st.lists(JUNK, max_size=16), max_size=4)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(HELLO_KEYS), JUNK | ROWS, max_size=5),
    st.lists(st.dictionaries(st.sampled_from(KEYS), JUNK | ROWS, max_size=6), max_size=4),
)
def test_no_line_breaks_the_reader(greeting: dict[str, Any], samples: list[dict[str, Any]]) -> None:
    reader = fresh()
    reader.feed(hello())
    reader.feed(json.dumps({**json.loads(hello()), **greeting}).encode())
    for number, told in enumerate(samples):
        node = reader.feed(json.dumps({**json.loads(sample(number)), **told}).encode())
        if node is not None:
            assert all(text == printable(text) for text in strings(node))
            assert len({one.gpu.key for one in node.gpus}) == len(node.gpus)
    after = reader.feed(sample(99))
    assert after is not None
    assert after.number == 99


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(line: bytes) -> None:
    reader = fresh()
    reader.feed(line)
    reader.feed(hello())
    assert reader.feed(sample()) is not None
