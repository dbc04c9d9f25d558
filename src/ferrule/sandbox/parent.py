"""The spawner's work: it makes cells, outlives them, and kills whatever they leave behind."""

import _socket
import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import struct
from typing import NoReturn

from ferrule.sandbox import kernel as seccomp
from ferrule.sandbox import mounts, orders
from ferrule.sandbox.cell import SandboxCell, Walls, descendants
from ferrule.sandbox.kernel import NEW_IPC, NEW_MOUNTS, NEW_NETWORK, NEW_PIDS, NEW_USER, Kernel

_LOCKS = 10
"""RLIMIT_LOCKS, by which the engine numbers the processes of each command."""
_EVERY_ID = 0xFFFFFFFF
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_QUIET = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE)


def serve(number: int) -> None:
    """Make cells until the engine is gone, then see to it that nothing is left."""
    for one in _QUIET:  # a terminal means the engine with them
        signal.signal(one, signal.SIG_IGN)
    # Whichever command was just being started when the engine needed this one: it is not of it.
    with contextlib.suppress(OSError, ValueError):
        most = resource.getrlimit(_LOCKS)[1]
        resource.setrlimit(_LOCKS, (most, most))
    kernel = Kernel()
    kernel.adopt()
    channel = _socket.socket(fileno=number)
    channel_number = channel.fileno()
    os.set_inheritable(channel_number, False)
    awake, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(channel_number, select.POLLIN)
    poll.register(awake, select.POLLIN)
    cells: set[int] = set()
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if awake in ready:
            os.read(awake, 1 << 12)
            _reap(cells)
        if channel_number in ready:
            data, given = orders.receive(channel)
            if data is None:
                break
            for other in given:
                pid = os.fork()
                if pid == 0:
                    channel.close()
                    _cell(_socket.socket(fileno=other), kernel, data.split(b"\0"))
                cells.add(pid)
                os.close(other)
    # The cells see the end of their own sockets, and tidy up; whoever does not belong to one is killed at once.
    with contextlib.suppress(ChildProcessError):
        while True:
            gone, _ = os.waitpid(-1, 0)
            cells.discard(gone)
            _kill_strangers(cells)


def _reap(cells: set[int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            cells.discard(pid)
    _kill_strangers(cells)


def _kill_strangers(cells: set[int]) -> None:
    """Who became this process's child without being a cell has lost its cell, and with it the right to run."""
    for child in descendants(os.getpid(), deep=False):
        if child not in cells:
            for pid in (child, *descendants(child)):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _cell(channel: "_socket.socket", kernel: Kernel, options: list[bytes]) -> NoReturn:
    code = 1
    try:
        walls = _settle(kernel, options)
        if not walls.open:
            try:
                kernel.bound_privileges()
            except PermissionError:
                if walls.namespaces or os.geteuid() == 0:
                    raise  # an ordinary user outside of a namespace has none
        kernel.hide()
        orders.send(channel, b"ready\0%d\0%d" % (walls.proc, walls.landlock))
        SandboxCell(channel, kernel, walls).serve()
        code = 0
    except OSError as error:
        with contextlib.suppress(OSError):
            place = os.fsencode(str(error.filename or ""))
            orders.send(channel, b"error\0%d\0%s" % (error.errno or errno.EIO, place))
    finally:
        os._exit(code)


def _settle(kernel: Kernel, options: list[bytes]) -> Walls:
    """Build what the commands of a cell have in common."""
    kind, network, unix_sockets, loopback, machine = options
    is_open, has_own = network == b"1", kind == b"namespaces"
    version = kernel.landlock_version()
    if kind == b"network":  # for another program that puts up the walls
        _enter(kernel, NEW_USER | NEW_NETWORK)
        _raise_loopback()
        return Walls(namespaces=False, proc=False, program=b"", landlock=0, ports=False, host=b"", open=True)
    inside = has_own and loopback == b"1"
    program = seccomp.native(network=is_open or inside, unix_sockets=unix_sockets == b"1")
    if not has_own:
        if version < 1:
            raise OSError(errno.ENOSYS, "The kernel has no Landlock.")
        return Walls(namespaces=False, proc=False, program=program, landlock=version, ports=not is_open, host=b"")
    _enter(kernel, NEW_USER | NEW_IPC | (0 if is_open else NEW_NETWORK))
    if inside and not is_open:
        _raise_loopback()
    kernel.unshare(NEW_MOUNTS)
    mounts.settle(kernel, network=is_open)
    return Walls(
        namespaces=True,
        proc=_can_mount_proc(kernel),
        program=program,
        landlock=version,
        ports=not (is_open or inside),
        host=mounts.HOST,
        is_sessions=machine != b"",
    )


def _enter(kernel: Kernel, flags: int) -> None:
    """New namespaces in which every user id means what it meant before."""
    user, group, pid = os.geteuid(), os.getegid(), os.getpid()
    awaited, awaiting = os.pipe2(os.O_CLOEXEC)
    # Only root may give a namespace more ids than its own, and only from outside; without them, the files of other
    # users would seem to be nobody's.
    mapper = os.fork() if user == 0 else 0
    if user == 0 and mapper == 0:
        os.close(awaiting)
        os.read(awaited, 1)
        try:
            for kind in ("uid", "gid"):
                _write(f"/proc/{pid}/{kind}_map", f"0 0 {_EVERY_ID}")
        except OSError:
            os._exit(1)
        os._exit(0)
    kernel.unshare(flags)
    os.close(awaiting)
    os.close(awaited)
    if user == 0 and os.waitpid(mapper, 0)[1] == 0:
        return
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())


def _raise_loopback() -> None:
    any_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    given = fcntl.ioctl(any_socket.fileno(), _SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
    (flags,) = struct.unpack("16xh22x", given)
    fcntl.ioctl(any_socket.fileno(), _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))
    any_socket.close()


def _can_mount_proc(kernel: Kernel) -> bool:
    """Containers that hide parts of /proc do not let a new one be mounted."""
    pid = kernel.clone(NEW_PIDS | NEW_MOUNTS)
    if pid == 0:
        try:
            kernel.mount(b"proc", b"/proc", allowed=0)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
