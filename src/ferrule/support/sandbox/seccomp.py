"""The filter of system calls: what a confined command may not even ask the kernel for, as a BPF program.

The program is built here and attached elsewhere: by the spawner, or by bubblewrap, which reads it from a descriptor.
It looks at numbers only. Whatever needs a path is the business of mounts and Landlock.
"""

import errno
import os
import struct

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
