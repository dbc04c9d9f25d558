"""The formats by name, and the engine's replies as a model hears them."""

import pytest

from ferrule.core.call import Call, Failure, Reply, Status
from ferrule.core.content import Image, Text
from ferrule.core.errors import ConfigError
from ferrule.wire import WIRES, Result, Use, call_of, load_wire, result_of
from tests.architecture.project import python
from tests.rows import each_row

COMMON = {"definitions_out", "definitions_in"}
MODEL = {
    "choice_out",
    "choice_in",
    "turns_out",
    "turns_in",
    "asked_out",
    "asked_in",
    "said_out",
    "said_in",
    "calls_in",
    "results_out",
}
MCP = {"call_in", "call_out", "result_in", "result_out"}


@pytest.mark.parametrize("name", WIRES)
def test_every_format_offers_the_same_functions(name):
    wire = load_wire(name)

    missing = [
        known for known in COMMON | (MCP if name == "mcp" else MODEL) if not callable(getattr(wire, known, None))
    ]

    assert (wire.NAME, missing) == (name, [])


def test_an_unknown_format_is_told_the_known_ones():
    with pytest.raises(ConfigError, match="anthropic, openai-chat, openai-responses, gemini, mcp"):
        load_wire("soap")


def test_the_table_of_formats_loads_none_of_them(tmp_path):
    code = "import sys, ferrule.wire; print(sorted(n for n in sys.modules if n.startswith('ferrule.wire.')))"

    assert python(code, home=tmp_path).strip() == "[]"


@each_row(
    ("result", "parts"),
    [
        pytest.param("text", (Text("text"),), id="text"),
        pytest.param("", (Text(""),), id="no-text"),
        pytest.param(
            {"type": "image", "media_type": "image/png", "data": "aGk="}, (Image("image/png", "aGk="),), id="image"
        ),
        pytest.param(
            [{"type": "text", "text": "a"}, {"type": "image", "media_type": "image/png", "data": "aGk="}],
            (Text("a"), Image("image/png", "aGk=")),
            id="blocks",
        ),
        pytest.param(
            [{"type": "text", "text": "a"}, "b"], (Text('[{"type":"text","text":"a"},"b"]'),), id="not-all-blocks"
        ),
        pytest.param(["a", "b"], (Text('["a","b"]'),), id="a-list"),
        pytest.param([], (Text("[]"),), id="an-empty-list"),
        pytest.param({"type": "image", "media_type": 3}, (Text('{"type":"image","media_type":3}'),), id="no-image"),
        pytest.param({"files": []}, (Text('{"files":[]}'),), id="an-object"),
        pytest.param(None, (Text("null"),), id="null"),
    ],
)
def test_a_result_is_heard_as_parts(result, parts):
    reply = Reply(id="a", name="Read", status="done", result=result)

    assert result_of(reply) == Result("a", parts, name="Read")


STATUSES: list[Status] = ["error", "cancelled", "rejected-by-user", "blocked-on-user"]


@pytest.mark.parametrize("status", STATUSES)
def test_what_is_not_done_has_failed(status):
    reply = Reply(id="a", name="Read", status=status, error=Failure("No such file."), result="half")

    assert result_of(reply) == Result("a", (Text("No such file."),), True, "Read")


def test_a_call_that_did_not_end_says_so():
    reply = Reply(id="a", name="Read", status="in-progress")

    assert result_of(reply).parts == (Text("The call did not end: its status is in-progress."),)


def test_notes_are_heard_last():
    reply = Reply(id="a", name="Read", status="done", result="text", notes=("It was cut.", "It is long."))

    assert result_of(reply).parts == (Text("text"), Text("Note: It was cut.\nNote: It is long."))
    assert result_of(reply, notes=False).parts == (Text("text"),)


@pytest.mark.parametrize(
    ("use", "call"),
    [
        pytest.param(Use("a", "Read", {"path": "x"}), Call("Read", {"path": "x"}, "a"), id="an-object"),
        pytest.param(Use("a", "Read", "{broken"), Call("Read", "{broken", "a"), id="broken"),
        pytest.param(Use("a", "patch", "x", is_text=True), Call("patch", {"input": "x"}, "a"), id="free-text"),
    ],
)
def test_a_use_becomes_a_call(use, call):
    assert call_of(use) == call
