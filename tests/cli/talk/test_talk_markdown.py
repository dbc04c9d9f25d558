"""Markdown on a terminal: colour and nothing else, in any width."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.cli.talk.markdown import Drawer
from ferrule.cli.talk.text import harmless

COLOUR = re.compile("\x1b\\[[0-9;]*m")
EVIL = [
    pytest.param("a\x1b]0;title\x07b", id="title"),
    pytest.param("a\x1b[2Jb", id="clear-screen"),
    pytest.param("a\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\b", id="link"),
    pytest.param("a\x9b31mb", id="c1"),
    pytest.param("a&#27;[2Jb &#x202e;b &#x9b;b", id="entities"),
    pytest.param("a\u202eb", id="direction"),
    pytest.param("a\rb\bb\x07b", id="carriage"),
    pytest.param("[x\x1b[1m](http://e/\x1b[2J)b", id="in-a-link"),
    pytest.param("```\x1b[5m\nb\x1b[2J\n```", id="in-code"),
    pytest.param("`a\x01\x1b]0;x\x07\x02b`", id="zero-width-escape"),
    pytest.param("| a\x1b[2J | b |\n|---|---|\n| \x1b[3J | b |", id="in-a-table"),
]


@each_row("source", EVIL)
@each_row("colour", [True, False])
def test_nothing_but_colour_reaches_the_terminal(source, colour):
    drawn = Drawer(colour=colour).markdown(source, 60)

    left = COLOUR.sub("", drawn)
    assert "b" in left
    assert all(char.isprintable() or char == "\n" for char in left)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_no_text_at_all_steers_the_terminal(text):
    left = COLOUR.sub("", harmless(Drawer(colour=True).markdown(text, 40)))

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", left)


def test_a_terminal_that_can_do_nothing_gets_no_escape_at_all():
    drawn = Drawer(colour=False, steer=False).markdown("# T\n\n**b** `c`\n\n```python\nx = 1\n```\n", 60)

    assert drawn == "T\n\nb c\n\nx = 1\n"


def test_without_colour_bold_stays():
    assert Drawer(colour=False).markdown("**b** `c`", 60) == "\x1b[1mb\x1b[0m c\n"


def test_code_is_highlighted():
    assert "\x1b[" in Drawer(colour=True).markdown("```python\ndef f(): pass\n```", 60)


def test_angle_brackets_are_words():
    assert Drawer(colour=False, steer=False).markdown("Map<K, List<V>> <br>\n\n<p>x</p>", 60) == (
        "Map<K, List<V>> <br>\n\n<p>x</p>\n"
    )


def test_a_link_shows_where_it_leads():
    drawn = Drawer(colour=False, steer=False).markdown("[bank.example](http://evil.example/)", 60)

    assert drawn == "bank.example (http://evil.example/)\n"


@pytest.mark.parametrize("width", [40, 80])
def test_no_row_is_wider_than_the_terminal(width):
    source = "word " * 60 + "\n\n- " + "item " * 40 + "\n\n```\n" + "x" * 300 + "\n```\n\n> " + "quote " * 30
    drawn = Drawer(colour=False, steer=False).markdown(source, width, wraps=True)

    assert max(map(len, drawn.split("\n"))) <= width


def test_what_is_printed_has_code_as_it_was_written():
    code = "def f():\n    return '" + "x" * 300 + "'\n\nf()"
    drawn = Drawer(colour=False, steer=False).markdown(f"```python\n{code}\n```", 60)

    assert drawn == code + "\n"


def test_only_the_end_of_a_long_block_is_drawn_while_it_is_written():
    source = "```python\n" + "".join(f"x{number} = {number}\n" for number in range(5000))

    rows = Drawer(colour=False, steer=False).tail(source, 80, 10)

    assert len(rows) == 10
    assert rows[-1] == "x4999 = 4999"


def test_an_unfinished_block_without_words_takes_no_room():
    assert Drawer(colour=True).tail("\n\n", 80, 10) == []


def test_a_table_is_one_blank_row_below_a_list():
    drawn = Drawer(colour=False, steer=False).markdown("1. one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter\n", 60)

    assert drawn.split("\n") == [" 1 one", "", "a  b", "────", "1  2", "", "after", ""]
