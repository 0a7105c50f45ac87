"""Running a sweep inside one allocation: the commands that hold it, the program that runs rounds of steps, its reader.

One job holds all nodes, so that nobody comes between the rounds and one scancel ends everything. A small shell
program on the head starts the steps of each round at once and marks their lines; when its stdin ends, because the
sweep is over, cancelled, or the cockpit is gone, it cancels the job.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand, fold
from cockpit.formats.nccl_tests import NcclReader
from cockpit.hosts.base import Host, LineStream
from cockpit.nccl.measured import Outcome, Trial
from cockpit.nccl.models import NcclRow, NcclRun
from cockpit.nccl.run import CLEAN, FIND_LIBRARIES, GIB, NcclRequest, environment, srun_options, test_command
from cockpit.nccl.sweep import Sweep
from cockpit.nccl.verdict import large_rows
from cockpit.text import printable

SWEEP_PREFIX = "cockpit-sweep-"
STEP_EXTRA_S = 60  # starting and ending, beyond nccl-tests' own time-out
GRANT_WAIT_S = 15  # the nodes are idle, so an allocation comes at once or not at all
# salloc gives the nodes out only when their prologs have ended; ParallelCluster's GPU health check takes minutes there.
HOLD_S = 300.0
_ROUND_DONE = b"# cockpit-round-done"
_MARKED = re.compile(rb"T(\d{1,7})> (.*)", re.DOTALL)
_EXIT = re.compile(rb"# cockpit-exit: (\d{1,3})")
_GRANTED = re.compile(r"(?:Granted|Pending) job allocation (\d{1,10})")
# What srun says when the job that it should run in has ended.
_JOB_GONE = re.compile(r"Slurm job \S+ has expired|Expired or invalid job|Job/step already completing")
# Exit codes of `timeout`, and what srun says of it then; a process that was killed for memory gives 137, too.
_TIMED_OUT = {124: ("cancelled", "launch"), 137: ("cancelled",)}
JOB_GONE, CUT_OFF = "the job that held the nodes ended", "the connection to the head ended"
_NODE_GONE = re.compile(r"[Nn]ode failure on (\S{1,200})")

OnRow = Callable[[Trial, NcclRow], None]
OnOutcome = Callable[[Trial, Outcome], None]
Gone = Callable[[], Mapping[str, str]]  # nodes that are down now -> why


def sweep_request(request: NcclRequest) -> NcclRequest:
    """Sizes of 1 and 4 GiB: all that a comparison needs, 20 to 40 s a round."""
    return replace(request, min_bytes=GIB, max_bytes=4 * GIB, factor=4)


def hold_argv(request: NcclRequest, name: str, limit_min: int) -> tuple[str, ...]:
    """The command that allocates the nodes without running anything; a node that dies does not end the job.

    It prints the job id (`allocation_of`); when the nodes are not free at once it fails and leaves nothing behind.
    """
    if not name.startswith(SWEEP_PREFIX):
        raise ValueError(f"{name!r} is no name of a sweep")
    optional = {"partition": request.partition, "account": request.account, "reservation": request.reservation}
    return (
        "salloc",
        "--no-shell",
        "--no-kill",
        "--exclusive",
        f"--immediate={GRANT_WAIT_S}",
        f"--job-name={name}",
        f"--nodes={len(request.nodes)}",
        f"--nodelist={fold(request.nodes)}",
        f"--ntasks-per-node={request.gpus_per_node}",
        f"--gpus-per-node={request.gpus_per_node}",
        f"--time={limit_min}",
        *(f"--{key}={value}" for key, value in optional.items() if value),
    )


def allocation_of(said: str) -> int | None:
    """The job id in salloc's answer; None when it got none."""
    found = _GRANTED.search(said)
    return int(found[1]) if found else None


# $1 job id, $2 scancel; then srun with its options, the test and its arguments. Commands on stdin, one a line:
# `run NUMBER COUNT HOSTS` for each step of a round, then `go`.
_KEEPER = r"""
job=$1 scancel=$2
shift 2
trap '"$scancel" "$job" >/dev/null 2>&1' EXIT
trap 'exit 1' HUP INT TERM
__CLEAN__
__EXPORTS__
step() {
    number=$1 count=$2 hosts=$3 srun=$4
    shift 4
    [ "$count" -gt 1 ] && [ -n '__ALGO__' ] && export NCCL_ALGO='__ALGO__'
    # A step with a node that died stays in the books and would block its other nodes: hence --overlap.
    set -- timeout -k 10 __LIMIT__ "$srun" --jobid="$job" --overlap --nodelist="$hosts" --nodes="$count" \
        --ntasks=$((count * __GPUS__)) "$@"
    { "$@" </dev/null 2>&1; echo "# cockpit-exit: $?"; } |
        sed -u "s/^/T$number> /"
}
round() {
    steps=$1
    shift
    for each in $steps; do
        number=${each%%:*} rest=${each#*:}
        step "$number" "${rest%%:*}" "${rest#*:}" "$@" &
    done
    wait
    echo '# cockpit-round-done'
}
steps=
# Rounds run beside this loop, so that the end of stdin is seen at once.
while read -r verb number count hosts; do
    case $verb in
    run) steps="$steps $number:$count:$hosts" ;;
    go) round "$steps" "$@" & steps= ;;
    esac
done
"""
# Libraries are looked for on the node: the head of a cluster often has other ones, or none.
_ON_NODE = f'{FIND_LIBRARIES}\nexec "$@"'


def keeper_argv(request: NcclRequest, job_id: int, *, slurm_dir: str = "") -> tuple[str, ...]:
    """The program that runs rounds in that allocation; `slurm_dir` is where srun and scancel lie."""
    settings = environment(replace(request, algorithm="default"))
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in settings.items())
    program = _KEEPER.replace("__CLEAN__", CLEAN).replace("__EXPORTS__", exports)
    program = program.replace("__GPUS__", str(request.gpus_per_node))
    program = program.replace("__LIMIT__", str((request.timeout_s or 60 * request.limit_min) + STEP_EXTRA_S))
    program = program.replace("__ALGO__", "Ring" if request.algorithm == "ring" else "")
    folder = f"{slurm_dir.rstrip('/')}/" if slurm_dir else ""
    on_node = () if request.container else ("sh", "-c", _ON_NODE, "sh")
    step = (f"{folder}srun", *srun_options(request), f"--time={request.limit_min}", *on_node, *test_command(request))
    return "sh", "-c", program, "sh", str(job_id), f"{folder}scancel", *step


@dataclass(slots=True)
class _Step:
    trial: Trial
    reader: NcclReader
    exit_code: int | None = None


class SweepDriver:
    """Between a sweep and the keeper: feed() takes its lines and gives what to write to its stdin."""

    def __init__(
        self,
        sweep: Sweep,
        *,
        gone: Gone = dict,
        on_row: OnRow | None = None,
        on_outcome: OnOutcome | None = None,
        on_round: Callable[[], None] = lambda: None,
    ) -> None:
        self.sweep = sweep
        self.over = False
        self.broken_off = ""  # why it ended before its end
        self._gone, self._on_row, self._on_outcome, self._on_round = gone, on_row, on_outcome, on_round
        self._steps: dict[int, _Step] = {}

    def begin(self) -> bytes:
        """The commands of the first round."""
        return self._next_round()

    def feed(self, line: bytes) -> bytes:
        """Read one line of the keeper's output; commands to write, b"" for none. `over` tells the end."""
        if line.startswith(_ROUND_DONE):
            if any(job_gone(step.reader) for step in self._steps.values()):
                self.abandon(JOB_GONE)
                return b""
            self._end_round()
            return self._next_round()
        found = _MARKED.match(line)
        step = self._steps.get(int(found[1])) if found else None
        if found is None or step is None:
            return b""
        if (ended := _EXIT.match(found[2])) is not None:
            step.exit_code = int(ended[1])
            return b""
        for row in step.reader.feed(found[2]):
            if self._on_row is not None:
                self._on_row(step.trial, row)
        return b""

    def abandon(self, why: str) -> None:
        """It goes on no longer: trials that are still open gave nothing, through no fault of a node."""
        self.broken_off = why
        for trial in self.sweep.open_trials:
            self._record(trial, Outcome(text=why))
        self.over = True

    def _next_round(self) -> bytes:
        trials = self.sweep.next_round()
        self._steps = {trial.number: _Step(trial, NcclReader()) for trial in trials}
        self.over = not trials
        self._on_round()
        lines = [f"run {trial.number} {len(trial.nodes)} {','.join(trial.nodes)}\n" for trial in trials]
        return "".join([*lines, "go\n"]).encode() if trials else b""

    def _end_round(self) -> None:
        outcomes = {}
        for step in self._steps.values():
            step.reader.close()
            runs = step.reader.runs()
            run = runs[-1] if runs else None
            outcomes[step.trial] = outcome_of(run, step.exit_code)
            for node in lost_nodes(run):
                self.sweep.lose(node, "Slurm lost it (node failure)")
        if any(outcome.busbw_gbs is None for outcome in outcomes.values()):
            for node, why in self._gone().items():
                self.sweep.lose(node, why)
        lost = self.sweep.measured.lost
        for trial, outcome in outcomes.items():
            dead = [node for node in trial.nodes if node in lost]
            excused = outcome.busbw_gbs is None and dead
            self._record(trial, Outcome(text=f"{dead[0]} was lost") if excused else outcome)

    def _record(self, trial: Trial, outcome: Outcome) -> None:
        self.sweep.record(trial, outcome)
        if self._on_outcome is not None:
            self._on_outcome(trial, outcome)


def outcome_of(run: NcclRun | None, exit_code: int | None) -> Outcome:
    """What a step's output means for the nodes that ran it.

    Wrong data and failures are theirs; a run that was cancelled or gave nothing at all is nobody's.
    """
    if run is None:
        return Outcome(failed=bool(exit_code), text=f"exit code {exit_code}" if exit_code else "no output")
    if run.errors:
        error = run.errors[0]
        if error.kind in _TIMED_OUT.get(exit_code or 0, ()):
            return Outcome(failed=True, text="it hung: its time was up and it was ended")
        nobodys = error.kind in ("cancelled", "node")
        return Outcome(failed=not nobodys, text=f"{error.text}{f' ({error.cause})' if error.cause else ''}")
    wrong = sum(row.wrong or 0 for row in run.rows)
    if wrong:
        return Outcome(failed=True, text=f"wrong data: {wrong:,} wrong values")
    values = [row.busbw_gbs for row in large_rows(run) if row.busbw_gbs is not None]
    if run.complete and values:
        return Outcome(busbw_gbs=max(values))
    return Outcome(failed=bool(exit_code), text="it did not finish")


def job_gone(reader: NcclReader) -> bool:
    """Whether a step could not begin because the job around it had ended."""
    return any(_JOB_GONE.search(error.text) for run in reader.runs() for error in run.errors)


def lost_nodes(run: NcclRun | None) -> tuple[str, ...]:
    """Nodes that Slurm says it lost under the run."""
    texts = [error.text for error in run.errors if error.kind == "node"] if run is not None else []
    names = [found[1].rstrip(".,:") for text in texts if (found := _NODE_GONE.search(text))]
    return tuple(printable(node) for name in names for node in _expanded(name))


def _expanded(name: str) -> Sequence[str]:
    try:
        return expand(name)
    except FormatError:  # a text that is no host list names nobody
        return ()


class SweepRun:
    """A sweep that runs: run() drives it on the calling thread, cancel() may come from any other."""

    def __init__(self, host: Host, driver: SweepDriver, keeper: Sequence[str]) -> None:
        self._host, self._driver, self._keeper = host, driver, keeper
        self._stream: LineStream | None = None
        self._cancelled = threading.Event()

    def run(self, *, open_deadline_s: float = 30.0) -> None:
        """Until the sweep is over, cancelled, or the connection is gone; the job is cancelled in any case.

        Raises FaultError when the keeper cannot be started.
        """
        stream = self._host.stream(self._keeper, open_deadline_s=open_deadline_s, stdin=self._driver.begin())
        self._stream = stream
        try:
            for line in stream:
                if self._cancelled.is_set():
                    break
                more = self._driver.feed(line)
                if self._driver.over:
                    stream.close_stdin()
                elif more:
                    stream.write(more)
        finally:
            stream.close()
            if not self._driver.over:
                self._driver.abandon("cancelled" if self._cancelled.is_set() else CUT_OFF)

    def cancel(self) -> None:
        """End it: the keeper's stdin closes, and it cancels the job with every step."""
        self._cancelled.set()
        if self._stream is not None:
            self._stream.close_stdin()
