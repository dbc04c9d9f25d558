"""The engine for programs that do not await: the same calls, from any thread, also beside a running event loop."""

import asyncio
import atexit
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from ferrule.core.call import Call, Event, Reply
from ferrule.core.errors import ConfigError
from ferrule.core.tool import Face
from ferrule.engine import Engine

if TYPE_CHECKING:
    import os

    from ferrule.checkpoints.undo import Undone
    from ferrule.core.tool import AnyTool
    from ferrule.dialects import Dialect
    from ferrule.engine.build import EngineOptions
    from ferrule.output.store import Stored
    from ferrule.permissions import Asker, Callback, Decision


T = TypeVar("T")


class SyncEngine:
    """`with SyncEngine(workspace, dialect="amp") as engine: engine.call("Read", path="README.md")`.

    It has a thread with an event loop of its own, on which the engine and its callbacks run.
    """

    def __init__(
        self,
        workspace: "str | os.PathLike[str]" = ".",
        *,
        dialect: "str | Dialect | None" = None,
        model: str | None = None,
        tools: "Iterable[AnyTool]" = (),
        ask: "Asker | Callback | None" = None,
        state: "str | os.PathLike[str] | None" = None,
        on_event: Callable[[Event], object] | None = None,
        **engine: "Unpack[EngineOptions]",
    ) -> None:
        """What an `Engine` takes. `ask` and `on_event` are called on the engine's thread, and must not call back."""
        own: dict[str, Any] = {"dialect": dialect, "model": model, "tools": tools, "ask": ask}
        self._engine = Engine(workspace, **own, state=state, on_event=on_event, **engine)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._entered = 0

    def __enter__(self) -> Self:
        with self._lock:
            if self._thread is None:
                started: Future[None] = Future()
                thread = threading.Thread(target=self._main, args=(started,), name="ferrule-engine", daemon=True)
                thread.start()
                started.result()
                self._thread = thread
                # A program that forgets to close it leaves no process behind all the same.
                atexit.register(self.close)
            self._entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            is_last = self._entered <= 0
        if is_last:
            self.close()

    def close(self) -> None:
        """Stop what runs, wait for it, let go of everything. Closing twice is fine; entering it opens it again."""
        with self._lock:
            thread, self._thread, self._entered = self._thread, None, 0
            if thread is None:
                return
            loop, stop = self._loop, self._stop
            assert loop is not None
            assert stop is not None
            loop.call_soon_threadsafe(stop.set)  # behind every call that was begun, so that each has its answer
        atexit.unregister(self.close)
        if thread is not threading.current_thread():
            thread.join()

    def _main(self, started: "Future[None]") -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve(started))

    async def _serve(self, started: "Future[None]") -> None:
        try:
            async with self._engine:
                self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
                started.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    @overload
    def do(self, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T: ...

    @overload
    def do(self, work: Callable[[Engine], T]) -> T: ...

    def do(self, work: Callable[[Engine], Any]) -> Any:
        """Do something with the engine itself, on its thread, and wait for it: `do(lambda engine: engine.history())`.

        Raises what it raises, and `ConfigError` where the engine is not open or is called from its own callback.
        """

        async def whole() -> Any:
            came = work(self._engine)
            return await came if inspect.isawaitable(came) else came

        if threading.current_thread() is self._thread:
            raise ConfigError("The engine cannot wait for itself: ask and on_event run on its thread, and answer only.")
        with self._lock:
            if self._thread is None or self._loop is None:
                raise ConfigError("The engine is not open: use it as `with SyncEngine(...) as engine:`.")
            waiting = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()  # whoever presses Ctrl-C stops the calls too
            raise

    def definitions(self, wire: str | None = None) -> list[dict[str, Any]]:
        return self.do(lambda engine: engine.definitions(wire))

    def section(self, *, listed: bool = True) -> str:
        return self.do(lambda engine: engine.section(listed=listed))

    def faces(self) -> list[Face]:
        return self.do(lambda engine: engine.faces())

    def run(self, calls: Iterable[Call], *, approved: Iterable[str] = ()) -> list[Reply]:
        """One message's calls, scheduled together; the replies come in the order of the calls."""
        given = list(calls)
        return self.do(lambda engine: engine.run(given, approved=approved))

    def call(self, name: str, /, **input: Any) -> Reply:  # noqa: A002 - the word of the wire
        """One call."""
        return self.run([Call(name, input)])[0]

    def cancel(self) -> None:
        """Stop every running call, whichever thread waits for it."""
        self.do(lambda engine: engine.cancel())

    def decide(self, call: Call) -> "Decision":
        return self.do(lambda engine: engine.decide(call))

    def plan(self, calls: Iterable[Call]) -> list[list[Call]]:
        return self.do(lambda engine: engine.plan(calls))

    def change_mode(self, name: str) -> str:
        return self.do(lambda engine: engine.change_mode(name))

    def connect(self, servers: Sequence[str] | None = None) -> None:
        self.do(lambda engine: engine.connect(servers))

    def undo(self, path: "str | os.PathLike[str] | None" = None) -> "Undone":
        return self.do(lambda engine: engine.undo(path))

    def redo(self, path: "str | os.PathLike[str] | None" = None) -> "Undone":
        return self.do(lambda engine: engine.redo(path))

    def output(self, output_id: str) -> "Stored":
        return self.do(lambda engine: engine.output(output_id))

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.do(lambda engine: engine.warnings)
