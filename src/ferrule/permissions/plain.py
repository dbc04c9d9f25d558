"""Development commands that need no question: plain words only, from a short table of programs and flags.

No quotes, no variables, no globs, no operators: what is written is what runs. A program counts only when it is found
outside the workspace, and a flag only when it is listed. Whatever is not certain asks; the full analysis of command
lines is a matter of its own.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence

from ferrule.core.access import within

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=-]+( [A-Za-z0-9_./:@%+,=-]+)*")
_ALONE = "!"
"""In a list of flags: no other words may follow."""

_GIT_SHOW = (
    "--stat --oneline --name-only --name-status --cached --staged --graph --all --decorate --short --branch -s -b -p"
    " --patch --no-color --no-pager --porcelain -n -1 -2 -3 -5 -10 -20 --abbrev-commit --summary --numstat --shortstat"
    " --check -w -b --word-diff --no-renames --untracked-files --ignored"
).split()
_TEST_FLAGS = "-v -vv -q -x -s -k -m --lf --ff --tb --maxfail --collect-only -n --co -rA -ra --durations".split()

_Flags = Sequence[str]
TABLE: Mapping[str, Mapping[str, _Flags]] = {
    # program → first word → flags that may follow; "" stands for no first word
    "git": {
        "status": _GIT_SHOW, "diff": _GIT_SHOW, "log": _GIT_SHOW, "show": _GIT_SHOW, "blame": ("-L",),
        "branch": (_ALONE, "-a", "-r", "-v", "-vv", "--list", "--show-current"), "tag": (_ALONE, "-l", "--list"),
        "rev-parse": ("--show-toplevel", "--abbrev-ref"), "describe": ("--tags", "--always"), "remote": (_ALONE, "-v"),
        "ls-files": ("-m", "-o", "--others", "--exclude-standard"),
    },
    "npm": {"test": (), "run": (), "ls": ("--depth", "--all"), "list": ("--depth", "--all"), "outdated": (), "t": ()},
    "pnpm": {"test": (), "run": (), "ls": (), "list": ()},
    "yarn": {"test": (), "run": (), "list": ()},
    "python": {"-m": (*_TEST_FLAGS, "--strict", "--check", "--fix"), "--version": (), "-V": ()},
    "pytest": {"": _TEST_FLAGS},
    "ruff": {"check": ("--fix", "--diff", "--select"), "format": ("--check", "--diff")},
    "mypy": {"": ("--strict",)}, "pyright": {"": ()}, "basedpyright": {"": ()},
    "black": {"": ("--check", "--diff", "-q")}, "isort": {"": ("--check", "--diff")}, "flake8": {"": ()},
    "tox": {"": ("-e",)}, "nox": {"": ("-s",)},
    "make": {"": ()},
    "cargo": {
        "build": ("--release", "--all", "--workspace"), "test": ("--all", "--workspace", "--release"),
        "check": ("--all", "--workspace"), "fmt": ("--all", "--check"), "clippy": ("--all", "--workspace"), "tree": (),
    },
    "go": {"build": ("-v",), "test": ("-v", "-run", "-race", "-cover"), "vet": (), "fmt": (), "list": ("-m",), "version": ()},
    "gofmt": {"": ("-l", "-w", "-d")}, "rustfmt": {"": ("--check",)},
    "tsc": {"": ("--noEmit", "-p", "--project", "-b")}, "eslint": {"": ("--fix",)},
    "prettier": {"": ("--write", "--check")}, "jest": {"": ("--watch=false", "--ci")}, "vitest": {"": ("run",)},
    "node": {"--version": (), "-v": ()}, "ls": {"": ("-l", "-a", "-la", "-al", "-1", "-lh", "-lah", "-R")},
    "pwd": {"": ()}, "which": {"": ()}, "true": {"": ()}, "uname": {"": ("-a",)},
}  # fmt: skip
_MODULES = frozenset({"pytest", "unittest", "mypy", "ruff", "black", "isort", "compileall", "flake8"})
_ALIASES = {"python3": "python"}


def auto_allowed(
    command: str,
    *,
    cwd: str,
    roots: Sequence[str],
    secret: Callable[[str], bool],
    path: str | None = None,
) -> bool:
    """Is the command one of the common development commands, in plain words, touching nothing that is guarded?"""
    if not _PLAIN.fullmatch(command) or len(command) > 1000:
        return False
    program, *words = command.split(" ")
    table = TABLE.get(_ALIASES.get(program, program))
    if table is None or not _trusted(program, roots, path):
        return False
    return _covered(program, words, table) and all(_harmless(word, cwd, roots, secret) for word in words)


def _covered(program: str, words: Sequence[str], table: Mapping[str, Sequence[str]]) -> bool:
    if _ALIASES.get(program, program) == "python":
        if words and words[0].endswith(".py"):
            return not any(word.startswith("-") for word in words)
        if words[:1] == ["-m"] and words[1:2] and words[1] not in _MODULES:
            return False
    if words and words[0] in table:
        allowed, rest = table[words[0]], words[1:]
    elif "" in table:
        allowed, rest = table[""], words
    else:
        return False
    return all(
        word.split("=", 1)[0] in allowed or word in allowed
        if word.startswith("-")
        else _ALONE not in allowed and "=" not in word  # `make CC=…` runs what the word says
        for word in rest
    )


def _trusted(program: str, roots: Sequence[str], path: str | None) -> bool:
    found = shutil.which(program, path=path)
    return found is not None and os.path.isabs(found) and not any(
        within(os.path.realpath(place), root) for root in roots for place in (found, os.path.dirname(found))
    )


def _harmless(word: str, cwd: str, roots: Sequence[str], secret: Callable[[str], bool]) -> bool:
    """Is a word no path out of the workspace and no secret file?"""
    for piece in re.split(r"[=:,]", word):
        real = os.path.realpath(os.path.join(cwd, piece))
        if ".." in piece.split("/") or (piece.startswith("/") and not any(within(real, root) for root in roots)):
            return False
        if secret(real) or secret(os.path.join(cwd, piece)):
            return False
    return True
