"""One Lua state without files, programs or Python: what runs in it is watched, and bounded in memory.

Python never touches a value of the tool's: a table there may have code behind it, and lupa ends the whole process where
Lua has no memory left outside of a protected call. Only texts go in and come out, and the bound on memory holds only
while the tool's own code runs.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from ferrule.output.clean import clean

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


class State:
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
            attribute_filter=_nothing,
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


def _nothing(_object: object, name: object, _is_setting: bool) -> str:  # noqa: FBT001 - called by lupa
    raise AttributeError(f"{name!r} cannot be reached from Lua")
