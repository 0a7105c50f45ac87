"""Xids and the like, each counted once, whoever tells them and however often."""

from __future__ import annotations

from cockpit.formats.kernel_log import KernelKind
from cockpit.gpu_models import Driver, DriverState, GpuEvent, KernelMessage, NodeReading
from cockpit.sources.gpu_events import KEEP, NodeEvents
from tests.unit.test_fleet import sample

BUS = "0000:01:00"  # of sample(1)
XID_79 = f"NVRM: Xid (PCI:{BUS}): 79, pid=1234, name=python, GPU has fallen off the bus."
OFF_BUS = f"NVRM: GPU {BUS}.0: GPU has fallen off the bus."


def xid(code: int, pid: int = 1) -> str:
    return f"NVRM: Xid (PCI:{BUS}): {code}, pid={pid}, name=python, Ch 00000008"


def lustre(number: int) -> str:
    return f"LustreError: 11-0: fs-OST{number:04x}-osc: operation ost_connect to node failed: rc = -19"


def node(
    at: float, *lines: tuple[float, str], nvml: tuple[GpuEvent, ...] = (), boot: str = "b2", **changes: object
) -> NodeReading:
    messages = tuple(KernelMessage(when, text, boot) for when, text in lines)
    told: dict[str, object] = {"log_source": "journal", "interval_s": 2.0, "driver": Driver(DriverState.OK), **changes}
    return NodeReading(at, 1, boot_id="b2", gpus=(sample(1),), messages=messages, events=nvml, **told)  # type: ignore[arg-type]


def seen(*readings: NodeReading) -> NodeEvents:
    found = NodeEvents()
    for reading in readings:
        found = found.after(reading)
    return found


def codes(events: NodeEvents) -> list[int | None]:
    return [event.code for event in events.of_gpu(BUS)]


def test_a_new_stream_that_reads_the_log_again_adds_nothing() -> None:
    log = ((900.0, xid(31)), (900.5, xid(31)), (950.0, XID_79))
    events = seen(node(1000, *log))
    assert codes(events) == [31, 31, 79]
    for at in (1100, 1200):
        events = events.after(node(at, *log))
    assert codes(events) == [31, 31, 79]
    assert codes(events.after(node(1300, (1290.0, xid(31))))) == [31, 31, 79, 31]


def test_the_ring_buffer_tells_the_same_line_with_another_time() -> None:
    events = seen(node(1000, (900.0, xid(31)), log_source="kmsg"), node(1100, (900.4, xid(31)), log_source="kmsg"))
    assert codes(events) == [31]


def test_a_kill_for_memory_that_came_in_two_parts_stays_what_it_was() -> None:
    asked = "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    killed = "Out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB"
    events = seen(node(1000, (999.0, asked)), node(1002, (999.1, killed)))
    before = len(events.events)
    assert before > 0
    assert len(events.after(node(1100, (999.0, asked), (999.1, killed))).events) == before


def test_lines_of_the_same_text_in_another_boot_count() -> None:
    assert codes(seen(node(1000, (900.0, xid(31)), boot="b1"), node(1100, (900.0, xid(31))))) == [31, 31]


def test_a_lost_gpu_that_the_kernel_tells_twice_is_one() -> None:
    for lines in (((900.0, XID_79), (900.1, OFF_BUS)), ((900.0, OFF_BUS), (900.1, XID_79))):
        events = seen(node(1000, *lines))
        assert [event.kind for event in events.of_gpu(BUS)] == [KernelKind.XID]
        assert events.events[0].more == (OFF_BUS,)
        assert codes(seen(node(1000, lines[0]), node(1002, lines[1]))) == [79]
    assert codes(seen(node(1000, (900.0, XID_79), (900.1, OFF_BUS), (900.2, OFF_BUS)))) == [79, 79]
    assert codes(seen(node(1000, (800.0, XID_79), (900.0, OFF_BUS)))) == [79, 79]


def test_nvml_and_two_lines_of_the_kernel_are_two() -> None:
    told = GpuEvent(901.0, "GPU-1", "xid", 31)
    lines = (900.0, xid(31)), (903.0, xid(31, pid=2))
    assert codes(seen(node(902, nvml=(told,)), node(904, *lines))) == [31, 31]
    assert codes(seen(node(904, *lines), node(906, nvml=(told,)))) == [31, 31]
    second = GpuEvent(904.0, "GPU-1", "xid", 31)
    assert codes(seen(node(904, *lines), node(906, nvml=(told, second)))) == [31, 31]
    third = GpuEvent(905.0, "GPU-1", "xid", 31)
    assert codes(seen(node(904, *lines), node(906, nvml=(told, second, third)))) == [31, 31, 31]


def test_the_window_follows_the_interval_and_what_the_driver_was_late() -> None:
    line, told = (900.0, xid(31)), GpuEvent(906.0, "GPU-1", "xid", 31)
    assert codes(seen(node(902, line), node(906, nvml=(told,)))) == [31]
    assert codes(seen(node(902, line), node(906, nvml=(told,), interval_s=1.0))) == [31, 31]
    slow = Driver(DriverState.OK, answer_ms=3000.0)
    assert codes(seen(node(902, line), node(906, nvml=(told,), interval_s=1.0, driver=slow))) == [31]
    waited = Driver(DriverState.SLOW, since=902.0)
    assert codes(seen(node(902, line), node(906, nvml=(told,), interval_s=1.0, driver=waited))) == [31]


def test_other_lines_push_out_no_xid_nor_make_it_new() -> None:
    events = seen(node(1000, (900.0, XID_79)))
    for part in range(2 * KEEP // 10):
        lines = tuple((1000.0 + part + n / 100, lustre(10 * part + n)) for n in range(10))
        events = events.after(node(1001.0 + part, *lines))
    assert codes(events) == [79]
    assert len(events.events) == KEEP + 1
    assert codes(events.after(node(1200, (900.0, XID_79)))) == [79]


def test_what_is_older_than_two_hours_is_let_go() -> None:
    events = seen(node(1000, (900.0, xid(31)), (990.0, xid(13))))
    assert codes(events.after(node(900 + 7201))) == [13]
    assert codes(events.after(node(900 + 7201, (900.0, xid(31))))) == [13]
    assert events.after(node(9000)) == NodeEvents()
