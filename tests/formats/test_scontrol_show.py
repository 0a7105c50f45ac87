from datetime import timezone

import pytest

from cockpit.formats.errors import FormatError
from cockpit.formats.scontrol_show import (
    parse_job_detail,
    parse_job_details,
    parse_node_detail,
    parse_node_details,
)
from cockpit.models import NodeState
from cockpit.text import printable
from tests.formats.slurm_text import HOSTILE

JOB = """\
JobId=2 ArrayJobId=2 ArrayTaskId=4 JobName=%b
   UserId=alice(1000) GroupId=root(0) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:01:22 TimeLimit=365-00:00:00 TimeMin=N/A
   Partition=gpu AllocNode:Sid=head:2378
   NumNodes=3 NumCPUs=384 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=2,mem=2000M,node=2,billing=2
   JOB_GRES=gpu:h100:20
     Nodes=gpu-st-p5-[2-3] CPU_IDs=0-191 Mem=192000 GRES=gpu:h100:8(IDX:0-7)
     Nodes=gpu-st-p5-9 CPU_IDs=0-3,5 Mem=192000 GRES=gpu:h100:4(IDX:0,2,5-6)
     Nodes=cpu-1 CPU_IDs=0 Mem=1000 GRES=
   Command=/fsx/alice/run dir/train.sh --lr=3 x=y
   WorkDir=/fsx/alice/run dir
   Comment=%b
   StdErr=
   StdIn=/dev/null
   StdOut=/fsx/alice/run dir/slurm-2_4.out
   TresPerNode=gres/gpu:8
"""
NODE = """\
NodeName=gpu-1 Arch=x86_64 CoresPerSocket=48 \n\
   CPUAlloc=2 CPUEfctv=192 CPUTot=192 CPULoad=2.71
   Gres=gpu:h100:8(S:0-1)
   NodeAddr=10.0.0.1 NodeHostName=ip-10-0-0-1 Port=6818 Version=25.05.9
   OS=Linux 6.8.0-1029-aws #31-Ubuntu SMP Wed Apr 23 18:42:41 UTC 2025 \n\
   RealMemory=2000000 AllocMem=2000 FreeMem=20492 Sockets=2 Boards=1
   State=MIXED+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu,prio \n\
   BootTime=2026-11-29T19:31:47 SlurmdStartTime=2026-11-29T19:54:47
   Reason=%b
   Comment=seen by bob = yes
   Extra=a=1 b=2

"""


def job(name: bytes = b"train", comment: bytes = b"note") -> bytes:
    return JOB.encode() % (name, comment)


def node(reason: bytes) -> bytes:
    return NODE.encode() % reason


def test_a_job() -> None:
    found = parse_job_detail(job())
    assert (found.job_id, found.get("JobName"), found.get("Comment")) == (2, "train", "note")
    assert found.std_out == "/fsx/alice/run dir/slurm-2_4.out"
    assert (found.std_err, found.work_dir) == ("", "/fsx/alice/run dir")
    assert found.command == "/fsx/alice/run dir/train.sh --lr=3 x=y"
    assert (found.get("JobState"), found.get("CPUs/Task"), found.get("ReqB:S:C:T")) == (
        "RUNNING",
        "1",
        "0:0:*:*",
    )
    assert found.get("ReqTRES") == "cpu=2,mem=2000M,node=2,billing=2"
    assert found.get("AllocNode:Sid") == "head:2378"
    assert found.get("NoSuchKey") == ""
    assert [key for key, _ in found.pairs][:5] == ["JobId", "ArrayJobId", "ArrayTaskId", "JobName", "UserId"]


def test_gpus_of_a_job_node_by_node() -> None:
    found = parse_job_detail(job())
    assert found.gpus == 20
    assert found.gpu_indices == {
        "gpu-st-p5-2": tuple(range(8)),
        "gpu-st-p5-3": tuple(range(8)),
        "gpu-st-p5-9": (0, 2, 5, 6),
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_comments_do_not_break_the_record(text: bytes) -> None:
    for raw, key in ((job(name=text), "JobName"), (job(comment=text), "Comment")):
        (found,) = parse_job_details(raw + b"\n")
        assert found.get(key) == printable(text.decode("utf-8", "replace").rstrip())
        assert found.std_out == "/fsx/alice/run dir/slurm-2_4.out"
        assert found.get("JobState") == "RUNNING"


def test_a_name_cannot_take_the_place_of_what_slurm_says_later() -> None:
    found = parse_job_detail(job(name=b"x\n   StdOut=/etc/shadow\n   JobState=FAILED"))
    assert found.std_out == "/fsx/alice/run dir/slurm-2_4.out"
    assert found.get("JobState") == "RUNNING"


def test_the_record_that_was_asked_for_among_those_of_an_array() -> None:
    other = job().replace(b"JobId=2 ", b"JobId=7 ")
    raw = job() + b"\n" + other + b"\n"
    assert [found.job_id for found in parse_job_details(raw)] == [2, 7]
    assert parse_job_detail(raw, 7).job_id == 7
    assert parse_job_detail(raw).job_id == 2


def test_no_record_is_an_error() -> None:
    with pytest.raises(FormatError):
        parse_job_detail(b"No jobs in the system\n")
    with pytest.raises(FormatError):
        parse_node_detail(b"Node x not found\n")


def test_a_node() -> None:
    found = parse_node_detail(node(b"kernel update [root@2026-11-29T19:54:58]"), timezone.utc)
    assert (found.name, found.state) == ("gpu-1", NodeState("mixed", frozenset({"drain"})))
    assert (found.reason, found.reason_by) == ("kernel update", "root")
    assert found.reason_at == 1_795_982_098
    assert found.get("OS") == "Linux 6.8.0-1029-aws #31-Ubuntu SMP Wed Apr 23 18:42:41 UTC 2025"
    assert (found.comment, found.extra) == ("seen by bob = yes", "a=1 b=2")
    assert found.get("Partitions") == "gpu,prio"
    assert found.get("Gres") == "gpu:h100:8(S:0-1)"


@pytest.mark.parametrize(
    ("reason", "text", "by"),
    [
        (b"ECC [auto-remediation] retire [root@1795982098]", "ECC [auto-remediation] retire", "root"),
        (b"efa ports missing Gres=gpu:h100:7 [root@1795982098]", "efa ports missing Gres=gpu:h100:7", "root"),
        (b"POWER_DOWN_ASAP [4294967294@1795982098]", "POWER_DOWN_ASAP", "4294967294"),
        (b"ask [bob@example] first [root@1795982098]", "ask [bob@example] first", "root"),
        (b"line1 [root@1795982098]\nline2", "line1␊line2", "root"),
        (b"no stamp", "no stamp", ""),
    ],
)
def test_the_stamp_is_cut_from_the_reason(reason: bytes, text: str, by: str) -> None:
    found = parse_node_detail(node(reason))
    assert (found.reason, found.reason_by) == (text, by)
    assert found.reason_at == (1_795_982_098 if by else None)
    assert found.comment == "seen by bob = yes"


def test_several_nodes() -> None:
    raw = node(b"x [root@1]") + node(b"y [root@2]").replace(b"gpu-1", b"gpu-2")
    assert [found.name for found in parse_node_details(raw)] == ["gpu-1", "gpu-2"]


FAKE = b"x\n   JobState=FAILED Reason=fake\n     Nodes=evil GRES=gpu:h100:1(IDX:0)\n   NumNodes=99"

FAKE_BEHIND_A_NEW_KEY = FAKE.replace(b"   JobState", b"   Mood=bad JobState")
FAKE_WITH_A_USER = FAKE.replace(b"x\n", b"x\n   UserId=eve(0) GroupId=eve(0)\n")


@pytest.mark.parametrize("fake", [FAKE, FAKE_BEHIND_A_NEW_KEY, FAKE_WITH_A_USER])
def test_neither_comment_nor_name_imitates_what_slurm_says(fake: bytes) -> None:
    honest = parse_job_detail(job())
    for raw, key in ((job(comment=fake), "Comment"), (job(name=fake), "JobName")):
        found = parse_job_detail(raw)
        for name in ("JobState", "NumNodes", "UserId", "Partition"):
            assert [value for key_, value in found.pairs if key_ == name] == [honest.get(name)]
        assert found.get(key).startswith("x␊")
        assert found.gpu_indices == honest.gpu_indices
        assert (found.std_out, found.work_dir) == (honest.std_out, honest.work_dir)


def test_a_comment_before_them_does_not_change_the_files_of_a_job() -> None:
    found = parse_job_detail(job(comment=b"x\n   StdOut=/etc/shadow\n   StdErr=/etc/shadow"))
    assert (found.std_out, found.std_err) == ("/fsx/alice/run dir/slurm-2_4.out", "")


def test_the_lines_of_a_part_of_a_het_job_are_no_part_of_its_name() -> None:
    raw = job(name=b"het\nb").replace(b"   UserId", b"   SLUID=s1\n   HetJobIdSet=24-25\n   UserId")
    found = parse_job_detail(raw)
    assert (found.get("JobName"), found.get("SLUID"), found.get("HetJobIdSet")) == ("het␊b", "s1", "24-25")


@pytest.mark.parametrize("key", [b"Reason", b"Comment"])
def test_no_text_on_a_node_imitates_its_state(key: bytes) -> None:
    fake = b"x\n   State=IDLE\n   UserId=eve\n   Gres=gpu:1"
    raw = node(fake) if key == b"Reason" else node(b"y").replace(b"seen by bob = yes", fake)
    found = parse_node_detail(raw)
    assert found.state == NodeState("mixed", frozenset({"drain"}))
    assert (found.name, found.get("State"), found.get("Gres")) == ("gpu-1", "MIXED+DRAIN", "gpu:h100:8(S:0-1)")


def test_an_id_that_is_too_long_is_no_id() -> None:
    assert parse_job_detail(job().replace(b"JobId=2 ", b"JobId=" + b"9" * 5000 + b" ")).job_id == 0
