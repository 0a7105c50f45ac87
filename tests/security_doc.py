"""python -m tests.security_doc: write the policies of cockpit/aws_policy.py into docs/SECURITY.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cockpit.aws_policy import policy

TARGET = Path(__file__).parents[1] / "docs" / "SECURITY.md"
POLICIES = {"reading": policy(), "power": policy(power=True, stack="prod")}
_BLOCK = re.compile(r"<!-- policy: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def with_policies(text: str) -> str:
    """The document with its policies as the code has them."""

    def block(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- policy: {name} -->\n```json\n{json.dumps(POLICIES[name], indent=1)}\n```\n<!-- end -->"

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    TARGET.write_text(with_policies(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
