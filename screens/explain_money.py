"""What lines of the cost pane and the storage pane mean, in plain words. Imports no Textual."""

from __future__ import annotations

from cockpit.cluster import Cluster
from cockpit.cost_report import LIST_NOTE
from screens.cost_table import NOT_IN_IT
from screens.details.money import cost_lines, storage_lines
from screens.lines import Line, section

_COST = {
    "idle:allocated": "A job holds these GPUs and has used none of late. Its owner can end it; H shows why it waits.",
    "idle:free": "No job has these GPUs; of a node that jobs are on, only the free ones are counted, with their share "
    "of its price. S on their queue lets nodes go that no job is on; P stops everything.",
    "idle:drained": "Somebody took these nodes out of service; they cost as before. R puts them back, T replaces them.",
    "idle:down": "Slurm cannot use these nodes, but their instances run. T replaces them.",
    "runs": "Like machines of one queue, with what they cost together by the hour.",
    "note": "What the sums are made of, and what is not in them.",
}
_STORAGE = {
    "does not answer": "Every program that touches this path there hangs until it answers. Look at the file system "
    "first, then at the node's network; a node that hangs alone is drained (D) and replaced (T).",
    "error": "The node's own file system call failed; the words are those of the kernel.",
    "full": "Jobs die of it at their next write. What is on it can be found with du; logs and caches go first.",
    "inodes": "There is room, but no more files can be made: find the directories with the most files.",
}


def explain_cost(cluster: Cluster, key: str) -> list[Line]:
    """What such a line means, then all of it."""
    kind = ":".join(key.split(":")[:2]) if key.startswith("idle:") else key.partition(":")[0]
    words = [_COST[kind]] if kind in _COST else []
    notes = [f"Prices are {LIST_NOTE}; {NOT_IN_IT}."]
    return [
        *([word] for word in words),
        *([note] for note in notes),
        [],
        section("the line"),
        *cost_lines(cluster, key),
    ]


def explain_storage(cluster: Cluster, key: str) -> list[Line]:
    """What its state means, then all of it."""
    from screens.storage_table import find_row

    row = find_row(cluster, key)
    told = [words for part, words in _STORAGE.items() if row is not None and part in row.state]
    words = told or ["Nothing deviates: it answers, and there is room."]
    return [*([word] for word in words), [], section("the line"), *storage_lines(cluster, key)]
