"""scontrol of the demo: ping, version, listpids, show, and what changes things (for root, behind sudo)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cockpit.demo.jobs import SimJob
from cockpit.demo.machines import SLURM_VERSION
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.jobfields import JobRow
from cockpit.demo.programs.listpids import listpids
from cockpit.demo.programs.partitions import PARTITIONS
from cockpit.demo.programs.records import job_lines, node_lines, partition_lines, reservation_lines
from cockpit.demo.programs.settings import show_config
from cockpit.demo.programs.table import Answer, WrongUse, encode, options
from cockpit.demo.programs.writes import VERBS
from cockpit.demo.sim import HEAD
from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand, fold

_SHORTS = "adDFhlM:oQu:vV"
_LONGS = "all details federation help hide local cluster= oneliner quiet sibling uid= verbose version future"

# Without root these are refused as Slurm does; with it they are not simulated.
_REFUSED = ("reconfigure", "shutdown", "takeover")


class _Style:
    """How records are joined: -o puts each on one line."""

    def __init__(self, oneliner: bool, detail: bool) -> None:
        self.detail = detail
        self._between, self._after = (" ", "\n") if oneliner else ("\n   ", "\n\n")

    def record(self, lines: Iterable[str]) -> str:
        return self._between.join(lines) + self._after


Show = Callable[[Call, Sequence[str], _Style], Answer]


def scontrol(call: Call) -> Answer:
    """Answer one call of scontrol. Raises WrongUse for what the real one refuses."""
    pairs, words = options("scontrol", call.argv, _SHORTS, _LONGS)
    given = {name for name, _ in pairs}
    if given & {"-V", "--version"} or words[:1] == ["version"]:
        return Answer(0, encode(f"slurm {SLURM_VERSION}\n"))
    style = _Style(bool(given & {"-o", "--oneliner"}), bool(given & {"-d", "--details"}))
    if not words:
        raise WrongUse("too few arguments for keyword:\n")
    keyword, rest = words[0], words[1:]
    if keyword == "ping":
        if rest:
            raise WrongUse("too many arguments for keyword:ping\n")
        return Answer(0, encode(f"Slurmctld(primary) at {HEAD} is UP\n"))
    if keyword == "show":
        return _show(call, rest, style)
    if keyword == "listpids":
        return listpids(call, rest)
    if keyword.lower() in VERBS:
        return VERBS[keyword.lower()](call, rest)
    if keyword in _REFUSED:
        raise WrongUse("slurm_update error: Invalid user id\n")
    raise WrongUse(f"invalid keyword: {keyword}\n")


def _show(call: Call, words: Sequence[str], style: _Style) -> Answer:
    if not words:
        raise WrongUse("too few arguments for keyword:show\n")
    entity = words[0].lower()
    for name, least, show in _ENTITIES:
        # Slurm takes every abbreviation that is long enough, and a plural s.
        if len(entity) >= least and (name.startswith(entity) or entity == f"{name}s"):
            return show(call, words[1:], style)
    raise WrongUse(f"invalid entity:{words[0]} for keyword:show \n")


def _nodes(call: Call, words: Sequence[str], style: _Style) -> Answer:
    nodes = sorted(call.sim.nodes.values(), key=lambda node: (node.static, node.index))
    if not words:
        text = "".join(style.record(node_lines(node, call.env, style.detail)) for node in nodes)
        return Answer(0, encode(text))
    text, rc = "", 0
    for name in _names(words[0]):
        node = call.sim.nodes.get(name)
        if node is None:
            text, rc = f"{text}Node {name} not found\n", 1
        else:
            text += style.record(node_lines(node, call.env, style.detail))
    return Answer(rc, encode(text))


def _names(text: str) -> list[str]:
    try:
        return expand(text)
    except FormatError:
        return [text]


def _jobs(call: Call, words: Sequence[str], style: _Style) -> Answer:
    jobs = sorted(call.sim.jobs.values(), key=lambda job: job.job_id)
    if words and words[0]:
        jobs = _find(jobs, words[0])
    if not jobs:
        return Answer(0, b"No jobs in the system\n")
    rows = [JobRow(job, call.sim.now, call.env) for job in jobs]
    return Answer(0, encode("".join(style.record(job_lines(row, style.detail)) for row in rows)))


def _find(jobs: Sequence[SimJob], asked: str) -> list[SimJob]:
    """Records of `123` (all tasks and components), `123_7` or `123+1`."""
    head, plus, offset = asked.partition("+")
    number, underscore, task = head.partition("_")
    if not number.isdigit():
        raise WrongUse("scontrol_print_job error: Invalid job id specified\n")
    own = int(number)
    found = [job for job in jobs if own in (job.job_id, job.array_job_id, job.het_job_id)]
    if not found:
        raise WrongUse("slurm_load_jobs error: Invalid job id specified\n")
    if underscore:
        wanted = int(task) if task.isdigit() else 0
        found = [job for job in found if job.task == wanted or wanted in job.rest]
    elif plus:
        found = [job for job in found if str(job.het_offset) == offset]
    if not found:
        raise WrongUse("", stdout=f"Job {asked if task or plus else f'{asked}0'} not found\n")
    return found


def _partitions(call: Call, words: Sequence[str], style: _Style) -> Answer:
    nodes, states = list(call.sim.nodes.values()), call.sim.queue_states
    setups = [setup for setup in PARTITIONS if not words or setup.name == words[0]]
    if not setups:
        return Answer(1, encode(f"Partition {words[0]} not found\n"))
    lines = [partition_lines(setup, nodes, states.get(setup.name, "UP")) for setup in setups]
    return Answer(0, encode("".join(map(style.record, lines))))


def _config(call: Call, words: Sequence[str], style: _Style) -> Answer:
    return Answer(0, encode(show_config(call)))


def _hostnames(call: Call, words: Sequence[str], style: _Style) -> Answer:
    """Local work without the controller; a broken list is told on stderr with exit 0, as Slurm does."""
    if not words:
        return Answer(0, b"", b"scontrol: error: host list is empty\n")
    try:
        names = expand(words[0]) if words[0] != "(null)" else ["(null)"]
    except FormatError:
        return Answer(0, b"", encode(f"Invalid hostlist: {words[0]}\n"))
    return Answer(0, encode("".join(f"{name}\n" for name in names)))


def _hostlist(call: Call, words: Sequence[str], style: _Style) -> Answer:
    names = [name for word in words for name in _names(word)]
    return Answer(0, encode(fold(names) + "\n"))


def _steps(call: Call, words: Sequence[str], style: _Style) -> Answer:
    """The step that a running job's ranks are in: one task a node, which starts the ranks there."""
    number = words[0].partition(".")[0] if words else ""
    running = [job for job in call.sim.jobs.values() if job.state == "RUNNING" and number in ("", str(job.job_id))]
    if not running:
        return Answer(0, encode(f"Job step {words[0]} not found\n" if words else "No job steps in the system\n"))
    records = [
        style.record(
            (
                f"StepId={job.job_id}.0 StartTime=Unknown TimeLimit=UNLIMITED",
                f"State=RUNNING NodeList={fold(job.hosts)}",
                f"Nodes={len(job.hosts)} Tasks={len(job.hosts)} Name=torchrun Network=(null)",
            )
        )
        for job in sorted(running, key=lambda job: job.job_id)
    ]
    return Answer(0, encode("".join(records)))


def _reservations(call: Call, words: Sequence[str], style: _Style) -> Answer:
    if words and words[0] not in call.sim.reservations:
        return Answer(1, encode(f"Reservation {words[0]} not found\n"))
    found = [each for each in call.sim.reservations.values() if not words or each.name == words[0]]
    if not found:
        return Answer(0, b"No reservations in the system\n")
    return Answer(0, encode("".join(style.record(reservation_lines(each, call.env)) for each in found)))


_ENTITIES: tuple[tuple[str, int, Show], ...] = (
    ("config", 1, _config),
    ("hostnames", 5, _hostnames),
    ("hostlist", 5, _hostlist),
    ("hostlistsorted", 9, _hostlist),
    ("job", 1, _jobs),
    ("node", 1, _nodes),
    ("partition", 1, _partitions),
    ("reservation", 1, _reservations),
    ("step", 2, _steps),
)
