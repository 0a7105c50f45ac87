"""As whom a change is sent: as the login itself where Slurm lets it, else as root by `sudo -n`, as the plan says."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cockpit.formats.scontrol import parse_config
from cockpit.formats.slurm_errors import classify
from cockpit.models import FaultError, SlurmSite
from cockpit.sources.slurm import SITE, SlurmClient
from cockpit.text import printable

if TYPE_CHECKING:
    from cockpit.cluster import Cluster

_DEADLINE_S = 8.0


@dataclass(frozen=True, slots=True)
class Rights:
    """The login on the head. `level` is its rank in the accounting database, "" where there is none or none is told.

    `sudo_says` is why `sudo -n` would refuse, "" when it would not or was not asked.
    """

    user: str
    uid: int | None
    slurm_user: str
    level: str = ""
    sudo_says: str = ""

    @property
    def admin(self) -> bool:
        """Whether the login itself may change nodes and queues (facts: root, SlurmUser, Administrator)."""
        return self.uid == 0 or (self.user == self.slurm_user != "") or self.level == "administrator"

    @property
    def operator(self) -> bool:
        """Whether the login itself may change everybody's jobs, and reservations."""
        return self.admin or self.level == "operator"

    def as_root_for_job(self, owner: str) -> bool:
        """Whether a change of this user's job needs root; one's own jobs never do."""
        return not self.operator and owner != self.user


_known: WeakKeyDictionary[SlurmClient, Rights] = WeakKeyDictionary()
_lock = threading.Lock()


def rights(cluster: Cluster) -> Rights:
    """The login's rights, asked once per cluster; waits for the head. Raises FaultError."""
    with _lock:
        found = _known.get(cluster.slurm)
    if found is None:
        found = _ask(cluster)
        with _lock:
            _known[cluster.slurm] = found
    return found


def _ask(cluster: Cluster) -> Rights:
    facts, site = cluster.slurm.facts(), site_now(cluster)
    plain = Rights(facts.user, facts.uid, site.slurm_user)
    if plain.admin:
        return plain
    level = _level(cluster.slurm, facts.user) if site.accounting else ""
    ranked = Rights(facts.user, facts.uid, site.slurm_user, level)
    if ranked.admin:
        return ranked
    return Rights(facts.user, facts.uid, site.slurm_user, level, _sudo_says(cluster.slurm))


def site_now(cluster: Cluster) -> SlurmSite:
    """The configuration as it was last read, or else read now. Raises FaultError."""
    known = cluster.store.state(SITE).data
    return known if known is not None else fresh_site(cluster)


def fresh_site(cluster: Cluster) -> SlurmSite:
    """The configuration read now. Raises FaultError."""
    return parse_config(cluster.slurm.read("scontrol", ["show", "config"], "reading Slurm's configuration"))


def _level(slurm: SlurmClient, user: str) -> str:
    """`administrator`, `operator` or ""; a database that does not answer gives no rank."""
    args = ["-n", "-P", "show", "user", f"name={user}", "format=adminlevel"]
    try:
        done = slurm.run("sacctmgr", args, deadline_s=_DEADLINE_S)
    except FaultError:
        return ""
    words = printable(done.stdout.decode("utf-8", "replace").strip()).lower()
    return words if done.rc == 0 and words in ("administrator", "operator") else ""


def _sudo_says(slurm: SlurmClient) -> str:
    """Ask sudo whether it would run scontrol without a password; it runs nothing."""
    program = slurm.argv("scontrol", [])[0]
    try:
        done = slurm.probe(["sudo", "-n", "-l", program], deadline_s=_DEADLINE_S)
    except FaultError as error:
        return error.fault.why
    return "" if done.rc == 0 else classify(done.rc, done.stdout, done.stderr, what="asking sudo").why
