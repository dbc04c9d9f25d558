"""A project as developers have them, a machine with their programs, and what is said about a command line there."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ferrule.permissions.rules import Subject
from ferrule.permissions.shell.judge import CommandVerdict, judge
from ferrule.permissions.shell.scene import Scene

from .judged import Bench

DATA = Path(__file__).parents[2] / "data"
PROGRAMS = (
    *("git", "python", "python3", "pytest", "ruff", "mypy", "black", "pip", "uv", "poetry", "node", "npm", "npx"),
    *("pnpm", "yarn", "cargo", "go", "gofmt", "make", "cmake", "rg", "jq", "tree", "sqlite3", "docker", "gh", "curl"),
    *("grep", "find", "ls", "cat", "head", "tail", "wc", "sort", "uniq", "cut", "awk", "sed", "du", "df", "stat"),
    *("file", "diff", "comm", "md5sum", "date", "nproc", "uname", "ps", "sleep", "xargs", "env", "timeout", "nice"),
    *("tr", "seq", "which", "rm", "mkdir", "cp", "tee", "touch", "bash", "sh", "printenv", "gcc", "ssh", "fd"),
)
FILES = (
    *("README.md", "CHANGELOG.md", "setup.py", "package.json", "Makefile", "Cargo.toml", "go.mod", "pyproject.toml"),
    *("src/__init__.py", "src/app.py", "src/util.py", "src/app.test.ts", "tests/__init__.py", "tests/test_app.py"),
    *("docs/guide.md", "data/numbers.csv", "data/app.db", "pkg/add.go", "scripts/build.js", ".env", "list.txt"),
    *(
        ".git/HEAD",
        ".git/config",
        ".git/objects/x",
        ".git/refs/x",
        ".venv/pyvenv.cfg",
        ".venv/bin/activate",
        "fake/bin/pytest",
        "fake/bin/activate",
    ),
)
EXECUTABLES = (
    *(f".venv/bin/{name}" for name in ("python", "pytest", "ruff", "mypy", "evil")),
    *(f"node_modules/.bin/{name}" for name in ("tsc", "eslint", "jest", "vitest", "prettier", "evil")),
    *("run.sh", "fake/bin/pytest"),
)


class Row(NamedTuple):
    """One command of the list."""

    group: str
    command: str
    asks: bool
    never: str = ""
    """Why no "always" is offered for it."""


def everyday(file: str = "everyday_commands.toml") -> Iterator[Row]:
    """Every command of the list."""
    for group, rows in tomllib.loads((DATA / file).read_text(encoding="utf-8")).items():
        yield from (Row(group, command, asks=False) for command in rows.get("passes", ()))
        yield from (Row(group, command, asks=True) for command in rows.get("asks", ()))
        yield from (Row(group, command, asks=True, never=why) for command, why in rows.get("never", {}).items())


class Workshop(Bench):
    """Judges command lines in such a project, with the programs of such a machine."""

    def __init__(self, top: Path) -> None:
        work, programs = top / "work", top / "bin"
        for name in (*FILES, *EXECUTABLES):
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text("x\n", encoding="utf-8")
        programs.mkdir()
        for path in (*(programs / name for name in PROGRAMS), *(work / name for name in EXECUTABLES)):
            path.write_text("#!/bin/sh\n", encoding="utf-8")
            path.chmod(0o755)
        (work / "links").mkdir()
        (work / "links" / "out").symlink_to(top)
        super().__init__(work)
        self.programs = str(programs)

    def say(
        self,
        command: str,
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
    ) -> CommandVerdict:
        policy = self.policy(allow, ask, deny)
        subject = Subject(
            "shell", frozenset({"shell", "Bash"}), {"command": command}, command_keys=frozenset({"command"})
        )
        scene = Scene((self.top,), self.guard.secret, self.guard.is_protected, path=self.programs)
        refuses = any(rule.startswith("Bash(") for rule in (*deny, *ask))
        return judge(
            command, self.top, subject=subject, weigh=policy.weigh, bound=policy.bound, scene=scene, refuses=refuses
        )
