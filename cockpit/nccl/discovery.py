"""What a node has for NCCL tests: binaries, containers, libraries, MPI plugins; and what is missing for a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.nccl.run import NcclRequest
from cockpit.text import printable

_MAX_FOUND = 200
_BINARY = re.compile(r"(?:.*/)?([a-z_]+)_perf(?:_[A-Za-z0-9]+)?")

# POSIX sh; run it on a node of the fleet, for heads often have no CUDA. $1 is a folder to look in first ("" for
# none), $2 a prefix for every absolute path (tests). One line a find, `KEY<TAB>VALUE...`, and `end` last.
SCRIPT = r"""
first=$1 root=$2
t=$(printf '\t')
for dir in "$first" "$root"/usr/local/cuda-*/efa/test-cuda-* "$root"/opt/nccl-tests/build \
    "$root"/opt/amazon/nccl-tests/build $(echo "$PATH" | tr : ' '); do
    [ -n "$dir" ] || continue
    for file in "$dir"/*_perf "$dir"/*_perf_*; do
        [ -f "$file" ] && [ -x "$file" ] || continue
        mpi=unknown
        case $(ldd "$file" 2>/dev/null) in *libmpi*) mpi=yes ;; *not\ a\ dynamic*|'') ;; *) mpi=no ;; esac
        echo "binary$t$file$t$mpi"
    done
done
for file in "$root"/fsx/nccl-tests.sqsh "$root"/fsxl/nccl-tests.sqsh; do [ -r "$file" ] && echo "container$t$file"; done
for file in "$root"/opt/amazon/ofi-nccl/lib/libnccl-net*.so "$root"/opt/amazon/ofi-nccl/lib/*/libnccl-net*.so \
    "$root"/opt/aws-ofi-nccl/lib/libnccl-net*.so "$root"/opt/aws-ofi-nccl/install/lib/libnccl-net*.so; do
    [ -e "$file" ] && echo "plugin$t$file"
done
[ -e "$root"/opt/amazon/efa/bin/fi_info ] && echo "efa$t$root/opt/amazon/efa"
command -v enroot >/dev/null 2>&1 && echo "enroot${t}yes"
srun --help 2>/dev/null </dev/null | grep -q -e --container-image && echo "pyxis${t}yes"
srun --mpi=list 2>&1 </dev/null | sed 's/^srun: //; s/^[[:space:]]*//' | while read -r line; do echo "mpi$t$line"; done
echo end
"""


@dataclass(frozen=True, slots=True)
class Binary:
    """One program of nccl-tests; `mpi` is None where ldd could not tell."""

    path: str
    collective: str
    mpi: bool | None


@dataclass(frozen=True, slots=True)
class Found:
    """What one node has. `whole` is False when the look was cut short."""

    binaries: tuple[Binary, ...] = ()
    containers: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    mpi: tuple[str, ...] = ()
    efa: bool = False
    enroot: bool = False
    pyxis: bool = False
    whole: bool = False


def discovery_argv(first: str = "") -> tuple[str, ...]:
    """The look as one command; `first` is the folder that the site's config names."""
    return "sh", "-c", SCRIPT, "sh", first, ""


def parse_discovery(raw: bytes | str) -> Found:
    """What the script printed; anything else in between is passed over."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    lines = text.splitlines()
    found: dict[str, list[list[str]]] = {}
    for line in lines[:2000]:
        key, *values = line.split("\t")
        if values and len(found.setdefault(key, [])) < _MAX_FOUND:
            found[key].append([printable(value) for value in values])
    binaries = [_binary(values) for values in found.get("binary", []) if len(values) == 2]
    return Found(
        binaries=tuple(dict.fromkeys(each for each in binaries if each is not None)),
        containers=_first(found, "container"),
        plugins=_first(found, "plugin"),
        mpi=_mpi_types(_first(found, "mpi")),
        efa="efa" in found,
        enroot="enroot" in found,
        pyxis="pyxis" in found,
        whole="end" in lines,
    )


def _first(found: dict[str, list[list[str]]], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values[0] for values in found.get(key, []) if values[0]))


def _binary(values: Sequence[str]) -> Binary | None:
    path, mpi = values
    name = _BINARY.fullmatch(path)
    return None if name is None else Binary(path, name[1], {"yes": True, "no": False}.get(mpi))


def _mpi_types(lines: Sequence[str]) -> tuple[str, ...]:
    """The plugins of `srun --mpi=list`, in its forms from 20.11 to 25.05: one a line, or behind a colon."""
    words = [word for line in lines for word in line.rpartition(":")[2].replace(",", " ").split()]
    return tuple(dict.fromkeys(word for word in words if re.fullmatch(r"none|openmpi|cray_shasta|pmi\w*", word)))


def best_binary(found: Found, collective: str) -> Binary | None:
    """The binary to use: one with MPI, else one of which it is not known; never one without."""
    fitting = [each for each in found.binaries if each.collective == collective and each.mpi is not False]
    return next((each for each in fitting if each.mpi), fitting[0] if fitting else None)


def best_mpi(found: Found) -> str | None:
    """pmix in its newest version, or pmi2; None when Slurm has neither."""
    if "pmix" in found.mpi:
        return "pmix"
    versions = sorted((word for word in found.mpi if word.startswith("pmix_v")), reverse=True)
    return versions[0] if versions else "pmi2" if "pmi2" in found.mpi else None


def missing(request: NcclRequest, found: Found) -> tuple[str, ...]:
    """What this request lacks on that node, and what to do; () when nothing is missing."""
    lacks: list[str] = []
    if request.container:
        if not found.pyxis:
            lacks.append("srun knows no --container-image: pyxis is not installed; use a binary on the nodes")
    else:
        lacks += _lacking_binary(request, found)
        if found.efa and not found.plugins:
            lacks.append("EFA's software is there but no OFI plugin (libnccl-net.so): NCCL would fall back to sockets")
    if request.gpus > 1 and best_mpi(found) is None:
        lacks.append("Slurm has no pmix and no pmi2 (srun --mpi=list): tasks cannot find each other")
    elif request.mpi not in found.mpi and found.mpi:
        lacks.append(f"srun has no --mpi={request.mpi}; there are: {', '.join(found.mpi)}")
    return tuple(lacks)


def _lacking_binary(request: NcclRequest, found: Found) -> list[str]:
    name = f"{request.collective}_perf"
    if request.binary:
        known = next((each for each in found.binaries if each.path == request.binary), None)
        if known is not None and known.mpi is False:
            return [f"{request.binary} is built without MPI: its tasks would run as independent copies"]
        return []
    here = [each for each in found.binaries if each.collective == request.collective]
    if not here:
        places = "/usr/local/cuda-*/efa/test-cuda-*, /opt/nccl-tests/build, PATH"
        return [f"no {name} in {places}: name its path, or a container ({', '.join(found.containers) or 'none found'})"]
    if best_binary(found, request.collective) is None:
        return [f"{here[0].path} is built without MPI: build nccl-tests with MPI=1"]
    return []
