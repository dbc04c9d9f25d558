"""Trust in a project's own rules and code: in these contents, of these files, in this folder, and in nothing else.

A project is known by its real path and the folder that is there now, and its rules by a hash of them all. A folder
that is moved or replaced, a file that is changed, added or removed, ends the trust. Nothing is inherited: not from the
folder above, and not from a repository that a `.git` file points to, for anybody can write such a file.
"""

import hashlib
import os
import stat
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.permissions.kept import Kept
from ferrule.support.beneath import Folder, open_folder, read_regular

State = Literal["trusted", "changed", "unknown"]

_FILE_BYTES = 1 << 20
_FILES = 256


class Trusted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project that the user trusts."""

    device: int
    inode: int
    fingerprint: str
    """The hash of its rules."""
    since: float


class _Trusts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file, by the real paths of the projects."""

    version: Literal[1] = 1
    workspaces: dict[str, Trusted] = {}


class Seen(NamedTuple):
    """A look at a project: what decides is the very content that was hashed."""

    state: State
    contents: Mapping[str, bytes]
    """The files that are there, by the names that were given."""
    fingerprint: str
    """Empty where the files cannot be trusted at all."""
    obstacle: str = ""
    """Why they cannot, as a sentence."""


class Trust:
    """What the user trusts, kept in the state folder."""

    def __init__(self, state_folder: str, about: Literal["rules", "code"] = "rules") -> None:
        self._folder = os.path.realpath(state_folder)
        name = "projects.json" if about == "rules" else "code.json"
        self._kept = Kept(os.path.join(self._folder, "trust", name), _Trusts)

    def state(self, workspace: str, files: Sequence[str]) -> State:
        """Are these files, absolute or from the workspace, as the user trusted them?"""
        return self.look(workspace, files).state

    def look(self, workspace: str, files: Sequence[str]) -> Seen:
        """The files' contents, and whether the user trusts just these."""
        real = os.path.realpath(workspace)
        try:
            with open_folder(real) as folder:
                here = os.stat(real) if folder.descriptor is None else os.fstat(folder.descriptor)
                names = {name: _from(os.path.abspath(workspace), real, name) for name in files}
                contents = _contents(folder, names)
        except _UntrustworthyError as error:
            return Seen("changed" if _key(real) in self._kept.read().workspaces else "unknown", {}, "", str(error))
        except OSError as error:
            return Seen("unknown", {}, "", f"{workspace} cannot be looked at ({error.strerror}).")
        found = {name: raw for name, raw in contents.items() if raw is not None}
        fingerprint = _fingerprint({names[name]: raw for name, raw in contents.items()})
        if within(self._folder, real):
            return Seen("unknown", found, "", "What the user trusts is kept inside of the workspace.")
        trusted = self._kept.read().workspaces.get(_key(real))
        if trusted is None or (trusted.device, trusted.inode) != (here.st_dev, here.st_ino):
            return Seen("unknown", found, fingerprint)
        return Seen("trusted" if trusted.fingerprint == fingerprint else "changed", found, fingerprint)

    def grant(self, workspace: str, files: Sequence[str], *, seen: str = "") -> None:
        """Trust the files as they are; `seen` is the fingerprint of what the user was shown.

        Raises: ConfigError when they changed since, or cannot be trusted.
        """
        look = self.look(workspace, files)
        if not look.fingerprint:
            raise ConfigError(look.obstacle)
        if seen not in {"", look.fingerprint}:
            raise ConfigError(f"The rules of {workspace} have changed since they were shown. Look at them again.")
        real = os.path.realpath(workspace)
        here = os.stat(real)
        trusted = Trusted(here.st_dev, here.st_ino, look.fingerprint, time.time())
        self._kept.change(lambda kept: _Trusts(workspaces=kept.workspaces | {_key(real): trusted}))

    def revoke(self, workspace: str) -> None:
        """Trust the project no more."""
        key = _key(os.path.realpath(workspace))
        self._kept.change(
            lambda kept: _Trusts(workspaces={name: one for name, one in kept.workspaces.items() if name != key})
        )

    def list(self) -> Mapping[str, Trusted]:
        """The projects that were trusted, by their real paths; whether they still are, `state` says."""
        return self._kept.read().workspaces


class _UntrustworthyError(Exception):
    """A file of rules that is no plain file of the project's own."""


def _key(real: str) -> str:
    # A path may hold bytes that are no text; JSON holds text only.
    return os.fsencode(real).decode("utf-8", "backslashreplace")


def _from(workspace: str, real: str, name: str) -> str:
    """A file's name from the workspace, whichever way it was given."""
    path = os.path.normpath(os.path.join(real, name))
    folder = next((one for one in (real, workspace) if within(path, one) and path != one), None)
    if folder is None:
        raise _UntrustworthyError(f"{name} is not in the workspace.")
    return os.path.relpath(path, folder)


def _contents(folder: Folder, names: Mapping[str, str]) -> dict[str, bytes | None]:
    if len(names) > _FILES:
        raise _UntrustworthyError(f"There are more than {_FILES} files, which nobody can look through.")
    return {given: _content(folder, name) for given, name in names.items()}


def _content(folder: Folder, name: str) -> bytes | None:
    """A file's content, None where there is none. No step on the way to it is a link."""
    *way, last = name.split(os.sep)
    try:
        _refuse_links(folder, [*way, last])
        with folder.below(way) as inner:
            descriptor = inner.open(last)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _UntrustworthyError(f"{name} cannot be read ({error.strerror}).") from error
    raw = read_regular(descriptor, _FILE_BYTES)
    if raw is None:
        raise _UntrustworthyError(f"{name} is not a regular file, so it cannot be trusted.")
    if len(raw) > _FILE_BYTES:
        raise _UntrustworthyError(f"{name} is larger than {_FILE_BYTES:,} bytes, so it cannot be trusted.")
    return raw


def _refuse_links(folder: Folder, parts: Sequence[str]) -> None:
    """Say so where a step is a link. Opening refuses links anyway; this tells one from what is not there."""
    for count in range(1, len(parts) + 1):
        path = os.path.join(folder.path, *parts[:count])
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise _UntrustworthyError(f"{path} is a link, so it cannot be trusted. Put the file itself there.")


def _fingerprint(contents: Mapping[str, bytes | None]) -> str:
    """One hash over names and contents, each with its length: no two projects run together into the same bytes."""
    total = hashlib.sha256()
    for name, raw in sorted(contents.items()):
        for part in (os.fsencode(name), b"missing" if raw is None else b"there", raw or b""):
            total.update(len(part).to_bytes(8, "big"))
            total.update(part)
    return total.hexdigest()
