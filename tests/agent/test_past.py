"""Where prompts stand in a conversation that was damaged, and what is read of rewinds from a store."""

import msgspec
import pytest

from ferrule.agent.conversation import REWOUND, UNREWOUND, RewindStep
from ferrule.agent.threads import resume
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.tools.threads import PROMPT, Item, messages
from ferrule.wire import Turn, Use

from .stage import check_valid, words


def turn(role, *parts):
    return Item("turn", role, msgspec.json.encode(Turn(role, tuple(parts))), at=7.0)


def prompt(number, text):
    return [Item(PROMPT, "", msgspec.json.encode(number)), turn("user", Text(text)), turn("assistant", Text("Yes."))]


def rewound(number, turns):
    return Item(REWOUND, "", msgspec.json.encode(RewindStep(number, turns)))


def spoken(resumed):
    return [words(one) for one in resumed.history.turns if one.role == "user"]


def test_a_prompt_behind_calls_that_a_crash_has_left_open_is_found_again():
    crashed = turn("assistant", Use("c1", "Read", {}))
    resumed = resume([*prompt(1, "one")[:2], crashed, crashed, *prompt(2, "two")])
    step = resumed.past.step(2)

    check_valid(resumed.history.turns)
    assert words(resumed.history.turns[step.turns]) == "two"


def test_a_prompt_that_cannot_be_read_is_no_other_one():
    number, _, answer = prompt(2, "two")
    resumed = resume([*prompt(1, "one"), number, Item("turn", "user", b"{broken"), answer, *prompt(3, "three")])

    assert [(one.number, one.text, one.at) for one in resumed.past.prompts()] == [(1, "one", 7.0), (3, "three", 7.0)]
    assert resumed.past.number == 3
    with pytest.raises(ConfigError, match="There is no prompt 2"):
        resumed.past.step(2)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(Item(REWOUND, "", b"{}"), id="no rewind"),
        pytest.param(Item(PROMPT, "", b'"x"'), id="no number"),
        pytest.param(Item(UNREWOUND, "", b"null"), id="nothing to take back"),
        pytest.param(rewound(9, 99), id="beyond the end"),
        pytest.param(Item(REWOUND, "", msgspec.json.encode(RewindStep(1, 99, 5))), id="of what was never left"),
    ],
)
def test_what_a_store_says_wrongly_of_rewinds_does_no_harm(broken):
    resumed = resume([*prompt(1, "one"), broken, *prompt(2, "two")])

    assert spoken(resumed) == ["one", "two"]


def test_a_conversation_of_before_prompts_had_numbers_goes_on_and_counts_from_one():
    resumed = resume([turn("user", Text("old")), turn("assistant", Text("Yes.")), *prompt(1, "new")])

    assert spoken(resumed) == ["old", "new"]
    assert resumed.past.step(1) == RewindStep(1, 2)


def test_a_thread_says_where_it_was_rewound():
    said = messages([*prompt(1, "one"), *prompt(2, "two"), rewound(2, 2), *prompt(3, "three")])

    assert [(one.speaker, one.text) for one in said][3:6] == [
        ("assistant", "Yes."),
        ("rewind", "The conversation went back to before prompt 2: what was said from there on is said no more."),
        ("user", "three"),
    ]
