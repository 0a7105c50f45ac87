"""Hypotheses that the ranks themselves tell: gone, stopped, stuck in the kernel, elsewhere in the program."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from cockpit.diagnosis import moves
from cockpit.diagnosis.evidence import (
    ALONE,
    BLOCKED,
    MISSING,
    STOPPED,
    UNKNOWN,
    UNREAD,
    WAITING,
    WORKING,
    ZOMBIE,
    Evidence,
    Rank,
)
from cockpit.diagnosis.hypothesis import CERTAIN, HUNG, LIKELY, POSSIBLE, SLOW, Hypothesis
from cockpit.diagnosis.naming import ranks_word
from cockpit.formats.hostlist import brief, fold
from cockpit.words import plural, span

ELSEWHERE = 15  # the place of such a hypothesis among those of the same confidence
_FEW = 0.5  # of the ranks: more than that is no minority


def of_ranks(evidence: Evidence) -> Iterator[Hypothesis]:
    """Every hypothesis that the census supports."""
    if not evidence.job.running:
        return
    for case in (_stopped, _gone, _other_program, _blocked, _elsewhere, _twice):
        yield from case(evidence)


def who(ranks: Sequence[Rank]) -> str:
    """`rank 13 on gpu-2`, `ranks 3,5 on gpu-[1-2]`."""
    nodes = {rank.node for rank in ranks if rank.node}
    guess = "" if all(rank.sure for rank in ranks) else "probably "
    return f"{ranks_word(rank.rank for rank in ranks)}{f' {guess}on {brief(sorted(nodes))}' if nodes else ''}"


def numbers(ranks: Sequence[Rank]) -> tuple[int, ...]:
    """Their numbers."""
    return tuple(rank.rank for rank in ranks)


def places(ranks: Sequence[Rank]) -> tuple[str, ...]:
    """Their nodes, each once."""
    return tuple(dict.fromkeys(rank.node for rank in ranks if rank.node))


def others_wait(evidence: Evidence, ranks: Sequence[Rank]) -> str:
    """What the rest does, as evidence."""
    own = {rank.rank for rank in ranks}
    waiting = [rank for rank in evidence.of_state(WAITING) if rank.rank not in own]
    rest = len([rank for rank in evidence.ranks if rank.rank not in own])
    kinds = Counter(rank.doing.short for rank in waiting if rank.doing)
    if not kinds:
        return ""
    return f"each of {len(waiting)} of the other {rest} {kinds.most_common(1)[0][0]}"


def _verb(ranks: Sequence[Rank], one: str, many: str) -> str:
    return one if len(ranks) == 1 else many


def _stopped(evidence: Evidence) -> Iterator[Hypothesis]:
    found = evidence.of_state(STOPPED)
    if not found or evidence.job.state == "SUSPENDED":
        return
    pids = ", ".join(f"{rank.process.pid} on {rank.node}" for rank in found[:4] if rank.process)
    yield Hypothesis(
        "rank-stopped",
        HUNG,
        "a rank is stopped",
        f"{who(found)} {_verb(found, 'is', 'are')} stopped (state {_states(found)}); the others can only wait",
        CERTAIN,
        10,
        numbers(found),
        places(found),
        _told(f"process {pids}: {found[0].words}", others_wait(evidence, found)),
        (),
        f"Find out who stopped it (a debugger, kill -STOP, ctrl+z); `kill -CONT` lets it go on: {pids}.",
        moves.again(evidence),
    )


def _states(ranks: Sequence[Rank]) -> str:
    pulses = {(rank.process.second or rank.process.first) for rank in ranks if rank.process}
    return ",".join(sorted({pulse.state for pulse in pulses if pulse is not None}))


def _gone(evidence: Evidence) -> Iterator[Hypothesis]:
    found = evidence.of_state(MISSING, ZOMBIE)
    living = [rank for rank in evidence.ranks if rank.process is not None and rank.state not in (MISSING, ZOMBIE)]
    if not found or not living:
        return
    never = [rank for rank in found if _never_launched(evidence, rank)]
    died = [rank for rank in found if rank not in never]
    if never:
        yield _never(evidence, never)
    if died:
        yield _died(evidence, died)


def _never_launched(evidence: Evidence, rank: Rank) -> bool:
    """Slurm launched fewer tasks than the program expects, and this number is beyond them."""
    launched, world = evidence.launched, evidence.world
    if launched is None or world is None or rank.state == ZOMBIE:
        return False
    # With torchrun a task starts several ranks: then more live than there are tasks.
    living = len([each for each in evidence.ranks if each.process is not None])
    return living <= launched <= rank.rank < world


def _never(evidence: Evidence, found: Sequence[Rank]) -> Hypothesis:
    return Hypothesis(
        "rank-never-started",
        HUNG,
        "a rank never started",
        f"{who(found)} never started: {evidence.world} ranks are expected and Slurm launched {evidence.launched} tasks",
        CERTAIN,
        11,
        numbers(found),
        places(found),
        _told(f"WORLD_SIZE is {evidence.world}, the step has {evidence.launched} tasks", others_wait(evidence, found)),
        (),
        "Compare the step's --ntasks with the world size of the program; see the launch lines in its output.",
        moves.of_program(evidence),
    )


def _died(evidence: Evidence, found: Sequence[Rank]) -> Hypothesis:
    reason, text = _why_gone(evidence)
    early = _at_the_start(evidence, found)
    nodes = places(found)
    whole = [node for node in nodes if all(r in found for r in evidence.ranks if r.node == node)]
    zombies = [rank for rank in found if rank.state == ZOMBIE]
    if reason:
        how = reason
    elif zombies:
        how = "its process has ended" if len(found) == 1 else "their processes have ended"
    else:
        how = "no process of it is left" if len(found) == 1 else "no process of them is left"
    sentence = f"{who(found)} {_verb(found, 'is', 'are')} gone: {how}; the others wait for it"
    if early and not reason:
        sentence = f"{who(found)} never started, or ended at once: {how} and the others wait for all to come"
    if whole and len(whole) * 3 <= len(evidence.nodes):
        sentence = f"all ranks on {fold(whole)} are gone: {how}; the others wait for them"
    return Hypothesis(
        "rank-never-started" if early and not reason else "out-of-memory" if "memory" in reason else "rank-died",
        HUNG,
        "a rank never started" if early and not reason else "a rank died",
        sentence,
        CERTAIN if all(rank.sure for rank in found) else LIKELY,
        12,
        numbers(found),
        nodes,
        _told(
            f"{plural(len(found), 'rank')} of {evidence.world} without a process", text, others_wait(evidence, found)
        ),
        (),
        _look_where_it_died(found, nodes),
        moves.of_hardware(evidence, whole) if whole else moves.again(evidence),
    )


def _look_where_it_died(found: Sequence[Rank], nodes: Sequence[str]) -> str:
    where = fold(nodes) or "its node"
    return f"Look at what {ranks_word(numbers(found))} wrote last, and at the kernel's log of {where} (memory, Xid)."


def _why_gone(evidence: Evidence) -> tuple[str, str]:
    """What a log says of a death, and the line."""
    for log in evidence.logs:
        for found in log.explained.digest.findings:
            if found.sign.id in ("oom-kill", "host-oom", "script-killed"):
                return "killed for memory", found.text
    for log in evidence.logs:
        for found in log.explained.digest.findings:
            if found.sign.id == "task-ended":
                return "", found.text
    return "", ""


def _at_the_start(evidence: Evidence, found: Sequence[Rank]) -> bool:
    """Whether the others still wait for all to come, so that the missing ones were perhaps never there."""
    own = {rank.rank for rank in found}
    kinds = Counter(rank.doing.kind for rank in evidence.ranks if rank.doing and rank.rank not in own)
    return bool(kinds) and kinds.most_common(1)[0][0] in ("rendezvous", "setup")


def _other_program(evidence: Evidence) -> Iterator[Hypothesis]:
    found = evidence.of_state(ALONE)
    if not found:
        return
    yield Hypothesis(
        "rank-never-started",
        HUNG,
        "a rank runs something else",
        f"{who(found)} {found[0].words}: the program itself has not started there",
        LIKELY,
        13,
        numbers(found),
        places(found),
        _told(found[0].words, others_wait(evidence, found)),
        (),
        f"See what the launch script does on {fold(places(found))} before it starts the program.",
        moves.again(evidence),
    )


def _blocked(evidence: Evidence) -> Iterator[Hypothesis]:
    found = evidence.of_state(BLOCKED)
    by_kind: dict[str, list[Rank]] = defaultdict(list)
    for rank in found:
        by_kind[rank.doing.kind if rank.doing else "kernel"].append(rank)
    for kind, ranks in by_kind.items():
        mounts = _hung_mounts(evidence, places(ranks))
        driver = kind == "driver"
        what = "the GPU's driver" if driver else f"a file system{f' ({mounts})' if mounts else ''}"
        yield Hypothesis(
            "driver-hung" if driver else "storage-hung",
            HUNG,
            f"a rank hangs in {what}",
            f"{who(ranks)} {_verb(ranks, 'hangs', 'hang')} in the kernel, as a rule in {what}: {ranks[0].words}",
            CERTAIN if mounts or kind in ("storage", "driver") else LIKELY,
            14,
            numbers(ranks),
            places(ranks),
            _told(ranks[0].words, mounts and f"does not answer: {mounts}", others_wait(evidence, ranks)),
            (),
            "No signal ends such a process: drain the node and reboot it."
            if driver
            else "Look at the file server first: is it one node or all? A node on its own needs a reboot.",
            moves.of_hardware(evidence, places(ranks)),
        )


def _hung_mounts(evidence: Evidence, nodes: Sequence[str]) -> str:
    found = {
        mount.path
        for node in evidence.nodes
        if node.name in nodes and node.sweep
        for mount in node.sweep.mounts
        if mount.hung_since is not None or "does not answer" in mount.error
    }
    return ", ".join(sorted(found))


# One rank elsewhere in the program, while the others wait.


def _elsewhere(evidence: Evidence) -> Iterator[Hypothesis]:
    known = [r for r in evidence.of_state(WAITING, WORKING, UNKNOWN) if r.doing is not None]
    waiting = [rank for rank in known if rank.doing and rank.doing.waits_for_others]
    if waiting:
        odd, sure = [rank for rank in known if not (rank.doing and rank.doing.waits_for_others)], True
    else:
        odd, sure = _minority(known), False
        own = {rank.rank for rank in odd}
        waiting = [rank for rank in known if rank.rank not in own]
    if not odd or len(odd) > _FEW * len(known):
        return
    # Those that do the same are one finding; the smallest group is the most telling.
    groups: dict[tuple[str, bool], list[Rank]] = defaultdict(list)
    for rank in odd:
        groups[rank.doing.key if rank.doing else "", bool(rank.moved)].append(rank)
    for group in sorted(groups.values(), key=len)[:4]:
        yield _odd_group(evidence, group, waiting, sure)


def _minority(known: Sequence[Rank]) -> list[Rank]:
    """Where nobody is seen waiting for others: those that do not do what nearly all do, and do not move."""
    keys = Counter((rank.doing.key if rank.doing else "", rank.moved) for rank in known)
    if not keys:
        return []
    usual, count = keys.most_common(1)[0]
    if count < 0.6 * len(known) or len(known) < 3:
        return []
    return [rank for rank in known if rank.moved is False and (rank.doing.key if rank.doing else "", False) != usual]


def _odd_group(evidence: Evidence, group: Sequence[Rank], waiting: Sequence[Rank], sure: bool) -> Hypothesis:
    doing = group[0].doing
    assert doing is not None
    still = all(rank.moved is False for rank in group)
    stale = _stale(evidence)
    grows = any(log.grown for log in evidence.logs)
    if still:
        confidence = LIKELY if (sure or doing.stacked or stale) and not grows else POSSIBLE
    else:
        confidence = LIKELY if stale else POSSIBLE
    confidence = POSSIBLE if group[0].moved is None and not stale else confidence
    state = HUNG if still or stale else SLOW
    does = f"{doing.words}{'' if still else ' and goes on there' if not stale else ''}"
    return Hypothesis(
        _ELSEWHERE.get(doing.kind, "rank-elsewhere"),
        state,
        f"a rank {doing.short} while the others wait",
        f"{who(group)} {does}; {plural(len(waiting), 'other rank')} {_verb(waiting, 'waits', 'wait')} for it",
        confidence,
        ELSEWHERE,
        numbers(group),
        places(group),
        _told(
            f"{ranks_word(numbers(group))}: {group[0].words}",
            others_wait(evidence, group),
            "it did not move between two looks" if still else "",
            f"nothing was written for {span(_silence_s(evidence))}" if stale else "",
        ),
        _told("its output still grows" if grows else "", "" if still else "it moves: it may only be slow"),
        _NEXT.get(doing.kind, f"See what the program does in {doing.where or 'that place'}; look again in a minute."),
        moves.of_program(evidence) if doing.kind in ("python", "lock", "debugger") else moves.again(evidence),
    )


_ELSEWHERE = {"data": "data-loader", "storage": "storage-stall", "pipe": "storage-stall", "lock": "python-lock"}
_NEXT = {
    "data": "Look at its data loader and at the file system it reads from; look again in a minute.",
    "storage": "Look at the mounts of its node: is the file system slow, hung or full?",
    "pipe": "Nobody writes to what it reads: a helper process has ended, or the file is no ordinary file.",
    "lock": "Threads of that process wait for each other: its stacks say which; no node is to blame.",
    "debugger": "Somebody left a breakpoint in; no node is to blame.",
    "service": "Is that service up? Does the node reach it?",
}


def _stale(evidence: Evidence) -> bool:
    told = [log.progress.stale(log.age_s) for log in evidence.logs if log.own]
    return bool(told) and all(told) and not any(log.grown for log in evidence.logs)


def _silence_s(evidence: Evidence) -> float | None:
    ages = [log.age_s for log in evidence.logs if log.age_s is not None]
    return min(ages) if ages else None


def _twice(evidence: Evidence) -> Iterator[Hypothesis]:
    if not evidence.extra:
        return
    yield Hypothesis(
        "rank-twice",
        HUNG,
        "ranks have more than one process",
        f"{who(evidence.extra)} {_verb(evidence.extra, 'has', 'have')} more than one process: a second launcher, "
        "or what an earlier run left",
        POSSIBLE,
        30,
        numbers(evidence.extra),
        places(evidence.extra),
        _told(f"process {evidence.extra[0].process.pid}" if evidence.extra[0].process else ""),
        (),
        "End what is left of earlier runs on these nodes.",
        moves.again(evidence),
    )


def _told(*words: str) -> tuple[str, ...]:
    return tuple(word for word in words if word)


def unread(evidence: Evidence) -> tuple[Rank, ...]:
    """Ranks of nodes that have not answered."""
    return evidence.of_state(UNREAD)
