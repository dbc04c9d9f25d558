"""Find the checks among the targets of Makefiles, justfiles and Taskfiles, without running anything.

For each target the module works out which known programs it would run.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ferrule.tools.checks.manifests import FolderCheck, FolderManifests
from ferrule.tools.checks.outcomes import CheckKind

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
    from ferrule.files.frontmatter import front_matter  # it brings in the reader of YAML

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
