"""The loop guard: circles are noticed however long they are, and whoever waits for something is left to wait."""

import pytest

from ferrule.agent import RepeatCounter
from ferrule.core.content import Text
from ferrule.models.cues import calls, said
from ferrule.wire import Result, Use

from .stage import Stage


def played(turns, most=5):
    """What the guard says of each turn: a letter, with the seconds that it took and whether it failed."""
    guard = RepeatCounter(most)
    heard = []
    for name, seconds, failed in turns:
        use = Use("c", "Bash", {"command": name})
        heard.append(guard.saw([use], [Result("c", (Text(name),), failed=failed)], seconds))
    return heard


@pytest.mark.parametrize(
    ("letters", "told", "stopped"),
    [
        pytest.param("AAAAA", 3, 5, id="one"),
        pytest.param("ABABABABAB", 6, 10, id="two"),
        pytest.param("ABCABCABCABCABC", 9, 15, id="three"),
        pytest.param("ABCD" * 5, 12, 20, id="four"),
        pytest.param("XYAAAAA", 5, 7, id="after something else"),
        pytest.param("AABAABAABAABAAB", 9, 15, id="a circle with two alike"),
    ],
)
def test_circles_are_told_and_then_stopped(letters, told, stopped):
    heard = played((letter, 0.1, False) for letter in letters)

    assert [at for at, what in enumerate(heard, 1) if what == "tell"] == [told]
    assert [at for at, what in enumerate(heard, 1) if what == "stop"] == [stopped]


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param([("wait", 30.0, False)] * 30, id="waits for a task"),
        pytest.param([("sleep", 30.0, False), ("look", 0.1, False)] * 20, id="sleeps, and looks"),
    ],
)
def test_whoever_waits_is_left_to_wait(turns):
    assert "stop" not in played(turns)


def test_nobody_waits_for_ever():
    assert "stop" in played([("wait", 30.0, False)] * 60)


def test_what_takes_long_and_fails_is_a_circle():
    assert played([("test", 60.0, True)] * 5)[-1] == "stop"


@pytest.mark.parametrize("most", [2, 3, 40])
def test_as_many_rounds_as_are_set_are_a_circle(most):
    assert played([("A", 0.1, False), ("B", 0.1, False)] * most, most)[-1] == "stop"


async def test_half_of_a_surrogate_pair_in_a_call_does_not_end_the_run(tmp_path):
    async with Stage(tmp_path, calls(("Read", '\ud800{"')), said("Again.")) as stage:
        assert (await stage.run()).text == "Again."
