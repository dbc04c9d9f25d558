"""The system calls that Python has no words for, as the spawner uses them. Linux on x86_64 and aarch64 only.

Loaded by the spawner, which has one thread. Failure raises OSError.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from typing import Any

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MAY_WRITE, MAY_RUN, MAY_HAVE_DEVICES = 1, 2, 4

_SIGCHLD = 17
_EMPTY_PATH = 0x1000
_RECURSIVE = 0x8000
_TREE_CLONE, _TREE_CLOEXEC = 1, 0x80000
_FROM_EMPTY, _TO_EMPTY = 4, 0x40
_ATTR_RDONLY = 1
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_RDONLY, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1, 0x4000, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_READ, _PR_CAPBSET_DROP = 1, 4, 23, 24
_PR_SET_SECCOMP, _PR_SET_SECUREBITS, _PR_SET_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 28, 36, 38, 47
_SECUREBITS = 0x2F
"""Being root grants nothing, and none of this can be taken back; `keep caps` stays off."""
_CAPABILITY_VERSION = 0x20080522
_NUMBERS = {
    "x86_64": {"clone": 56},
    "aarch64": {"clone": 220},
}
# The same on every machine, being younger than the split of the tables.
_OPEN_TREE, _MOVE_MOUNT, _CLOSE_RANGE, _MOUNT_SETATTR = 428, 429, 436, 442
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH = 1


class Kernel:
    """The C library, with the calls prepared before any fork needs them."""

    def __init__(self) -> None:
        # PyDLL keeps the interpreter's lock: a clone must not come back in the child to a lock that nobody gives.
        self._libc = ctypes.PyDLL(None, use_errno=True)
        self._syscall: Any = self._libc.syscall
        self._syscall.restype = ctypes.c_long
        self._prctl_: Any = self._libc.prctl
        self._prctl_.argtypes = [ctypes.c_int, *4 * [ctypes.c_ulong]]
        self._mount: Any = self._libc.mount
        self._mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
        self._capset: Any = self._libc.capset
        self._clone = _NUMBERS[os.uname().machine]["clone"]
        self._capabilities = [number for number in range(64) if self._prctl_(_PR_CAPBSET_READ, number, 0, 0, 0) >= 0]
        self._header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
        self._nothing = bytes(24)

    def clone(self, flags: int) -> int:
        """Fork into new namespaces: 0 in the child. Only for a process with one thread."""
        return self._checked(self._syscall(self._clone, ctypes.c_ulong(flags | _SIGCHLD), 0, 0, 0, 0))

    def unshare(self, flags: int) -> None:
        self._checked(self._libc.unshare(flags))

    def private(self) -> None:
        """What is mounted elsewhere from now on does not show here, nor the other way round."""
        self._checked(self._mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))

    def mount(self, kind: bytes, place: bytes, options: bytes = b"", *, allowed: int = MAY_WRITE | MAY_RUN) -> None:
        """Mount a new file system of a kind, of which no more is allowed than this."""
        flags = _MS_NOSUID
        flags |= 0 if allowed & MAY_WRITE else _MS_RDONLY
        flags |= 0 if allowed & MAY_RUN else _MS_NOEXEC
        flags |= 0 if allowed & MAY_HAVE_DEVICES else _MS_NODEV
        self._checked(self._mount(kind, place, kind, flags, options or None))

    def copied(self, folder: int, path: bytes = b"", *, whole: bool = True) -> int:
        """A descriptor of a mount that shows the same once more; `whole`: with what is mounted below it."""
        flags = _TREE_CLONE | _TREE_CLOEXEC | (_RECURSIVE if whole else 0) | (0 if path else _EMPTY_PATH)
        return self._checked(self._syscall(_OPEN_TREE, folder, path, flags))

    def attach(self, tree: int, place: int) -> None:
        """Show a copied mount at a place, both descriptors; links are not followed."""
        self._checked(self._syscall(_MOVE_MOUNT, tree, b"", place, b"", _FROM_EMPTY | _TO_EMPTY))

    def protect(self, tree: int, path: bytes = b"", *, whole: bool = True) -> None:
        """Make a mount read-only, and with `whole` those below it."""
        attributes = struct.pack("=4Q", _ATTR_RDONLY, 0, 0, 0)
        flags = (0 if path else _EMPTY_PATH) | (_RECURSIVE if whole else 0)
        self._checked(self._syscall(_MOUNT_SETATTR, tree, path, flags, attributes, len(attributes)))

    def bound_privileges(self) -> None:
        """Whatever is run from here on has no capabilities, also as root. Those of this process itself stay."""
        self._prctl(_PR_SET_SECUREBITS, _SECUREBITS)
        for number in self._capabilities:
            self._prctl(_PR_CAPBSET_DROP, number)
        self._prctl(_PR_CAP_AMBIENT, 4)

    def forbid_privileges(self) -> None:
        """Drop every capability, and take nothing from set-user-id programs."""
        self._checked(self._capset(self._header, self._nothing))
        self._prctl(_PR_SET_NO_NEW_PRIVS, 1)

    def judge_calls(self, program: bytes) -> None:
        """Attach a filter of system calls to this process and all that it starts."""
        code = ctypes.create_string_buffer(program, len(program))
        head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
        place = ctypes.create_string_buffer(head, len(head))
        self._prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(place))

    def close_all_but(self, kept: Iterable[int]) -> None:
        """Close every descriptor from 3 on but these."""
        low = 3
        for descriptor in sorted(kept):
            if descriptor > low:
                self._checked(self._syscall(_CLOSE_RANGE, low, descriptor - 1, 0))
            low = max(low, descriptor + 1)
        self._checked(self._syscall(_CLOSE_RANGE, low, 0x7FFFFFFF, 0))

    def adopt(self) -> None:
        """Whoever loses its parent below this process becomes its child."""
        self._prctl(_PR_SET_SUBREAPER, 1)

    def hide(self) -> None:
        """Nobody but the machine's root can look into this process."""
        self._prctl(_PR_SET_DUMPABLE, 0)

    def die_with_parent(self, number: int) -> None:
        self._prctl(_PR_SET_PDEATHSIG, number)

    def landlock_version(self) -> int:
        """The version of Landlock that the kernel has, or 0."""
        return max(0, int(self._syscall(_CREATE_RULESET, None, 0, 1)))

    def ruleset(self, *, files: int, ports: int, scopes: int, version: int) -> int:
        """A descriptor of a new ruleset that handles these rights."""
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        attributes = struct.pack("=3Q", files, ports, scopes)[:size]
        return self._checked(self._syscall(_CREATE_RULESET, attributes, size, 0))

    def grant(self, ruleset: int, place: int, rights: int) -> None:
        """Allow rights at a file, or at a folder and all below it."""
        self._checked(self._syscall(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", rights, place), 0))

    def restrict(self, ruleset: int) -> None:
        self._checked(self._syscall(_RESTRICT_SELF, ruleset, 0))

    def _prctl(self, option: int, first: int = 0, second: int = 0) -> None:
        self._checked(self._prctl_(option, first, second, 0, 0))

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
