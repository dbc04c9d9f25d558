"""Lua modules as tools, in a state of their own without files, programs, or a way into Python.

The state is no wall against somebody who knows a fault of the interpreter; it keeps an honest tool honest and a runaway
one from taking the session along. A tool has `sandbox.MEMORY_BYTES` and the time of its call.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.output.clean import clean
from ferrule.settings import Settings
from ferrule.sources.brought import Brought
from ferrule.sources.custom.declared import DeclaredTool, declared_of, outcome
from ferrule.sources.custom.sandbox import LuaFailed, State, is_installed

MISSING = "Lua tools need lupa; install it with: pip install 'ferrule[lua]'."
_LOAD_SECONDS = 5.0
_WAIT_SECONDS = 0.05


def load_lua(path: str, source: bytes) -> Brought:
    """The tool of one module, which is compiled of these bytes. A broken one is a warning, in the words of ah."""
    if not is_installed():
        return Brought((), (MISSING,))
    until = time.monotonic() + _LOAD_SECONDS
    state = State(source, path)
    try:
        state.compile(lambda: time.monotonic() > until)
    except LuaFailed as error:
        return Brought((), (f"failed to load {path}: {error}",))
    try:
        said = state.describe(lambda: time.monotonic() > until)
    except LuaFailed as error:
        return Brought((), (f"failed to execute {path}: {error}",))
    try:
        raw = _decoded(said)
        keeper = _Keeper(state)
        members = {**raw, "execute": keeper.call if raw.get("execute") else None} if isinstance(raw, dict) else {}
        return Brought((DeclaredTool(declared_of(members), path),))
    except ValueError as error:
        return Brought((), (f"invalid tool format in {path}: {clean(str(error))}",))


class _Keeper:
    """Keeps a tool's state from call to call, and lets one call at a time in; a state that broke is made anew."""

    def __init__(self, state: State) -> None:
        self._state: State | None = state
        self._source, self._path = state.source, state.path
        self._turn = threading.Lock()
        self._holder: Context | None = None

    def call(self, values: dict[str, Any], ctx: Context) -> Any:
        """Run `execute`. This blocks: it is for a thread of its own."""
        until = time.monotonic() + ctx.need(Settings).limits.seconds
        is_over: Callable[[], bool] = lambda: ctx.over or time.monotonic() > until  # noqa: E731 - one line, used thrice
        turn = self._enter(ctx, is_over)
        state: State | None = None
        try:
            state = self._state or self._fresh(is_over)
            answer = state.execute(json.dumps(values).encode(), is_over)
        except LuaFailed as error:
            if error.is_broken:
                state = None
            raise ToolFailure(str(error)) from error
        finally:
            if self._turn is turn:
                self._state = state
            turn.release()
        return outcome(_decoded(answer[1:]), failed=answer[:1] == b"!")

    def _fresh(self, is_over: Callable[[], bool]) -> State:
        state = State(self._source, self._path)
        state.compile(is_over)
        state.describe(is_over)
        return state

    def _enter(self, ctx: Context, is_over: Callable[[], bool]) -> threading.Lock:
        while True:
            turn = self._turn
            if turn.acquire(timeout=_WAIT_SECONDS):
                if turn is self._turn:
                    self._holder = ctx
                    return turn
                turn.release()
            elif is_over():
                raise ToolFailure("An earlier call of the tool has not ended.", code="timed-out")
            elif self._holder is not None and self._holder.over and turn is self._turn:
                # That call has its answer, and yet something holds its thread: it may keep the state, too.
                self._turn, self._state = threading.Lock(), None


def _decoded(said: bytes) -> Any:
    try:
        return msgspec.json.decode(said.decode("utf-8", "replace"))
    except msgspec.DecodeError as error:
        raise ValueError("it says something that is not JSON.") from error
