"""GPUs keep their places over new streams of their node, and those that only the bus knows are lost."""

from __future__ import annotations

import json

from cockpit.formats.probe_slots import HIDDEN
from cockpit.gpu_models import Lack, Missing, NodeReading
from tests.formats.test_probe import FAST, T0, fresh, gpu, hello, read, read_on, sample


def keys(node: NodeReading) -> list[str]:
    return [one.gpu.key for one in node.gpus]


def test_a_gpu_that_was_seen_keeps_its_place_over_a_new_stream() -> None:
    four = [gpu(place) for place in range(4)]
    last = read(hello(*four), sample(g=[FAST] * 4))
    three = hello(*(gpu(place, i=row) for row, place in enumerate((0, 2, 3))), pci=["0000:54:00"])
    row = [50, *FAST[1:]]
    again = read_on(fresh(last), three, sample(9, g=[FAST, row, FAST], p=[[1, 7, 1, None]], x=[[T0, 1, 8, 79]]))
    assert keys(again) == keys(last)
    assert [one.util_pct for one in again.gpus] == [71, 71, 50, 71]
    assert [one.lost is not None for one in again.gpus] == [False, True, False, False]
    assert again.gpus[1].taken_at == T0 + 1
    assert again.processes[0].gpu == again.events[0].gpu == "GPU-2"
    back = read_on(fresh(again), hello(*four), sample(10, g=[FAST] * 4))
    assert [one.lost for one in back.gpus] == [None] * 4


def test_until_the_driver_lists_its_gpus_the_known_ones_are_not_lost_and_a_reboot_forgets_them() -> None:
    last = read(hello(), sample(g=[FAST, FAST]))
    starting = json.dumps({**json.loads(hello()), "gpus": []}).encode()
    waits = read_on(fresh(last), starting, sample(5, dr=["starting", T0, "", None]))
    assert keys(waits) == ["GPU-0", "GPU-1"]
    assert [one.lost for one in waits.gpus] == [None, None]
    assert keys(read_on(fresh(last), hello(gpu(1), boot="b-2", pci=[]), sample(5))) == ["GPU-1"]


def test_a_gpu_on_the_bus_that_the_driver_does_not_list_is_lost() -> None:
    bus = ["0000:53:00", "0000:54:00", "0000:55:00"]
    node = read(hello(gpu(0), gpu(2), pci=bus), sample(g=[FAST, [5, *FAST[1:]]]))
    assert keys(node) == ["GPU-0", "0000:54:00", "GPU-2"]
    assert [one.lost and one.lost.kind for one in node.gpus] == [None, Lack.LOST, None]
    assert node.gpus[2].util_pct == 5
    reader = fresh()
    for line in (hello(gpu(0), gpu(2), pci=bus), sample(1)):
        reader.feed(line)
    found = read_on(reader, hello(gpu(0), gpu(1), gpu(2), pci=bus, rev=2), sample(2, rev=2, g=[FAST] * 3))
    assert keys(found) == ["GPU-0", "GPU-1", "GPU-2"]
    assert [one.lost for one in found.gpus] == [None] * 3


def test_a_gpu_without_a_handle_takes_its_own_place() -> None:
    last = read(hello(), sample(g=[FAST, FAST]))
    nameless = {"i": 1, "uuid": "", "pci": "", "err": "e15"}
    node = read_on(fresh(last), hello(gpu(0), nameless, pci=[]), sample(3, g=[FAST, ["e15"]]))
    assert keys(node) == ["GPU-0", "GPU-1"]
    assert node.gpus[1].lost == Missing(Lack.LOST, "GPU is lost", 15)


def test_new_names_without_end_do_not_grow_the_list() -> None:
    reader = fresh()
    for turn in range(20):
        reader.feed(hello(*(gpu(place, uuid=f"GPU-{turn}-{place}", pci=f"{turn}:{place}") for place in range(9))))
    node = read_on(reader, sample(g=[FAST] * 9))
    assert len(node.gpus) == 64
    assert sum(one.lost is None for one in node.gpus) == 9


BUS = ["0000:53:00", "0000:54:00", "0000:55:00"]


def test_gpus_that_are_kept_from_the_probe_are_hidden_and_not_lost() -> None:
    node = read(hello(gpu(1), pci=BUS, hid=[0, 2]), sample(g=[FAST]))
    assert node.hidden_gpus == (0, 2)
    assert {one.gpu.key: one.lost for one in node.gpus} == {BUS[0]: HIDDEN, "GPU-1": None, BUS[2]: HIDDEN}
    # Nor are those that another session could see.
    last = read(hello(gpu(0), gpu(1), pci=BUS[:2]), sample(g=[FAST, FAST]))
    again = read_on(fresh(last), hello(gpu(1), pci=BUS[:2], hid=[0]), sample(9, g=[FAST]))
    assert [one.lost for one in again.gpus] == [HIDDEN, None]


def test_a_gpu_that_is_lost_is_not_taken_for_a_hidden_one() -> None:
    node = read(hello(gpu(1), pci=BUS, hid=[0]), sample(g=[FAST]))
    assert [one.lost.kind for one in node.gpus if one.lost] == [Lack.LOST, Lack.LOST]
    assert read(hello(gpu(1), pci=BUS, hid=["0", None, [2]]), sample(g=[FAST])).hidden_gpus == ()
