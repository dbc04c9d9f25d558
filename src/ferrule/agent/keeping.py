"""Keeping a conversation as it goes on: written behind its back, so that no turn waits for the disk."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.agent.attachments import names_of
from ferrule.agent.history import words_of
from ferrule.agent.prompt import checked_out
from ferrule.wire.turn import Document, Image, Result, Text, Thinking, Turn, Use
from ferrule.workspace.thread import PROMPT, SAID_CHARS, TITLE, WRITTEN

if TYPE_CHECKING:
    from ferrule.agent.past import Mark
    from ferrule.workspace.thread_store import Item, ThreadStore

_encode = msgspec.json.Encoder().encode
_SEARCHED_CHARS = 20_000
"""Of one turn: more than this is no help to whoever searches."""


_LAST_SECONDS = 5.0
_LATER_SECONDS = 0.02
"""So long a turn may wait for others: waking a thread takes its time from whoever is at work just then."""


class _Batch(NamedTuple):
    """What is written at once."""

    items: "Sequence[Callable[[], Item]]"
    written: Callable[[], None] | None = None
    """Called when it is, or could not be: somebody waits for that."""


class Keeping:
    """Writes one conversation into the store, on a thread of its own. What goes wrong there never stops the loop."""

    def __init__(self, store: "ThreadStore", thread: str, trouble: Callable[[str], None], **about: str) -> None:
        """`about` is what the store is told of a new conversation: workspace, repo, model, dialect, parent, title."""
        self._store = store
        self._thread = thread
        self._about = about
        self._trouble = trouble
        self._queue: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._waiting: list[Callable[[], Item]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writer: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed = False

    def turn(self, turn: Turn, files: tuple[str, ...] = ()) -> None:
        """One more turn; the first names the conversation."""
        if "title" not in self._about:
            self._about["title"] = _title(turn)
        self._put(lambda: _item(turn, files))

    def whole(self, turns: Sequence[Turn], marks: "Sequence[Mark]" = ()) -> None:
        """The conversation was made smaller: from here on it is these turns, with these prompts, and what follows."""
        kept = {"turns": list(turns), "marks": list(marks)}
        self._put(lambda: _other("compacted", kept))

    def rename(self, title: str, by: str) -> None:
        """Give the conversation a title; `by` is `user` or `model`, and the user's own stays."""
        self._put(lambda: _other(TITLE, {"title": title, "by": by}))

    def note(self, kind: str, value: Any) -> None:
        """Something about the conversation that is no turn, such as what it has cost."""
        self._put(lambda: _other(kind, value))

    @property
    def is_named(self) -> bool:
        """Has it a turn that names the conversation?"""
        return "title" in self._about

    async def flush(self) -> None:
        """Wait until all of it is written."""
        if self._writer is None and not self._waiting:
            return
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._send(lambda: _tell(loop, written))
        await written

    async def text(self) -> str:
        """All of it that is stored, line by line."""
        await self.flush()
        return await asyncio.to_thread(self._text)

    def _text(self) -> str:
        from ferrule.agent.stored import as_text, looked_up  # for conversations that were summed up

        thread = looked_up(lambda: self._store.load(self._thread))
        return as_text(thread.items if thread is not None else ())

    async def close(self) -> None:
        if self._writer is None and not self._waiting:
            return
        self._send()
        writer, self._writer = self._writer, None
        assert writer is not None
        self._queue.put(None)
        try:
            await asyncio.get_running_loop().run_in_executor(None, writer.join)
        except asyncio.CancelledError:
            # Whoever is in such a hurry waits a moment all the same: what was said is not lost, and no thread is left.
            writer.join(_LAST_SECONDS)
            raise

    def _put(self, item: "Callable[[], Item]") -> None:
        self._waiting.append(item)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LATER_SECONDS, self._send)

    def _send(self, written: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer is None:
            self._loop = asyncio.get_running_loop()
            # A daemon: an interpreter that ends without closing does not wait for it.
            self._writer = threading.Thread(target=self._write, name="ferrule-keeping", daemon=True)
            self._writer.start()
        self._queue.put(_Batch(self._waiting, written))
        self._waiting = []

    def _write(self) -> None:
        from ferrule.support.sqlite import UnusableError  # loads SQLite, away from the loop

        begun = False
        while (batch := self._queue.get()) is not None:
            try:
                if not begun:
                    self._store.begin(self._thread, **self._about)
                    begun = True
                if not self._failed:
                    items = [make() for make in batch.items]
                    has_prompt = any(one.kind == PROMPT for one in items)
                    branch = checked_out(self._about.get("workspace", "")) if has_prompt else ""
                    self._store.append(self._thread, items, branch=branch)
            # The last three for what nobody can write: a thread that died of it would leave whoever flushes waiting.
            except (UnusableError, OSError, ValueError, TypeError, RecursionError) as error:
                if not self._failed:
                    self._say(f"This conversation is not kept any more. {error}")
                self._failed = begun = True
            if batch.written is not None:
                batch.written()

    def _say(self, sentence: str) -> None:
        """Where everything else is told: whoever listens is not called from two threads."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever listened
                self._loop.call_soon_threadsafe(self._trouble, sentence)


def _tell(loop: asyncio.AbstractEventLoop, written: "asyncio.Future[None]") -> None:
    with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
        loop.call_soon_threadsafe(_set, written)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _title(turn: Turn) -> str:
    words = next((part.text.strip() for part in turn.parts if isinstance(part, Text) and part.text.strip()), "")
    return (words or "; ".join(names_of(turn.parts))).split("\n", 1)[0][:200]


def _item(turn: Turn, files: tuple[str, ...]) -> "Item":
    from ferrule.workspace.thread_store import Item  # on the writer's thread

    said = words_of(turn) if turn.role == "assistant" else ""
    return Item("turn", turn.role, _encoded(turn), _searched(turn), files, said=_first_chars(said))


def _other(kind: str, value: Any) -> "Item":
    from ferrule.workspace.thread_store import Item  # on the writer's thread

    return Item(kind, "", _encoded(value), said=_first_chars(value) if kind == WRITTEN else "")


def _first_chars(text: str) -> str:
    return " ".join(text[: 2 * SAID_CHARS].split())[:SAID_CHARS]


def _encoded(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        import json  # half of a surrogate pair has no UTF-8, and models do write it

        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _searched(turn: Turn) -> str:
    """What a search should find: words, and what was called with what; of outputs only their beginning."""
    found = []
    for part in turn.parts:
        match part:
            case Text():
                found.append(part.text)
            case Use():
                found.append(
                    f"{part.name} {part.input if isinstance(part.input, str) else _encoded(part.input).decode()}"
                )
            case Result():
                found += [one.text[:500] for one in part.parts if isinstance(one, Text)]
            case Image() | Document():
                found.append(part.title)
            case Thinking() | _:
                pass
    return "\n".join(found)[:_SEARCHED_CHARS]
