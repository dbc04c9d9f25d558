"""What commands have moved in git's own data: said in words, each with the command that moves it back.

The commands work one after the other, in the order in which they are said. None of them touches a file of the work
tree, which is what it was already, and none writes over what somebody has moved since.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ferrule.checkpoints.tree import GIT
from ferrule.files.journal import Node, NodeChange
from ferrule.git import GitIndex, read_index

if TYPE_CHECKING:
    from ferrule.checkpoints.store import ObjectPins


PACKED_REFS = "packed-refs"
STASH_LOG = os.path.join("logs", "refs", "stash")
_HEADS = "refs/heads/"
_STASH = "refs/stash"
_SHORT = 10
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_STAGED = 20
"""Of more files nobody wants to read the names in a command."""
_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


class GitDataSource(Protocol):
    """Where git's data is read from, as it was and as it is."""

    def read(self, node: Node) -> bytes | None:
        """The bytes of a file as it was."""

    def now(self, path: str) -> bytes | None:
        """The bytes of a file as it is."""

    def pins_of(self, repository: str) -> "ObjectPins":
        """The pinned objects of a repository."""


class GitMove(NamedTuple):
    """Something that was moved."""

    repository: str
    words: str
    needs: tuple[str, ...] = ()
    """The objects without which the command that is named fails."""


class _Sides(NamedTuple):
    """A repository before the command and after it: its names, and what each leads to."""

    repository: str
    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def where(self) -> str:
        return os.path.dirname(self.repository)


def removed_repositories(changes: Iterable[NodeChange]) -> tuple[str, ...]:
    """The folders of git's data that are no repository any more: their HEAD is gone, or all of their objects.

    What protects git's settings keeps a part of the folder from being removed.
    """
    gone = {one.path for one in changes if one.before is not None and one.after is None}
    return tuple(sorted({os.path.dirname(path) for path in gone if is_vital(path)}))


def is_vital(path: str) -> bool:
    """Is what is there needed for a folder of git's data to be a repository?"""
    _, inside, name = path.rpartition(f"{os.sep}{GIT}{os.sep}")
    *uppers, last = name.split(os.sep)
    return bool(inside) and last in {"HEAD", "objects"} and not {"refs", "logs"}.intersection(uppers)


def is_name(path: str, repository: str) -> bool:
    """Is it a file by which a repository finds its commits?"""
    name = path.removeprefix(repository + os.sep)
    return name in {"HEAD", PACKED_REFS} or name.startswith("refs" + os.sep)


def git_moves(changes: Sequence[NodeChange], source: GitDataSource) -> tuple[GitMove, ...]:
    """What has moved, in the order of the repositories; nothing of those that are gone as a whole."""
    gone = tuple(f"{repository}{os.sep}" for repository in removed_repositories(changes))
    by_repository: dict[str, dict[str, NodeChange]] = {}
    for one in changes:
        top, inside, name = one.path.rpartition(f"{os.sep}{GIT}{os.sep}")
        if inside and not one.path.startswith(gone):
            by_repository.setdefault(f"{top}{os.sep}{GIT}", {})[name] = one
    return tuple(
        said for repository, ones in sorted(by_repository.items()) for said in _find_moves(repository, ones, source)
    )


def _find_moves(repository: str, changes: Mapping[str, NodeChange], source: GitDataSource) -> Iterator[GitMove]:
    head = changes.get("HEAD")
    where = os.path.dirname(repository)
    if head is not None and head.before is None:
        yield GitMove(repository, f"A repository was begun in {where}. It was left there.")
        return
    sides = _sides(repository, changes, source)
    for name, kind in _UNDER_WAY.items():
        if name in changes and changes[name].before is None:
            yield GitMove(repository, f"A {kind} is under way in {where}. `git {kind} --quit` ends it.")
    if _can_be_said(sides.before.get("HEAD", "")) and sides.before["HEAD"] != sides.after.get("HEAD"):
        yield _head_moved(sides)
    moved = [name for name in {*sides.before, *sides.after} if sides.before.get(name) != sides.after.get(name)]
    # Where `a/b` was made in the place of `a`, it has to go first.
    for name in sorted(moved, key=lambda name: (name in sides.before, name)):
        if name not in {"HEAD", _STASH} and (name not in sides.before or _can_be_said(sides.before[name])):
            yield _ref_moved(name, sides)
    yield from _stashes_moved(sides, changes.get(STASH_LOG), source)
    if "index" in changes:
        yield from _index_moved(sides, changes["index"], source)


def _sides(repository: str, changes: Mapping[str, NodeChange], source: GitDataSource) -> _Sides:
    loose: tuple[dict[str, str], dict[str, str]] = ({}, {})
    packed: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for name, one in changes.items():
        for side, packs, node in zip(loose, packed, (one.before, one.after), strict=True):
            if name == PACKED_REFS:
                packs.update(_parse_packed_refs(_text(node, source)))
            elif (name == "HEAD" or name.startswith("refs" + os.sep)) and (text := _text(node, source).strip()):
                side[name.replace(os.sep, "/")] = text
    for name in {*packed[0], *packed[1]} - {*loose[0], *loose[1]}:
        # A file of its own stands before what is packed, and of this one nothing has changed.
        if packed[0].get(name) != packed[1].get(name) and source.now(_place(repository, name)) is not None:
            for packs in packed:
                packs.pop(name, None)
    before, after = ({**packs, **side} for packs, side in zip(packed, loose, strict=True))
    return _Sides(repository, before, after)


def _head_moved(sides: _Sides) -> GitMove:
    was, now = sides.before.get("HEAD", ""), sides.after.get("HEAD", "")
    target = _target(was)
    back = f"git symbolic-ref HEAD {quote(target)}" if target else f"git update-ref --no-deref HEAD {was}"
    words = f"HEAD in {sides.where} led to {_plain(was)} and leads to {_plain(now)} now. `{back}` moves it back."
    return GitMove(sides.repository, words, () if target else (was,))


def _ref_moved(name: str, sides: _Sides) -> GitMove:
    was, now = sides.before.get(name, ""), sides.after.get(name, "")
    short, where, quoted = name.removeprefix(_HEADS).removeprefix("refs/tags/"), sides.where, quote(name)
    if not was:
        back = f"git symbolic-ref -d {quoted}" if _target(now) else f"git update-ref -d {quoted}{_only_if(now)}"
        return GitMove(sides.repository, f"{short} was made in {where}. `{back}` removes it.")
    if target := _target(was):
        back = f"git symbolic-ref {quoted} {quote(target)}"
    elif _target(now):
        back = f"git update-ref --no-deref {quoted} {was}"
    else:
        back = f"git update-ref {quoted} {was}{_only_if(now)}"
    needs = () if target else (was,)
    if not now:
        return GitMove(sides.repository, f"{short} was removed in {where}. `{back}` brings it back.", needs)
    words = f"{short} in {where} moved from {_plain(was)} to {_plain(now)}. `{back}` moves it back."
    return GitMove(sides.repository, words, needs)


def _stashes_moved(sides: _Sides, log: NodeChange | None, source: GitDataSource) -> Iterator[GitMove]:
    """The newest stash is the last line of its log, and the first by its number."""
    if log is None:
        return
    before, after = (_stashes(_text(node, source)) for node in (log.before, log.after))
    for number, made in reversed(list(enumerate(reversed(after)))):
        if made not in before:
            words = f"A stash was made in {sides.where}. `git stash drop {quote(f'stash@{{{number}}}')}` removes it."
            yield GitMove(sides.repository, words)
    for lost in before:
        if lost not in after:
            back = f"git stash store -m {quote(lost.message)} {lost.commit}"
            words = f"A stash in {sides.where} was removed. `{back}` brings it back as the newest."
            yield GitMove(sides.repository, words, (lost.commit,))


class _Stash(NamedTuple):
    """One line of the log of stashes."""

    commit: str
    made: str
    """Who made it, and when."""
    message: str


def _stashes(text: str) -> list[_Stash]:
    found = []
    for line in text.splitlines():
        about, _, message = line.partition("\t")
        _, commit, made = [*about.split(" ", 2), "", ""][:3]
        if _HASH.fullmatch(commit):
            found.append(_Stash(commit, made, "".join(one if one.isprintable() else " " for one in message)))
    return found


def _index_moved(sides: _Sides, change: NodeChange, source: GitDataSource) -> Iterator[GitMove]:
    before, after = (_index(node, source) for node in (change.before, change.after))
    where = sides.where
    if before is not None and after is not None and before[:2] == after[:2]:
        return  # only what git remembers of the files' times
    if before is not None and not before.files:
        words = f"Files in {where} were staged, and none was before. `git read-tree --empty` stages none."
        yield GitMove(sides.repository, words)
    elif before is not None and before.tree and before.tree == _tree_before(sides, source):
        words = f"The index in {where} was written. `git reset` makes it that of HEAD, which it was before."
        yield GitMove(sides.repository, words)
    elif before is not None and after is not None and (put := _build_staging(before, after)):
        words = f"What is staged in {where} has changed. `{put.command}` stages what was staged before."
        yield GitMove(sides.repository, words, put.needs)
    else:
        words = (
            f"The index in {where} was written. `git reset` makes it that of HEAD; what was staged besides has to be "
        )
        yield GitMove(sides.repository, f"{words}staged again.")


def _index(node: Node | None, source: GitDataSource) -> GitIndex | None:
    if node is None:
        return GitIndex({})
    raw = source.read(node)
    return None if raw is None else read_index(raw)


def _tree_before(sides: _Sides, source: GitDataSource) -> str:
    """The tree of the commit that HEAD leads to when everything that has moved is back."""
    said = sides.before.get("HEAD") or _now(sides.repository, "HEAD", source)
    if target := _target(said):
        said = sides.before.get(target) or _now(sides.repository, target, source)
    return source.pins_of(sides.repository).tree_of(said) if said else ""


class _Staging(NamedTuple):
    """A command that makes one index of another."""

    command: str
    needs: tuple[str, ...]


def _build_staging(before: GitIndex, after: GitIndex) -> _Staging | None:
    """None where the command would be too long, or not all of it can be said: in a merge, and of odd names."""
    put = {name: one for name, one in before.files.items() if after.files.get(name) != one or not after.is_merged}
    gone = after.files.keys() - before.files.keys()
    is_said = all(_is_text(name) for name in (*put, *gone))
    if not before.is_merged or not is_said or len(put) + len(gone) > _MOST_STAGED:
        return None
    words = ["git", "update-index", "--add", "--replace"]
    for name, one in sorted(put.items()):
        words += ["--cacheinfo", f"{one.mode:o},{one.blob},{name.decode()}"]
    if gone:
        words += ["--force-remove", "--", *(name.decode() for name in sorted(gone))]
    return _Staging(" ".join(map(quote, words)), tuple(one.blob for one in put.values() if not one.is_link))


def _is_text(name: bytes) -> bool:
    try:
        return name.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _text(node: Node | None, source: GitDataSource) -> str:
    return ((source.read(node) if node is not None else None) or b"").decode(errors="replace")


def _now(repository: str, name: str, source: GitDataSource) -> str:
    return (source.now(_place(repository, name)) or b"").decode(errors="replace").strip()


def _place(repository: str, name: str) -> str:
    return os.path.join(repository, *name.split("/"))


def _target(said: str) -> str:
    """The name that another one leads to; empty where it leads to a commit."""
    return said.removeprefix("ref:").strip() if said.startswith("ref:") else ""


def _can_be_said(said: str) -> bool:
    """May it stand in a command? A command could have written anything there."""
    return bool(_HASH.fullmatch(said) or _target(said).startswith("refs/"))


def _only_if(now: str) -> str:
    """The end of a command that shall fail where a name leads elsewhere by now, or is there again."""
    if not now:
        return f" {quote('')}"
    return f" {now}" if _HASH.fullmatch(now) else ""


def _plain(said: str) -> str:
    return _target(said).removeprefix(_HEADS)[:40] or said[:_SHORT] or "nothing"


def _parse_packed_refs(text: str) -> dict[str, str]:
    lines = (line.split(" ") for line in text.splitlines() if line and line[0] not in "#^")
    return {parts[1]: parts[0] for parts in lines if len(parts) == 2}
