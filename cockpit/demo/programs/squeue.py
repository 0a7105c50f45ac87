"""squeue of the demo: the same rows, order, filters and error texts as Slurm's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cockpit.demo.jobs import CODES, ENDED, USERS, SimJob
from cockpit.demo.machines import SLURM_VERSION
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.jobfields import LONG, SHORT, JobRow
from cockpit.demo.programs.table import Answer, WrongUse, encode, options, parse_long, parse_short, render
from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand

_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LONG_LIST = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
_SHORTS = "A:ahi:j:ln:M:o:O:p:q:rR:sS:t:u:vVw:"
_LONGS = (
    "account= all noheader jobs= long name= format= Format= partition= qos= array reservation= sort= start "
    "states= user= users= verbose version nodelist= local federation priority me"
)
_SAME = {
    "--noheader": "-h",
    "--jobs": "-j",
    "--long": "-l",
    "--name": "-n",
    "--format": "-o",
    "--Format": "-O",
    "--partition": "-p",
    "--array": "-r",
    "--states": "-t",
    "--user": "-u",
    "--users": "-u",
    "--version": "-V",
    "--nodelist": "-w",
}
_STATES = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,DEADLINE,"
    "OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,"
    "SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)

Test = Callable[[SimJob], bool]


@dataclass(slots=True)
class _Wanted:
    """The options of one call; `tests` must all hold for a job to be listed."""

    given: dict[str, str]
    tests: list[Test] = field(default_factory=list)
    stderr: str = ""


def squeue(call: Call) -> Answer:
    """Answer one call of squeue. Raises WrongUse for what the real one refuses."""
    pairs, operands = options("squeue", call.argv, _SHORTS, _LONGS)
    wanted = _Wanted({_SAME.get(name, name): value for name, value in pairs})
    if "-V" in wanted.given:
        return Answer(0, encode(f"slurm {SLURM_VERSION}\n"))
    if operands:
        raise WrongUse(f"squeue: error: Unrecognized option: {operands[0]}\n")
    _filters(call, wanted)
    jobs = [job for job in call.sim.jobs.values() if all(test(job) for test in wanted.tests)]
    return _print(call, wanted, _rows(call, jobs, "-r" in wanted.given))


def _filters(call: Call, wanted: _Wanted) -> None:
    given = wanted.given
    _filter_states(given.get("-t"), wanted)
    if given.get("-j"):
        _filter_ids(call, given["-j"], wanted)
    if "--me" in given:
        wanted.tests.append(lambda job: job.ask.user == "demo")
    if "-u" in given:
        _filter_users(given["-u"], wanted)
    if "-w" in given:
        _filter_hosts(call, given["-w"], wanted)
    if "-p" in given:
        partitions = given["-p"].split(",")
        wanted.tests.append(lambda job: job.ask.partition in partitions)
    if "-n" in given:
        names = given["-n"].split(",")
        wanted.tests.append(lambda job: job.ask.name in names)
    if "--start" in given:
        wanted.tests.append(lambda job: job.state == "PENDING")


def _filter_states(text: str | None, wanted: _Wanted) -> None:
    """-t; without it ended jobs are left out. A flag counts as the state: -t R lists no configuring job."""
    if text is None:
        wanted.tests.append(lambda job: job.state not in ENDED)
        return
    names = {code: name for name, code in CODES.items()}
    states = [names.get(word.strip().upper(), word.strip().upper()) for word in text.split(",")]
    if "ALL" in states:
        return
    for word, state in zip(text.split(","), states, strict=True):
        if state not in _STATES.split(","):
            raise WrongUse(
                f"squeue: error: Invalid job state specified: {word}\n"
                f"squeue: error: Valid job states include: {_STATES}\n\n"
            )
    wanted.tests.append(lambda job: job.shown_state in states)


def _filter_ids(call: Call, text: str, wanted: _Wanted) -> None:
    """-j ID[_TASK][,...]; an array's or het job's id stands for all of it."""
    asked: list[tuple[int, int | None]] = []
    for word in text.split(","):
        number, _, task = word.partition("+")[0].partition("_")
        if not number.isdigit():
            raise WrongUse(f"squeue: error: Invalid job id: {word}\n")
        asked.append((int(number), int(task) if task.isdigit() else None))

    def match(job: SimJob) -> bool:
        ids = {job.job_id, job.array_job_id, job.het_job_id}
        return any(number in ids and task in (None, job.task) for number, task in asked)

    if len(asked) == 1 and not any(asked[0][0] in (job.job_id, job.array_job_id) for job in call.sim.jobs.values()):
        raise WrongUse("slurm_load_jobs error: Invalid job id specified\n")
    wanted.tests.append(match)


def _filter_users(text: str, wanted: _Wanted) -> None:
    by_uid = {str(uid): name for name, uid in USERS.items()}
    names = [by_uid.get(word, word) for word in text.split(",")]
    for word, name in zip(text.split(","), names, strict=True):
        if name not in USERS:
            wanted.stderr += f"squeue: error: Invalid user: {word}\n\n"
    wanted.tests.append(lambda job: job.ask.user in names)


def _filter_hosts(call: Call, text: str, wanted: _Wanted) -> None:
    try:
        hosts = set(expand(text))
    except FormatError:
        hosts = {text}
    for host in sorted(hosts):
        if host not in call.sim.nodes:
            raise WrongUse(f"squeue: error: Invalid node name {host}\n")
    wanted.tests.append(lambda job: not hosts.isdisjoint(job.hosts))


def _rows(call: Call, jobs: Sequence[SimJob], expand_arrays: bool) -> list[JobRow]:
    """Rows in squeue's default order: partition, state, priority downwards."""
    ordered = sorted(jobs, key=lambda job: (job.ask.partition, CODES[job.shown_state], -job.priority, job.job_id))
    rows: list[JobRow] = []
    for job in ordered:
        tasks: Sequence[int | None] = job.rest if expand_arrays and job.rest else [None]
        rows += [JobRow(job, call.sim.now, call.env, task) for task in tasks]
    return rows


def _print(call: Call, wanted: _Wanted, rows: Sequence[JobRow]) -> Answer:
    given, title = wanted.given, b""
    if "-O" in given:
        columns, complaints = parse_long("squeue", given["-O"], LONG)
    else:
        default = _START if "--start" in given else _LONG_LIST if "-l" in given else _DEFAULT
        form = given.get("-o") or call.env.get("SQUEUE_FORMAT") or default
        columns, complaints = parse_short("squeue", form, SHORT)
    if "-l" in given and "-h" not in given:
        title = encode(time.strftime("%a %b %d %H:%M:%S %Y\n", time.localtime(call.sim.now)))
    text = render(columns, rows, "-h" not in given)
    return Answer(0, title + text, encode(wanted.stderr + complaints))
