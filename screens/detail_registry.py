"""What can be said of each kind of subject: at once, after reading more, and in plain words. Imports no Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cockpit.cluster import Cluster
from cockpit.joins import find_row
from screens import explain_lines
from screens.details.gpu import gpu_lines
from screens.details.job import job_lines
from screens.details.node import node_lines
from screens.details.parts import find_gpu, find_node
from screens.details.problem import all_problem_lines, find_problem, problem_lines
from screens.details.queue import all_queue_lines, queue_lines, queue_names
from screens.details.records import look_at_gpu, read_job, read_node, read_queue
from screens.details.traffic import traffic_lines
from screens.lines import Line, Subject

Lines = Callable[[Cluster, str], list[Line]]


def details(cluster: Cluster, subject: Subject) -> list[Line]:
    """Everything known of it, joined over all sources; fast and pure. Raises KeyError for an unknown kind."""
    return DETAILS[subject.kind](cluster, subject.key)


def read_more(cluster: Cluster, subject: Subject) -> list[Line]:
    """What has to be asked for, [] for a kind of which nothing has; blocks for seconds, raises FaultError."""
    read = RECORDS.get(subject.kind)
    return read(cluster, subject.key) if read is not None and subject.key else []


def explain(cluster: Cluster, subject: Subject) -> list[Line]:
    """Its state in plain words, what that means on this cluster, what to do, the commands that show it."""
    return EXPLAIN[subject.kind](cluster, subject.key)


def _node(cluster: Cluster, name: str) -> list[Line]:
    node = find_node(cluster.view, name)
    if node is None and cluster.view.nodes is None:
        return [[("the nodes were not read yet", "dim")]]
    return node_lines(cluster, node) if node else [[f"{name} is no longer among Slurm's nodes"]]


def _job(cluster: Cluster, key: str) -> list[Line]:
    row = find_row(cluster.view.queue, key)
    if row is None and cluster.view.queue is None:
        return [[("the queue was not read yet", "dim")]]
    return job_lines(cluster, row) if row else [[f"job {key.rstrip('_')} has left the queue"]]


def _gpu(cluster: Cluster, key: str) -> list[Line]:
    row = find_gpu(cluster, key)
    return gpu_lines(cluster, row) if row else [[f"{key} is gone: its node is down or no longer watched"]]


def _queue(cluster: Cluster, name: str) -> list[Line]:
    if not name:
        return all_queue_lines(cluster)
    return queue_lines(cluster, name) if name in queue_names(cluster) else [[f"Slurm names no queue {name}"]]


def _problem(cluster: Cluster, key: str) -> list[Line]:
    if not key:
        return all_problem_lines(cluster)
    problem = find_problem(cluster, key)
    return problem_lines(cluster, problem) if problem else [["this problem is over"]]


def _log(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.log import log_lines  # the record is no part of the first paint

    return log_lines(cluster, key)


def _cost(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.money import cost_lines

    return cost_lines(cluster, key)


def _storage(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.money import storage_lines

    return storage_lines(cluster, key)


def _quotas(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.quotas import read_storage

    return read_storage(cluster, key)


def _nccl(cluster: Cluster, key: str) -> list[Line]:
    from screens.details.nccl import nccl_lines  # nor is the history

    return nccl_lines(cluster, key)


def _setting(cluster: Cluster, path: str) -> list[Line]:
    from screens.details.setting import setting_lines

    return setting_lines(cluster, path)


def _efa(cluster: Cluster, node: str) -> list[Line]:
    from screens.details.checks import check_lines  # nor are the checks

    return check_lines(cluster, "efa", node)


def _health(cluster: Cluster, node: str) -> list[Line]:
    from screens.details.checks import check_lines

    return check_lines(cluster, "health", node)


def _versions(cluster: Cluster, node: str) -> list[Line]:
    from screens.details.checks import version_lines

    return version_lines(cluster, node)


DETAILS: Mapping[str, Lines] = {
    "node": _node,
    "job": _job,
    "gpu": _gpu,
    "queue": _queue,
    "problem": _problem,
    "log": _log,
    "cost": _cost,
    "storage": _storage,
    "nccl": _nccl,
    "efa": _efa,
    "health": _health,
    "versions": _versions,
    "traffic": traffic_lines,
    "setting": _setting,
    # What is only words has no other details.
    **{kind: explain_lines.EXPLAIN[kind] for kind in ("xid", "sxid", "throttle", "reason", "pane")},
}
# What a check found says itself what it means.
EXPLAIN: Mapping[str, Lines] = {
    **explain_lines.EXPLAIN,
    **{kind: DETAILS[kind] for kind in ("efa", "health", "versions", "traffic", "setting")},
}
RECORDS: Mapping[str, Lines] = {
    "node": read_node,
    "job": read_job,
    "queue": read_queue,
    "gpu": look_at_gpu,
    "storage": _quotas,
}
ANSWERED_BY = {"storage": "Lustre"}  # Slurm for all others
QUIET = ("gpu",)  # what is asked for has no lines of its own
