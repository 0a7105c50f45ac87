"""Expected ranks against living ones: one Rank each, with what it is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cockpit.diagnosis.doing import doing
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
    NodeEvidence,
    Rank,
)
from cockpit.diagnosis.gathered import GatheredGpu
from cockpit.diagnosis.layout import homes, world_size
from cockpit.rank_models import Pulse, RankProcess

_NAMELESS = "its node could not tell which process is which rank"
_OTHER_PART = "it seems to belong to another part of this heterogeneous job"
_LISTEN, _ESTABLISHED = "0A", "01"
_BUSY_NS = 0.3  # of the time between two looks: then it computes
_STILL_NS = 3_000_000  # less than that of CPU time between two looks is no work


@dataclass(frozen=True, slots=True)
class Census:
    """The ranks in order, processes beyond one a rank, and how many there should be."""

    ranks: tuple[Rank, ...] = ()
    extra: tuple[Rank, ...] = ()
    world: int | None = None


def take(
    nodes: Sequence[NodeEvidence], launched: int | None, gpus: Sequence[GatheredGpu], *, elsewhere: bool = False
) -> Census:
    """The census over all nodes of a job; `elsewhere`: there are other parts, which ranks may be in."""
    leads: dict[int, tuple[str, RankProcess]] = {}
    extra: list[Rank] = []
    for node in nodes:
        for lead in leads_of(node):
            if lead.rank is None:
                continue
            if lead.rank in leads:
                extra.append(Rank(lead.rank, node.name, lead.local, UNKNOWN, "a second process of this rank", lead))
            else:
                leads[lead.rank] = (node.name, lead)
    world = world_size([lead for _, lead in leads.values()], launched)
    table = homes(leads, [node.name for node in nodes], world)
    by_place = _gpus_by_place(gpus)
    ranks = [_living(rank, *leads[rank], by_place) for rank in sorted(leads)]
    lacking = _lacking(range(world or 0), leads, table, nodes)
    ranks += [_perhaps_elsewhere(rank, leads) for rank in lacking] if elsewhere else lacking
    ranks.sort(key=lambda each: each.rank)
    return Census(tuple(_odd_programs(ranks)), tuple(extra), world)


def _perhaps_elsewhere(rank: Rank, leads: Iterable[int]) -> Rank:
    """Parts of a job have their ranks one behind the other, so what lies between living ones belongs to this part."""
    if min(leads, default=0) < rank.rank < max(leads, default=0):
        return rank
    return replace(rank, node="", state=UNREAD, words=_OTHER_PART, sure=False)


def leads_of(node: NodeEvidence) -> list[RankProcess]:
    """The processes that stand for ranks on a node; by Slurm's list where no environment may be read."""
    sweep = node.sweep
    if sweep is None or sweep.processes is None:
        return []
    leads = [process for process in sweep.processes if process.lead and process.rank is not None]
    if leads or not sweep.listed:
        return leads
    by_pid = {process.pid: process for process in sweep.processes}
    first: dict[int, RankProcess] = {}
    for pid, _, rank in sorted(sweep.listed):
        if rank is not None and rank not in first and pid in by_pid:
            first[rank] = replace(by_pid[pid], rank=rank, lead=True)
    return list(first.values())


def _living(rank: int, node: str, lead: RankProcess, gpus: Mapping[tuple[str, str, int], GatheredGpu]) -> Rank:
    does = doing(lead)
    moved = has_moved(lead)
    state, words = _state(lead, moved)
    if does is not None and state in (WAITING, WORKING, UNKNOWN):
        words = does.words
        state = WAITING if does.waits_for_others else state
    gpu = gpus.get((node, "pid", lead.pid))
    if gpu is None and lead.local is not None:
        gpu = gpus.get((node, "slot", lead.local))
    sockets = lead.close.sockets if lead.close else None
    connected = None if sockets is None else any(state in (_ESTABLISHED, _LISTEN) for _, state in sockets)
    return Rank(rank, node, lead.local, state, words, lead, does, moved=moved, gpu=gpu, connected=connected)


def _state(lead: RankProcess, moved: bool | None) -> tuple[str, str]:
    pulses = [pulse for pulse in (lead.first, lead.second) if pulse is not None]
    states = [pulse.state for pulse in pulses]
    last = states[-1] if states else lead.state
    if last == "":
        return MISSING, "its process ended while we looked"
    if last == "Z":
        return ZOMBIE, "its process has ended and nobody has collected it"
    if last in ("T", "t"):
        tracer = " by a debugger" if last == "t" else " by a signal"
        return STOPPED, f"its process is stopped{tracer}"
    # One that reads and writes a lot is often seen so; what hangs there does nothing in between.
    if last == "D" and all(state == "D" for state in states) and not moved:
        where = pulses[-1].wait_channel
        file = lead.close.file if lead.close else ""
        return BLOCKED, f"hangs in the kernel{f' in {where}' if where else ''}{f' on {file}' if file else ''}"
    if moved is None:
        return UNKNOWN, "nothing is known of what it does"
    return (WORKING, "runs") if moved else (UNKNOWN, "does not move")


def has_moved(lead: RankProcess) -> bool | None:
    """Whether it did anything between the two looks; None when there were not two, or when nothing tells."""
    first, second = lead.first, lead.second
    stacks = [dump.main.frames for dump in lead.dumps if dump.main is not None]
    if len(stacks) == 2 and stacks[0] != stacks[1]:
        return True
    if first is None or second is None:
        return None
    if first.switches is not None and second.switches is not None and second.switches > first.switches:
        return True
    if first.run_ns is not None and second.run_ns is not None:
        return second.run_ns - first.run_ns > _STILL_NS
    return _ticked(first, second)


def _ticked(first: Pulse, second: Pulse) -> bool | None:
    if first.cpu_ticks is None or second.cpu_ticks is None:
        return None
    return second.cpu_ticks > first.cpu_ticks


def computes(lead: RankProcess) -> bool:
    """Whether its main thread used the CPU for much of the time between the two looks."""
    first, second = lead.first, lead.second
    if first is None or second is None or first.run_ns is None or second.run_ns is None:
        return False
    passed_s = second.at - first.at
    return passed_s > 0 and (second.run_ns - first.run_ns) / 1e9 > _BUSY_NS * passed_s


def _lacking(
    wanted: Iterable[int],
    leads: Mapping[int, tuple[str, RankProcess]],
    table: Mapping[int, str],
    nodes: Sequence[NodeEvidence],
) -> list[Rank]:
    """Ranks without a process: missing, or not read when their node gave no answer."""
    unread = {
        node.name: "its node has not answered" for node in nodes if node.sweep is None or node.sweep.processes is None
    }
    unread |= {node.name: _NAMELESS for node in nodes if node.name not in unread and _nameless(node)}
    found = []
    for rank in wanted:
        if rank in leads:
            continue
        node = table.get(rank, "")
        if node in unread or (not node and unread):
            words = unread.get(node) or next(iter(unread.values()))
            found.append(Rank(rank, node, None, UNREAD, words, sure=bool(node)))
        else:
            found.append(Rank(rank, node, None, MISSING, "there is no process of it", sure=bool(node)))
    return found


def _nameless(node: NodeEvidence) -> bool:
    """True when neither environments nor Slurm's list say which rank the processes that are there belong to."""
    there = node.sweep.processes if node.sweep is not None else None
    return any(process.env_why for process in there or ()) and not leads_of(node)


def _gpus_by_place(gpus: Sequence[GatheredGpu]) -> dict[tuple[str, str, int], GatheredGpu]:
    found: dict[tuple[str, str, int], GatheredGpu] = {}
    for gpu in gpus:
        found[gpu.node, "slot", gpu.slot] = gpu
        for pid in gpu.pids:
            found[gpu.node, "pid", pid] = gpu
    return found


def _odd_programs(ranks: list[Rank]) -> list[Rank]:
    """A rank whose program is another than nearly everybody's has not started, or has become something else."""
    commands = Counter(rank.process.command for rank in ranks if rank.process is not None)
    if len(commands) < 2:
        return ranks
    usual, count = commands.most_common(1)[0]
    if count * 2 <= commands.total():
        return ranks
    found = []
    for rank in ranks:
        process = rank.process
        other = process is not None and not _same(process.command, usual) and commands[process.command] * 4 <= count
        if process is not None and other and rank.state in (WAITING, WORKING, UNKNOWN):
            words = f"runs {process.command}, where the others run {usual}"
            rank = replace(rank, state=ALONE, words=words)
        found.append(rank)
    return found


def _same(command: str, usual: str) -> bool:
    """python and python3.11 are one program; a name that a process gave itself is no other program."""
    return command[:6] == usual[:6] or command.startswith(("pt_", "ray::")) or usual.startswith(("pt_", "ray::"))
