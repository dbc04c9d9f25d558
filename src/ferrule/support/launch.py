"""What is started and how (`Launch`), what came of it (`Finished`), and what is looked for meanwhile (`Seeker`)."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from ferrule.support import owned, reaper
from ferrule.support.child import Child, Reads
from ferrule.support.limits import Limits, limited
from ferrule.support.programs import find
from ferrule.support.roster import Roster
from ferrule.support.starter import Starter
from ferrule.support.tail import Log
from ferrule.support.tree import Tree

_SEEN_CHARS = 8192
"""What a pattern matches may be so long and lie across two pieces of output."""

Outcome = Literal["ended", "time", "quiet", "found"]


class Pattern(Protocol):
    """What can look for something in a text; an `re.Pattern` can."""

    def search(self, string: str, /) -> object | None: ...


class Launch(NamedTuple):
    """What is started, and what is kept of it."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    apart: bool = False
    """Are the errors kept apart from the output?"""
    stdin: Reads = "none"
    log: str | None = None
    """A path where nothing exists yet. It receives the raw bytes; its owner alone can read it."""
    log_limit_bytes: int = 0
    log_late: bool = False
    """Is the log made when the first byte comes?"""
    head_chars: int = 0
    tail_chars: int = 50_000
    limits: Limits | None = None
    starter: Starter | None = None
    """What starts it; None: as any program is started."""
    descriptors: tuple[int, ...] = ()
    """Inherited under their own numbers, and closed here when it was started or could not be."""
    roster: Roster | None = None
    task: str = ""
    """Under which id the roster lists it."""
    grace_seconds: float = 0.2
    """So long what it left running may still write when it has ended, and so long each has between TERM and KILL."""
    command: str = ""
    """What the roster shows of it, where that is not all of its words."""
    done: Callable[[], None] | None = None
    """Called once on a thread when it was started and all of it has ended; only then it counts as ended."""
    is_done_soon: bool = False
    """Does that take less time than a thread? Then it is called on the loop."""


class Finished(NamedTuple):
    """What came of a command, or has come of it so far."""

    exit_code: int | None
    """As shells count: 128 and the signal's number where a signal ended it. None while it runs."""
    text: str
    """The ends of the output, as a reader would see them, with the errors among it unless those are apart."""
    errors: str
    """The ends of the errors, where they are apart."""
    missing_chars: int
    """Characters of the output that lie between its ends."""
    total_bytes: int
    total_chars: int
    """Characters that a reader would have seen."""
    logged_bytes: int
    timed_out: bool
    survivors_killed: int
    """Processes besides the command that still ran; where they cannot be counted, 1 for all of them."""
    log_error: str | None
    """Why the log ends early, where that is not its limit."""


def begin(launch: Launch, tree: Tree) -> tuple[Child, Log, str]:
    """Start the process that leads the tree; it, its log and its token in the roster. Raises OSError."""
    roster, token = launch.roster, ""
    if owned.is_ours() and not reaper.adopts():
        reaper.adopt_orphans()
    try:
        log = Log(launch.log, launch.log_limit_bytes, late=launch.log_late)
        try:
            argv = limited(launch.argv, launch.limits)
            if argv is not launch.argv or launch.stdin == "terminal":
                find(launch.argv[0], cwd=launch.cwd, env=launch.env)  # the shell in front would only say it
            if roster is not None:
                command, cwd = launch.command or " ".join(launch.argv), launch.cwd
                token = roster.add(tree, command=command, cwd=cwd, task=launch.task, log=launch.log)
            with tree.numbering():
                child = Child(
                    argv,
                    cwd=launch.cwd,
                    env=tree.environment(launch.env),
                    apart=launch.apart,
                    session=True,
                    reads=launch.stdin,
                    starter=launch.starter,
                    descriptors=launch.descriptors,
                )
        except BaseException:
            log.discard()
            if roster is not None:
                roster.remove(token)
            raise
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    tree.lead(child.pid, born=child.attended.born if child.attended is not None else None)
    if roster is not None:
        # The command is starting anyway meanwhile; without this it would be found by its mark.
        asyncio.get_running_loop().call_soon(roster.started, token, child.pid)
    return child, log, token


class Seeker:
    """Looks for a pattern in output that comes piece by piece."""

    def __init__(self, pattern: Pattern, texts: Sequence[str]) -> None:
        self.found = any(pattern.search(text) is not None for text in texts)
        self._pattern = pattern
        self._seen: dict[int, str] = {number: text[-_SEEN_CHARS:] for number, text in enumerate(texts)}

    def look(self, stream: int, certain: str, line: str) -> bool:
        """Is it there, now that this has come and the line that is being written looks like that?"""
        if not self.found:
            text = self._seen.get(stream, "") + certain
            self.found = self._pattern.search(text + line) is not None
            self._seen[stream] = text[-_SEEN_CHARS:]
        return self.found
