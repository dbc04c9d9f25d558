"""Load Python and Lua modules as tools.

Such a module is the user's own code, with all of the user's rights; nothing confines it, and there is no time
limit while it loads. Errors in it become warnings. Its output while it loads goes to standard error, because
standard output may carry a protocol.

A folder called `tools` often holds unrelated scripts. A file that neither names `TOOL` or `TOOLS` nor imports
ferrule cannot be a tool, and is not run.

Lua modules use the same tool records.

The state is no wall against an attacker who knows a fault of the interpreter; it keeps an honest tool honest and
a runaway one from taking the session along. A tool has `sandbox.MEMORY_BYTES` and the time of its call.

Python never touches a value of the tool's: a table there may have code behind it, and lupa ends the whole process
if Lua runs out of memory outside of a protected call. Only texts go in and come out, and the bound on memory
holds only while the tool's own code runs.
"""

import ast
import contextlib
import hashlib
import importlib
import inspect
import io
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, cast

import msgspec

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.errors import ToolFailure
from ferrule.core.services import Mixed
from ferrule.core.tool import AnyTool, Context, Raw, Tool
from ferrule.output import clean
from ferrule.settings import Settings
from ferrule.sources import SourceTools, Touches, resolve_access
from ferrule.sources.program import usable

_NAME = r"[A-Za-z0-9_-]{1,64}"
_ARRAYS = ("required", "enum", "allOf", "anyOf", "oneOf", "examples", "prefixItems", "type")

Execute = Callable[..., Any]
"""`execute(input)` or `execute(input, ctx)`: a result, or a result and whether it is an error."""


class Declared(NamedTuple):
    """What a module says about one tool."""

    name: str
    description: str
    input_schema: dict[str, Any]
    execute: Execute
    system_prompt: str = ""
    touches: Touches | None = None
    read_only: bool = False


def is_valid_tool(raw: object) -> bool:
    """Does it have all that a record needs, each of its kind?"""
    return not _find_lack(raw)


def tool_of(raw: object, origin: str) -> "DeclaredTool":
    """The tool of a record, or of a pair of `spec` and `fn`. Raises ValueError as `declared_of` does."""
    if not isinstance(raw, Mapping) or not {"spec", "fn"} <= raw.keys():
        return DeclaredTool(parse_record(raw), origin)
    spec = raw["spec"]
    made = DeclaredTool(parse_record(_as_record(spec, raw["fn"], raw.get("preprocessArgs"))), origin)
    made.timed = not (_member(spec, "meta") or {}).get("disableTimeout", False)
    return made


def _as_record(spec: object, function: object, preprocess: object) -> dict[str, Any]:
    """What `spec` and `fn` say, as a record says it. What touches nothing that it names runs alone."""
    call = cast("Execute", function)
    takes_two = callable(function) and _takes_two(call)
    profile = _member(spec, "executionProfile") or {}
    keys = _member(profile, "resourceKeys")

    def execute(given: dict[str, Any], ctx: Context) -> Any:
        ready = preprocess(given, ctx) if callable(preprocess) else given
        return call(ready, ctx) if takes_two else call(ready)

    async def run(given: dict[str, Any], ctx: Context) -> Any:
        answer = execute(given, ctx)
        return _read_result(await answer if inspect.isawaitable(answer) else answer)

    return {
        "name": _member(spec, "name"),
        "description": _member(spec, "description"),
        "input_schema": _member(spec, "inputSchema") or _member(spec, "input_schema"),
        "execute": run if callable(function) else None,
        "touches": None if _member(profile, "serial") or not callable(keys) else lambda given: _accesses(keys(given)),
    }


def _accesses(keys: Any) -> list[Access]:
    """What a profile's keys name."""
    return [(Access.read if key["mode"] == "read" else Access.write)(key["key"]) for key in keys]


def _read_result(answer: Any) -> Any:
    """A result, and whether it is an error, of a run as it is told."""
    if not isinstance(answer, Mapping) or answer.get("status") not in ("done", "error"):
        return answer
    if answer["status"] == "done":
        return answer.get("result")
    error = answer.get("error")
    return (error.get("message", error) if isinstance(error, Mapping) else error), True


def parse_record(raw: object) -> Declared:
    """The record, checked. Raises ValueError with the reason where no model could call it."""
    if lacking := _find_lack(raw):
        raise ValueError(f"a record needs {lacking}.")
    name = _member(raw, "name")
    if not re.fullmatch(_NAME, name):
        raise ValueError(f"its name {name[:80]!r} has more than letters, digits, _ and -, or is not 1 to 64 long.")
    try:
        schema = usable(_arrays(_member(raw, "input_schema")))
    except RecursionError:
        raise ValueError("its schema holds itself.") from None
    touches = _member(raw, "touches")
    if touches is not None and not callable(touches):
        listed = [touches] if isinstance(touches, Access) else touches
        if not isinstance(listed, list | tuple) or not all(isinstance(access, Access) for access in listed):
            raise ValueError("its touches are not Access values, nor a function of the input that returns them.")
    guidance = _member(raw, "system_prompt")
    return Declared(
        name,
        clean(_member(raw, "description")).strip(),
        schema,
        _member(raw, "execute"),
        clean(guidance).strip() if isinstance(guidance, str) else "",
        touches,
        _member(raw, "read_only") is True,
    )


def _find_lack(raw: object) -> str:
    name, description = _member(raw, "name"), _member(raw, "description")
    if not isinstance(name, str) or not name:
        return "a name"
    if not isinstance(description, str) or not description.strip():
        return "a description"
    if not isinstance(_member(raw, "input_schema"), dict):
        return "an input_schema"
    return "" if callable(_member(raw, "execute")) else "a function execute"


def _member(raw: object, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _arrays(schema: Any, *, named: bool = False) -> Any:
    """The schema with empty lists where Lua, whose tables are both, could only say that something is empty."""
    if isinstance(schema, list):
        return [_arrays(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        is_list = not named and (key in _ARRAYS or (key == "default" and schema.get("type") == "array"))
        inner = not named and key in {"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
        out[key] = [] if is_list and value == {} else _arrays(value, named=inner)
    return out


class DeclaredTool(Tool[Raw, Any]):
    """What a record makes."""

    args = Raw
    source = "custom"
    own_thread = True

    def __init__(self, declared: Declared, origin: str) -> None:
        self.name = declared.name
        self.words = declared.description
        self.schema = declared.input_schema
        self.guidance = declared.system_prompt
        self.origin = origin
        if declared.read_only:
            self.hints = {"readOnlyHint": True}
        self._execute = declared.execute
        self._touches = declared.touches
        self._takes_context = _takes_two(declared.execute)

    def access(self, args: Raw, ctx: Context) -> tuple[Access, ...]:
        if self._touches is None:
            return (EVERYTHING,)
        declared = self._touches(dict(args.values)) if callable(self._touches) else self._touches
        return tuple(
            resolve_access(access, ctx) for access in ((declared,) if isinstance(declared, Access) else declared)
        )

    async def run(self, args: Raw, ctx: Context) -> Any:
        # A copy, for a tool may change what it gets.
        given = dict(args.values)
        answer = self._execute(given, ctx) if self._takes_context else self._execute(given)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], bool | None):
            return outcome(answer[0], failed=bool(answer[1]))
        return outcome(answer)


def outcome(result: Any, *, failed: bool = False) -> Any:
    """What a tool returned: text as it is, anything else as a JSON value; and its own word that it failed."""
    if isinstance(result, bytes | bytearray):
        result = bytes(result).decode("utf-8", "replace")
    if not failed:
        return "" if result is None else result
    if isinstance(result, str) or result is None:
        return Mixed((result or "The tool failed, and did not say why.",), failed=True)
    try:
        text = msgspec.json.encode(result).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ToolFailure(f"The tool failed with something that cannot be shown: {error}.") from error
    return Mixed((text,), structured=result, failed=True)


def _takes_two(execute: Execute) -> bool:
    try:
        inspect.signature(execute).bind({}, None)
    except (TypeError, ValueError):
        return False
    return True


_MOST_CHARS = 300


_NONE = "it has no TOOL, no TOOLS and no function under @tool."


def load_module(path: str, source: bytes, *, may_be_other: bool = False) -> SourceTools:
    """The tools of one module. It is compiled of these bytes, whatever the file may hold by now.

    `may_be_other`: is it nothing to speak of where the file is no tool at all?
    """
    digest = hashlib.sha256(path.encode(errors="surrogateescape") + b"\0" + source).hexdigest()
    module = ModuleType(f"_ferrule_tools_{digest[:16]}")
    module.__file__ = path
    is_tool = False
    with foreign() as problems:
        tree = ast.parse(source, path)
        is_tool = any(_tells(node) for node in ast.walk(tree))
        code = compile(tree, path, "exec", dont_inherit=True)
    if problems:
        return SourceTools((), (f"failed to load {path}: {problems[0]}",))
    if not is_tool:
        return SourceTools((), () if may_be_other else (f"invalid tool format in {path}: {_NONE}",))
    # Classes look their module up while they are made.
    sys.modules[module.__name__] = module
    with foreign() as problems:
        exec(code, module.__dict__)  # noqa: S102 - this is what a tool module is for
    if problems:
        sys.modules.pop(module.__name__, None)
        return SourceTools((), (f"failed to execute {path}: {problems[0]}",))
    return _collect_tools(module, path)


def _collect_tools(module: ModuleType, path: str) -> SourceTools:
    members = dict(module.__dict__)
    listed = members.pop("TOOLS", ())
    offered: list[Any] = list(listed) if isinstance(listed, list | tuple) else [listed]
    if "TOOL" in members:
        offered.insert(0, members.pop("TOOL"))
    offered += [value for name, value in members.items() if not name.startswith("_") and isinstance(value, Tool)]
    return make_tools(offered, path, none=_NONE)


def _tells(node: Any) -> bool:
    """Does this part of a module's source say that it is about tools?"""
    if getattr(node, "id", "") in {"TOOL", "TOOLS"}:
        return True
    imported = [
        getattr(node, "module", None),
        *(one.name for one in getattr(node, "names", ()) if hasattr(one, "name")),
    ]
    return any(name in {"TOOL", "TOOLS"} or str(name).split(".", 1)[0] == "ferrule" for name in imported)


def make_tools(offered: list[Any], origin: str, *, none: str) -> SourceTools:
    """Tools of whatever a module or a package offers: tools and records, each once."""
    tools: dict[int, AnyTool] = {}
    warnings = [] if offered else [f"invalid tool format in {origin}: {none}"]
    for one in offered:
        if id(one) in tools:
            continue
        with foreign() as problems:
            tools[id(one)] = _tool(one, origin)
        warnings += [f"invalid tool format in {origin}: {problem}" for problem in problems]
    return SourceTools(tuple(tools.values()), tuple(warnings))


def _tool(one: Any, origin: str) -> AnyTool:
    if not isinstance(one, Tool):
        return tool_of(one, origin)
    one.source = "custom"
    one.origin = one.origin or origin
    return one


@contextlib.contextmanager
def foreign() -> Iterator[list[str]]:
    """Around code that Ferrule does not know: it prints to nobody's protocol, and what it raises is a sentence.

    The list has the sentence afterwards; also `SystemExit` and `KeyboardInterrupt` are only that.
    """
    problems: list[str] = []
    try:
        with contextlib.redirect_stdout(sys.stderr or io.StringIO()):
            yield problems
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the reading of one file
        problems.append(reason(error))


def reason(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, ValueError) and type(error) is ValueError and error.args and isinstance(error.args[0], str):
        text = error.args[0]
    else:
        text = traceback.format_exception_only(type(error), error)[-1]
        if isinstance(error, SyntaxError) and error.lineno:
            text = f"{text.strip()} (line {error.lineno})"
    return clean(" ".join(text.split()))[:_MOST_CHARS]


def resolve_offer(offer: Any) -> Any:
    """What a package offers: itself, or what it returns when it is a function and no tool."""
    is_function = callable(offer) and not isinstance(offer, Tool)
    return offer() if is_function else offer


Load = Callable[[str, bytes], SourceTools]


MEMORY_BYTES = 64 << 20
_STEP = 1000
"""Instructions between two looks at the clock."""
_UNBOUND = 1 << 60
_MOST_LUA_CHARS = 2000

IsOver = Callable[[], bool]


class LuaFailed(Exception):  # noqa: N818 - the state, as it is told
    """The tool raised an error, or was stopped. The message is Lua's own."""

    def __init__(self, message: str, *, is_broken: bool = False) -> None:
        super().__init__(clean(message).strip()[:_MOST_LUA_CHARS])
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
