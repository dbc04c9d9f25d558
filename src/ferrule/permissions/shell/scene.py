"""Where a command line would run, and what is off limits there: all that judging it needs to know of the machine."""

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.permissions.rules.rule import Touched
from ferrule.permissions.shell.form import Finding
from ferrule.permissions.shell.line import Redirect, Simple, Word

_FEW = 200
"""A glob that finds more files is not looked into one by one."""
_MANY = 5_000
"""In a folder with more entries, looking for secret files takes longer than a question."""
_KERNEL = ("/proc", "/sys", "/dev")
_PLAIN_DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_SAFE_NAMES = (
    r"NODE_ENV|CI|DEBUG|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR"
    r"|RUST_BACKTRACE|RUST_LOG|GO111MODULE|GOOS|GOARCH|CGO_ENABLED|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    r"|PYTHONHASHSEED|PYTHONWARNINGS|PYTEST_DISABLE_PLUGIN_AUTOLOAD|CARGO_TERM_COLOR|SOURCE_DATE_EPOCH|HUSKY"
)
"""Variables that only change how a program speaks or what it builds for."""


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

    def off_limits(self, touched: Touched) -> str:
        """Why a path is one that no rule opens, as the end of a sentence; empty if it is not."""
        for path in (touched.real, touched.spelled):
            if self.secret(path):
                return f"{touched.spelled} is a secret file"
            if path not in _PLAIN_DEVICES and any(within(path, folder) for folder in _KERNEL):
                return f"{touched.spelled} belongs to the kernel"
            if touched.mode == "write" and self.protected(path):
                return f"{touched.spelled} is obeyed by programs and protected"
        return ""

    def buries_secret(self, folder: str, *, hidden: bool) -> bool:
        """May who reads a whole folder come upon a secret file there? Also where there is too much to look at."""
        if not os.path.isdir(folder):
            return False
        folders, seen = [folder], 0
        for one in folders:  # grows on the way
            try:
                with os.scandir(one) as entries:
                    for entry in entries:
                        if entry.name.startswith(".") and not hidden:
                            continue
                        seen += 1
                        if seen > _MANY or self.secret(entry.path):
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
            except OSError:
                return True
        return False

    def impostor(self, program: str, cwd: str | None) -> bool:
        """Would the shell find this program inside the workspace, where an agent may have put it?"""
        if "/" in program:
            return cwd is None or self.inside(os.path.realpath(os.path.join(cwd, program)))
        for folder in (self.path or os.environ.get("PATH", os.defpath)).split(os.pathsep):
            if not os.path.isabs(folder):
                return True
            found = os.path.join(folder, program)
            if os.path.isfile(found) and os.access(found, os.X_OK):
                return self.inside(os.path.realpath(found)) or self.inside(os.path.realpath(folder))
        return False


def touched(simple: Simple, finding: Finding) -> tuple[Touched, ...]:
    """The paths that a simple command is seen to read and write, by its operands and its redirections."""
    return tuple(dict.fromkeys(_touched(simple, finding)))


def _touched(simple: Simple, finding: Finding) -> Iterator[Touched]:
    here = simple.cwd
    for text in finding.reads:
        yield from _at(here, text, write=False)
    for pattern in finding.globs:  # as written they are among what it reads: the files may come yet
        for text in _found(here, pattern):
            yield from _at(here, text, write=False)
    for text in finding.writes:
        yield from _at(here, text, write=True)
    for redirect in simple.redirects:
        if redirect.target.known and opens_file(redirect):
            yield from _at(here, redirect.target.text, write=redirect.writes)


def _at(cwd: str | None, text: str, *, write: bool) -> Iterator[Touched]:
    if cwd is None and not os.path.isabs(text):
        return
    spelled = os.path.normpath(os.path.join(cwd or "/", text))
    # The real path is that of the text: a `..` behind a link leads elsewhere than it looks.
    real = os.path.realpath(os.path.join(cwd or "/", text))
    # Who removes or moves a folder does so with all that is in it.
    yield Touched("write" if write else "read", real, spelled, deep=write and os.path.isdir(real))


def _found(cwd: str | None, pattern: str) -> list[str]:
    import glob  # only commands with globs need it

    if cwd is None:
        return []
    found = []
    for name in glob.iglob(pattern, root_dir=cwd, include_hidden=True):
        found.append(name)
        if len(found) > _FEW:
            break
    return found


def opens_file(redirect: Redirect) -> bool:
    """Does it name a file? Text that is handed over and copies of descriptors do not."""
    if redirect.operator in {"<<", "<<-", "<<<"}:
        return False
    return redirect.writes or redirect.operator not in {">&", "<&"}


def harmless_assignment(name: str, value: Word) -> bool:
    """Does the variable only change how a program speaks, whatever its value, and is the value known?"""
    return value.known and re.fullmatch(_SAFE_NAMES, name) is not None


def harmless_redirect(redirect: Redirect) -> bool:
    """Does it lose output, copy a descriptor or hand over text?"""
    if not opens_file(redirect):
        return True
    return redirect.target.known and redirect.target.text in _PLAIN_DEVICES
