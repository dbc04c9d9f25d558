"""Where a command line would run, and what is off limits there: all that judging it needs to know of the machine."""

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.permissions.rules import PathAccess
from ferrule.permissions.shell.line import Redirect, Simple, Word
from ferrule.permissions.shell.programs import CommandFinding

FEW = 1_000
"""A glob that finds more files is not looked into one by one, and so not known to only read."""
_MANY = 5_000
"""In a folder with more entries, looking for secret files takes longer than a question."""
_IGNORED_CHARS = 100_000
_KERNEL = ("/proc", "/sys", "/dev")
_PLAIN_DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_CHANCE = frozenset(
    {
        *("/dev/random", "/dev/urandom"),
        *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "version", "loadavg", "uptime")),
    }
)
"""What of the kernel anybody may read."""
_SAFE_NAMES = (
    r"NODE_ENV|CI|DEBUG|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR"
    r"|RUST_BACKTRACE|RUST_LOG|GO111MODULE|GOOS|GOARCH|CGO_ENABLED|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    r"|PYTHONHASHSEED|PYTHONWARNINGS|PYTEST_DISABLE_PLUGIN_AUTOLOAD|CARGO_TERM_COLOR|SOURCE_DATE_EPOCH|HUSKY"
)
"""Variables that only change how a program speaks or what it builds for."""
_SAFE_VALUES = {"TZ": r"(?!/|.*\.\.)[\w/+-]*", "PYTHONWARNINGS": r"\w*(::\w+)?"}


_FOUND: dict[tuple[str, str], str] = {}
"""Program and PATH → where it was found. Only who writes outside the workspace could put another one before it."""


class Scene(NamedTuple):
    """The machine as a command line finds it."""

    roots: tuple[str, ...]
    """The folders of the workspace, real."""
    secret: Callable[[str], bool]
    protected: Callable[[str], bool]
    unasked: Callable[[str], bool] = lambda _: False
    """May the agent have written this path without a question?"""
    path: str = ""
    """The PATH that programs are looked up on; empty for that of the environment."""

    def inside(self, real: str) -> bool:
        return any(within(real, root) for root in self.roots)

    def suspect(self, path: str) -> bool:
        """May no test run or build have it among its words?"""
        return self.secret(path) or self.unasked(path)

    def off_limits(self, touched: PathAccess, *, names_only: bool = False) -> str:
        """Why a path is one that no rule opens, as the end of a sentence; empty if it is not.

        `names_only`: nothing is told of what is in it, so that a secret stays one.
        """
        for path in (touched.real, touched.spelled):
            if self.secret(path) and not (names_only and touched.mode == "read"):
                return f"{touched.spelled} is a secret file"
            plain = path in _PLAIN_DEVICES or (touched.mode == "read" and path in _CHANCE)
            if not plain and any(within(path, folder) for folder in _KERNEL):
                return f"{touched.spelled} belongs to the kernel"
            if touched.mode == "write" and self.protected(path):
                return f"{touched.spelled} is obeyed by programs and protected"
        return ""

    def buries_secret(
        self, folder: str, *, hidden: bool, unhides: Sequence[str] = (), only: Sequence[str] = (), opens: bool = False
    ) -> bool:
        """May who reads a whole folder come upon a secret file there? Also where there is too much to look at.

        `only`: globs of names, one of which all has that is read. `opens`: what links lead to is read as well.
        """
        if not os.path.isdir(folder):
            return False
        wanted = [re.sub(r"\[[^]]*\]|\\.", "*", one.lower()) for one in only]
        folders, seen = [folder], 0
        shown = [] if hidden else _ends(unhides)
        for one in folders:  # grows on the way
            try:
                shown += [] if hidden else _ends(_ignore_exceptions(one))
                with os.scandir(one) as entries:
                    for entry in entries:
                        if not hidden and entry.name.startswith(".") and not _any(shown, entry.path):
                            continue
                        seen += 1
                        read = not wanted or _any(wanted, entry.name)
                        if seen > _MANY or (read and self._is_kept(entry, opens=opens)):
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
            except OSError:
                return True
        return False

    def _is_kept(self, entry: "os.DirEntry[str]", *, opens: bool) -> bool:
        if self.secret(entry.path):
            return True
        real = os.path.realpath(entry.path) if opens and entry.is_symlink() else ""
        return bool(real) and (self.secret(real) or not self.inside(real))

    def has_odd_names(self, folder: str) -> bool:
        """Is there a name below it that `xargs` would take apart? Also where there is too much to look at."""
        folders, seen = [folder], 0
        for one in folders:  # grows on the way
            try:
                with os.scandir(one) as entries:
                    for entry in entries:
                        seen += 1
                        if seen > _MANY or re.search(r"[\s'\"\\]", entry.name):
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
            except OSError:
                return True
        return False

    def find_secret(self, folder: str, globs: Sequence[str]) -> str:
        """A secret file below a folder that one of these globs fits; empty where there is none.

        Where there is too much to look at, only the names that globs tell outright count, see `secrets_named`.
        """
        folders, seen, fits = [folder] if os.path.isdir(folder) and globs else [], 0, _ends(globs)
        for one in folders:  # grows on the way
            try:
                with os.scandir(one) as entries:
                    for entry in entries:
                        seen += 1
                        if seen > _MANY:
                            return ""
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif _any(fits, entry.path) and self.secret(entry.path):
                            return entry.path
            except OSError:
                continue
        return ""

    def impostor(self, program: str, cwd: str | None) -> bool:
        """Would the shell find this program inside the workspace, where an agent may have put it?"""
        if "/" in program:
            return cwd is None or self.inside(os.path.realpath(os.path.join(cwd, program)))
        path = self.path or os.environ.get("PATH", os.defpath)
        found = _FOUND.get((program, path)) if _is_apart(path, self.roots) else None
        if found is None or not os.access(found, os.X_OK):
            found = _FOUND[program, path] = _find(program, path)
            if len(_FOUND) > _MANY:
                _FOUND.clear()
        if not os.path.isabs(found):
            return bool(found)
        return self.inside(_real(found)) or self.inside(_real(os.path.dirname(found)))


def _ignore_exceptions(folder: str) -> Iterator[str]:
    """What the files that say what to ignore there say not to, hidden or not."""
    for name in (".gitignore", ".ignore", ".rgignore"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from (line[1:].strip() for line in file.read(_IGNORED_CHARS).splitlines() if line[:1] == "!")


def _ends(globs: Iterable[str]) -> list[str]:
    """Patterns for the paths that globs could match, wherever these begin; a star stands for folders too."""
    return ["*/" + re.sub(r"\{.*\}|\[[^]]*\]|\\", "*", one.lower()).strip("/") for one in globs]


def _any(patterns: Sequence[str], path: str) -> bool:

    return any(fnmatchcase(path.lower(), pattern) for pattern in patterns)


def _real(path: str) -> str:
    """Where a path leads. As long as the very same file or folder is behind it, that is where it was."""
    try:
        status = os.stat(path)
    except OSError:  # gone since it was found
        return os.path.realpath(path)
    return _realpath(path, status.st_dev, status.st_ino)


@functools.lru_cache(maxsize=256)
def _realpath(path: str, device: int, inode: int) -> str:  # noqa: ARG001 - they tell whether it is still the same
    return os.path.realpath(path)


@functools.lru_cache(maxsize=8)
def _is_apart(path: str, roots: tuple[str, ...]) -> bool:
    """Is no folder of the PATH in the workspace, where another program could come before the one that was found?"""
    reals = [os.path.realpath(folder) for folder in path.split(os.pathsep)]
    return not any(within(real, root) for real in reals for root in roots)


def _find(program: str, path: str) -> str:
    """Where a shell finds the program; a relative path where it may find it anywhere, nothing where it finds none."""
    for folder in path.split(os.pathsep):
        found = os.path.join(folder, program)
        if not os.path.isabs(folder) or (os.path.isfile(found) and os.access(found, os.X_OK)):
            return found if os.path.isabs(folder) else os.path.join(".", found)
    return ""


def command_paths(simple: Simple, finding: CommandFinding) -> tuple[PathAccess, ...]:
    """The paths that a simple command is seen to read and write, by its operands and its redirections."""
    return tuple(dict.fromkeys(_command_paths(simple, finding)))


def _command_paths(simple: Simple, finding: CommandFinding) -> Iterator[PathAccess]:
    here = simple.cwd
    for text in finding.reads:
        yield from at(here, text, write=False)
    for pattern in finding.globs:  # as written they are among what it reads: the files may come yet
        for text in expand_glob(here, pattern, hidden=False):
            yield from at(here, text, write=False)
    for text in finding.writes:
        yield from at(here, text, write=True)
    for text in finding.into:
        yield from _into(here, finding.writes[-1], text)
    for redirect in simple.redirects:
        if redirect.target.known and not harmless_redirect(redirect):
            yield from at(here, redirect.target.text, write=redirect.writes)


def at(cwd: str | None, text: str, *, write: bool) -> Iterator[PathAccess]:
    """The path that a text names in a folder, if that is certain."""
    if cwd is None and not os.path.isabs(text):
        return
    spelled = os.path.normpath(os.path.join(cwd or "/", text))
    # The real path is that of the text: a `..` behind a link leads elsewhere than it looks.
    real = os.path.realpath(os.path.join(cwd or "/", text))
    # Who removes or moves a folder does so with all that is in it.
    yield PathAccess("write" if write else "read", real, spelled, deep=write and os.path.isdir(real))


def _into(cwd: str | None, folder: str, source: str) -> Iterator[PathAccess]:
    """What comes to lie at a place: the source under its own name in a folder, and what is in the source itself."""
    if cwd is None:
        return
    name = os.path.basename(source.rstrip("/"))
    if name not in {"", ".", ".."} and os.path.isdir(os.path.join(cwd, folder)):
        folder = os.path.join(folder, name)
        yield from at(cwd, folder, write=True)
    try:
        names = sorted(os.listdir(os.path.join(cwd, source)))[:FEW]
    except OSError:  # a file, or nothing
        names = []
    for one in names:
        yield from at(cwd, os.path.join(folder, one), write=True)


def expand_glob(cwd: str | None, pattern: str, *, hidden: bool = True) -> list[str]:
    """What a glob finds there now, not more than a thousand names and one."""
    import glob  # only commands with globs need it

    if cwd is None:
        return []
    # Bash has more kinds of brackets; anything may stand from there on, so that nothing is overlooked.
    pattern = re.sub(r"\[[^/]*", "*", pattern)
    return list(itertools.islice(glob.iglob(pattern, root_dir=cwd, include_hidden=hidden), FEW + 1))


def opens_file(redirect: Redirect) -> bool:
    """Does it name a file? Text that is handed over and copies of descriptors do not."""
    if redirect.operator in {"<<", "<<-", "<<<"}:
        return False
    return redirect.writes or redirect.operator not in {">&", "<&"}


def harmless_assignment(name: str, value: Word) -> bool:
    """Does the variable only change how a program speaks, whatever its value, and is the value known?"""
    if not value.known or re.fullmatch(_SAFE_NAMES, name) is None:
        return False
    # A path would be loaded as a catalogue of messages or a terminal, a dotted name as a module.
    return re.fullmatch(_SAFE_VALUES.get(name, r"[^/]*"), value.text) is not None


def harmless_before(program: str, name: str, value: Word) -> bool:
    """The same for this program: `read` takes its line apart at other characters, and that is all."""
    return harmless_assignment(name, value) or (program == "read" and name == "IFS" and value.known)


def harmless_redirect(redirect: Redirect) -> bool:
    """Does it lose output, copy a descriptor or hand over text?"""
    if not opens_file(redirect):
        return True
    return redirect.target.known and redirect.target.text in _PLAIN_DEVICES
