"""Python modules as tools: records, lists of them, functions under `@tool`, and what becomes of broken ones."""

import os
import sys
import threading
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.sources.custom.conftest import Calls

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.tool import Raw
from ferrule.sources.custom.module import is_valid_tool, load_module

RECORD = """
TOOL = {
    "name": "greet",
    "description": "Say hello.",
    "system_prompt": "Be kind.",
    "input_schema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
    "execute": lambda input: "hello " + input["who"],
}
"""
HEAD = "SCHEMA = {'type': 'object', 'properties': {'a': {}}}\n"


def load(source: str, path: str = "/tools/t.py"):
    return load_module(path, source.encode())


async def test_a_record_makes_a_tool(calls: Calls):
    (made,) = load(RECORD).tools
    assert (made.name, made.words, made.guidance) == ("greet", "Say hello.", "Be kind.")
    assert (made.source, made.origin, made.own_thread, made.args) == ("custom", "/tools/t.py", True, Raw)
    assert made.schema["required"] == ["who"]
    assert made.access(Raw(values={}), calls.new_context(made)) == (EVERYTHING,)
    assert await calls.text(made, who="you") == ("hello you", False)


@pytest.mark.parametrize(
    ("execute", "said", "is_error"),
    [
        pytest.param("def execute(input): return 'x'", "x", False, id="text"),
        pytest.param("def execute(input): return 'x', False", "x", False, id="pair"),
        pytest.param("def execute(input): return 'bad', True", "bad", True, id="error"),
        pytest.param("async def execute(input): return 'later'", "later", False, id="async"),
        pytest.param("def execute(input, ctx): return ctx.call_id", "call", False, id="context"),
        pytest.param("async def execute(input, ctx): return ctx.call_id, True", "call", True, id="async-context"),
        pytest.param("def execute(input): return input", {"a": [1, None, {"b": 2.5}]}, False, id="values"),
        pytest.param("def execute(input): return {'code': 1}, True", '{"code":1}', True, id="error-value"),
        pytest.param("def execute(input): pass", "", False, id="nothing"),
        pytest.param("def execute(input): return b'a\\xff'", "a\ufffd", False, id="bytes"),
        pytest.param("def execute(input): return object(), True", "The tool failed with something", True, id="object"),
        pytest.param(
            "from ferrule.core.errors import ToolFailure\ndef execute(input): raise ToolFailure('no')",
            "no",
            True,
            id="failure",
        ),
    ],
)
async def test_what_execute_returns_is_what_the_call_says(calls: Calls, execute: str, said: object, is_error: bool):
    source = f"{HEAD}{execute}\nTOOL = dict(name='t', description='d', input_schema=SCHEMA, execute=execute)"
    (made,) = load(source).tools
    text, failed = await calls.text(made, a=[1, None, {"b": 2.5}])
    assert failed is is_error
    if isinstance(said, str):
        assert text.startswith(said)
    else:
        assert text == said


async def test_a_body_runs_on_a_thread_of_its_own(calls: Calls):
    (made,) = load(RECORD.replace('"hello " + input["who"]', "__import__('threading').current_thread().name")).tools
    assert (await calls.text(made, who=""))[0] != threading.current_thread().name


def test_a_module_may_bring_several_tools():
    source = f"""{HEAD}
from ferrule.sources import tool
class Shape:
    name, description, input_schema, read_only = "shape", "d", SCHEMA, True
    def execute(self, input): return "round"
TOOLS = [Shape(), dict(name="second", description="d", input_schema=SCHEMA, execute=print)]
@tool(guidance="Rarely.")
def third(count: int) -> int:
    "Count."
    return count
again = third
_hidden = third
"""
    brought = load(source)
    assert brought.warnings == ()
    assert [one.name for one in brought.tools] == ["shape", "second", "third"]
    assert {one.source for one in brought.tools} == {"custom"}
    assert {one.origin for one in brought.tools} == {"/tools/t.py"}
    assert (brought.tools[0].hints, brought.tools[2].guidance) == ({"readOnlyHint": True}, "Rarely.")


async def test_a_record_may_say_what_it_touches(calls: Calls):
    source = (
        "from ferrule.core.access import Access\n"
        + RECORD
        + "TOOL['touches'] = lambda input: Access.read(input['who'])\n"
    )
    (made,) = load(source).tools
    touched = made.access(Raw(values={"who": "a.txt"}), calls.new_context(made))
    assert touched == (Access.read(os.path.join(calls.jail.roots[0].path, "a.txt")),)


@each_row(
    ("source", "warning"),
    [
        pytest.param("def (", "failed to load /tools/t.py: SyntaxError: invalid syntax (line 1)", id="syntax"),
        pytest.param("x = '\0'", "failed to load /tools/t.py: ", id="nul"),
        pytest.param(
            "1/0\nTOOL = 1", "failed to execute /tools/t.py: ZeroDivisionError: division by zero", id="raises"
        ),
        pytest.param("raise SystemExit(3)\nTOOL = 1", "failed to execute /tools/t.py: SystemExit: 3", id="exit"),
        pytest.param(
            "raise KeyboardInterrupt\nTOOL = 1", "failed to execute /tools/t.py: KeyboardInterrupt", id="interrupt"
        ),
        pytest.param("def f(): f()\nTOOL = f()", "failed to execute /tools/t.py: RecursionError", id="recursion"),
        pytest.param(
            "import no_such_module_here\nTOOL = 1", "failed to execute /tools/t.py: ModuleNotFoundError", id="import"
        ),
        pytest.param(
            "class E(Exception):\n def __str__(self): raise SystemExit\nraise E\nTOOL = 1",
            "failed to execute /tools/t.py: ",
            id="error-that-raises",
        ),
        pytest.param("x = 1", "invalid tool format in /tools/t.py: it has no TOOL", id="nothing"),
        pytest.param("TOOL = 3", "invalid tool format in /tools/t.py: a record needs a name", id="number"),
        pytest.param("TOOLS = 3", "invalid tool format in /tools/t.py: a record needs a name", id="no-list"),
        pytest.param(RECORD + "TOOL['name'] = 'a b'", "invalid tool format in /tools/t.py: its name 'a b'", id="name"),
        pytest.param(RECORD + "TOOL['touches'] = 3", "invalid tool format in /tools/t.py: its touches", id="touches"),
        pytest.param(
            RECORD + "TOOL['input_schema'] = {'type': 'array'}", "invalid tool format in /tools/t.py: Its", id="array"
        ),
        pytest.param(
            RECORD + "s = TOOL['input_schema']; s['not'] = s",
            "invalid tool format in /tools/t.py: its schema",
            id="self",
        ),
        pytest.param(
            "from ferrule.sources import tool\n@tool\ndef f(x): pass",
            "failed to execute /tools/t.py: ferrule.core.errors.ConfigError: The tool f",
            id="bad-function",
        ),
        pytest.param(
            "class Odd:\n def __getattr__(self, name): raise SystemExit\nTOOL = Odd()",
            "invalid tool format in /tools/t.py: SystemExit",
            id="odd-record",
        ),
    ],
)
def test_a_broken_module_is_a_warning(source: str, warning: str):
    before = set(sys.modules)
    brought = load(source)
    assert brought.tools == ()
    assert len(brought.warnings) == 1
    assert brought.warnings[0].startswith(warning)
    assert "\n" not in brought.warnings[0]
    if "failed" in warning:
        assert not {name for name in set(sys.modules) - before if name.startswith("_ferrule_tools")}


@pytest.mark.parametrize(
    "source",
    [
        "from ferrule import tool\n@tool\ndef f() -> int:\n    'd'\n    return 1",
        "import ferrule.sources as f\n@f.tool\ndef g() -> int:\n    'd'\n    return 1",
        "if True:\n    TOOL = dict(name='t', description='d', input_schema={}, execute=print)",
        "global TOOLS\nTOOLS = []\nTOOLS += [dict(name='t', description='d', input_schema={}, execute=print)]",
    ],
    ids=["imported", "module-imported", "inside-if", "global"],
)
def test_a_tool_is_recognised_before_it_is_run(source: str):
    brought = load(source)
    assert (len(brought.tools), brought.warnings) == (1, ())


def test_a_good_tool_beside_a_bad_one_is_used():
    brought = load(RECORD + "TOOLS = [{'name': 'bad'}]")
    assert [one.name for one in brought.tools] == ["greet"]
    assert len(brought.warnings) == 1


def test_what_a_module_prints_is_not_on_the_standard_output(capsys: pytest.CaptureFixture[str]):
    assert load("print('loud')\n" + RECORD).tools
    assert capsys.readouterr() == ("", "loud\n")


def test_a_module_knows_where_it_is_and_changes_no_path(tmp_path: Path):
    (tmp_path / "words.txt").write_text("data")
    before = list(sys.path)
    source = (
        RECORD + "from pathlib import Path\nTOOL['description'] = (Path(__file__).parent / 'words.txt').read_text()\n"
    )
    brought = load(source, str(tmp_path / "t.py"))
    assert [one.words for one in brought.tools] == ["data"]
    assert sys.path == before


def test_a_module_may_make_classes_that_look_for_their_module():
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n"
        "@dataclass\nclass Point:\n    x: int = 0\n    most: ClassVar[int] = 3\n" + RECORD
    )
    assert load(source).warnings == ()


@each_row(
    ("raw", "valid"),
    [
        pytest.param({"name": "n", "description": "d", "input_schema": {}, "execute": print}, True, id="all"),
        pytest.param({"description": "d", "input_schema": {}, "execute": print}, False, id="no-name"),
        pytest.param({"name": 1, "description": "d", "input_schema": {}, "execute": print}, False, id="name-number"),
        pytest.param({"name": "n", "input_schema": {}, "execute": print}, False, id="no-description"),
        pytest.param({"name": "n", "description": "d", "execute": print}, False, id="no-schema"),
        pytest.param({"name": "n", "description": "d", "input_schema": {}}, False, id="no-execute"),
        pytest.param(None, False, id="nothing"),
        pytest.param("text", False, id="text"),
    ],
)
def test_is_valid_tool(raw: object, valid: bool):
    assert is_valid_tool(raw) is valid
