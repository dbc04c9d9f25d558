"""Who runs a program: this user, or an ordinary one that is made for the tests."""

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

NAME = "ferrule-test"
ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 120
_ENTER = str(Path(__file__).with_name("enter.py"))
_NOBODY = 65534
_works: list[tuple[int, int, bool]] = []
"""The one user that was found to work, so that it is looked for once in a process."""
_GIT_IDENTITY = "[user]\n\tname = Ordinary\n\temail = ordinary@example.org\n[init]\n\tdefaultBranch = main\n"


BOTH = ("this user", "another user")


def in_turn(*cases: Any) -> list[tuple[Any, str]]:
    """Every case with one of both users, for the fixture `person`: `make trials` has all cases with each.

    Whoever is an ordinary user takes all of them.
    """
    users = BOTH if os.geteuid() == 0 else BOTH[:1]
    return list(zip(cases, itertools.cycle(users), strict=False))


class UnavailableError(Exception):
    """This machine has no second user; the words say why."""


class Person(NamedTuple):
    """A user of this machine, with a home folder that holds nothing but what a test puts there."""

    title: str
    """As it stands in reports: `root`, `another user` …"""
    uid: int
    gid: int
    home: Path
    entering: tuple[str, ...] = ()
    """What stands before a program so that this user runs it."""

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a login, with the project's programs first on PATH."""
        path = os.pathsep.join([str(Path(sys.prefix, "bin")), "/usr/local/bin", "/usr/bin", "/bin"])
        ours = {
            "HOME": str(self.home),
            "PATH": path,
            "USER": self.title.replace(" ", "-"),
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "FERRULE_STATE": str(self.home / ".state"),
            "FERRULE_SETTINGS": str(self.home / ".settings.toml"),
        }
        return {**ours, **(more or {})}

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        text: str = "",
        seconds: float = LIMIT_SECONDS,
    ) -> "subprocess.CompletedProcess[str]":
        """A program's end, with what it said on both streams."""
        return subprocess.run(
            [*self.entering, *argv],
            cwd=cwd or self.home,
            env=self.env(env),
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )

    def start(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, stderr: IO[str]
    ) -> "subprocess.Popen[str]":
        """A program that is talked to through pipes."""
        return subprocess.Popen(
            [*self.entering, *argv],
            cwd=cwd or self.home,
            env=self.env(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def ferrule(self, *words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """A command line of ferrule."""
        return self.run([sys.executable, "-P", "-m", "ferrule", *words], cwd=cwd)

    def call(self, function: str, *args: object) -> object:
        """What a function gives, named as `package.module:function`; arguments and result go through JSON."""
        done = self.run([sys.executable, "-c", _CALL, str(ROOT), function, json.dumps(args)])
        if done.returncode:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def folder(self, name: str) -> Path:
        """A new folder in the user's home, which is theirs."""
        made = self.home / name
        made.mkdir(parents=True)
        self.give(made)
        return made

    def give(self, path: Path) -> Path:
        """Make everything at a path this user's own."""
        if os.geteuid() == 0 and self.uid != 0 and not self.is_mapped:
            for one in (path, *path.rglob("*")):
                os.chown(one, self.uid, self.gid, follow_symlinks=False)
        return path

    @property
    def is_mapped(self) -> bool:
        """Is it the same user under another number, so that its files are this user's own?"""
        return any('"mapped": true' in word for word in self.entering)


_CALL = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
module, name = sys.argv[2].split(":")
print(json.dumps(getattr(importlib.import_module(module), name)(*json.loads(sys.argv[3]))))
"""


@contextlib.contextmanager
def myself(below: Path | None = None) -> Iterator[Person]:
    """Whoever runs this, in a home of its own."""
    with _home(below) as home:
        title = "root" if os.geteuid() == 0 else "an ordinary user"
        yield _settled(Person(title, os.geteuid(), os.getegid(), home))


@contextlib.contextmanager
def ordinary(below: Path | None = None, shown: Sequence[Path] = ()) -> Iterator[Person]:
    """A user without any rights of root; `UnavailableError` where this machine has none and lets none be made.

    Who is not root is that user already. Root makes one, once: it has no password, no shell and no home but the one
    that is given here. Where no user can be made, root becomes another one by number, or by a map of numbers.
    """
    if os.name != "posix" or sys.platform == "win32":
        raise UnavailableError("users are only told apart on POSIX systems.")
    if os.geteuid() != 0:
        with myself(below) as person:
            yield person
        return
    needed = [str(one) for one in (ROOT, sys.prefix, sys.base_prefix, *shown)]
    tried: list[str] = []
    for uid, gid, mapped in _works or (*_made(), (_NOBODY, _NOBODY, False), (1000, 1000, True)):
        how = json.dumps({"uid": uid, "gid": gid, "shown": needed, "mapped": mapped})
        entering = (sys.executable, "-I", _ENTER, how)
        with _home(below) as home:
            person = _settled(Person("another user", uid, gid, home, entering))
            if _works:
                yield person
                return
            probe = person.run([sys.executable, "-c", "import ferrule.engine, os; print(os.getuid())"])
            if probe.stdout.strip() == str(uid):
                _works.append((uid, gid, mapped))
                yield person
                return
        tried.append(f"as {uid}: {(probe.stderr.strip() or probe.stdout.strip() or 'nothing').splitlines()[-1]}")
    raise UnavailableError("no program of ours can be run as another user (" + "; ".join(tried) + ").")


def _made() -> list[tuple[int, int, bool]]:
    """The user of the tests, made where it is missing. One process at a time: the tests run side by side."""
    import pwd

    lock = Path(tempfile.gettempdir(), f"{NAME}.lock")
    with contextlib.suppress(OSError), lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            found = pwd.getpwnam(NAME)
        except KeyError:
            making = ["useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/false"]
            if shutil.which("useradd") is None:
                return []
            subprocess.run([*making, NAME], capture_output=True, check=False)
            try:
                found = pwd.getpwnam(NAME)
            except KeyError:
                return []
        return [(found.pw_uid, found.pw_gid, False)]
    return []


@contextlib.contextmanager
def _home(below: Path | None) -> Iterator[Path]:
    """Where homes are: not below a folder for temporary files, of which the sandbox has its own."""
    usual = ["/home", "/srv", "/var/tmp"] if os.geteuid() == 0 else [os.path.expanduser("~"), "/var/tmp"]
    place = below or next((one for one in usual if os.access(one, os.W_OK | os.X_OK)), None)
    # What a session of another user leaves may be closed even to its owner; root removes it all the same.
    with tempfile.TemporaryDirectory(prefix="ferrule-home-", dir=place, ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def _settled(person: Person) -> Person:
    (person.home / ".gitconfig").write_text(_GIT_IDENTITY)
    (person.home / ".settings.toml").write_text("")
    person.give(person.home)
    return person
