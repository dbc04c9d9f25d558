"""Run a cell: the process that starts the commands of one kind of confinement, and ends with the engine.

A cell runs apart from the engine and has one thread. Orders come in over a socket, one packet each, and are
answered in order. The pair of processes for the next command is made in advance, because a fork costs more than
everything else.

The pair is the command itself and its attendant, which stays from before the command's start until its last child
has ended. Both are forked in advance and wait. The attendant arranges the command's view of the files, if it has
a view of its own. Given an order, the command's process takes its descriptors and limits, puts up the last walls
and becomes the program. The attendant then reports how it ended, and lives until nothing that the command started
is left. Until the engine has heard of the end, the command stays a zombie, so that its id is not reused.

A cell also makes sockets in its session's network for the engine, and lists the addresses that have listeners
there.
"""

import _socket
import contextlib
import errno
import fcntl
import itertools
import marshal
import os
import resource
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from ferrule.sandbox import kernel as rulesets
from ferrule.sandbox import mounts, orders
from ferrule.sandbox.kernel import NEW_MOUNTS, NEW_PIDS, Kernel
from ferrule.sandbox.view import Branch, ProfilePaths, SandboxView, view

_STANDARD = 2
"""The last of the descriptors that every program has."""


class SandboxCommand(NamedTuple):
    """What is to be run."""

    is_certain: bool
    """Does nobody wait until it runs?"""
    cwd: bytes
    targets: list[int]
    """The numbers of the descriptors that it has besides the first three."""
    limits: tuple[tuple[int, int, int], ...]
    argv: list[bytes]
    env: list[bytes]

    @classmethod
    def read(cls, fields: list[bytes]) -> "SandboxCommand":
        """From the fields of an order. Raises ValueError."""
        is_certain, cwd, given, limits, words, *rest = fields
        targets = [int(number) for number in given.split()]
        numbers = [int(number) for number in limits.split()]
        count = int(words)
        if len(numbers) % 3 or not 0 < count <= len(rest):
            raise ValueError(limits)
        if len(set(targets)) < len(targets) or any(target <= _STANDARD for target in targets):
            raise ValueError(given)
        triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
        return cls(is_certain == b"1", cwd, targets, tuple(triples), rest[:count], rest[count:])


def _reset_signals() -> None:
    """Undo what Python, the spawner or whoever started them ignores or blocks: a command begins with none of it."""
    for one in signal.valid_signals():
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def become(
    report: "_socket.socket", attendant: "_socket.socket", kernel: Kernel, program: bytes, *, has_view: bool
) -> NoReturn:
    """Wait for an order and become the command. What goes wrong is reported; what goes right closes the socket.

    `has_view`: the attendant arranges it, and says when that is done.
    """
    place, is_certain = b"", False
    try:
        os.setsid()
        _reset_signals()
        if program:
            kernel.forbid_privileges()
            kernel.judge_calls(program)  # already now: it takes its time, and nothing that follows needs more
        if has_view and orders.receive(attendant)[0] is None:
            os._exit(0)
        report.send(b"here")
        data, files = _receive_order(report, attendant)
        if data is None:
            os._exit(0)
        command = SandboxCommand.read(data.split(b"\0"))
        is_certain = command.is_certain
        report = _socket.socket(fileno=_apart(report.detach(), command.targets))
        rulesets = _take(files, command.targets)
        kernel.close_all_but([report.fileno(), *rulesets, *command.targets])
        if os.isatty(0):
            with contextlib.suppress(OSError):
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for kind, soft, hard in command.limits:
            # A limit that this kernel does not have, or a hard one that only a privileged user may raise.
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(kind, (soft, hard))
        place = command.cwd
        os.chdir(place)
        place = command.argv[0]
        paths = _paths(command)
        env = dict(entry.split(b"=", 1) for entry in command.env)
        for ruleset in rulesets:
            kernel.restrict(ruleset)
        _run(paths, command.argv, env)
    except (OSError, ValueError) as error:
        wrong = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        with contextlib.suppress(OSError):
            if is_certain:
                words = f"ferrule: {os.fsdecode(place)} cannot be used: {os.strerror(wrong)}\n"
                os.write(_STANDARD, words.encode(errors="replace"))
            report.send(b"error\0%d\0%s" % (wrong, place))
    finally:
        os._exit(127)


def _receive_order(cell: "_socket.socket", attendant: "_socket.socket") -> tuple[bytes | None, list[int]]:
    """What is the command's of an order; the attendant gets the way to say how it ended."""
    data, files = orders.receive(cell)
    if data is None:
        return None, files
    orders.send(attendant, b"", files[3:4])
    return data, [*files[:3], *files[4:]]


def _take(files: list[int], targets: list[int]) -> list[int]:
    """Put what was handed over where the command expects it; the others, which it does not get. Raises ValueError."""
    if len(files) < 3 + len(targets):
        raise ValueError(targets)
    rest = [_apart(descriptor, targets) for descriptor in files[3:]]
    for target, descriptor in enumerate(files[:3]):
        os.dup2(descriptor, target)
    for target, descriptor in zip(targets, rest[: len(targets)], strict=True):
        os.dup2(descriptor, target)
    return rest[len(targets) :]


def _apart(descriptor: int, targets: list[int]) -> int:
    """The same under a number that is nobody's target. What was there before is written over, being one."""
    while descriptor in targets:
        descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STANDARD + 1)
    return descriptor


def _paths(command: SandboxCommand) -> list[bytes]:
    """Where the program may be, as `execvp` looks for it."""
    name = command.argv[0]
    if b"/" in name:
        return [name]
    path = next((entry[5:] for entry in command.env if entry.startswith(b"PATH=")), os.fsencode(os.defpath))
    return [os.path.join(folder, name) for folder in path.split(b":")]


def _run(paths: list[bytes], argv: list[bytes], env: dict[bytes, bytes]) -> None:
    worst = errno.ENOENT
    for path in paths:
        try:
            os.execve(path, argv, env)  # noqa: S606 - this is what it is for
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            worst = error.errno or worst
    raise OSError(worst, os.strerror(worst))


class Walls(NamedTuple):
    """What a cell's commands have in common."""

    namespaces: bool
    proc: bool
    """Can the commands have a /proc of their own?"""
    program: bytes
    """The filter of system calls."""
    landlock: int
    """The version of Landlock, 0 for none."""
    ports: bool
    """Is TCP Landlock's business too?"""
    host: bytes
    """Where the machine's own files lie."""
    open: bool = False
    """Does another program, which the commands are, put up the walls? They then only share a network."""
    is_sessions: bool = False
    """Is the cell for one session alone, whose commands see nearly the same?"""


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
        self.view: SandboxView | None = None
        """What it has arranged already."""

    def arrange(self, view: SandboxView) -> None:
        """Have the attendant arrange what a command is going to see, before there is one. Raises OSError."""
        self.view = view
        orders.send(self._channel, marshal.dumps(tuple(view)))

    def start(self, view: SandboxView, data: bytes, given: Sequence[int], ruleset: int) -> int:
        """Have them start a command; its id, once it runs. Raises OSError when it does not.

        Where it is certain to run, its id is told before it does.
        """
        files = [*given, *([ruleset] if ruleset >= 0 else [])]
        try:
            if self._has_view and self.view is None:
                self.arrange(view)
            orders.send(self._channel, data, files)
            here, extra, _, _ = self._channel.recvmsg(1 << 12, _socket.CMSG_SPACE(12))
            is_certain = data.startswith(b"1")
            said = here if here != b"here" else b"" if is_certain else self._channel.recv(1 << 12)
        except (BrokenPipeError, ConnectionResetError) as error:  # killed while it waited
            raise mounts.MountRaceError(errno.EAGAIN, "A process was killed.") from error
        if here == b"here" and not said:  # the socket's last holder has become the program
            return next(int(_PROCESS.unpack(content)[0]) for _, kind, content in extra if kind == _CREDENTIALS)
        if not said:
            raise OSError(errno.ECHILD, os.strerror(errno.ECHILD))
        _, number, place = said.split(b"\0", 2)
        if int(number) == errno.EAGAIN and not place:
            raise mounts.MountRaceError(errno.EAGAIN, "The workspace is changing.")
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
    data, _ = orders.receive(channel)
    if not data:
        return  # the cell ends, and this with it
    mounts.arrange(kernel, SandboxView(*marshal.loads(data)), proc=walls.proc)  # noqa: S302 - the cell is this same program
    orders.send(command, b"arranged")
    _look_on(channel, command, kernel, pid)


def _look_on(channel: "_socket.socket", command: "_socket.socket", kernel: Kernel, pid: int) -> None:
    """The command takes its order itself, and hands on what is not its."""
    channel.close()
    data, files = orders.receive(command)
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


_LISTEN_STATE = b"0A"
_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_WAITING = 256


def new_socket(family: int, kind: int, port: int) -> int:
    """A descriptor of a new socket of this network; with a port, bound to it on loopback and listening."""
    made = _socket.socket(family, kind | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
    try:
        if port:
            made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            made.bind(("::1" if family == _socket.AF_INET6 else "127.0.0.1", port))
            if kind == _socket.SOCK_STREAM:
                made.listen(_WAITING)
        return made.detach()
    finally:
        made.close()


def listeners() -> bytes:
    """The addresses at which something listens in this network, as the kernel writes them: `0100007F:1F90 …`."""
    found: set[bytes] = set()
    for table in _TABLES:
        with contextlib.suppress(OSError), open(table, "rb") as file:
            rows = [line.split() for line in file.read().splitlines()[1:]]
            found |= {row[1] for row in rows if len(row) > 3 and row[3] == _LISTEN_STATE}
    return b" ".join(sorted(found))


_TRIES = 5
_LEAVES_MS = 2
"""So long an attendant may take to notice that it has nothing to do: it saves a look at every process."""
_GONE_MS = 2000
_ROUNDS = 100
_IDLE_MS = 15
"""Then, or when a command ends, which most do sooner, the next pair is made: the command needs the processors."""


class SandboxCell:
    """The orders of one engine, until its socket is closed."""

    def __init__(self, channel: "_socket.socket", kernel: Kernel, walls: Walls) -> None:
        self._channel = channel
        self._kernel = kernel
        self._walls = walls
        self._views: dict[bytes, SandboxView] = {}
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
        self._base: SandboxView | None = None
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
            self._forget_attendant(pid)
        for folder in self._temporary:
            _remove(self._walls.host + folder)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._forget_attendant(pid)

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

    def _forget_attendant(self, pid: int) -> None:
        self._attendants.discard(pid)
        for command in [command for command, attendant in self._commands.items() if attendant == pid]:
            del self._commands[command]

    def _turn(self) -> bool:
        data, given = orders.receive(self._channel)
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
            orders.send(self._channel, answer, files)
        except OSError:  # the engine is gone
            return False
        finally:
            for descriptor in files:
                os.close(descriptor)
        return True

    def _follow(self, data: bytes, given: list[int], files: list[int]) -> bytes:
        verb, *fields = data.split(b"\0")
        if verb == b"socket":
            files.append(new_socket(*map(int, fields)))
            return b"noted"
        if verb == b"ports":
            return b"noted\0" + listeners()
        if verb == b"profile":
            name, *counts = fields[: 1 + len(ProfilePaths._fields)]
            paths = iter(fields[1 + len(ProfilePaths._fields) :])
            groups = ProfilePaths(*(list(itertools.islice(paths, int(count))) for count in counts))
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

    def _add(self, name: bytes, seen: SandboxView) -> None:
        """Remember what a profile shows. What all those of one session have alike is mounted once, here."""
        if self._walls.is_sessions and self._base is None:
            mounts.prepare(self._kernel, seen)
            self._base = seen
            self._known = {path: _identity(self._walls.host + path) for path in seen.shown}
            if self._next is not None:  # it has the mounts of before
                self._next.close()
                self._next = None
        self._views[name] = seen

    def _rest(self, seen: SandboxView) -> SandboxView:
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

    def _take_pair(self, rest: SandboxView) -> Pair:
        """The pair that was made in advance, where what it has arranged still is what is there; or another one."""
        pair, self._next = self._next, None
        if pair is not None and pair.view is not None and (pair.view != rest or self._seen != self._identities(rest)):
            pair.close()
            pair = None
        return pair or Pair(self._kernel, self._walls)

    def _identities(self, view: SandboxView) -> list[tuple[int, int] | None]:
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
            pair = self._take_pair(rest)
            self._attendants.add(pair.attendant)
            try:
                pid = pair.start(rest, data, given, ruleset)
            except mounts.MountRaceError:
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
