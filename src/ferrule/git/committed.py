"""What the commit at HEAD holds, as HEAD was when the session began.

A file whose bytes are those of that commit is no secret of this machine's: whoever has the repository has it. What
commands add to the index, or commit, is in no such commit. A commit is known by its hash, and everything that is read
is held against the hash that leads to it, so that nothing which a command plants among the objects, or beside them
(replacements, grafts, alternates, filters, settings), is believed: to pass for committed, a file has to have the very
bytes. Whatever goes wrong means: not committed.
"""

import contextlib
import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ferrule.system.folder import Stamp, is_settled, read_whole, stamp

if TYPE_CHECKING:
    from ferrule.git.objects import Objects


MOST_BYTES = 16 << 20
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
        from ferrule.git.objects import Objects  # for repositories with secret names in them

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
            from ferrule.git.objects import entries  # as above

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
                from ferrule.git.objects import hash_of  # as above

                raw, status = read_whole(path, MOST_BYTES, follow=False)
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
