"""Find the files of the workspace that a command line or hook starts, and whether it could run others.

The line is read as bash reads it. Each program in it has to be one from outside the workspace, or a file of the
workspace that the line names explicitly, and none of its arguments may lead to other code there. Anything
uncertain is unclear: such a line runs confined, as commands do, for it could run code that they have written.

The scripts that a hook's command line starts are as good as written in the hook: trusting the hook trusts them,
or not at all. A file that is written later is not trusted with it. A rough look at the hooks of a project's
settings finds the scripts that they name.
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.files.guard import PROTECTED, matches_patterns
from ferrule.permissions.shell.form import ArgumentReader, is_single
from ferrule.permissions.shell.line import LATER, CommandLine, Simple, Word
from ferrule.permissions.shell.nested import SHELLS, runs_another
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.programs import CommandFinding, examine, table
from ferrule.permissions.shell.scene import harmless_assignment
from ferrule.permissions.shell.tables import NEVER
from ferrule.system.environment import is_reachable_in
from ferrule.system.folder import READ_NO_LINK, read_regular

_HERE = r"\"?\$(?:\{(?:CLAUDE|FERRULE)_PROJECT_DIR\}|(?:CLAUDE|FERRULE)_PROJECT_DIR\b|\{PWD\}|PWD\b)\"?"
_BETWEEN = r"[\s'\"`;|&()<>={}$]+"
_ENDINGS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".awk")
_MOST = 100
_DEPTH = 12
_LINE_CHARS = 65_536


class CommandScripts(NamedTuple):
    """What a command line is seen to start."""

    files: tuple[str, ...] = ()
    """Files of the workspace, real, that it names and that are or could be code; sorted."""
    run: tuple[str, ...] = ()
    """Those of them that it certainly runs,"""
    handed: tuple[str, ...] = ()
    """and those that it hands to a program which nobody knows."""
    unclear: str = ""
    """Why it could run other code of the workspace, as a clause; empty where it cannot."""


Look = Callable[[str], CommandScripts]
"""Looks at a command line that starts in the workspace."""


def rough(command: str, workspace: str, *, start: str = "") -> list[str]:
    """The real paths of the scripts and programs in the workspace that stand somewhere in a command line, sorted.

    What it only works on, a settings file for one, is not among them. It starts in `start`, or in the workspace.
    """
    root = os.path.realpath(workspace)
    found = set()
    for word in _words(command[:_LINE_CHARS]):
        named = os.path.join(start or root, word)
        # Most words name nothing, and one look tells. What leads through `..` may be there under its real name alone.
        if ".." not in word and not os.path.isfile(named):
            continue
        try:
            path = os.path.realpath(named)
        except ValueError:  # no file can have such a name
            continue
        if within(path, root) and path != root and _runs(path):
            found.add(path)
    return sorted(found)[:_MOST]


def commands(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Every command line in the `hooks` of a settings file, whichever form it has."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "command" and isinstance(inner, str):
                yield inner
            elif depth:
                yield from commands(inner, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from commands(inner, depth - 1)


def _words(command: str) -> list[str]:
    """What may be a path in it: the words as a shell divides them, and what is between quotes and signs."""
    line = re.sub(_HERE, ".", command)
    try:
        quoted = shlex.split(line)
    except ValueError:
        quoted = []
    # Quotation marks in the middle of a word are no end of it.
    plain = re.split(_BETWEEN, re.sub(r"['\"]", "", line))
    return [word for word in dict.fromkeys((*quoted, *plain)) if word and "\0" not in word]


def _runs(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    return bool(status.st_mode & 0o111) or path.endswith(_ENDINGS)


_HEAD_BYTES = 256
_VARIABLES = ("CLAUDE_PROJECT_DIR", "FERRULE_PROJECT_DIR")
_SOURCES = frozenset({".", "source"})
_TAKES_OVER = _SOURCES | {"exec"}
"""What may be the last command of a line: nothing comes after it that could run otherwise."""
_PYTHON = r"(?:python|pypy)[\d.]*"
_INTERPRETERS = rf"{_PYTHON}|node(?:js)?|(?:ruby|perl|php|lua|luajit|tclsh|guile)[\d.-]*|Rscript|julia|groovy|pwsh"
_WEIGHED = frozenset({"git", "gh", "pip", "pip3"})
"""Programs of which only some sub-commands run code of the project."""
_LOADERS = """
    ack az brew corepack goimports java javac launchctl mongosh mysql psql rustc rustfmt rustup sqlite3
"""
"""Programs of the tables that run what the files say that they are given, or what lies where they are started: `az` is
a Python module of the folder's, `rustfmt` the one that `rust-toolchain.toml` names, `goimports` asks `go`."""
_CLEAR = """
    clang-format codespell hadolint shellcheck shfmt stylua swiftformat taplo typos yamllint yapf
    aplay afplay canberra-gtk-play dunstify espeak espeak-ng logger notify-send paplay pw-play say spd-say wall
    pbcopy pbpaste wl-copy wl-paste xclip xsel
    dos2unix unix2dos envsubst iconv numfmt shift shuf sync times tsort
"""
"""Programs beside those of the tables that load no code from where they are started, whatever lies there and whatever
they are given: what they read in it is data, or settings that name no code."""
_ALERTS = {"terminal-notifier": r"-(?:execute|open)"}
"""The same, but for words that make them run something."""
_RUNNERS = """
    alembic ansible ansible-lint ansible-playbook ant asdf astro bats behave bitbake buck buck2 cabal cdk celery
    chalice clang-tidy clj commitlint composer conda crystal cspell cucumber dagger dart direnv django-admin
    dprint drizzle-kit dune earthly eleventy elixir elm ember erl esbuild expo fastlane firebase flask flutter
    fnm foreman gatsby gdb gofumpt gradlew grunt gulp gunicorn hardhat hugo husky invoke ionic jake jekyll karma
    knip ktlint latexmk lefthook lein lerna lint-staged lldb locust luacheck mage markdownlint markdownlint-cli2
    mise mkdocs molecule moon mvnw netlify next ng nim nix nix-build nix-shell nodemon npm-run-all nuxt nx ocaml
    octave overmind oxlint packer pants parcel paver php-cs-fixer phpcs phpstan pipenv pixi please postcss
    prisma psalm pulumi R react-native rebar3 release-it remark remix robot rollup rush rushx rye sam sbt
    scalafmt scons scrapy semantic-release serverless sphinx-build sqlfluff stack standard storybook stylelint
    svelte-check tailwindcss textlint tilt ts-node tsx tup turbo uvicorn vagrant vite volta vue-cli-service
    watchexec webpack wireit wrangler xcodebuild xo zig
"""
"""Programs that look for code, or for settings that name some, in the folder where they are started: wherever they
lie. By their bare names all are taken for such that are not known to be clear."""
_INSTALLED = r"(?:.*/)?(?:s?bin|\.bin|libexec|shims|node_modules)/.*"
_OWN_BIN = r"/(?:root|(?:home|Users)/[^/]+)/bin/[^/]+"
"""A program in a folder of installed ones is what its bare name means; elsewhere, and in `~/bin`, it is the user's own:
approved with its path, as a script is that the line names."""
_CHOOSERS = (
    r".*/(?:\.?asdf/shims|\.?mise/shims|\.?rtx/shims|\.volta/bin|\.?proto/shims)/.*|.*/(?:rustup|volta-shim|mise)"
)
"""Programs that stand in for others, and run those that a file of the folder leads to."""
_TELLING = r"(?i)script|shell|load|run|open|path|file|do\b"
"""What a script for macOS that only tells the user something has nowhere."""
_SETTINGS_OF_CURL = r"-[^-]*K|--conf"
_PIECES = r"[=:,@]"
_BESIDE = (".py", ".pyc", ".so", ".pyd")
_MAY_LOAD = "{} may load code from the folder that it starts in"
_NOT_ALL_KNOWN = "not all of its words are certain"

_Kind = Literal["outside", "file", "folder", "absent", "odd"]
_NO_SCRIPT = {"folder": "{} is a folder", "absent": "{} is not there", "odd": "commands can write what {} leads to"}


def look(command: str, workspace: str, *, start: str = "", others: Sequence[str] = ()) -> CommandScripts:
    """What the line starts. It begins in `start`, or in the workspace; commands can write `others`, too."""
    search = _ProgramSearch(os.path.realpath(workspace), others)
    begin = start or search.root
    line = parse(command, cwd=begin, roots=[search.root], known=dict.fromkeys(_VARIABLES, workspace))
    search.doubt(_doubt(line))
    for simple in line.commands:
        for one in (simple, *simple.inside):
            search.command(one, one.cwd or begin)
    if any(within(path, written) for path in search.elsewhere for written in search.written):
        search.doubt("it runs what it has written itself")
    files = {*search.run, *search.handed, *rough(command, workspace, start=start)}
    if len(files) > _MOST:
        search.doubt(f"it names more than {_MOST} files")
    return CommandScripts(tuple(sorted(files)[:_MOST]), tuple(search.run), tuple(search.handed), search.unclear)


def _doubt(line: CommandLine) -> str:
    """Why it is not certain what the line runs; what takes the shell over may stand at its end."""
    last = line.commands[-1].words[:1] if line.commands else ()
    name = last[0].text if last else ""
    takers = [one for one in line.commands if one.words and one.words[0].text in _TAKES_OVER]
    allowed = LATER.format(name) if name in _TAKES_OVER and len(takers) == 1 else ""
    return next((doubt for doubt in line.doubts if doubt != allowed), "")


@cache
def _projects() -> frozenset[str]:
    """The programs that run code of the project, those of the tables and others."""
    listed_ones = (name.split()[0] for name, form in table().items() if form.project)
    return frozenset((*listed_ones, *_LOADERS.split(), *_RUNNERS.split())) - _WEIGHED


class _ProgramSearch:
    """One look at one line."""

    def __init__(self, root: str, others: Sequence[str]) -> None:
        self.root = root
        self.roots = (root, *others)
        self.run: dict[str, None] = {}
        self.handed: dict[str, None] = {}
        self.elsewhere: set[str] = set()
        """Files from outside the workspace that it runs, and"""
        self.written: set[str] = set()
        """what it writes: that may be content of the workspace."""
        self.unclear = ""

    def doubt(self, why: str) -> None:
        self.unclear = self.unclear or why

    def command(self, simple: Simple, here: str) -> None:
        """Take in one simple command, which runs in `here`."""
        words = simple.stripped or simple.words
        targets = [one.target.text for one in simple.redirects if one.writes and one.target.known]
        self.written |= {self._place(target, here)[1] for target in targets}
        if not words:
            return
        if simple.cwd is None:
            self.doubt("the folder that it runs in is not certain")
        for name, value in simple.assigns:
            if not harmless_assignment(name, value) and not _is_plain(value, here):
                self.doubt(f"it sets {name}, which programs may obey")
        head, rest = words[0], words[1:]
        if not head.known:
            self.doubt("which program it runs is not certain")
            self._take(rest, here, self.run)
            return
        name = os.path.basename(head.text)
        kind, path = self._place(head.text, here) if "/" in head.text else ("outside", "")
        if kind == "outside":
            self.doubt(_explain_choice(path or name))
        self.elsewhere |= {path} if path else set()
        if kind != "outside":
            self._script(head.text, here)
            self._arguments(rest, here)
        elif name in _SOURCES:
            self._first(rest, here)
        elif name in SHELLS or re.fullmatch(_INTERPRETERS, name):
            self._interpreter(name, simple, rest, here)
        else:
            self._program(name, simple, rest, here, is_own=bool(path) and _is_own(os.path.join(here, head.text), path))

    def _program(self, name: str, simple: Simple, rest: Sequence[Word], here: str, *, is_own: bool) -> None:
        """A program from outside the workspace; `is_own`: it is one of the user's, named by its path."""
        if name in _projects():
            self.doubt(f"{name} runs code of the project")
        elif name in {"env", "exec"}:
            if not simple.inside or any(word.text.startswith("-") for word in rest[:1]):
                self.doubt(f"{name} may run anything")
        elif name in NEVER:
            # What changes how later commands run is a doubt about the line, where it matters.
            is_calm = NEVER[name].startswith("changes how") or (name == "osascript" and _only_tells(rest))
            self.doubt("" if is_calm else f"{name} {NEVER[name]}")
        elif name in table():
            finding = examine((Word(name), *rest), cwd=here)
            self.written |= {self._place(written, here)[1] for written in finding.writes}
            self.doubt(_explain_risk(name, rest, finding))
        elif runs_another(name, rest[0].text if rest else ""):
            self.doubt(f"{name} runs another program")
        elif name not in _CLEAR.split() and not _only_alerts(name, rest):
            if not is_own:
                self.doubt(_MAY_LOAD.format(name))
            sources = [redirect.target for redirect in simple.redirects if redirect.operator == "<"]
            self._arguments((*rest, *sources), here)

    def _interpreter(self, name: str, simple: Simple, rest: Sequence[Word], here: str) -> None:
        """A program that runs the file that it is given."""
        row = "python3" if re.fullmatch(_PYTHON, name) else name
        form = table().get(row)
        if form is None:
            doubt = f"{name} may run other code" if rest and rest[0].text.startswith("-") else ""
            operands = tuple(rest)
        else:
            given = ArgumentReader(form, row).read(rest)
            doubt, operands = given.doubt, given.operands
        if doubt or (operands and operands[0].text[:1] in {"-", "+"}):
            self.doubt(doubt or f"{name} runs whatever it reads")
            self._take(rest, here, self.run)
            self._module(rest, here)
        elif operands:
            self._first(operands, here, is_python=row == "python3")
        else:
            sources = [redirect.target for redirect in simple.redirects if redirect.operator == "<"]
            if len(sources) != 1 or len(simple.redirects) != 1:
                self.doubt(f"{name} runs whatever it reads")
            for source in sources:
                self._first((source,), here, is_python=row == "python3")

    def _first(self, words: Sequence[Word], here: str, *, is_python: bool = False) -> None:
        """The first word is the file that is run."""
        if not words or not words[0].known:
            self.doubt("which file it runs is not certain")
        else:
            self._script(words[0].text, here, is_python=is_python)
        self._arguments(words[1:], here)

    def _script(self, text: str, here: str, *, is_python: bool = False) -> None:
        kind, path = self._place(text, here)
        if kind == "file":
            self.run[path] = None
            self.doubt(self._beyond(path, text, is_python=is_python))
        elif kind == "outside":
            self.elsewhere.add(path)
            if not _is_own(os.path.join(here, text), path):
                self.doubt(_MAY_LOAD.format(text))
        else:
            self.doubt(_NO_SCRIPT[kind].format(text))

    def _arguments(self, words: Sequence[Word], here: str) -> None:
        """What a program is given that nobody knows: a file may be code."""
        if not all(word.known for word in words):
            self.doubt(_NOT_ALL_KNOWN)
        self._take(words, here, self.handed)

    def _take(self, words: Sequence[Word], here: str, into: dict[str, None]) -> None:
        """Take in the files among the words."""
        for text in (word.text for word in words if word.known):
            bare = text[2:] if re.match(r"-[^-]", text) else ""
            for piece in dict.fromkeys((text, bare, *re.split(_PIECES, text))):
                kind, path = self._place(piece, here) if piece else ("absent", "")
                if kind == "file":
                    into[path] = None
                elif kind == "odd":
                    self.doubt(_NO_SCRIPT[kind].format(piece))

    def _module(self, words: Sequence[Word], here: str) -> None:
        """The files of `-m package.module`."""
        texts = [word.text for word in words]
        at = texts.index("-m") + 1 if "-m" in texts[:-1] else 0
        if not at or not words[at].known or not re.fullmatch(r"[\w.]+", texts[at]):
            return
        names = texts[at].split(".")
        whole = "/".join(names)
        packages = ["/".join((*names[:count], "__init__.py")) for count in range(1, len(names) + 1)]
        for text in (f"{whole}.py", f"{whole}/__main__.py", *packages):
            kind, path = self._place(text, here)
            if kind == "file":
                self.run[path] = None

    def _place(self, text: str, here: str) -> tuple[_Kind, str]:
        """What a word names, and its real path."""
        path = os.path.join(here, text)
        try:
            real = os.path.realpath(path)
            if not is_reachable_in(path, self.roots):
                return "outside", real
            if not within(real, self.root):
                return "odd", real  # a link that leads out, or another folder that commands can write
            mode = os.stat(real).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return "absent", real
        except (OSError, ValueError):
            return "odd", path
        return ("file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "odd"), real

    def _beyond(self, path: str, text: str, *, is_python: bool) -> str:
        """Why a file of the workspace runs other code there before its own first line; empty where it does not."""
        try:
            with open(path, "rb") as file:
                head = file.read(_HEAD_BYTES).decode(errors="replace")
        except OSError:
            return f"{text} cannot be read"
        words = head[2:].partition("\n")[0].split() if head.startswith("#!") else []
        if words and (not os.path.isabs(words[0]) or is_reachable_in(words[0], self.roots)):
            return f"{text} is run by a program that commands can write"
        is_python = is_python or any(re.fullmatch(_PYTHON, os.path.basename(word)) for word in words)
        folder = os.path.dirname(path)
        if not is_python or matches_patterns(os.path.relpath(os.path.join(folder, "x"), self.root), PROTECTED):
            return ""
        # Python looks for every module that a script wants in the script's folder first, also for its own.
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return f"what lies beside {text} cannot be listed"
        beside = next((name for name in names if _is_module(folder, name, path)), "")
        return f"Python may load {beside}, which lies beside {text}" if beside else ""


def _explain_risk(name: str, words: Sequence[Word], finding: CommandFinding) -> str:
    """Why a program of the tables could run code of the project."""
    if finding.runs_project_code:
        return f"{name} runs code of the project"
    form = table()[name]
    if name == "curl" and any(re.match(_SETTINGS_OF_CURL, word.text) for word in words):
        return "curl does what a file says"
    # No other flag of these makes them do more than read, print or talk to a host.
    is_tame = form.tame or form.prints or form.plain or (name == "curl" and all(map(is_single, words)))
    return "" if is_tame else finding.doubt


def _is_own(*paths: str) -> bool:
    """Is a program in no folder of installed ones, neither by how it is named nor by what that leads to?"""
    return not any(re.fullmatch(_INSTALLED, path) and not re.fullmatch(_OWN_BIN, path) for path in paths)


def _explain_choice(name: str) -> str:
    """Why a file of the folder could choose another program than the one that is meant."""
    found = shutil.which(name) or ""
    is_chosen = any(re.fullmatch(_CHOOSERS, path) for path in (found, os.path.realpath(found)))
    return f"which {os.path.basename(name)} it runs, a file of the folder may choose" if found and is_chosen else ""


def _only_alerts(name: str, words: Sequence[Word]) -> bool:
    bad = _ALERTS.get(name)
    return bad is not None and all(word.known and not re.fullmatch(bad, word.text) for word in words)


def _only_tells(words: Sequence[Word]) -> bool:
    return all(word.known and not re.search(_TELLING, word.text) for word in words)


def _is_module(folder: str, name: str, script: str) -> bool:
    path = os.path.join(folder, name)
    if name.endswith(_BESIDE):
        return path != script
    return os.path.lexists(os.path.join(path, "__init__.py"))


def _is_plain(value: Word, here: str) -> bool:
    """Is it a value that leads to nothing: one word, and no file or folder of that name?"""
    is_word = value.known and re.fullmatch(r"\w+", value.text) is not None
    return is_word and not os.path.lexists(os.path.join(here, value.text))


_MOST_BYTES = 1 << 20


def find_hook_scripts(workspace: str, files: Sequence[str]) -> list[str]:
    """The scripts in the workspace, as paths from it; what cannot be read as settings names none."""
    real = os.path.realpath(workspace)
    found = {script for path in files for line in _commands(path) for script in look(line, real).files}
    return [os.path.join(workspace, os.path.relpath(script, real)) for script in sorted(found)]


def _commands(path: str) -> list[str]:
    try:
        raw = read_regular(os.open(path, READ_NO_LINK), _MOST_BYTES) or b""
        decode = msgspec.toml.decode if path.endswith(".toml") else msgspec.json.decode
        said = decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (OSError, ValueError, RecursionError):  # whoever reads the rules says what is wrong
        return []
    return list(commands(said.get("hooks"))) if isinstance(said, dict) else []
