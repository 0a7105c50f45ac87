"""What people call things that the cockpit calls otherwise: the palette finds them by it. Imports no Textual.

`shut down for the weekend` is what somebody types who has not seen `stop the cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Words that say nothing of what is sought; left out unless there are no others.
FILLERS = frozenset(
    (
        "a", "again", "an", "and", "are", "at", "by", "can", "do", "does", "for", "go", "how", "i", "in", "is", "it",
        "me", "my", "of", "on", "or", "the", "there", "this", "to", "was", "what", "where", "which", "who", "whose",
        "why", "with",
    )
)  # fmt: skip

# By the id of a command; of a change, a switch or the like by its argument.
ALSO: Mapping[str, str] = MappingProxyType(
    {
        # Where to look.
        "pane.overview": "home start dashboard summary status wrong",
        "pane.nodes": "hosts instances machines servers sinfo down drained bad broken",
        "pane.gpus": "hot temperature heat xid ecc utilisation utilization power nvidia-smi dcgm cards",
        "pane.queue": "jobs pending running waiting squeue",
        "pane.nccl": "history results bandwidth busbw benchmark all_reduce",
        "pane.checks": "health network efa failed history",
        "pane.storage": "disk disks mounts full fsx lustre quota filesystem df space",
        "pane.cost": "money price prices spend spending budget bill idle capacity dollars usd waste",
        "pane.log": "audit history changed changes change did errors events who",
        # The thing under the cursor.
        "grid.open": "open show info",
        "app.explain": "why pending waiting waits reason meaning job node state stuck",
        "subject.output": "log logs tail stdout stderr slurm.out file read search",
        "subject.diagnose": "hang hung hanging stuck deadlock freeze frozen slow straggler stacks nccl timeout",
        "checks.efa": "network fabric rdma libfabric",
        "checks.health": "gpu test",
        "subject.ssh": "shell login terminal connect console",
        "subject.acknowledge": "ack silence mute snooze ignore known hide note",
        "grid.copy": "clipboard yank",
        "grid.export": "save csv json markdown table file",
        "grid.columns": "fields choose",
        "grid.zoom": "fullscreen maximise maximize",
        "app.filter": "find search grep only",
        "app.refresh": "reload update",
        "app.runs": "undo revert back progress",
        "app.help": "keys shortcuts manual",
        "app.quit": "exit leave close",
        "traffic": "network used bandwidth counters rdma",
        "screenshot": "picture image svg",
        "clusters": "switch other",
        # Changes.
        "drain": "node nodes remove out of service cordon offline maintenance",
        "resume": "undrain uncordon online return enable back",
        "reboot": "restart",
        "replace": "terminate swap exchange instance broken hardware",
        "quarantine": "isolate reserve keep",
        "scale": "up down grow shrink more fewer nodes resize capacity",
        "queue-down": "close partition stop",
        "queue-up": "open partition",
        "cancel": "kill scancel stop end delete job",
        "requeue": "restart job",
        "hold": "pause block job",
        "release": "unblock unhold job",
        "top": "priority urgent",
        "nice": "priority",
        "stop": "shut shutdown down off power weekend everything halt turn",
        "start": "up on power boot weekend monday everything turn",
        "schedule": "weekend night timer cron shut down",
        "undo": "revert back",
        # Tests.
        "nccl-run": "benchmark bandwidth measure test all_reduce",
        "nccl-sweep": "find slow bad node pair bisect",
        "arm": "unlock write read-only",
        "diagnose": "hang hung stuck deadlock",
    }
)  # fmt: skip


def also(command_id: str, argument: str) -> str:
    """More words for a command, in small letters; "" when there are none."""
    return ALSO.get(argument or command_id, "")


def sought(typed: str) -> list[str]:
    """The words that tell what is sought: `why is my job pending` is about job and pending."""
    words = typed.replace("?", " ").split()
    return [word for word in words if word not in FILLERS] or words
