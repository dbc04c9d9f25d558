"""Query the system about processes, and heed the signals that end this one.

`take` marks this process as our own, as that of the command line is, in contrast to a program that embeds the
package. `is_ours` reports the mark.
"""

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterable
from types import FrameType

_READ_BYTES = 1 << 16


def contents(path: str) -> bytes:
    """A file of /proc, whole. Python's own files would take three times as long, for every process there is."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        data = piece = os.read(descriptor, _READ_BYTES)
        while len(piece) == _READ_BYTES:
            piece = os.read(descriptor, _READ_BYTES)
            data += piece
        return data
    finally:
        os.close(descriptor)


def stat(pid: int) -> list[bytes]:
    """The state of a process, the id of its parent, and more. Raises OSError when there is none."""
    fields = contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), pid)
    return fields


def start_time(pid: int) -> int:
    """When a process began, in ticks since the system did; 0 where nobody knows or there is no such process.

    An id and its beginning name one process for ever: ids are given out again.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(stat(pid)[19])
    return 0


_beginnings: dict[int, tuple[int, int]] = {}
"""By id, the number of a process's folder in /proc and when it began; another process has another number there."""
_BEGINNINGS = 4096


def cached_start_time(pid: int) -> int:
    """Like `began`, but faster for a process that was asked for before."""
    with contextlib.suppress(OSError):
        number = os.stat(f"/proc/{pid}").st_ino
        known = _beginnings.get(pid)
        if known is not None and known[0] == number:
            return known[1]
        if len(_beginnings) >= _BEGINNINGS:
            _beginnings.clear()
        beginning = start_time(pid)
        _beginnings[pid] = (number, beginning)
        return beginning
    return 0


def exists(pid: int) -> bool:
    """Is there such a process? A zombie is one."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def lives(pid: int) -> bool:
    """Is it more than a zombie? One that fell to this process as its init is reaped."""
    try:
        if stat(pid)[0] not in {b"Z", b"X"}:
            return True
    except OSError:
        return False
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return False


def pidfd(pid: int) -> int:
    """A descriptor of the process, or -1: an old kernel or Python has none, and descriptors can run out."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return os.pidfd_open(pid)
    return -1


def signal_group(leader: int, number: int) -> bool:
    """Send a signal to a process group; False when there is none, or none that may be signalled."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if leader > 1:  # 0 would be the group of this very process
            os.killpg(leader, number)
            return True
    return False


def this_system() -> str:
    """Which system, since which start and in which namespace of process ids; "" where nobody knows."""
    with contextlib.suppress(OSError):
        boot = contents("/proc/sys/kernel/random/boot_id").strip().decode("ascii", "replace")
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


_LISTENS = b"0A"
"""How the kernel writes the state of a socket that listens."""


def find_listeners(pids: Iterable[int]) -> dict[int, str]:
    """Port → host, of what these processes listen on by TCP; nothing where the system does not tell."""
    found: dict[int, str] = {}
    for pid in pids:
        if owned := _sockets(pid):
            for name, any_host in (("tcp", "127.0.0.1"), ("tcp6", "[::1]")):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    for row in contents(f"/proc/{pid}/net/{name}").splitlines()[1:]:
                        fields = row.split()
                        if fields[3] == _LISTENS and fields[9] in owned:
                            found.setdefault(int(fields[1].rpartition(b":")[2], 16), any_host)
    return found


def _sockets(pid: int) -> set[bytes]:
    """The numbers of the sockets that a process has open."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    found.add(target[8:-1].encode())
    return found


_owned: list[int] = []
"""Its id: a fork of it is another's until it says otherwise."""


def take() -> None:
    """This process is ours: orphans of commands may fall to it."""
    _owned[:] = [os.getpid()]


def is_ours() -> bool:
    return _owned == [os.getpid()]


_LEFT = ("SIGPIPE", "SIGXFSZ", "SIGTTIN", "SIGTTOU")
"""What Python ignores, and gives back to every program that it starts; and what concerns a terminal, which none has."""


def let_children_heed() -> None:
    """Have programs that are started from now on begin with default signals; this one goes on ignoring them.

    Shells start background jobs with SIGINT and SIGQUIT ignored, and `nohup` ignores SIGHUP; a program inherits that,
    and nothing could interrupt it. What is caught and not ignored is not inherited. Only the main thread can do this.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    left = {getattr(signal, name) for name in _LEFT if hasattr(signal, name)}
    for one in signal.valid_signals() - left:
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, _ignore)


def is_ignored(number: int) -> bool:
    """Was this program told to ignore the signal?"""
    return signal.getsignal(number) in {signal.SIG_IGN, _ignore}


def hold_none_back() -> None:
    """Let every signal through that whoever started this program has blocked: what it starts would inherit that.

    For a program of its own, at its start; a library has no business with the signals of its host.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing."""
