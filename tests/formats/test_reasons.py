import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.catalog.reader import load
from cockpit.formats.reasons import explain_reason, is_stuck

DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
CODES = """
    Priority Resources BeginTime Dependency DependencyNeverSatisfied JobArrayTaskLimit JobHeldUser
    JobHeldAdmin JobHoldMaxRequeue PartitionDown PartitionInactive PartitionTimeLimit PartitionNodeLimit
    PartitionConfig
    BadConstraints Constraints Reservation ReservationDeleted ReservationInvalid Licenses AssocGrpGRES
    AssocGrpCpuLimit AssocGrpNodeLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpCPUMinutesLimit
    AssocMaxJobsLimit AssocMaxNodePerJobLimit QOSMaxGRESPerUser QOSGrpGRES QOSMaxJobsPerUserLimit
    QOSMaxNodePerUserLimit QOSMaxWallDurationPerJobLimit QOSMinGRES QOSUsageThreshold QOSNotAllowed InvalidQOS
    MaxGRESPerAccount MaxJobsPerAccount InvalidAccount AccountNotAllowed AccountingPolicy Prolog Cleaning
    MaxPoweredUpNodes MpiPortsBusy NvidiaImexChannels NodeDown SystemFailure JobLaunchFailure NonZeroExitCode
    RaisedSignal TimeLimit OutOfMemory InactiveLimit DeadLine SchedDefer FedJobLock BurstBufferStageIn
    FrontEndDown PowerNotAvail PowerReserved ReqNodeNotAvail
"""


@pytest.mark.parametrize("code", CODES.split())
def test_every_code_is_explained_with_a_next_step(code: str) -> None:
    (found,) = explain_reason(code)
    assert found.known
    assert found.code == code
    assert found.title
    assert found.meaning
    assert found.next_step


@pytest.mark.parametrize(
    ("reason", "title", "hostlist"),
    [
        ("(Resources)", "Next in line, waits for nodes", ""),
        ("job requeued in held state", "Requeued and held", ""),
        ("job_requeued_in_held_state", "Requeued and held", ""),
        ("launch failed requeued held", "Could not be launched", ""),
        ("launch_failed_requeued_held", "Could not be launched", ""),
        ("user env retrieval failed requeued held", "Its user's environment could not be read", ""),
        (DOWN, "Not enough usable nodes", ""),
        (DOWN.replace(" ", "_"), "Not enough usable nodes", ""),
        ("RaisedSignal:10(User defined signal 1)", "Ended by a signal", ""),
        (
            "ReqNodeNotAvail, UnavailableNodes:gpu-st-p5-5",
            "The nodes it needs are not available",
            "gpu-st-p5-5",
        ),
        ("ReqNodeNotAvail,_UnavailableNodes:a[1,3],b", "The nodes it needs are not available", "a[1,3],b"),
        ("ReqNodeNotAvail, UnavailableNodes:", "The nodes it needs are not available", ""),
        ("ReqNodeNotAvail, May be reserved for other job", "The nodes it needs are not available", ""),
        (
            "ReqNodeNotAvail, Reserved for maintenance",
            "The nodes it needs are reserved for maintenance",
            "",
        ),
    ],
)
def test_free_texts(reason: str, title: str, hostlist: str) -> None:
    (found,) = explain_reason(reason)
    assert (found.title, found.hostlist, found.known) == (title, hostlist, True)


def test_reasons_that_squeue_merged_are_explained_one_by_one() -> None:
    assert [found.code for found in explain_reason("JobArrayTaskLimit,JobHeldAdmin")] == [
        "JobArrayTaskLimit",
        "JobHeldAdmin",
    ]
    merged = explain_reason("JobHeldUser,ReqNodeNotAvail, UnavailableNodes:a[1-2],b")
    assert [(found.code, found.hostlist) for found in merged] == [
        ("JobHeldUser", ""),
        ("ReqNodeNotAvail", "a[1-2],b"),
    ]


@pytest.mark.parametrize("reason", ["", "None", "(null)", "  "])
def test_no_reason(reason: str) -> None:
    assert explain_reason(reason) == ()


@pytest.mark.parametrize(
    ("reason", "stuck"),
    [
        ("DependencyNeverSatisfied", True),
        ("job_requeued_in_held_state", True),
        ("JobArrayTaskLimit,PartitionTimeLimit", True),
        ("PartitionTimeLimit", True),
        ("Priority", False),
        ("Resources", False),
        ("FluxCapacitorCold", False),
        ("", False),
    ],
)
def test_which_reasons_do_not_go_away_by_themselves(reason: str, stuck: bool) -> None:
    assert is_stuck(reason) is stuck


def test_an_unknown_reason_is_told_verbatim() -> None:
    (found,) = explain_reason("FluxCapacitorCold")
    assert (found.code, found.title) == ("FluxCapacitorCold", "a reason the cockpit does not know")
    assert not found.known
    assert "a newer Slurm, or a plugin of the site" in found.meaning
    assert "slurmctld's log on the head" in found.next_step
    assert found.show


@pytest.mark.parametrize(
    ("code", "about"),
    [
        ("QOSFancyTresPerUser", "a limit of its QOS"),
        ("AssocTotalEnergy", "a limit of its account or user"),
        ("LicensesPerRack", "licences"),
        ("ResvNotYetOpen", "a reservation"),
        ("PartitionFull", "its queue"),
        ("DependencyOnCloud", "a job that it depends on"),
        ("job held by the site's policy", "being held"),
        ("GPUsReservedForInference", "a reservation"),
        ("NvlinkDomainBusy", "GPUs or what belongs to them"),
        ("TopologyBlockFull", "the nodes it needs"),
        ("MaxFluxPerJob", "a limit"),
    ],
)
def test_a_reason_of_a_newer_slurm_is_explained_by_what_its_name_tells(code: str, about: str) -> None:
    (found,) = explain_reason(code)
    assert (found.code, found.title, found.known) == (code, f"by its name about {about}", False)
    assert f"by its name it is about {about}." in found.meaning
    assert not found.stuck  # nobody knows


def test_guesses_never_stand_before_what_is_known() -> None:
    """`AssocGrp*` and the like are told as what they are, whatever words are in the code."""
    for entry in load("slurm_reasons"):
        assert all(found.known for code in entry["codes"] for found in explain_reason(str(code).replace("*", "Gpu")))


def test_guesses_are_whole_and_end_in_sentences() -> None:
    for guess in load("slurm_reason_guesses"):
        assert guess["words"] == [word.casefold().replace(" ", "").replace("_", "") for word in guess["words"]]
        assert guess["next"].endswith(".")
        assert guess["about"][0].islower() or guess["about"].startswith("GPU")


def test_a_special_limit_wins_over_the_family_it_belongs_to() -> None:
    special, family = explain_reason("QOSMaxWallDurationPerJobLimit,QOSMaxCpuPerUserLimit")
    assert special.title != family.title


def test_the_catalogue_has_no_code_twice() -> None:
    codes = [str(code).casefold() for entry in load("slurm_reasons") for code in entry["codes"]]
    assert len(codes) == len(set(codes))


@given(st.text(alphabet="Prio,ty ()[]:_UnavlbeNods1-\x1b\n", max_size=60))
def test_any_text_ends_and_is_harmless(text: str) -> None:
    for found in explain_reason(text):
        assert found.code
        assert found.code.isprintable()
