"""Read the objects, the index and the first commit of a git repository without trusting anything else in it.

Git is started on an empty repository of our own and sees only the other repository's folder of objects: no
settings, no refs, no replacements, no hooks. Its answers are checked against the hash that was asked for.

The index is parsed here, without git.

A file whose bytes are those of that commit is no secret of this machine's: whoever has the repository has it. What
commands add to the index, or commit, is in no such commit. A commit is known by its hash, and everything that is read
is held against the hash that leads to it, so that nothing which a command plants among the objects, or beside them
(replacements, grafts, alternates, filters, settings), is believed: to pass for committed, a file has to have the very
bytes. Whatever goes wrong means: not committed.
"""

import contextlib
import errno
import hashlib
import os
import re
import selectors
import stat
import struct
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from ferrule.system.environment import program_on_path
from ferrule.system.folder import Stamp, is_settled, read_whole, stamp

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

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
        self._folder: TemporaryDirectory[str] | None = None
        self._packs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._folder is not None:
            self._folder.cleanup()

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
            found, raw = _request_object(self._running.process, name, kind)
        except (OSError, ValueError):
            self._stop()  # what it may still say belongs to no later question
            return "", b""
        return (found, raw) if hash_of(found, raw, is_long=len(name) > 40) == name else ("", b"")

    def pack(self, objects: str, names: Sequence[str]) -> list[str]:
        """A pack of these objects and its index: files that are there as long as this reader. Raises OSError."""
        git, environment = self._surroundings(objects, is_long=len(names[0]) > 40)
        self._packs += 1
        folder = os.path.join(self._own, f"packs-{self._packs}")
        os.mkdir(folder, 0o700)
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
        git = program_on_path("git", outside=self._outside)
        if git is None or not os.path.isdir(objects):
            raise FileNotFoundError(objects)
        if not self._own:
            from tempfile import TemporaryDirectory  # slow to load, and most sessions read no objects

            self._folder = TemporaryDirectory(prefix="ferrule-git-", ignore_cleanup_errors=True)
            self._own = self._folder.name
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


def _request_object(process: "subprocess.Popen[bytes]", name: str, kind: str) -> tuple[str, bytes]:
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


_GIT_INDEX_HEAD = struct.Struct(">4sII")
_LINK = 0o160000
_MODE_AT = 24
_HASH_AT = 40
_EXTENDED, _LONG_NAME = 0x4000, 0x0FFF
_STAGE = 0x3000


class Staged(NamedTuple):
    """What the index says of one file."""

    mode: int
    blob: str

    @property
    def is_link(self) -> bool:
        """Does it stand for a commit of another repository?"""
        return self.mode == _LINK


class GitIndex(NamedTuple):
    """What an index holds."""

    files: dict[bytes, Staged]
    is_merged: bool = True
    """Is there one version of each file, as is always so but in the middle of a merge?"""
    tree: str = ""
    """The tree that it is of as a whole, where git has written that down."""


def read_index(raw: bytes) -> GitIndex | None:
    """What the bytes of an index say; None where they are of a kind that is not known here."""
    size = _hash_size(raw)
    if not size:
        return None
    try:
        return _read(raw[:-size], size)
    except (struct.error, ValueError, IndexError):
        return None


def _hash_size(raw: bytes) -> int:
    """How long the hashes are: the last one is of all that stands before it."""
    for name, size in (("sha1", 20), ("sha256", 32)):
        if hashlib.new(name, raw[:-size], usedforsecurity=False).digest() == raw[-size:]:
            return size
    return 0


def _read(raw: bytes, size: int) -> GitIndex:
    magic, version, count = _GIT_INDEX_HEAD.unpack_from(raw)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(magic)
    files: dict[bytes, Staged] = {}
    at, name, is_merged = _GIT_INDEX_HEAD.size, b"", True
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", raw, at + _MODE_AT)
        (flags,) = struct.unpack_from(">H", raw, at + _HASH_AT + size)
        start = at + _HASH_AT + size + (4 if flags & _EXTENDED else 2)
        if version == 4:
            stripped, start = _number(raw, start)
            end = raw.index(b"\0", start)
            name = name[: len(name) - stripped] + raw[start:end]
            after = end + 1
        else:
            end = raw.index(b"\0", start + (flags & _LONG_NAME))
            name = raw[start:end]
            after = at + (end - at + 8) // 8 * 8
        is_merged = is_merged and not flags & _STAGE
        files[name] = Staged(mode, raw[at + _HASH_AT : at + _HASH_AT + size].hex())
        at = after
    return GitIndex(files, is_merged, _tree(raw, at, size))


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, and where it ends."""
    value = raw[at] & 0x7F
    while raw[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (raw[at] & 0x7F)
    return value, at + 1


def _tree(raw: bytes, at: int, size: int) -> str:
    """The tree of all that is staged. Raises ValueError where the index is only a part of another one."""
    tree = ""
    while at < len(raw):
        kind, length = struct.unpack_from(">4sI", raw, at)
        body = raw[at + 8 : at + 8 + length]
        if kind[:1].islower():
            raise ValueError(kind)
        if kind == b"TREE" and body[:1] == b"\0":
            counts, _, rest = body[1:].partition(b"\n")
            tree = rest[:size].hex() if not counts.startswith(b"-") else ""
        at += 8 + length
    return tree


MOST_FILE_BYTES = 16 << 20
"""A larger file counts as different from whatever is committed."""
_MOST_REFS_BYTES = 64 << 20
_SHORT_BYTES = 1 << 16
_SHORT_HASH = 40
_HASH = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_DEEPEST_REF = 5
_FOLDER = "40000"
_FILES = {"100644": 0o444, "100755": 0o555, "100664": 0o444}
"""What is an ordinary file in a tree, and the mode in which it is shown to commands."""


class CommittedFile(NamedTuple):
    """What the commit says about a file on disk."""

    verdict: Literal["equal", "different", "absent"]
    blob: str = ""
    """The hash of the committed bytes."""
    mode: int = 0o444
    """The mode in which they are to be shown: git looks at who may execute a file."""


ABSENT = CommittedFile("absent")


class GitRepository(NamedTuple):
    """A repository as it was found."""

    top: str
    """The folder that its work tree begins at."""
    objects: str = ""
    commit: str = ""
    """What HEAD was; empty where that could not be told."""


class Committed:
    """Remembers the HEADs of repositories, and compares files with what is committed there.

    `begin` notes those of the folders that a session begins with, before it runs anything. Others, which lie inside of
    these, are noted when they are first asked about, until `seal`: from then on a command may have made, or changed,
    whatever is new.
    """

    def __init__(self) -> None:
        self._known: dict[str, GitRepository] = {}
        self._roots: tuple[str, ...] = ()
        self._is_sealed = False
        self._trees: dict[tuple[str, str], dict[bytes, tuple[str, str]]] = {}
        """Objects and tree → what is in it. A hash never means anything else."""
        self._roots_of: dict[tuple[str, str], str] = {}
        """Objects and commit → its tree."""
        self._hashes: dict[tuple[str, bool], tuple[Stamp, str]] = {}
        """Path, and whether hashes are long → what the file was like, and its hash then."""
        self._running = threading.local()

    def begin(self, folders: Sequence[str]) -> None:
        """Note the HEADs of the repositories that these folders belong to."""
        self._roots = tuple(folders)
        for folder in folders:
            self._repository(folder)

    def seal(self, tops: Iterable[str]) -> None:
        """Commands are about to run: note the HEADs of these repositories too, and of no other from now on."""
        if not self._is_sealed:
            for top in tops:
                self._note(top)
            self._is_sealed = True

    def states(self, paths: Iterable[str]) -> dict[str, CommittedFile]:
        """What the commits say about each of these files, by their real paths."""
        found, wanted = {}, []
        for path in paths:
            found[path] = ABSENT
            if (place := self._place(path)) is not None:
                wanted.append((path, *place))
        if wanted:
            with self.open_objects() as objects:
                for path, repository, parts in wanted:
                    mode, name = self._entry(repository, parts, objects)
                    if mode in _FILES:
                        found[path] = self._compare_file(path, name, _FILES[mode])
        return found

    def state(self, path: str) -> CommittedFile:
        """The same for one file."""
        return self.states((path,))[path]

    def holds_folder(self, path: str) -> bool:
        """Is there a folder of this path in the commit?"""
        if (place := self._place(path)) is None:
            return False
        with self.open_objects() as objects:
            return self._entry(*place, objects)[0] == _FOLDER

    def read_committed(self, path: str, state: CommittedFile) -> bytes | None:
        """The bytes that are committed for a file; None where they cannot be had."""
        if (place := self._place(path)) is None or not state.blob:
            return None
        with self.open_objects() as objects:
            return objects.read(place[0].objects, state.blob, "blob")

    @contextlib.contextmanager
    def open_objects(self) -> Iterator["Objects"]:
        """Whoever asks about many files has git started once for all of them."""
        if (running := getattr(self._running, "objects", None)) is not None:
            yield running
            return
        with Objects(outside=self._roots) as objects:
            self._running.objects = objects
            try:
                yield objects
            finally:
                self._running.objects = None

    def _place(self, path: str) -> tuple[GitRepository, tuple[bytes, ...]] | None:
        """The repository of a path, and the names that lead to it from there."""
        repository = self._repository(os.path.dirname(path))
        if repository is None or not repository.commit:
            return None
        inside = os.path.relpath(path, repository.top)
        return repository, tuple(os.fsencode(inside).split(os.fsencode(os.sep)))

    def _repository(self, folder: str) -> GitRepository | None:
        """The innermost repository that a folder belongs to, if its HEAD was noted."""
        while not os.path.lexists(os.path.join(folder, ".git")):
            above = os.path.dirname(folder)
            if above == folder:
                return None
            folder = above
        return self._note(folder)

    def _note(self, top: str) -> GitRepository | None:
        if top not in self._known and not self._is_sealed:
            self._known[top] = _find_repository(top)
        return self._known.get(top)

    def _entry(self, repository: GitRepository, parts: Sequence[bytes], objects: "Objects") -> tuple[str, str]:
        """The mode and the object that the commit has under a path; empty where it has none."""
        mode, name = _FOLDER, self._tree_of(repository, objects)
        for part in parts:
            if mode != _FOLDER or not name:
                return "", ""
            mode, name = self._names(repository, name, objects).get(part, ("", ""))
        return mode, name

    def _tree_of(self, repository: GitRepository, objects: "Objects") -> str:
        key = (repository.objects, repository.commit)
        if key not in self._roots_of:
            raw = objects.read(*key, "commit")
            found = re.match(rf"tree ({_HASH})\n".encode(), raw or b"")
            if found is None:
                return ""
            self._roots_of[key] = found[1].decode()
        return self._roots_of[key]

    def _names(self, repository: GitRepository, tree: str, objects: "Objects") -> dict[bytes, tuple[str, str]]:
        key = (repository.objects, tree)
        if key not in self._trees:
            raw = objects.read(*key, "tree")
            if raw is None:
                return {}
            self._trees[key] = dict(entries(raw, is_long=len(tree) > _SHORT_HASH))
        return self._trees[key]

    def _compare_file(self, path: str, blob: str, mode: int) -> CommittedFile:
        key = (path, len(blob) > _SHORT_HASH)
        try:
            known = self._hashes.get(key)
            if known is None or known[0] != stamp(os.lstat(path)):
                raw, status = read_whole(path, MOST_FILE_BYTES, follow=False)
                known = (stamp(status), hash_of("blob", raw, is_long=key[1]))
                self._hashes.pop(key, None)
                if is_settled(status):
                    self._hashes[key] = known
        except OSError:
            # What cannot be read cannot be compared. A link or a folder in its place is not what was committed.
            return CommittedFile("different", blob, mode) if _is_file(path) else ABSENT
        return CommittedFile("equal" if known[1] == blob else "different", blob, mode)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _find_repository(top: str) -> GitRepository:
    """The repository that begins in a folder, and its HEAD, read without running anything."""
    folder = os.path.join(top, ".git")
    try:
        if os.path.isfile(folder):  # of a work tree or a submodule: it names the folder
            named = re.fullmatch(r"gitdir: (.+?)\s*", _text(folder, _SHORT_BYTES), re.DOTALL)
            if named is None:
                return GitRepository(top)
            folder = os.path.join(top, named[1])
        common = folder
        if os.path.lexists(os.path.join(folder, "commondir")):
            common = os.path.join(folder, _text(os.path.join(folder, "commondir"), _SHORT_BYTES).strip())
        return GitRepository(top, os.path.realpath(os.path.join(common, "objects")), head_of(folder, common))
    except (OSError, ValueError):
        return GitRepository(top)


def head_of(folder: str, common: str) -> str:
    """The hash that HEAD leads to; empty where it cannot be told."""
    said = _text(os.path.join(folder, "HEAD"), _SHORT_BYTES).strip()
    for _ in range(_DEEPEST_REF):
        if re.fullmatch(_HASH, said):
            return said
        name = said.removeprefix("ref:").strip()
        if name == said or not name.startswith("refs/") or ".." in name or not name.isprintable():
            return ""
        places = [os.path.join(one, name) for one in (folder, common)]
        loose = next((path for path in places if os.path.isfile(path)), None)
        if loose is None:
            packed = _text(os.path.join(common, "packed-refs"), _MOST_REFS_BYTES)
            found = re.search(rf"(?m)^({_HASH}) {re.escape(name)}$", packed)
            return found[1] if found else ""
        said = _text(loose, _SHORT_BYTES).strip()
    return ""


def _text(path: str, most: int) -> str:
    return read_whole(path, most, follow=True)[0].decode("utf-8", errors="surrogateescape")
