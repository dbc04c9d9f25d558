"""Landlock rulesets: the only wall where there are no namespaces, and the second one where there are."""

import contextlib
import errno
import os
import stat
from collections.abc import Sequence

from ferrule.support.sandbox.kernel import Kernel
from ferrule.support.sandbox.view import View

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST = (1 << 13) - 1
"""The rights of version 1."""
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_BIND_AND_CONNECT = 3
_SCOPES = 3
"""No abstract sockets and no signals to processes outside."""
_DEVICES = (
    b"/dev/null",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/random",
    b"/dev/urandom",
    b"/dev/tty",
    b"/dev/ptmx",
)
_TERMINALS = b"/dev/pts"
"""Where there are namespaces, those of the commands; or else everybody's, the user's own among them."""
_EVERY_DEVICE = b"/dev"
"""Whoever can read them all reads what is typed into other terminals and, as root, what lies on the disks."""
_PRIVATE = (b"/tmp", b"/var/tmp", b"/dev/shm")
_LOOK = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP)


class Rulesets:
    """Rulesets by profile, made when first needed and again when what they were made from has changed."""

    def __init__(self, kernel: Kernel, version: int, *, whole: bool, ports: bool) -> None:
        self._kernel = kernel
        self._version = version
        self._whole = whole
        self._ports = ports
        self._made: dict[int, tuple[View, int, list[tuple[bytes, bool, tuple[int, int, int]]]]] = {}
        self._last = -1
        """The ruleset of the last command that had a terminal."""

    def get(self, view: View, host: bytes, files: Sequence[int] = ()) -> int:
        """A descriptor of the ruleset, or -1 where there is no Landlock. `files` are those that the command has."""
        if self._version < (1 if self._whole else 2):
            return -1  # version 1 forbids every rename from folder to folder: worth it as the only wall
        terminals = [file for file in files if os.isatty(file)] if self._whole else []
        if terminals:
            if self._last >= 0:
                os.close(self._last)
            self._last = self._only_wall(view, terminals)
            return self._last
        known = self._made.get(id(view))
        if known is not None:
            _, ruleset, seen = known
            with contextlib.suppress(OSError):
                if all(_state(path, names=names) == state for path, names, state in seen):
                    return ruleset
            os.close(ruleset)
            del self._made[id(view)]
        # Of a writable folder only which one it is, and of a way to something hidden also which names are in it.
        seen = [(host + root, False, _state(host + root, names=False)) for root in view.writable]
        if self._whole:
            seen += [(path, True, _state(path, names=True)) for path in _ways(view)]
        ruleset = self._only_wall(view) if self._whole else self._second_wall(view, host)
        self._made[id(view)] = (view, ruleset, seen)
        return ruleset

    def _rights(self) -> int:
        return _FIRST | (_REFER if self._version >= 2 else 0) | (_TRUNCATE if self._version >= 3 else 0)

    def _second_wall(self, view: View, host: bytes) -> int:
        """Nothing is written but in these folders, whatever the mounts say."""
        rights = self._rights() & ~(_EXECUTE | _READ_FILE | _READ_DIR)
        ruleset = self._new(rights)
        sources = (host + source for _, source in view.layers)
        written = (path for path, _ in view.caches)
        for path in (*(host + root for root in view.writable), *sources, *written, *_PRIVATE, *_DEVICES, _TERMINALS):
            self._grant(ruleset, path, rights)
        return ruleset

    def _only_wall(self, view: View, terminals: Sequence[int] = ()) -> int:
        rights = self._rights() | (_IOCTL_DEV if self._version >= 5 else 0)
        ruleset = self._new(rights)
        reading = _EXECUTE | _READ_FILE | _READ_DIR
        # Names can be listed everywhere: a right to list one folder would be one to list all below it.
        self._grant(ruleset, b"/", _READ_DIR)
        ways = _ways(view)
        for folder in ways:
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                if path not in view.masked and path not in ways and path != _EVERY_DEVICE:
                    self._grant(ruleset, path, reading)
        for path in view.writable:
            self._grant(ruleset, path, rights & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV))
        using = rights & (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV)
        for path in _DEVICES:
            self._grant(ruleset, path, using)
        for terminal in terminals:  # it has them open, and may open them again: as /dev/stdin, for example
            self._kernel.grant(ruleset, terminal, using)
        return ruleset

    def _new(self, rights: int) -> int:
        ports = _BIND_AND_CONNECT if self._ports and self._version >= 4 else 0
        scopes = _SCOPES if self._version >= 6 else 0
        return self._kernel.ruleset(files=rights, ports=ports, scopes=scopes, version=self._version)

    def _grant(self, ruleset: int, path: bytes, rights: int) -> None:
        # Links are granted as what they lead to, unless that is named elsewhere: a rule belongs to a file, not a name.
        try:
            place = os.open(path, _LOOK | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            return  # what does not exist cannot be granted, and stays forbidden
        try:
            mode = os.fstat(place).st_mode
            if not stat.S_ISLNK(mode):
                self._kernel.grant(ruleset, place, rights if stat.S_ISDIR(mode) else rights & _OF_FILES)
        finally:
            os.close(place)


def _ways(view: View) -> list[bytes]:
    """The folders that lead to something hidden, outside of the writable ones, where nothing can be hidden."""
    ways: set[bytes] = set()
    for path in (*view.masked, _EVERY_DEVICE):
        if os.path.lexists(path) and not any(path.startswith(root + b"/") for root in view.writable):
            names = path.split(b"/")[1:]
            ways |= {b"/" + b"/".join(names[:count]) for count in range(len(names))}
    return sorted(ways)


def _state(path: bytes, *, names: bool) -> tuple[int, int, int]:
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_mtime_ns if names else 0
