"""Who may import whom: the contracts of pyproject.toml hold, and nothing stands outside of them."""

import re
import subprocess
import sys
import tomllib
from typing import Any

from ferrule.tools import BUILTIN

from .project import LIMIT_SECONDS, ROOT, dotted, facts, modules, shown

DOORS = {"ferrule.__main__"}
"""They may import anything, and nothing imports them."""
DATA = {"ferrule.demo"}
FAMILIES = {"amp", "claude", "wayland", "ah", "codex", "gemini", "opencode", "pi"}


def contracts() -> list[dict[str, Any]]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        found: list[dict[str, Any]] = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return found


def test_imports_go_down_only_and_never_to_a_sibling():
    command = "from importlinter.cli import lint_imports_command as run; run()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--no-logo"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_part_of_the_package_has_a_layer():
    layers = [layer for contract in contracts() if contract["type"] == "layers" for layer in contract["layers"]]
    layered = {name.strip() for layer in layers for name in re.split(r"[|:]", layer)}
    parts = {".".join(dotted(path).split(".")[:2]) for path in modules()} - {"ferrule"}

    assert parts - DOORS - DATA == layered


def test_no_tool_imports_another_tool():
    tools = {f"ferrule.tools.{row.module}" for row in BUILTIN.values()}
    entangled = {
        shown(path): sorted(tools.intersection(facts(path).imported)) for path in modules() if dotted(path) in tools
    }

    assert {path: others for path, others in entangled.items() if others} == {}


def test_families_differ_in_rows_and_not_in_branches():
    compared = {
        shown(path): sorted(found)
        for path in modules()
        if "dialects" not in path.parts and (found := FAMILIES & facts(path).compared)
    }

    assert compared == {}


def test_imports_are_absolute():
    assert {shown(path): lines for path in modules() if (lines := facts(path).relative)} == {}
