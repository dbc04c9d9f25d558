"""Make the system calls that the spawner needs and Python lacks: Landlock rulesets and system call filters.

Linux on x86_64 and aarch64 only. The module is loaded by the spawner, which has one thread. Failure raises
OSError.

Landlock is the only wall on machines without namespaces, and the second one on the others.

The filter of system calls is a BPF program. It is built here and attached elsewhere: by the spawner, or by
bubblewrap, which reads it from a descriptor. It looks at numbers only; anything that needs a path is left to
mounts and Landlock.
"""

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from ferrule.sandbox.view import SandboxView

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
        return self._check(self._syscall(self._clone, ctypes.c_ulong(flags | _SIGCHLD), 0, 0, 0, 0))

    def unshare(self, flags: int) -> None:
        self._check(self._libc.unshare(flags))

    def private(self) -> None:
        """What is mounted elsewhere from now on does not show here, nor the other way round."""
        self._check(self._mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))

    def mount(self, kind: bytes, place: bytes, options: bytes = b"", *, allowed: int = MAY_WRITE | MAY_RUN) -> None:
        """Mount a new file system of a kind, of which no more is allowed than this."""
        flags = _MS_NOSUID
        flags |= 0 if allowed & MAY_WRITE else _MS_RDONLY
        flags |= 0 if allowed & MAY_RUN else _MS_NOEXEC
        flags |= 0 if allowed & MAY_HAVE_DEVICES else _MS_NODEV
        self._check(self._mount(kind, place, kind, flags, options or None))

    def copy_mount(self, folder: int, path: bytes = b"", *, whole: bool = True) -> int:
        """A descriptor of a mount that shows the same once more; `whole`: with what is mounted below it."""
        flags = _TREE_CLONE | _TREE_CLOEXEC | (_RECURSIVE if whole else 0) | (0 if path else _EMPTY_PATH)
        return self._check(self._syscall(_OPEN_TREE, folder, path, flags))

    def attach(self, tree: int, place: int) -> None:
        """Show a copied mount at a place, both descriptors; links are not followed."""
        self._check(self._syscall(_MOVE_MOUNT, tree, b"", place, b"", _FROM_EMPTY | _TO_EMPTY))

    def protect(self, tree: int, path: bytes = b"", *, whole: bool = True) -> None:
        """Make a mount read-only, and with `whole` those below it."""
        attributes = struct.pack("=4Q", _ATTR_RDONLY, 0, 0, 0)
        flags = (0 if path else _EMPTY_PATH) | (_RECURSIVE if whole else 0)
        self._check(self._syscall(_MOUNT_SETATTR, tree, path, flags, attributes, len(attributes)))

    def bound_privileges(self) -> None:
        """Whatever is run from here on has no capabilities, also as root. Those of this process itself stay."""
        self._prctl(_PR_SET_SECUREBITS, _SECUREBITS)
        for number in self._capabilities:
            self._prctl(_PR_CAPBSET_DROP, number)
        self._prctl(_PR_CAP_AMBIENT, 4)

    def forbid_privileges(self) -> None:
        """Drop every capability, and take nothing from set-user-id programs."""
        self._check(self._capset(self._header, self._nothing))
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
                self._check(self._syscall(_CLOSE_RANGE, low, descriptor - 1, 0))
            low = max(low, descriptor + 1)
        self._check(self._syscall(_CLOSE_RANGE, low, 0x7FFFFFFF, 0))

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
        return self._check(self._syscall(_CREATE_RULESET, attributes, size, 0))

    def grant(self, ruleset: int, place: int, rights: int) -> None:
        """Allow rights at a file, or at a folder and all below it."""
        self._check(self._syscall(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", rights, place), 0))

    def restrict(self, ruleset: int) -> None:
        self._check(self._syscall(_RESTRICT_SELF, ruleset, 0))

    def _prctl(self, option: int, first: int = 0, second: int = 0) -> None:
        self._check(self._prctl_(option, first, second, 0, 0))

    def _check(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


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
        self._made: dict[int, tuple[SandboxView, int, list[tuple[bytes, bool, tuple[int, int, int]]]]] = {}
        self._last = -1
        """The ruleset of the last command that had a terminal."""

    def get(self, view: SandboxView, host: bytes, files: Sequence[int] = ()) -> int:
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

    def _second_wall(self, view: SandboxView, host: bytes) -> int:
        """Nothing is written but in these folders, whatever the mounts say."""
        rights = self._rights() & ~(_EXECUTE | _READ_FILE | _READ_DIR)
        ruleset = self._new(rights)
        sources = (host + source for _, source in view.layers)
        written = (path for path, _ in view.caches)
        for path in (*(host + root for root in view.writable), *sources, *written, *_PRIVATE, *_DEVICES, _TERMINALS):
            self._grant(ruleset, path, rights)
        return ruleset

    def _only_wall(self, view: SandboxView, terminals: Sequence[int] = ()) -> int:
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


def _ways(view: SandboxView) -> list[bytes]:
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


_LOAD, _EQUAL, _GREATER, _GREATER_EQUAL, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x54, 0x06
_KILL_PROCESS, _ERRNO = 0x80000000, 0x00050000
_PASS = struct.pack("=HBBI", _RETURN, 0, 0, 0x7FFF0000)
_GROUP = 8
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_SEQPACKET = 1, 5
_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID and NET."""
_NEW_TIME = 0x80
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_PERSONALITIES = (0, 8, 0x40000, 0xFFFFFFFF)
"""Linux, 32 bits, no randomised addresses (debuggers), and the question which one it is."""

_DENIED: dict[str, tuple[int, int]] = {
    # Other processes' memory and descriptors.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # Mounts: with them everything that is hidden or read-only would be undone.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "setns": (308, 268),
    # Files without their paths.
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # Parts of the kernel with a record of holes, of no use to a build or a test.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    # The machine itself.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
"""Refused with EPERM whatever their arguments; the numbers of x86_64 and aarch64."""
_DENIED_ON_X86_64 = {"iopl": 172, "ioperm": 173, "modify_ldt": 154, "uselib": 134, "sysfs": 139, "sysctl": 156}
_ABSENT: dict[str, tuple[int, int]] = {
    # As if the kernel were older: programs fall back to calls whose arguments a filter can see.
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)
_CLONE, _UNSHARE = (56, 220), (272, 97)
_IOCTL, _PERSONALITY = (16, 29), (135, 92)


def machines() -> tuple[str, ...]:
    """The machines that there is a program for, as `os.uname` calls them."""
    return tuple(_ARCHITECTURES)


def program(*, network: bool, unix_sockets: bool, machine: str) -> bytes:
    """The filter for a machine, as the kernel and `bwrap --seccomp` take it. Raises OSError for other machines."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"There is no filter of system calls for {machine} machines.")
    column = tuple(_ARCHITECTURES).index(machine)
    bodies = {row[column]: [_deny(errno.EPERM)] for row in _DENIED.values()}
    if machine == "x86_64":
        bodies |= {number: [_deny(errno.EPERM)] for number in _DENIED_ON_X86_64.values()}
    bodies |= {row[column]: [_deny(errno.ENOSYS)] for row in _ABSENT.values()}
    families = ([_AF_INET, _AF_INET6, _AF_NETLINK] if network else []) + ([_AF_UNIX] if unix_sockets else [])
    # One end of a pair of datagram sockets can be connected to a name after all.
    kinds = [] if unix_sockets else _only(1, [_SOCK_STREAM, _SOCK_SEQPACKET], mask=0xF)
    bodies |= {
        _SOCKET[column]: [*_only(0, families), _PASS],
        _SOCKETPAIR[column]: [*kinds, *_only(0, [_AF_UNIX]), _PASS],
        _CLONE[column]: [*_none(_NAMESPACES), _PASS],
        _UNSHARE[column]: [*_none(_NAMESPACES | _NEW_TIME), _PASS],
        _PERSONALITY[column]: [*_only(0, _PERSONALITIES), _PASS],
        _IOCTL[column]: [
            _argument(1),
            _step(_EQUAL, _TIOCSTI, then=1),
            _step(_EQUAL, _TIOCLINUX, otherwise=1),
            _deny(errno.EPERM),
            _PASS,
        ],
    }
    code = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, _ARCHITECTURES[machine], then=1),
        # The numbers of another architecture mean other calls: nothing of it can be judged.
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        code += [_step(_GREATER_EQUAL, _X32_BIT, otherwise=1), _deny(errno.EPERM)]
    # In groups, so that a call passes few comparisons: the kernel runs this once for each number when it is attached.
    numbers = sorted(bodies)
    for group in (numbers[place : place + _GROUP] for place in range(0, len(numbers), _GROUP)):
        inner: list[bytes] = []
        for number in group:
            inner += [_step(_EQUAL, number, otherwise=len(bodies[number])), *bodies[number]]
        code += [_step(_GREATER, group[-1], then=len(inner) + 1), *inner, _PASS]
    return b"".join([*code, _PASS])


def native(*, network: bool, unix_sockets: bool) -> bytes:
    """The filter for this machine. Raises OSError where there is none."""
    return program(network=network, unix_sockets=unix_sockets, machine=os.uname().machine)


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


def _deny(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _argument(index: int) -> bytes:
    """Load the low half of an argument: the kernel takes no more than that of those that are looked at here."""
    return _step(_LOAD, _ARGUMENTS_AT + 8 * index)


def _only(index: int, values: list[int] | tuple[int, ...], *, mask: int = 0) -> list[bytes]:
    """Deny the call unless an argument is one of these."""
    load = [_argument(index)] + ([_step(_AND, mask)] if mask else [])
    checks = [_step(_EQUAL, value, then=len(values) - place) for place, value in enumerate(values)]
    return [*load, *checks, _deny(errno.EPERM)]


def _none(bits: int) -> list[bytes]:
    """Deny the call when its first argument has one of these bits."""
    return [_argument(0), _step(_ANY_BIT, bits, otherwise=1), _deny(errno.EPERM)]
