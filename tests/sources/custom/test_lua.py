"""Lua modules as tools: the record of ah unchanged, values both ways, and what is said of broken ones."""

import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row
from tests.sources.custom.conftest import Calls

from ferrule.core.access import EVERYTHING
from ferrule.core.tool import AnyTool, Raw
from ferrule.sources.custom.module import DeclaredTool, LuaState, load_lua

RECORD = """
local called = 0
return {
  name = "mytool",
  description = "Short description for API tool definition",
  system_prompt = "Usage guidance injected into the system prompt.",
  input_schema = {type = "object", properties = {word = {type = "string"}}, required = {"word"}},
  execute = function(input)
    called = called + 1
    return input.word .. " " .. called, false
  end,
}
"""


def tool(body: str, *, schema: str = "{type = 'object'}") -> AnyTool:
    """A tool whose `execute` has this body."""
    source = (
        f"return {{name = 't', description = 'd', input_schema = {schema}, execute = function(input)\n{body}\nend}}"
    )
    brought = load_lua("/tools/t.lua", source.encode())
    assert not brought.warnings
    return brought.tools[0]


@pytest.mark.contract("custom.lua")
async def test_the_declared_of_ah_runs_unchanged_and_keeps_its_state(calls: Calls):
    (made,) = load_lua("/tools/mytool.lua", RECORD.encode()).tools
    assert (made.name, made.source, made.origin, made.args) == ("mytool", "custom", "/tools/mytool.lua", Raw)
    assert made.words == "Short description for API tool definition"
    assert made.guidance == "Usage guidance injected into the system prompt."
    assert made.schema == {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    assert made.access(Raw(values={}), calls.new_context(made)) == (EVERYTHING,)
    assert [await calls.text(made, word=word) for word in "ab"] == [("a 1", False), ("b 2", False)]


@each_row(
    ("source", "warning"),
    [
        pytest.param(b"return {", "failed to load /t.lua: /t.lua:1: ", id="syntax"),
        pytest.param(b"\x1bLua", "failed to load /t.lua: ", id="bytecode"),
        pytest.param(b"error('boom')", "failed to execute /t.lua: /t.lua:1: boom", id="error"),
        pytest.param(b"error({code = 7})", 'failed to execute /t.lua: {"code":7}', id="error-table"),
        pytest.param(b"error()", "failed to execute /t.lua: <no error object>", id="error-nil"),
        pytest.param(b"error(print)", "failed to execute /t.lua: an error that is a function", id="error-function"),
        pytest.param(b"require('os')", "failed to execute /t.lua: /t.lua:1: attempt to call a nil", id="require"),
        pytest.param(b"", "invalid tool format in /t.lua: a record needs a name", id="nothing"),
        pytest.param(b"return 1", "invalid tool format in /t.lua: a record needs a name", id="number"),
        pytest.param(b"return {name = 'x'}", "invalid tool format in /t.lua: a record needs a desc", id="no-words"),
        pytest.param(
            b"return {name = 'x', description = 'd', input_schema = 1, execute = print}",
            "invalid tool format in /t.lua: a record needs an input_schema",
            id="schema-number",
        ),
        pytest.param(
            b"return {name = 'x', description = 'd', input_schema = {}, execute = 1}",
            "invalid tool format in /t.lua: a record needs a function execute",
            id="no-function",
        ),
        pytest.param(
            b"return {name = 'a.b', description = 'd', input_schema = {}, execute = print}",
            "invalid tool format in /t.lua: its name 'a.b' has more than",
            id="name",
        ),
        pytest.param(
            b"return {name = 'x', description = 'd', input_schema = {type = 'nonsense'}, execute = print}",
            "invalid tool format in /t.lua: Its schema",
            id="bad-schema",
        ),
        pytest.param(
            b"return {name = 'x', description = 'd', execute = print,"
            b" input_schema = {type = 'object', properties = {a = {['$ref'] = 'http://example.org/x'}}}}",
            "invalid tool format in /t.lua: Its schema",
            id="remote-schema",
        ),
        pytest.param(
            b"local t = {} t.t = t return {name = 'x', description = 'd', input_schema = t, execute = print}",
            "failed to execute /t.lua: a table nests",
            id="schema-holds-itself",
        ),
    ],
)
def test_a_broken_module_is_a_warning(source: bytes, warning: str):
    brought = load_lua("/t.lua", source)
    assert brought.tools == ()
    assert len(brought.warnings) == 1
    assert brought.warnings[0].startswith(warning)


def test_a_module_without_end_is_a_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ferrule.sources.custom.module._LOAD_SECONDS", 0.05)
    brought = load_lua("/t.lua", b"while true do end")
    assert brought.warnings == ("failed to execute /t.lua: the tool was stopped: its time is up",)


def test_without_lupa_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ferrule.sources.custom.module.is_installed", lambda: False)
    (warning,) = load_lua("/t.lua", RECORD.encode()).warnings
    assert "pip install 'ferrule[lua]'" in warning


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("#!/usr/bin/lua\n" + RECORD, id="first-line-for-a-shell"),
        pytest.param("\ufeff" + RECORD, id="byte-order-mark"),
        pytest.param(RECORD.replace("\n", "\r\n"), id="crlf"),
    ],
)
def test_what_the_interpreter_itself_would_read_is_read(source: str):
    assert [one.name for one in load_lua("/t.lua", source.encode()).tools] == ["mytool"]


@pytest.mark.parametrize(
    ("body", "said", "is_error"),
    [
        pytest.param("return 'result', false", "result", False, id="text"),
        pytest.param("return 'bad', true", "bad", True, id="is-error"),
        pytest.param("return 'result'", "result", False, id="one-value"),
        pytest.param("return 'a', nil, {details = 1}", "a", False, id="details"),
        pytest.param("return", "", False, id="nothing"),
        pytest.param("return nil, true", "The tool failed, and did not say why.", True, id="failed-silently"),
        pytest.param("return {a = {1, 2}}", {"a": [1, 2]}, False, id="table"),
        pytest.param("return {code = 1}, true", '{"code":1}', True, id="error-table"),
        pytest.param("error('no such thing')", "/tools/t.lua:2: no such thing", True, id="raised"),
        pytest.param("error('plain', 0)", "plain", True, id="raised-plain"),
        pytest.param("return 'a\\xffb'", "a\ufffdb", False, id="not-utf-8"),
        pytest.param("return string.char(0) .. 'x'", "\0x", False, id="nul"),
        pytest.param("return print", "a function has no JSON form", True, id="function"),
        pytest.param("return {[1.5] = 1}", "a table has a key that is neither text nor a", True, id="odd-key"),
        pytest.param("local t = {} t[1] = t return t", "a table nests more than 100 deep", True, id="cycle"),
        pytest.param("return {0/0, 1/0, -1/0}", [None, None, None], False, id="no-numbers"),
        pytest.param("return {1, nil, 3}", {"1": 1, "3": 3}, False, id="holes"),
        pytest.param("return {}", {}, False, id="empty"),
        pytest.param("return json.array()", [], False, id="empty-array"),
        pytest.param("return json.decode('[]')", [], False, id="decoded-empty-array"),
        pytest.param("return json.encode({1, {a = null}})", '[1,{"a":null}]', False, id="json"),
        pytest.param("return setmetatable({}, {__index = function() error('x') end})", {}, False, id="metamethod"),
        pytest.param("return ('%d %s'):format(3, ('ab'):upper())", "3 AB", False, id="string-methods"),
        pytest.param("return type(os.time()) .. type(os.clock()) .. os.date('%Y', 0):sub(1, 2)", None, False, id="os"),
        pytest.param("return load('return 1 + 1')()", 2, False, id="load"),
        pytest.param("return utf8.len('äö')", 2, False, id="utf8"),
        pytest.param("return select('#', table.unpack({1, 2, 3}))", 3, False, id="unpack"),
        pytest.param("local t = {3, 1, 2} table.sort(t) return table.concat(t, ',')", "1,2,3", False, id="sort"),
        pytest.param(
            "local c = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end)"
            " return {c(1), c(5)}",
            [2, 10],
            False,
            id="coroutine",
        ),
        pytest.param("local _, m = pcall(coroutine.wrap(function() error('in') end)) return m", None, False, id="wrap"),
    ],
)
async def test_what_a_function_returns_is_what_the_call_says(calls: Calls, body: str, said: object, is_error: bool):
    text, failed = await calls.text(tool(body))
    assert failed is is_error
    if isinstance(said, str):
        assert text.startswith(said)
    elif said is not None:
        assert text == said


async def test_values_arrive_as_lua_has_them(calls: Calls):
    made = tool("""
      return table.concat({type(input.text), math.type(input.whole), math.type(input.part), tostring(input.yes),
        tostring(input.nothing), tostring(input.list[2] == null), tostring(#input.list), math.type(input.large)}, " ")
    """)
    values = {"text": "x", "whole": 3, "part": 3.0, "yes": True, "nothing": None, "list": [1, None, 3], "large": 2**70}
    assert await calls.text(made, **values) == ("string integer float true nil true 3 float", False)


def test_an_empty_table_in_a_schema_is_what_its_keyword_says():
    schema = "{type = 'object', properties = {required = {type = 'array', default = {}}}, required = {}, examples = {}}"
    assert tool("return 1", schema=schema).schema == {
        "type": "object",
        "properties": {"required": {"type": "array", "default": []}},
        "required": [],
        "examples": [],
    }
    assert tool("return 1", schema="{}").schema == {"type": "object", "properties": {}}


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
finite = scalars.filter(lambda value: not isinstance(value, float) or abs(value) != float("inf"))
trees = st.recursive(finite, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


ECHO = LuaState(b"return {execute = function(input) return input.value end}", "/echo.lua")
ECHO.compile(bool)
ECHO.describe(bool)


@settings(max_examples=80)
@given(trees)
def test_json_comes_back_through_lua_as_it_went(value: object):
    answer = ECHO.execute(json.dumps({"value": {"in": value}}).encode(), bool)
    assert answer[:1] == b"="
    back = json.loads(answer[1:])
    assert back == {"in": value}
    assert json.dumps(back, sort_keys=True) == json.dumps({"in": value}, sort_keys=True)


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a"}', "nul", "01x", '"\\q"', '"', "[1] 2", "-", '{"a":1,}'])
async def test_what_is_no_json_is_refused(calls: Calls, text: str):
    said, is_error = await calls.text(tool("return json.decode(input.text)"), text=text)
    assert is_error
    assert "not JSON" in said


async def test_a_tool_that_runs_out_of_time_is_stopped_and_can_be_called_again(calls: Calls, hasty: Calls):
    made = tool("if input.spin then while true do end end return 'here'")
    assert (await calls.text(made))[0] == "here"
    said, is_error = await hasty.text(made, spin=True)
    assert is_error
    assert "time" in said
    assert await calls.text(made) == ("here", False)


async def test_a_state_without_memory_is_made_anew(calls: Calls):
    made = tool(
        "if input.more then kept = {} while true do kept[#kept + 1] = ('x'):rep(1e6) .. #kept end end return kept"
    )
    said, is_error = await calls.text(made, more=True)
    assert (said, is_error) == ("not enough memory", True)
    assert await calls.text(made) == ("", False)


async def test_what_a_tool_prints_is_not_on_the_standard_output(calls: Calls, capfd: pytest.CaptureFixture[str]):
    assert await calls.text(tool("print('hello', 1) return 'x'")) == ("x", False)
    out, errors = capfd.readouterr()
    assert (out, errors) == ("", "hello\t1\n")


async def test_a_busy_tool_leaves_the_others_their_turn(hasty: Calls):
    made = tool("while true do end")
    before = threading.active_count()
    assert (await hasty.text(made))[1]
    assert (await hasty.text(made))[1]
    assert threading.active_count() <= before + 3


async def test_a_call_that_nobody_waits_for_keeps_nobody_out(calls: Calls):
    made = tool("count = (count or 0) + 1 return count")
    assert await calls.text(made) == (1, False)
    assert isinstance(made, DeclaredTool)
    keeper: Any = made._execute.__self__  # type: ignore[attr-defined]
    keeper._turn.acquire()
    assert keeper._holder.over
    assert [await calls.text(made), await calls.text(made)] == [(1, False), (2, False)]
