import pytest

from cockpit.formats.node_state import explain_state, judge, parse_state, written_by_program
from cockpit.models import Health, NodeState

OK, DRAINED, WARN, CRITICAL = Health.OK, Health.DRAINED, Health.WARN, Health.CRITICAL
LOST = "Not responding"
TIMEOUT = "ResumeTimeout reached"
XID = "Xid 79 GPU 3 fell off the bus"


def test_states_in_either_case() -> None:
    wanted = NodeState("mixed", frozenset({"cloud", "not_responding", "powering_up"}))
    assert parse_state("mixed+cloud+not_responding+powering_up") == wanted
    assert parse_state("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP") == wanted
    assert parse_state("idle") == NodeState("idle")
    assert parse_state("") == NodeState("unknown")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("drained*", "idle+drain+not_responding"),
        ("mixed-", "mixed+planned"),
        ("draining@", "mixed+drain+reboot_requested"),
        ("inval", "unknown+invalid_reg"),
        ("idle~", "idle+powered_down"),
        ("maint", "idle+maintenance"),
        ("reserved", "idle+reserved"),
        ("alloc#", "allocated+powering_up"),
    ],
)
def test_one_word_forms(text: str, state: str) -> None:
    assert parse_state(text) == parse_state(state)


@pytest.mark.parametrize(
    ("state", "reason", "word", "health"),
    [
        ("idle", "", "idle", OK),
        ("mixed", "", "mixed", OK),
        ("allocated", "", "allocated", OK),
        ("idle+planned", "", "planned", OK),
        ("mixed+planned", "", "mixed", OK),
        ("idle+completing", "", "completing", OK),
        ("mixed+completing", "", "mixed", OK),
        ("idle+reserved", "", "reserved", OK),
        ("idle+blocked", "", "blocked", OK),
        ("idle+dynamic_norm", "", "idle", OK),
        ("future", "", "future", OK),
        # Cloud nodes on their way: nothing to worry about.
        ("idle+cloud+powered_down", "", "powered down", OK),
        ("idle+cloud+powered_down+planned", "", "powered down", OK),
        ("idle+cloud+power_down+powered_down", "", "powered down", OK),
        ("mixed+cloud+not_responding+powering_up", "", "powering up", OK),
        ("allocated+cloud+not_responding+powering_up", "", "powering up", OK),
        ("idle+cloud+not_responding+planned+powering_up", "", "powering up", OK),
        ("idle+cloud+power_up", "", "powering up", OK),
        ("idle+cloud+powering_down", "", "powering down", OK),
        ("idle+completing+power_down", "", "powering down", OK),
        ("allocated+power_down", "", "allocated", OK),
        # A reason left over on a healthy node says nothing.
        ("idle+planned", "efa ports missing Gres=gpu:h100:7", "planned", OK),
        ("mixed", LOST, "mixed", OK),
        # Lost, failed, never there.
        ("down+not_responding", LOST, "down", CRITICAL),
        ("down", "broken fan", "down", CRITICAL),
        ("down+cloud+powered_down+not_responding", TIMEOUT, "failed power-up", CRITICAL),
        ("down+cloud+powered_down", TIMEOUT, "failed power-up", CRITICAL),
        ("down+powered_down", TIMEOUT, "failed power-up", CRITICAL),
        ("unknown+not_responding", "", "unknown", WARN),
        # A power word explains silence only while an instance boots, or where no job runs.
        ("allocated+not_responding+power_down", "", "not responding", CRITICAL),
        ("mixed+cloud+not_responding+powering_down", "", "not responding", CRITICAL),
        ("allocated+cloud+not_responding+power_up", "", "not responding", CRITICAL),
        ("allocated+cloud+not_responding+powered_down", "", "not responding", CRITICAL),
        ("idle+cloud+not_responding+power_down", "", "not responding", WARN),
        ("unknown+cloud+not_responding+power_up", "", "unknown", WARN),
        ("idle+cloud+not_responding+powering_down", "", "powering down", OK),
        ("unknown+cloud+not_responding+powering_up", "", "powering up", OK),
        ("mixed+cloud+drain+not_responding+powering_down", "x", "draining", WARN),
        ("mixed+cloud+drain+not_responding+powering_up", "x", "draining", DRAINED),
        ("idle+not_responding", "", "not responding", WARN),
        ("mixed+not_responding", "", "not responding", CRITICAL),
        ("idle+cloud+powered_down+not_responding", "", "powered down", WARN),
        ("idle+drain+invalid_reg", "gres/gpu count reported lower", "invalid registration", CRITICAL),
        ("unknown+drain+invalid_reg", "", "invalid registration", CRITICAL),
        ("mixed+fail", "", "failing", WARN),
        ("idle+fail", "Action:Replace", "failed", WARN),
        # Drained: by a person, or by a program that found something wrong.
        ("idle+drain", XID, "drained", DRAINED),
        ("mixed+drain", "ECC uncorrectable [auto-remediation] retire pages", "draining", DRAINED),
        ("allocated+drain", "x", "draining", DRAINED),
        ("idle+drain+completing", "x", "draining", DRAINED),
        ("idle+cloud+drain+powered_down", "ice: InsufficientInstanceCapacity", "drained", DRAINED),
        ("mixed+drain+power_down", "POWER_DOWN_ASAP", "draining", DRAINED),
        ("mixed+drain+maintenance+reserved", "x", "draining", DRAINED),
        ("idle+drain", "Kill task failed", "drained", CRITICAL),
        ("mixed+drain", "Prolog error", "draining", CRITICAL),
        ("idle+drain", "gres/gpu count reported lower than configured (7 < 8)", "drained", CRITICAL),
        ("idle+drain+not_responding", XID, "drained", WARN),
        ("idle+drain", "Node failing scheduled_events_check", "drained", WARN),
        # Drain hides down in Slurm's own word.
        ("down+drain", XID, "drained, down", WARN),
        ("down+drain+not_responding", LOST, "drained, down", CRITICAL),
        # Reboots and maintenance are somebody's doing.
        ("mixed+drain+reboot_requested+planned", "kernel update", "reboot pending", DRAINED),
        ("idle+drain+reboot_requested", "kernel update", "reboot pending", DRAINED),
        ("down+cloud+reboot_issued", "Reboot ASAP : reboot issued", "rebooting", DRAINED),
        ("down+reboot_issued", "Reboot ASAP : reboot timed out", "failed reboot", CRITICAL),
        ("idle+maintenance+reserved", "", "maintenance", DRAINED),
        ("mixed+maintenance+reserved", "", "mixed", OK),
        # ParallelCluster's own.
        ("down+cloud", "Static node maintenance: unhealthy node is being replaced", "down", WARN),
        ("down+cloud+powered_down", "inactive partition", "powered down", DRAINED),
        ("down+cloud", "(Code:InsufficientInstanceCapacity)Failure when resuming nodes", "down", CRITICAL),
        ("down+cloud", "(Code:InsufficientInstanceCapacity)Temporarily disabling node due to", "down", WARN),
        # Words that no Slurm of today knows.
        ("melting", "", "melting", Health.UNKNOWN),
        ("idle+quantum", "", "idle", OK),
    ],
)
def test_word_and_health(state: str, reason: str, word: str, health: Health) -> None:
    assert judge(parse_state(state), reason) == (word, health)


def test_every_flag_is_explained() -> None:
    told = explain_state(parse_state("mixed+cloud+not_responding+powering_up"))
    assert len(told) == 4
    assert any("does not answer" in sentence for sentence in told)
    assert any("is normal until it has booted" in sentence for sentence in told)


def test_unknown_words_are_named() -> None:
    told = " ".join(explain_state(parse_state("melting+quantum")))
    assert "'melting'" in told
    assert "'quantum'" in told


def test_a_programs_reason_is_explained_only_where_it_still_counts() -> None:
    assert any("SlurmdTimeout" in line for line in explain_state(parse_state("down+not_responding"), LOST))
    assert not any("SlurmdTimeout" in line for line in explain_state(parse_state("idle"), LOST))


def test_the_trap_of_powered_down_and_not_responding_is_told() -> None:
    told = explain_state(parse_state("idle+cloud+powered_down+not_responding"))
    assert any("by force" in line for line in told)


@pytest.mark.parametrize(
    ("reason", "known"),
    [
        ("Not responding", True),
        ("not responding", True),
        ("Low RealMemory (reported:1000 < 100.00% of configured:2000)", True),
        ("Reboot ASAP : reboot issued", True),
        ("I rebooted it", False),
        ("Xid 79", False),
        ("", False),
    ],
)
def test_who_wrote_a_reason(reason: str, known: bool) -> None:
    assert (written_by_program(reason) is not None) is known
