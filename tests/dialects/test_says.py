"""How outcomes read, for all families that say them alike."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row
from tests.strategies import texts

from ferrule.core.content import (
    Cell,
    CellOutput,
    DocumentPage,
    FileText,
    FolderListing,
    FolderTree,
    Hit,
    Hits,
    ListDirEntry,
    Matching,
    Notebook,
    PathPage,
    Picture,
    ReadDocument,
    Unread,
)
from ferrule.dialects import shared

PNG = Picture("/a.png", "image/png", b"\x89PNG")
SHOWN = {"type": "image", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


READ = shared.file_renderer(
    "{}: {}",
    unchanged="{path} is as it was.",
    binary="{path}: {size} bytes.",
    empty="Nothing in it.",
    past="{total} lines, not {first}.",
)


@each_row(
    ("outcome", "said"),
    [
        pytest.param(FileText("/a", 7, ("x", "{y}"), 8), "7: x\n8: {y}", id="numbered"),
        pytest.param(FileText("/a", 1, (), 0), "Nothing in it.", id="empty"),
        pytest.param(FileText("/a", 9, (), 3), "3 lines, not 9.", id="past-the-end"),
        pytest.param(FileText("/a", 1, ("",), 1), "1: ", id="an-empty-line-is-a-line"),
        pytest.param(FolderListing("/a", ("b", "c/")), "b\nc/", id="folder"),
        pytest.param(Unread("/{a}", "unchanged", 5), "/{a} is as it was.", id="unchanged"),
        pytest.param(Unread("/a", "binary", 5), "/a: 5 bytes.", id="binary"),
        pytest.param(PNG, SHOWN, id="picture"),
    ],
)
def test_a_file_is_said_in_the_family_s_style(outcome, said):
    assert READ(outcome) == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(FileText("/a", 1, ("a", "b"), 2, final_newline=True), "a\nb\n", id="whole"),
        pytest.param(FileText("/a", 1, ("a", "b"), 9), "a\nb", id="part"),
        pytest.param(FileText("/a", 1, (), 0), "", id="nothing"),
    ],
)
def test_a_file_may_be_said_as_it_is(outcome, said):
    assert shared.file_renderer(shared.plain)(outcome) == said


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param(["a"], "a", id="one-text"),
        pytest.param(["a", "b"], "a\n\nb", id="texts-become-one"),
        pytest.param([PNG], SHOWN, id="one-picture"),
        pytest.param(["a", "b", PNG, "c"], [text("a\n\nb"), SHOWN, text("c")], id="both"),
        pytest.param([PNG, PNG], [SHOWN, SHOWN], id="pictures"),
    ],
)
def test_texts_and_pictures_come_in_their_order(pieces, said):
    assert shared.parts(pieces) == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(
            ReadDocument("/a", (DocumentPage(3, "three\n"), DocumentPage(4, "")), 9),
            "Page 3 of 9\nthree\n\nPage 4 of 9",
            id="texts",
        ),
        pytest.param(
            ReadDocument("/a", (DocumentPage(1, "", PNG), DocumentPage(2, "two")), 2),
            [text("Page 1 of 2"), SHOWN, text("Page 2 of 2\ntwo")],
            id="a-page-without-text",
        ),
    ],
)
def test_a_document_is_said_page_by_page(outcome, said):
    assert READ(outcome) == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(
            Notebook("/a", "python", (Cell("c1", "code", "1 + 1", (CellOutput("2"),)), Cell("c2", "markdown", "# x"))),
            '<cell id="c1" language="python">\n1 + 1\n</cell>\n\n<output of="c1">\n2\n</output>\n\n'
            '<cell id="c2" type="markdown">\n# x\n</cell>',
            id="texts",
        ),
        pytest.param(
            Notebook("/a", "", (Cell("c", "code", "plot()", (CellOutput("<Figure>", PNG),)),)),
            [text('<cell id="c">\nplot()\n</cell>\n\n<output of="c">\n<Figure>\n</output>'), SHOWN],
            id="pictures",
        ),
        pytest.param(Notebook("/a", "python", ()), "The notebook has no cells.", id="no-cells"),
        pytest.param(
            Notebook("/a", "python", (), 9, 3), "The notebook has 3 cells, and none from there on.", id="past-the-end"
        ),
    ],
)
def test_a_notebook_is_said_cell_by_cell(outcome, said):
    assert READ(outcome) == said


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        pytest.param("-a\n+b\n", "```diff\n-a\n+b\n```", id="plain"),
        pytest.param("+```py\n", "````diff\n+```py\n````", id="a-fence-in-it"),
        pytest.param("+`````\n", "``````diff\n+`````\n``````", id="a-long-fence-in-it"),
        pytest.param("", "```diff\n\n```", id="nothing"),
    ],
)
def test_a_fence_is_longer_than_any_in_the_text(diff, said):
    assert shared.fence_text(diff, "diff") == said


@given(st.text("`ab\n", max_size=40))
def test_no_text_closes_its_own_fence(inside):
    fence, *lines, end = shared.fence_text(inside, "").split("\n")

    assert fence == end
    assert not any(line.startswith(fence) for line in lines)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(PathPage((), 0), "None.", id="none"),
        pytest.param(PathPage(("/a", "/b"), 0), "/a\n/b", id="all"),
        pytest.param(PathPage(("/a",), 3), "/a\n3 more", id="more"),
    ],
)
def test_paths_come_one_a_line(outcome, said):
    assert shared.paths(outcome, none="None.", more="{remaining} more") == said


HITS = Hits(
    (
        Hit("a", 1, "x", context=True),
        Hit("a", 2, "y"),
        Hit("a", 9, "z"),
        Hit("b", 10, "q"),
    ),
    3,
)


@pytest.mark.parametrize(
    ("outcome", "numbers", "said"),
    [
        pytest.param(Hits((), 0), True, "None.", id="none"),
        pytest.param(HITS, True, "a-1-x\na:2:y\n--\na:9:z\n--\nb:10:q", id="groups-with-context"),
        pytest.param(HITS, False, "a-x\na:y\n--\na:z\n--\nb:q", id="without-numbers"),
        pytest.param(Hits(HITS.lines[1:], 3), True, "a:2:y\na:9:z\nb:10:q", id="no-groups-without-context"),
    ],
)
def test_lines_come_as_ripgrep_prints_them(outcome, numbers, said):
    assert shared.hits(outcome._replace(numbers=numbers), none="None.") == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(Matching((), 0), "None.", id="none"),
        pytest.param(Matching((("a", 0), ("b", 0)), 2), "a\nb", id="files"),
        pytest.param(Matching((("a", 2), ("b", 1)), 2, 3), "a:2\nb:1", id="counted"),
    ],
)
def test_files_come_with_their_counts_where_those_were_asked_for(outcome, said):
    assert shared.render_matching(outcome, none="None.") == said


def test_a_tree_is_indented():
    entries = (
        ListDirEntry("a", "folder"),
        ListDirEntry("a/b", "folder"),
        ListDirEntry("a/b/c.py", "file"),
        ListDirEntry("link", "link"),
        ListDirEntry("pipe", "other"),
    )

    assert shared.tree(FolderTree("/w", entries, 0)) == "a/\n  b/\n    c.py\nlink@\npipe?"
    assert shared.tree(FolderTree("/w", (), 0)) == ""


@given(st.integers(1, 10**7), st.lists(texts.map(lambda line: re.sub(r"\s", " ", line)), min_size=1, max_size=9))
def test_every_line_keeps_its_number_and_its_text(first, lines):
    said = shared.number_lines(FileText("/a", first, tuple(lines)), "{:>6}→{}")

    assert [line.partition("→")[2] for line in said.split("\n")] == lines
    assert [int(line.partition("→")[0]) for line in said.split("\n")] == list(range(first, first + len(lines)))
