"""Lua's pattern functions, done where they can be stopped, answer as the originals do."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.sources import custom
from ferrule.sources.custom import module

ASK = b"""
local ours, theirs, decide = ...
local function packed(...)
  local out = table.pack(...)
  for index = 1, out.n do
    out[index] = (math.type(out[index]) == "integer" and "#" or "") .. tostring(out[index])
  end
  return table.concat(out, "\\0")
end
local function all(of, name, text, pattern, with)
  if name ~= "gmatch" then return packed(of[name](text, pattern, with)) end
  local out = {}
  for a, b, c in of.gmatch(text, pattern) do out[#out + 1] = packed(a, b, c) end
  return table.concat(out, "\\1")
end
return function(name, text, pattern, with)
  local function one(of)
    local ok, said = pcall(all, of, name, text, pattern, with)
    return ok and "=" .. said or "!"
  end
  return one(ours), one(theirs)
end
"""


def _asker():
    lua = module._newest().LuaRuntime(encoding=None, register_eval=False, register_builtins=False)
    with open(os.path.join(os.path.dirname(custom.__file__), "patterns.lua"), "rb") as file:
        ours = lua.execute(file.read())
    ours[b"set_quick"](-1)
    return lua.compile(ASK)(ours, lua.globals()[b"string"])


ask = _asker()


@each_row(
    ("name", "text", "pattern", "with_"),
    [
        pytest.param("match", "  padded  ", "^%s*(.-)%s*$", None, id="trim"),
        pytest.param("gmatch", "a=1, b=22", "(%w+)=(%w+)", None, id="pairs"),
        pytest.param("gsub", "hello world", "(%w+) (%w+)", "%2 %1%%", id="swap"),
        pytest.param("gsub", "abc", "", "-", id="empty"),
        pytest.param("gsub", "abc", "%w*", "x", id="empty-matches"),
        pytest.param("find", "f(a(b)c)d", "%b()", None, id="balanced"),
        pytest.param("gsub", "THE (quick) fox", "%f[%a]%a+", "x", id="frontier"),
        pytest.param("find", 'say "it\'s"', "([\"'])(.-)%1", None, id="again"),
        pytest.param("find", "abc", "()b()", None, id="places"),
        pytest.param("match", "key = value", "^(%w+)%s*=%s*(%w+)$", None, id="anchors"),
        pytest.param("find", "a]b", "[]]", None, id="bracket-in-class"),
        pytest.param("find", "a^b$c", "[^%w]", None, id="complement"),
        pytest.param("find", "a$b", "a$b", None, id="dollar-inside"),
        pytest.param("find", "x-y", "[x-]-y", None, id="minus-in-class"),
        pytest.param("gmatch", "a\nb\n\nc", "[^\n]*", None, id="lines"),
        pytest.param("find", "äöü", "[\x80-\xff]+", None, id="bytes"),
        pytest.param("find", "abc", "b", -1, id="from-the-end"),
        pytest.param("find", "abc", "", 10, id="behind-the-end"),
        pytest.param("gsub", "abab", "a(b)", "%0%1", id="whole"),
        pytest.param("match", "2024-01-02", "(%d+)-(%d+)-(%d+)", None, id="date"),
    ],
)
def test_a_pattern_of_every_day_means_the_same(name: str, text: str, pattern: str, with_: object):
    given_ = with_.encode() if isinstance(with_, str) else with_
    ours, theirs = ask(name.encode(), text.encode(), pattern.encode(), given_)
    assert theirs.startswith(b"=")
    assert ours == theirs


items = st.sampled_from(
    ["a", "b", ".", "%a", "%d", "[ab]", "[^a]", "[%w_]", "%.", "[a-c]", "%b()", "%f[%a]", "%1", "$", "-"]
)
times = st.sampled_from(["", "", "*", "+", "-", "?"])
groups = st.sampled_from(["{}", "{}", "({})", "(){}"])
pieces = st.builds(lambda group, item, count: group.format(item + count), groups, items, times)
patterns = st.builds(
    lambda start, parts: start + "".join(parts), st.sampled_from(["", "^"]), st.lists(pieces, max_size=4)
)
texts = st.text(alphabet="ab()c1. ", max_size=12)


@settings(max_examples=300)
@given(st.sampled_from(["find", "match", "gmatch", "gsub"]), texts, patterns)
def test_any_pattern_means_the_same(name: str, text: str, pattern: str):
    given_ = b"<%0>" if name == "gsub" else None
    ours, theirs = ask(name.encode(), text.encode(), pattern.encode(), given_)
    assert ours == theirs
