"""Objects of a git repository, read without believing anything else that is in it.

Git is started on an empty repository of our own, and is shown nothing of the other one but its folder of objects: no
settings, no refs, no replacements, no hooks. What it answers is held against the hash that was asked for.
"""

import contextlib
import errno
import hashlib
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from ferrule.support.programs import program

MOST_BYTES = 64 << 20
_SECONDS = 20.0
_PACK_SECONDS = 120.0
_HEAD = re.compile(rb"([0-9a-f]+) ([a-z]+) (\d+)")


class _Git(NamedTuple):
    """A running git, and the objects that it reads."""

    objects: str
    process: "subprocess.Popen[bytes]"


class Objects:
    """Reads objects of repositories; a context manager, for it runs git."""

    def __init__(self, outside: Sequence[str] = ()) -> None:
        """`outside` are folders in which no git is looked for."""
        self._outside = tuple(outside)
        self._running: _Git | None = None
        self._own = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)

    def read(self, objects: str, name: str, kind: str) -> bytes | None:
        """The object whose bytes have this name as their hash; None where there is none such, or no git."""
        found, raw = self.read_any(objects, name, kind)
        return raw if found else None

    def read_any(self, objects: str, name: str, kind: str = "") -> tuple[str, bytes]:
        """The same with its kind, whichever that is where none is asked for; no kind where there is none such."""
        try:
            if self._running is None or self._running.objects != objects:
                self._stop()
                self._running = _Git(objects, self._start(objects, is_long=len(name) > 40))
            found, raw = _asked(self._running.process, name, kind)
        except (OSError, ValueError):
            self._stop()  # what it may still say belongs to no later question
            return "", b""
        return (found, raw) if hash_of(found, raw, is_long=len(name) > 40) == name else ("", b"")

    def packed(self, objects: str, names: Sequence[str]) -> list[str]:
        """A pack of these objects and its index: files that are there as long as this reader. Raises OSError."""
        git, environment = self._surroundings(objects, is_long=len(names[0]) > 40)
        folder = tempfile.mkdtemp(dir=self._own)
        argv = [git, "pack-objects", "-q", os.path.join(folder, "pack")]
        text = "".join(f"{name}\n" for name in names).encode()
        try:
            subprocess.run(
                argv, input=text, cwd=self._own, env=environment, capture_output=True, check=True, timeout=_PACK_SECONDS
            )
        except subprocess.SubprocessError as error:
            raise OSError(errno.EIO, "git could not pack objects", objects) from error
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder), reverse=True)]

    def _start(self, objects: str, *, is_long: bool) -> "subprocess.Popen[bytes]":
        git, environment = self._surroundings(objects, is_long=is_long)
        return subprocess.Popen(
            [git, "cat-file", "--batch"],
            cwd=self._own,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    def _surroundings(self, objects: str, *, is_long: bool) -> tuple[str, dict[str, str]]:
        """Git, and the environment in which it sees nothing but these objects. Raises OSError."""
        git = program("git", outside=self._outside)
        if git is None or not os.path.isdir(objects):
            raise FileNotFoundError(objects)
        if not self._own:
            self._own = tempfile.mkdtemp(prefix="ferrule-git-")
        folder = os.path.join(self._own, "long" if is_long else "short")
        if not os.path.isdir(folder):
            _make(folder, is_long=is_long)
        return git, {
            "PATH": os.defpath,
            "HOME": self._own,
            "LC_ALL": "C",
            "GIT_DIR": folder,
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def _stop(self) -> None:
        if self._running is None:
            return
        process = self._running.process
        self._running = None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        process.wait()


def hash_of(kind: str, raw: bytes, *, is_long: bool) -> str:
    """The name that git gives to an object."""
    whole = f"{kind} {len(raw)}".encode() + b"\0" + raw
    return (hashlib.sha256 if is_long else hashlib.sha1)(whole, usedforsecurity=False).hexdigest()


def entries(raw: bytes, *, is_long: bool) -> Iterator[tuple[bytes, tuple[str, str]]]:
    """The names in a tree, each with its mode and the object behind it."""
    at, size = 0, 32 if is_long else 20
    while at < len(raw):
        blank, end = raw.find(b" ", at), raw.find(b"\0", at)
        if not at < blank < end:
            return
        yield raw[blank + 1 : end], (raw[at:blank].decode("latin-1"), raw[end + 1 : end + 1 + size].hex())
        at = end + 1 + size


def _make(folder: str, *, is_long: bool) -> None:
    """An empty repository: what git wants to find before it starts."""
    for name in ("objects", "refs"):
        os.makedirs(os.path.join(folder, name))
    version, more = (1, "[extensions]\n\tobjectFormat = sha256\n") if is_long else (0, "")
    settings = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{more}"
    for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", settings)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)


def _asked(process: "subprocess.Popen[bytes]", name: str, kind: str) -> tuple[str, bytes]:
    """What git answers about one object: its kind, and its bytes. Raises `OSError` and `ValueError`."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n".encode())
    until = time.monotonic() + _SECONDS
    said, size, found = bytearray(), -1, ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while size < 0 or len(said) <= size:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                raise BrokenPipeError
            said += piece
            if size < 0 and (end := said.find(b"\n")) >= 0:
                head = _HEAD.fullmatch(bytes(said[:end]))
                if head is None or head[1] != name.encode() or int(head[3]) > MOST_BYTES:
                    raise ValueError(f"git has no object {name}")
                found = head[2].decode()
                if kind not in ("", found):
                    raise ValueError(f"git has no {kind} {name}")
                size = int(head[3])
                del said[: end + 1]
    return found, bytes(said[:size])
