"""What a plan wants to be allowed, as rules: exact command lines only. Whatever is not plain is asked about later."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.core.planning import Wish
from ferrule.workspace.paths import Jail

_TOOL = "Bash"
_MOST_BYTES = 1 << 20
_PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_./:@+,=-]*( [A-Za-z0-9_./:@+,=-]+| &&)*"
_FILLERS = (
    "run runs running execute perform do the all a an project projects s our my this of for its unit existing full code"
    " please"
)
_SENTENCE = "the all any a an my our new old and to for with in of from into on"
"""Words that no command has in the second place, but that many a sentence has that begins with a program's name."""
_GOES_OUT = "push publish deploy release upload login"
_NOT_BEFOREHAND = (
    "rm rmdir dd mkfs chmod chown kill pkill killall shutdown reboot mount umount curl wget gh docker podman kubectl"
    " terraform helm aws gcloud az systemctl ansible fly heroku vercel netlify install mv cp ln tee truncate shred find"
)
"""Programs of which somebody wants to see each call when it comes."""
_OF_GIT = "add commit status diff log show"
"""What git may be allowed beforehand: nothing of what throws work away, changes its settings or goes elsewhere."""
_BRINGS = "install i add update upgrade remove uninstall"
"""What packages are changed with. Those that the project names itself are an intent; others are asked about."""
_INTENTS: Mapping[str, str] = {
    **dict.fromkeys(("test", "tests", "test suite", "tests suite"), "test"),
    **dict.fromkeys(("build", "builds", "compile", "compilation"), "build"),
    **dict.fromkeys(("lint", "linter", "linters", "linting", "lint checks"), "lint"),
    **dict.fromkeys(
        ("type check", "type checks", "typecheck", "type checker", "type checking", "typechecker"), "types"
    ),
    **dict.fromkeys(("format", "formatter", "formatters", "formatting"), "format"),
    **dict.fromkeys(("install dependencies", "install deps", "install packages", "dependencies install"), "install"),
}
_TARGETS: Mapping[str, tuple[str, ...]] = {
    "test": ("test", "tests", "check"),
    "build": ("build",),
    "lint": ("lint",),
    "types": ("types", "typecheck", "type-check"),
    "format": ("format", "fmt"),
}
"""What an intent is called among the targets of a Makefile and the scripts of a package."""
_BY_FILE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Cargo.toml": {
        "test": ("cargo test",),
        "build": ("cargo build",),
        "lint": ("cargo clippy",),
        "types": ("cargo check",),
        "format": ("cargo fmt",),
        "install": ("cargo fetch",),
    },
    "go.mod": {
        "test": ("go test ./...",),
        "build": ("go build ./...",),
        "lint": ("go vet ./...",),
        "format": ("go fmt ./...",),
        "install": ("go mod download",),
    },
    "uv.lock": {"install": ("uv sync",)},
    "poetry.lock": {"install": ("poetry install",)},
    "requirements.txt": {"install": ("pip install -r requirements.txt",)},
}
_PYTHON: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "test": (("pytest", ("pytest", "pytest -q")),),
    "lint": (("ruff", ("ruff check", "ruff check .")), ("flake8", ("flake8",))),
    "types": (("mypy", ("mypy", "mypy .")), ("pyright", ("pyright",))),
    "format": (("ruff", ("ruff format", "ruff format .")), ("black", ("black .",))),
}
"""Intent → programs that a Python project may name in its settings, and how each is run."""


class Granting(NamedTuple):
    """What becomes of the wishes of a plan."""

    granted: tuple[tuple[str, tuple[str, ...]], ...]
    """Each wish that rules come of, with them."""
    asked: tuple[str, ...]
    """The others: they are asked about when they come."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All rules, each once."""
        return tuple(dict.fromkeys(text for _, texts in self.granted for text in texts))


def granting(wishes: Sequence[Wish], jail: Jail) -> Granting:
    """The rules that wishes become, in this workspace. Nothing of it holds before the user has seen it."""
    granted, asked = [], []
    for wish in dict.fromkeys(wishes):
        lines = _meant(wish.prompt, jail) or _literal(wish.prompt, jail) if wish.tool == _TOOL else ()
        if lines:
            granted.append((wish.prompt, tuple(f"{_TOOL}({line})" for line in lines)))
        else:
            asked.append(wish.prompt)
    return Granting(tuple(granted), tuple(asked))


def _meant(prompt: str, jail: Jail) -> tuple[str, ...]:
    """The command lines of a well-known intent, as this project has them; of several, only if each is known."""
    found: dict[str, None] = {}
    for piece in re.split(r"\band\b|[,;&]", prompt.lower()):
        words = [word for word in re.findall(r"[a-z0-9]+", piece) if word not in _FILLERS.split()]
        intent = _INTENTS.get(" ".join(words))
        lines = dict.fromkeys(_lines(intent, jail.folder)) if intent else {}
        if not lines:
            return ()
        found |= lines
    return tuple(found)


def _lines(intent: str, folder: str) -> Iterator[str]:
    for name, lines in _BY_FILE.items():
        if os.path.isfile(os.path.join(folder, name)):
            yield from lines.get(intent, ())
    settings = "".join(_text(folder, name) for name in ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"))
    for program, commands in _PYTHON.get(intent, ()) if settings else ():
        if program in settings or intent == "test":
            yield from commands
    targets = set(re.findall(r"(?m)^([a-z-]+)[ \t]*:(?!=)", _text(folder, "Makefile")))
    yield from (f"make {name}" for name in _TARGETS.get(intent, ()) if name in targets)
    if scripts := _scripts(folder):
        yield from _of_package(intent, folder, scripts)
    elif intent == "install" and os.path.isfile(os.path.join(folder, "package.json")):
        yield from _of_package(intent, folder, ())


def _of_package(intent: str, folder: str, scripts: Sequence[str]) -> Iterator[str]:
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}
    named = (program for lock, program in locks.items() if os.path.isfile(os.path.join(folder, lock)))
    program = next(named, "npm")
    if intent == "install":
        yield from (f"{program} install", *(("npm ci",) if program == "npm" else ()))
    for name in _TARGETS.get(intent, ()):
        if name in scripts:
            yield f"{program} run {name}"
            if name == "test":
                yield f"{program} test"


def _scripts(folder: str) -> tuple[str, ...]:
    import json  # for plans of packages

    try:
        package = json.loads(_text(folder, "package.json") or "{}")
    except (json.JSONDecodeError, RecursionError):
        return ()
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return tuple(scripts) if isinstance(scripts, dict) else ()


def _text(folder: str, name: str) -> str:
    """A file of the project, as far as it is of use; nothing where it is no file of ordinary size."""
    path = os.path.join(folder, name)
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""


def _literal(prompt: str, jail: Jail) -> tuple[str, ...]:
    """The prompt, where it is itself a command line in plain words that a rule may name."""
    if not re.fullmatch(_PLAIN, prompt):
        return ()
    if prompt in _lines("install", jail.folder):
        return (prompt,)
    from ferrule.permissions.shell.parse import parse  # only command lines need it
    from ferrule.permissions.shell.suggest import proposals

    roots = [root.path for root in jail.roots]
    line = parse(prompt, cwd=jail.folder, roots=roots)
    # Nobody proposes a rule for shells, interpreters and whatever runs another program.
    if line.doubts or not proposals(line):
        return ()
    for simple in line.commands:
        words = [word.text for word in simple.words]
        plain = simple.literal and not (simple.inside or simple.assigns or simple.redirects)
        if not plain or not words or not _is_command(words, roots):
            return ()
    return (prompt,)


def _is_command(words: Sequence[str], roots: Sequence[str]) -> bool:
    """Is it a command, and not a sentence, of a program that lies outside the workspace and sends nothing away?"""
    program = words[0]
    if any(word.startswith("/") or ".." in word.split("/") or word in _GOES_OUT.split() for word in words):
        return False
    if program == "cd":
        return True
    if program in _NOT_BEFOREHAND.split() or "/" in program or (len(words) > 2 and words[1] in _SENTENCE.split()):
        return False
    named = next((word for word in words[1:] if not word.startswith("-")), "")
    if named not in _OF_GIT.split() if program == "git" else named in _BRINGS.split():
        return False
    found = shutil.which(program)
    return found is not None and not any(within(os.path.realpath(found), root) for root in roots)
