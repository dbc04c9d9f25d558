"""Decoding in a child process with limits: a file that breaks its decoder ends the child, and not the engine.

The child runs as the same user, with limits on memory, time and output. On Linux it also closes itself in before it
reads the file: it opens no other file and no connection. Elsewhere, and on kernels without Landlock, it could reach
what the user can.
"""

import asyncio
import contextlib
import functools
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

INSTALL = "pip install 'ferrule[docs]'"
"""How a user gets the libraries that decode."""

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""What some interpreters do not start without."""
_AT_ONCE = 4
_GONE_SECONDS = 2.0
# Exit codes of the child.
_DAMAGED = 1
_UNLOADED = 4


class DecoderLimits(NamedTuple):
    """What one child may use up."""

    seconds: int = 30
    """By the clock, and of processor time."""
    memory_bytes: int = 1 << 30
    output_bytes: int = 32 << 20


class Undecodable(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The file did not decode. The message begins with a verb: the file's name goes before it."""


class Decoded(NamedTuple):
    """What the child said, and the bytes that it gave."""

    said: bytes
    data: bytes


def folders(modules: Iterable[str]) -> list[str] | None:
    """Where these packages are installed; None where one of them is not."""
    from importlib.util import find_spec  # only a file that must be decoded pays for it

    found: list[str] = []
    for name in modules:
        spec = find_spec(name)
        places = None if spec is None else spec.submodule_search_locations
        if not places:
            return None
        found.append(os.path.dirname(os.path.abspath(next(iter(places)))))
    return list(dict.fromkeys(found))


def environment() -> dict[str, str]:
    """All that a child gets of the engine's."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


async def decode(
    task: str, raw: bytes, wanted: Mapping[str, Any], *, limits: DecoderLimits, where: Iterable[str]
) -> Decoded:
    """Let a child do `task` on a file's bytes, with packages from the folders `where`.

    It gets no environment, no folder and no descriptor but its pipes. However this ends, also by cancellation, the
    child is killed and reaped.

    Raises: Undecodable.
    """
    order = {
        **wanted,
        "task": task,
        "folders": list(where),
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
        "rules": rules().hex(),
    }
    argv = (sys.executable, "-I", "-S", _PROGRAM, json.dumps(order))
    # A group of its own: an interrupt from the keyboard is the engine's to handle.
    apart: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    loop = asyncio.get_running_loop()
    async with _turns(loop):
        heard = _Heard(limits.output_bytes)
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: heard,
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                env=environment(),
                **apart,
            )
        except OSError as error:
            raise Undecodable(f"could not be decoded: the decoder does not start ({error.strerror}).") from error
        try:
            feed = transport.get_pipe_transport(0)
            assert isinstance(feed, asyncio.WriteTransport)
            feed.write(raw)
            feed.close()  # once all of it is written
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.seconds):
                    await heard.over.wait()
        finally:
            transport.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GONE_SECONDS):
                    await heard.over.wait()
        exit_code = transport.get_returncode()
    if exit_code == _DAMAGED:
        raise Undecodable("is damaged, or not what it claims to be.")
    if exit_code == _UNLOADED:
        raise Undecodable(f"could not be decoded: the libraries for it do not load. Try {INSTALL} again.")
    if exit_code != 0 or heard.too_much:
        memory = f"{limits.memory_bytes / (1 << 20):,.0f} MiB"
        raise Undecodable(f"could not be decoded within the limits of {limits.seconds} seconds and {memory} of memory.")
    said, _, data = bytes(heard.output).partition(b"\n")
    return Decoded(said, data)


@functools.cache
def rules() -> bytes:
    """The system calls that the child denies itself; nothing where they cannot be named."""
    if sys.platform != "linux":
        return b""
    from ferrule.sandbox import kernel  # only a file that must be decoded pays for it

    with contextlib.suppress(OSError):
        return kernel.native(network=False, unix_sockets=False)
    return b""


class _Heard(asyncio.SubprocessProtocol):
    """What the child has written so far, and whether it is gone."""

    def __init__(self, most_bytes: int) -> None:
        self.output = bytearray()
        self.too_much = False
        self.over = asyncio.Event()
        """The process is reaped and its pipes are closed."""
        self._most_bytes = most_bytes
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - only standard output is a pipe to read
        if len(self.output) + len(data) <= self._most_bytes:
            self.output += data
        elif not self.too_much:
            self.too_much = True
            assert self._transport is not None
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it ended, it is over
        self.over.set()


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _turns(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """Who may decode: twenty pictures at once must not take twenty times the memory."""
    return _TURNS.setdefault(loop, asyncio.Semaphore(_AT_ONCE))
