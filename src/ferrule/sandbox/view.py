"""The paths of a profile in the order in which they are mounted."""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ferrule.sandbox.placeholders import ways

PRIVATE = (b"/tmp", b"/var/tmp", b"/run")
"""The places that are empty to begin with."""

Branch: TypeAlias = "dict[bytes, Branch | None]"
"""Names in a folder: None for what is to be kept as it is, or what hangs below."""


class SandboxView(NamedTuple):
    """A profile's paths in the order in which they are worked through."""

    writable: tuple[bytes, ...]
    kept: tuple[tuple[bytes, Branch], ...]
    """For each writable folder what is to be kept below it."""
    masked: tuple[bytes, ...]
    shown: tuple[bytes, ...] = ()
    """What can be read of the private places."""
    held: tuple[bytes, ...] = ()
    """The folders that lead to what is masked, and are not yet mounts because of what is kept."""
    closed: tuple[bytes, ...] = ()
    """Those that cannot be written, because too many of those are below."""
    hidden: tuple[bytes, ...] = ()
    layers: tuple[tuple[bytes, bytes], ...] = ()
    caches: tuple[tuple[bytes, bytes], ...] = ()
    replaced: tuple[tuple[bytes, bytes], ...] = ()
    sealed: tuple[bytes, ...] = ()
    """The hidden folders again: read-only once everything is in its place."""


class ProfilePaths(NamedTuple):
    """The paths of a profile as the engine sends them; pairs are sent flat."""

    writable: list[bytes]
    kept: list[bytes]
    masked: list[bytes]
    shown: list[bytes]
    hidden: list[bytes]
    layers: list[bytes]
    caches: list[bytes]
    replaced: list[bytes]


def view(paths: ProfilePaths, *, by_mounts: bool = True) -> SandboxView:
    """Check the paths and sort them. Raises OSError for those that cannot be enforced.

    `by_mounts`: a mount that hides a folder hides what is writable in it, too.
    """
    for path in (path for group in paths for path in group):
        if not path.startswith(b"/") or path != os.path.normpath(path):
            raise OSError(errno.EINVAL, "A path of the profile is not absolute.", path)
    roots = sorted(set(paths.writable))
    if b"/" in roots:
        raise OSError(errno.EINVAL, "The whole machine cannot be made writable.", b"/")
    layers, replaced = _pairs(paths.layers), _pairs(paths.replaced)
    for path in paths.masked:
        for root in roots:
            if root == path or (by_mounts and root.startswith(path.rstrip(b"/") + b"/")):
                raise OSError(errno.EINVAL, "A writable folder lies in one that is hidden.", path)
    branches: dict[bytes, Branch] = {}
    for path in sorted(set(paths.kept)):
        around = [root for root in roots if path == root or path.startswith(root + b"/")]
        if not around:
            continue  # outside of the writable folders everything is kept
        root = max(around, key=len)
        if path == root:
            raise OSError(errno.EINVAL, "A folder cannot be both writable and kept.", path)
        _hang(branches.setdefault(root, {}), path[len(root) + 1 :].split(b"/"))
    covered = (*paths.masked, *(path for path, _ in replaced))
    held, closed = ways(map(os.fsdecode, covered), [os.fsdecode(root) for root in roots])
    private = (*PRIVATE, *paths.hidden)
    return SandboxView(
        tuple(roots),
        tuple(branches.items()),
        tuple(sorted(set(paths.masked))),
        tuple(path for path in sorted(set(paths.shown)) if _is_private(path, private) and not _within(path, roots)),
        tuple(path for path in map(os.fsencode, held) if not _is_held(path, roots, branches)),
        tuple(map(os.fsencode, closed)),
        tuple(sorted(set(paths.hidden))),
        tuple(sorted(layers)),
        tuple(sorted(_pairs(paths.caches))),
        tuple(sorted(replaced)),
        tuple(sorted(set(paths.hidden))),
    )


def _pairs(flat: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _within(path: bytes, folders: Iterable[bytes]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(b"/") + b"/") for folder in folders)


def _is_private(path: bytes, private: Sequence[bytes]) -> bool:
    return path not in private and _within(path, private)


def _is_held(path: bytes, roots: Sequence[bytes], branches: Mapping[bytes, Branch]) -> bool:
    """Is a folder in one that is kept, or itself on the way to something that is?"""
    root = max((root for root in roots if _within(path, [root])), key=len)
    below: Branch | None = branches.get(root, {})
    for name in path[len(root) + 1 :].split(b"/"):
        if below is None:
            return True
        if name not in below:
            return False
        below = below[name]
    return True


def _hang(branch: Branch, names: list[bytes]) -> None:
    *way, last = names
    for name in way:
        below = branch.setdefault(name, {})
        if below is None:
            return  # a folder on the way is kept as a whole
        branch = below
    branch[last] = None
