"""Planning one NCCL test as a Slurm job: the script, the commands, which nodes; nothing here runs anything.

Environment as EFA wants it and none of the folklore: what the login exports of NCCL's and libfabric's settings is
cleared first, so that a test measures the cluster and not somebody's profile.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cockpit.catalog.nccl_env import env_remarks
from cockpit.formats.hostlist import fold
from cockpit.models import Node
from cockpit.nccl.models import COLLECTIVES
from cockpit.text import printable

GIB = 2**30
NAME_PREFIX = "cockpit-nccl-"
TYPICAL_S = 40  # a pair with 1 and 4 GiB, start included
LARGEST_BYTES = 64 * GIB

_SIZE = re.compile(r"(\d{1,15})([KMGT]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_NAMES = re.compile(r"[A-Za-z0-9_.,@+-]{0,256}")
_PATH = re.compile(r"[A-Za-z0-9_./@+~-]{1,400}")
# Idle in name only: a job there would wait, hurt somebody's maintenance, or start an instance.
_BUSY_FLAGS = (
    "drain", "maintenance", "maint", "reserved", "planned", "reboot_requested", "reboot_issued", "not_responding",
    "powered_down", "powering_down", "powering_up", "power_down", "power_up", "fail", "completing", "invalid_reg",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NcclRequest:
    """One test as it is asked for: named `nodes`, or any `node_count` of a partition. Sizes are bytes."""

    nodes: tuple[str, ...] = ()
    node_count: int = 0
    gpus_per_node: int = 8
    collective: str = "all_reduce"
    algorithm: str = "default"  # default or ring
    min_bytes: int = GIB
    max_bytes: int = 8 * GIB
    factor: int = 2
    iterations: int = 20
    warmup: int = 5
    check: bool = True
    binary: str = ""  # absolute path, on the nodes or in the container
    container: str = ""  # squash file or image for pyxis
    mounts: str = ""
    mpi: str = "pmix"  # what `srun --mpi` shall use
    partition: str = ""
    account: str = ""
    reservation: str = ""
    limit_min: int = 10
    timeout_s: int = 300
    env: Mapping[str, str] = field(default_factory=dict)
    tuner_off: bool = False  # ring on plugins before 1.20: their tuner may crash
    output_dir: str = "."  # on a file system that head and nodes share; relative to where sbatch runs
    name: str = field(default_factory=lambda: NAME_PREFIX + secrets.token_hex(4))

    @property
    def count(self) -> int:
        """How many nodes it takes."""
        return len(self.nodes) or self.node_count

    @property
    def gpus(self) -> int:
        """How many GPUs it takes."""
        return self.count * self.gpus_per_node

    @property
    def output(self) -> str:
        """The file that Slurm writes, with %j for the job id."""
        return f"{self.output_dir.rstrip('/') or '/'}/{self.name}-%j.out"


def parse_size(text: str) -> int:
    """`8G` as nccl-tests reads it: K, M, G and T are powers of 1024. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{printable(text[:40])!r} is no size: write 1G, 512M or a number of bytes")
    return int(found[1]) * _UNITS[found[2].upper()]


def mistakes(request: NcclRequest) -> tuple[str, ...]:
    """What keeps the request from being a test, in words for the form; () when nothing does."""
    checks = (
        (request.collective in COLLECTIVES, f"no collective {printable(request.collective[:40])!r}"),
        (request.algorithm in ("default", "ring"), "the algorithm is `default` or `ring`"),
        (request.count >= 1, "name nodes, or how many"),
        (len(set(request.nodes)) == len(request.nodes), "a node stands twice"),
        (1 <= request.gpus_per_node <= 64, "1 to 64 GPUs a node"),
        (request.gpus >= 2, "one GPU alone is no test: nothing is sent"),
        (0 < request.min_bytes <= request.max_bytes, "the smallest size must not be above the largest"),
        (request.max_bytes <= LARGEST_BYTES, "no size above 64 GiB: no GPU holds it"),
        (2 <= request.factor <= 64, "sizes grow by a factor of 2 to 64"),
        (1 <= request.iterations <= 10_000 and 0 <= request.warmup <= 10_000, "1 to 10,000 iterations"),
        (1 <= request.limit_min <= 1440, "a time limit of 1 minute to a day"),
        (0 <= request.timeout_s <= 86_400, "a time-out of up to a day, 0 for none (nccl-tests before 2.13.4)"),
        (all(_HOST.fullmatch(name) for name in request.nodes), "node names of letters, digits, . and -"),
        (all(_NAMES.fullmatch(word) for word in _words(request)), "queue, account and reservation are single words"),
        (bool(_PATH.fullmatch(request.output_dir)), "a folder for the output without blanks and quotes"),
        (bool(_WORD.fullmatch(request.mpi)), "the name of an MPI plugin (srun --mpi=list)"),
        (not request.binary or request.binary.startswith("/"), "the binary's full path: the step has no PATH of yours"),
        (not request.mounts or bool(request.container), "mounts are for a container"),
        (all(_ENV_NAME.fullmatch(name) for name in request.env), "names of variables are letters, digits and _"),
    )
    return tuple(text for fine, text in checks if not fine)


def _words(request: NcclRequest) -> tuple[str, ...]:
    return request.partition, request.account, request.reservation, request.name


def remarks(request: NcclRequest) -> tuple[str, ...]:
    """What an operator should know before it runs: folklore in the environment, sizes that will not be judged."""
    found = list(env_remarks(request.env))
    if request.max_bytes < GIB:
        found.append("no size of 1 GiB or more: the result will not be judged")
    if not request.check:
        found.append("the data is not checked (-c 0): wrong values stay unseen")
    if request.algorithm == "ring" and not request.tuner_off:
        found.append(
            "NCCL_ALGO crashes the tuner of OFI plugins before 1.20; should the test crash, turn the tuner off"
        )
    if request.count == 2 and request.algorithm == "default" and request.collective == "all_reduce":
        found.append("two nodes by default hide up to half of a network loss; a ring shows it")
    return tuple(found)


# -- commands


def sbatch_options(request: NcclRequest) -> tuple[str, ...]:
    """sbatch's options, each one word; the same on a command line and in a script."""
    optional = {
        "nodelist": fold(request.nodes),
        "partition": request.partition,
        "account": request.account,
        "reservation": request.reservation,
    }
    return (
        f"--job-name={request.name}",
        f"--nodes={request.count}",
        *(f"--{key}={value}" for key, value in optional.items() if value),
        f"--ntasks-per-node={request.gpus_per_node}",
        f"--gpus-per-node={request.gpus_per_node}",
        "--exclusive",
        f"--time={request.limit_min}",
        f"--output={request.output}",
        "--open-mode=truncate",
        "--no-requeue",
    )


def submit_argv(request: NcclRequest) -> tuple[str, ...]:
    """The whole submission as one command, `sbatch` first; it prints the job id, perhaps with `;cluster`."""
    return ("sbatch", "--parsable", *sbatch_options(request), f"--wrap={body(request)}")


def script(request: NcclRequest) -> str:
    """The same as a file for sbatch, for people to read and keep."""
    options = "".join(f"#SBATCH {option}\n" for option in sbatch_options(request))
    return f"#!/bin/sh\n{options}\n{body(request)}"


def job_id_of(said: str) -> int | None:
    """The job id in sbatch's answer; None when there is none."""
    found = re.match(r"\s*(\d{1,10})(?:;|\s|$)", said)
    return int(found[1]) if found else None


def cancel_argv(job_id: int) -> tuple[str, ...]:
    """Ends the job with everything below it."""
    return "scancel", str(job_id)


def cancel_named_argv(name: str) -> tuple[str, ...]:
    """Ends jobs by their unique name, for when sbatch's answer was lost."""
    if not name.startswith(NAME_PREFIX):
        raise ValueError(f"{name!r} is no name of a test")
    return "scancel", f"--name={name}"


def output_path(request: NcclRequest, job_id: int) -> str:
    """Where the job's output lies."""
    return request.output.replace("%j", str(job_id))


def follow_argv(path: str) -> tuple[str, ...]:
    """Prints a file as it grows, from its beginning, also before it exists; ends when its stdin is closed."""
    program = 'tail -n +1 -F -- "$1" 2>/dev/null & tail=$!; cat >/dev/null; kill "$tail" 2>/dev/null'
    return "sh", "-c", program, "sh", path


# -- the script's body

_LIBRARIES = (
    "/opt/amazon/efa/lib /opt/amazon/efa/lib64 /opt/amazon/openmpi/lib /opt/amazon/openmpi/lib64"
    " /opt/amazon/ofi-nccl/lib /opt/amazon/ofi-nccl/lib/x86_64-linux-gnu /opt/amazon/ofi-nccl/lib/aarch64-linux-gnu"
    " /opt/aws-ofi-nccl/lib /opt/aws-ofi-nccl/install/lib"
)
CLEAN = """\
# Settings of the login's profile are not part of the test.
for name in $(env | grep -oE '^(NCCL|OFI_NCCL|FI|RDMAV)_[A-Za-z0-9_]+'); do unset "$name"; done"""
FIND_LIBRARIES = f"""\
for dir in {_LIBRARIES}; do
    [ -d "$dir" ] && LD_LIBRARY_PATH="$dir${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
done
export LD_LIBRARY_PATH"""
# Read by parse_node_line(); one line a node, without root and without asking the instance's metadata.
_WHO = r"""r() { head -n 1 "$1" 2>/dev/null | tr -cd "A-Za-z0-9._ :-"; }
i=$(r /sys/devices/virtual/dmi/id/board_asset_tag); e=$(r /sys/module/efa/version)
d=$(r /proc/driver/nvidia/version | grep -oE "[0-9]+[.][0-9.]+" | head -n 1)
echo "# cockpit-node: host=$(uname -n) node=${SLURMD_NODENAME:-} instance=$i driver=$d efa=$e"
"""


def body(request: NcclRequest) -> str:
    """What runs in the job: a line about each node, then the test; its exit code is the job's."""
    libraries = "" if request.container else f"{FIND_LIBRARIES}\n"
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment(request).items())
    each = f"--nodes={request.count} --ntasks={request.count} --ntasks-per-node=1"
    who = f"srun {each} --mpi=none sh -c {shlex.quote(_WHO)}"
    return f"{CLEAN}\n{libraries}{exports}{who}\n{shlex.join(srun_argv(request))}\n"


def environment(request: NcclRequest) -> dict[str, str]:
    """What the test runs with; the operator's own settings win."""
    found = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,TUNING",
        "NCCL_SOCKET_IFNAME": "^docker,lo,veth",
    }
    if request.algorithm == "ring":
        found["NCCL_ALGO"] = "Ring"
    if request.tuner_off:
        found["NCCL_TUNER_PLUGIN"] = "none"
    if request.container:
        found["PMIX_MCA_gds"] = "hash"  # an image's PMIx 3 cannot talk to a host's 4 or 5 without it
    return {**found, **request.env}


def srun_argv(request: NcclRequest) -> tuple[str, ...]:
    """The step: one task a GPU, each line with the task's number in front."""
    return ("srun", *srun_options(request), *test_command(request))


def srun_options(request: NcclRequest) -> tuple[str, ...]:
    """srun's options without the nodes.

    Never --unbuffered: with it Slurm cuts the output every 1,024 bytes, wherever a line is just then (seen on 22.05);
    nccl-tests flushes each line by itself.
    """
    container = (f"--container-image={request.container}",) if request.container else ()
    mounts = (f"--container-mounts={request.mounts}",) if request.mounts else ()
    return (
        f"--ntasks-per-node={request.gpus_per_node}",
        f"--gpus-per-node={request.gpus_per_node}",
        f"--mpi={request.mpi}",
        "--cpu-bind=none",
        "--mem-bind=none",
        "--kill-on-bad-exit=1",
        "--label",
        *container,
        *mounts,
    )


def test_command(request: NcclRequest) -> tuple[str, ...]:
    """The test and its arguments."""
    return (request.binary or default_binary(request), *test_arguments(request))


def default_binary(request: NcclRequest) -> str:
    """Where AWS' sample container has it; outside a container it has to be found first."""
    return f"/opt/nccl-tests/build/{request.collective}_perf"


def test_arguments(request: NcclRequest) -> tuple[str, ...]:
    """nccl-tests' own arguments."""
    pairs = {
        "-b": request.min_bytes,
        "-e": request.max_bytes,
        "-f": request.factor,
        "-g": 1,
        "-c": int(request.check),
        "-w": request.warmup,
        "-n": request.iterations,
    }
    timeout = {"-T": request.timeout_s} if request.timeout_s else {}
    return tuple(word for key, value in {**pairs, **timeout}.items() for word in (key, str(value)))


# -- which nodes


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node said of itself at the start of a test; `host` is what nccl-tests prints, `node` Slurm's name."""

    host: str
    node: str
    instance: str = ""
    driver: str = ""
    efa: str = ""


def parse_node_line(line: str) -> NodeFacts | None:
    """The line that the script prints for each node; None for any other."""
    _, mark, rest = line[:1000].partition("# cockpit-node: ")
    if not mark:
        return None
    found = re.findall(r"(host|node|instance|driver|efa)=(.*?)(?= (?:host|node|instance|driver|efa)=|$)", rest.strip())
    values = {key: printable(value.strip()) for key, value in found}
    host = values.pop("host", "").partition(".")[0]
    return NodeFacts(host, values.pop("node", "") or host, **values)


def idle_nodes(nodes: Iterable[Node], *, partition: str = "") -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Names of the nodes that a test would disturb nobody on, and the others with the reason."""
    free: list[str] = []
    left: list[tuple[str, str]] = []
    for node in nodes:
        if partition and partition not in node.partitions:
            continue
        if node.state.base == "idle" and not node.state.has(*_BUSY_FLAGS) and not node.gpus_used:
            free.append(node.name)
        else:
            left.append((node.name, f"is {node.word}"))
    return tuple(free), tuple(left)


def of_nodes(request: NcclRequest, nodes: Sequence[str]) -> NcclRequest:
    """The same test on these nodes, with a name of its own."""
    return replace(request, nodes=tuple(nodes), node_count=0, name=NAME_PREFIX + secrets.token_hex(4))
