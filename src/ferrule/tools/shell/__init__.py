"""What tools come back with about tasks, the commands and agents that go on, and about what the user granted."""

from typing import Literal, NamedTuple

TaskStatus = Literal["running", "completed", "failed", "killed"]


class TaskSeen(NamedTuple):
    """A task, a command that was left running or an agent that works by itself, as it is at this moment."""

    id: str
    number: int
    """The same for families that count their sessions."""
    pid: int
    command: str
    cwd: str
    status: TaskStatus
    """It is killed where a call has stopped it, and failed where it ended by itself with another code than 0."""
    exit_code: int | None = None
    """None while it runs."""
    output: str = ""
    """What it printed, as far as that was asked for."""
    description: str = ""
    took: float = 0.0
    """Seconds since its start, or until its end."""
    total_chars: int = 0
    """Of what was asked for, before any of it was left out."""
    kind: Literal["command", "agent"] = "command"
    """An agent has neither number nor process; its command is what it does, and its output its last message."""


class Left(NamedTuple):
    """A command that goes on as a task."""

    task: TaskSeen
    after: float | None = None
    """Seconds after which it became one; None where it was one from the start."""


class TaskRead(NamedTuple):
    """What a task has printed."""

    task: TaskSeen
    why: Literal["ended", "time", "found", "running"]
    """Why it is told now: it has ended, the time is up, what was waited for has come, or nobody wanted to wait."""
    waited: float = 0.0
    """Seconds."""


class TaskStopped(NamedTuple):
    """A task that was stopped, with all its processes."""

    task: TaskSeen


class TaskList(NamedTuple):
    """The tasks of a session, the oldest first; those that ended are among them while they are remembered."""

    tasks: tuple[TaskSeen, ...]


class Permitted(NamedTuple):
    """What the user has granted for the rest of the session."""

    network: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
