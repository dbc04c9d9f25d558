"""What a running call reaches: its paths, the engine's services, and what it says beside its outcome."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from ferrule.core.access import Access
from ferrule.core.call import Call, Event, Progress
from ferrule.core.errors import FerruleError
from ferrule.core.tool import Preview
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.output import clean
from ferrule.services import Services
from ferrule.system import Threads

if TYPE_CHECKING:
    from ferrule.core.call import Changes, Done, Stop
    from ferrule.core.tool import Face
    from ferrule.system.highlights import OutputHighlights


S = TypeVar("S")


class MessageWatch(Protocol):
    """Looks at a message from before its first call until after its last."""

    def holds(self, done: "Done") -> bool:
        """Does it tell of this end itself, later?"""


_GUIDANCE_BYTES = 102_400
"""Of all guidance in one reply: files of a workspace must not fill a model's memory."""


class CallContext:
    """The `Context` of one call."""

    __slots__ = (
        "_clock",
        "_emit",
        "_home",
        "_jail",
        "_new_log",
        "_paths",
        "_services",
        "_thread",
        "agreed",
        "alive",
        "asks",
        "asks_hosts",
        "call_id",
        "changes",
        "checkpointed",
        "edits",
        "exit_code",
        "found",
        "given",
        "hooked",
        "input",
        "kept",
        "log",
        "missing",
        "name",
        "notes",
        "output",
        "over",
        "spelled",
        "spoken",
        "started",
        "stop",
        "touches",
        "tracked",
        "watch",
    )

    def __init__(
        self,
        call: Call,
        *,
        jail: Jail,
        services: Services,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        new_log: Callable[[], tuple[str, str]],
    ) -> None:
        self.call_id, self.name = call.id, call.name
        self.input: dict[str, Any] = {}
        """The arguments in canonical names and in their final form."""
        self.given: Mapping[str, Any] = {}
        """The arguments as the caller gave them, in the session's names."""
        self.agreed: Preview | None = None
        """What a person was shown of it and said yes to."""
        self.spoken: Face | None = None
        """The face in whose words its arguments came."""
        self.missing = 0
        """Characters that the tool has left out of the middle of its output."""
        self.found: Callable[[], OutputHighlights] | None = None
        """Finds the lines of it that matter."""
        self.spelled: dict[str, str] = {}
        """Real path → the same as the caller spelled it, with its links."""
        self.touches: tuple[Access, ...] = ()
        self.asks: Callable[[str, Preview], Awaitable[bool]] | None = None
        """How a person is asked while the call runs."""
        self.asks_hosts: Callable[[str], Awaitable[Literal["no", "yes", "always", "outside"]]] | None = None
        self.changes: Changes | None = None
        """What it has changed otherwise than through the writer."""
        self.checkpointed = False
        """Was the state of the workspace kept before it ran?"""
        self.edits: dict[str, tuple[bytes | None, bytes | None]] = {}
        """What was in the files that it has changed, and is in them now."""
        self.exit_code, self.output = cast("int | None", None), ""
        """Of a command, where the call ran one to its end, and what it has printed."""
        self.hooked = ("", "")
        """What the user's hooks say about the call, and why."""
        self.stop: Stop | None = None
        """Is the work to end with this call?"""
        self.started, self.over = 0.0, False
        self.notes: list[str] = []
        self.tracked: list[str] = []
        self.log: tuple[str, str] | None = None
        """Id and path of the log that the tool asked for."""
        self.kept: int | None = None
        """The size of the log, when the tool says that it is worth keeping."""
        self.watch: MessageWatch | None = None
        """Who has something to say of the whole message when its calls are over."""
        self.alive: Callable[[], None] | None = None
        """Starts the time limit anew; set while the body runs."""
        self._jail = jail
        self._services = services
        self._emit = emit
        self._clock = clock
        self._new_log = new_log
        self._paths: dict[str, str] = {}
        self._home = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def path(self, path: str) -> str:
        """Resolved once per call: what was permitted is what is opened, whatever links appear meanwhile."""
        real = self._paths.get(path)
        if real is None:
            real = self._paths[path] = self._jail.real(path)
            self.spelled[real] = self._jail.lexical_path(path)
        return real

    def need(self, service: type[S]) -> S:
        found = self._services[service]
        # What is read and written here, this call has shown.
        return cast("S", found.of(self.call_id)) if isinstance(found, Ledger) else found

    def progress(self, message: str, rows: tuple[str, ...] = ()) -> None:
        if threading.get_ident() != self._thread:
            with contextlib.suppress(RuntimeError):  # the engine's loop is gone
                self._home.call_soon_threadsafe(self.progress, message, rows)
            return
        if self.over:
            return  # what the call has begun goes on for somebody else
        if self.alive is not None:
            self.alive()
        self._emit(Progress(id=self.call_id, name=self.name, at=self._clock(), message=message, rows=rows))

    async def approve(self, sentence: str, *, planted: Preview = ()) -> bool:
        return self.asks is not None and await self.asks(sentence, planted)

    async def approve_hosts(self, sentence: str) -> Literal["no", "yes", "always", "outside"]:
        return "no" if self.asks_hosts is None else await self.asks_hosts(sentence)

    def param(self, canonical: str) -> str:
        return self.spoken.shown_param(canonical) if self.spoken is not None else canonical

    def note(self, sentence: str) -> None:
        cleaned = clean(sentence)
        if cleaned not in self.notes:
            self.notes.append(cleaned)

    def track(self, path: str, change: tuple[bytes | None, bytes | None] | None = None) -> None:
        self.tracked.append(path)
        if change is not None and change[0] != change[1]:
            before, after = change
            first = self.edits.get(path)
            self.edits[path] = (before if first is None else first[0], after)

    async def offer_guidance(self, touches: Iterable[Access]) -> None:
        """Tell the model, once, what the guidance files say that hold for what the call has touched.

        What there is no room for is told when a call next comes to its folder.
        """
        room = _GUIDANCE_BYTES
        for access in touches:
            if (
                access.kind == "path"
                and room > 0
                and not (guidance := self._services.guidance()).is_settled(access.key)
            ):
                for guide in await self.need(Threads).run(guidance.guides_for, access.key, room):
                    room -= len(guide.text.encode(errors="replace"))
                    about = (
                        "was mentioned for files like this" if guide.kind == "mentioned" else "holds for this folder"
                    )
                    self.note(f"{guide.path} {about}:\n{guide.text.rstrip()}")

    def tell_ended(self) -> None:
        """Tell, once, of the commands that were left running and have ended since."""
        for ending in self._services.endings():
            self.note(ending)

    def new_log(self) -> str | None:
        try:
            self.log = self._new_log()
        except FerruleError as error:
            self.note(f"The full output will not be kept: {error}")
            return None
        return self.log[1]

    def drop_log(self) -> None:
        self.kept = None

    def keep_log(self, size_bytes: int, *, missing: int = 0) -> None:
        self.kept = size_bytes
        self.missing = missing

    def mark(self, find: "Callable[[], OutputHighlights]") -> None:
        self.found = find

    def finish(self) -> None:
        """The call is over: a log that nobody keeps goes away."""
        self.over = True
        if self.log is not None and self.kept is None:
            with contextlib.suppress(OSError):
                os.unlink(self.log[1])
