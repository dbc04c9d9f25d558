"""The JSON lines of `ferrule run`, as programs read them that know Claude Code's."""

import json
import os
import re
from typing import Any

import pytest
from tests.agent.stage import Stage

from ferrule.agent import (
    Began,
    Called,
    ChildBegan,
    Ended,
    Retrying,
    Spent,
    Spoke,
    Thought,
    TurnBegan,
    TurnEnded,
    Warned,
)
from ferrule.cli.stream_json import StreamJson, line_of
from ferrule.core.call import Reported
from ferrule.core.content import Text
from ferrule.models import Prices
from ferrule.models.cues import Header, calls, repeats, said
from ferrule.models.recorder import Scripted
from ferrule.permissions import Nobody
from ferrule.wire import ModelResponse, Usage, Use

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
LINES = {
    # What the public documentation of the form says that each kind has.
    "system": {"subtype"},
    "assistant": {"message", "parent_tool_use_id"},
    "user": {"message", "parent_tool_use_id"},
    "stream_event": {"event", "parent_tool_use_id"},
    "result": {
        "subtype",
        "duration_ms",
        "duration_api_ms",
        "is_error",
        "num_turns",
        "result",
        "total_cost_usd",
        "usage",
        "permission_denials",
    },
}
INIT = {"cwd", "tools", "mcp_servers", "model", "permissionMode", "slash_commands", "apiKeySource", "output_style"}
MESSAGE = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}


def check(lines):
    """Every line has what is documented; the first and the last are what they have to be; calls have one result."""
    assert lines[0]["type"] == "system"
    assert lines[0]["subtype"] == "init"
    assert lines[0].keys() >= INIT
    assert lines[-1]["type"] == "result"
    uses, answered = [], []
    for line in lines:
        assert line.keys() >= LINES[line["type"]] | {"session_id", "uuid"}
        assert _UUID.fullmatch(line["uuid"])
        assert line["session_id"] == lines[0]["session_id"]
        if line["type"] == "assistant":
            assert line["message"].keys() == MESSAGE
            uses += [block["id"] for block in line["message"]["content"] if block["type"] == "tool_use"]
        if line["type"] == "user":
            answered += [block["tool_use_id"] for block in line["message"]["content"] if block["type"] == "tool_result"]
    assert sorted(answered) == sorted(uses)
    assert len({line["uuid"] for line in lines}) == len(lines)


class Lines:
    """Takes events and has them as lines."""

    def __init__(self, **options):
        self.raw: list[bytes] = []
        self.stream = StreamJson(self.raw.append, **options)

    @property
    def all(self):
        return [json.loads(line) for line in self.raw]


def steady(lines, workspace):
    """The lines without what differs from run to run: ids, times, folders; results at once in the order of calls."""
    kept, run_ = [], []
    for line in lines:
        if line["type"] == "user":
            run_.append(line)
            continue
        kept += sorted(run_, key=json.dumps)
        run_ = []
        kept.append(line)
    text = "\n".join(json.dumps(line, indent=1, ensure_ascii=False) for line in kept)
    text = text.replace(os.path.realpath(workspace), "/workspace")
    text = re.sub(r"T-[0-9a-f-]{36}", "T-1", text)
    text = _UUID.sub("00000000-0000-4000-8000-000000000000", text)
    text = re.sub(r'("duration_(?:api_)?ms"): \d+', r"\1: 0", text)
    text = re.sub(r"agent(Id|_id): a[0-9a-f]+|\ba[0-9a-f]{12}\b", "a000000000000", text)
    text = re.sub(r"[\d.]+ seconds", "0 seconds", text)
    text = re.sub(r'("tools"): \[[^\]]*\]', r'\1: ["..."]', text)
    return re.sub(r'("(?:pre|post)_tokens"): \d+', r"\1: 0", text)


async def play(workspace, *cues, window=200_000, **session):
    lines = Lines()
    header = Header(model="claude-test", window=window, most_output=2_000, prices=Prices(3.0, 15.0, 0.3, 3.75))
    model = Scripted(*cues, header=header, workspace=str(workspace))
    async with Stage(workspace, model=model, **session) as stage:
        stage.on = lines.stream.put
        await stage.run("Go.")
    check(lines.all)
    return lines.all


def read(name, id_=""):
    return ("Read", {"file_path": f"${{workspace}}/{name}"}, *([id_] if id_ else []))


USAGE = Usage(1000, 50, 600, 300)


async def test_calls_at_once_and_one_that_fails(tmp_path, golden):
    (tmp_path / "a.txt").write_text("one\n")
    cues = (
        calls(read("a.txt"), read("missing.txt"), text="I look.", thinking="Hm.", usage=USAGE),
        said("There is one.", usage=USAGE),
    )
    golden.check("stream_json/calls.txt", steady(await play(tmp_path, *cues), tmp_path))


async def test_a_call_that_is_refused(tmp_path, golden):
    write = ("Write", {"file_path": "${workspace}/b.txt", "content": "x"})
    lines = await play(tmp_path, calls(write), said("I may not."), ask=Nobody())
    golden.check("stream_json/refused.txt", steady(lines, tmp_path))
    assert [denied["tool_use_id"] for denied in lines[-1]["permission_denials"]] == ["c1"]


async def test_a_subagent_names_the_call_that_began_it(tmp_path, golden):
    (tmp_path / "a.txt").write_text("one\n")
    task = {"description": "Look", "prompt": "What is in a.txt?", "subagent_type": "Explore"}
    cues = (
        calls(("Task", task, "task"), usage=USAGE),
        calls(read("a.txt", "inner"), prompt="What is in a.txt?", usage=USAGE),
        said("One.", prompt="What is in a.txt?", usage=USAGE),
        said("It says one.", usage=USAGE),
    )
    lines = await play(tmp_path, *cues)
    golden.check("stream_json/subagent.txt", steady(lines, tmp_path))
    inner = [line for line in lines if line.get("parent_tool_use_id") == "task"]
    assert [line["type"] for line in inner] == ["assistant", "user", "assistant"]


async def test_a_conversation_that_was_made_smaller(tmp_path, golden):
    cues = []
    for at in range(9):
        (tmp_path / f"f{at}.txt").write_text(f"file {at}\n" + "some words of it\n" * 900)
        cues.append(calls(read(f"f{at}.txt")))
    lines = await play(tmp_path, *cues, said("All read."), window=56_000)
    (cut,) = [line for line in lines if line.get("subtype") == "compact_boundary"]
    assert cut["compact_metadata"]["trigger"] == "auto"
    assert cut["compact_metadata"]["pre_tokens"] > cut["compact_metadata"]["post_tokens"]
    shown = [line for line in lines if line["type"] in {"system", "result"}]
    golden.check("stream_json/compaction.txt", steady(shown, tmp_path))


async def test_an_answer_that_is_asked_for_again(tmp_path):
    lines = await play(tmp_path, repeats("It", why="The stream was cut.", seconds=0.0), said("It is."))
    (again,) = [line for line in lines if line.get("subtype") == "api_retry"]
    assert (again["attempt"], again["retry_delay_ms"], again["error"]) == (1, 0, "The stream was cut.")


def test_calls_that_were_not_made_have_a_result_all_the_same():
    lines, thread = Lines(), "T-1"
    began = Began(thread=thread, prompt="x", model="m", dialect="claude", cwd="/", tools=(), permission_mode="default")
    use = Use("c1", "Read", {})
    said_ = ModelResponse(id="m1", model="m", parts=(use,), reason="length")
    for event in (
        Warned(thread=thread, sentence="Early."),
        began,
        TurnBegan(thread=thread, number=1, context_tokens=0),
        TurnEnded(thread=thread, said=said_, spent=Spent()),
        Ended(thread=thread, reason="tokens", text="", spent=Spent(), total=Spent()),
    ):
        lines.stream.put(event)
    check(lines.all)
    kinds = [(line["type"], line.get("subtype")) for line in lines.all]
    assert kinds[:2] == [("system", "init"), ("system", "warning")]
    assert lines.all[3]["message"]["content"][0]["is_error"] is True


def test_what_a_hook_reports_is_a_warning():
    lines = Lines()
    lines.stream.put(
        Began(
            thread="T-1", prompt="x", model="m", dialect="claude", cwd="/", tools=("mcp__db__q",), permission_mode="x"
        )
    )
    lines.stream.put(Called(thread="T-1", call=Reported(id="", name="", at=0.0, sentence="Look out.")))
    assert lines.all[0]["mcp_servers"] == [{"name": "db", "status": "connected"}]
    assert lines.all[1]["message"] == "Look out."


@pytest.mark.parametrize("partial", [False, True])
def test_pieces_are_told_only_where_they_are_wanted(partial):
    lines = Lines(partial=partial)
    began = Began(thread="T-1", prompt="x", model="m", dialect="claude", cwd="/", tools=(), permission_mode="default")
    child = ChildBegan(thread="T-1", child="T-2", call_id="c1", name="Explore", description="", model="m")
    pieces = [Thought(thread="T-1", text="Hm."), Spoke(thread="T-1", text="I"), Spoke(thread="T-2", text="you")]
    again = Retrying(thread="T-1", why="Cut.", seconds=1.5, attempt=1)
    events: list[Any] = [began, child, *pieces, again, Spoke(thread="T-1", text="We")]
    for event in events:
        lines.stream.put(event)
    said_ = ModelResponse(id="m1", model="m", parts=(Text("We"),), reason="end")
    lines.stream.put(TurnEnded(thread="T-1", said=said_, spent=Spent()))
    events = [(line["event"]["type"], line["parent_tool_use_id"]) for line in lines.all if "event" in line]
    assert bool(events) == partial
    if partial:
        assert events.count(("message_start", None)) == 2  # the first was void
        assert ("message_start", "c1") in events
        assert events[-1] == ("message_stop", None)


def test_no_line_has_an_end_of_line_in_it_to_any_reader():
    text = "a\x85b\u2028c\u2029d\x9be\ud800"
    raw = line_of({"text": text})
    assert raw.decode().splitlines() == [raw.decode().removesuffix("\n")]
    assert json.loads(raw) == {"text": text}
