"""Allow common development commands without a question, from a short table of programs and flags.

A command must be written without variables, globs or operators, so that it runs exactly as written. A program
counts only if it is found outside the workspace or belongs to the project's own environment, and a flag only if
it is listed as a whole word. No listed flag runs a program of the caller's choice, loads a settings file, or
writes to a given path. Tests, builds and linters run the project's own code, as intended; code that the agent
could have written without a question is never part of that. Anything uncertain asks. The full analysis of command
lines is in `permissions/shell`.

The module also decides whether git would obey settings of a folder that only looks like a repository, and which
commands and pages ask even if confined commands run without a question.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.access import within

_WORK_TREE = r"(?im)^\s*(?:\[core\]\s*)?worktree\s*=\s*(.*?)\s*$"
_MOST_CHARS = 1 << 18


def is_safe_repository(cwd: str, words: Sequence[str]) -> bool:
    """Will git find its settings in a `.git`, which no tool may write, and not in files that look like a repository?"""
    folder = cwd
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return not _leads_away(git, folder)
        if os.path.lexists(git):
            return _leads_to_git(git)
        # Git takes a HEAD that leads nowhere too, and may find the rest through a pointer in `commondir`.
        if os.path.lexists(os.path.join(folder, "HEAD")) and any(
            os.path.lexists(os.path.join(folder, name)) for name in ("objects", "refs", "commondir", "config")
        ):
            return False
        if os.path.dirname(folder) == folder:
            # Without a repository `git diff` compares any two files or folders, and prints them.
            return "diff" not in words or all(word.startswith("-") for word in words[words.index("diff") + 1 :])
        folder = os.path.dirname(folder)


def _leads_to_git(file: str) -> bool:
    """Does the pointer of a work tree or a submodule lead into a `.git` folder?"""
    if not os.path.isfile(file):
        return False
    with open(file, encoding="utf-8", errors="replace") as pointer:
        target = pointer.read(4096).removeprefix("gitdir:").strip()
    git = os.path.realpath(os.path.join(os.path.dirname(file), target))
    return ".git" in git.split(os.sep) and not _leads_away(git, os.path.dirname(file))


def _leads_away(git: str, top: str) -> bool:
    """Do the settings say that the files are those of another folder, which git would compare and print?

    Only what stands there plainly is seen; whoever starts git asks git itself.
    """
    for name in ("config", "config.worktree"):
        try:
            with open(os.path.join(git, name), encoding="utf-8", errors="replace") as file:
                text = file.read(_MOST_CHARS)
        except OSError:
            continue
        if "worktree" not in text.lower():
            continue
        for tree in re.findall(_WORK_TREE, text):
            if os.path.realpath(os.path.join(git, tree.strip('"'))) != os.path.realpath(top):
                return True
    return False


# Patterns stay text until the first use: compiling them would be paid by every start of the program.
_PLAIN = r"[A-Za-z0-9_./:@+,=-]+( [A-Za-z0-9_./:@+,=-]+)*"
_PLAIN_MOST_CHARS = 1000
_MOST_ENTRIES = 20_000
"""In a folder with more, looking for links takes longer than a question."""

_NAME = r"[A-Za-z_][A-Za-z0-9_.:-]*"
_COUNT = r"\d{1,6}"
# None begins with `@`, which makes several programs read more arguments from a file.
_PATH = r"[A-Za-z0-9_./][A-Za-z0-9_./+@,-]*"
_GLOB = r"(?!.*/\.)[A-Za-z0-9_][A-Za-z0-9_./+@,*{}-]*"
"""Files by a pattern that the program itself expands; none of them hidden."""
_TEST = rf"{_PATH}(::[A-Za-z0-9_]+)*(\[[A-Za-z0-9_., -]+\])?"
_CHOICE = r"[A-Za-z0-9_][A-Za-z0-9_ .:()\[\]-]*"
"""Which tests to run, by names and by `and`, `or`, `not`."""
_PATTERN = r"[A-Za-z0-9_^(.][A-Za-z0-9_^$|().*/ -]*"
"""The same as a pattern."""
_VARIABLE_VALUE = r"[A-Za-z0-9_.,:@*=+-]*"
_REVISION = r"[A-Za-z0-9_./@][A-Za-z0-9_./:@+,-]*"
_PACKAGE = r"\.(/[A-Za-z0-9_.-]+)*/?"
_TASK = (
    r"(tests?|check|lint|build|all|compile|format|fmt|types|typecheck|type-check|unit|coverage|verify|validate|help|docs?"
    r"|ci|unit-?tests?|test[_-](unit|all|integration|fast|cov|coverage)|lint-fix|format-check|check-types)"
    r"(:(unit|ci|fix|check|all|types|js|ts|py|integration|coverage|cov|fast|e2e|once|run))?"
)


class PlainForm(NamedTuple):
    """What may follow a program."""

    flags: frozenset[str] = frozenset()
    """Whole words that take no value."""
    letters: str = ""
    """One-letter flags that take no value and may stand together, as in `-la`."""
    values: Mapping[str, str] = {}
    """Flag → the shape of its value, as the next word or, for a long flag, after `=`."""
    words: str = ""
    """The shape of all other words; empty where there may be none."""
    most: int = _PLAIN_MOST_CHARS
    """How many other words there may be."""
    also: str = ""
    """The shape of further flags, such as `-j4`."""
    behind: "PlainForm | None" = None
    """What may follow behind `--`, for whatever the program runs; None where nothing may."""
    needs: str = ""
    """A flag that has to be there."""
    least: int = 0
    """How many other words there must be."""


def _form(
    flags: str = "",
    *,
    letters: str = "",
    values: Mapping[str, str] | None = None,
    words: str = "",
    also: str = "",
    most: int = _PLAIN_MOST_CHARS,
    behind: PlainForm | None = None,
    needs: str = "",
    least: int = 0,
) -> PlainForm:
    return PlainForm(frozenset(flags.split()), letters, values or {}, words, most, also, behind, needs, least)


_SHOW = _form(
    "-p --patch --stat --numstat --shortstat --summary --name-only --name-status --oneline --graph --all --decorate"
    " --abbrev-commit --cached --staged --check --word-diff --no-renames --no-color --no-patch -s -w -b"
    " -1 -2 -3 -5 -10 -20 -50 --",
    values={"-n": _COUNT, "--max-count": _COUNT, "--unified": _COUNT},
    words=_REVISION,
)
_PYTEST = _form(
    "--lf --ff --last-failed --failed-first --co --collect-only --no-header --no-summary -ra -rA -rf -rs -rP"
    " --fixtures --markers --cov --cov-branch --no-cov --disable-warnings --showlocals --exitfirst --verbose --quiet"
    " --stepwise",
    letters="vqxsl",
    values={
        "-k": _CHOICE,
        "-m": _CHOICE,
        "-p": "no:[a-z_]+",
        "-W": "[a-z]+(::[A-Za-z]+)?",
        "--cov": _PATH,
        "--cov-report": "term|term-missing|term-missing:skip-covered|",
        "--color": "yes|no|auto",
        "--timeout": _COUNT,
        "-n": rf"{_COUNT}|auto|logical",
        "--tb": "auto|long|short|line|native|no",
        "--maxfail": _COUNT,
        "--durations": _COUNT,
    },
    words=_TEST,
)
_RUFF_RULES = {"--select": "[A-Z0-9,]+", "--ignore": "[A-Z0-9,]+", "--output-format": "concise|full|grouped"}
_CARGO = _form(
    "--all --workspace --release --all-targets --all-features --no-default-features --quiet --verbose -q -v --lib"
    " --bins --tests --examples --benches --locked --offline --no-run --no-fail-fast --doc --keep-going",
    values={
        **dict.fromkeys(("-p", "--package", "--test", "--bin", "--example", "--exclude"), _NAME),
        **dict.fromkeys(("--features", "-F"), r"[A-Za-z0-9_][A-Za-z0-9_,/-]*"),
        **dict.fromkeys(("-j", "--jobs"), _COUNT),
        "--message-format": "short|human",
    },
)
_LINTS = _form(values=dict.fromkeys(("-D", "-W", "-A", "-F"), r"[a-z_:]+"))
_RUST_TESTS = _form(
    "--nocapture --ignored --include-ignored --exact --show-output --list -q",
    values={"--test-threads": _COUNT, "--skip": r"[A-Za-z0-9_:]+"},
    words=r"[A-Za-z0-9_:]+",
)
_RUNNER = _form(
    "--watch=false --watchAll=false --no-watch --run --ci --runInBand --coverage --verbose --silent --bail -u -i"
    " --passWithNoTests --no-coverage --forbidOnly --fix --quiet --noEmit --strict",
    values={
        **dict.fromkeys(("-t", "--testNamePattern", "--grep", "-g"), _PATTERN),
        **dict.fromkeys(("--testPathPattern", "--testPathPatterns"), _PATH),
        "--reporter": "default|verbose|dot|spec|list|line|basic|min|tap",
        "--maxWorkers": rf"{_COUNT}%?",
        "--bail": _COUNT,
    },
    words=_PATH,
)
"""What is handed to a test runner, whichever it is: for none of them do these words load code or write a file."""
_ONE_TASK = PlainForm(words=_TASK, most=1, behind=_RUNNER)  # a second word would go to the script
_SCRIPT = PlainForm(frozenset({"--silent", "-s"}), behind=_RUNNER)
_QUIET_TASK = _ONE_TASK._replace(flags=_SCRIPT.flags)
_JEST = _form(
    "--ci --runInBand --watch=false --watchAll=false --coverage --coverage=false --verbose --silent --bail"
    " --passWithNoTests -i --listTests --no-coverage --onlyChanged -o --no-cache --forceExit --detectOpenHandles",
    values={
        **dict.fromkeys(("-t", "--testNamePattern"), _PATTERN),
        **dict.fromkeys(("--testPathPattern", "--testPathPatterns"), _PATH),
        **dict.fromkeys(("--maxWorkers", "-w"), rf"{_COUNT}%?"),
    },
    words=_PATH,
)
_VITEST = _form(
    "--run --coverage --silent --passWithNoTests --no-coverage --watch=false --no-watch",
    values={
        **dict.fromkeys(("-t", "--testNamePattern"), _PATTERN),
        "--reporter": "default|verbose|dot|basic|tap",
        "--project": _NAME,
    },
    words=_PATH,
)
_SPECS = _form("--fail-fast --bail -b", values={"--grep": _PATTERN, "-g": _PATTERN}, words=rf"{_PATH}(:\d+)?")
"""Test runners with few flags in common."""
_MAVEN = _form(
    "-q -B -o -e -ntp --quiet --batch-mode --offline --no-transfer-progress -DskipTests",
    values={"-pl": _NAME},
    words="clean|validate|compile|test|test-compile|package|verify|dependency:tree|spotless:check",
    also=r"-Dtest=[A-Za-z0-9_.#*,]+",
)
_GRADLE = _form(
    "-q --quiet --info --stacktrace --no-daemon --parallel --continue --offline --rerun-tasks --build-cache",
    values={"--tests": r"[A-Za-z0-9_.*]+", "-x": _NAME, "--console": "plain|auto"},
    words=r"(:?[A-Za-z0-9_-]+:)*(test|check|build|assemble|classes|testClasses|compile(Test)?(Java|Kotlin)|tasks|projects|lint|jar"
    r"|ktlintCheck|spotlessCheck|dependencies|help)",
)
_DOTNET = _form(
    "--no-restore --no-build --nologo",
    values={
        **dict.fromkeys(("-c", "--configuration"), "Debug|Release"),
        **dict.fromkeys(("-v", "--verbosity"), "[a-z]+"),
        "--filter": r"[A-Za-z0-9_.~=&|!()]+",
    },
    words=_PATH,
)
_BELOW = {"-C": _PATH}

TABLE: Mapping[str, PlainForm] = {
    "git status": _form(
        "--short --branch --porcelain --porcelain=v1 --porcelain=v2 --ignored --untracked-files=all"
        " --untracked-files=no -uall -uno --",
        letters="sb",
        words=_PATH,
    ),
    "git diff": _SHOW,
    "git log": _SHOW,
    "git show": _SHOW,
    "git blame": _form("-w -s --", values={"-L": r"\d+,\+?\d+"}, words=_REVISION),
    "git branch": _form("--list --all --remotes --show-current", letters="arv"),
    "git tag": _form("--list -l"),
    "git remote": _form("-v --verbose"),
    "git rev-parse": _form("--show-toplevel --abbrev-ref --short --is-inside-work-tree --verify", words=_REVISION),
    "git describe": _form("--tags --always --long", words=_REVISION),
    "git ls-files": _form("--others --modified --deleted --cached --exclude-standard --", letters="omdc", words=_PATH),
    "npm test": _SCRIPT,
    "npm t": _SCRIPT,
    "npm run": _QUIET_TASK,
    "npm run-script": _QUIET_TASK,
    "npm --silent run": _ONE_TASK,
    "npm -s run": _ONE_TASK,
    "npm --silent test": _SCRIPT,
    # Addresses of registries and proxies may hold passwords, and without a name all of them are told.
    "npm config get": _form(words=r"(?!registry$|.*proxy)[a-z][a-z-]*", least=1, most=1),
    "npm ls": _form("--all", values={"--depth": _COUNT}),
    "npm list": _form("--all", values={"--depth": _COUNT}),
    "pnpm test": _RUNNER._replace(behind=_RUNNER),
    "pnpm run": _QUIET_TASK,
    "pnpm -r test": _SCRIPT,
    "pnpm -r run": _ONE_TASK,
    "pnpm recursive test": _SCRIPT,
    **{f"{tool} {task}": PlainForm() for tool in ("pnpm", "yarn") for task in ("lint", "build", "typecheck", "check")},
    "pnpm ls": _form(values={"--depth": _COUNT}),
    "pnpm list": _form(values={"--depth": _COUNT}),
    "yarn list": _form(values={"--depth": _COUNT}),
    "bun test": _form("--coverage --bail", values={"-t": _PATTERN, "--timeout": _COUNT}, words=_PATH),
    "bun run": _ONE_TASK,
    "deno test": _form("--parallel --fail-fast --quiet -q --no-run", values={"--filter": _PATTERN}, words=_PATH),
    "deno lint": _form("--quiet -q --json", words=_PATH),
    "deno check": _form("--quiet -q", words=_PATH),
    "deno fmt --check": _form("--quiet -q", words=_PATH),
    "yarn test": _RUNNER._replace(behind=_RUNNER),
    "yarn run": _QUIET_TASK,
    "python -V": _form(),
    "pytest": _PYTEST,
    "python -m unittest": _form("--verbose --quiet --failfast", letters="vqf", values={"-s": _PATH}, words=_PATH),
    "python -m py_compile": _form(words=_PATH),
    "python -m json.tool": _form("--sort-keys --compact", values={"--indent": _COUNT}, words=_PATH, most=1),
    "python -m pip list": _form(values={"--format": "columns|freeze|json"}),
    "python -m pip freeze": _form(),
    "python -m pip check": _form(),
    "python -m pip show": _form("-f", words=_NAME),
    "uv pip list": _form(values={"--format": "columns|freeze|json"}),
    "uv pip freeze": _form(),
    "uv pip show": _form(words=_NAME),
    "uv pip check": _form(),
    # Without it the lock is brought up to date.
    "uv tree": _form("--frozen --offline --no-dev", values={"--depth": _COUNT}, needs="--frozen"),
    "poetry show": _form("--tree --top-level -T", words=_NAME),
    "poetry check": _form(),
    "poetry env info": _form(),
    "coverage run -m pytest": _PYTEST,
    "coverage run -m unittest": _form("discover", letters="vqf", values={"-s": _PATH}),
    "coverage report": _form(
        "-m --show-missing --skip-covered --skip-empty", values={"--fail-under": _COUNT, "--sort": "[a-z-]+"}
    ),
    "pylint": _form(
        "--errors-only -E", values={"--disable": r"[A-Za-z0-9_,-]+", "--jobs": _COUNT, "-j": _COUNT}, words=_PATH
    ),
    "ty check": _form(words=_PATH),
    "mypy": _form(
        "--strict --pretty --no-error-summary --ignore-missing-imports --show-error-codes --no-incremental"
        " --no-color-output --explicit-package-bases",
        values={"-p": _NAME, "--python-version": r"3\.\d+"},
        words=_PATH,
    ),
    "pyright": _form("--warnings --outputjson --stats", words=_PATH),
    "basedpyright": _form("--warnings --outputjson --stats", words=_PATH),
    "ruff check": _form(
        "--fix --no-fix --diff --quiet -q --statistics --show-fixes --exit-zero --no-cache",
        values=_RUFF_RULES,
        words=_PATH,
    ),
    "ruff format": _form("--check --diff --quiet -q", words=_PATH),
    "black": _form("--check --diff --quiet -q", words=_PATH),
    "flake8": _form(
        "--count --statistics --show-source",
        values={
            **dict.fromkeys(("--max-line-length", "--max-complexity"), _COUNT),
            **dict.fromkeys(("--select", "--ignore", "--extend-ignore"), "[A-Z0-9,]+"),
        },
        words=_PATH,
    ),
    # Without these first words isort writes through links and tsc wherever its settings say.
    "isort --check": _form("--diff --quiet -q", words=_PATH),
    "isort --check-only": _form("--diff --quiet -q", words=_PATH),
    "isort --diff": _form("--check --quiet -q", words=_PATH),
    "tsc --noEmit": _form("--pretty --skipLibCheck --strict --diagnostics --extendedDiagnostics"),
    "vue-tsc --noEmit": _form("--pretty --skipLibCheck"),
    "eslint": _form(
        "--fix --quiet --no-color --report-unused-disable-directives --no-error-on-unmatched-pattern --cache",
        values={
            "--max-warnings": _COUNT,
            "--ext": r"[a-z.,]+",
            **dict.fromkeys(("-f", "--format"), "stylish|json|compact|unix"),
        },
        words=rf"{_PATH}|{_GLOB}",
    ),
    # Without one of these first words prettier prints whole files.
    "prettier --check": _form(words=rf"{_PATH}|{_GLOB}"),
    "prettier --list-different": _form(words=rf"{_PATH}|{_GLOB}"),
    "prettier --write": _form(words=rf"{_PATH}|{_GLOB}"),
    "prettier -c": _form(words=rf"{_PATH}|{_GLOB}"),
    "prettier -l": _form(words=rf"{_PATH}|{_GLOB}"),
    "jest": _JEST,
    "vitest run": _VITEST,
    "mocha": _SPECS,
    "playwright test": _form(
        "--list",
        values={"-g": _PATTERN, "--grep": _PATTERN, "--project": _NAME, "--reporter": "list|line|dot"},
        words=_PATH,
    ),
    "make": _form(
        "-j -k -s -n -B --dry-run --keep-going --silent --always-make --no-print-directory",
        values=_BELOW,
        words=rf"{_TASK}|\d{{1,3}}|(V|VERBOSE|TESTS?)=[A-Za-z0-9_./:-]+",
        also=r"-j\d{1,3}",
    ),
    "cargo build": _CARGO,
    "cargo check": _CARGO,
    "cargo clippy": _CARGO._replace(behind=_LINTS),
    "cargo test": _CARGO._replace(words=_NAME, behind=_RUST_TESTS),
    "cargo fmt": _form("--all --check", behind=_form("--check")),
    "cargo tree": _form(
        "--no-dedupe -d --duplicates", values={"-p": _NAME, "-i": _NAME, "--depth": _COUNT, "-e": "[a-z,-]+"}
    ),
    "cargo metadata": _form("--no-deps --offline --locked", values={"--format-version": "1"}),
    "cargo doc": _CARGO._replace(flags=_CARGO.flags | {"--no-deps", "--document-private-items"}),
    "cargo bench": _CARGO._replace(words=_NAME),
    "cargo nextest run": _CARGO._replace(words=_NAME),
    "cargo version": _form(),
    # Without an output nothing is written, even where there is only one program to build.
    "go build": _form("-v", values={"-o": os.devnull}, words=_PACKAGE),
    "go test": _form(
        "-v -race -cover -short -failfast -json -benchmem",
        values={
            **dict.fromkeys(("-run", "-skip", "-bench"), _PATTERN),
            **dict.fromkeys(("-count", "-p", "-parallel"), _COUNT),
            "-timeout": r"\d+[smh]",
            "-tags": r"[a-z0-9_,]+",
        },
        words=_PACKAGE,
    ),
    "go vet": _form(words=_PACKAGE),
    "go fmt": _form(words=_PACKAGE),
    "go list": _form(words=_PACKAGE),
    "go version": _form(),
    "go env": _form(words="(?!GOPROXY$|GOAUTH$|GOSUMDB$|GOFLAGS$)[A-Z0-9_]+", least=1),
    "go doc": _form("-all -short -src", words=r"[A-Za-z0-9_./]+"),
    "go help": _form(words="[a-z]+"),
    "go mod verify": _form(),
    "go mod graph": _form(),
    "go mod why": _form("-m", words=r"[A-Za-z0-9_./-]+"),
    "golangci-lint run": _form("--fast -v", values={"--timeout": r"\d+[smh]"}, words=_PACKAGE),
    "staticcheck": _form(words=_PACKAGE),
    "gofmt": _form("-l -d -w", words=_PATH),
    "node -v": _form(),
    "node --test": _form(words=_PATH),
    "node --check": _form(words=_PATH, most=1),
    "bash -n": _form(words=_PATH, most=1),
    "sh -n": _form(words=_PATH, most=1),
    "php -l": _form(words=_PATH, most=1),
    "ruby -c": _form(words=_PATH, most=1),
    "mvn": _MAVEN,
    "gradle": _GRADLE,
    "dotnet build": _DOTNET,
    "dotnet test": _DOTNET,
    "swift build": _form("-v", values={"-c": "debug|release"}),
    "swift test": _form("-v --parallel", values={"--filter": r"[A-Za-z0-9_./]+"}),
    "rspec": _SPECS,
    "rubocop": _form(words=_PATH),
    "rake test": _form(),
    "rake spec": _form(),
    "rails test": _SPECS,
    "mix test": _form("--stale --failed --trace --cover", words=rf"{_PATH}(:\d+)?"),
    "mix compile": _form("--warnings-as-errors"),
    "mix format --check-formatted": _form(),
    "mix credo": _form("--strict"),
    "phpunit": _form("--stop-on-failure", values={"--filter": r"[A-Za-z0-9_:]+"}, words=_PATH),
    "phpstan analyse": _form(words=_PATH),
    "composer test": _form(),
    "cmake --build": _form(
        "-j --verbose",
        values={"--target": _TASK, "--config": "Debug|Release", "-j": _COUNT, "--parallel": _COUNT},
        words=_PATH,
        most=1,
    ),
    "ctest": _form(
        "--output-on-failure -V --verbose --progress --rerun-failed",
        values={"--test-dir": _PATH, "-R": _PATTERN, "-E": _PATTERN, "-j": _COUNT},
        also=r"-j\d{1,3}",
    ),
    "ninja": _form("-v -n", values={**_BELOW, "-j": _COUNT}, words=_TASK),
    "meson test": _form("-v", values=_BELOW, words=_NAME),
    "meson compile": _form("-v", values=_BELOW),
    "ls": _form(letters="1aAlhtrSRFd", words=_PATH),
    "pwd": _form(),
    "true": _form(),
    "which": _form(words=r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"),
    "uname": _form("-a"),
}  # fmt: skip
"""Program, or program and first words → what may follow."""

_TELLERS = frozenset(
    {
        "rustc",
        "rustup",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "bundle",
        "composer",
        "mix",
        "swift",
        "dotnet",
        "poetry",
        "uv",
        "pdm",
    }
)
"""Further programs that tell their version, some of them the one that the project chooses."""
_PYTHONS = ("python", "python3")
_MODULES = frozenset({"pytest", "mypy", "ruff", "black", "isort", "flake8", "pylint", "coverage"})
"""Programs that Python also runs as modules."""
_MACHINE = frozenset({"git", "ls", "pwd", "true", "which", "uname"})
"""Programs of the machine: a project's environment has no business to bring its own."""


def auto_allowed(
    command: str,
    *,
    cwd: str,
    roots: Sequence[str],
    off_limits: Callable[[str], bool],
    path: str | None = None,
) -> bool:
    """Is the command one of the common development commands, in plain words, inside the workspace?

    `off_limits` tells of a path whether no such command may have it as its folder or among its words: secret files,
    and whatever the agent may write without a question. `path` stands for the environment's PATH.
    """
    if len(command) > _PLAIN_MOST_CHARS or not re.fullmatch(_PLAIN, command):
        return False
    return is_development(command.split(" "), cwd=cwd, roots=roots, off_limits=off_limits, path=path)


def is_development(
    words: Sequence[str],
    *,
    cwd: str,
    roots: Sequence[str],
    off_limits: Callable[[str], bool],
    path: str | None = None,
    own: bool = False,
    missing: bool = False,
) -> bool:
    """The same for words that are known one by one, whatever their quotes were.

    `own`: the project's environment says which program it is. `missing`: is one that is nowhere on the PATH, and so
    runs nothing, as good as one that is?
    """
    words = list(words)
    meant = _strip_launcher(words)
    path = os.environ.get("PATH") if path is None else path
    if not words or not _is_covered(meant):
        return False
    if own:
        if words[0] in _MACHINE:
            return False
    elif not _is_trusted(words[0], roots, path) and not (missing and is_missing(words[0], roots, path)):
        return False
    here = os.path.realpath(cwd)
    if not _inside(here, roots) or off_limits(here) or (words[0] == "git" and not is_safe_repository(here, meant)):
        return False
    if _writes(meant) and not all(_stays_inside(os.path.join(here, word), roots) for word in _operands(meant)):
        return False
    if words[0] == "git" and any(word.startswith("/") for word in words):
        return False  # what lies outside the repository is compared, and printed, without a look at what git ignores
    if any(_leads_on(here, word, roots) for word in words[1:] if "*" in word or "{" in word):
        return False
    if "unittest" in words[2:3] and not all(_begins_here(word, here) for word in words[3:]):
        return False
    named = [word for word in words[1:] if word != os.devnull or meant[:2] != ["go", "build"]]
    return all(_harmless(word, here, roots, off_limits) for word in named)


def _strip_launcher(words: Sequence[str]) -> Sequence[str]:
    """The words without what only leads to the program that is meant."""
    if words[0] in _PYTHONS:
        if words[1:2] == ["-m"] and words[2:3] and words[2] in _MODULES:
            return words[2:]
        return ["python", *words[1:]]
    return ["git", *words[2:]] if words[:2] == ["git", "--no-pager"] else words


def _is_covered(words: Sequence[str]) -> bool:
    if len(words) == 2 and words[1] in {"--version", "--help"}:
        return words[0] in _TELLERS or any(known.split(" ")[0] == words[0] for known in TABLE)
    if len(words) == 3 and words[2] == "--help" and words[0] != "git":
        return " ".join(words[:2]) in TABLE
    for count in (4, 3, 2, 1):
        # One word with a blank in it is not two.
        whole = len(words) >= count and not any(" " in word for word in words[:count])
        form = TABLE.get(" ".join(words[:count])) if whole else None
        if form is not None:
            return _fits(words[count:], form)
    return False


_WRITERS = {
    "ruff format": ("--check", "--diff"),
    "black": ("--check", "--diff"),
    "cargo fmt": ("--check",),
    "go fmt": (),
}
"""Formatters, and the flags with which they write nothing."""
_WRITING = {"ruff check": "--fix", "eslint": "--fix", "gofmt": "-w", "prettier --write": "--write"}
"""Programs, and the flags with which they write."""


def _writes(words: Sequence[str]) -> bool:
    """Does the command change the files that it is given?"""
    first = (words[0], " ".join(words[:2]))
    by_default = any(name in first and not set(flags) & set(words) for name, flags in _WRITERS.items())
    return by_default or any(name in first and flag in words for name, flag in _WRITING.items())


def _stays_inside(path: str, roots: Sequence[str]) -> bool:
    """Is it a file, or a folder without a link out of the workspace, which a formatter would follow?"""
    if re.search(r"[*{]", path):
        return False
    folders, seen = [path] if os.path.isdir(path) else [], 0
    for folder in folders:  # grows on the way
        with os.scandir(folder) as entries:
            for entry in entries:
                seen += 1
                if seen > _MOST_ENTRIES or (entry.is_symlink() and not _inside(os.path.realpath(entry.path), roots)):
                    return False
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return True


def _leads_on(here: str, word: str, roots: Sequence[str]) -> bool:
    """May a pattern go through a link out of the workspace? By `**` alone these programs follow none."""
    parts = word.split("/")[:-1]
    first = next((at for at, part in enumerate(parts) if re.search(r"[*{]", part)), len(parts))
    return set(parts[first:]) - {"**"} != set() and not _stays_inside(os.path.join(here, *parts[:first]), roots)


def _operands(words: Sequence[str]) -> list[str]:
    """The words that name files; a formatter without any takes the whole folder."""
    named = [word for word in words[1:] if not word.startswith("-") and word not in {"format", "check", "fmt"}]
    return [word.removesuffix("...") for word in named] or ["."]


def _fits(words: Sequence[str], form: PlainForm) -> bool:
    if "--" in words and form.behind is not None:
        at = list(words).index("--")
        return _fits(words[:at], form) and _fits(words[at + 1 :], form.behind)
    if form.needs and form.needs not in words:
        return False
    rest, others = iter(words), 0
    for word in rest:
        flag, equals, value = word.partition("=")
        if word in form.flags or (form.letters and re.fullmatch(rf"-[{form.letters}]+", word)):
            continue
        if form.also and re.fullmatch(form.also, word):
            continue
        if flag in form.values and (not equals or len(flag) > 2):
            value = value if equals else next(rest, "")
            if not re.fullmatch(form.values[flag], value):
                return False
        elif word.startswith("-") or not form.words or not re.fullmatch(form.words, word):
            return False
        else:
            others += 1
    return form.least <= others <= form.most


def _is_trusted(program: str, roots: Sequence[str], path: str | None) -> bool:
    """Is the file that a shell finds under this name outside the workspace, wherever the shell is started?"""
    for folder in (path or "").split(os.pathsep):
        if not os.path.isabs(folder):
            return False  # it means another folder for every folder that a command runs in
        if os.name == "posix" and not os.path.lexists(os.path.join(folder, program)):
            continue
        found = shutil.which(program, path=folder)
        if found is not None:
            places = (found, os.path.dirname(found))
            return os.path.isabs(found) and not any(_inside(os.path.realpath(place), roots) for place in places)
    return False


def is_missing(program: str, roots: Sequence[str], path: str | None) -> bool:
    """Is the program nowhere on the PATH, and no folder of the PATH in the workspace, where it could come to be?"""
    folders = (path or "").split(os.pathsep)
    if not all(os.path.isabs(folder) and not _inside(os.path.realpath(folder), roots) for folder in folders):
        return False
    return "/" not in program and all(shutil.which(program, path=folder) is None for folder in folders)


def is_harmless_setting(
    name: str, value: str, cwd: str, roots: Sequence[str], off_limits: Callable[[str], bool]
) -> bool:
    """Does a variable before such a command only say how it speaks, or where in the workspace its modules are?

    The value goes to the project's own code and to the recipes of its build, which may hand it to a shell.
    """
    if not re.fullmatch(_VARIABLE_VALUE if name != "PYTHONPATH" else r"[A-Za-z0-9_./:-]+", value):
        return False
    return name != "PYTHONPATH" or all(
        piece != "" and _harmless(piece, os.path.realpath(cwd), roots, off_limits) for piece in value.split(":")
    )


def _inside(real: str, roots: Sequence[str]) -> bool:
    return any(within(real, root) for root in roots)


def _harmless(word: str, cwd: str, roots: Sequence[str], off_limits: Callable[[str], bool]) -> bool:
    """Is no part of the word a path out of the workspace or one that is off limits?"""
    for piece in re.split(r"[=:,]", word):
        named = os.path.join(cwd, piece)
        real = os.path.realpath(named)
        if ".." in piece.split("/") or not _inside(real, roots) or off_limits(real) or off_limits(named):
            return False
    return True


def _begins_here(word: str, cwd: str) -> bool:
    """Does a dotted name begin in this folder? Python would import any other from wherever it is installed."""
    first = re.split(r"[./]", word, maxsplit=1)[0]
    names = (first, f"{first}.py")
    return word.startswith("-") or word == "discover" or any(os.path.exists(os.path.join(cwd, name)) for name in names)
