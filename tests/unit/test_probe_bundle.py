"""What is sent to a node: old Python can read it, every login shell can be given it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zlib
from importlib import resources
from pathlib import Path

import pytest

from cockpit.hosts.base import command_line
from cockpit.probe import bundle
from cockpit.probe.agent.smi import FIELDS
from cockpit.probe.fallback import FALLBACK_SCRIPT
from cockpit.probe.look import MODULES_OF_LOOK

AGENT = resources.files("cockpit.probe.agent")
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in AGENT.iterdir() if path.name.endswith(".py")}
# Attributes that came to the standard library after 3.6 and are close at hand.
YOUNG = re.compile(
    r"capture_output|removeprefix|removesuffix|waitstatus_to_exitcode|posix_spawn|monotonic_ns|time_ns|"
    r"nullcontext|importlib\.resources|from __future__ import annotations|dataclass|walrus|math\.prod"
)


def parts() -> tuple[bytes, bytes, bytes]:
    """The three parts of what goes over stdin."""
    data = bundle.probe_stdin()
    sizes = [int(word) for word in data[:24].split()]
    assert len(data) == 24 + sum(sizes)
    shell, agent = data[24 : 24 + sizes[0]], data[24 + sizes[0] : 24 + sum(sizes[:2])]
    return shell, agent, data[24 + sum(sizes[:2]) :]


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_python_36_can_read_the_agent(name: str) -> None:
    tree = ast.parse(SOURCES[name], feature_version=(3, 6))
    assert not YOUNG.search(SOURCES[name])
    for node in ast.walk(tree):  # f"{x=}" parses to the same tree as its longer form, so look at the text
        if isinstance(node, ast.JoinedStr):
            assert "=}" not in (ast.get_source_segment(SOURCES[name], node) or "")


def test_python_36_never_evaluates_an_annotation_it_does_not_know() -> None:
    for name, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                annotations = [node.returns, *(arg.annotation for arg in node.args.args)]
                odd = [one for one in annotations if one is not None and isinstance(one, (ast.Subscript, ast.BinOp))]
                assert not odd, f"{name}: {node.name}"
            # Those of variables are evaluated in modules and classes only.
            if isinstance(node, (ast.Module, ast.ClassDef)):
                variables = [one for one in node.body if isinstance(one, ast.AnnAssign)]
                assert all(isinstance(one.annotation, (ast.Name, ast.Constant)) for one in variables), name


def test_the_bundle_holds_every_source_and_the_real_bindings() -> None:
    names = {*bundle.MODULES, *bundle.SWEEP_MODULES, *MODULES_OF_LOOK}
    names |= {"asked", "__init__", "loader"}  # `asked` comes with every look anew
    assert {f"{name}.py" for name in names} == set(SOURCES)
    shell, agent, pynvml = parts()
    assert shell.decode() == FALLBACK_SCRIPT
    program = zlib.decompress(agent).decode()
    ast.parse(program, feature_version=(3, 6))
    for source in (SOURCES["main.py"], SOURCES["nvml_gpu.py"]):
        assert repr(source) in program
    bindings = zlib.decompress(pynvml).decode()
    ast.parse(bindings, feature_version=(3, 6))
    assert "def nvmlInit(" in bindings
    assert "Redistributions of source code must retain" in bindings


@pytest.mark.parametrize("modules", [bundle.MODULES, bundle.SWEEP_MODULES], ids=["probe", "sweep"])
def test_modules_are_in_an_order_that_can_be_run(modules: tuple[str, ...]) -> None:
    for place, name in enumerate(modules):
        source = SOURCES[f"{name}.py"]
        wanted = re.findall(r"^from cockpit\.probe\.agent\.(\w+) import", source, re.MULTILINE)
        whole = re.findall(r"^from cockpit\.probe\.agent import (.*)$", source, re.MULTILINE)
        wanted += [each for line in whole for each in line.split(", ")]
        assert set(wanted) <= set(modules[:place]), name


def test_argv_can_be_given_to_csh_and_fish() -> None:
    argv = bundle.probe_argv(2, slow=10, backoff="1,2")
    assert not any(char in word for word in argv for char in "\n!\\")
    # So hosts need not wrap it a second time.
    assert command_line(argv, deadline_s=None).startswith("sh -c ")


@pytest.mark.parametrize("shell", ["tcsh", "fish", "dash", "bash", "zsh"])
def test_login_shells_hand_it_on_unchanged(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")
    argv = bundle.probe_argv(2)
    line = command_line([sys.executable, "-c", "import sys; print(sys.argv[1:])", *argv[1:]], deadline_s=None)
    done = subprocess.run([program, "-c", line], capture_output=True, text=True, check=True, timeout=30)
    assert ast.literal_eval(done.stdout) == argv[1:]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="colour"):
        bundle.probe_argv(2, colour="red")


def test_the_shell_script_is_valid_and_asks_for_the_same_fields(tmp_path: Path) -> None:
    script = tmp_path / "fallback.sh"
    script.write_text(FALLBACK_SCRIPT)
    assert subprocess.run(["sh", "-n", str(script)], check=False, timeout=10).returncode == 0
    assert ",".join(FIELDS) in FALLBACK_SCRIPT
