"""Compute the mounts that enforce a profile, and check and sort its paths.

Nothing is mounted here: the mounts are for programs that take them as options.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ferrule.sandbox import Profile, SandboxError

Kind = Literal["bind", "read-only", "empty", "nothing"]
"""Itself and writable; itself and read-only; an empty read-only folder; a file that cannot be opened."""


class Mount(NamedTuple):
    """What is mounted on a path. Those of upper folders come first."""

    path: str
    kind: Kind
    source: str = ""
    """What is mounted there, where that is not the path itself."""


class Ways(NamedTuple):
    """The folders that lead from writable ones to what is masked: renamed, they would take it to another path."""

    held: list[str]
    """Those that become mount points, which cannot be renamed; from the top."""
    closed: list[str]
    """Those that become read-only, because too many ways go on below them."""


_MOST_WAYS = 512
"""With so many mounts a command starts half a second later."""


class LinkError(SandboxError):
    """A symbolic link that must stay as it is: a plain mount lies on what it points to, and not on the link."""


def layout(profile: Profile, *, private: Sequence[str]) -> tuple[Mount, ...]:
    """The mounts for a profile where the folders `private` are replaced by empty ones.

    Raises: SandboxError where the profile cannot be had by mounts.
    """
    pairs = dict((*profile.layers, *profile.replaced))
    for path in (*profile.writable, *profile.kept, *profile.masked, *pairs, *pairs.values()):
        if not os.path.isabs(path) or os.path.normpath(path) != path or "\0" in path:
            raise SandboxError(f"The sandbox needs absolute paths, and {path!r} is none.")
    found: dict[str, Kind] = dict.fromkeys((*(path for path, _ in profile.layers), *profile.writable), "bind")
    for path in _tops([path for path in profile.kept if os.path.lexists(path)], profile.writable):
        root = innermost(path, profile.writable)
        if root is None or path == root:
            found |= {path: "read-only"} if root else {}
            continue
        _no_links(path, root)
        # What can be renamed can be replaced; a mount point cannot.
        for upper in between(root, path):
            found.setdefault(upper, "bind")
        found[path] = "read-only"
    masked = list(dict.fromkeys(_find_masked(profile)))
    shown = _visible_paths(profile, masked, private)
    found |= dict.fromkeys(shown, "read-only")
    seen = (*profile.writable, *shown)
    masks = {
        path: kind
        for path in masked
        if (innermost(path, private) is None or innermost(path, seen) is not None) and (kind := _mask(path))
    }
    replaced: dict[str, Kind] = {path: "read-only" for path, _ in profile.replaced if os.path.isfile(path)}
    _hold(found, (*masks, *replaced), profile.writable)
    found |= replaced | masks
    _drop_below_masks(found, profile.writable)
    return tuple(
        Mount(path, found[path], pairs.get(path, "") if path not in masks else "") for path in sorted(found, key=_parts)
    )


def ways(masked: Iterable[str], writable: Sequence[str], *, most: int = _MOST_WAYS) -> Ways:
    """The folders on the way to what is masked. Where there are too many, those of the upper levels."""
    depths: dict[str, int] = {}
    folders = set(masked)
    for path in folders:
        root = innermost(path, writable)
        if root is not None and folders.isdisjoint(between(root, path)):
            depths |= {upper: depth for depth, upper in enumerate(between(root, path), start=1)}
    deepest = max(depths.values(), default=0)
    while sum(depth <= deepest for depth in depths.values()) > most:
        deepest -= 1
    closed = {os.path.dirname(upper) for upper, depth in depths.items() if depth == deepest + 1}
    held = {upper for upper, depth in depths.items() if depth <= deepest} - closed
    return Ways(sorted(held, key=_parts), sorted(closed, key=_parts))


def within(path: str, folder: str) -> bool:
    """Is it that folder, or below it?"""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def innermost(path: str, folders: Iterable[str]) -> str | None:
    """The deepest of the folders that the path is in."""
    return max((folder for folder in folders if within(path, folder)), key=len, default=None)


def between(root: str, path: str) -> list[str]:
    """The folders from `root` to `path`, without either, from the top."""
    uppers: list[str] = []
    upper = os.path.dirname(path)
    while len(upper) > len(root):
        uppers.append(upper)
        upper = os.path.dirname(upper)
    return uppers[::-1]


def _parts(path: str) -> list[str]:
    return path.strip(os.sep).split(os.sep) if path != os.sep else []


def _tops(paths: Sequence[str], writable: Sequence[str]) -> list[str]:
    """Without those that lie in another one, which covers them."""

    def covered(path: str) -> bool:
        root = innermost(path, writable)
        uppers = (upper for upper in paths if upper != path and within(path, upper))
        return any(innermost(upper, writable) == root for upper in uppers)

    return sorted({path for path in paths if not covered(path)}, key=_parts)


def _no_links(path: str, root: str) -> None:
    for part in (*between(root, path), path):
        if os.path.islink(part):
            raise LinkError(
                f"The sandbox cannot protect {part}, because it is a symbolic link. Put what it points to in its "
                "place, or choose another sandbox in the settings."
            )


def _find_masked(profile: Profile) -> Iterator[str]:
    """What is masked, or what a masked link leads to; but a link that a command has left does not hide everything."""
    for path in profile.masked:
        real = os.path.realpath(path)
        is_around = real == os.sep or any(within(root, real) for root in profile.writable)
        if real == path or not is_around:
            yield real


def _visible_paths(profile: Profile, masked: Sequence[str], private: Sequence[str]) -> list[str]:
    """What is to be seen of the private folders; in a writable folder all is, and of a masked one nothing."""
    return [
        path
        for path in dict.fromkeys(map(os.path.realpath, profile.shown))
        if innermost(path, private) not in {None, path}
        and innermost(path, (*profile.writable, *masked)) is None
        and os.path.exists(path)
    ]


def _hold(found: dict[str, Kind], masks: Iterable[str], writable: Sequence[str]) -> None:
    """Keep what is masked where it is: the next command masks it at the path at which it was found."""
    held, closed = ways(masks, writable)
    for upper in held:
        root = innermost(upper, writable) or upper
        # What is read-only as a whole holds all in it, and a mount in it would be writable.
        if all(found.get(each, "bind") == "bind" for each in (root, *between(root, upper))):
            found.setdefault(upper, "bind")
    for folder in closed:
        for path in [path for path in found if within(path, folder) and found[path] == "bind"]:
            if path == folder or path not in writable:
                del found[path]
        found[folder] = "read-only"


def _mask(path: str) -> Kind | None:
    """How this is hidden; nothing is to be hidden where nothing is, or where this user cannot look anyway."""
    try:
        return "empty" if stat.S_ISDIR(os.stat(path).st_mode) else "nothing"
    except OSError:
        return None


def _drop_below_masks(found: dict[str, Kind], writable: Sequence[str]) -> None:
    """Drop what would show again a part of a masked folder; a writable folder in it is meant to be seen."""
    for mask in [path for path, kind in found.items() if kind == "empty"]:
        for path in [path for path in found if path != mask and within(path, mask)]:
            if not any(within(path, root) and within(root, mask) for root in writable):
                del found[path]
