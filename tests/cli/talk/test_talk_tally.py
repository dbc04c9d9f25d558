"""What each model has taken, and when the user is told that the prompt cache is not hit any more."""

import pytest
from tests.rows import each_row

from ferrule.agent import Began, Called, ChildBegan, Compacted, FellBack, Spent, TurnEnded
from ferrule.cli.talk.status import ModelTally, Tally
from ferrule.core.call import ToolsChanged
from ferrule.models import Prices
from ferrule.wire import ModelResponse, Usage

PRICES = {"a:big": Prices(10, 50, 1, 12.5), "a:small": Prices(1, 5, 0.1, 1), "b:none": Prices(1, 1, 1, 1)}


class Talked:
    """A tally, and a conversation that it hears."""

    def __init__(self, model="a:big"):
        self.now = 0.0
        self.tally = Tally(lambda: self.now, PRICES.get)
        self.began(model)

    def began(self, model, thread="T", tools=("Read",), dialect="claude"):
        return self.tally.feed(
            Began(
                thread=thread, prompt="", model=model, dialect=dialect, cwd="/", tools=tools, permission_mode="default"
            )
        )

    def answer(self, size, read=0, *, after=10.0, thread="T"):
        self.now += after
        said = ModelResponse(id="m", model="m", parts=(), reason="end", usage=Usage(size, 10, read, 0))
        return self.tally.feed(TurnEnded(thread=thread, said=said, spent=Spent()))


def test_an_alarm_is_raised_once_when_three_answers_in_a_row_miss():
    talked = Talked()
    alarms = [bool(talked.answer(20_000 + 1000 * number)) for number in range(6)]

    assert alarms == [False, False, False, True, False, False]
    assert [heard.is_missed for heard in talked.tally.answers] == [False, True, True, True, True, True]


def test_a_hit_ends_the_row_and_arms_the_alarm_again():
    talked = Talked()
    read = [0, 0, 0, 20_000, 0, 0, 0]

    assert [bool(talked.answer(20_000, part)) for part in read] == [False] * 6 + [True]


@each_row(
    "between",
    [
        pytest.param(lambda one: one.began("a:small"), id="another-model"),
        pytest.param(lambda one: one.began("a:big", tools=("Read", "Edit")), id="other-tools"),
        pytest.param(lambda one: one.began("a:big", dialect="codex"), id="another-dialect"),
        pytest.param(lambda one: one.began("a:big", thread="U"), id="another-conversation"),
        pytest.param(
            lambda one: one.tally.feed(Compacted(thread="T", kind="summary", before_tokens=2, after_tokens=1)),
            id="summed-up",
        ),
        pytest.param(
            lambda one: one.tally.feed(Called(thread="T", call=ToolsChanged(id="", name="", at=0.0))), id="new-tools"
        ),
        pytest.param(
            lambda one: one.tally.feed(FellBack(thread="T", model="a:big", fallback="a:small", why="")), id="fallback"
        ),
        pytest.param(lambda one: one.tally.switch_model("T", "a:small"), id="switched"),
    ],
)
def test_what_empties_the_cache_by_itself_is_no_miss(between):
    talked = Talked()
    talked.answer(20_000)
    between(talked)
    talked.answer(21_000)

    assert not talked.tally.answers[-1].is_missed


@pytest.mark.parametrize(
    ("model", "size", "after"),
    [
        pytest.param("b:none", 20_000, 10.0, id="a-model-without-a-cache"),
        pytest.param("c:unknown", 20_000, 10.0, id="a-model-of-which-nothing-is-known"),
        pytest.param("a:big", 4_000, 10.0, id="too-small-to-be-kept"),
        pytest.param("a:big", 20_000, 300.0, id="too-long-ago"),
    ],
)
def test_nobody_is_alarmed_where_nothing_could_be_hit(model, size, after):
    talked = Talked(model)

    assert [talked.answer(size, after=after) for _ in range(6)] == [""] * 6


def test_a_model_that_was_seen_to_use_a_cache_has_one():
    talked = Talked("c:unknown")
    talked.answer(20_000, 15_000)

    assert [bool(talked.answer(20_000)) for _ in range(3)] == [False, False, True]


def test_subagents_are_counted_for_their_models_and_raise_no_alarm():
    talked = Talked()
    talked.tally.feed(ChildBegan(thread="T", child="C", call_id="c", name="x", description="", model="a:small"))
    talked.answer(1_000_000)
    alarms = [talked.answer(500_000, thread="C") for _ in range(6)]

    assert alarms == [""] * 6
    assert talked.tally.models == {
        "a:big": ModelTally(1, Usage(1_000_000, 10, 0, 0)),
        "a:small": ModelTally(6, Usage(3_000_000, 60, 0, 0), is_child=True),
    }
    assert (talked.tally.cost("a:big"), talked.tally.cost("a:small")) == (10.0005, 3.0003)
    assert talked.tally.cost("c:unknown") is None
