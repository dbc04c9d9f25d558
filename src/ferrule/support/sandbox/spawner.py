"""The engine's side of the spawner: who starts confined commands without forking the engine itself.

One spawner per engine process, started when first needed. It and everything it started end when the engine does,
however that ends: they notice that their sockets are closed.
"""

import atexit
import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ferrule.support.sandbox import packets
from ferrule.support.sandbox.order import limits, order
from ferrule.support.sandbox.profile import Profile
from ferrule.support.sandbox.spawned import Spawned

if TYPE_CHECKING:
    import socket
    from subprocess import Popen

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawn.py")
_ANSWER_SECONDS = 60.0
_END_SECONDS = 10.0
_SETTLE_SECONDS = 2.0
_LOCKS = 10
"""The limit by which a `Tree` numbers processes: the spawner resets its own, for it belongs to no command."""
_KEPT = ("LD_LIBRARY_PATH",)
"""All that the spawner gets of this process's environment: what some interpreters do not start without."""
_MARK = {"FERRULE_CALL": "spawner"}
"""It is of no call, and nobody's orphan either, as whoever adopts those might think."""


class Kind(NamedTuple):
    """What the commands of a cell have in common. Each kind has one cell, and in it one private /tmp."""

    way: Literal["namespaces", "landlock"]
    network: bool = False
    unix_sockets: bool = False
    loopback: bool = False
    proxy: str = ""


class Confined:
    """A starter whose commands are kept to a profile."""

    def __init__(self, kind: Kind, profile: Profile) -> None:
        self._kind = kind
        self._profile = profile
        self._running: tuple[Channel, Spawned] | None = None

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
        channel = cell(self._kind)
        files = (stdin, stdout, stderr)
        try:
            started = channel.start(
                self._profile, order(argv, cwd, env, descriptors, known=_state.limits), files, descriptors
            )
        except BrokenPipeError:  # the spawner was killed, and nothing runs: a new one
            channel = cell(self._kind)
            started = channel.start(
                self._profile, order(argv, cwd, env, descriptors, known=_state.limits), files, descriptors
            )
        self._running = (channel, started)
        return started

    def done(self) -> None:
        """Have taken back, now, what was put into the workspace for the command; otherwise that happens soon."""
        running, self._running = self._running, None
        if running is not None:
            channel, started = running
            with contextlib.suppress(OSError):  # no cell: it has tidied up as its last deed
                started.poll()
                _settle(channel, started.pid)


def _settle(channel: "Channel", pid: int) -> None:
    """Wait until a command that has ended has left nothing behind; not for long, if it has left processes."""
    pause_seconds, left_seconds = 0.0005, _SETTLE_SECONDS
    while not channel.settled(pid) and left_seconds > 0:
        time.sleep(pause_seconds)
        left_seconds -= pause_seconds
        pause_seconds = min(2 * pause_seconds, 0.005)


class Channel:
    """The way to one cell."""

    def __init__(self, socket: "socket.socket") -> None:
        self._socket = socket
        self._lock = threading.Lock()
        self._profiles: dict[Profile, bytes] = {}
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

    def settled(self, pid: int) -> bool:
        """Is nothing left in the workspace of what was put there for a command that has ended?"""
        with self._lock:
            return self._ask([b"settle", b"%d" % pid], ())[1:] != [b"wait"]

    def close(self) -> None:
        self._socket.close()

    def _name(self, profile: Profile) -> bytes:
        name = self._profiles.get(profile)
        if name is None:
            name = b"%d" % len(self._profiles)
            first = (profile.writable, profile.kept, profile.masked)
            paths = [os.fsencode(path) for group in (*first, profile.shown) for path in group]
            counts = (b"%d" % len(group) for group in first)
            if any(b"\0" in path for path in paths):
                raise OSError(errno.EINVAL, "A path of the profile holds what none can.")
            self._ask([b"profile", name, *counts, *paths], ())
            self._profiles[profile] = name
        return name

    def _ask(self, fields: Sequence[bytes], files: Sequence[int]) -> list[bytes]:
        try:
            packets.send(self._socket, b"\0".join(fields), files)
            return self._answer()
        except TimeoutError as error:  # whatever it says later would be taken for another answer
            forget(self)
            raise OSError(errno.ETIMEDOUT, "The command was not started in time.") from error
        except ConnectionError as error:
            forget(self)
            raise BrokenPipeError(errno.EPIPE, "The spawner has ended.") from error

    def _answer(self) -> list[bytes]:
        said = (packets.receive(self._socket)[0] or b"").split(b"\0", 2)
        if said[0] == b"error":
            number = int(said[1])
            raise OSError(number, os.strerror(number), os.fsdecode(said[2]) or None)
        if said[0] not in {b"ready", b"pid", b"noted"}:
            raise BrokenPipeError(errno.EPIPE, "The spawner has ended.")
        return said


class _State:
    """The spawner of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.process: Popen[bytes] | None = None
        self.socket: socket.socket | None = None
        self.cells: dict[Kind, Channel] = {}
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


_state = _State()


def cell(kind: Kind) -> Channel:
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


def _new_cell(kind: Kind) -> Channel:
    import socket  # commands only

    if _state.socket is None:
        _start()
    assert _state.socket is not None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            ours.settimeout(_ANSWER_SECONDS)
            flags = (b"%d" % flag for flag in (kind.network, kind.unix_sockets, kind.loopback))
            data = b"\0".join([kind.way.encode(), *flags, os.fsencode(kind.proxy)])
            packets.send(_state.socket, data, [theirs.fileno()])
        except OSError:
            ours.close()
            raise
    try:
        return Channel(ours)
    except OSError:
        ours.close()
        raise


def _start() -> None:
    import socket  # commands only
    from subprocess import DEVNULL, Popen  # the same

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


def close() -> None:
    """End the spawner and everything that it started, and wait for that."""
    with _state.lock:
        process = _state.let_go()
    if process is not None:
        from subprocess import TimeoutExpired  # it was loaded with the spawner

        try:
            process.wait(_END_SECONDS)  # its socket is closed, which ends it
        except TimeoutExpired:
            process.kill()
            process.wait()
