"""Ids of calls: kept where they fit, spelt out where they do not, and never lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.wire import (
    ModelResponse,
    Result,
    Turn,
    Use,
    WireError,
    anthropic,
    conversation,
    openai_chat,
    openai_responses,
)
from tests.rows import each_row

FORMS = [
    pytest.param(conversation.PLAIN, id="plain"),
    pytest.param(conversation.ITEM, id="fc"),
]
LIKELY = st.lists(
    st.sampled_from(
        ["toolu_", "call_", "fc_", "x_", "toolu_x_", "call_x_", "fc_x_", "-", "-41", "-c3", "a", "ö", ":", " "]
    ),
    max_size=8,
).map("".join)
IDS = LIKELY | st.text(max_size=40)


@pytest.mark.parametrize("form", FORMS)
@given(id_=IDS)
def test_an_id_comes_back_as_it_was(form, id_):
    assert conversation.decode_id(conversation.encode_id(id_, form), form) == id_


@pytest.mark.parametrize("form", FORMS)
@given(id_=IDS)
def test_an_id_on_the_wire_fits_the_wire(form, id_):
    out = conversation.encode_id(id_, form)

    assert out.startswith(form.prefix)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", out)


@pytest.mark.parametrize("form", FORMS)
@given(rest=st.from_regex(r"[A-Za-z0-9_-]{1,30}", fullmatch=True) | LIKELY.filter(str.isascii))
def test_an_id_of_the_apis_own_goes_back_as_it_came(form, rest):
    own = form.prefix + rest.replace(":", "").replace(" ", "") + "z"

    assert conversation.encode_id(conversation.decode_id(own, form), form) == own


@pytest.mark.parametrize("form", FORMS)
@given(first=IDS, second=IDS)
def test_two_ids_stay_two(form, first, second):
    assert (conversation.encode_id(first, form) == conversation.encode_id(second, form)) == (first == second)


@each_row(
    ("id_", "form", "out"),
    [
        pytest.param("toolu_01A", conversation.PLAIN, "toolu_01A", id="own"),
        pytest.param("call_9", conversation.PLAIN, "call_9", id="another-prefix-fits"),
        pytest.param(
            "functions.bash:0", conversation.PLAIN, "toolu_x_functions-2ebash-3a0", id="letters-that-do-not-fit"
        ),
        pytest.param("", conversation.PLAIN, "toolu_x_", id="empty"),
        pytest.param("call_9", conversation.ITEM, "fc_x_call_9", id="item-of-a-call"),
        pytest.param("toolu_01A", conversation.ITEM, "fc_x_toolu_01A", id="item-of-a-use"),
        pytest.param("fc_1", conversation.ITEM, "fc_1", id="item-of-its-own"),
        pytest.param("toolu_x_", conversation.PLAIN, "toolu_x_toolu_x_", id="looks-like-ours"),
        pytest.param("toolu_x_-zz", conversation.PLAIN, "toolu_x_-zz", id="only-begins-like-ours"),
    ],
)
def test_ids_are_spelt_out_only_where_they_must_be(id_, form, out):
    assert conversation.encode_id(id_, form) == out


def test_an_id_without_end_is_not_looked_into():
    endless = "toolu_x_" * 100_000

    assert conversation.decode_id(endless, conversation.PLAIN) == endless
    with pytest.raises(WireError, match="at most 1000 characters"):
        conversation.encode_id("ö" * 1_000, conversation.PLAIN)


def test_made_ids_depend_on_seed_and_place_only():
    assert conversation.derive_id("a", 0) == conversation.derive_id("a", 0)
    assert len({conversation.derive_id(seed, at) for seed in ("a", "b", "a0") for at in range(3)}) == 9


@pytest.mark.parametrize("first", [anthropic, openai_chat, openai_responses], ids=lambda wire: wire.NAME)
@pytest.mark.parametrize("second", [anthropic, openai_chat, openai_responses], ids=lambda wire: wire.NAME)
@given(id_=IDS)
def test_tool_call_id_round_trip(first, second, id_):
    """CLASP: ToolCallIDRoundTrip, between all pairs of wires: model → client of another API → model."""
    said = ModelResponse(id="m", model="m", parts=(Use(id_, "read", {}),), reason="tools")
    heard = first.said_in(first.said_out(said))
    at_client = second.said_in(second.said_out(heard))
    use = at_client.parts[0]
    assert isinstance(use, Use)
    told = second.turns_out([Turn("assistant", at_client.parts), Turn("user", (Result(use.id, (Text("done"),)),))])
    back = first.turns_in(first.turns_out(second.turns_in(told)))

    assert [part.id for turn in back for part in turn.parts if isinstance(part, Use | Result)] == [id_, id_]
