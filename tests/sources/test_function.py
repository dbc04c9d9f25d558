"""A tool from a typed function: what its signature and docstring become, and how its body runs."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tests.rows import each_row

from ferrule import Call, Engine
from ferrule.core.access import EVERYTHING, Access
from ferrule.core.errors import ConfigError
from ferrule.core.tool import Context
from ferrule.sources import FunctionTool, tool

LIMIT_SECONDS = 10


class Point(msgspec.Struct):
    """A place on a plane."""

    x: int
    y: int = 0


class Somewhere:
    """A context that only knows paths."""

    def path(self, path: str) -> str:
        return f"/place/{path}"


def yes(_: object) -> bool:
    return True


@pytest.mark.contract("registry.minimal-tool")
def test_a_schema_is_made_of_the_signature():
    @tool
    def order(
        name: str,
        count: int = 1,
        price: float | None = None,
        size: Literal["small", "large"] = "small",
        tags: list[str] = [],  # noqa: B006 - what a user may write
        at: Point | None = None,
        note: Annotated[str, msgspec.Meta(description="For the cook.")] = "",
        *,
        fast: bool = False,
    ) -> str:
        """Order something.

        It comes soon.
        """
        return name

    assert order.schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer", "default": 1},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
            "size": {"enum": ["large", "small"], "default": "small"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "at": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": None},
            "note": {"type": "string", "description": "For the cook.", "default": ""},
            "fast": {"type": "boolean", "default": False},
        },
        "required": ["name"],
        "$defs": {
            "Point": {
                "title": "Point",
                "description": "A place on a plane.",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            }
        },
    }
    assert (order.name, order.words) == ("order", "Order something.\n\nIt comes soon.")


def test_a_function_without_parameters_takes_none():
    @tool
    def ping() -> str:
        """Answer."""
        return "pong"

    assert (ping.schema["properties"], ping.source, ping.timed, ping.own_thread) == ({}, "custom", True, True)


def test_what_is_said_about_a_tool_is_kept():
    @tool(name="look", timed=False, inline=True)
    async def f() -> str:
        """Look."""
        return ""

    assert (f.name, f.timed, f.own_thread) == ("look", False, False)


def test_it_can_still_be_called_as_the_function_that_it_was():
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert (add(1), add(1, b=5)) == (3, 6)


def undocumented(x: int) -> int:
    return x


def blank(x: int) -> int:
    """ """
    return x


def untyped(x) -> int:
    """Take anything."""
    return int(x)


def positional(x: int, /) -> int:
    """Take it by place."""
    return x


def many(*xs: int) -> int:
    """Take many."""
    return len(xs)


def named(**xs: int) -> int:
    """Take many by name."""
    return len(xs)


def unknown(x: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821
    """Take something that is not there."""
    return 0


def unreadable(x: "not a type") -> int:  # type: ignore[valid-type]  # noqa: F722
    """Take something that is no type."""
    return 0


def missing(x: "threading.Nothing") -> int:  # type: ignore[name-defined]
    """Take something that a module does not have."""
    return 0


def impossible(x: complex) -> int:
    """Take something that JSON does not have."""
    return 0


def shared(x: list[int] = [1]) -> int:  # noqa: B006 - what a user may write
    """Take a default that could change."""
    return len(x)


def twice(one: Context, other: Context) -> int:
    """Take the context twice."""
    return 0


@each_row(
    ("function", "message"),
    [
        pytest.param(undocumented, "undocumented needs a docstring", id="no-docstring"),
        pytest.param(blank, "blank needs a docstring", id="blank-docstring"),
        pytest.param(untyped, "the parameter x needs a type", id="no-type"),
        pytest.param(positional, "a parameter like x: int cannot be described", id="positional-only"),
        pytest.param(many, r"a parameter like \*xs: int cannot be described", id="varargs"),
        pytest.param(named, r"a parameter like \*\*xs: int cannot be described", id="keywords"),
        pytest.param(unknown, "its types cannot be read", id="unknown-type"),
        pytest.param(unreadable, "its types cannot be read", id="type-that-does-not-parse"),
        pytest.param(missing, "its types cannot be read", id="type-that-a-module-lacks"),
        pytest.param(impossible, "complex", id="type-without-json"),
        pytest.param(shared, "mutable", id="default-that-could-change"),
        pytest.param(twice, "one and other both take the context", id="two-contexts"),
    ],
)
def test_a_function_that_cannot_be_described_is_an_error_at_once(function, message):
    with pytest.raises(ConfigError, match=message) as caught:
        tool(function)

    assert function.__name__ in str(caught.value)


def test_something_without_a_name_needs_one():
    class Adds:
        """Add one."""

        def __call__(self, x: int) -> int:
            return x + 1

    with pytest.raises(ConfigError, match="needs a name"):
        FunctionTool(Adds())


def args(made: FunctionTool, **values: Any) -> Any:
    return msgspec.convert(values, made.args)


def touches(made: FunctionTool, **values: Any) -> Sequence[Access]:
    return made.access(args(made, **values), Somewhere())  # type: ignore[arg-type]


def made(**more: Any) -> FunctionTool:
    @tool(**more)
    def move(source: str, target: str = "there", count: int = 1) -> str:
        """Move a file."""
        return target

    return move


def from_source(source: str) -> list[Access]:
    return [Access.read(source)]


def from_all(**values: Any) -> list[Access]:
    return [Access.write(values["target"]), Access.process(str(values["count"]))]


@pytest.mark.contract("registry.tool-with-profile", "registry.execution-profile", "conflict.no-profile")
@each_row(
    ("declared", "expected"),
    [
        pytest.param(None, (EVERYTHING,), id="nothing-said-is-everything"),
        pytest.param([], (), id="nothing"),
        pytest.param([Access.read("a")], (Access.read("/place/a"),), id="list"),
        pytest.param((Access.host("h"), EVERYTHING), (Access.host("h"), EVERYTHING), id="only-paths-are-resolved"),
        pytest.param(Access.write("a"), (Access.write("/place/a"),), id="one-alone"),
        pytest.param(from_source, (Access.read("/place/here"),), id="function-of-one-argument"),
        pytest.param(from_all, (Access.write("/place/there"), Access.process("1")), id="function-of-all"),
        pytest.param(list, (), id="function-of-none"),
        pytest.param(
            lambda target, source: Access.read(source + target), (Access.read("/place/herethere"),), id="in-any-order"
        ),
        pytest.param(lambda source: iter([Access.read(source)]), (Access.read("/place/here"),), id="iterator"),
    ],
)
def test_what_a_call_touches_is_what_was_declared(declared, expected):
    assert touches(made(touches=declared), source="here") == expected


def test_a_function_of_something_else_is_an_error_at_once():
    with pytest.raises(ConfigError, match="touches asks for path, which is no parameter"):
        made(touches=lambda path: [Access.read(path)])


@pytest.mark.parametrize("rubbish", [["a"], "a", 5, [None]])
async def test_rubbish_for_access_fails_the_call_and_runs_nothing(tmp_path, rubbish):
    ran: list[str] = []

    @tool(touches=lambda: rubbish)
    def act() -> str:
        """Act."""
        ran.append("ran")
        return ""

    async with Engine(tmp_path, tools=[act], ask=yes) as engine:
        reply = await engine.call("act")

    assert (reply.status, ran) == ("error", [])


async def test_without_a_declaration_a_call_asks(tmp_path):
    @tool
    def act() -> str:
        """Act."""
        return "acted"

    async with Engine(tmp_path, tools=[act]) as engine:
        reply = await engine.call("act")

    assert reply.status == "rejected-by-user"
    assert "run act, which may touch anything" in reply.text


async def test_a_declared_read_of_the_workspace_does_not_ask_and_a_write_does(tmp_path):
    @tool(touches=lambda path: [Access.read(path)])
    def look(path: str) -> str:
        """Look."""
        return "seen"

    @tool(touches=lambda path: [Access.write(path)])
    def change(path: str) -> str:
        """Change."""
        return "changed"

    async with Engine(tmp_path, tools=[look, change]) as engine:
        replies = [await engine.call(name, path="a") for name in ("look", "change")]
        secret = await engine.call("look", path=".env")
        outside = await engine.call("look", path="/etc/passwd")

    assert [reply.status for reply in (*replies, secret, outside)] == [
        "done",
        "rejected-by-user",
        "error",
        "rejected-by-user",
    ]


@pytest.mark.contract("flow.execute", "registry.validation", "schema.validated")
async def test_arguments_arrive_with_their_types_and_defaults(tmp_path):
    seen: list[Any] = []

    @tool(touches=[])
    def take(name: str, at: Point, count: int = 3, sizes: tuple[int, ...] = ()) -> str:
        """Take."""
        seen.append((name, at, count, sizes))
        return name

    async with Engine(tmp_path, tools=[take]) as engine:
        await engine.run([Call("take", {"name": "a", "at": {"x": 1}, "sizes": [1, 2]})])
        bad = await engine.call("take", name="a", at={"y": 1})

    assert seen == [("a", Point(1, 0), 3, (1, 2))]
    assert (bad.status, bad.error and bad.error.error_code) == ("error", "bad-arguments")


async def test_a_parameter_of_the_context_s_type_gets_the_context(tmp_path):
    @tool(touches=[])
    def where(name: str, ctx: Context) -> str:
        """Say where."""
        ctx.note("noted")
        ctx.track(ctx.path(name))
        return ctx.path(name)

    async with Engine(tmp_path, tools=[where]) as engine:
        reply = await engine.call("where", name="a")

    path = str(tmp_path.resolve() / "a")
    assert (reply.result, reply.notes, reply.track_files) == (path, ("noted",), (path,))
    assert list(where.schema["properties"]) == ["name"]


async def thread_of_async() -> int:
    """Say the thread."""
    await asyncio.sleep(0)
    return threading.get_ident()


def thread_of_sync() -> int:
    """Say the thread."""
    return threading.get_ident()


@pytest.mark.parametrize("function", [thread_of_async, thread_of_sync])
@pytest.mark.parametrize("inline", [False, True])
async def test_a_body_runs_on_a_thread_of_its_own_unless_it_is_inline(tmp_path, function, inline):
    own = tool(touches=[], inline=inline)(function)
    async with Engine(tmp_path, tools=[own]) as engine:
        reply = await engine.call(own.name)

    assert (reply.result == threading.get_ident()) is inline


async def test_a_body_that_blocks_holds_up_nobody(tmp_path):
    release = threading.Event()

    @tool(touches=[])
    def block() -> bool:
        """Wait to be released."""
        return release.wait(LIMIT_SECONDS)

    @tool(touches=[])
    def free() -> str:
        """Release the other."""
        release.set()
        return "released"

    async with asyncio.timeout(LIMIT_SECONDS), Engine(tmp_path, tools=[block, free]) as engine:
        replies = await engine.run([Call("block"), Call("free")])

    assert [reply.result for reply in replies] == [True, "released"]


@pytest.mark.contract("reply.degradation")
@pytest.mark.parametrize(
    "error", [ValueError("bug"), SystemExit(2), KeyboardInterrupt()], ids=lambda e: type(e).__name__
)
async def test_a_body_that_breaks_harms_its_own_call_only(tmp_path, error):
    @tool(touches=[])
    def broken() -> str:
        """Break."""
        raise error

    @tool(touches=[])
    def whole() -> str:
        """Work."""
        return "fine"

    async with Engine(tmp_path, tools=[broken, whole]) as engine:
        replies = await engine.run([Call("broken"), Call("whole")])

    assert [reply.status for reply in replies] == ["error", "done"]
    assert type(error).__name__ in replies[0].text


async def test_rubbish_for_a_result_is_an_error_of_its_call(tmp_path):
    @tool(touches=[])
    def rubbish() -> object:
        """Return what JSON does not have."""
        return object()

    async with Engine(tmp_path, tools=[rubbish]) as engine:
        reply = await engine.call("rubbish")

    assert (reply.status, reply.error and reply.error.error_code) == ("error", "bad-result")


async def test_a_method_can_be_a_tool(tmp_path):
    class Counter:
        """Counts."""

        count = 0

        def add(self, by: int = 1) -> int:
            """Count on."""
            self.count += by
            return self.count

    counter = Counter()
    async with Engine(tmp_path, tools=[tool(touches=[])(counter.add)]) as engine:
        replies = [await engine.call("add", by=2), await engine.call("add")]

    assert [reply.result for reply in replies] == [2, 3]
