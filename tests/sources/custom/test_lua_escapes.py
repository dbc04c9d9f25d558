"""What a Lua tool cannot do: reach files, programs, Python or the interpreter, and go on after its time or memory."""

import pytest
from tests.sources.custom.conftest import Calls
from tests.sources.custom.test_lua import tool

from ferrule.sources.custom import module
from ferrule.sources.custom.module import LuaFailed, LuaState

NOTHING_THERE = [
    *("io", "package", "require", "debug", "dofile", "loadfile", "loadstring", "python", "warn", "jit", "ffi"),
    *("os.execute", "os.getenv", "os.exit", "os.remove", "os.rename", "os.tmpname", "os.setlocale"),
    *("string.dump", "_G.io", "_G._G.os.execute", "_ENV.debug", "coroutine.close.x", "math.io"),
    *("getmetatable('').__index", "getmetatable('').__metatable", "getmetatable(_G)", "getmetatable(print)"),
    *("getmetatable(coroutine.create(print))", "getmetatable(1)", "getmetatable(nil)", "_G['pyt' .. 'hon']"),
    *("rawget(_G, 'io')", "rawget(_ENV, 'package')", "load('return io')()", "load('return _ENV.debug')()"),
    *("load('return os.getenv', 'x', 't')()", "(''):dump", "('').dump", "json.io", "string.format('x').io"),
    *("select(2, load('\\27Lua')) == nil or nil", "select(2, pcall(string.dump or error, print)) and nil"),
    "load(function() return nil end) and nil",
]


@pytest.mark.parametrize("expression", NOTHING_THERE)
async def test_there_is_nothing(calls: Calls, expression: str):
    body = f"local ok, value = pcall(function() return {expression} end) return tostring(ok and value or nil)"
    if expression.startswith("("):
        body = body.replace(expression, expression.replace("(''):dump", "('').dump"))
    assert await calls.text(tool(body)) == ("nil", False)


REFUSED = [
    pytest.param("setmetatable({}, {__gc = function() end})", "__gc cannot be used here", id="finalizer"),
    pytest.param("setmetatable({}, setmetatable({__gc = 1}, {__index = 1}))", "__gc cannot", id="finalizer-hidden"),
    pytest.param("getmetatable('').__index = nil", "attempt to index a string value", id="string-metatable"),
    pytest.param("setmetatable('', {})", "table expected", id="set-string-metatable"),
    pytest.param("setmetatable(null, {})", "protected metatable", id="null-metatable"),
    pytest.param("null.x = 1", "null cannot be changed", id="null-changed"),
    pytest.param("collectgarbage('stop')", "collect or count here", id="collector-stop"),
    pytest.param("collectgarbage('setpause', 1000)", "collect or count here", id="collector-pause"),
    pytest.param("collectgarbage('generational')", "collect or count here", id="collector-mode"),
    pytest.param("return load(string.rep('(', 1000))()", "attempt to call a nil value", id="deep-source"),
    pytest.param("load('x', 'y', 'b')()", "attempt to call a nil value", id="load-binary"),
    pytest.param("load(1)", "load takes a text", id="load-number"),
    pytest.param("load(function() return {} end)", "must return texts", id="load-tables"),
    pytest.param("table.move({}, 1, 2^53 // 1 | 0, 2)", "whole numbers up to", id="move-forever"),
    pytest.param("table.move({}, math.mininteger, 1, 2)", "whole numbers up to", id="move-from-far"),
    pytest.param(
        "table.insert(setmetatable({}, {__len = function() return 1 << 50 end}), 1, 0)", "__len", id="insert-forever"
    ),
    pytest.param(
        "table.remove(setmetatable({}, {__len = function() return 1 << 50 end}), 1)", "__len", id="remove-forever"
    ),
    pytest.param("table.sort(setmetatable({}, {__len = function() return 1 << 30 end}))", "__len", id="sort-forever"),
    pytest.param("table.concat(setmetatable({}, {__index = type}), '', 1, 1 << 50)", "whole", id="concat-forever"),
    pytest.param("table.unpack({}, 1, 1 << 50)", "whole numbers up to", id="unpack-forever"),
    pytest.param("table.unpack({}, 1, 9e6 // 1 | 0)", "too many results", id="unpack-much"),
    pytest.param("return ('x'):rep(1 << 40)", "not enough memory", id="one-large-text"),
    pytest.param("return ('x'):rep(1 << 62)", "not enough memory", id="one-huge-text"),
    pytest.param("local t = {} while true do t[#t + 1] = {} end", "not enough memory", id="many-tables"),
    pytest.param("local s = 'x' while true do s = s .. s end", "not enough memory", id="doubling"),
    pytest.param(
        "local t = {} while true do t[#t + 1] = coroutine.create(print) end", "not enough memory", id="coroutines"
    ),
    pytest.param("local function f() return 1 + f() end return f()", "", id="recursion"),
    pytest.param("local function f() return coroutine.wrap(f)() end return f()", "", id="nested-coroutines"),
    pytest.param("local t = {} setmetatable(t, {__index = t}) return t.x", "loop", id="index-loop"),
    pytest.param(
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end return t.x",
        "overflow",
        id="index-recursion",
    ),
    pytest.param(
        "return string.rep('a', 9e6 // 1 | 0):find(string.rep('a', 8e6 // 1 | 0) .. 'b', 1, true)",
        "too long",
        id="plain",
    ),
    pytest.param("string.format('%1000d', 1)", "invalid", id="format"),
    pytest.param("coroutine.yield(1)", "outside a coroutine", id="yield"),
    pytest.param("error(setmetatable({}, {__tostring = function() error('x') end}))", "{}", id="error-with-code"),
    pytest.param("xpcall(error, function() error('again') end) error('out')", "out", id="handler-that-raises"),
    pytest.param("os.date('%Ez')", "invalid conversion", id="date"),
]


@pytest.mark.parametrize(("body", "says"), REFUSED)
async def test_it_is_refused_and_the_engine_lives(calls: Calls, body: str, says: str):
    made = tool(f"if input.again then return 'here' end\n{body}")
    said, is_error = await calls.text(made)
    assert is_error
    assert says in said
    assert await calls.text(made, again=True) == ("here", False)


ENDLESS = [
    pytest.param("local function f() return pcall(f) and f() end return f()", id="nested-pcall"),
    pytest.param(
        "local function f() while true do xpcall(f, function() while true do end end) end end f()", id="nested-xpcall"
    ),
    pytest.param(
        "while true do local c = coroutine.create(function() local t <close> = setmetatable({}, {__close = function()"
        " while true do end end}) while true do end end) coroutine.resume(c) coroutine.close(c) end",
        id="closed-coroutine",
    ),
    pytest.param(
        "local function f() local c = coroutine.create(f) while true do coroutine.resume(c) coroutine.close(c) end end"
        " f()",
        id="nested-coroutines",
    ),
    pytest.param("while true do end", id="loop"),
    pytest.param("repeat until false", id="repeat"),
    pytest.param("::top:: goto top", id="goto"),
    pytest.param("while true do pcall(function() while true do end end) end", id="pcall"),
    pytest.param("local function f() while true do pcall(f) end end f()", id="pcall-all-the-way"),
    pytest.param(
        "while true do xpcall(function() while true do end end, function() while true do end end) end", id="xpcall"
    ),
    pytest.param("while true do pcall(error) end", id="pcall-of-c"),
    pytest.param("coroutine.wrap(function() while true do end end)()", id="coroutine"),
    pytest.param("while true do pcall(coroutine.wrap(function() while true do end end)) end", id="coroutine-pcall"),
    pytest.param(
        "local c = coroutine.create(function() while true do coroutine.yield() end end)"
        " while true do coroutine.resume(c) end",
        id="resume",
    ),
    pytest.param(
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end", id="many-coroutines"
    ),
    pytest.param("table.sort({1, 2, 3}, function() while true do end end)", id="sort"),
    pytest.param("string.gsub('aaa', 'a', function() while true do end end)", id="gsub-function"),
    pytest.param(
        "local y = setmetatable({}, {__index = function() while true do end end}).x",
        id="metamethod",
    ),
    pytest.param(
        "local t <close> = setmetatable({}, {__close = function() while true do end end}) error('x')", id="close"
    ),
    pytest.param(
        "while true do local t <close> = setmetatable({}, {__close = function() while true do end end}) end",
        id="close-loop",
    ),
    pytest.param("tostring(setmetatable({}, {__tostring = function() while true do end end}))", id="tostring"),
    pytest.param("for _ in function() return 1 end do end", id="iterator"),
    pytest.param("while true do local s = ('x'):rep(1e5) end", id="garbage"),
    pytest.param("while true do load('return 1')() end", id="load"),
    pytest.param("load(function() return ' ' end)", id="load-reader"),
    pytest.param("while true do collectgarbage() end", id="collector"),
    pytest.param("return ('a'):rep(5000):find(('.-'):rep(12) .. 'b')", id="pattern"),
    pytest.param("return ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(40) .. 'b')", id="pattern-maybe"),
    pytest.param("return ('a'):rep(3000):gsub('(a*)*' .. ('a*'):rep(8) .. 'b', 'x')", id="pattern-gsub"),
    pytest.param("for w in ('a'):rep(3000):gmatch(('a-'):rep(8) .. 'b') do end", id="pattern-gmatch"),
    pytest.param("return ('('):rep(100000):find(('%b()'):rep(3))", id="pattern-balanced"),
    pytest.param("local s = ('x'):rep(1e6) while true do local y = s < s .. 'a' end", id="long-comparisons"),
]


@pytest.mark.parametrize("body", ENDLESS)
def test_it_is_stopped_when_its_time_is_up(body: str):
    state = LuaState(
        f"return {{execute = function(input) if input.again then return 'x' end\n{body}\nend}}".encode(), "/t.lua"
    )
    state.compile(bool)
    state.describe(bool)
    polls = 0

    def is_over() -> bool:
        nonlocal polls
        polls += 1
        return polls > 2

    with pytest.raises(LuaFailed, match="its time is up") as caught:
        state.execute(b"{}", is_over)
    assert caught.value.is_broken


def test_a_tool_that_changes_its_globals_changes_nothing_of_the_sandbox(monkeypatch: pytest.MonkeyPatch):
    source = b"""
      for _, name in ipairs({"pcall", "error", "type", "next", "rawget", "tostring", "select", "load"}) do
        _G[name] = function() return "mine" end
      end
      for _, of in ipairs({string, table, math, json, coroutine, utf8}) do
        for name in pairs(of) do of[name] = function() return "mine" end end
      end
      _ENV.null = 1
      return {name = "t", description = "d", input_schema = {}, execute = function(input) return {a = input.b} end}
    """
    state = LuaState(source, "/t.lua")
    state.compile(bool)
    assert b'"name":"t"' in state.describe(bool)
    assert state.execute(b'{"b": [1, null, "x"]}', bool) == b'={"a":[1,null,"x"]}'
    monkeypatch.setattr(module, "MEMORY_BYTES", 1 << 20)
    assert state.execute(b'{"b": 1}', bool) == b'={"a":1}'


def test_an_input_larger_than_the_memory_is_refused_and_nothing_dies(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MEMORY_BYTES", 1 << 20)
    state = LuaState(b"return {execute = function(input) return #input.text end}", "/t.lua")
    state.compile(bool)
    state.describe(bool)
    with pytest.raises(LuaFailed, match="memory"):
        state.execute(b'{"text": "' + b"x" * (1 << 22) + b'"}', bool)


def test_no_python_object_is_anywhere_to_be_found():
    source = b"""
      local seen, found = {}, {}
      local function look(value, way)
        local kind = type(value)
        if kind == "userdata" then found[#found + 1] = way end
        if kind ~= "table" or seen[value] then return end
        seen[value] = true
        for key, member in next, value do
          look(key, way .. ".key")
          look(member, way .. "." .. tostring(key))
        end
        look(getmetatable(value), way .. ".meta")
      end
      look(_G, "_G")
      look(getmetatable(""), "string")
      return {execute = function(input) look(input, "input") return json.array(found) end}
    """
    state = LuaState(source, "/t.lua")
    state.compile(bool)
    state.describe(bool)
    assert state.execute(b'{"a": [1, {"b": null}]}', bool) == b"=[]"
