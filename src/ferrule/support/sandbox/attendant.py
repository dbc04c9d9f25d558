"""A command's two processes: itself, and its attendant, which stays around it from before its start to its last child.

Both are forked in advance and wait. The attendant arranges what the command sees of the files, where it has a view of
its own. Given an order, the command's own process takes its descriptors and limits, puts up the last walls and becomes
the program. The attendant then says how it ended, and lives until nothing that the command started is left. Until the
engine has heard, the command stays a zombie, so that nobody else gets its id.
"""

import _socket
import contextlib
import errno
import marshal
import os
import select
import signal
import struct
import time
from collections.abc import Sequence
from typing import NoReturn

from ferrule.support.sandbox import mounts, packets
from ferrule.support.sandbox.command import become
from ferrule.support.sandbox.kernel import NEW_MOUNTS, NEW_PIDS, Kernel
from ferrule.support.sandbox.view import View
from ferrule.support.sandbox.walls import Walls

_CREDENTIALS = 2
_PROCESS = struct.Struct("=3i")
_ENDED = struct.Struct("=i?")


class Pair:
    """The two, as the cell sees them."""

    def __init__(self, kernel: Kernel, walls: Walls) -> None:
        self.born = time.monotonic()
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        ours.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        # The kernel's own fork where it must be in new namespaces: Python has none with flags.
        self.attendant = kernel.clone(NEW_PIDS | NEW_MOUNTS) if walls.namespaces else os.fork()
        if self.attendant == 0:
            _attend(theirs, kernel, walls)
        theirs.close()
        self._channel = ours
        self._has_view = walls.namespaces
        self.view: View | None = None
        """What it has arranged already."""

    def arrange(self, view: View) -> None:
        """Have the attendant arrange what a command is going to see, before there is one. Raises OSError."""
        self.view = view
        packets.send(self._channel, marshal.dumps(tuple(view)))

    def start(self, view: View, data: bytes, given: Sequence[int], ruleset: int) -> int:
        """Have them start a command; its id, once it runs. Raises OSError when it does not.

        Where it is certain to run, its id is told before it does.
        """
        files = [*given, *([ruleset] if ruleset >= 0 else [])]
        try:
            if self._has_view and self.view is None:
                self.arrange(view)
            packets.send(self._channel, data, files)
            here, extra, _, _ = self._channel.recvmsg(1 << 12, _socket.CMSG_SPACE(12))
            is_certain = data.startswith(b"1")
            said = here if here != b"here" else b"" if is_certain else self._channel.recv(1 << 12)
        except (BrokenPipeError, ConnectionResetError) as error:  # killed while it waited
            raise mounts.Again(errno.EAGAIN, "A process was killed.") from error
        if here == b"here" and not said:  # the socket's last holder has become the program
            return next(int(_PROCESS.unpack(content)[0]) for _, kind, content in extra if kind == _CREDENTIALS)
        if not said:
            raise OSError(errno.ECHILD, os.strerror(errno.ECHILD))
        _, number, place = said.split(b"\0", 2)
        if int(number) == errno.EAGAIN and not place:
            raise mounts.Again(errno.EAGAIN, "The workspace is changing.")
        raise OSError(int(number), os.strerror(int(number)), os.fsdecode(place))

    def close(self) -> None:
        self._channel.close()


def _attend(channel: "_socket.socket", kernel: Kernel, walls: Walls) -> NoReturn:
    """The life of an attendant."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kernel.close_all_but([channel.fileno()])
        if walls.namespaces:
            # Its parent is out of sight, so it cannot ask whether that still lives. It needs not: if the parent has
            # died before this, the other end of the channel is closed.
            kernel.die_with_parent(signal.SIGKILL)
        else:
            kernel.adopt()
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            become(channel, theirs, kernel, walls.program, has_view=walls.namespaces)
        theirs.close()
        if walls.namespaces:
            _serve(channel, ours, kernel, walls, pid)
        else:
            _look_on(channel, ours, kernel, pid)
    except OSError as error:
        with contextlib.suppress(OSError):
            channel.send(b"error\0%d\0%s" % (error.errno or errno.EIO, os.fsencode(str(error.filename or ""))))
    finally:
        os._exit(1)


def _serve(channel: "_socket.socket", command: "_socket.socket", kernel: Kernel, walls: Walls, pid: int) -> None:
    data, _ = packets.receive(channel)
    if not data:
        return  # the cell ends, and this with it
    mounts.arrange(kernel, View(*marshal.loads(data)), proc=walls.proc)  # noqa: S302 - the cell is this same program
    packets.send(command, b"arranged")
    _look_on(channel, command, kernel, pid)


def _look_on(channel: "_socket.socket", command: "_socket.socket", kernel: Kernel, pid: int) -> None:
    """The command takes its order itself, and hands on what is not its."""
    channel.close()
    data, files = packets.receive(command)
    if data is None:
        return  # the cell ends, and this with it
    kernel.close_all_but(files)
    _accompany(pid, files[0])
    os._exit(0)


def _accompany(pid: int, status: int) -> None:
    """Say how the command ended, wait until that was heard, and then for whatever it has left behind."""
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        if ended.si_pid == pid:
            break
        os.waitpid(ended.si_pid, 0)
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    with contextlib.suppress(OSError):
        os.write(status, _ENDED.pack(code, _is_alone()))
        poll = select.poll()
        poll.register(status, 0)  # the other end was closed
        poll.poll()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _is_alone() -> bool:
    """Is the command, which has ended, the only child? Whatever it left behind would be another one by now."""
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return len(file.read().split()) == 1
    except OSError:  # not every kernel has it
        return False
