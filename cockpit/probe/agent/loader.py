"""First code on the node: makes modules out of the sources that came with it. SOURCES and PYNVML are given."""

import sys
import types

PACKAGE = "cockpit.probe.agent"

TYPE_CHECKING = False
if TYPE_CHECKING:
    SOURCES: "list[tuple[str, str]]" = []
    PYNVML = b""


def load(sources: "list[tuple[str, str]]") -> "types.ModuleType":
    """Run each source as a module of PACKAGE, in order; returns the last one."""
    parent = ""
    for part in PACKAGE.split("."):
        name = f"{parent}.{part}" if parent else part
        module = types.ModuleType(name)
        module.__path__ = []
        sys.modules[name] = module
        parent = name
    for name, source in sources:
        module = types.ModuleType(f"{PACKAGE}.{name}")
        sys.modules[module.__name__] = module
        setattr(sys.modules[PACKAGE], name, module)
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)  # noqa: S102
    return module


if __name__ == "__main__":
    load(SOURCES).main(PYNVML)
