"""The project's own files, as the architecture tests read them."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ferrule"
DEMO = PACKAGE / "demo" / "project"
"""A project of the demonstration's, not of ours: it keeps its own rules."""
LIMIT_SECONDS = 60

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@cache
def modules() -> tuple[Path, ...]:
    """Every Python file of the package."""
    return tuple(sorted(path for path in PACKAGE.rglob("*.py") if DEMO not in path.parents))


class Facts(NamedTuple):
    """What the rules want to know of one file."""

    docstrings: tuple[str, ...]
    """Of the module first; empty where there is none."""
    imported: tuple[str, ...]
    """Every module that the file names in an import, wherever in the file that stands."""
    relative: tuple[int, ...]
    """The lines of relative imports."""
    texts: tuple[str, ...]
    """Every text and byte string that looks like a regular expression with a group that has a meaning of its own."""
    compared: frozenset[object]
    """Every constant in a comparison or a pattern of `match`."""


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def facts(path: Path) -> Facts:
    """Read a file once for all rules. Its tree is not kept: a million nodes would slow every test that follows."""
    docstrings: list[str] = []
    names: list[str] = []
    relative: list[int] = []
    texts: list[str] = []
    compared: set[object] = set()
    for node in ast.walk(tree(path)):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                docstrings.append(ast.get_docstring(node) or "")
            case ast.Import():
                names += [alias.name for alias in node.names]
            case ast.ImportFrom():
                if node.level:
                    relative.append(node.lineno)
                if node.module is not None:
                    names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            case ast.Compare() | ast.MatchValue():
                compared.update(one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
            case ast.Constant(value=str() | bytes() as value):
                text = value.decode("latin-1") if isinstance(value, bytes) else value
                texts += [text] if "(?" in text else []
    return Facts(tuple(docstrings), tuple(names), tuple(relative), tuple(texts), frozenset(compared))


def shown(path: Path) -> str:
    """A path as test ids and messages name it."""
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    """The name under which a file of the package is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def pages(*folders: str) -> list[Path]:
    """The Markdown files that lie in these folders of the project, `.` for its own."""
    return sorted(path for folder in folders for path in (ROOT / folder).glob("*.md"))


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return _FENCED.sub("", path.read_text(encoding="utf-8"))


def links(path: Path) -> set[Path]:
    """The files of the project that a page links to."""
    targets = (
        target for target in _LINK.findall(prose(path)) if "://" not in target and not target.startswith("mailto:")
    )
    return {(path.parent / target).resolve() for target in targets}


def python(code: str, *args: str, home: Path, cwd: Path | None = None) -> str:
    """What a fresh interpreter prints; its home and its state lie in `home`. A failure shows what it complained of."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=cwd or home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """An environment in which nothing of the machine's user is read or written."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("FERRULE_", "PYTHON", "XDG_", "COV_"))
    }
    # Byte code is written beside the source, which is no part of what a test watches.
    return {**kept, "HOME": str(home), "FERRULE_STATE": str(home / "state"), "PYTHONDONTWRITEBYTECODE": "1"}
