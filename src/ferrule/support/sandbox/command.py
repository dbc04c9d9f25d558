"""The last steps of a confined command before it is itself: its descriptors, its limits, its walls, its program."""

import _socket
import contextlib
import errno
import fcntl
import os
import resource
import signal
import termios
from typing import NamedTuple, NoReturn

from ferrule.support.sandbox import packets
from ferrule.support.sandbox.kernel import Kernel

_STANDARD = 2
"""The last of the descriptors that every program has."""


class Command(NamedTuple):
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
    def read(cls, fields: list[bytes]) -> "Command":
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


def _heed_all() -> None:
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
        _heed_all()
        if program:
            kernel.forbid_privileges()
            kernel.judge_calls(program)  # already now: it takes its time, and nothing that follows needs more
        if has_view and packets.receive(attendant)[0] is None:
            os._exit(0)
        report.send(b"here")
        data, files = _received(report, attendant)
        if data is None:
            os._exit(0)
        command = Command.read(data.split(b"\0"))
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


def _received(cell: "_socket.socket", attendant: "_socket.socket") -> tuple[bytes | None, list[int]]:
    """What is the command's of an order; the attendant gets the way to say how it ended."""
    data, files = packets.receive(cell)
    if data is None:
        return None, files
    packets.send(attendant, b"", files[3:4])
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


def _paths(command: Command) -> list[bytes]:
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
