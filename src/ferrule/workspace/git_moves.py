"""What commands have moved in git's own data: said in words, each with the command that moves it back."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from shlex import quote

from ferrule.workspace.journal import Node, NodeChange
from ferrule.workspace.tree_state import GIT

Read = Callable[[Node], bytes | None]
_SHORT = 10


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


def git_moves(changes: Sequence[NodeChange], read: Read) -> tuple[str, ...]:
    """What has moved, in the order of the repositories; nothing of those that are gone as a whole."""
    gone = tuple(f"{repository}{os.sep}" for repository in removed_repositories(changes))
    by_repository: dict[str, list[NodeChange]] = {}
    for one in changes:
        top, inside, _ = one.path.rpartition(f"{os.sep}{GIT}{os.sep}")
        if inside and not one.path.startswith(tuple(f"{repository}{os.sep}" for repository in gone)):
            by_repository.setdefault(f"{top}{os.sep}{GIT}", []).append(one)
    return tuple(said for repository, ones in sorted(by_repository.items()) for said in _told(repository, ones, read))


def _told(repository: str, changes: Sequence[NodeChange], read: Read) -> Iterable[str]:
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    packed: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for one in changes:
        name = one.path.removeprefix(repository + os.sep)
        for side, packs, node in zip(sides, packed, (one.before, one.after), strict=True):
            text = ((read(node) if node is not None else None) or b"").decode(errors="replace").strip()
            if name == "packed-refs":
                packs.update(_packed(text))
            elif text and (name == "HEAD" or name.startswith("refs" + os.sep)):
                side[name.replace(os.sep, "/")] = text
    before, after = ({**packs, **side} for packs, side in zip(packed, sides, strict=True))
    where = os.path.dirname(repository)
    head = before.get("HEAD", "")
    if head and head != after.get("HEAD", ""):
        yield _head_moved(head, after.get("HEAD", ""), where)
    moved = [name for name in sorted({*before, *after} - {"HEAD"}) if before.get(name) != after.get(name)]
    for name in moved:
        yield _ref_moved(name, before, after, where)
    if any(one.path == os.path.join(repository, "index") for one in changes):
        yield f"The index in {where} was written. `git status` shows what is staged, and `git reset` stages nothing."


def _head_moved(before: str, after: str, where: str) -> str:
    name = before.removeprefix("ref: refs/heads/")
    back = f"git switch {quote(name)}" if name != before else f"git switch --detach {before[:_SHORT]}"
    return f"HEAD in {where} led to {_plain(before)} and leads to {_plain(after)} now. `{back}` moves it back."


def _ref_moved(name: str, before: Mapping[str, str], after: Mapping[str, str], where: str) -> str:
    was, now = before.get(name, ""), after.get(name, "")
    short = name.removeprefix("refs/heads/").removeprefix("refs/tags/")
    if name == "refs/stash":
        if was:
            return f"The stash in {where} was {was[:_SHORT]}. `git stash store {was}` brings it back."
        return f"A stash was made in {where}. `git stash drop` removes it."
    if not was:
        kind = "tag" if name.startswith("refs/tags/") else "branch"
        return f"{short} was made in {where}. `git {kind} -d {quote(short)}` removes it."
    if not now:
        return f"{short} was removed in {where}. `git update-ref {quote(name)} {was}` brings it back."
    return (
        f"{short} in {where} moved from {was[:_SHORT]} to {now[:_SHORT]}. `git reset --soft {was[:_SHORT]}` on it, or "
        f"`git update-ref {quote(name)} {was}`, moves it back."
    )


def _plain(head: str) -> str:
    return head.removeprefix("ref: refs/heads/")[:40] or "nothing"


def _packed(text: str) -> dict[str, str]:
    lines = (line.split(" ") for line in text.splitlines() if line and line[0] not in "#^")
    return {parts[1]: parts[0] for parts in lines if len(parts) == 2}
