"""The resolver of a session's network: it hears which names are asked for, and knows none of them.

Nothing is forwarded: a name that is sent to a resolver outside would carry data out of the sandbox.
"""

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import Callable

PORT = 53
_HEAD_BYTES = 12
_MOST_BYTES = 4096
_MOST_AT_ONCE = 64
_REMEMBERED = 100
_RESPONSE, _RECURSION, _NO_SUCH_NAME, _NOT_UNDERSTOOD = 0x8000, 0x0080, 3, 1
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)+")
_LOCAL = (".arpa", ".local", ".localhost", ".localdomain", ".internal", ".lan", ".home")
"""Names that programs ask for by themselves, or that mean nothing outside of a network."""


class Resolver:
    """Answers on one socket until it is closed."""

    def __init__(self, listener: socket.socket, heard: Callable[[str], None]) -> None:
        """`heard` is called for every name that a program asks for, on the running loop."""
        self._listener = listener
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener.fileno(), self._read)

    def close(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()

    def _read(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                data, sender = self._listener.recvfrom(_MOST_BYTES)
            except OSError:
                return
            name, answer = answered(data)
            if answer:
                with contextlib.suppress(OSError):
                    self._listener.sendto(answer, sender)
            if name and _NAME.fullmatch(name) and not name.endswith(_LOCAL):
                self._heard(name)


def answered(data: bytes) -> tuple[str, bytes]:
    """The name that a query asks for, and the answer that there is none; nothing for what is no query."""
    if len(data) < _HEAD_BYTES:
        return "", b""
    number, flags, questions = struct.unpack_from("!3H", data)
    if flags & _RESPONSE:
        return "", b""
    name, end = _question(data)
    if questions != 1 or not end:
        return "", struct.pack("!6H", number, _RESPONSE | _RECURSION | _NOT_UNDERSTOOD, 0, 0, 0, 0)
    head = struct.pack("!6H", number, _RESPONSE | (flags & 0x0100) | _RECURSION | _NO_SUCH_NAME, 1, 0, 0, 0)
    return name, head + data[_HEAD_BYTES:end]


def _question(data: bytes) -> tuple[str, int]:
    """The name in the question, in small letters, and where the question ends; 0 where it is malformed."""
    labels: list[str] = []
    at = _HEAD_BYTES
    while at < len(data) and (size := data[at]):
        if size > 63 or at + 1 + size > len(data) or len(labels) > 127:
            return "", 0
        labels.append(data[at + 1 : at + 1 + size].decode("ascii", "replace").lower())
        at += 1 + size
    end = at + 5  # the empty label, the type and the class
    return (".".join(labels), end) if end <= len(data) else ("", 0)


class Names:
    """The names that were asked for and not answered, each once, the last ones of many."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self.heard = asyncio.Event()
        """Set when a name was asked for, until `take`."""

    def add(self, name: str) -> None:
        self._names.pop(name, None)
        self._names[name] = None
        while len(self._names) > _REMEMBERED:
            del self._names[next(iter(self._names))]
        self.heard.set()

    def look(self) -> list[str]:
        return list(self._names)

    def take(self) -> list[str]:
        """All of them, once: a later command is not to be blamed for them."""
        taken = list(self._names)
        self._names.clear()
        self.heard.clear()
        return taken
