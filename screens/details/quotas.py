"""What the users who have jobs may still write to a Lustre file system. Imports no Textual; it waits for a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.cluster import Cluster
from cockpit.formats.job_states import STARTED
from cockpit.models import Fault, Health
from cockpit.storage_models import Quota
from cockpit.words import MISSING, mib, plural
from screens.lines import Line, section
from screens.storage_table import FULL_PCT, HUNG, find_row
from themes import state_token

USERS_MAX = 30
NO_LIMIT = "no limit"


def read_storage(cluster: Cluster, key: str) -> list[Line]:
    """The quotas of those who have jobs, the tightest first; [] for what is no Lustre mount. Raises FaultError."""
    row = find_row(cluster, key)
    if row is None or row.kind != "lustre" or not row.nodes:
        return []
    title = section(f"quotas of those who have jobs, by lfs on {row.nodes[0]}")
    if row.state == HUNG:
        return [title, [("  not asked: it does not answer", "warning")]]
    users = users_with_jobs(cluster)
    if not users:
        return [title, [("  nobody has a job: ", "dim"), f"lfs quota -u USER {row.what}", (" tells one's", "dim")]]
    asked = users[:USERS_MAX]
    told = cluster.quotas(row.nodes[0], asked, row.what)
    lines = [title, *_table(told), *_refused(told), *_not_asked(asked, told)]
    more = len(users) - len(asked)
    return [*lines, [(f"  {plural(more, 'user')} more", "dim")]] if more else lines


def users_with_jobs(cluster: Cluster) -> list[str]:
    """Whoever has a job, those whose jobs run first; root never, to whom no quota applies."""
    rows = cluster.view.queue.rows if cluster.view.queue else ()
    running = sorted({row.lead.user for row in rows if row.lead.state in STARTED})
    waiting = sorted({row.lead.user for row in rows})
    return [user for user in dict.fromkeys([*running, *waiting]) if user and user != "root"]


def share(quota: Quota) -> float:
    """How much of the nearer limit is used, of space or of files; 0.0 without limits."""
    space, files = _limits(quota)
    return max(quota.used_kib / space if space else 0.0, (quota.files or 0) / files if files else 0.0)


def _limits(quota: Quota) -> tuple[int | None, int | None]:
    """KiB and files; the soft limit, behind which the time of grace begins, before the hard one."""
    return quota.soft_kib or quota.hard_kib, quota.soft_files or quota.hard_files


def _table(told: Mapping[str, Quota | Fault]) -> list[Line]:
    found = [(user, quota) for user, quota in told.items() if isinstance(quota, Quota)]
    if not found:
        return []
    found.sort(key=lambda pair: (not pair[1].over, -share(pair[1]), pair[0]))
    head = f"  {'user':<16} {'used':>6} {'of':>9} {'files':>13} {'of':>13}"
    return [[(head, "dim")], *(_row(user, quota) for user, quota in found)]


def _row(user: str, quota: Quota) -> Line:
    space, files = _limits(quota)
    of = mib(space / 1024) if space else NO_LIMIT
    of_files = f"{files:,}" if files else NO_LIMIT
    count = f"{quota.files:,}" if quota.files is not None else MISSING
    word, health = _word(quota)
    row = f"  {user:<16} {mib(quota.used_kib / 1024):>6} {of:>9} {count:>13} {of_files:>13}  "
    return [row, (word, state_token(health))]


def _word(quota: Quota) -> tuple[str, Health]:
    """Lustre shows a time of grace while only the soft limit is passed, and a word once that time is over."""
    grace = quota.grace or quota.files_grace
    if quota.over and grace not in ("", "none", "expired"):
        return f"over the soft limit, {grace} left", Health.CRITICAL
    if quota.over:
        return "over the limit: writes fail", Health.CRITICAL
    if quota.uncertain:
        return "a storage target did not answer: it is more than this", Health.WARN
    used = 100 * share(quota)
    return (f"{used:.0f} % used", Health.WARN) if used >= FULL_PCT else ("", Health.OK)


def _refused(told: Mapping[str, Quota | Fault]) -> list[Line]:
    """Why some are not known; those with the same reason in one line."""
    alike: dict[str, list[str]] = {}
    for user, fault in told.items():
        if isinstance(fault, Fault):
            alike.setdefault(f"{fault.why}{f' → {fault.next_step}' if fault.next_step else ''}", []).append(user)
    return [[(f"  {', '.join(users)}: {why}", "warning")] for why, users in alike.items()]


def _not_asked(asked: Sequence[str], told: Mapping[str, Quota | Fault]) -> list[Line]:
    left = [user for user in asked if user not in told]
    return [[(f"  not asked after that: {', '.join(left)}", "dim")]] if left else []
