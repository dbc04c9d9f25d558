"""Start confined commands through the spawner, without forking the engine itself.

There is one spawner for each engine process, started when first needed. It and everything it started end when the
engine does, however that ends: they notice that their sockets are closed.

An order tells a cell about one command: its folder, descriptors, limits, words and variables. Packets between the
engine, the spawner and their processes hold bytes of any length, and descriptors.
"""

import atexit
import contextlib
import errno
import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Literal, NamedTuple

from ferrule.sandbox import Profile, orders
from ferrule.sandbox.orders import limits, order

_LATE_SECONDS = 5.0
_SAID_BYTES = 5
"""The exit code, and whether it was the last one."""


class Spawned:
    """A command that the spawner has started. Until its end was heard here, nobody else gets its id."""

    def __init__(self, pid: int, status: int, *, born: float, end: Callable[[], None]) -> None:
        self.pid = pid
        self.born = born
        """When the process itself was made, by the monotonic clock: it may have waited for its command."""
        self.returncode: int | None = None
        self._status = status
        self._end = end
        self._said: bytes | None = None

    def alone(self) -> bool:
        """Has it ended, and is it certain that it has left nothing? Nobody gets its id by this."""
        return self._listen(_LATE_SECONDS) and self._is_alone

    def end(self) -> None:
        """Kill it and all that it has started, also what has left its group and its session."""
        if not self._is_alone:
            self._end()

    @property
    def _is_alone(self) -> bool:
        return self._said is not None and self._said[4:] == b"\1"

    def poll(self) -> int | None:
        if self.returncode is None and not self._hear(0.0) and _has_ended(self.pid):
            self._hear(_LATE_SECONDS)  # its attendant is about to say how
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._hear(timeout)
        if self.returncode is None:
            raise TimeoutExpired(str(self.pid), timeout or 0.0)
        return self.returncode

    def _hear(self, seconds: float | None) -> bool:
        """Has its end been heard? Then its attendant is told so, and its id is given away."""
        if not self._listen(seconds) or self._said is None:
            return False
        # Silence: its attendant was killed, and took everything with it.
        self.returncode = struct.unpack_from("=i", self._said)[0] if len(self._said) == _SAID_BYTES else -9
        os.close(self._status)
        return True

    def _listen(self, seconds: float | None) -> bool:

        if self._said is None:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            if poll.poll(None if seconds is None else seconds * 1000):
                self._said = os.read(self._status, _SAID_BYTES)
        return self._said is not None

    def __del__(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(OSError, AttributeError):
                os.close(self._status)


def _has_ended(pid: int) -> bool:

    if sys.platform != "linux":
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        return error.errno == errno.ESRCH
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(descriptor)


_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawn.py")
_ANSWER_SECONDS = 60.0
_END_SECONDS = 10.0
_LOCKS = 10
"""The limit by which a `Tree` numbers processes: the spawner resets its own, for it belongs to no command."""
_KEPT = ("LD_LIBRARY_PATH",)
"""All that the spawner gets of this process's environment: what some interpreters do not start without."""
_MARK = {"FERRULE_CALL": "spawner"}
"""It is of no call, and nobody's orphan either, as whoever adopts those might think."""


class CellKind(NamedTuple):
    """What the commands of a cell have in common. Each kind has one cell, and in it one network."""

    way: Literal["namespaces", "landlock", "network"]
    """The last one gives a program that confines by itself, such as bubblewrap, the network of a session."""
    network: bool = False
    unix_sockets: bool = False
    loopback: bool = False
    machine: str = ""
    """The session that it is for."""


class Confined:
    """A starter whose commands are kept to a profile."""

    def __init__(self, kind: CellKind, profile: Profile) -> None:
        self._kind = kind
        self._profile = profile
        self.is_certain = False
        """Is the program known to be there? Then nobody waits until it runs, which takes longer than all the rest."""

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        descriptors: Sequence[int] = (),
    ) -> Spawned:
        files = (stdin, stdout, stderr)
        fields = order(argv, cwd, env, descriptors, known=_state.limits, is_certain=self.is_certain)
        try:
            return cell(self._kind).start(self._profile, fields, files, descriptors)
        except BrokenPipeError:  # the spawner was killed, and nothing runs: a new one
            channel = cell(self._kind)
            fields = order(argv, cwd, env, descriptors, known=_state.limits, is_certain=self.is_certain)
            return channel.start(self._profile, fields, files, descriptors)


class Channel:
    """The way to one cell."""

    def __init__(self, socket: "socket.socket") -> None:
        self._socket = socket
        self._lock = threading.Lock()
        self._profiles: dict[Profile, bytes] = {}
        self._files: list[int] = []
        """The descriptors that came with the last answer."""
        self.ready = self._answer()

    def start(
        self, profile: Profile, order: Sequence[bytes], files: Sequence[int], more: Sequence[int] = ()
    ) -> Spawned:
        """Start a command. Raises OSError as the command's own start does, BrokenPipeError when there is no cell."""
        heard, status = os.pipe2(os.O_CLOEXEC) if sys.platform == "linux" else os.pipe()
        try:
            with self._lock:
                name = self._name(profile)
                said = self._ask([b"start", name, *order], (*files, status, *more))
        except BaseException:
            os.close(heard)
            raise
        finally:
            os.close(status)
        pid = int(said[1])
        return Spawned(pid, heard, born=float(said[2]), end=lambda: self.end(pid))

    def end(self, pid: int) -> None:
        """Kill all that a command has started. Without a cell there is nothing left to kill."""
        with contextlib.suppress(BrokenPipeError), self._lock:
            self._ask([b"end", b"%d" % pid], ())

    def remove_at_end(self, folder: str) -> None:
        """Have a folder removed when the engine is gone."""
        with self._lock:
            self._ask([b"temporary", os.fsencode(folder)], ())

    def new_socket(self, family: int, kind: int, port: int = 0) -> "socket.socket":
        """A socket in the network of this cell; with a port it is bound to that on loopback, and listens. OSError."""
        with self._lock:
            self._ask([b"socket", *(b"%d" % number for number in (family, kind, port))], ())
            (descriptor,) = self._files
        return socket.socket(fileno=descriptor)

    def listeners(self) -> list[bytes]:
        """Where something listens in the network of this cell, as the kernel writes addresses."""
        with self._lock:
            return self._ask([b"ports"], ())[1].split()

    def close(self) -> None:
        self._socket.close()

    def _name(self, profile: Profile) -> bytes:
        name = self._profiles.get(profile)
        if name is None:
            name = b"%d" % len(self._profiles)
            groups = (
                profile.writable,
                profile.kept,
                profile.masked,
                profile.shown,
                profile.hidden,
                [path for pair in profile.layers for path in pair],
                [path for pair in profile.caches for path in pair],
                [path for pair in profile.replaced for path in pair],
            )
            paths = [os.fsencode(path) for group in groups for path in group]
            if any(b"\0" in path for path in paths):
                raise OSError(errno.EINVAL, "A path of the profile holds what none can.")
            self._ask([b"profile", name, *(b"%d" % len(group) for group in groups), *paths], ())
            self._profiles[profile] = name
        return name

    def _ask(self, fields: Sequence[bytes], files: Sequence[int]) -> list[bytes]:
        if self._socket.fileno() < 0:
            raise BrokenPipeError(errno.EPIPE, "The session has ended.")
        try:
            orders.send(self._socket, b"\0".join(fields), files)
            return self._answer()
        except TimeoutError as error:  # whatever it says later would be taken for another answer
            forget(self)
            raise OSError(errno.ETIMEDOUT, "The command was not started in time.") from error
        except ConnectionError as error:
            forget(self)
            raise BrokenPipeError(errno.EPIPE, "The spawner has ended.") from error

    def _answer(self) -> list[bytes]:
        data, self._files = orders.receive(self._socket)
        said = (data or b"").split(b"\0", 2)
        if said[0] == b"error":
            number = int(said[1])
            raise OSError(number, os.strerror(number), os.fsdecode(said[2]) or None)
        if said[0] not in {b"ready", b"pid", b"noted"}:
            raise BrokenPipeError(errno.EPIPE, "The spawner has ended.")
        return said


class _SpawnerState:
    """The spawner of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.process: Popen[bytes] | None = None
        self.socket: socket.socket | None = None
        self.cells: dict[CellKind, Channel] = {}
        self.watched = False
        self.limits: list[tuple[int, int, int]] = []
        """Those of this process when the spawner was started, which has them too."""

    def let_go(self) -> "Popen[bytes] | None":
        """Close this process's ends, and give the process that has the others."""
        for channel in self.cells.values():
            channel.close()
        if self.socket is not None:
            self.socket.close()
        process, self.process = self.process, None
        self.lock = threading.RLock()
        self.socket, self.cells = None, {}
        return process


_state = _SpawnerState()


def cell(kind: CellKind) -> Channel:
    """The way to the cell of a kind. Raises OSError where there can be none."""
    with _state.lock:
        found = _state.cells.get(kind)
        if found is None:
            try:
                found = _new_cell(kind)
            except BrokenPipeError:  # a spawner that was killed since
                close()
                found = _new_cell(kind)
            _state.cells[kind] = found
        return found


def _new_cell(kind: CellKind) -> Channel:

    if _state.socket is None:
        _start()
    assert _state.socket is not None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            ours.settimeout(_ANSWER_SECONDS)
            flags = (b"%d" % flag for flag in (kind.network, kind.unix_sockets, kind.loopback))
            data = b"\0".join([kind.way.encode(), *flags, kind.machine.encode()])
            orders.send(_state.socket, data, [theirs.fileno()])
        except OSError:
            ours.close()
            raise
    try:
        return Channel(ours)
    except OSError:
        ours.close()
        raise


def _start() -> None:

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            ours.settimeout(_ANSWER_SECONDS)
            _state.process = Popen(
                [sys.executable, "-I", "-S", _PROGRAM, str(theirs.fileno())],
                cwd=os.sep,
                env={**_MARK, **{name: os.environ[name] for name in _KEPT if name in os.environ}},
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    _state.socket = ours
    _state.limits = [row for row in limits() if row[0] != _LOCKS]
    if not _state.watched:
        os.register_at_fork(after_in_child=_let_go_in_a_fork)
        atexit.register(close)
        _state.watched = True


def _let_go_in_a_fork() -> None:
    """The spawner is the parent's; but while a copy of its sockets is open, it would not notice the parent's end."""
    process = _state.let_go()
    if process is not None:
        process.returncode = 0  # not a child of this process


def forget(channel: Channel) -> None:
    """Close the way to a cell, which then ends with all that it started."""
    with _state.lock:
        for kind in [kind for kind, one in _state.cells.items() if one is channel]:
            del _state.cells[kind]
        channel.close()


def end_machine(machine: str) -> None:
    """Close the cells of a session, which end with all that they started."""
    with _state.lock:
        for channel in [channel for kind, channel in _state.cells.items() if kind.machine == machine]:
            forget(channel)


def close() -> None:
    """End the spawner and everything that it started, and wait for that."""
    with _state.lock:
        process = _state.let_go()
    if process is not None:
        try:
            process.wait(_END_SECONDS)  # its socket is closed, which ends it
        except TimeoutExpired:
            process.kill()
            process.wait()
