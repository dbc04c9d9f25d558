"""Which targets of a Makefile and its like are checks, and which known programs each of them runs."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ferrule.core.checks import CheckKind
from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.recipes import Recipe, closure, runners
from ferrule.workspace.checks.row import Row

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


class Target(NamedTuple):
    """A target that is a check."""

    row: Row
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


def targets(files: Files) -> Iterator[Target]:
    """The targets of the folder that are checks, those that run others first."""
    taken: set[str] = set()
    for runner, file, recipes in runners(files):
        for name in (*_WHOLE, *(name for name in _KINDS if name not in _WHOLE)):
            if name not in recipes:
                continue
            below, lines = closure(recipes, name)
            words = frozenset(word for line in lines for word in does(line))
            row = Row(
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
            yield Target(row, name, words, below, is_shown, _made_of(recipes[name], recipes), entered)
        taken |= recipes.keys() & _KINDS.keys()


def _made_of(recipe: Recipe, recipes: Iterable[str]) -> frozenset[str]:
    """The targets that a target is made of, where each of them is a check; what makes files is only preparation."""
    works = [
        line for line in recipe.lines if not _is_said(line) and not re.match(r"[@+-]*(?:\$[({]MAKE[)}]|make)\s", line)
    ]
    needs = [one for one in recipe.needs if not re.search(r"[/.$]", one)]
    is_made = not works and needs and all(one in _KINDS and one not in _WHOLE and one in recipes for one in needs)
    return frozenset(needs) if is_made else frozenset()


def _is_said(line: str) -> bool:
    return all(words[0] in _SAYS for words in _commands(line))


def does(line: str) -> Iterator[str]:
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
