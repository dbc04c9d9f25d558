"""Notebooks: what a reader gets of them, and edits that change one cell and no other byte."""

import base64
import copy
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.content import Cell, CellOutput, Notebook, Picture
from ferrule.files import notebook
from ferrule.files.notebook import AmbiguousCell, BadNotebook, NoCell, edit_cell, outline, read_notebook

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
GIF = b"GIF89a" + bytes(20)


def book(*cells: Any, minor: int = 5, **more: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor, **more}


def code(source: Any = "x = 1\n", outputs: Any = (), turn: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": turn,
        "metadata": {},
        "outputs": list(outputs),
        "source": source,
        **more,
    }


def markdown(source: Any = "# Title", **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source, **more}


def shown(**data: Any) -> dict[str, Any]:
    """A display of several forms; `image_png` stands for image/png."""
    named = {kind.replace("_", "/", 1): content for kind, content in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": named}


def written(value: Any, **style: Any) -> bytes:
    return json.dumps(value, **style).encode()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read_one(cell: Any) -> Cell:
    return read_notebook("/n.ipynb", written(book(cell))).cells[0]


def read_output(output: Any) -> CellOutput:
    return read_one(code(outputs=[output])).outputs[0]


def valid(raw: bytes) -> bool:
    import nbformat  # slow

    nbformat.validate(nbformat.reads(raw.decode("utf-8-sig"), as_version=nbformat.NO_CONVERT))
    return True


def test_cells_come_with_their_ids_sources_outputs_and_turns():
    raw = written(
        book(
            markdown(["# One\n", "two"], id="intro"),
            code("print(1)", [{"output_type": "stream", "name": "stdout", "text": ["1\n", "2"]}], 7, id="b"),
            {"cell_type": "raw", "metadata": {}, "source": "raw", "id": "c"},
            metadata={"language_info": {"name": "julia"}, "kernelspec": {"language": "R"}},
        )
    )

    assert read_notebook("/n.ipynb", raw) == Notebook(
        "/n.ipynb",
        "julia",
        (
            Cell("intro", "markdown", "# One\ntwo"),
            Cell("b", "code", "print(1)", (CellOutput("1\n2"),)),
            Cell("c", "raw", "raw"),
        ),
        first=1,
        total=3,
    )


@pytest.mark.parametrize("minor", range(6))
def test_cells_without_ids_are_named_by_place(minor):
    cells = read_notebook("/n.ipynb", written(book(code(), markdown(), minor=minor))).cells

    assert [cell.id for cell in cells] == ["cell-0", "cell-1"]


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        pytest.param({}, "python", id="nothing"),
        pytest.param({"kernelspec": {"language": "R"}}, "R", id="kernel"),
        pytest.param({"language_info": [], "kernelspec": {"language": 1}}, "python", id="nonsense"),
    ],
)
def test_the_language_is_what_the_file_says(metadata, language):
    assert read_notebook("/n.ipynb", written(book(metadata=metadata))).language == language


@each_row(
    ("output", "text"),
    [
        pytest.param({"output_type": "stream", "name": "stderr", "text": "\x1b[31mred\x1b[0m"}, "red", id="stream"),
        pytest.param(
            {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[0;31mE\x1b[0m", "at 1"]},
            "E\nat 1",
            id="traceback",
        ),
        pytest.param({"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}, "E: v", id="error"),
        pytest.param(shown(text_plain=["a\n", "b"], text_html="<b>"), "a\nb", id="plain-before-html"),
        pytest.param(shown(text_html=["<b>", "x"]), "<b>x", id="html"),
        pytest.param(shown(text_markdown="*x*", text_html="<b>"), "*x*", id="markdown-before-html"),
        pytest.param(
            {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": "1"}},
            "1",
            id="result",
        ),
        pytest.param({"output_type": "pyout", "text": "x"}, "[An output of the unknown type 'pyout'.]", id="unknown"),
        pytest.param("x", "[An output of the unknown type 'None'.]", id="no-object"),
        pytest.param(shown(), "", id="empty"),
        pytest.param(
            {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}},
            "[An output of type image/svg+xml, 8 bytes, which is not shown.]",
            id="vector",
        ),
        pytest.param(
            {"output_type": "display_data", "data": {"application/vnd.x+json": {"a": [1, float("nan")]}}},
            "[An output of type application/vnd.x+json, 15 bytes, which is not shown.]",
            id="data",
        ),
        pytest.param(shown(image_png="AAAA"), "[An output of type image/png is not such a picture.]", id="no-picture"),
        pytest.param(shown(image_png="A"), "[An output of type image/png is not valid base64.]", id="no-base64"),
        pytest.param(shown(image_png=None), "[An output of type image/png is not such a picture.]", id="null"),
    ],
)
def test_an_output_is_a_text(output, text):
    assert read_output(output) == CellOutput(text)


@pytest.mark.parametrize(
    ("output", "text", "kind", "data"),
    [
        pytest.param(shown(image_png=encoded(PNG) + "\n", text_plain="<Figure>"), "<Figure>", "png", PNG, id="png"),
        pytest.param(shown(image_png=[encoded(PNG)[:8], encoded(PNG)[8:]]), "", "png", PNG, id="lines"),
        pytest.param(shown(image_png=encoded(GIF)), "", "gif", GIF, id="wrong-label"),
        pytest.param(shown(image_gif=encoded(GIF), image_png=encoded(PNG)), "", "png", PNG, id="best"),
        pytest.param(shown(image_jpeg=encoded(b"\xff\xd8\xff\xe0")), "", "jpeg", b"\xff\xd8\xff\xe0", id="jpeg"),
        pytest.param(shown(image_webp=encoded(b"RIFF0000WEBP")), "", "webp", b"RIFF0000WEBP", id="webp"),
    ],
)
def test_an_output_has_a_picture(output, text, kind, data):
    assert read_output(output) == CellOutput(text, Picture("/n.ipynb", f"image/{kind}", data))


def test_a_long_output_is_cut_in_the_middle_and_says_so():
    text = read_output({"output_type": "stream", "text": "a" * 10_000 + "b" * 10_000}).text

    assert text == "a" * 5_000 + "\n[10,000 characters are left out here.]\n" + "b" * 5_000


def test_a_picture_that_is_too_large_is_left_out(monkeypatch):
    monkeypatch.setattr(notebook, "PICTURE_BYTES", 20)

    assert read_output(shown(image_png=encoded(PNG), text_plain="<Figure>")) == CellOutput(
        "<Figure>\n[An output of type image/png (42 bytes) is larger than 20 bytes and left out.]"
    )


def test_many_outputs_are_counted_and_left_out():
    outputs = read_one(code(outputs=[{"output_type": "stream", "text": "x"}] * 1_000)).outputs

    assert len(outputs) == notebook.MOST_OUTPUTS + 1
    assert outputs[-1] == CellOutput("[900 more outputs are left out.]")


BAD = [
    pytest.param(b"", "ends too early", id="empty"),
    pytest.param(b"print(1)\n", "not valid JSON", id="text"),
    pytest.param(b"[]", "not an object", id="array"),
    pytest.param(b"{}", "no nbformat", id="any-object"),
    pytest.param(b'{"nbformat": "4", "cells": []}', "no nbformat", id="nbformat-text"),
    pytest.param(b'{"nbformat": 3, "worksheets": []}', "format 3; .* Convert it", id="format-3"),
    pytest.param(b'{"nbformat": 5, "cells": []}', "in format 5", id="format-5"),
    pytest.param(b'{"nbformat": 4}', "no list of cells", id="no-cells"),
    pytest.param(b'{"nbformat": 4, "cells": {}}', "no list of cells", id="cells-object"),
    pytest.param(b'{"nbformat": 4, "cells": [1]}', r"cell 0 \(from 0\) is not an object", id="cell-number"),
    pytest.param(written(book(code(), {"source": ""})), r"cell 1 \(from 0\) has no cell_type", id="no-type"),
    pytest.param(written(book({"cell_type": "code"})), "source of its cell 0", id="no-source"),
    pytest.param(written(book(code([["x"]]))), "source of its cell 0", id="source-nested"),
    pytest.param(json.dumps(book(code())).encode("utf-16"), "not UTF-8", id="utf-16"),
    pytest.param(written(book(code()))[:-1], "ends too early", id="cut"),
    pytest.param(written(book(code())) + b"x", "not valid JSON", id="more-behind"),
    pytest.param(b"<<<<<<< HEAD\n" + written(book()), "line 1", id="merge-conflict"),
    pytest.param(b"[" * 1_000_000, "nested more than", id="deep"),
    pytest.param(
        b'{"nbformat": 4, "cells": [], "metadata": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
        "nested more",
        id="deeper",
    ),
    pytest.param(b'{"nbformat": 4, "cells": [' + b"{}," * 10_000 + b"{}]}", "10,001 cells", id="many-cells"),
]


@each_row(("raw", "words"), BAD)
def test_what_is_no_notebook_is_refused(raw, words):
    with pytest.raises(BadNotebook, match=words):
        read_notebook("/n.ipynb", raw)
    with pytest.raises(BadNotebook, match=words):
        edit_cell(raw, cell_id=None, source="x")


def test_a_notebook_that_is_too_large_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(notebook, "MOST_BYTES", 10)

    with pytest.raises(BadNotebook, match="is the most"):
        read_notebook("/n.ipynb", b"x" * 11)


def test_outputs_that_would_not_fit_into_memory_are_passed_over():
    bomb = b'{"output_type": "display_data", "data": {"application/json": [' + b"[]," * 1_000_000 + b"[]]}}"
    raw = b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "", "outputs": [' + bomb + b"]}]}"

    [output] = read_notebook("/n.ipynb", raw).cells[0].outputs

    assert output.text == "[An output of type application/json, 3,000,004 bytes, which is not shown.]"


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_no_bytes_are_worse_than_no_notebook(raw):
    with pytest.raises(BadNotebook):
        read_notebook("/n.ipynb", raw)


RUN = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "\n", "a\nb", "é\n\u2028x"]
)
LISTS = TEXTS.map(lambda text: re.findall(r"[^\n]*\n|[^\n]+", text))
SOURCES = {True: LISTS, False: TEXTS}
STYLES = [
    {"indent": 1, "ensure_ascii": False},
    {"indent": 2},
    {"indent": 4, "ensure_ascii": False},
    {"indent": "\t", "ensure_ascii": False},
    {"indent": 0},
    {"ensure_ascii": False},
    {},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"separators": (",", ":"), "indent": 3},
]
ENDS = st.tuples(st.sampled_from(["", "\ufeff"]), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n"]))


@st.composite
def books(draw: st.DrawFn) -> tuple[dict[str, Any], bool]:
    """A valid notebook, and whether it writes sources as lists."""
    as_list, minor = draw(st.booleans()), draw(st.integers(0, 5))
    ids = draw(st.lists(st.from_regex(r"\A[a-zA-Z0-9_-]{1,8}\Z"), max_size=4, unique=True))
    cells = []
    for own in ids:
        kind = draw(st.sampled_from(["code", "markdown", "raw"]))
        cell: dict[str, Any] = {"cell_type": kind, "metadata": draw(st.sampled_from([{}, {"tags": ["é"]}]))}
        cell["source"] = draw(SOURCES[as_list])
        if minor >= 5:
            cell["id"] = own
        if kind == "code":
            cell["outputs"] = draw(st.sampled_from([[], [RUN], [RUN, shown(image_png="AAAA")]]))
            cell["execution_count"] = draw(st.sampled_from([None, 3]))
        elif minor >= 1 and draw(st.booleans()):
            cell["attachments"] = {"a.png": {"image/png": "AAAA"}}
        cells.append(cell)
    return book(*cells, minor=minor, metadata={"title": "é"}), as_list


@st.composite
def edits(
    draw: st.DrawFn, cells: list[Any], modes: tuple[str, ...] = ("replace", "insert", "delete")
) -> dict[str, Any]:
    """An edit that can be done on these cells."""
    mode = draw(st.sampled_from(modes if cells else ["insert"]))
    kinds = [None, "code", "markdown"] if mode == "replace" else ["code", "markdown"]
    number = draw(st.sampled_from([*range(len(cells)), *([None] if mode == "insert" else [])]))
    name = None if number is None else cells[number].get("id", f"cell-{number}")
    return {"mode": mode, "cell_id": name, "cell_type": draw(st.sampled_from(kinds)), "source": draw(TEXTS)}


def place(cells: list[Any], cell_id: str | None) -> Any:
    """The number of the cell, None for the start."""
    names = [cell.get("id", f"cell-{number}") for number, cell in enumerate(cells)]
    return None if cell_id is None else names.index(cell_id)


def expected(before: dict[str, Any], edit: dict[str, Any], new_id: str, *, as_list: bool) -> dict[str, Any]:
    """The same edit on the decoded notebook."""
    after = copy.deepcopy(before)
    cells, number = after["cells"], place(before["cells"], edit["cell_id"])
    source = re.findall(r"[^\n]*\n|[^\n]+", edit["source"]) if as_list else edit["source"]
    if edit["mode"] == "delete":
        del cells[number]
        return after
    if edit["mode"] == "insert":
        cell = {"cell_type": edit["cell_type"], "metadata": {}}
        if after["nbformat_minor"] >= 5:
            cell["id"] = new_id
        cells.insert(0 if number is None else number + 1, cell)
    else:
        cell = cells[number]
    cell["cell_type"] = edit["cell_type"] or cell["cell_type"]
    cell["source"] = source
    if cell["cell_type"] == "code":
        cell |= {"outputs": [], "execution_count": None}
        cell.pop("attachments", None)
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)
    return after


def with_ends(text: str, ends: tuple[str, str, str]) -> bytes:
    bom, newline, final = ends
    return (bom + (text + final).replace("\n", newline)).encode()


@given(st.data(), books(), st.sampled_from(STYLES), ENDS)
def test_an_edited_file_is_written_as_its_own_program_would_have(data, made, style, ends):
    before, as_list = made
    edit = data.draw(edits(before["cells"]))
    as_list = as_list or not before["cells"]
    raw = with_ends(json.dumps(before, sort_keys=True, **style), ends)

    done = edit_cell(raw, **edit)

    after = expected(before, edit, done.cell_id, as_list=as_list)
    assert done.raw == with_ends(json.dumps(after, sort_keys=True, **style), ends)
    assert valid(done.raw)


def noisy(value: Any, chance: random.Random) -> str:
    """JSON with blanks, line ends, escapes and orders of keys that no program would choose."""

    def gap() -> str:
        return "".join(chance.choices(["", " ", "\n", "\r\n", "\t"], [8, 2, 2, 1, 1], k=2))

    if isinstance(value, dict):
        pairs = list(value.items())
        chance.shuffle(pairs)
        inside = f",{gap()}".join(
            f"{noisy(key, chance)}{gap()}:{gap()}{noisy(one, chance)}{gap()}" for key, one in pairs
        )
        return "{" + gap() + inside + "}"
    if isinstance(value, list):
        return "[" + gap() + f"{gap()},{gap()}".join(noisy(one, chance) for one in value) + gap() + "]"
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


@given(st.data(), books(), st.integers())
def test_cells_that_are_not_meant_keep_every_byte(data, made, seed):
    before, as_list = made
    edit = data.draw(edits(before["cells"]))
    raw = noisy(before, random.Random(seed)).encode()

    done = edit_cell(raw, **edit)

    after = expected(before, edit, done.cell_id, as_list=as_list or not before["cells"])
    assert json.loads(done.raw) == after
    assert valid(done.raw)
    old, new = outline(raw), outline(done.raw)
    old_bytes = [raw[cell.span.start : cell.span.end] for cell in old.cells]
    new_bytes = [done.raw[cell.span.start : cell.span.end] for cell in new.cells]
    number = place(before["cells"], edit["cell_id"])
    if edit["mode"] == "insert":
        del new_bytes[0 if number is None else number + 1]
    else:
        del old_bytes[number]
        if edit["mode"] == "replace":
            del new_bytes[number]
    assert new_bytes == old_bytes
    assert done.raw[: new.array.start] == raw[: old.array.start]
    assert done.raw[new.array.end :] == raw[old.array.end :]


@given(st.data(), books().filter(lambda made: bool(made[0]["cells"])), st.integers())
def test_the_members_of_a_replaced_cell_that_are_not_meant_keep_every_byte(data, made, seed):
    before, _ = made
    edit = data.draw(edits(before["cells"], modes=("replace",)))
    raw = noisy(before, random.Random(seed)).encode()
    number = place(before["cells"], edit["cell_id"])

    after = edit_cell(raw, **edit).raw

    old, new = outline(raw).cells[number], outline(after).cells[number]
    touched = {"source", "outputs", "execution_count", "cell_type", "attachments"}
    kept = [raw[one.key.start : one.value.end] for one in old.members if one.name not in touched]
    assert [after[one.key.start : one.value.end] for one in new.members if one.name not in touched] == kept


THREE = book(markdown("a", id="aa"), code("b", id="bb"), markdown("c", id="cc"))


@each_row(
    ("cell_id", "left"),
    [
        pytest.param("aa", ["b", "c"], id="first"),
        pytest.param("bb", ["a", "c"], id="middle"),
        pytest.param("cc", ["a", "b"], id="last"),
        pytest.param("cell-1", ["a", "c"], id="by-place"),
    ],
)
@each_row("style", STYLES)
def test_a_deleted_cell_takes_its_comma_with_it(cell_id, left, style):
    done = edit_cell(written(THREE, **style), cell_id=cell_id, source="", mode="delete")

    assert [cell["source"] for cell in json.loads(done.raw)["cells"]] == left
    assert done.source not in left


def test_an_id_that_looks_like_a_place_is_an_id():
    raw = written(book(markdown("a", id="cell-1"), markdown("b", id="cell-0")))

    assert edit_cell(raw, cell_id="cell-1", source="", mode="delete").source == "a"


def test_a_notebook_of_one_cell_needs_no_id():
    done = edit_cell(written(book(code("a", id="aa"))), cell_id=None, source="b")

    assert (done.cell_id, done.before, done.source) == ("aa", "a", "b")
    assert outline(done.raw).cells[0].id == "aa"


@each_row(
    ("cell_id", "words"),
    [
        pytest.param("bbb", "No cell has the id 'bbb'. Did you mean bb?", id="near"),
        pytest.param("zzz", "No cell has the id 'zzz'. The cells are aa, bb, cc.", id="far"),
        pytest.param("cell-3", "No cell has the id 'cell-3'. The cells are aa, bb, cc.", id="past-the-end"),
        pytest.param("cell-01", "No cell has the id 'cell-01'. The cells are aa, bb, cc.", id="zeros"),
        pytest.param("cell-٣", "No cell has the id 'cell-٣'. The cells are aa, bb, cc.", id="digits"),
        pytest.param("", "No cell has the id ''. The cells are aa, bb, cc.", id="empty"),
        pytest.param(None, "The notebook has 3 cells; say which one is meant. The cells are aa, bb, cc.", id="none"),
        pytest.param("x" * 1_000, f"No cell has the id '{'x' * 100}'. The cells are aa, bb, cc.", id="long"),
    ],
)
def test_a_cell_that_is_not_there_is_answered_with_those_that_are(cell_id, words):
    with pytest.raises(NoCell) as caught:
        edit_cell(written(THREE), cell_id=cell_id, source="")

    assert str(caught.value) == words


def test_a_long_list_of_cells_is_cut():
    raw = written(book(*(markdown(minor=4) for _ in range(50)), minor=4))

    with pytest.raises(NoCell, match="cell-19 and 30 more"):
        edit_cell(raw, cell_id=None, source="")


def test_an_empty_notebook_has_nothing_to_replace():
    with pytest.raises(NoCell, match="The notebook has no cells"):
        edit_cell(written(book()), cell_id=None, source="")


def test_an_id_of_two_cells_means_neither():
    raw = written(book(code("a", id="aa"), code("b", id="bb"), code("c", id="aa")))

    with pytest.raises(AmbiguousCell) as caught:
        edit_cell(raw, cell_id="aa", source="")

    assert str(caught.value) == "2 cells have the id 'aa': cell-0, cell-2. Name one by its place."
    assert edit_cell(raw, cell_id="cell-2", source="", mode="delete").source == "c"


def test_a_new_cell_needs_a_type():
    with pytest.raises(ValueError, match="needs a type"):
        edit_cell(written(THREE), cell_id=None, source="x", mode="insert")


def test_new_ids_are_short_and_never_taken():
    raw, ids = written(book()), set()
    for _ in range(30):
        done = edit_cell(raw, cell_id=None, source="", cell_type="code", mode="insert")
        raw = done.raw
        ids.add(done.cell_id)

    assert len(ids) == 30
    assert all(re.fullmatch("[0-9a-f]{8}", one) for one in ids)


def test_a_cell_behind_another_in_an_old_notebook_is_named_by_its_place():
    raw = written(book(markdown("a"), markdown("b"), minor=4))

    done = edit_cell(raw, cell_id="cell-0", source="x", cell_type="markdown", mode="insert")

    assert done.cell_id == "cell-1"
    assert [cell.source for cell in read_notebook("/n", done.raw).cells] == ["a", "x", "b"]
    assert "id" not in json.loads(done.raw)["cells"][1]


@pytest.mark.parametrize(
    ("before", "source", "after"),
    [
        pytest.param(b'["a"]', "b\nc", b'["b\\n", "c"]', id="one-line"),
        pytest.param(b"[]", "b\nc", b'[\n   "b\\n",\n   "c"\n  ]', id="empty"),
        pytest.param(b'[\n   "a"]', "", b"[]", id="to-empty"),
        pytest.param(b'"a"', "b\nc\n", b'"b\\nc\\n"', id="text"),
        pytest.param(b'[ "a" ]', "a", b'[ "a" ]', id="same"),
        pytest.param(b'["a"]', "\ud800", b'["\\ud800"]', id="half-a-pair"),
        pytest.param(b'["a"]', "\x85\x1c\u2028\r\n", '["\x85\\u001c\u2028\\r\\n"]'.encode(), id="line-ends-of-others"),
    ],
)
def test_a_source_keeps_its_form(before, source, after):
    template = b'{\n "cells": [\n {\n  "cell_type": "raw",\n  "source": %b\n }\n ],\n "nbformat": 4\n}'

    assert edit_cell(template.replace(b"%b", before), cell_id=None, source=source).raw == template.replace(b"%b", after)


@pytest.mark.parametrize(
    ("title", "written_as"),
    [
        pytest.param(b"plain", "ü".encode(), id="nothing-to-go-by"),
        pytest.param(b"\\u00e9", b"\\u00fc", id="escaped"),
        pytest.param(b"\\ud83d\\ude00", b"\\u00fc", id="escaped-pair"),
        pytest.param(b"\\\\u00e9", "ü".encode(), id="backslash-and-letter"),
        pytest.param(b"\\\\\\u00e9", b"\\u00fc", id="backslash-and-escape"),
        pytest.param(b"\\u001b", "ü".encode(), id="control"),
        pytest.param("é\\u00e9".encode(), "ü".encode(), id="both"),
    ],
)
def test_escapes_are_as_in_the_file(title, written_as):
    raw = b'{"metadata": {"title": "' + title + b'"}, "cells": [{"cell_type": "raw", "source": "a"}], "nbformat": 4}'

    done = edit_cell(raw, cell_id=None, source="ü")

    assert done.raw == raw.replace(b'"a"', b'"' + written_as + b'"')


def test_a_cell_that_becomes_code_says_what_it_loses():
    raw = written(book(markdown(id="a", attachments={"x.png": {"image/png": "AAAA"}})))

    done = edit_cell(raw, cell_id="a", source="x", cell_type="code")

    assert done.dropped == ("attachments",)
    assert edit_cell(raw, cell_id="a", source="x").dropped == ()
    assert valid(done.raw)


def test_of_two_members_with_one_name_the_last_counts():
    raw = b'{"nbformat": 4, "cells": 1, "cells": [{"cell_type": "raw", "source": "a", "source": "b"}]}'

    done = edit_cell(raw, cell_id=None, source="c")

    assert done.before == "b"
    assert json.loads(done.raw)["cells"] == [{"cell_type": "raw", "source": "c"}]


def test_an_edit_does_not_make_a_notebook_that_cannot_be_read(monkeypatch):
    raw = written(THREE)
    monkeypatch.setattr("ferrule.files.notebook.MOST_BYTES", len(raw))
    monkeypatch.setattr("ferrule.files.notebook.MOST_CELLS", 3)

    with pytest.raises(BadNotebook, match="would have"):
        edit_cell(raw, cell_id="aa", source="x" * 100)
    with pytest.raises(BadNotebook, match="3 is the most"):
        edit_cell(raw, cell_id="aa", source="", cell_type="code", mode="insert")
