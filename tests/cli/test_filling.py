"""What a server asks a person for, typed line by line."""

import pytest

from ferrule.cli.prompts import fill, read
from ferrule.permissions import Question


async def filled(schema, *lines):
    """The answer, and all that was shown."""
    shown: list[str] = []
    typed = iter(lines)

    async def line(offer):
        shown.append(offer)
        return next(typed, None)

    question = Question(kind="values", call_id="1", name="x", summary="x asks", touches=(), schema=schema)
    return await fill(question, shown.append, line), shown


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "default": 30},
        "sure": {"type": "boolean"},
        "colour": {"enum": ["red", "blue"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
    },
    "required": ["name", "sure"],
}


async def test_values_are_read_as_the_kind_that_is_wanted():
    answer, shown = await filled(SCHEMA, "Ada", "36", "y", "red", "a, c")

    assert answer.allow
    assert answer.values == {"name": "Ada", "age": 36, "sure": True, "colour": "red", "tags": ["a", "c"]}
    assert "  Your name: " in shown
    assert "  age [30]: " in shown


async def test_an_empty_line_takes_the_default_or_leaves_it_out():
    answer, _ = await filled(SCHEMA, "Ada", "", "n", "", "")

    assert answer.values == {"name": "Ada", "age": 30, "sure": False}


async def test_what_does_not_fit_is_asked_again():
    answer, shown = await filled(SCHEMA, "Ada", "many", "3", "perhaps", "yes", "green", "blue", "z", "b")

    assert answer.values == {"name": "Ada", "age": 3, "sure": True, "colour": "blue", "tags": ["b"]}
    assert "  A whole number." in shown
    assert "  One of red, blue." in shown


async def test_a_value_that_the_server_would_not_take_is_asked_again_at_once():
    schema = {
        "properties": {
            "age": {"type": "integer", "maximum": 120},
            "code": {"type": "string", "minLength": 3},
            "odd": {"$ref": "#/$defs/odd"},
        },
        "$defs": {"odd": {"type": "string"}},
        "required": ["age", "code", "odd"],
    }
    answer, shown = await filled(schema, "999", "", "12", "x", "xyz", "any")

    assert answer.values == {"age": 12, "code": "xyz", "odd": "any"}
    assert "  It must be at most 120, not 999." in shown
    assert "  This one is needed." in shown
    assert "  It has too few characters: 1, at least 3 needed." in shown


async def test_choices_are_shown_with_what_they_mean():
    heroes = [{"const": "h1", "title": "Superman"}, {"const": "h2"}]
    schema = {
        "properties": {
            "one": {"type": "string", "oneOf": heroes},
            "some": {"type": "array", "items": {"anyOf": heroes}},
            "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["Ant", "Bee"]},
        }
    }
    answer, shown = await filled(schema, "h1", "h1, h2", "b")

    assert answer.values == {"one": "h1", "some": ["h1", "h2"], "old": "b"}
    assert shown[1:] == [
        "  one (h1 = Superman, h2) [nothing]: ",
        "  some (h1 = Superman, h2) [nothing]: ",
        "  old (a = Ant, b = Bee) [nothing]: ",
    ]


async def test_what_an_empty_line_means_is_shown_as_one_would_type_it():
    defaults = {"a": True, "b": ["x", "y"], "c": "word", "d": 3, "e": ""}
    schema = {"properties": {**{name: {"default": value} for name, value in defaults.items()}, "f": {}}}
    _, shown = await filled(schema, "", "", "", "", "", "")

    assert shown[1:] == ["  a [y]: ", "  b [x, y]: ", "  c [word]: ", "  d [3]: ", '  e [""]: ', "  f [nothing]: "]


@pytest.mark.parametrize("lines", [pytest.param(("Ada", "!"), id="no"), pytest.param(("Ada",), id="end-of-input")])
async def test_nothing_is_answered_where_the_person_does_not_want_to(lines):
    answer, _ = await filled(SCHEMA, *lines)

    assert (answer.allow, answer.values) == (False, None)


async def test_a_server_cannot_steer_the_screen():
    _, shown = await filled({"properties": {"x": {"title": "\x1b[2J\u202eevil"}}, "required": ["x"]}, "v")

    assert not any("\x1b" in line or "\u202e" in line for line in shown)


def test_a_number_with_a_fraction():
    assert read("1.5", {"type": "number"}) == 1.5
