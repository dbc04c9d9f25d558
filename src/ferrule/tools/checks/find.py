"""Find the checks of a project in its own files and decide which of them run by default.

Every ecosystem has a table that says which file speaks for which check. The same programs are often written down
in more than one place. Running a check twice is a nuisance and missing one is a fault, so these rules decide
what runs when no check is named:

- What a project says about how it is checked counts before what follows from its configuration. If a target of a
  Makefile, a justfile or a Taskfile runs a program that was found as well, the target runs, with the options
  that the project gives that program, and the check that was found does not.
- A target that is named after one kind of check (`test`, `lint`) and does not show what it runs stands for the
  checks of that kind that were found.
- A target such as `check` or `ci` that does nothing but run other such targets does not run: they do, each for
  itself. One that does more runs, and the targets that it runs do not. Scripts of a package.json go by the same
  rule.
- A target of the root that goes into a folder stands there for the programs that it runs.
- pre-commit changes files. It runs only if nothing else lints or formats.
- tox and nox run only if nothing else was found, and the build of a package only if nothing else looks at types.

Checks that do not run by default are in `others`, and run when they are named. Folders one and two levels down
are searched too, but checks of a kind that a folder above covers are not found again.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.settings.schema import CheckCommand
from ferrule.tools.checks import ecosystems
from ferrule.tools.checks.ecosystems import TABLES
from ferrule.tools.checks.manifests import ALONE, Ecosystem, FolderCheck, FolderManifests
from ferrule.tools.checks.outcomes import Check
from ferrule.tools.checks.targets import CheckTarget, targets
from ferrule.tools.files.format import Reader
from ferrule.tools.skills.skills import clean_line


def set_defaults(
    rows: Sequence[FolderCheck], targets: Sequence[CheckTarget], above: Sequence[CheckTarget] = ()
) -> list[FolderCheck]:
    """All of them, each with the decision whether it runs by default; `found` says by which rules.

    `above` are targets of a folder above that run and go into this one.
    """
    chosen = select_targets(targets)
    kept = [row._replace(is_default=row.is_default and not _is_covered(row, chosen, above)) for row in rows]
    beside = [row for row in kept if row.is_default and row.shares != ALONE] + [one.row for one in chosen]
    is_linted = any(row.kind in {"lint", "format"} for row in beside)
    kept = [row._replace(is_default=False) if row.shares == ALONE and is_linted else row for row in kept]
    named = {one.row.name for one in chosen}
    said = [_target_row(one, rows)._replace(is_default=one.row.name in named) for one in targets]
    return [*kept, *said]


def select_targets(targets: Sequence[CheckTarget]) -> list[CheckTarget]:
    """The targets that run: none that another one runs."""
    usable = [one for one in targets if one.row.is_default]
    names = {(one.row.program, one.target) for one in usable}
    # Made of nothing but others that can run by themselves: they say more about each.
    usable = [
        one for one in usable if not one.is_made_of or not {(one.row.program, part) for part in one.is_made_of} <= names
    ]
    run = {(one.row.program, below) for one in usable for below in one.targets}
    return [one for one in usable if (one.row.program, one.target) not in run]


def _is_covered(row: FolderCheck, chosen: Sequence[CheckTarget], above: Sequence[CheckTarget]) -> bool:
    is_run = any(not one.runs.isdisjoint(row.does) for one in (*chosen, *above))
    return is_run or any(not one.is_shown and one.row.kind == row.kind for one in chosen)


def _target_row(target: CheckTarget, rows: Sequence[FolderCheck]) -> FolderCheck:
    """The target's row; what it runs has to have for itself what it would have alone."""
    shares = next((row.shares for row in rows if row.shares and not target.runs.isdisjoint(row.does)), "")
    return target.row._replace(shares=shares) if shares else target.row


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
    Ecosystem("python", ecosystems.python_rows),
    Ecosystem("node", ecosystems.node_rows, ecosystems.covers),
    *TABLES,
    Ecosystem("pre-commit", ecosystems.precommit_rows),
)


class ProjectChecks(NamedTuple):
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
) -> ProjectChecks:
    """The checks of the project in `root`, which is absolute and real. `commands` and `disable` are the settings.

    `top` is a folder above, or the same: environments and lock files up to there are the project's too, and files are
    told from there.
    """
    warnings: dict[str, None] = {}
    looked: dict[str, None] = {}

    def warn(sentence: str) -> None:
        warnings[clean_line(sentence)] = None

    found: dict[str, tuple[Check, bool]] = {}
    left_out: dict[str, str] = {}
    for files, rows in _folders(_limit_reader(jail_read, warn), root, top or root, warn):
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
    return ProjectChecks(
        tuple(checks),
        tuple(looked)[:_MOST_LOOKED],
        tuple(warnings)[:_MOST_WARNINGS],
        tuple(others[:_MOST_OTHERS]),
        left_out,
    )


def _limit_reader(read: Reader, warn: Callable[[str], None]) -> Reader:
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


def _folders(
    read: Reader, root: str, top: str, warn: Callable[[str], None]
) -> Iterator[tuple[FolderManifests, list[FolderCheck]]]:
    """The folders of the project, the root first, each with the checks that no folder above covers."""
    waiting: list[tuple[str, int, frozenset[str]]] = [(root, 0, frozenset())]
    entering: list[CheckTarget] = []
    looked = 0
    while waiting:
        folder, level, covered = waiting.pop(0)
        if looked >= MOST_FOLDERS:
            warn(f"The project has more than {MOST_FOLDERS} folders; checks of the others are not looked for.")
            return
        looked += 1
        files = FolderManifests(read, root, folder, warn, top=top)
        by_name = {one.name: list(one.rows(files)) for one in ECOSYSTEMS if one.name not in covered}
        said = [] if _TARGETS in covered else list(targets(files))
        above = [one for one in entering if files.shown and files.shown in one.enters]
        yield files, set_defaults([row for rows in by_name.values() for row in rows], said, above)
        entering += [] if files.shown else [one for one in select_targets(said) if one.enters]
        covering = {one.name for one in ECOSYSTEMS if by_name.get(one.name) and one.covers(files)}
        covering |= {_TARGETS} if said else set()
        if level < MOST_LEVELS:
            names = sorted(name for name in files.folders if name not in _NOT_ENTERED and not name.startswith("."))
            # What cannot be seen in a name cannot be told apart from another one either.
            below = [os.path.join(folder, name) for name in names if name.isprintable()]
            waiting += [(path, level + 1, covered | covering) for path in below]


def _check(files: FolderManifests, row: FolderCheck) -> Check:
    name = f"{files.shown}: {row.name}" if files.shown else row.name
    return Check(
        name[-_MOST_NAME_CHARS:],
        row.kind,
        row.command,
        files.folder,
        files.path_from_top(row.source),
        row.shares,
        row.program,
    )


def _own(name: str, command: CheckCommand, root: str) -> Check | str:
    """A check of the settings, or why it is none; they may name no folder outside."""
    folder = os.path.realpath(os.path.join(root, command.folder))
    if not clean_line(name):
        return "it has no name that can be seen"
    if not command.command.strip():
        return "it has no command"
    if not within(folder, root):
        return f"its folder {command.folder} is not in {root}"
    if not os.path.isdir(folder):
        return f"its folder {command.folder} is not there"
    return Check(clean_line(name)[:_MOST_NAME_CHARS], command.kind, command.command, folder, "settings", command.shares)


def _is_disabled(name: str, patterns: Sequence[str]) -> bool:
    if not patterns:
        return False
    from fnmatch import fnmatchcase  # for whoever leaves some out

    return any(fnmatchcase(name, pattern) for pattern in patterns)
