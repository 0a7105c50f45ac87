"""Which GPUs the node has: what the driver tells now, joined to what was known before.

A GPU never leaves the list: one that is lost keeps its last identity and gets an error instead of values.
"""

import os

from cockpit.probe.agent.values import pci_id, read_text

NOT_LISTED = "e28"  # NVML's "GPU not found", for one that the driver has stopped to name
_NVIDIA = "0x10de"
_DEVICE = "nvidia"
_GPU_CLASSES = ("0x0302", "0x0300")

TYPE_CHECKING = False
if TYPE_CHECKING:
    Entry = dict[str, object]


class Inventory:
    """The entries in the order of the wire's rows. `revision` grows whenever they change."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.revision = 0
        self._rows: list[int] = []  # place in the driver's answer -> place in entries

    def update(self, told: "list[Entry]", pci: "list[str]") -> None:
        """Take the driver's list (`gpus` of the NVML child); `pci` are the bus ids the kernel sees."""
        entries = [dict(entry) for entry in self.entries]
        rows: list[int] = []
        for entry in told:
            place = _place(entries, entry)
            if place is None:
                place = _adopt(entries, entry, rows, pci, told)
            elif place in rows:  # the driver names one GPU twice
                entries[place]["dup"] = 1
                rows.append(-1)
                continue
            rows.append(place)
            entries[place] = _merge(entries[place], entry)
        for place, entry in enumerate(entries):
            if place not in rows:
                entry["err"] = NOT_LISTED
        self._rows = rows
        if entries != self.entries:
            self.entries = entries
            self.revision += 1

    def spread(self, rows: "list[object]") -> "list[object]":
        """Rows in the driver's order as rows in the order of `entries`; a lost GPU gets its error."""
        found: list[object] = [[entry.get("err", NOT_LISTED)] for entry in self.entries]
        for place, row in enumerate(rows[: len(self._rows)]):
            if self._rows[place] >= 0:
                found[self._rows[place]] = row
        return found

    def place(self, row: int) -> int:
        """Where the driver's GPU `row` stands in `entries`; -1 when it does not."""
        return self._rows[row] if 0 <= row < len(self._rows) else -1


def _place(entries: "list[Entry]", told: "Entry") -> "int | None":
    for key in ("uuid", "pci"):
        for place, entry in enumerate(entries):
            if told.get(key) and entry.get(key) == told[key]:
                return place
    return None


def _adopt(entries: "list[Entry]", told: "Entry", rows: "list[int]", pci: "list[str]", all_told: "list[Entry]") -> int:
    """A place for a GPU that nobody knows by name, mostly one that gave no handle."""
    if not told.get("uuid") and not told.get("pci"):
        named = [_place(entries, other) for other in all_told]
        free = [place for place in range(len(entries)) if place not in named and place not in rows]
        same = [place for place in free if entries[place].get("i") == told.get("i")]
        if free:
            return (same or free)[0]
        seen = {entry.get("pci") for entry in [*entries, *all_told]}
        unseen = [address for address in pci if address not in seen]
        # Only when nothing else can be meant: as many addresses without a GPU as GPUs without an address.
        nameless = [other for other in all_told if not other.get("uuid") and not other.get("pci")]
        if unseen and len(unseen) == len(nameless):
            told["pci"] = unseen[0]
    entries.append({})
    return len(entries) - 1


def _merge(known: "Entry", told: "Entry") -> "Entry":
    merged = {key: value for key, value in known.items() if key not in ("err", "dup")}
    for key, value in told.items():
        old = known.get(key)
        if key == "max" and isinstance(value, list) and isinstance(old, list) and len(old) == len(value):
            value = [_better(now, before) for now, before in _pairs(value, old)]
        if value not in ("", None) or key not in known:
            merged[key] = value if key == "err" else _better(value, old)
    return merged


def _better(now: object, before: object) -> object:
    """A failure does not wipe out what was known."""
    lost = isinstance(now, str) and now[:1] == "e" and now[1:].isdigit()
    return before if lost and before is not None else now


def _pairs(left: "list[object]", right: "list[object]") -> "list[tuple[object, object]]":
    return [(left[place], right[place]) for place in range(len(left))]


def pci_gpus(sysfs: str, names: "list[str]") -> "list[str]":
    """Bus ids of NVIDIA's 3D and VGA controllers among these directories of /sys/bus/pci/devices."""
    found = []
    for name in sorted(names):
        path = f"{sysfs}/bus/pci/devices/{name}"
        if read_text(f"{path}/vendor") == _NVIDIA and read_text(f"{path}/class")[:6] in _GPU_CLASSES:
            found.append(pci_id(name))
    return found


def hidden_gpus(dev: str, names: "list[str]") -> "list[int]":
    """Minors of the GPUs among these names of /dev that this login may not open.

    Asking the kernel for access opens nothing, so a hung driver does not matter, and a cgroup that keeps devices
    from its processes (Slurm's ConstrainDevices, with pam_slurm_adopt for logins) is told even to root.
    """
    found = []
    for name in names:
        number = name[len(_DEVICE) :]
        if name.startswith(_DEVICE) and number.isdigit() and not os.access(f"{dev}/{name}", os.R_OK | os.W_OK):
            found.append(int(number))
    return sorted(found)
