"""Which checks a project has, out of its own files.

Every ecosystem has a table that says which file speaks for which check. What is left to decide is what runs when
nobody names a check, for the same programs are often written down in more than one place. A check that is run twice is
a nuisance, a check that is missed is a fault; so:

- What a project says about how it is checked counts before what follows from its configuration. Where a target of a
  Makefile, a justfile or a Taskfile runs a program that was found as well, the target runs, with whatever the project
  gives that program, and the check that was found does not.
- A target that is named after one kind of check (`test`, `lint`) and does not show what it runs stands for the checks
  of that kind that were found.
- A target such as `check` or `ci` that does nothing but run other such targets does not run: they do, each for itself.
  One that does more runs, and the targets that it runs do not. Scripts of a package.json go by the same rule.
- A target of the root that goes into a folder stands there for the programs that it runs.
- pre-commit changes files. It runs where nothing else lints or formats.
- tox and nox run where nothing else was found, and the build of a package where nothing else looks at types.

What does not run by default is in `others`, and runs when it is named. Folders one and two levels down are looked at
too; checks of a kind that a folder above covers are not found again.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.core.checks import Check
from ferrule.tool_settings import CheckCommand
from ferrule.workspace.checks import node, precommit, python
from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.others import TABLES
from ferrule.workspace.checks.row import Ecosystem, Row
from ferrule.workspace.checks.targets import Target, targets
from ferrule.workspace.checks.weigh import running, weighed
from ferrule.workspace.formatters import Reader
from ferrule.workspace.skill import shown

MOST_CHECKS = 40
"""That run by default; as many again are known."""
MOST_FOLDERS = 1000
MOST_LEVELS = 2
MOST_BYTES_TOGETHER = 4 << 20
"""Of all files that are read for one look."""
_MOST_OTHERS = 80
_MOST_LOOKED = 100
_MOST_WARNINGS = 20
_MOST_NAME_CHARS = 200
_TARGETS = "targets"
_NOT_ENTERED = frozenset(
    (
        *("node_modules", "bower_components", "venv", "env", "site-packages", "vendor", "third_party"),
        *("target", "dist", "build", "out", "bin", "obj", "coverage", "__pycache__"),
        *("test", "tests", "testdata", "fixtures", "__fixtures__", "example", "examples", "samples", "templates"),
    )
)
"""Folders whose projects are not the workspace's own: what was installed or built, and material for tests."""

ECOSYSTEMS = (
    Ecosystem("python", python.rows),
    Ecosystem("node", node.rows, node.covers),
    *TABLES,
    Ecosystem("pre-commit", precommit.rows),
)


class Found(NamedTuple):
    """The checks of a project."""

    checks: tuple[Check, ...]
    """What runs where nobody names a check, in the order of the tables."""
    looked_in: tuple[str, ...] = ()
    """The files that were read, from the workspace."""
    warnings: tuple[str, ...] = ()
    others: tuple[Check, ...] = ()
    """What is known and runs only when it is named."""
    left_out: Mapping[str, str] = MappingProxyType({})
    """Checks of the settings that cannot run, each with the reason as the end of a sentence."""


def find(
    jail_read: Reader,
    root: str,
    *,
    commands: Mapping[str, CheckCommand] | None = None,
    disable: Sequence[str] = (),
    top: str = "",
) -> Found:
    """The checks of the project in `root`, which is absolute and real. `commands` and `disable` are the settings.

    `top` is a folder above, or the same: environments and lock files up to there are the project's too, and files are
    told from there.
    """
    warnings: dict[str, None] = {}
    looked: dict[str, None] = {}

    def warn(sentence: str) -> None:
        warnings[shown(sentence)] = None

    found: dict[str, tuple[Check, bool]] = {}
    left_out: dict[str, str] = {}
    for files, rows in _folders(_sparing(jail_read, warn), root, top or root, warn):
        looked |= files.looked
        for row in rows:
            check = _check(files, row)
            found.setdefault(check.name, (check, row.is_default))
    for name, command in (commands or {}).items():
        own = _own(name, command, root)
        if isinstance(own, str):
            left_out[name] = own
            warn(f"The check {name!r} of the settings is left out: {own}.")
        else:
            found[own.name] = (own, True)
    checks = [check for check, is_default in found.values() if is_default and not _is_disabled(check.name, disable)]
    others = [check for check, _ in found.values() if check not in checks]
    if len(checks) > MOST_CHECKS:
        warn(f"There are {len(checks)} checks, and {MOST_CHECKS} is the most that run unless they are named.")
        checks, others = checks[:MOST_CHECKS], checks[MOST_CHECKS:] + others
    return Found(
        tuple(checks),
        tuple(looked)[:_MOST_LOOKED],
        tuple(warnings)[:_MOST_WARNINGS],
        tuple(others[:_MOST_OTHERS]),
        left_out,
    )


def _sparing(read: Reader, warn: Callable[[str], None]) -> Reader:
    """A reader that has read enough at some point."""
    left = MOST_BYTES_TOGETHER

    def spared(file: str) -> bytes | None:
        nonlocal left
        if left <= 0:
            warn(f"The project's files say more than {MOST_BYTES_TOGETHER:,} bytes about checks; the rest is not read.")
            return None
        raw = read(file)
        left -= len(raw or b"")
        return raw

    return spared


def _folders(read: Reader, root: str, top: str, warn: Callable[[str], None]) -> Iterator[tuple[Files, list[Row]]]:
    """The folders of the project, the root first, each with the checks that no folder above covers."""
    waiting: list[tuple[str, int, frozenset[str]]] = [(root, 0, frozenset())]
    entering: list[Target] = []
    looked = 0
    while waiting:
        folder, level, covered = waiting.pop(0)
        if looked >= MOST_FOLDERS:
            warn(f"The project has more than {MOST_FOLDERS} folders; checks of the others are not looked for.")
            return
        looked += 1
        files = Files(read, root, folder, warn, top=top)
        by_name = {one.name: list(one.rows(files)) for one in ECOSYSTEMS if one.name not in covered}
        said = [] if _TARGETS in covered else list(targets(files))
        above = [one for one in entering if files.shown and files.shown in one.enters]
        yield files, weighed([row for rows in by_name.values() for row in rows], said, above)
        entering += [] if files.shown else [one for one in running(said) if one.enters]
        covering = {one.name for one in ECOSYSTEMS if by_name.get(one.name) and one.covers(files)}
        covering |= {_TARGETS} if said else set()
        if level < MOST_LEVELS:
            names = sorted(name for name in files.folders if name not in _NOT_ENTERED and not name.startswith("."))
            # What cannot be seen in a name cannot be told apart from another one either.
            below = [os.path.join(folder, name) for name in names if name.isprintable()]
            waiting += [(path, level + 1, covered | covering) for path in below]


def _check(files: Files, row: Row) -> Check:
    name = f"{files.shown}: {row.name}" if files.shown else row.name
    return Check(
        name[-_MOST_NAME_CHARS:], row.kind, row.command, files.folder, files.named(row.source), row.shares, row.program
    )


def _own(name: str, command: CheckCommand, root: str) -> Check | str:
    """A check of the settings, or why it is none; they may name no folder outside."""
    folder = os.path.realpath(os.path.join(root, command.folder))
    if not shown(name):
        return "it has no name that can be seen"
    if not command.command.strip():
        return "it has no command"
    if not within(folder, root):
        return f"its folder {command.folder} is not in {root}"
    if not os.path.isdir(folder):
        return f"its folder {command.folder} is not there"
    return Check(shown(name)[:_MOST_NAME_CHARS], command.kind, command.command, folder, "settings", command.shares)


def _is_disabled(name: str, patterns: Sequence[str]) -> bool:
    if not patterns:
        return False
    from fnmatch import fnmatchcase  # for whoever leaves some out

    return any(fnmatchcase(name, pattern) for pattern in patterns)
