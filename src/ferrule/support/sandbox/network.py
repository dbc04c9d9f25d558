"""What a cell does in its session's network for the engine: sockets to use there, and who listens."""

import _socket
import contextlib

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
