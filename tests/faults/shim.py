"""The calls through which files are changed, counted; the one that was chosen kills the process or fails."""

import errno
import fcntl
import os
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Self

WATCHED = (
    *((os, name) for name in ("open", "write", "fsync", "close", "mkdir", "rmdir", "unlink", "replace", "rename")),
    *((os, name) for name in ("link", "ftruncate", "fchmod", "fchown", "setxattr", "removexattr")),
    (fcntl, "flock"),
)


class Fault(NamedTuple):
    """What goes wrong at call number `at`, from 1: `kill`, `torn` (killed within a write), or the name of an error."""

    how: str
    at: int
    lasting: bool = False
    """Do all later calls of the same name fail too? A full disk stays full."""


class Shim:
    """Stands between the engine and the operating system, from `__enter__` on."""

    def __init__(self, fault: Fault | None) -> None:
        self.calls: list[str] = []
        self._fault = fault
        self._broken = ""

    def __enter__(self) -> Self:
        for module, name in WATCHED:
            if hasattr(module, name):
                self._wrap(module, name)
        return self

    def __exit__(self, *_: object) -> None:
        """The process ends soon; nothing has to be put back."""

    def _wrap(self, module: ModuleType, name: str) -> None:
        real: Callable[..., Any] = getattr(module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if self._fault is not None and (len(self.calls) == self._fault.at or name == self._broken):
                self._break(self._fault, real, name, args)
            return real(*args, **kwargs)

        setattr(module, name, call)

    def _break(self, fault: Fault, real: Callable[..., Any], name: str, args: tuple[Any, ...]) -> None:
        if fault.how == "torn" and name == "write":
            descriptor, data = args
            real(descriptor, bytes(data)[: len(data) // 2])
        if fault.how in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.lasting:
            self._broken = name
        code = getattr(errno, fault.how)
        raise OSError(code, os.strerror(code))
