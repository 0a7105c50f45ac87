"""`python -m cockpit`."""

from __future__ import annotations

import sys

from cockpit.cli import main

if __name__ == "__main__":
    sys.exit(main())
