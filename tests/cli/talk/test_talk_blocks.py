"""Markdown that arrives in pieces: what is printed is the same, however it was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.cli.talk import markdown
from ferrule.cli.talk.markdown import Blocks, Drawer

DOCUMENTS = {
    "paragraphs": "One *two*\nthree.\n\nFour\n",
    "heading-below-its-line": "para\n#not a heading\n\n# heading\ntext\n",
    "setext": "Title\n=====\ntext\n---\n",
    "list": "- a\n- b\n\n  more of b\n- c\n\nafter\n",
    "two-lists": "- a\n* b\n1. c\n2) d\nend",
    "nested": "1. one\n   - two\n\n     three\n2. four\n",
    "fence": "```python\nx = 1\n\n# not a heading\ny = 2\n```\nafter\n",
    "fence-without-end": "before\n\n~~~\nx\n\n\ny",
    "fence-in-list": "- a\n  ```\n  b\n\n  c\n  ```\n\nd\n",
    "indented": "a\n\n    code\n\n    more\n\nb\n",
    "quote": "> a\nlazy\n\n> b\n",
    "table": "text\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter\n",
    "rules": "a\n\n---\n***\nb\n",
    "definitions": '[r]: http://a.b\nsee [r]\n\nagain [r]\n\n[s]: <http://c> "t"\n\n[s] and [r]\n',
    "blanks": "\n\n\na\n\n\n\n\nb\n\n\n",
    "angles": "List<String> and <b>bold</b>\n\n<div>\nkept\n</div>\n",
    "returns": "a\r\n\r\nb\r\n",
    "long": "- item\n" * 300 + "\nend\n",
}


def streamed(text, sizes):
    blocks, out, at = Blocks(), [], 0
    for size in sizes:
        out += blocks.feed(text[at : at + size])
        at += size
    return [*out, *blocks.feed(text[at:]), *blocks.end()]


@each_row("name", DOCUMENTS)
@each_row("size", [1, 2, 3, 7, 40])
def test_a_document_is_cut_into_the_same_blocks_however_it_arrives(name, size):
    text = DOCUMENTS[name]

    assert streamed(text, [size] * (len(text) // size)) == streamed(text, [])


@given(
    st.lists(
        st.sampled_from(
            [
                *"ab#->*_|`~ \n\n",
                "\n\n",
                "- ",
                "1. ",
                "```\n",
                "    ",
                "> ",
                "---\n",
                "| a | b |\n|---|---|\n",
                "[r]: x\n",
            ]
        ),
        max_size=40,
    ).map("".join),
    st.lists(st.integers(1, 6), max_size=60),
)
def test_any_text_is_cut_into_the_same_blocks_however_it_arrives(text, sizes):
    assert streamed(text, sizes) == streamed(text, [])


@each_row("name", [name for name in DOCUMENTS if name != "definitions"])
def test_the_blocks_together_are_the_whole_document(name):
    text = DOCUMENTS[name]

    rows = [row.strip() for block in streamed(text, []) for row in block.split("\n")]

    assert [row for row in rows if row] == [row.strip() for row in text.replace("\r", "").split("\n") if row.strip()]


@each_row("name", DOCUMENTS)
def test_drawing_the_blocks_is_drawing_the_whole(name):
    """But for blank rows, which part the blocks."""
    draw, text = Drawer(colour=False, steer=False), DOCUMENTS[name]

    apart = "".join(draw.markdown(block, 60) for block in streamed(text, []))

    assert rows_of(apart) == rows_of(draw.markdown(text, 60))


def rows_of(text):
    return [row for row in text.split("\n") if row.strip()]


def test_a_paragraph_is_printed_as_soon_as_a_blank_line_ends_it():
    blocks = Blocks()

    assert blocks.feed("one\n") == []
    assert blocks.feed("\n") == ["one\n"]
    assert blocks.open_block == ""


def test_a_list_is_not_printed_before_something_else_follows():
    blocks = Blocks()

    assert blocks.feed("- a\n\n") == []
    assert blocks.feed("- b\n\nc") == []
    assert blocks.feed("\n") == ["- a\n\n- b\n"]
    assert blocks.open_block == "c\n"


def test_what_was_dropped_is_never_printed():
    blocks = Blocks()
    blocks.feed("one\n\ntwo")

    blocks.drop()

    assert blocks.end() == []


def test_a_long_code_block_is_not_parsed_anew_for_each_of_its_lines(monkeypatch):
    parsed = []

    class Counting:
        def parse(self, text):
            parsed.append(len(text))
            return whole.parse(text)

    whole = markdown.parser()
    monkeypatch.setattr(markdown, "parser", Counting)
    blocks = Blocks()
    blocks.feed("```\n")
    for number in range(2000):
        blocks.feed(f"line {number}\n")

    assert len(parsed) < 120
    assert blocks.feed("```\n\nafter\n\n") + blocks.end() != []


@pytest.mark.parametrize("more", ["", "\n\nThe end."])
@pytest.mark.parametrize("size", [1, 1000])
def test_where_a_link_leads_is_not_lost_when_it_is_said_last(more, size):
    text = f"See [the docs][1] and [2].\n\n[1]: http://a.b/c_d\n[2]: http://e.f\n[3]: http://unused{more}"

    drawn = "".join(
        Drawer(colour=False, steer=False).markdown(block, 80) for block in streamed(text, [size] * len(text))
    )

    assert drawn.count("http://a.b/c_d") == 1
    assert drawn.count("http://e.f") == 1
    assert "unused" not in drawn
