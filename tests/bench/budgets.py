"""The figures of the table in their order, and the limits they are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `limit` is a number, or the name of the figure that holds it; None: it has no budget."""

    figure: str
    title: str
    unit: str = ""
    limit: float | str | None = None
    words: str = ""  # the budget in words, where the number alone would not tell

    def limit_of(self, figures: Figures) -> float | None:
        """The limit in this figure's own unit; None when there is none or it is not known."""
        limit = figures.get(self.limit) if isinstance(self.limit, str) else self.limit
        return None if limit is None else float(limit)

    def missed(self, figures: Figures) -> bool:
        """True when the figure is there and over its limit."""
        value, limit = figures.get(self.figure), self.limit_of(figures)
        return value is not None and limit is not None and value > limit


ROWS: tuple[Row, ...] = (
    Row("blank_paint_s", "first paint of an empty Textual app", "s"),
    Row("first_paint_s", "first paint", "s"),
    Row("first_paint_ratio", "first paint / empty app", "×", 1.25),
    Row("panes_s", "the panes, with data or without", "s"),
    Row("raw_s", "raw `sinfo`, then raw `squeue`", "s"),
    Row("raw_together_s", "both at the same time", "s"),
    Row("watch_s", "first data of `watch -n 5 squeue`", "s"),
    Row(
        "first_data_s",
        "first data (a node, a job and its user)",
        "s",
        "first_data_budget_s",
        "1.2 × raw + 0.3 s",
    ),
    Row("first_data_ratio", "first data / raw", "×"),
    Row("first_data_over_raw_s", "first data − raw", "s"),
    Row("key_idle_median_ms", "key to paint between reads, median", "ms", 8),
    Row("key_idle_p99_ms", "key to paint between reads, p99", "ms", 50),
    Row("key_refresh_median_ms", "key to paint during reads, median", "ms", 8),
    Row("key_refresh_p99_ms", "key to paint during reads, p99", "ms", 50),
    Row("key_count", "keys measured"),
    Row("keys_not_seen", "keys not seen to be painted within 1 s"),
    Row("page_s", "half a page, to the last byte", "s"),
    Row("queue_pane_s", "`4`, to the queue with its lines", "s"),
    Row("stall_worst_ms", "worst stall of the event loop", "ms", 50),
    Row("stalls_over_50_ms", "stalls over 50 ms", "", 0),
    Row("start_stall_worst_ms", "worst stall before the first data", "ms"),
    Row("control_stall_worst_ms", "worst stall of an idle process meanwhile", "ms"),
    Row("refresh_interval_s", "seconds between two reads of the queue", "s"),
    Row("queue_read_s", "one read of the queue", "s"),
    Row("nodes_read_s", "one read of the nodes", "s"),
    Row("cpu_pct", "processor, % of a core", "%", 3),
    Row("children_cpu_pct", "processor of the programs it runs here", "%"),
    Row("changing_cpu_pct", "processor while jobs and nodes change", "%", 3),
    Row("cpu_s_per_minute", "processor seconds a minute", "s"),
    Row("rss_mib", "memory (RSS)", "MiB", 120),
    Row("rss_peak_mib", "memory, highest", "MiB"),
    Row("idle_bytes_per_s", "to the terminal between reads", "B/s", 1024),
    Row("refresh_bytes", "to the terminal for a read", "B", 5 * 1024),
    Row("changing_refresh_bytes", "the same while jobs and nodes change", "B", 5 * 1024),
    Row("changing_refresh_bytes_worst", "the same, worst", "B", 35 * 1024),
    Row("requests_per_refresh", "requests to slurmctld for a refresh", "", 2),
    Row("processes_per_refresh", "processes started here for a refresh"),
    Row("probe_cpu_pct", "processor of the probe on its node, 8 GPUs at 2 s, % of a core", "%", 0.5),
    Row("probe_sample_bytes", "its bytes for a sample of 8 GPUs, all that is rarer shared out", "B"),
    Row("probe_gpu_bytes", "the same for one GPU", "B"),
    Row("diagnosis_cpu_s", "diagnosis of a hung job, processor time without the asking of nodes", "s"),
    Row("prometheus_cpu_s", "one look through Prometheus, processor time", "s"),
    Row("prometheus_mib", "the answers read for it", "MiB"),
    Row("load_textual_s", "loading Textual, which every app of its kind does", "s"),
    Row("load_frame_s", "then what the first paint needs", "s"),
    Row("load_engine_s", "then the engine", "s"),
    Row("load_ssh_s", "then SSH", "s"),
    Row("load_screens_s", "then the screens", "s"),
    Row("receive_cpu_s", "processor time of receiving the two answers of a refresh", "s"),
    Row("parse_cpu_s", "of reading them for the first time", "s"),
    Row("compare_cpu_s", "of comparing and folding them where nothing has changed", "s"),
    Row("sinfo_requests", "requests of one raw `sinfo` to slurmctld"),
    Row("squeue_requests", "requests of one raw `squeue`"),
    Row("pool_all_s", "until all of them have told of their GPUs", "s"),
    Row(
        "pool_per_s", "new connections within one second, most", "", "pool_per_s_budget", "what a head is asked to bear"
    ),
    Row(
        "pool_sessions",
        "sessions of the head at once, most",
        "",
        "pool_sessions_budget",
        "what a head is asked to bear",
    ),
    Row("pool_logins", "logins at the head", "", 1),
    Row("pool_cpu_pct", "processor of watching them, without the screen, % of a core", "%"),
    Row("pool_head_cpu_pct", "processor of the head's sshd, % of a core", "%"),
    Row("pool_bytes_per_s", "from the head", "B/s"),
    Row("pool_threads", "threads"),
    Row("diagnosis_s", "diagnosis of a hung job, wall clock over SSH", "s", 10),
    Row("diagnosis_asked_s", "of it until every node was asked", "s"),
    Row("diagnosis_cold_s", "the same with every node to be connected to first", "s", 10),
    Row("diagnosis_cold_asked_s", "of it until every node was connected to and asked", "s"),
    Row("pool_load", "load of this machine right after (every node runs on it)"),
    Row("quit_s", "quit", "s", 0.5),
    Row("quit_hung_s", "quit while an open connection hangs", "s", 0.5),
    Row("quit_connecting_s", "quit while a connection is being made to a hung head", "s", 0.5),
)

PARTS = "Where the time goes"

# Why a budget is missed; written under the tables for those that are. In braces: figures of PARTS, at its last size.
WHY = {
    "first_paint_ratio": "the empty app loads Textual alone; what the first frame needs besides (command line, config,"
    " themes, the app) takes {load_frame_s}",
    "first_data_s": "loading Textual takes {load_textual_s}, the frame {load_frame_s}, the engine {load_engine_s}, SSH"
    " {load_ssh_s} (not on the head itself), the screens {load_screens_s}: the last beside the answer, all else before"
    " the question is asked. Reading the first answer takes {parse_cpu_s} at the large size, on the same interpreter",
    "key_refresh_p99_ms": "with 20,000 single jobs one key in a hundred waits for a slice of what reads their answer"
    " on another thread of the same interpreter ({compare_cpu_s} of processor time, more for what changed)",
    "cpu_pct": "a refresh receives its answers in {receive_cpu_s} of processor time (SSH in Python) and compares and"
    " folds them in {compare_cpu_s}, every 5 s; the rest is the screen, as the small cluster shows. In the demo it is"
    " the lines of the probes, each of which is read and drawn",
    "changing_cpu_pct": "the same, with changed entries to parse and to sort in",
    "idle_bytes_per_s": "ages that tick: the strip of sources, and each line that tells one in seconds",
    "requests_per_refresh": "Slurm's own programs: one raw `sinfo` makes {sinfo_requests} requests, one raw `squeue`"
    " {squeue_requests}",
}
