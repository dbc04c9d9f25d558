"""The targets of Makefiles, justfiles and Taskfiles and what each of them would run, read without running anything."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ferrule.workspace.checks.files import Files

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


class Recipe(NamedTuple):
    """One target."""

    needs: tuple[str, ...] = ()
    """Targets that run before it, or that it calls."""
    lines: tuple[str, ...] = ()


Recipes = Mapping[str, Recipe]


class Runner(NamedTuple):
    """A program that runs targets."""

    program: str
    files: tuple[str, ...]
    read: Callable[[str], dict[str, Recipe]]


def runners(files: Files) -> Iterator[tuple[Runner, str, Recipes]]:
    """The runners of a folder, each with its file and the targets in it."""
    for runner in RUNNERS:
        if file := files.has(*runner.files):
            yield runner, file, runner.read(files.text(file))


def closure(recipes: Recipes, target: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The targets that a target runs, without itself, and the lines of all of them."""
    seen, waiting, lines = {target}, [target], list[str]()
    while waiting and len(lines) < _MOST_LINES:
        recipe = recipes.get(waiting.pop(), Recipe())
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
        needs = [*itertools.islice(needs, _MOST_NEEDS), *(self._called(line) if line else ())]
        for name in names:
            if name not in self._targets and len(self._targets) >= _MOST_TARGETS:
                continue
            needed, lines = self._targets.setdefault(name, ([], []))
            if len(needed) < _MOST_LINES:
                needed += needs
            if line and len(lines) < _MOST_LINES:
                lines.append(line)
                self._left -= 1

    def _called(self, line: str) -> list[str]:
        """The targets of the same file that a line calls."""
        call = self._program.match(line)
        words = line[call.end() :].split() if call else []
        is_plain = all(re.fullmatch(r"[\w.-]+", word) for word in words)
        return [word for word in words if not word.startswith("-")][:_MOST_NEEDS] if is_plain else []

    def recipes(self) -> dict[str, Recipe]:
        return {
            name: Recipe(tuple(dict.fromkeys(needs)), tuple(lines)) for name, (needs, lines) in self._targets.items()
        }


def read_make(text: str) -> dict[str, Recipe]:
    """The targets of a Makefile that have plain names; rules for patterns and files of variables are none."""
    book = _Book(r"\$[({]MAKE[)}]|make")
    values: dict[str, str] = {}
    names: list[str] = []
    is_defining = False
    for line in _joined(text):
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
        return tuple(map(self._expanded, lines))

    def _expanded(self, line: str) -> str:
        for _ in range(_MOST_ROUNDS):
            if "$" not in line or len(line) > _MOST_LINE_CHARS or self._left <= 0:
                break
            line = re.sub(_VARIABLE, self._value, line)
            self._left -= len(line)
        return line[:_MOST_LINE_CHARS]

    def _value(self, match: re.Match[str]) -> str:
        return self._values.get(match[1] or match[2], match[0])[:_MOST_LINE_CHARS]


def read_just(text: str) -> dict[str, Recipe]:
    """The recipes of a justfile that can be run without arguments."""
    book = _Book("just")
    names: list[str] = []
    for line in _joined(text):
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


def read_task(text: str) -> dict[str, Recipe]:
    """The tasks of a Taskfile."""
    from ferrule.support.frontmatter import front_matter  # it brings in the reader of YAML

    content = front_matter(f"---\n{text.removeprefix('---').lstrip()}\n---\n")
    if content.problem:  # it is long, or has anchors: what its tasks do is not known then, but they are
        return dict.fromkeys(_task_names(text), Recipe())
    tasks = content.values.get("tasks")
    found: dict[str, Recipe] = {}
    for name, task in list(tasks.items())[:_MOST_TARGETS] if isinstance(tasks, dict) else ():
        about = task if isinstance(task, dict) else {"cmds": task}
        commands = [*_parts(about.get("cmds")), *_parts(about.get("cmd"))]
        needs = [*_parts(about.get("deps")), *(one.removeprefix("\0") for one in commands if one.startswith("\0"))]
        lines = tuple(line for one in commands if not one.startswith("\0") for line in one.splitlines())
        found[name] = Recipe(tuple(one.removeprefix("\0") for one in needs), lines[:_MOST_LINES])
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


def _joined(text: str) -> Iterator[str]:
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
    Runner("make", ("GNUmakefile", "makefile", "Makefile"), read_make),
    Runner("just", ("justfile", "Justfile", ".justfile"), read_just),
    Runner("task", ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml"), read_task),
)
