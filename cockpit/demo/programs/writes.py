"""The verbs of scontrol that change something: update, create, delete, reboot, hold, release, requeue, top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cockpit.demo import changes
from cockpit.demo.jobs import USERS, SimJob
from cockpit.demo.machines import SimNode
from cockpit.demo.programs.asked_jobs import for_each, listed
from cockpit.demo.programs.call import Call
from cockpit.demo.programs.partitions import PARTITIONS
from cockpit.demo.programs.table import Answer, WrongUse, encode
from cockpit.demo.sim import SimReservation
from cockpit.formats.errors import FormatError
from cockpit.formats.hostlist import expand

_NO_REASON = "You must specify a reason when DOWNING or DRAINING a node. Request denied\n"
_NO_NODE = "Invalid node name specified"
_NODE_STATES = "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
_QUEUE_STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")

Verb = Callable[[Call, Sequence[str]], Answer]


def _values(words: Sequence[str]) -> dict[str, str]:
    """`key=value` words with the keys in lower case; `+=` and `-=` keep their sign at the key's end."""
    pairs = (word.partition("=") for word in words)
    return {key.lower(): value for key, equals, value in pairs if equals}


def _unquoted(text: str) -> str:
    """scontrol takes one double quote off either end of a reason."""
    text = text.removeprefix('"')
    return text.removesuffix('"')


def _wrong(text: str) -> WrongUse:
    return WrongUse(f"{text}\n")


def _update(call: Call, words: Sequence[str]) -> Answer:
    values = _values(words)
    for key, change in _UPDATES.items():
        if key in values:
            return change(call, values)
    raise WrongUse(
        "No valid entity in update command\n"
        'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"\n'
    )


def _nodes(call: Call, hosts: str) -> tuple[list[SimNode], bool]:
    """The nodes that are there, and whether all are."""
    try:
        names = expand(hosts)
    except FormatError:
        names = [hosts]
    found = [call.sim.nodes[name] for name in names if name in call.sim.nodes]
    return found, len(found) == len(names)


def _update_nodes(call: Call, values: Mapping[str, str]) -> Answer:
    state, reason = values.get("state", "").lower(), _unquoted(values.get("reason", ""))
    if state in ("drain", "down", "fail") and not reason:
        raise WrongUse(_NO_REASON)
    if state and state not in _NODE_CHANGES:
        raise WrongUse(f"Invalid input: state={state}\nRequest aborted\n{_NODE_STATES}")
    if not call.root:
        raise _wrong("slurm_update error: Invalid user id")
    found, complete = _nodes(call, values["nodename"])
    for node in found:
        try:
            if state:
                _NODE_CHANGES[state](call, node)
        except changes.Denied as why:
            raise _wrong(f"slurm_update error: {why}") from None
        if reason:
            changes.note(call.sim, node, reason)
    if not complete:  # those that are there were changed all the same
        raise _wrong(f"slurm_update error: {_NO_NODE}")
    return Answer()


_NODE_CHANGES: Mapping[str, Callable[[Call, SimNode], None]] = {
    "drain": lambda call, node: changes.drain(call.sim, node),
    "undrain": lambda call, node: changes.undrain(call.sim, node),
    "resume": lambda call, node: changes.resume(call.sim, node),
    "down": lambda call, node: changes.down(call.sim, node),
    "fail": lambda call, node: changes.fail(call.sim, node),
    "power_up": lambda call, node: changes.power_up(call.sim, node),
    "power_down": lambda call, node: changes.power_down(call.sim, node),
    "power_down_asap": lambda call, node: changes.power_down(call.sim, node, asap=True),
    "power_down_force": lambda call, node: changes.power_down_force(call.sim, node),
}


def _update_queue(call: Call, values: Mapping[str, str]) -> Answer:
    name, state = values["partitionname"], values.get("state", "").upper()
    if state not in _QUEUE_STATES:
        raise WrongUse(
            f"scontrol: error: Invalid input: state={state}\n"
            "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE\nslurm_update error: No error\n"
        )
    if not call.root:
        raise _wrong("slurm_update error: Invalid user id")
    if name not in {setup.name for setup in PARTITIONS}:
        raise _wrong("slurm_update error: Invalid partition name specified")
    changes.set_queue(call.sim, name, state)
    return Answer()


def _update_jobs(call: Call, values: Mapping[str, str]) -> Answer:
    text = values.get("nice", "")
    if not text.lstrip("-").isdigit():
        raise _wrong(f"Invalid nice value, must be between -2147483645 and 2147483645: {text}")
    nice = int(text)
    errors = for_each(
        call, listed([values["jobid"]]), lambda job: changes.set_nice(call.sim, job, nice), "Invalid user id"
    )
    return _told(errors)


def _keep(call: Call, values: Mapping[str, str], *, there: bool) -> Answer:
    if not call.root:
        raise _wrong("slurm_update error: Permission denied")
    found, complete = _nodes(call, values["suspendexcnodes+" if there else "suspendexcnodes-"])
    if not complete:
        raise _wrong(f"slurm_update error: {_NO_NODE}")
    for node in found:
        if there:
            call.sim.kept_up.add(node.name)
        else:
            call.sim.kept_up.discard(node.name)
            changes.let_power_down(call.sim, node)
    return Answer()


_UPDATES: Mapping[str, Callable[[Call, Mapping[str, str]], Answer]] = {
    "nodename": _update_nodes,
    "partitionname": _update_queue,
    "jobid": _update_jobs,
    "suspendexcnodes+": lambda call, values: _keep(call, values, there=True),
    "suspendexcnodes-": lambda call, values: _keep(call, values, there=False),
}


def _told(errors: Sequence[str], after: str = "") -> Answer:
    return Answer(1, b"", encode("".join(f"{line}\n" for line in errors) + after)) if errors else Answer()


def _create(call: Call, words: Sequence[str]) -> Answer:
    if words[:1] != ["reservation"]:
        raise _wrong(f"Invalid creation option: {' '.join(words[:1])}")
    values, error = _values(words[1:]), "Error creating the reservation: "
    name, users = values.get("reservationname", ""), values.get("users", "").split(",")
    if not call.root:
        raise _wrong(f"{error}Invalid user id")
    if name in call.sim.reservations:
        raise _wrong(f"{error}Duplicate reservation name")
    found, complete = _nodes(call, values.get("nodes", ""))
    if not complete:
        raise _wrong(f"{error}{_NO_NODE}")
    if unknown := [user for user in users if user not in USERS and user != "ops"]:
        raise _wrong(f"{error}Invalid user id ({unknown[0]})")
    flags = tuple(flag.upper() for flag in values.get("flags", "").split(",") if flag)
    if "IGNORE_JOBS" not in flags and any(node.shares for node in found):
        raise _wrong(f"{error}Requested nodes are busy")
    made = SimReservation(name, tuple(node.name for node in found), tuple(users), flags, call.sim.now)
    call.sim.reservations[name] = made
    for node in found:
        node.reservations[name] = "MAINT" in flags
    return Answer(0, encode(f"Reservation created: {name}\n"))


def _delete(call: Call, words: Sequence[str]) -> Answer:
    name = _values(words).get("reservationname", "")
    if not call.root:
        raise _wrong(f"delete_reservation reservationname={name}: Invalid user id")
    if name not in call.sim.reservations:
        raise _wrong(f"delete_reservation reservationname={name}: Requested reservation is invalid")
    changes.end_reservation(call.sim, name)
    return Answer()


def _reboot(call: Call, words: Sequence[str]) -> Answer:
    if not call.root:
        raise _wrong("scontrol_reboot_nodes error: Permission denied")
    reason = _unquoted(_values(words).get("reason", ""))
    hosts = [word for word in words if "=" not in word and word.lower() != "asap"]
    found, complete = _nodes(call, hosts[0] if hosts else "")
    if not complete or not hosts:
        raise _wrong(f"scontrol_reboot_nodes error: {_NO_NODE}")
    for node in found:
        if reason and node.registered:
            changes.note(call.sim, node, reason)
        changes.reboot(call.sim, node)
    return Answer()


def _cancel_reboot(call: Call, words: Sequence[str]) -> Answer:
    if not call.root:
        raise _wrong("slurm_update error: Invalid user id")
    found, complete = _nodes(call, words[0] if words else "")
    try:
        for node in found:
            changes.cancel_reboot(call.sim, node)
    except changes.Denied as why:
        raise _wrong(f"slurm_update error: {why}") from None
    return Answer() if complete else Answer(1, b"", encode(f"slurm_update error: {_NO_NODE}\n"))


def _jobs(change: Callable[[Call, SimJob], None], denied: str, *, suspend: bool = False) -> Verb:
    """A verb that takes job ids; hold and release (`suspend`) end with the last id's error, if that one failed."""

    def verb(call: Call, words: Sequence[str]) -> Answer:
        ids = listed(words)
        errors = for_each(call, ids, lambda job: change(call, job), denied)
        why, _, about = errors[-1].partition(" for job ") if errors else ("", "", "")
        after = f"slurm_suspend error: {why if about == ids[-1] else 'No error'}\n" if suspend else ""
        return _told(errors, after)

    return verb


def _by(call: Call, job: SimJob) -> str:
    return "admin" if call.root else "user"


_DENIED = "Access/permission denied"
VERBS: Mapping[str, Verb] = {
    "update": _update,
    "create": _create,
    "delete": _delete,
    "reboot": _reboot,
    "cancel_reboot": _cancel_reboot,
    "hold": _jobs(lambda call, job: changes.hold(call.sim, job, _by(call, job)), "Invalid user id", suspend=True),
    "uhold": _jobs(lambda call, job: changes.hold(call.sim, job, "user"), "Invalid user id", suspend=True),
    "release": _jobs(lambda call, job: changes.release(call.sim, job), _DENIED, suspend=True),
    "requeue": _jobs(lambda call, job: changes.requeue(call.sim, job), _DENIED),
    "requeuehold": _jobs(lambda call, job: changes.requeue(call.sim, job, held=True), _DENIED),
    "top": _jobs(lambda call, job: changes.top(call.sim, job), _DENIED),
}
