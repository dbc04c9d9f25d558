"""The program that gives a command in bubblewrap a way to the proxy.

It is started as `python -I -S relay.py PORT SOCKET RULES -- argv…` inside, where no network is but a loopback device.
It leaves a process behind that carries what connects to the port there to the proxy's socket, and becomes the command,
under the restriction of system calls in the file RULES (none where that is empty). The process that carries is not
under it: it needs that socket. Of Ferrule it has only `forward.py`, which lies beside it there.
"""

import _socket
import os
import signal
import sys
from typing import NoReturn

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION_BYTES = 8
_WAITING = 256
_CANNOT, _MISSING = 126, 127


def main() -> None:
    port, path, rules, dashes, *argv = sys.argv[1:]
    if dashes != "--" or not argv:
        os._exit(_CANNOT)
    try:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", int(port)))
        listener.listen(_WAITING)
        # Twice: the command must not find a child that it did not start.
        between = os.fork()
        if between == 0:
            os._exit(0) if os.fork() else _carry(listener, path)
        os.waitpid(between, 0)
        listener.close()
        if rules:
            _restrict(rules)
        # Python ignores these two, and what is ignored stays so.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_MISSING if isinstance(error, FileNotFoundError) else _CANNOT)


def _carry(listener: "_socket.socket", path: str) -> NoReturn:
    """Carry bytes until everything here ends with the command."""
    try:
        # Out of reach: the command runs as the same user and may signal its group.
        os.setsid()
        _prctl(_PR_SET_DUMPABLE, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from forward import forward  # type: ignore[import-not-found]

        forward(listener, os.fsencode(path))
    finally:
        os._exit(_CANNOT)


def _restrict(rules: str) -> None:
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))

    with open(rules, "rb") as file:
        code = file.read()
    if not code:
        raise OSError(0, "there are no rules for its system calls")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(Program(len(code) // _INSTRUCTION_BYTES, code)))


def _prctl(option: int, *values: object) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    given = [*values, *([0] * (4 - len(values)))]
    if libc.prctl(option, *(ctypes.c_ulong(each) if isinstance(each, int) else each for each in given)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
