"""Keeping a conversation as it goes on: written behind its back, so that no turn waits for the disk."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.wire.turn import Image, Result, Text, Thinking, Turn, Use

if TYPE_CHECKING:
    from ferrule.workspace.thread_store import Item, ThreadStore

_encode = msgspec.json.Encoder().encode
_SEARCHED_CHARS = 20_000
"""Of one turn: more than this is no help to whoever searches."""


class _Work(NamedTuple):
    """Something to be done on the writer's thread."""

    do: Callable[[], None]
    always: bool = False
    """Also when the store cannot be used any more: somebody waits for it."""


class Keeping:
    """Writes one conversation into the store, on a thread of its own. What goes wrong there never stops the loop."""

    def __init__(self, store: "ThreadStore", thread: str, trouble: Callable[[str], None], **about: str) -> None:
        """`about` is what the store is told of a new conversation: workspace, repo, model, dialect, parent, title."""
        self._store = store
        self._thread = thread
        self._about = about
        self._trouble = trouble
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._failed = False

    def turn(self, turn: Turn, files: tuple[str, ...] = ()) -> None:
        """One more turn; the first names the conversation."""
        if self._writer is None and "title" not in self._about:
            self._about["title"] = _title(turn)
        self._put(lambda: self._append(_item(turn, files)))

    def whole(self, turns: list[Turn]) -> None:
        """The conversation was made smaller: from here on it is these turns, and what follows."""
        kept = list(turns)
        self._put(lambda: self._append(_other("compacted", {"turns": kept})))

    def note(self, kind: str, value: Any) -> None:
        """Something about the conversation that is no turn, such as what it has cost."""
        self._put(lambda: self._append(_other(kind, value)))

    def about(self, **about: str) -> None:
        """What is known of it now, before its first turn."""
        self._about |= about

    async def flush(self) -> None:
        """Wait until all of it is written."""
        if self._writer is None:
            return
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._queue.put(_Work(lambda: _tell(loop, written), always=True))
        await written

    async def close(self) -> None:
        await self.flush()
        if self._writer is not None:
            self._queue.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._writer.join)
            self._writer = None

    def _put(self, work: Callable[[], None]) -> None:
        if self._writer is None:
            # A daemon: an interpreter that ends without closing does not wait for it.
            self._writer = threading.Thread(target=self._write, name="ferrule-keeping", daemon=True)
            self._writer.start()
            self._queue.put(_Work(self._begin))
        self._queue.put(_Work(work))

    def _begin(self) -> None:
        self._store.begin(self._thread, **self._about)

    def _append(self, item: "Item") -> None:
        self._store.append(self._thread, [item])

    def _write(self) -> None:
        from ferrule.support.sqlite import UnusableError  # loads SQLite, away from the loop

        while (work := self._queue.get()) is not None:
            if self._failed and not work.always:
                continue
            try:
                work.do()
            except (UnusableError, OSError) as error:
                self._failed = True
                self._trouble(f"This conversation is not kept any more. {error}")


def _tell(loop: asyncio.AbstractEventLoop, written: "asyncio.Future[None]") -> None:
    with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
        loop.call_soon_threadsafe(_set, written)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _title(turn: Turn) -> str:
    words = next((part.text.strip() for part in turn.parts if isinstance(part, Text) and part.text.strip()), "")
    return words.split("\n", 1)[0][:200]


def _item(turn: Turn, files: tuple[str, ...]) -> "Item":
    from ferrule.workspace.thread_store import Item  # on the writer's thread

    return Item("turn", turn.role, _encode(turn), _searched(turn), files)


def _other(kind: str, value: Any) -> "Item":
    from ferrule.workspace.thread_store import Item  # on the writer's thread

    return Item(kind, "", _encode(value))


def _searched(turn: Turn) -> str:
    """What a search should find: words, and what was called with what; of outputs only their beginning."""
    found = []
    for part in turn.parts:
        match part:
            case Text():
                found.append(part.text)
            case Use():
                found.append(
                    f"{part.name} {part.input if isinstance(part.input, str) else _encode(part.input).decode()}"
                )
            case Result():
                found += [one.text[:500] for one in part.parts if isinstance(one, Text)]
            case Thinking() | Image() | _:
                pass
    return "\n".join(found)[:_SEARCHED_CHARS]
