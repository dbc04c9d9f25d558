"""What is said of a message as a whole, when all of its calls are over: the errors that its edits have made."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ferrule.context import CallContext
from ferrule.core.access import UNKNOWN
from ferrule.core.call import Done, Event, Reply
from ferrule.files.jail import Jail
from ferrule.flow import stop
from ferrule.output import clean
from ferrule.tools.lsp.diagnostics import FilesSnapshot, Noticing
from ferrule.tools.lsp.servers import LanguageServers


class Notices:
    """Looks at the files of a message's edits before and after. A session has it once it has language servers."""

    def __init__(self, noticing: Noticing, servers: LanguageServers, jail: Jail) -> None:
        self._noticing = noticing
        self._servers = servers
        self._jail = jail

    def begin(self, calls: Sequence[CallContext], emit: Callable[[Event], None]) -> "EditWatch | None":
        """Look at what the calls are about to write; None where no server runs."""
        writes = [access for ctx in calls for access in ctx.touches if access.mode != "read"]
        paths = [access.key for access in writes if access.kind == "path"]
        before = self._noticing.begin(paths)  # also where nothing is declared: kraken's files are known afterwards
        if before is None:
            return None
        watch = EditWatch(self, before, emit, is_wide=any(access.kind in UNKNOWN for access in writes))
        for ctx in calls:
            ctx.watch = watch
        return watch

    def tell(self, paths: Sequence[str], *, is_wide: bool) -> None:
        """Tell the servers of files that were changed, or that any may have been."""
        changed = [*paths, *(root.path for root in self._jail.roots if is_wide)]
        if changed:
            self._servers.touch(changed)

    async def end(self, before: FilesSnapshot, tracked: Sequence[str], *, is_wide: bool) -> dict[str, str]:
        """What is new about the files that were changed, by path. `is_wide`: commands may have changed any file."""
        self.tell((), is_wide=is_wide)
        return dict(await self._noticing.end(before, tracked)) if tracked else {}


class EditWatch:
    """One message between its first call and its last. Ends of calls that changed files are told with what is new."""

    def __init__(
        self, notices: Notices, before: FilesSnapshot, emit: Callable[[Event], None], *, is_wide: bool
    ) -> None:
        self._notices = notices
        self._before = before
        self._emit = emit
        self._is_wide = is_wide
        self._held: list[Done] = []

    def holds(self, done: Done) -> bool:
        """Calls that come later in the message ask servers that know of it."""
        self._notices.tell(done.reply.track_files, is_wide=self._is_wide)
        if done.reply.track_files:
            self._held.append(done)
        return bool(done.reply.track_files)

    def give_up(self) -> None:
        """The message was cancelled: nothing more is said of it."""
        self._tell({})

    async def finish(self, replies: list[Reply], running: set[asyncio.Task[Any]]) -> list[Reply]:
        """The replies with what is new; whoever stops the task that is put into `running` has them as they are."""
        task = asyncio.create_task(self._end(replies))
        running.add(task)
        try:
            await asyncio.wait([task])
        finally:
            running.discard(task)
            await stop([task])
            failed = None if task.cancelled() else task.exception()
            if failed is not None:  # a bug in it harms no reply
                logging.getLogger("ferrule").error("new errors could not be told", exc_info=failed)
            out = replies if task.cancelled() or failed is not None else task.result()
            self._tell({id(old): new for old, new in zip(replies, out, strict=True)})
        return out

    async def _end(self, replies: Sequence[Reply]) -> list[Reply]:
        """Each new thing is said once, with the last reply that changed its file."""
        out = list(replies)
        tracked = dict.fromkeys(path for reply in replies for path in reply.track_files)
        notes = await self._notices.end(self._before, tuple(tracked), is_wide=self._is_wide)
        for path, note in notes.items():
            last = max((at for at, reply in enumerate(out) if path in reply.track_files), default=None)
            if last is not None:
                out[last] = msgspec.structs.replace(out[last], notes=(*out[last].notes, clean(note)))
        return out

    def _tell(self, newer: dict[int, Reply]) -> None:
        held, self._held = self._held, []
        for done in held:
            self._emit(msgspec.structs.replace(done, reply=newer.get(id(done.reply), done.reply)))
