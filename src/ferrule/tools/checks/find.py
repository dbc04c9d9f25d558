"""Find the checks of a project in its own files and targets, and decide which run by default.

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

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from ferrule.core.access import within
from ferrule.files.frontmatter import front_matter
from ferrule.settings import CheckCommand
from ferrule.tools.checks import Check, CheckKind, ecosystems
from ferrule.tools.checks.ecosystems import TABLES
from ferrule.tools.checks.manifests import ALONE, Ecosystem, FolderCheck, FolderManifests
from ferrule.tools.files.format import Reader
from ferrule.tools.skills import clean_line

_MOST_TARGETS = 2000
_MOST_LINES = 300
"""Of one target with all that it needs."""
_MOST_LINES_TOGETHER = 5_000
"""Of all targets of a file; a line counts for each target that it belongs to."""
_MOST_LINE_CHARS = 4000
_MOST_NAMES = 50
"""Of the targets that one rule is about."""
_MOST_NEEDS = 200
"""Of one rule."""
_MOST_EXPANDED_CHARS = 500_000
"""Of all lines of a file, with the variables put in."""
_MOST_ROUNDS = 4
_ASSIGNMENT = r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?::{0,3}|[?+!])=\s*(.*)"
_VARIABLE = r"\$(?:\(([\w.-]+)\)|\{([\w.-]+)\})"


class TargetRecipe(NamedTuple):
    """One target."""

    needs: tuple[str, ...] = ()
    """Targets that run before it, or that it calls."""
    lines: tuple[str, ...] = ()


Recipes = Mapping[str, TargetRecipe]


class TargetRunner(NamedTuple):
    """A program that runs targets."""

    program: str
    files: tuple[str, ...]
    read: Callable[[str], dict[str, TargetRecipe]]


def runners(files: FolderManifests) -> Iterator[tuple[TargetRunner, str, Recipes]]:
    """The runners of a folder, each with its file and the targets in it."""
    for runner in RUNNERS:
        if file := files.has(*runner.files):
            yield runner, file, runner.read(files.text(file))


def closure(recipes: Recipes, target: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The targets that a target runs, without itself, and the lines of all of them."""
    seen, waiting, lines = {target}, [target], list[str]()
    while waiting and len(lines) < _MOST_LINES:
        recipe = recipes.get(waiting.pop(), TargetRecipe())
        lines += recipe.lines
        needs = [one for one in recipe.needs if one in recipes and one not in seen]
        seen.update(needs)
        waiting += needs
    return frozenset(seen - {target}), tuple(lines[:_MOST_LINES])


class _Book:
    """Targets while they are being read."""

    def __init__(self, program: str) -> None:
        self._program = re.compile(rf"[@+-]*(?:{program})(?=\s)")
        self._targets: dict[str, tuple[list[str], list[str]]] = {}
        self._left = _MOST_LINES_TOGETHER

    def add(self, names: Iterable[str], needs: Iterable[str] = (), line: str = "") -> None:
        if line and self._left <= 0:
            return
        line = line[:_MOST_LINE_CHARS]
        needs = [*itertools.islice(needs, _MOST_NEEDS), *(self._parse_call(line) if line else ())]
        for name in names:
            if name not in self._targets and len(self._targets) >= _MOST_TARGETS:
                continue
            needed, lines = self._targets.setdefault(name, ([], []))
            if len(needed) < _MOST_LINES:
                needed += needs
            if line and len(lines) < _MOST_LINES:
                lines.append(line)
                self._left -= 1

    def _parse_call(self, line: str) -> list[str]:
        """The targets of the same file that a line calls."""
        call = self._program.match(line)
        words = line[call.end() :].split() if call else []
        is_plain = all(re.fullmatch(r"[\w.-]+", word) for word in words)
        return [word for word in words if not word.startswith("-")][:_MOST_NEEDS] if is_plain else []

    def recipes(self) -> dict[str, TargetRecipe]:
        return {
            name: TargetRecipe(tuple(dict.fromkeys(needs)), tuple(lines))
            for name, (needs, lines) in self._targets.items()
        }


def read_make(text: str) -> dict[str, TargetRecipe]:
    """The targets of a Makefile that have plain names; rules for patterns and files of variables are none."""
    book = _Book(r"\$[({]MAKE[)}]|make")
    values: dict[str, str] = {}
    names: list[str] = []
    is_defining = False
    for line in _join_lines(text):
        if is_defining or line.startswith(("define ", "endef")):
            is_defining = line.startswith("define ") or (is_defining and not line.startswith("endef"))
        elif line.startswith("\t"):
            book.add(names, line=line.strip())
        elif not line.strip() or line.lstrip().startswith("#"):
            continue
        elif assignment := re.fullmatch(_ASSIGNMENT, line.strip()):
            values[assignment[1]] = assignment[2].partition(" #")[0].strip()
        else:
            names = _rule(book, line)
    expand = _Expanding(values)
    return {name: recipe._replace(lines=expand(recipe.lines)) for name, recipe in book.recipes().items()}


def _rule(book: _Book, line: str) -> list[str]:
    """Take the head of a rule; the names of its targets."""
    head, colon, rest = line.partition(":")
    if not colon or rest.lstrip(":").startswith("="):
        return []
    needs, _, first = rest.lstrip(":").partition("#")[0].partition(";")
    if re.match(r"\s*[A-Za-z_][\w-]*\s*[:?+]?=", needs):  # a variable that holds for the target
        return []
    words = [] if "%" in line else dict.fromkeys(head.split())
    names = [name for name in itertools.islice(words, _MOST_NAMES) if re.fullmatch(r"[A-Za-z][\w.-]*", name)]
    book.add(names, [need for need in needs.split() if need != "|"], first.strip())
    return names


class _Expanding:
    """Puts plain variables into lines, as far as that goes and costs little: they are only looked at."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._left = _MOST_EXPANDED_CHARS

    def __call__(self, lines: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self._expand, lines))

    def _expand(self, line: str) -> str:
        for _ in range(_MOST_ROUNDS):
            if "$" not in line or len(line) > _MOST_LINE_CHARS or self._left <= 0:
                break
            line = re.sub(_VARIABLE, self._value, line)
            self._left -= len(line)
        return line[:_MOST_LINE_CHARS]

    def _value(self, match: re.Match[str]) -> str:
        return self._values.get(match[1] or match[2], match[0])[:_MOST_LINE_CHARS]


def read_just(text: str) -> dict[str, TargetRecipe]:
    """The recipes of a justfile that can be run without arguments."""
    book = _Book("just")
    names: list[str] = []
    for line in _join_lines(text):
        if line[:1] in {" ", "\t"}:
            book.add(names, line=line.strip())
        elif line.strip() and not line.startswith(("#", "[", "set ", "import ", "mod ", "alias ", "export ")):
            names = _just_rule(book, line)
    return book.recipes()


def _just_rule(book: _Book, line: str) -> list[str]:
    head, colon, rest = line.partition(":")
    words = head.removeprefix("@").split()
    if not colon or rest.startswith("=") or not words or not re.fullmatch(r"[A-Za-z_][\w-]*", words[0]):
        return []
    if any(not (word.startswith("*") or "=" in word) for word in words[1:]):
        return []
    book.add(words[:1], re.findall(r"[A-Za-z_][\w-]*", rest.partition("#")[0]))
    return words[:1]


def read_task(text: str) -> dict[str, TargetRecipe]:
    """The tasks of a Taskfile."""
    content = front_matter(f"---\n{text.removeprefix('---').lstrip()}\n---\n")
    if content.problem:  # it is long, or has anchors: what its tasks do is not known then, but they are
        return dict.fromkeys(_task_names(text), TargetRecipe())
    tasks = content.values.get("tasks")
    found: dict[str, TargetRecipe] = {}
    for name, task in list(tasks.items())[:_MOST_TARGETS] if isinstance(tasks, dict) else ():
        about = task if isinstance(task, dict) else {"cmds": task}
        commands = [*_parts(about.get("cmds")), *_parts(about.get("cmd"))]
        needs = [*_parts(about.get("deps")), *(one.removeprefix("\0") for one in commands if one.startswith("\0"))]
        lines = tuple(line for one in commands if not one.startswith("\0") for line in one.splitlines())
        found[name] = TargetRecipe(tuple(one.removeprefix("\0") for one in needs), lines[:_MOST_LINES])
    return found


def _task_names(text: str) -> Iterator[str]:
    """The keys one level below `tasks`, by how far they are to the right."""
    indent, is_below = "", False
    for line in text.splitlines():
        if line[:1].strip() and not line.startswith("#"):
            is_below = line.rstrip() == "tasks:"
        elif is_below and (key := re.match(r"( {1,8})([A-Za-z][\w-]{0,99}):(?:\s|$)", line)):
            indent = indent or key[1]
            if key[1] == indent:
                yield key[2]


def _parts(value: Any) -> Iterator[str]:
    """Commands as texts, and calls of other tasks as names behind a NUL."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            yield one[:_MOST_LINE_CHARS]
        elif isinstance(one, dict) and isinstance(one.get("task"), str):
            yield f"\0{one['task']}"
        elif isinstance(one, dict) and isinstance(one.get("cmd"), str):
            yield one["cmd"][:_MOST_LINE_CHARS]


def _join_lines(text: str) -> Iterator[str]:
    """Lines, where one that ends in a backslash goes on in the next."""
    begun = ""
    for line in text.split("\n"):
        if line.endswith("\\") and len(begun) < _MOST_LINE_CHARS:
            begun += line[:-1].rstrip() + " " if not begun else line[:-1].strip() + " "
        else:
            yield begun + (line.lstrip() if begun else line)
            begun = ""
    if begun:
        yield begun


RUNNERS = (
    TargetRunner("make", ("GNUmakefile", "makefile", "Makefile"), read_make),
    TargetRunner("just", ("justfile", "Justfile", ".justfile"), read_just),
    TargetRunner(
        "task", ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml"), read_task
    ),
)


_KINDS: dict[str, CheckKind] = {
    **dict.fromkeys(("check", "ci", "verify", "check-all"), "other"),
    **dict.fromkeys(("typecheck", "type-check", "check-types", "types", "mypy", "pyright"), "types"),
    **dict.fromkeys(("lint", "lint-check", "vet", "clippy"), "lint"),
    **dict.fromkeys(("fmt-check", "format-check", "check-format", "check-fmt", "formatcheck", "fmtcheck"), "format"),
    **dict.fromkeys(("test", "tests", "unit-test", "test-unit", "unit"), "tests"),
}
_WHOLE = ("ci", "verify", "check-all", "check")
_KNOWN = frozenset(
    (
        *("pytest", "unittest", "mypy", "ruff", "black", "flake8", "pylint", "pyright", "basedpyright", "ty", "tox"),
        *("npm", "pnpm", "yarn", "bun", "tsc", "eslint", "prettier", "biome", "jest", "vitest", "mocha", "deno"),
        *("cargo", "go", "golangci-lint", "gradle", "gradlew", "mvn", "mvnw", "dotnet", "mix", "rspec", "rubocop"),
        *("phpunit", "phpstan", "ctest", "swift", "zig", "dart", "flutter", "rake", "terraform", "pre-commit"),
    )
)
"""Programs by which a recipe shows what it does."""
_RUN = re.compile(
    r"(?:uv|poetry|pdm|hatch|pipenv|rye) run\b|(?:pnpm|yarn|bun) exec\b|bundle exec\b|npx\b|bunx\b|time\b|exec\b"
    r"|command\b|env\b|sudo\b|\S*python[\d.]*\)? -m\b|\$[({]\w*PY\w*[)}] -m\b"
)
_MENDS = re.compile(r"\s(?:--fix|--write|--apply|--watch\w*|-w)(?=[\s=]|$)")
_ENTERS = re.compile(r"(?:\bcd|\s-C|\s--prefix|\s--directory|\s--cwd)[ =]+([\w./-]+)")
_MOST_COMMANDS = 50
"""Of one line."""
_SAYS = frozenset({"echo", "printf", "true", ":", ""})


class CheckTarget(NamedTuple):
    """A target that is a check."""

    row: FolderCheck
    target: str
    runs: frozenset[str]
    """What it runs, with all that it needs, in the words of `Row.does`."""
    targets: frozenset[str]
    """The targets that it runs."""
    is_shown: bool
    """Can be seen what it runs?"""
    is_made_of: frozenset[str]
    """The targets that it runs and nothing else; none where it does more."""
    enters: frozenset[str] = frozenset()
    """Folders that it goes into, from its own."""

    @property
    def is_whole(self) -> bool:
        return self.target in _WHOLE


def targets(files: FolderManifests) -> Iterator[CheckTarget]:
    """The targets of the folder that are checks, those that run others first."""
    taken: set[str] = set()
    for runner, file, recipes in runners(files):
        for name in (*_WHOLE, *(name for name in _KINDS if name not in _WHOLE)):
            if name not in recipes:
                continue
            below, lines = closure(recipes, name)
            words = frozenset(word for line in lines for word in list_programs(line))
            row = FolderCheck(
                f"{runner.program} {name}",
                _KINDS[name],
                f"{runner.program} {name}",
                file,
                runner.program,
                shares=runner.program,
                does=(f"{runner.program} {name}",),
                # One that mends files is no check, and of the same name in two files the first one counts.
                is_default=not any(_MENDS.search(line) for line in lines) and name not in taken,
            )
            is_shown = any(word.partition(" ")[0] in _KNOWN for word in words)
            entered = frozenset(one[1].strip("./") for line in lines for one in _ENTERS.finditer(line))
            yield CheckTarget(row, name, words, below, is_shown, _component_targets(recipes[name], recipes), entered)
        taken |= recipes.keys() & _KINDS.keys()


def _component_targets(recipe: TargetRecipe, recipes: Iterable[str]) -> frozenset[str]:
    """The targets that a target is made of, where each of them is a check; what makes files is only preparation."""
    works = [
        line for line in recipe.lines if not _is_echo(line) and not re.match(r"[@+-]*(?:\$[({]MAKE[)}]|make)\s", line)
    ]
    needs = [one for one in recipe.needs if not re.search(r"[/.$]", one)]
    is_made = not works and needs and all(one in _KINDS and one not in _WHOLE and one in recipes for one in needs)
    return frozenset(needs) if is_made else frozenset()


def _is_echo(line: str) -> bool:
    return all(words[0] in _SAYS for words in _commands(line))


def list_programs(line: str) -> Iterator[str]:
    """What a line runs: `pytest`, `ruff`, `ruff check`, `npm run`, `npm run lint`."""
    for words in _commands(_ENTERS.sub(lambda found: found[0] if found[0].startswith("cd") else "", line)):
        program = os.path.basename(words[0].rstrip(")"))
        rest = [word for word in words[1:] if not word.startswith(("-", "+"))][:2]
        yield program
        for count in range(1, len(rest) + 1):
            yield " ".join([program, *rest[:count]])
        if "-m" in words[:-1]:
            yield words[words.index("-m") + 1]


def _commands(line: str) -> Iterator[list[str]]:
    for part in re.split(r"&&|\|\|?|;", line, maxsplit=_MOST_COMMANDS)[:_MOST_COMMANDS]:
        left = re.sub(r"^[\s@+(-]+", "", part)
        for _ in range(6):
            shorter = re.sub(r"^[A-Za-z_]\w*=\S*\s+", "", left)
            if run := _RUN.match(shorter):
                shorter = re.sub(r"^(?:\s*--?[\w=-]+(?=\s))*", "", shorter[run.end() :]).strip()
            if shorter == left:
                break
            left = shorter
        yield left.split() or [""]


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

    return any(fnmatchcase(name, pattern) for pattern in patterns)
