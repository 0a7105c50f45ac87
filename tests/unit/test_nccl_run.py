"""Planning a test: what the script holds, what is refused, which nodes are taken, what a node lacks."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit.formats.node_state import parse_state
from cockpit.models import Health, Node
from cockpit.nccl.discovery import Binary, Found, best_binary, best_mpi, discovery_argv, missing, parse_discovery
from cockpit.nccl.run import (
    NcclRequest,
    body,
    cancel_argv,
    cancel_named_argv,
    environment,
    follow_argv,
    idle_nodes,
    job_id_of,
    mistakes,
    of_nodes,
    output_path,
    parse_node_line,
    parse_size,
    remarks,
    sbatch_options,
    script,
    srun_argv,
    submit_argv,
)

PAIR = NcclRequest(nodes=("gpu-1", "gpu-2"), binary="/opt/x/all_reduce_perf", name="cockpit-nccl-1")
FOLKLORE = (
    "NCCL_IB_",
    "NCCL_PROTO",
    "NCCL_BUFFSIZE",
    "NCCL_TOPO_FILE",
    "FI_PROVIDER",
    "FI_EFA_",
    "RDMAV_",
    "NCHANNELS",
)


def test_the_script_asks_slurm_for_what_the_request_says() -> None:
    text = script(replace(PAIR, partition="gpu", reservation="cockpit-gpu-1", limit_min=5))
    for option in (
        "--nodes=2", "--nodelist=gpu-[1-2]", "--ntasks-per-node=8", "--gpus-per-node=8", "--exclusive", "--time=5",
        "--partition=gpu", "--reservation=cockpit-gpu-1", "--no-requeue", "--job-name=cockpit-nccl-1",
    ):  # fmt: skip
        assert f"#SBATCH {option}\n" in text
    step = text.rstrip().rpartition("\n")[2]
    assert shlex.split(step) == list(srun_argv(replace(PAIR, partition="gpu")))
    assert "--unbuffered" not in step  # it cuts lines
    assert "-b 1073741824 -e 8589934592 -f 2 -g 1 -c 1 -w 5 -n 20 -T 300" in step
    assert subprocess.run(["sh", "-n"], input=text.encode(), check=False).returncode == 0


def test_the_environment_is_that_of_efa_without_folklore() -> None:
    found = environment(replace(PAIR, algorithm="ring", tuner_off=True))
    assert found["NCCL_DEBUG"] == "INFO"
    assert found["NCCL_SOCKET_IFNAME"] == "^docker,lo,veth"
    assert found["NCCL_ALGO"] == "Ring"
    assert found["NCCL_TUNER_PLUGIN"] == "none"
    assert not [name for name in found for bad in FOLKLORE if bad in name]
    exported = [line for line in script(PAIR).splitlines() if line.startswith("export ")]
    assert not [line for line in exported for bad in FOLKLORE if bad in line]
    assert "NCCL_ALGO" not in environment(PAIR)


def test_what_the_login_exports_does_not_reach_the_test(tmp_path: Path) -> None:
    fake = tmp_path / "srun"
    fake.write_text('#!/bin/sh\nenv >>"$SEEN"\n')
    fake.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "SEEN": str(tmp_path / "seen"), "NCCL_IB_HCA": "mlx5", "HOME": "/",
        "FI_PROVIDER": "tcp", "OFI_NCCL_PROTOCOL": "X", "TEXT": "two\nNCCL_lines=1",
    }  # fmt: skip
    request = replace(PAIR, env={"NCCL_PROTO": "a b'c\"$(touch /nowhere)"})
    subprocess.run(["sh", "-c", body(request)], env=env, check=True, timeout=20)
    seen = (tmp_path / "seen").read_text()
    assert "NCCL_IB_HCA" not in seen
    assert "FI_PROVIDER" not in seen
    assert "OFI_NCCL_PROTOCOL" not in seen
    assert "NCCL_DEBUG=INFO" in seen
    assert "NCCL_PROTO=a b'c\"$(touch /nowhere)\n" in seen


def test_a_container_brings_its_own_libraries() -> None:
    boxed = replace(PAIR, container="/fsx/nccl-tests.sqsh", mounts="/fsx:/fsx", binary="")
    text = body(boxed)
    assert "LD_LIBRARY_PATH" not in text
    assert (
        "--container-image=/fsx/nccl-tests.sqsh --container-mounts=/fsx:/fsx /opt/nccl-tests/build/all_reduce_perf"
        in text
    )
    assert environment(boxed)["PMIX_MCA_gds"] == "hash"
    assert "/opt/amazon/ofi-nccl/lib" in body(PAIR)


def test_one_command_submits_the_same_body() -> None:
    argv = submit_argv(PAIR)
    assert argv[:2] == ("sbatch", "--parsable")
    assert set(sbatch_options(PAIR)) <= set(argv)
    assert argv[-1] == f"--wrap={body(PAIR)}"
    assert (job_id_of("123\n"), job_id_of("123;prod"), job_id_of("sbatch: error: 5")) == (123, 123, None)
    assert output_path(replace(PAIR, output_dir="/fsx/x/"), 7) == "/fsx/x/cockpit-nccl-1-7.out"
    assert cancel_argv(7) == ("scancel", "7")
    assert cancel_named_argv(PAIR.name) == ("scancel", "--name=cockpit-nccl-1")
    with pytest.raises(ValueError, match="no name of a test"):
        cancel_named_argv("train")


def test_old_binaries_get_no_time_out() -> None:
    assert "-T" not in srun_argv(replace(PAIR, timeout_s=0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"collective": "all_reduce; rm -rf /"}, "no collective"),
        ({"nodes": ()}, "name nodes"),
        ({"nodes": ("a", "a")}, "twice"),
        ({"nodes": ("a", "b\n#SBATCH --x")}, "node names"),
        ({"nodes": ("a",), "gpus_per_node": 1}, "nothing is sent"),
        ({"min_bytes": 2**34}, "smallest"),
        ({"max_bytes": 2**40}, "64 GiB"),
        ({"partition": "gpu\n#SBATCH --uid=0"}, "single words"),
        ({"output_dir": "/fsx/a b"}, "folder"),
        ({"output_dir": "/fsx\n"}, "folder"),
        ({"binary": "all_reduce_perf"}, "full path"),
        ({"mounts": "/a:/b"}, "container"),
        ({"env": {"A=B": "c"}}, "variables"),
        ({"mpi": "pmix --uid=0"}, "MPI plugin"),
        ({"limit_min": 0}, "time limit"),
    ],
)
def test_mistakes_are_told_before_anything_runs(changes: dict[str, Any], words: str) -> None:
    assert mistakes(PAIR) == ()
    assert any(words in text for text in mistakes(replace(PAIR, **changes)))


def test_remarks_name_folklore_and_what_will_not_be_judged() -> None:
    told = " | ".join(remarks(replace(PAIR, env={"NCCL_IB_HCA": "x", "FI_PROVIDER": "", "MY_OWN": "1"}, check=False)))
    assert "NCCL_IB_HCA: no effect on EFA" in told
    assert "FI_PROVIDER" in told
    assert "MY_OWN" not in told
    assert "-c 0" in told
    assert "hide up to half" in told
    assert "will not be judged" in " ".join(remarks(replace(PAIR, max_bytes=2**28, min_bytes=8)))


@pytest.mark.parametrize(("text", "size"), [("8G", 2**33), ("512M", 2**29), ("8", 8), ("1t", 2**40), ("4GB", 2**32)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "8 G B", "9" * 400])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


def test_following_a_file_that_comes_later_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "out put.txt"
    with subprocess.Popen(follow_argv(str(path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        path.write_text("one\n")
        assert process.stdout.readline() == b"one\n"
        with path.open("a") as file:
            file.write("two\n")
        assert process.stdout.readline() == b"two\n"
        process.stdin.close()
        process.wait(timeout=10)


def test_what_a_node_says_of_itself() -> None:
    line = "# cockpit-node: host=ip-10-0-0-1.ec2.internal node=gpu-1 instance=i-0abc driver=580.95.05 efa=3.3.0g"
    facts = parse_node_line(f"0: {line}\n")
    assert facts is not None
    assert (facts.host, facts.node, facts.instance, facts.driver, facts.efa) == (
        "ip-10-0-0-1", "gpu-1", "i-0abc", "580.95.05", "3.3.0g",
    )  # fmt: skip
    bare = parse_node_line("# cockpit-node: host=n1 node= instance= driver= efa=")
    assert bare is not None
    assert (bare.node, bare.driver) == ("n1", "")
    assert parse_node_line("# Using devices") is None


def node(name: str, state: str, used: int = 0) -> Node:
    return Node(name, parse_state(state), state, Health.OK, partitions=("gpu",), gpus_total=8, gpus_used=used)


def test_only_idle_nodes_are_taken() -> None:
    nodes = [
        node("a", "IDLE"), node("b", "IDLE+CLOUD"), node("c", "IDLE+DRAIN"), node("d", "MIXED", 4), node("e", "IDLE*"),
        node("f", "IDLE+CLOUD+POWERED_DOWN"), node("g", "DOWN"), node("h", "IDLE+MAINTENANCE"),
        node("i", "IDLE+PLANNED"), node("j", "IDLE", 1), node("k", "IDLE+RESERVED"),
    ]  # fmt: skip
    free, left = idle_nodes(nodes, partition="gpu")
    assert free == ("a", "b")
    assert {name for name, _ in left} == set("cdefghijk")
    assert idle_nodes(nodes, partition="other") == ((), ())


def test_the_same_test_on_other_nodes_has_another_name() -> None:
    other = of_nodes(PAIR, ["gpu-3"])
    assert (other.nodes, other.count, other.binary) == (("gpu-3",), 1, PAIR.binary)
    assert other.name != PAIR.name


# -- discovery


def make(path: Path, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)


def test_the_look_finds_what_lies_in_the_usual_places(tmp_path: Path) -> None:
    root = tmp_path / "root"
    own = tmp_path / "own folder"
    make(own / "all_reduce_perf_mpi")
    make(root / "opt/nccl-tests/build/all_gather_perf")
    make(root / "opt/nccl-tests/build/notes_perf.txt", 0o644)
    make(root / "usr/local/cuda-13.0/efa/test-cuda-13.0/all_reduce_perf")
    make(root / "fsx/nccl-tests.sqsh")
    make(root / "opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so")
    make(root / "opt/amazon/efa/bin/fi_info")
    make(tmp_path / "bin/srun")
    listing = "MPI plugin types are...\\n\\tnone\\n\\tpmix\\n"
    (tmp_path / "bin/srun").write_text(f"#!/bin/sh\n[ \"$1\" = --mpi=list ] && printf '{listing}'\n")
    argv = [*discovery_argv(str(own))[:-1], str(root)]
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(argv, capture_output=True, env=env, timeout=20, check=False)
    found = parse_discovery(done.stdout)
    assert found.whole
    assert [each.path for each in found.binaries[:1]] == [str(own / "all_reduce_perf_mpi")]
    assert {each.collective for each in found.binaries} == {"all_reduce", "all_gather"}
    assert found.containers == (f"{root}/fsx/nccl-tests.sqsh",)
    assert found.plugins == (f"{root}/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so",)
    assert (found.efa, found.mpi) == (True, ("none", "pmix"))


@pytest.mark.parametrize(
    ("lines", "types"),
    [
        ("MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4,pmix_v5",
         ("none", "pmi2", "pmix", "pmix_v4", "pmix_v5")),
        ("MPI types are...\nopenmpi\nnone\npmix_v3", ("openmpi", "none", "pmix_v3")),
        ("fatal: Could not establish a configuration source", ()),
    ],
)  # fmt: skip
def test_the_mpi_plugins_of_srun(lines: str, types: tuple[str, ...]) -> None:
    assert parse_discovery("".join(f"mpi\t{line.strip()}\n" for line in lines.splitlines())).mpi == types


def test_the_best_of_what_is_there() -> None:
    plain, unknown, good = (Binary(f"/{name}/all_reduce_perf", "all_reduce", mpi) for name, mpi in
                            (("a", False), ("b", None), ("c", True)))  # fmt: skip
    assert best_binary(Found((plain, unknown, good)), "all_reduce") == good
    assert best_binary(Found((plain, unknown)), "all_reduce") == unknown
    assert best_binary(Found((plain,)), "all_reduce") is None
    assert best_mpi(Found(mpi=("none", "pmix_v3", "pmix_v4"))) == "pmix_v4"
    assert best_mpi(Found(mpi=("none", "pmi2"))) == "pmi2"
    assert best_mpi(Found(mpi=("none",))) is None


def test_what_is_missing_is_told_with_what_to_do() -> None:
    pmix = ("none", "pmix")
    good = Found((Binary("/opt/x/all_reduce_perf", "all_reduce", True),), plugins=("/p",), mpi=pmix, efa=True)
    assert missing(PAIR, good) == ()
    told = " | ".join(missing(replace(PAIR, binary=""), Found(mpi=("none",), efa=True)))
    assert "no all_reduce_perf in" in told
    assert "no OFI plugin" in told
    assert "no pmix and no pmi2" in told
    without = Found((Binary("/opt/x/all_reduce_perf", "all_reduce", False),), mpi=pmix)
    assert "without MPI" in " ".join(missing(PAIR, without))
    assert "without MPI" in " ".join(missing(replace(PAIR, binary=""), without))
    boxed = replace(PAIR, container="/fsx/x.sqsh", binary="")
    assert "pyxis" in " ".join(missing(boxed, Found(mpi=pmix)))
    assert missing(boxed, Found(mpi=pmix, pyxis=True)) == ()
    assert "no --mpi=pmi2" in " ".join(missing(replace(PAIR, mpi="pmi2"), good))


def test_any_answer_to_the_look_can_be_read() -> None:
    found = parse_discovery(
        b"binary\t/\x1b]x/all_reduce_perf\tyes\nbinary\tx\nmpi\t\n\xff\xfe\tz\n" + b"plugin\tx\n" * 5000
    )
    assert not found.whole
    assert all(each.path.isprintable() for each in found.binaries)
    assert len(found.plugins) == 1
