"""A cell: the process that starts the commands of one kind of confinement, and ends with the engine.

It runs apart from the engine and has one thread. Orders come in over a socket, one packet each, and are answered in
order. The pair of processes that the next command needs is made in advance: a fork costs more than all the rest.
"""

import contextlib
import errno
import itertools
import os
import select
import signal
from typing import TYPE_CHECKING

from ferrule.support.sandbox import mounts, network, packets, rulesets
from ferrule.support.sandbox.attendant import Pair
from ferrule.support.sandbox.kernel import Kernel
from ferrule.support.sandbox.view import Branch, Paths, View, view
from ferrule.support.sandbox.walls import Walls

if TYPE_CHECKING:
    import _socket

_TRIES = 5
_LEAVES_MS = 2
"""So long an attendant may take to notice that it has nothing to do: it saves a look at every process."""
_GONE_MS = 2000
_ROUNDS = 100
_IDLE_MS = 15
"""Then, or when a command ends, which most do sooner, the next pair is made: the command needs the processors."""


class Cell:
    """The orders of one engine, until its socket is closed."""

    def __init__(self, channel: "_socket.socket", kernel: Kernel, walls: Walls) -> None:
        self._channel = channel
        self._kernel = kernel
        self._walls = walls
        self._views: dict[bytes, View] = {}
        self._rulesets = rulesets.Rulesets(kernel, walls.landlock, whole=not walls.namespaces, ports=walls.ports)
        self._attendants: set[int] = set()
        self._next: Pair | None = None
        self._last = b""
        """The profile of the last command."""
        self._seen: list[tuple[int, int] | None] = []
        """What the view of the next one was arranged on."""
        self._commands: dict[int, int] = {}
        """The attendant of each command."""
        self._temporary: list[bytes] = []
        self._base: View | None = None
        """What is mounted already, for all commands of a session."""
        self._known: dict[bytes, tuple[int, int] | None] = {}

    def serve(self) -> None:
        """Follow orders until there is nobody left to give them; then end everything."""
        awake, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        poll.register(awake, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll(None if self._next is not None else _IDLE_MS)]
            if awake in ready:
                os.read(awake, 1 << 12)
                self._reap()
            if self._channel.fileno() in ready:
                if not self._turn():
                    break
            elif self._next is None:
                with contextlib.suppress(OSError):  # no more processes now: the order that needs one fails
                    self._next = Pair(self._kernel, self._walls)
                    self._look_ahead(self._next)
        self.end()

    def end(self) -> None:
        """Kill all that is left, and tidy up."""
        while True:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            try:
                pid, _ = os.waitpid(-1, 0)
            except ChildProcessError:
                break
            self._ended(pid)
        for folder in self._temporary:
            _remove(self._walls.host + folder)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._ended(pid)

    def _kill(self, command: int) -> None:
        """Kill all of a command: with the first process of a namespace go all of it, else by looking."""
        attendant = self._commands.get(command, 0)
        if attendant not in self._attendants or (not _lives(command) and self._leaves(attendant)):
            return
        if self._walls.namespaces:
            os.kill(attendant, signal.SIGKILL)
            # It is gone only when all of its namespace is: whoever asked for the end has it then.
            self._leaves(attendant, _GONE_MS)
            return
        for _ in range(_ROUNDS):
            left = [pid for pid in descendants(attendant) if _lives(pid)]
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _leaves(self, attendant: int, milliseconds: int = _LEAVES_MS) -> bool:
        """Does it end by itself, its command having left nothing?"""
        descriptor = os.pidfd_open(attendant)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        has_left = bool(poll.poll(milliseconds))
        os.close(descriptor)
        if has_left:
            self._reap()
        return has_left

    def _ended(self, pid: int) -> None:
        self._attendants.discard(pid)
        for command in [command for command, attendant in self._commands.items() if attendant == pid]:
            del self._commands[command]

    def _turn(self) -> bool:
        data, given = packets.receive(self._channel)
        if data is None:
            return False
        files: list[int] = []
        try:
            answer = self._follow(data, given, files)
        except OSError as error:
            answer = b"error\0%d\0%s" % (error.errno or errno.EIO, os.fsencode(str(error.filename or "")))
        except (ValueError, IndexError, KeyError):  # junk
            answer = b"error\0%d\0" % errno.EBADMSG
        for descriptor in given:
            os.close(descriptor)
        try:
            packets.send(self._channel, answer, files)
        except OSError:  # the engine is gone
            return False
        finally:
            for descriptor in files:
                os.close(descriptor)
        return True

    def _follow(self, data: bytes, given: list[int], files: list[int]) -> bytes:
        verb, *fields = data.split(b"\0")
        if verb == b"socket":
            files.append(network.new_socket(*map(int, fields)))
            return b"noted"
        if verb == b"ports":
            return b"noted\0" + network.listeners()
        if verb == b"profile":
            name, *counts = fields[: 1 + len(Paths._fields)]
            paths = iter(fields[1 + len(Paths._fields) :])
            groups = Paths(*(list(itertools.islice(paths, int(count))) for count in counts))
            self._add(name, view(groups, by_mounts=self._walls.namespaces))
            return b"noted"
        if verb == b"end":
            self._kill(int(fields[0]))
            return b"noted"
        if verb == b"temporary":
            self._temporary.append(fields[0])
            return b"noted"
        if verb != b"start" or len(given) < 4:
            raise ValueError(verb)
        return self._start(fields[0], b"\0".join(fields[1:]), list(given))

    def _add(self, name: bytes, seen: View) -> None:
        """Remember what a profile shows. What all those of one session have alike is mounted once, here."""
        if self._walls.is_sessions and self._base is None:
            mounts.prepare(self._kernel, seen)
            self._base = seen
            self._known = {path: _identity(self._walls.host + path) for path in seen.shown}
            if self._next is not None:  # it has the mounts of before
                self._next.close()
                self._next = None
        self._views[name] = seen

    def _rest(self, seen: View) -> View:
        """What is left to mount for one command."""
        if self._base is None:
            return seen
        shown = (path for path in seen.shown if self._known.get(path) != _identity(self._walls.host + path))
        same = (seen.hidden, seen.layers, seen.caches) == (self._base.hidden, self._base.layers, self._base.caches)
        if not same:
            return seen
        return seen._replace(hidden=(), layers=(), caches=(), shown=tuple(shown))

    def _look_ahead(self, pair: Pair) -> None:
        """Have the next command's view arranged now: most commands of a session see what the last one saw."""
        if self._walls.is_sessions and self._last in self._views:
            rest = self._rest(self._views[self._last])
            self._seen = self._identities(rest)
            pair.arrange(rest)

    def _taken(self, rest: View) -> Pair:
        """The pair that was made in advance, where what it has arranged still is what is there; or another one."""
        pair, self._next = self._next, None
        if pair is not None and pair.view is not None and (pair.view != rest or self._seen != self._identities(rest)):
            pair.close()
            pair = None
        return pair or Pair(self._kernel, self._walls)

    def _identities(self, view: View) -> list[tuple[int, int] | None]:
        """Which files the mounts of a view lie on: one that was replaced, made or removed needs another mount."""
        host = self._walls.host
        paths = (*view.writable, *view.masked, *view.held, *view.closed, *(path for path, _ in view.replaced))
        seen = [_identity(host + path, follow=False) for path in paths]
        for root, branch in view.kept:
            _look(host + root, branch, seen)
        return seen

    def _start(self, name: bytes, data: bytes, given: list[int]) -> bytes:
        seen = self._views[name]
        ruleset = self._rulesets.get(seen, self._walls.host, given[:3])
        rest = self._rest(seen)
        self._last = name
        for left in reversed(range(_TRIES)):
            pair = self._taken(rest)
            self._attendants.add(pair.attendant)
            try:
                pid = pair.start(rest, data, given, ruleset)
            except mounts.Again:
                if left == 0:
                    raise
            else:
                self._commands[pid] = pair.attendant
                return b"pid\0%d\0%f" % (pid, pair.born)
            finally:
                pair.close()
        raise AssertionError


def _look(path: bytes, branch: Branch, seen: list[tuple[int, int] | None]) -> None:
    """Add which files the paths of a branch are, those on the way too; below what is not there, nothing is."""
    for name, below in branch.items():
        whole = path + b"/" + name
        identity = _identity(whole, follow=False)
        seen.append(identity)
        if below is not None and identity is not None:
            _look(whole, below, seen)


def _identity(path: bytes, *, follow: bool = True) -> tuple[int, int] | None:
    """Which file it is: a folder that was made anew is another one."""
    try:
        state = os.stat(path, follow_symlinks=follow)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def descendants(pid: int, *, deep: bool = True) -> list[int]:
    """All processes below one, or its own children only."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
                parents.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [pid]
    if not deep:
        return parents.get(pid, [])
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _lives(pid: int) -> bool:
    """Is it more than a zombie?"""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return False


def _remove(folder: bytes) -> None:
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(path, name))
        for name in folders:
            with contextlib.suppress(OSError):
                inner = os.path.join(path, name)
                os.unlink(inner) if os.path.islink(inner) else os.rmdir(inner)
    with contextlib.suppress(OSError):
        os.rmdir(folder)
