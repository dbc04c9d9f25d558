"""The checks of a JavaScript or TypeScript project: the scripts of its package.json, and tsc where none runs it.

Of the scripts that are about the same thing the first of the table counts. A script that waits for changes or mends
files is none; one that only says that there are no tests is none either.
"""

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.core.checks import CheckKind
from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.row import Row

PACKAGE = "package.json"
_SCRIPTS: tuple[tuple[CheckKind, tuple[str, ...]], ...] = (
    (
        "types",
        (
            *("typecheck", "type-check", "types:check", "check-types", "check:types", "check:type", "type:check"),
            *("lint:types", "test:types", "types", "tsc", "tsc:check", "check:ts", "ts:check", "typecheck:all"),
        ),
    ),
    ("lint", ("lint", "lint:check", "check:lint", "lint:ci", "lint:js", "lint:all", "eslint", "biome", "oxlint", "xo")),
    (
        "format",
        (
            *("format:check", "check:format", "format-check", "check-format", "fmt:check", "check:fmt", "lint:format"),
            *("prettier:check", "check:prettier", "prettier-check", "lint:prettier", "format:ci", "check-formatting"),
        ),
    ),
    (
        "tests",
        ("test", "test:ci", "test:run", "tests", "test:unit", "unit", "unit-test", "test-unit", "vitest", "jest"),
    ),
)
_WHOLE = ("check", "ci", "verify", "validate", "check:all")
"""Scripts that mostly run the others."""
_LOCKS = (
    *(("pnpm-lock.yaml", "pnpm"), ("pnpm-workspace.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")),
    *(("bun.lockb", "bun"), ("package-lock.json", "npm"), ("npm-shrinkwrap.json", "npm")),
)
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_SEVERAL = ("run-s", "run-p", "npm-run-all", "npm-run-all2")
_WATCHES = (
    r"(?:^|\s)(?:--?watch(?:-?[aA]ll)?(?:=true)?|-w|--ui|watch|nodemon|tsc-watch|chokidar|onchange|cypress open)"
    r"(?=\s|$)"
)
_MENDS = r"(?:^|\s)(?:--fix|--write|--apply|-u|--update(?:-?snapshots?)?)(?=[\s=]|$)"
_TYPES = r"(?:^|[\s/&;|])(?:tsc|tsgo|vue-tsc|svelte-check|astro check|flow check)(?=\s|$)"
_CONFIGURED: tuple[tuple[str, CheckKind, str, str], ...] = (
    ("biome", "lint", "ci --colors=off", r"biome\.jsonc?"),
    ("eslint", "lint", ".", r"eslint\.config\.[cm]?[jt]s|\.eslintrc(?:\.\w+)?"),
    ("vitest", "tests", "run", r"vitest\.config\.[cm]?[jt]s"),
    ("jest", "tests", "--ci", r"jest\.config\.(?:[cm]?[jt]s|json)"),
)
_PLACEHOLDER = "no test specified"
_MOST_CHARS = 4000


def rows(files: Files) -> Iterator[Row]:
    """The checks of the folder."""
    if files.has(PACKAGE):
        yield from _scripted(files, _scripts(files))
    elif files.has("tsconfig.json") and not files.has("deno.json", "deno.jsonc"):
        yield _tsc(files)


def covers(files: Files) -> bool:
    """A package.json without scripts for checks leaves them to its packages."""
    return files.has(PACKAGE) != "" and any(True for _ in _scripted(files, _scripts(files)))


def runner_of(files: Files) -> str:
    """The program that runs scripts: as the package says, or as its lock file does, here or above."""
    said = files.at(PACKAGE, "packageManager")
    name = said.partition("@")[0] if isinstance(said, str) else ""
    if name in _MANAGERS:
        return name
    lock = files.above(*(lock for lock, _ in _LOCKS))
    return dict(_LOCKS).get(lock, "npm")


def _scripts(files: Files) -> Mapping[str, str]:
    scripts: Any = files.at(PACKAGE, "scripts")
    if not isinstance(scripts, dict):
        return {}
    return {name: line[:_MOST_CHARS] for name, line in scripts.items() if isinstance(line, str) and line.strip()}


def _scripted(files: Files, scripts: Mapping[str, str]) -> Iterator[Row]:
    runner = runner_of(files)
    found: dict[str, Row] = {}
    for kind, names in _SCRIPTS:
        usable = ((name, _row(runner, kind, name, scripts[name])) for name in names if name in scripts)
        found |= dict(itertools.islice(((name, row) for name, row in usable if row), 1))
    wholes = ((name, _row(runner, "other", name, scripts[name])) for name in _WHOLE if name in scripts)
    whole = next(((name, row) for name, row in wholes if row), None)
    running = [scripts[name] for name in found]
    if whole is not None:
        named, does_more = _named(scripts[whole[0]])
        # A script that does nothing but run these is the same as they are, and says less about each.
        is_default = does_more or not named <= found.keys()
        yield whole[1]._replace(is_default=is_default)
        found = {name: row._replace(is_default=not is_default or name not in named) for name, row in found.items()}
        running += [scripts[whole[0]]] if is_default else []
    yield from found.values()
    yield from _unscripted(files, {row.kind for row in found.values()}, "\n".join(running))
    is_typed = any(row.kind == "types" for row in found.values()) or re.search(_TYPES, "\n".join(running))
    if not is_typed and not files.has("tsconfig.json") and re.search(_TYPES, scripts.get("build", "")):
        yield from filter(None, [_row(runner, "build", "build", scripts["build"])])


def _unscripted(files: Files, kinds: set[CheckKind], running: str) -> Iterator[Row]:
    """Programs that are configured here and that no script runs."""
    if "types" not in kinds and files.has("tsconfig.json") and not re.search(_TYPES, running):
        yield _tsc(files)
    for program, kind, words, marks in _CONFIGURED:
        source = next((name for name in sorted(files.names) if re.fullmatch(marks, name)), "")
        if source and kind not in kinds and program not in running:
            files.has(source)
            called, needed = _called(files, program)
            yield Row(program, kind, f"{called} {words}", source, needed, does=(program,))


def _named(line: str) -> tuple[frozenset[str], bool]:
    """The scripts that a script runs, and whether it does something else as well."""
    named: set[str] = set()
    does_more = False
    for part in re.split(r"&&|;", line):
        words = part.split()
        if len(words) > 2 and words[0] in _MANAGERS and words[1] == "run":
            words = [words[0], *words[2:]]
        given = [word for word in words[1:] if not word.startswith("-")]
        is_plain = bool(words) and all(re.fullmatch(r"[\w:-]+", word) for word in words)
        if is_plain and given and (words[0] in _SEVERAL or (words[0] in _MANAGERS and len(given) == 1)):
            named |= {"test" if one == "t" else one for one in given}
        else:
            does_more = True
    return frozenset(named), does_more


def _row(runner: str, kind: CheckKind, name: str, line: str) -> Row | None:
    """The check that a script is, if it is one. Its name is one of ours."""
    if _PLACEHOLDER in line or any(re.search(pattern, line) for pattern in (_WATCHES, _MENDS)):
        return None
    words = "test" if name == "test" and runner != "bun" else f"run {shlex.quote(name)}"
    # In plain words, which is what the policy knows. That npm is silent and that vitest runs once is said by the
    # environment that checks run in.
    command = f"{runner} {words}"
    does = (f"{runner} {words}", f"{runner} run {name}", f"{runner} {name}")
    return Row(f"{runner} {words}", kind, command, PACKAGE, runner, "dist" if kind == "build" else "", does)


def _tsc(files: Files) -> Row:
    # A tsconfig.json that only refers to others checks nothing by itself.
    words = "-b --noEmit" if b'"references"' in files.raw("tsconfig.json") else "--noEmit"
    called, program = _called(files, "tsc")
    return Row("tsc", "types", f"{called} {words}", "tsconfig.json", program, does=("tsc",))


def _called(files: Files, program: str) -> tuple[str, str]:
    """How a program of the project is called, and what that needs: its own copy, else the one on PATH.

    `npx` is never asked for it: where it finds none it goes to the network, whatever it is told about installing.
    """
    called = files.own(program, "node_modules/.bin") or program
    return called, called
