"""How a process comes to be: by Python's own `Popen`, or by whatever else can start one."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Started(Protocol):
    """A process that was started; `Popen` is one.

    It stays unreaped until it was asked for its exit code after its end: until then its id is its own.
    """

    pid: int
    returncode: int | None
    """As `Popen` has it: negative for a signal, None until it was asked for after the end."""

    def poll(self) -> int | None:
        """The exit code, if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended. Raises `subprocess.TimeoutExpired`."""


class Attended(Started, Protocol):
    """A process that somebody attends to: who can end all that it has started, wherever that went."""

    born: float
    """When the process was made, by the monotonic clock: it may have waited for its command."""

    def alone(self) -> bool:
        """To be asked after its end: is it certain that it has left nothing running? Its id stays its own."""

    def end(self) -> None:
        """Kill it and all that it has started. It may block until that was done."""


class Starter(Protocol):
    """Starts processes, each as the leader of a session of its own."""

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        descriptors: Sequence[int] = (),
    ) -> Started:
        """Start a process with these descriptors; those of `descriptors` it inherits under their own numbers.

        Raises OSError when it cannot start; blocks for a moment only.
        """
