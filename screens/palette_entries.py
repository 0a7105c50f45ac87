"""What the palette offers besides the subject's own: every key that works here, and the verbs. Pure, no Textual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cockpit.models import Job, QueueRow
from cockpit.words import plural
from screens import queue_table, subject_entries
from screens.change_offers import change_entries
from screens.change_verbs import ARM
from screens.commands import Command, Context, Entry, Name, Names, Provider, Verb
from screens.key_table import KEYS
from screens.keymap import heard
from screens.setting_entries import SETTING, switch_entries
from screens.subject_entries import key_entry

_DIGITS = 18  # more are no id of a job


def key_entries(context: Context) -> Iterator[Entry]:
    """Every action of the key table that works here and is not about the subject."""
    works = {key.id for key in heard(context.scopes, context.keymap)}
    for key in KEYS:
        if key.listed and key.id in works and key.id not in subject_entries.IDS:
            yield key_entry(key, context)


def other_entries(context: Context) -> Iterator[Entry]:
    """What has no key of its own."""
    entry = Entry(Command("screenshot"), "screenshot", "Write the screen to an SVG and a text file.")
    yield replace(entry, disabled=context.disabled.get("screenshot", ""))
    yield Entry(
        Command("traffic"), "EFA traffic", "Is EFA really used: what every node sends and receives over it now."
    )
    alone = "" if len(context.clusters) > 1 else "the config names one cluster only"
    yield Entry(Command("clusters"), "clusters", "All clusters, one line each.", disabled=alone)


PROVIDERS: tuple[Provider, ...] = (
    subject_entries.subject_entries,
    change_entries,
    key_entries,
    switch_entries,
    other_entries,
)


def node_names(context: Context) -> Names:
    """Every node, with its state; also by its address."""
    nodes = context.view.nodes or ()

    def tell(index: int) -> Name:
        node = nodes[index]
        return Name(node.name, node.name, node.word, node.health)

    return Names([node.name for node in nodes], tell, [node.address for node in nodes])


def gpu_names(context: Context) -> Names:
    """Every GPU, with what is wrong and whose it is."""
    rows = context.view.gpu_rows

    def tell(index: int) -> Name:
        row = rows[index]
        words = [*(finding.title for finding in row.findings), *([row.job.user] if row.job else [])]
        return Name(row.key, row.key, " · ".join(words), row.health)

    return Names([row.key for row in rows], tell)


def job_names(context: Context) -> Names:
    """Every line of the queue, by id, by name and by user."""
    rows = context.view.queue.rows if context.view.queue else ()
    more = [f"{row.jobs[0].name} {row.jobs[0].user}" for row in rows]
    return Names([row.key for row in rows], lambda index: _job_name(rows[index]), more)


def _job_name(row: QueueRow) -> Name:
    lead = row.lead
    state = "  ".join(f"{code} {tasks}" for code, tasks in row.tally) if row.key.endswith("_") else lead.state
    note = " · ".join(word for word in (lead.name, lead.user, state) if word)
    return Name(row.key, queue_table.label(row), note, queue_table.health(row))


def find_job(context: Context, text: str) -> Name | None:
    """The line of the queue that holds a job, also one task of an array (`123_7`), by the exact id."""
    queue = context.view.queue
    first = text.split("_")[0].split("+")[0]
    if queue is None or not (first.isdigit() and len(first) <= _DIGITS):
        return None
    for row in queue.rows:
        if any(_is_job(job, text, int(first)) for job in row.jobs):
            return _job_name(row)
    return None


def _is_job(job: Job, text: str, first: int) -> bool:
    if text in (job.label, str(job.job_id)):
        return True
    # A task of an array may stand in a bundle of many; the array's line is where it is.
    return first == job.array_job_id and "_" in text


def queue_names(context: Context) -> Names:
    """Every queue that the configuration, a node or a job names, with what is in it."""
    view = context.view
    names = [partition.name for partition in (view.site.partitions if view.site else ())]
    names += [name for node in view.nodes or () for name in node.partitions]
    held = _jobs_by(context, lambda job: job.partitions)
    return _counted([*names, *held], held)


def user_names(context: Context) -> Names:
    """Everybody with a job, most jobs first."""
    held = _jobs_by(context, lambda job: (job.user,))
    return _counted(sorted(held, key=lambda user: (-held[user], user)), held)


def _jobs_by(context: Context, names: Callable[[Job], Iterable[str]]) -> Mapping[str, int]:
    held: Counter[str] = Counter()
    for job in context.view.queue.jobs if context.view.queue else ():
        for name in names(job):
            held[name] += job.task_count
    return held


def _counted(names: Iterable[str], held: Mapping[str, int]) -> Names:
    listed = [name for name in dict.fromkeys(names) if name]
    return Names(listed, lambda index: Name(listed[index], listed[index], plural(held.get(listed[index], 0), "job")))


def cluster_names(context: Context) -> Names:
    """Every cluster of the config."""
    return _choices(context.clusters, context.cluster)


def theme_names(context: Context) -> Names:
    """Every theme."""
    return _choices(context.themes, context.theme)


def _choices(names: Sequence[str], now: str) -> Names:
    return Names(names, lambda index: Name(names[index], names[index], "this one" if names[index] == now else ""))


VERBS: tuple[Verb, ...] = (
    Verb("node", "node NAME", "The details of a node.", node_names, "the nodes were not read yet", quick=True),
    Verb("gpu", "gpu NODE/N", "The details of a GPU.", gpu_names, "no GPU was read yet", quick=True),
    Verb("user", "user NAME", "Only the jobs of one user.", user_names, "the queue is empty or was not read yet",
         quick=True),
    Verb("job", "job ID", "The details of a job, by id or name.", job_names, "the queue is empty or was not read yet",
         quick=True, resolve=find_job),
    Verb("diagnose", "diagnose ID", "Why a job hangs: which rank, where, what to do; by id or name.", job_names,
         "the queue is empty or was not read yet", resolve=find_job),
    Verb("queue", "queue NAME", "One queue: its state and its jobs.", queue_names, "no queue was read yet"),
    Verb("cluster", "cluster NAME", "Another cluster of the config.", cluster_names, "the config names no cluster"),
    ARM,
    Verb("theme", "theme NAME", "Other colours.", theme_names, "there is one theme only"),
    SETTING,
)  # fmt: skip
