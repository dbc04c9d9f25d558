"""Load Lua modules as tools, each in a state of its own without files, programs or access to Python.

The state is no wall against an attacker who knows a fault of the interpreter; it keeps an honest tool honest and
a runaway one from taking the session along. A tool has `sandbox.MEMORY_BYTES` and the time of its call.

Python never touches a value of the tool's: a table there may have code behind it, and lupa ends the whole process
if Lua runs out of memory outside of a protected call. Only texts go in and come out, and the bound on memory
holds only while the tool's own code runs.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.output.clean import clean
from ferrule.settings.schema import Settings
from ferrule.sources.custom.module import DeclaredTool, outcome, parse_record
from ferrule.sources.function import SourceTools

MEMORY_BYTES = 64 << 20
_STEP = 1000
"""Instructions between two looks at the clock."""
_UNBOUND = 1 << 60
_MOST_CHARS = 2000

IsOver = Callable[[], bool]


class LuaFailed(Exception):  # noqa: N818 - the state, as it is told
    """The tool raised an error, or was stopped. The message is Lua's own."""

    def __init__(self, message: str, *, is_broken: bool = False) -> None:
        super().__init__(clean(message).strip()[:_MOST_CHARS])
        self.is_broken = is_broken
        """Can the state not be used any more?"""


@cache
def is_installed() -> bool:
    """Is lupa there, and with it a Lua that can be bounded?"""
    try:
        _newest()
    except ImportError:
        return False
    return True


def _newest() -> Any:
    import importlib  # 6 ms with lupa, for whoever has Lua tools

    try:
        return importlib.import_module("lupa.lua55")
    except ImportError:
        return importlib.import_module("lupa.lua54")


@cache
def _scripts() -> tuple[bytes, bytes]:
    folder = os.path.dirname(__file__)
    scripts = []
    for name in ("patterns.lua", "sandbox.lua"):
        with open(os.path.join(folder, name), "rb") as file:
            scripts.append(file.read())
    return scripts[0], scripts[1]


class LuaState:
    """A tool's own Lua. One call at a time."""

    def __init__(self, source: bytes, path: str) -> None:
        self.source, self.path = source, path
        self._is_over: IsOver = bool
        lupa = _newest()
        # Also what its own conversions may raise: whatever it is, the state is given up.
        self._errors = (lupa.LuaError, MemoryError, RuntimeError, TypeError, ValueError, OverflowError)
        runtime = self._runtime = lupa.LuaRuntime(
            encoding=None,
            source_encoding="latin-1",
            attribute_filter=_refuse_attribute,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            max_memory=_UNBOUND,
        )
        patterns, sandbox = _scripts()
        most = runtime.table_from({b"items": 10_000_000, b"printed": 1 << 16})
        made = runtime.compile(patterns, name=b"=patterns", mode=b"t")()
        self._compile, self._describe, self._execute = runtime.compile(sandbox, name=b"=sandbox", mode=b"t")(
            self._poll, self._bound, made, _STEP, most
        )
        self._python_gone()

    def compile(self, is_over: IsOver) -> None:
        """Read the module. Raises LuaFailed."""
        source = self.source.removeprefix(b"\xef\xbb\xbf")
        if source.startswith(b"#"):
            # A first line for a shell, as the interpreter itself skips it.
            source = b"--" + source
        self._do(self._compile, is_over, source, b"@" + os.fsencode(self.path))

    def describe(self, is_over: IsOver) -> bytes:
        """Run the module; its record as JSON. Raises LuaFailed."""
        return self._do(self._describe, is_over)

    def execute(self, values: bytes, is_over: IsOver) -> bytes:
        """`=` or, where the tool says that it failed, `!`, and the result as JSON. Raises LuaFailed."""
        return self._do(self._execute, is_over, values)

    def _do(self, function: Any, is_over: IsOver, *given: bytes) -> bytes:
        self._is_over = is_over
        try:
            ok, said = function(*given)
        except self._errors as error:
            # What the sandbox itself could not finish: out of time or out of memory.
            why = "not enough memory" if isinstance(error, MemoryError) else str(error)
            raise LuaFailed(
                f"the tool was stopped: {'its time is up' if is_over() else why}", is_broken=True
            ) from error
        finally:
            self._runtime.set_max_memory(_UNBOUND)
            self._is_over = bool
        text: bytes = said if isinstance(said, bytes) else b"an error without a message"
        if ok:
            return text
        raise LuaFailed(text.decode("utf-8", "replace"), is_broken=is_over() or text == b"not enough memory")

    def _poll(self) -> bool:
        return self._is_over()

    def _bound(self, is_on: bool) -> None:  # noqa: FBT001 - Lua has no keywords
        self._runtime.set_max_memory(MEMORY_BYTES if is_on else _UNBOUND)

    def _python_gone(self) -> None:
        """Lupa leaves a table of its own among the globals, which the tool does not see anyway."""
        names = self._runtime.globals()
        for name in (b"python", b"package", b"debug", b"io", b"require", b"dofile", b"loadfile"):
            names[name] = None


def _refuse_attribute(_object: object, name: object, _is_setting: bool) -> str:  # noqa: FBT001 - called by lupa
    raise AttributeError(f"{name!r} cannot be reached from Lua")


MISSING = "Lua tools need lupa; install it with: pip install 'ferrule[lua]'."
_LOAD_SECONDS = 5.0
_WAIT_SECONDS = 0.05


def load_lua(path: str, source: bytes) -> SourceTools:
    """The tool of one module, which is compiled of these bytes. A broken one is a warning, in the words of ah."""
    if not is_installed():
        return SourceTools((), (MISSING,))
    until = time.monotonic() + _LOAD_SECONDS
    state = LuaState(source, path)
    try:
        state.compile(lambda: time.monotonic() > until)
    except LuaFailed as error:
        return SourceTools((), (f"failed to load {path}: {error}",))
    try:
        said = state.describe(lambda: time.monotonic() > until)
    except LuaFailed as error:
        return SourceTools((), (f"failed to execute {path}: {error}",))
    try:
        raw = _decode_json(said)
        keeper = _Keeper(state)
        members = {**raw, "execute": keeper.call if raw.get("execute") else None} if isinstance(raw, dict) else {}
        return SourceTools((DeclaredTool(parse_record(members), path),))
    except ValueError as error:
        return SourceTools((), (f"invalid tool format in {path}: {clean(str(error))}",))


class _Keeper:
    """Keeps a tool's state from call to call, and lets one call at a time in; a state that broke is made anew."""

    def __init__(self, state: LuaState) -> None:
        self._state: LuaState | None = state
        self._source, self._path = state.source, state.path
        self._turn = threading.Lock()
        self._holder: Context | None = None

    def call(self, values: dict[str, Any], ctx: Context) -> Any:
        """Run `execute`. This blocks: it is for a thread of its own."""
        until = time.monotonic() + ctx.need(Settings).limits.seconds
        is_over: Callable[[], bool] = lambda: ctx.over or time.monotonic() > until  # noqa: E731 - one line, used thrice
        turn = self._enter(ctx, is_over)
        state: LuaState | None = None
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
        return outcome(_decode_json(answer[1:]), failed=answer[:1] == b"!")

    def _fresh(self, is_over: Callable[[], bool]) -> LuaState:
        state = LuaState(self._source, self._path)
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


def _decode_json(said: bytes) -> Any:
    try:
        return msgspec.json.decode(said.decode("utf-8", "replace"))
    except msgspec.DecodeError as error:
        raise ValueError("it says something that is not JSON.") from error
