"""Bodies that are put together from what was written before are the same as bodies that are written at once."""

import json
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.models import bodies
from ferrule.models.bodies import Encoder, encode_json, shape_body, sound
from ferrule.models.catalog import about
from ferrule.models.hosts import find_host
from ferrule.settings import Models
from ferrule.wire import ModelRequest, Result, Thinking, Turn, Use, load_wire
from ferrule.wire.schema import free_text
from tests.wire.strategies import conversations, definition

HOSTS = [
    pytest.param("anthropic", "claude-opus-4-5", id="anthropic"),
    pytest.param("openai", "gpt-5.2", id="responses"),
    pytest.param("deepseek", "deepseek-chat", id="chat"),
    pytest.param("gemini", "gemini-3-pro", id="gemini"),
]
MARK = b',"cache_control":{"type":"ephemeral"}'
VOUCHED = b',"thoughtSignature":"skip_thought_signature_validator"'


def plain(body: bytes) -> bytes:
    """Without what no codec writes."""
    return body.replace(MARK, b"").replace(VOUCHED, b"")


def made(name: str, model: str) -> Encoder:
    return Encoder(find_host(name, Models(), {}), about(model, {}))


def whole(name: str, model: str, asked: ModelRequest) -> bytes:
    host = find_host(name, Models(), {})
    sent = (sound(turn, ends_thinking=host.api in {"gemini", "openai-chat"}) for turn in asked.turns)
    asked = msgspec.structs.replace(asked, turns=tuple(turn for turn in sent if turn.parts))
    body = shape_body(load_wire(host.api).asked_out(asked), asked, host, about(model, {}), "")
    return plain(msgspec.json.encode(body))


@st.composite
def long_conversations(draw: st.DrawFn) -> tuple[Turn, ...]:
    """As they come of people: several in a row, words of the system between, and answers that come late."""
    turns: list[Turn] = []
    taken: set[str] = set()
    for part in draw(st.lists(conversations(result_images=True, names=True, wire="anthropic"), min_size=1, max_size=3)):
        ids = {one.id for turn in part for one in turn.parts if isinstance(one, Use)}
        if ids & taken:
            continue
        taken |= ids
        turns += part
        if draw(st.booleans()):
            turns.append(Turn("system", (Text("Mind the gap."),)))
        if draw(st.booleans()):
            turns += [
                Turn("user", (Text("More."),)),
                Turn("assistant", (Text("Well,"),)),
                Turn("assistant", (Text("ok."),)),
            ]
    return tuple(turns)


@pytest.mark.parametrize(("name", "model"), HOSTS)
@settings(max_examples=30)
@given(turns=long_conversations(), free=st.booleans())
def test_a_body_in_pieces_is_the_body(name, model, turns, free):
    encoder = made(name, model)
    tools = (definition("read"), free_text("write", "Write.", "start: /a/")) if free else (definition("read"),)
    for end in range(1, len(turns) + 1):
        asked = ModelRequest(model=model, turns=turns[:end], definitions=tools, max_tokens=100, stream=True)

        assert plain(encoder.body(asked)) == whole(name, model, asked)


@pytest.mark.parametrize(("name", "model"), HOSTS)
def test_what_was_sent_before_is_not_written_again(name, model, monkeypatch):
    turns: list[Turn] = [Turn("system", (Text("Be brief."),)), Turn("user", (Text("Hi"),))]
    system = "Be brief."
    encoder = made(name, model)
    sizes: list[int] = []
    real = bodies.encode_json

    def counted(value: object) -> bytes:
        data = real(value)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(bodies, "encode_json", counted)
    for at in range(40):
        # Whoever makes the system's words and the definitions anew for every turn does not pay for it either.
        turns[0] = Turn("system", (Text(system),))
        asked = ModelRequest(model=model, turns=tuple(turns), definitions=(definition("read"),), stream=True)
        encoder.body(asked)
        use = Use(f"call_{at}", "read", {"path": "x" * 1000})
        turns += [Turn("assistant", (use,)), Turn("user", (Result(use.id, (Text("y" * 1000),), name="read"),))]

    assert sum(sizes[-5:]) < 5 * 3000
    # What stands around the conversation is two pieces. Chat has the system's words in its first segment, which is
    # written anew until it is put together with others.
    assert len(sizes) == (42 if name != "deepseek" else 45)


@pytest.mark.parametrize(("name", "model"), HOSTS)
def test_the_old_pieces_of_a_long_body_are_the_same_objects_every_time(name, model):
    """Nothing of them is copied for a turn, however long the conversation is."""
    turns: list[Turn] = [Turn("user", (Text("Hi"),))]
    encoder = made(name, model)
    pieces: list[bytes] = []
    for at in range(300):
        use = Use(f"call_{at}", "read", {"path": "x" * 1000})
        turns += [Turn("assistant", (use,)), Turn("user", (Result(use.id, (Text("y" * 1000),), name="read"),))]
        asked = ModelRequest(
            model=model, turns=tuple(turns), definitions=(definition("read"),), max_tokens=9, stream=True
        )
        old, pieces = pieces, encoder.pieces(asked)
        done = [one for one in old if len(one) > 96 * 1024][:-1]
        assert all(any(one is same for same in pieces) for one in done)

    assert len(pieces) < 12
    assert sum(map(len, pieces)) > 600_000
    assert plain(b"".join(pieces)) == whole(name, model, asked)


@pytest.mark.parametrize(("name", "model"), HOSTS)
def test_a_turn_that_was_made_smaller_is_written_anew(name, model):
    use = Use("call_1", "read", {})
    turns = [
        Turn("user", (Text("Hi"),)),
        Turn("assistant", (use,)),
        Turn("user", (Result("call_1", (Text("long"),), name="read"),)),
    ]
    turns += [Turn("assistant", (Text("ok"),)), Turn("user", (Text("go on"),))]
    encoder = made(name, model)
    encoder.body(ModelRequest(model=model, turns=tuple(turns)))
    turns[2] = Turn("user", (Result("call_1", (Text("[see k3v9]"),), name="read"),))

    body = encoder.body(ModelRequest(model=model, turns=tuple(turns)))

    assert b"k3v9" in body
    assert b"long" not in body
    assert plain(body) == whole(name, model, ModelRequest(model=model, turns=tuple(turns)))


@pytest.mark.parametrize(("name", "model"), HOSTS)
def test_an_answer_to_a_call_of_long_ago_still_finds_its_call(name, model):
    turns = (
        Turn("user", (Text("Hi"),)),
        Turn("assistant", (Use("call_1", "read", {}),)),
        Turn("user", (Text("wait"),)),
        Turn("assistant", (Text("waiting"),)),
        Turn("user", (Result("call_1", (Text("late"),)),)),
    )
    asked = ModelRequest(model=model, turns=turns)

    assert plain(made(name, model).body(asked)) == whole(name, model, asked)


def test_never_more_than_four_marks():
    turns: list[Turn] = [Turn("system", (Text("Be brief."),))]
    encoder = made("anthropic", "claude-opus-4-5")
    for _ in range(6):
        turns += [Turn("user", (Text("a"), Text("b"))), Turn("assistant", (Text("c"),))]
        body = encoder.body(ModelRequest(model="m", turns=tuple(turns), definitions=(definition("read"),)))
        assert body.count(b'"cache_control"') <= 4
        assert json.loads(body)


def test_thinking_is_left_out_where_it_is_not_wanted():
    turns = (Turn("user", (Text("a"),)), Turn("assistant", (Thinking("hm", "s", wire="anthropic"), Text("b"))))
    encoder = made("anthropic", "claude-opus-4-5")
    asked = ModelRequest(model="m", turns=turns)

    assert b"hm" in encoder.body(asked)
    assert b"hm" not in encoder.body(asked, thoughts=False)
    assert b"hm" in encoder.body(asked)


ODD = [
    pytest.param("half \ud800 a pair", "half \ufffd a pair", id="half"),
    pytest.param("\ud83d\ude00", "\U0001f600", id="two halves are one"),
]


@pytest.mark.parametrize(("text", "wanted"), ODD)
def test_what_json_has_no_place_for_is_mended(text, wanted):
    assert json.loads(encode_json({"a": [text]})) == {"a": [wanted]}


@pytest.mark.parametrize(("name", "model"), HOSTS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_long_conversation_that_is_cut_and_changed_is_still_the_body(name, model, data):
    """Whatever becomes of the turns between two questions: more of them, fewer, others in their place."""
    encoder = made(name, model)
    turns: list[Turn] = [Turn("user", (Text("Hi"),))]
    for at in range(data.draw(st.integers(5, 12))):
        use = Use(f"call_{at}", "read", {"n": at})
        turns += [Turn("assistant", (use,)), Turn("user", (Result(use.id, (Text(f"r{at}"),), name="read"),))]
        change = data.draw(st.sampled_from(["", "", "", "shorter", "smaller", "summary", "mute"]))
        if change == "shorter":
            turns = turns[: 1 + 2 * data.draw(st.integers(0, len(turns) // 2))]
        elif change == "smaller" and len(turns) > 2:
            place = 2 * data.draw(st.integers(1, (len(turns) - 1) // 2))
            old = turns[place].parts[0]
            if isinstance(old, Result):
                turns[place] = Turn("user", (Result(old.id, (Text("[cut]"),), name="read"),))
        elif change == "mute":
            turns = [*turns[: 1 + 2 * data.draw(st.integers(0, len(turns) // 2))], Turn("assistant", ())]
            turns.append(Turn("user", (Text("Well?"),)))
        elif change == "summary":
            turns = [Turn("user", (Text(f"So far: {at}"),)), *turns[len(turns) // 4 * 2 + 1 :]]
        asked = ModelRequest(model=model, turns=tuple(turns), definitions=(definition("read"),))

        assert plain(encoder.body(asked)) == whole(name, model, asked)


def test_a_reminder_behind_the_results_does_not_cost_what_is_kept_before_it():
    """The mark of one question has to be where the next one has the same words."""
    encoder = made("anthropic", "claude-opus-4-5")
    reminder = Turn("user", (Text("Plan mode is on."),))
    turns: list[Turn] = [Turn("user", (Text("Hi"),))]
    kept: list[bytes] = []
    for at in range(6):
        body = encoder.body(ModelRequest(model="m", turns=(*turns, reminder)))
        messages = body.partition(b'"messages":')[2]
        ends = [found.start() for found in re.finditer(re.escape(MARK), messages)]
        *earlier, last = [messages[:end].replace(MARK, b"") for end in ends]

        assert earlier == kept[-1:]
        assert b"Plan mode" not in last
        kept.append(last)
        use = Use(f"call_{at}", "read", {})
        turns += [Turn("assistant", (use,)), Turn("user", (Result(use.id, (Text("y"),)),))]


SIGNED = Thinking("", "abc=", wire="gemini")
VOUCHING = [
    pytest.param("gemini-3-pro", (Use("1", "read", {}), Use("2", "read", {})), True, 1, id="calls of another model's"),
    pytest.param("gemini-3-pro", (SIGNED, Use("1", "read", {})), True, 0, id="calls of its own"),
    pytest.param("gemini-3-pro", (SIGNED, Use("1", "read", {})), False, 1, id="what it does not take back"),
    pytest.param("gemini-3-pro", (Text("Yes."),), True, 0, id="no calls"),
    pytest.param("gemini-2.5-pro", (Use("1", "read", {}),), True, 0, id="a model that does not ask for it"),
]


@pytest.mark.parametrize(("model", "parts", "thoughts", "times"), VOUCHING)
def test_gemini_is_told_of_calls_that_it_has_not_signed(model, parts, thoughts, times):
    results = tuple(Result(part.id, (Text("ok"),), name="read") for part in parts if isinstance(part, Use))
    turns = (Turn("user", (Text("Hi"),)), Turn("assistant", parts), Turn("user", results or (Text("And?"),)))
    body = made("gemini", model).body(ModelRequest(model=model, turns=turns), thoughts=thoughts)

    assert body.count(VOUCHED) == times
    if times:
        said = msgspec.json.decode(body)["contents"][1]["parts"]
        assert ["thoughtSignature" in part for part in said] == [True, False][: len(said)]
