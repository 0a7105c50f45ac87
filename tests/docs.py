"""`python -m tests.docs`: writes everything in docs/ that is made from the code. The tests hold it equal.

A file has blocks between `<!-- made by make docs: NAME -->` and `<!-- end -->`; docs/KEYS.md and the man page are
made as a whole.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cockpit import aws_policy, config_reference
from cockpit.doctor.on_head import sudo_line
from screens import column_names
from screens.key_sheet import markdown

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAN = DOCS / "cockpit.1"
_BLOCK = re.compile(r"(<!-- made by make docs: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_ROLE = "arn:aws:iam::123456789012:role/cockpit-schedules"


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=1)}\n```"


def _sudoers() -> str:
    users = (("%gpu-oncall", "/opt/slurm/bin"), ("%gpu-oncall", "/usr/bin"))
    words = ("ParallelCluster and HyperPod", "packages of a distribution")
    return "```text\n" + "\n".join(
        f"# {where}\n{sudo_line(*user)}" for where, user in zip(words, users, strict=True)
    ) + "\n```"  # fmt: skip


BLOCKS: dict[str, Callable[[], str]] = {
    "config": config_reference.table,
    "columns": column_names.table,
    "policy": lambda: _json(aws_policy.policy(power=True, schedule_role="ROLE-ARN")),
    "policy-reading": lambda: _json(aws_policy.policy()),
    "policy-power": lambda: _json(aws_policy.policy(power=True, stack="prod")),
    "policy-parallelcluster-read": lambda: _json(aws_policy.policy(kind="parallelcluster", stack="prod")),
    "policy-parallelcluster": lambda: _json(
        aws_policy.policy(kind="parallelcluster", stack="prod", power=True, schedule_role=_ROLE)
    ),
    "policy-slurm": lambda: _json(aws_policy.policy(kind="slurm", power=True, tags={"tag:Cluster": "prod"})),
    "policy-hyperpod": lambda: _json(aws_policy.policy(kind="hyperpod", power=True)),
    "role": lambda: _json(aws_policy.role_policy("parallelcluster", "prod")),
    "role-trust": lambda: _json(aws_policy.role_trust()),
    "sudoers": _sudoers,
}


def rendered(text: str) -> str:
    """A file's text with every block as the code has it now; KeyError for an unknown block."""
    return _BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match['name']]()}\n{match[3]}", text)


def with_blocks() -> list[Path]:
    """The files that have any."""
    return [
        path for path in (*sorted(DOCS.glob("*.md")), ROOT / "README.md") if "<!-- made by" in path.read_text("utf-8")
    ]


def man_page() -> str:
    """The man page of the whole command line; no date and no name of a home in it."""
    argv = [
        sys.executable,
        "-c",
        "from argparse_manpage.cli import main; main()",
        "--module",
        "cockpit.cli",
        "--function",
        "_parser",
    ]
    argv += ["--prog", "cockpit", "--project-name", "cockpit", "--manual-title", "cockpit", "--version", "-"]
    argv += ["--description", "terminal cockpit for GPU clusters on AWS"]
    env = {**os.environ, "HOME": "/home/you", "SOURCE_DATE_EPOCH": "0", "COLUMNS": "200"}
    env.pop("XDG_CONFIG_HOME", None)
    return subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT, env=env).stdout


def main() -> None:
    """Write them all."""
    (DOCS / "KEYS.md").write_text(markdown(), encoding="utf-8")
    MAN.write_text(man_page(), encoding="utf-8")
    for path in with_blocks():
        path.write_text(rendered(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
