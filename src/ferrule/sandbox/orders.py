"""What a cell is told of one command: its folder, its descriptors, its limits, its words and its variables.

Packets between the engine, the spawner and their processes: bytes of any length, and descriptors.
"""

import contextlib
import errno
import os
import struct
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import _socket


_KINDS = 16
"""How many limits a process has."""
Limit = tuple[int, int, int]
"""Its kind, and how far it can be gone now and at most."""


def order(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    descriptors: Sequence[int],
    *,
    known: Collection[Limit],
    is_certain: bool = False,
) -> list[bytes]:
    """The fields of an order. The limits in `known` are those that the command has anyway. Raises OSError.

    `is_certain`: nobody waits until the program runs; if it cannot, its standard error says why.
    """
    words = [os.fsencode(word) for word in argv]
    entries = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]
    if not words or any(not name or "=" in name for name in env) or any(b"\0" in word for word in (*words, *entries)):
        raise OSError(errno.EINVAL, "The command cannot be started: a word or a variable holds what none can.")
    numbers = " ".join(str(number) for row in limits() if row not in known for number in row)
    targets = " ".join(map(str, descriptors))
    head = [b"%d" % is_certain, os.fsencode(cwd), targets.encode(), numbers.encode()]
    return [*head, b"%d" % len(words), *words, *entries]


def limits() -> list[Limit]:
    """The limits of this process."""
    import resource  # not on Windows, and only commands need it

    return [(kind, *resource.getrlimit(kind)) for kind in range(_KINDS)]


_SOL_SOCKET, _SCM_RIGHTS, _MSG_CMSG_CLOEXEC = 1, 1, 0x40000000
_SHORT, _LONG = b"=", b"+"
_LIMIT_BYTES = 1 << 15
"""What is longer goes through a file in memory."""
_MOST_FILES = 16
_SPACE_BYTES = 16 + 4 * _MOST_FILES + 32
"""For descriptors, and for the credentials that some sockets add."""


def send(channel: "_socket.socket", data: bytes, files: Sequence[int] = ()) -> None:
    """Send one packet. Raises OSError."""
    if len(files) >= _MOST_FILES:  # one is left for what is long
        raise OSError(errno.E2BIG, "Too many descriptors for one packet.")
    with contextlib.ExitStack() as stack:
        if len(data) > _LIMIT_BYTES:
            long = os.memfd_create("packet", os.MFD_CLOEXEC)
            stack.callback(os.close, long)
            left = memoryview(data)
            while left:
                left = left[os.write(long, left) :]
            data, files = b"", (*files, long)
            packet = _LONG
        else:
            packet = _SHORT + data
        rights = [(_SOL_SOCKET, _SCM_RIGHTS, struct.pack(f"={len(files)}i", *files))] if files else []
        channel.sendmsg([packet], rights)


def receive(channel: "_socket.socket") -> tuple[bytes | None, list[int]]:
    """One packet and the descriptors with it; None at the end. Junk is an empty packet. Raises OSError."""
    packet, extra, _, _ = channel.recvmsg(_LIMIT_BYTES + 1, _SPACE_BYTES, _MSG_CMSG_CLOEXEC)
    files: list[int] = []
    for level, kind, content in extra:
        if (level, kind) == (_SOL_SOCKET, _SCM_RIGHTS):
            files += struct.unpack(f"={len(content) // 4}i", content[: len(content) // 4 * 4])
    if not packet:
        return None, files
    if packet[:1] == _LONG and files:
        long = files.pop()
        try:
            return _contents(long), files
        finally:
            os.close(long)
    return (packet[1:] if packet[:1] == _SHORT else b""), files


def _contents(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    pieces: list[bytes] = []
    at = 0
    while at < size and (piece := os.pread(descriptor, size - at, at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)
