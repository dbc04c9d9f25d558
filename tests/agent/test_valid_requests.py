"""A conversation never gets stuck: wherever it is cut, whoever goes on with it, every API takes the next request."""

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.agent.compaction import _cut
from ferrule.agent.threads import resume
from ferrule.core.content import Image, Text
from ferrule.models.bodies import Encoder
from ferrule.models.catalog import about
from ferrule.models.cues import Cue, Header, Spoken, calls, said
from ferrule.models.hosts import find_host
from ferrule.models.recorder import Scripted
from ferrule.settings import Models
from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore
from ferrule.wire import Definition, ModelRequest, Result, Thinking, Turn, Use
from tests.wire.strict import STRICT

from .stage import Stage
from .test_children import task
from .test_stopping import SCENES, played

WIRES = ["anthropic", "openai-chat", "openai-responses", "gemini"]
TOOL = Definition("Read", "Read.", {"type": "object", "properties": {}})
PROMPT = Turn("user", (Text("Go on."),))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def check_request(asked: ModelRequest) -> None:
    """What is sent is valid for strict servers of every API, whichever model had the conversation before."""
    for (host, model), check in STRICT.items():
        for thoughts in (True, False):
            encoder = Encoder(find_host(host, Models(), {}), about(model, {}))
            check(json.loads(encoder.body(asked, thoughts=thoughts)))


def next_request(turns) -> ModelRequest:
    return ModelRequest(
        model="m", turns=(Turn("system", (Text("Be brief."),)), *turns, PROMPT), definitions=(TOOL,), max_tokens=9_000
    )


def thought(wire: str) -> Spoken:
    """Thinking as each API signs it."""
    signs: dict[str, Any] = {
        "anthropic": {"signature": "zq-anthropic"},
        "openai-responses": {"signature": "rs_1", "sealed": "zq-responses"},
        "gemini": {"signature": "zq-gemini"},
        "openai-chat": {},
    }
    return Spoken(thinking="Hm.", wire=wire, **signs[wire])


def use(name, value, id_="", **more):
    return Spoken(use=name, input=value, id=id_, **more)


def scene(folder, wire):
    """All that a conversation may hold."""
    (folder / "a.py").write_text("x = 1\n")
    (folder / "p.png").write_bytes(base64.b64decode(PNG))
    read, picture = {"file_path": "${workspace}/a.py"}, {"file_path": "${workspace}/p.png"}
    cues = (
        Cue(parts=(thought(wire), Spoken(text="I look."), use("Read", read), use("Read", picture), use("Nope", {}))),
        Cue(parts=(thought(wire), use("Read", '{"file_path": ', "same"), use("Read", read, "same"))),
        Cue(parts=(use("Read", read, "id with blanks/äöü"), Spoken(text="   "), use("Read", "[1]"))),
        Cue(parts=(Spoken(text=""), use("Bash", {"command": "exit 3"}), use("Bash", {"command": "printf ''"}))),
        calls(task("one"), task("two")),
        calls(("Read", read), prompt="one"),
        said("d", prompt="one"),
        said("", prompt="two"),
        Cue(parts=(use("Read", '{"file_pa', cut=True),), reason="length"),
        Cue(parts=(Spoken(text="Done.  "), thought(wire))),
        # The second prompt: thinking and nothing else, then nothing at all.
        Cue(parts=(thought(wire),)),
        Cue(parts=()),
        Cue(parts=(Spoken(text=" \n"),)),
        said("SUMMARY"),
        Cue(parts=(thought(wire), use("Read", read))),
        said("The end."),
    )
    return Scripted(*cues, header=Header(wire=wire), workspace=str(folder))


class Checked(Scripted):
    """Refuses what a strict server would."""

    async def ask(self, asked):
        check_request(asked)
        async for delta in super().ask(asked):
            yield delta


async def _played(folder, wire):
    model = scene(folder, wire)
    model.__class__ = Checked
    async with Stage(folder, model=model) as stage:
        stage.agent.steer("And mind the gap.")
        ended = [await stage.run(prompt) for prompt in ("first", "second", "third", "fourth")]
        await stage.agent.compact()
        ended.append(await stage.run("fifth"))
        thread, state = stage.agent.thread, stage.session
        await stage.agent.talk.flush()
    return ended, thread, model, state


@pytest.mark.parametrize("wire", WIRES)
async def test_every_request_of_a_conversation_is_taken_by_all_apis(tmp_path, wire):
    ended, _, model, _ = await _played(tmp_path, wire)

    assert [(one.reason, one.error) for one in ended] == [("end", "")] * 5
    assert model.left == 0
    for asked in model.asked:
        check_request(asked)


@pytest.mark.parametrize("wire", WIRES)
async def test_killed_at_any_write_it_goes_on(tmp_path, wire, monkeypatch):
    """What is on the disk after a kill is some beginning of what was written."""
    items: list[Item] = []
    append = ThreadStore.append

    def noted(self, thread, more, **about):
        if thread == main[0]:
            items.extend(more)
        return append(self, thread, more, **about)

    monkeypatch.setattr(ThreadStore, "append", noted)
    main = [""]
    begin = ThreadStore.begin

    def named(self, thread, **more):
        main[0] = main[0] or thread
        return begin(self, thread, **more)

    monkeypatch.setattr(ThreadStore, "begin", named)
    await _played(tmp_path, wire)

    assert len(items) > 30
    for count in range(len(items) + 1):
        kept = resume(items[:count]).history.turns
        check_request(next_request(kept))
        for room in (10, 300, 3_000):
            at = _cut(kept, room)
            check_request(next_request([Turn("user", (Text("summary"),)), *kept[at:]]))


@pytest.mark.parametrize("made", SCENES, ids=lambda made: made.__name__)
@pytest.mark.parametrize("way", ["interrupt", "cancel"])
def test_stopped_at_any_step_it_goes_on(tmp_path, made, way, monkeypatch):
    """As the runs of `test_stopping`, with a model that refuses what a strict server would."""
    (tmp_path / "a.py").write_text("x = 1\n")
    ask = Scripted.ask

    async def checked(self, asked):
        check_request(asked)
        async for delta in ask(self, asked):
            yield delta

    monkeypatch.setattr(Scripted, "ask", checked)
    steps = played(tmp_path, made, way, 1 << 30)
    for at in range(5, steps, 29):
        played(tmp_path, made, way, at)


_SIGNS = st.sampled_from(
    [
        Thinking("Hm.", "zq-anthropic", wire="anthropic"),
        Thinking("", sealed="zq-anthropic", wire="anthropic"),
        Thinking("Hm.", wire="anthropic"),
        Thinking("Hm.", "rs_1", "zq-responses", "openai-responses"),
        Thinking("Hm.", "rs_1", wire="openai-responses"),
        Thinking("Hm.", "zq-gemini", wire="gemini"),
        Thinking("", "zq-gemini", wire="gemini"),
        Thinking("Hm.", wire="gemini"),
        Thinking("Hm.", wire="openai-chat"),
        Thinking("Hm.", wire="scripted"),
        Thinking("", wire="openai-chat"),
    ]
)
_WORDS = st.sampled_from(["", " ", "\n\n", "Words.", "Words. "]).map(Text)
_INPUTS: st.SearchStrategy[dict[str, Any] | str] = st.sampled_from([{}, {"path": "a"}, "{broken", "[1]", ""])
_HELD = st.lists(_WORDS | st.just(Image("image/png", PNG)), max_size=3).map(tuple)


@st.composite
def kept_turns(draw: st.DrawFn) -> list[Turn]:
    """Turns as they may be on a disk: of any model, cut anywhere, with parts that went missing."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(0, 5))):
        turns.append(Turn("user", tuple(draw(st.lists(_WORDS, max_size=2)))))
        uses = [
            Use(draw(st.sampled_from([f"c{number}_{at}", "same", "", "a b/ä"])), "Read", draw(_INPUTS))
            for at in range(draw(st.integers(0, 3)))
        ]
        parts = draw(st.permutations([*draw(st.lists(_SIGNS | _WORDS, max_size=3)), *uses]))
        turns.append(Turn("assistant", tuple(parts)))
        results = [Result(one.id, draw(_HELD), draw(st.booleans()), "Read") for one in uses]
        turns.append(Turn("user", (*results[: draw(st.integers(0, 3))], *draw(st.lists(_WORDS, max_size=1)))))
    return turns[: draw(st.integers(0, len(turns)))]


@given(turns=kept_turns())
@settings(max_examples=300)
def test_whatever_is_kept_of_a_conversation_it_goes_on(turns):
    items = [Item("turn", turn.role, msgspec.json.encode(turn)) for turn in turns]

    check_request(next_request(resume(items).history.turns))
