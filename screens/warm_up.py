"""What a key may need is loaded before one asks: at the key it would take as long as ten of them."""

from __future__ import annotations

import pkgutil
import threading
import time
from importlib import import_module

import actions
import screens

_FIRST_RUN = "screens.first_"  # an app of its own, with a library of AWS's behind it
_BREATH_S = 0.005  # between two modules, so that a key meanwhile is not late


def warm_up() -> None:
    """Load every module of actions and screens, on a thread."""
    threading.Thread(target=_load_all, name="warm-up", daemon=True).start()


def _load_all() -> None:
    for package in (actions, screens):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_FIRST_RUN):
                import_module(module.name)
                time.sleep(_BREATH_S)
