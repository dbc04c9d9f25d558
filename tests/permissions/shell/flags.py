"""Lines of programs that only read, made of their flags in every order and spelling, and what they do when they run.

A line counts where the judge says that it only reads. It is run for real, in a folder in which every file is also a
program that leaves a mark, and everything that it does beside reading is told: a file that is made, changed or deleted,
a program that is started from the folder and, where strace can look, a file that is opened for writing and a connection
anywhere.
"""

import asyncio
import bz2
import gzip
import lzma
import os
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.git.environment import harden
from ferrule.permissions.rules import Subject
from ferrule.permissions.shell.form import Form, parse_flags
from ferrule.permissions.shell.judge import judge
from ferrule.permissions.shell.programs import table
from ferrule.permissions.shell.scene import Scene
from ferrule.system.environment import quiet_environment

_SECONDS = 10
_MARKED = "#!/bin/sh\n: > MARK\n"
_BUILT_IN = frozenset(
    {"cd", "exit", "return", "break", "continue", "wait", "jobs", "true", "false", ":", "read", "set", "pushd"}
    | {"popd", "dirs", "help", "type", "command"}
)
_LATE = (
    "-d",
    "-o out",
    "-i",
    "--output=out",
    "-delete",
    "--decompress",
    "-o",
    "-w",
    "-f a.txt",
    "-exec ./a.txt ;",
    "-l z.zip",
    "-t z.zip",
    "-p z.zip",
    "-x z.zip",
)
"""What would do harm if a program took it for a flag where the row takes it for a word."""
_VALUES = ("1", "a", "a.txt", "out", "./a.txt", "%s", "always", "=", ",", "-d", "--", "a=1", "c", "w", "name")
_WORDS = {
    "sed": ("p", "1p", "s/a/b/", "w out", "1e ./a.txt", "$d", "s/x/./a.txt/e", "r a.txt"),
    "awk": ("1", "{print}", "NR==1", '{print > "out"}', 'BEGIN{system("./a.txt")}', "END{print NR}", "@load 'x'"),
    "jq": (".", ".a", "keys", "env", "$ENV", "input"),
    "yq": (".", ".a", "keys", "env"),
    "find": (".", "sub", "-print", "-delete", "-exec ./a.txt {} ;", "-fprint out"),
    "date": ("+%F", "0101", "+%s"),
    "sqlite3": ("d.db", "select 1", "select * from t", ".schema", ".tables", "create table u(x)", ".output out"),
    "git": ("HEAD", "main", "a.txt", "--", "HEAD~1", "-d", "x", "origin", "all"),
    "tar": ("t.tar", "a.txt", "t.tgz"),
    "unzip": ("z.zip", "a.txt", "z.zip a.txt"),
    "zipinfo": ("z.zip", "a.txt"),
    "xxd": ("a.txt", "b.bin"),
    "command": ("-v ls", "ls", "./a.txt"),
}
_WORDS |= dict.fromkeys(("gawk", "mawk", "nawk"), _WORDS["awk"]) | {"gsed": _WORDS["sed"]}
_WORDS |= dict.fromkeys(("gtar", "bsdtar"), _WORDS["tar"])
_FILES = (
    "a.txt",
    "b.bin",
    "a.gz",
    "a.bz2",
    "a.xz",
    "a.zst",
    "t.tar",
    "t.tgz",
    "z.zip",
    "j.json",
    "sub",
    "-",
    "new",
    "",
)
_OPTIONS = [
    "XZ_OPT=-d",
    "XZ_DEFAULTS=-d",
    "GZIP=-d",
    "BZIP2=-d",
    "ZSTD_CLEVEL=1",
    "TAR_OPTIONS=--to-command=./a.txt",
    "GREP_OPTIONS=-r",
    "LESSOPEN=|./a.txt",
    "LESS=+!./a.txt",
    "UNZIP=-o",
    "ZIPINFO=-l",
    "RIPGREP_CONFIG_PATH=a.txt",
    "GIT_PAGER=./a.txt",
    "JQ_COLORS=1",
    "AWKPATH=.",
    "AWKLIBPATH=.",
    "POSIXLY_CORRECT=1",
    "FIND_BLOCK_SIZE=1",
    "TMPDIR=sub",
    "SQLITE_HISTORY=out",
    "PAGER=./a.txt",
    "PYTHONSTARTUP=a.txt",
    "GIT_EXTERNAL_DIFF=./a.txt",
    "GIT_TRACE=1",
    "GIT_TRACE2=out",
    "LC_ALL=C",
    "TZ=UTC",
    "COLUMNS=40",
    "DEBUG=1",
    "LANGUAGE=de",
    "NO_COLOR=1",
    "CI=1",
    "TREE_COLORS=1",
    "LS_COLORS=x",
    "BLOCK_SIZE=1",
    "MAGIC=a.txt",
    "GCONV_PATH=.",
    "LOCPATH=.",
]


class Deed(NamedTuple):
    """What a line did that is more than reading."""

    line: str
    what: str


def programs(path: str) -> list[str]:
    """Every row that counts as only reading and whose program is there, or built into the shell."""
    rows = [name for name, form in table().items() if form.harmless]
    return [name for name in rows if (first := name.split()[0]) in _BUILT_IN or shutil.which(first, path=path)]


def lines(name: str, count: int, seed: int = 0) -> Iterator[str]:
    """So many lines of one program, always the same ones for a seed."""
    chance = random.Random(f"{name} {seed}")
    for _ in range(count):
        yield _line(name, table()[name], chance)


def _line(name: str, form: Form, chance: random.Random) -> str:
    words: list[str] = []
    for flag, kind in chance.choices(list(_flags(form)), k=chance.choice((0, 1, 1, 2, 2, 3, 4))) if form.flags else []:
        words += _spelled(flag, kind, chance)
    if chance.random() < 0.2:
        words = _clustered(words)
    first = name.split(maxsplit=1)[0]
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3))):
        at = chance.randint(0, len(words)) if chance.random() < 0.4 else len(words)
        words.insert(at, chance.choice(_FILES if chance.random() < 0.7 or first not in _WORDS else _WORDS[first]))
    if first in _WORDS and chance.random() < 0.7:
        words.insert(0 if chance.random() < 0.5 else len(words), chance.choice(_WORDS[first]))
    if chance.random() < 0.25:
        words += ["--", *chance.choice(_LATE).split()] if chance.random() < 0.6 else [chance.choice(_LATE)]
    if chance.random() < 0.05:
        words.append("@a.txt")
    before = f"{shlex.quote(chance.choice(_OPTIONS))} " if chance.random() < 0.1 else ""
    before = re.sub(r"^'(\w+=)(.*)' $", r"\1'\2' ", before)
    return f"{before}{name} {' '.join(map(shlex.quote, words))}".rstrip()


def _flags(form: Form) -> Iterator[tuple[str, str]]:
    for name, flag in parse_flags(form.flags, whole=form.whole).items():
        yield name.replace("#", "3"), ("?" if flag.optional else "") + flag.value
    for why in form.dangers.split("; "):
        yield from ((name, "x") for name in why.partition("= ")[0].split()[:2] if name.startswith("-"))


def _spelled(flag: str, kind: str, chance: random.Random) -> list[str]:
    if flag.startswith("--") and chance.random() < 0.1:
        return [flag[: chance.randint(4, max(4, len(flag) - 1))]]
    if not kind or (kind.startswith("?") and chance.random() < 0.5):
        return [flag, flag] if chance.random() < 0.05 else [flag]
    shape = kind.lstrip("?")
    if shape == "n":
        value = chance.choice(("1", "0", "5", "+2"))
    elif shape.startswith("="):
        value = chance.choice(shape[1:].split("|"))
    else:
        value = chance.choice(_VALUES)
    if shape == "xx":
        return [flag, "a", value]
    if flag.startswith("--") and (kind.startswith("?") or chance.random() < 0.6):
        return [f"{flag}={value}"]
    return [flag + value] if not flag.startswith("--") and chance.random() < 0.3 else [flag, value]


def _clustered(words: Sequence[str]) -> list[str]:
    short = [word[1:] for word in words if re.fullmatch(r"-[A-Za-z0-9]", word)]
    rest = [word for word in words if not re.fullmatch(r"-[A-Za-z0-9]", word)]
    return [f"-{''.join(short)}", *rest] if short else rest


class Ground:
    """A folder to run lines in, which is made anew whenever one has changed it."""

    def __init__(self, top: Path, *, confine: Sequence[str] = (), trace: bool = False) -> None:
        """`confine` are the words before each line that keep it to the folder; `trace`: is strace to look at it?"""
        self.work = top / "work"
        self._pristine, self._log = top / "pristine", top / "trace"
        self._confine, self._trace = list(confine), trace
        _furnish(self._pristine)
        self._renew()
        self.jail = Jail(str(self.work))
        guard = Guard((), self.jail)
        self.path = os.environ.get("PATH", os.defpath)
        self._git = asyncio.run(harden([str(self.work)], {"PATH": self.path})).env
        self._scene = Scene((str(self.work),), secret=guard.secret, protected=guard.is_protected, path=self.path)

    def _renew(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self._pristine, self.work, symlinks=True)
        self._before = _seen(self.work)

    def only_reads(self, line: str) -> bool:
        """Would it run unasked, in the default mode and without a rule?"""
        subject = Subject("shell", frozenset({"shell"}), {"command": line})
        judged = judge(
            line, str(self.work), subject=subject, weigh=lambda _: (), scene=self._scene, ruled=False, development=False
        )
        return judged.decision.verdict == "allow"

    def run(self, line: str) -> list[Deed]:
        """Run it, and tell what it did."""
        env = quiet_environment({"PATH": self.path, "HOME": str(self.work / "home"), "LC_ALL": "C.UTF-8"})
        if "git" in line:
            env |= self._git
        # Without a file of its own bash would put one program of the line in its own place.
        argv = ["bash", "--noprofile", "--norc", "-c", f"{line}\n:"]
        if self._trace:
            argv = ["strace", "-f", "-qq", "-s", "300", "-e", "trace=%file,%network", "-o", str(self._log), *argv]
        try:
            subprocess.run(
                [*self._confine, *argv], cwd=self.work, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return [Deed(line, f"it ran longer than {_SECONDS} s")]
        deeds = [Deed(line, what) for what in self._traced()] if self._trace else []
        after = _seen(self.work)
        if after != self._before:
            changed = sorted(name for name in {*after, *self._before} if after.get(name) != self._before.get(name))
            deeds.append(Deed(line, f"it changed {', '.join(changed)}"))
            self._renew()
        return deeds

    def _traced(self) -> Iterator[str]:
        for row in self._log.read_text(errors="replace").splitlines():
            call = re.sub(r"^\d+ +", "", row)
            if ".git/index" in call:
                continue
            if re.match(r"open(?:at)?\(.*(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)", call):
                if not re.search(r'"/dev/(?:null|tty)"|EISDIR', call):
                    yield f"it opened for writing: {call[:160]}"
            elif re.match(r"(?:connect|sendto)\(.*AF_INET|bind\(.*AF_INET.*htons\([1-9]", call):
                yield f"it opened a connection: {call[:160]}"
            elif re.match(
                r"(?:unlink|rename|mkdir|rmdir|symlink|link|chmod|fchmod|chown|mknod|truncate|creat)\w*\(", call
            ):
                if not re.search(r"= -1 ENOSYS", call):
                    yield f"it changed a file: {call[:160]}"
            elif (found := re.match(r'execve\("([^"]*)".*= 0$', call)) and self._is_here(found[1]):
                yield f"it started {found[1]}"

    def _is_here(self, program: str) -> bool:
        return os.path.join(self.work, program).startswith(f"{self.work}/")


def _furnish(top: Path) -> None:
    (top / "sub").mkdir(parents=True)
    (top / "home").mkdir()
    text = f"{_MARKED}a,1\nb 2\n"
    for name in ("a.txt", "sub/s.txt", "c", "w", "name", "1"):
        (top / name).write_text(text)
        (top / name).chmod(0o755)
    (top / "b.bin").write_bytes(bytes(range(256)))
    (top / "j.json").write_text('{"a": [1, 2]}\n')
    (top / "a.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (top / "a.bz2").write_bytes(bz2.compress(text.encode()))
    (top / "a.xz").write_bytes(lzma.compress(text.encode()))
    for name, mode in (("t.tar", "w"), ("t.tgz", "w:gz")):
        with tarfile.open(top / name, mode) as archive:  # type: ignore[call-overload]
            archive.add(top / "a.txt", "unpacked.txt")
    with zipfile.ZipFile(top / "z.zip", "w") as packed:
        packed.write(top / "a.txt", "unzipped.txt")
    with sqlite3.connect(top / "d.db") as database:
        database.execute("create table t(x)")
    database.close()
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", "-k", "-o", top / "a.zst", top / "a.txt"], check=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (
        ["init", "-q"],
        ["add", "a.txt", "sub"],
        ["commit", "-qm", "one"],
        ["commit", "-qam", "2", "--allow-empty"],
    ):
        subprocess.run([*git, *words], cwd=top, check=True, env={"PATH": os.environ["PATH"], "HOME": str(top / "home")})


def _seen(top: Path) -> dict[str, tuple[object, ...]]:
    """Every file with all that a change of it would change."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, names, files in os.walk(top):
        for name in (*names, *files):
            path = os.path.join(folder, name)
            if path.endswith("/.git/index"):
                continue  # git remembers there when it looked at a file, which changes nothing of what it tells
            status = os.lstat(path)
            content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
            changed = status.st_mtime_ns if content or os.path.islink(path) else 0
            found[os.path.relpath(path, top)] = (status.st_mode, changed, content)
    return found
