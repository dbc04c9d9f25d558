"""notebook_edit, through the whole flow."""

import json
import os
import subprocess
from typing import Any

import pytest

from ferrule import Engine
from ferrule.core.content import CellEdited
from ferrule.core.tool import Face
from ferrule.dialects import Dialect
from ferrule.files.ledger import Ledger

PARAMS = {"notebook": "path", "text": "source", "cell": "cell_id", "kind": "cell_type", "how": "mode"}
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in PARAMS},
    "required": ["notebook", "text"],
}


def said(outcome: CellEdited) -> dict[str, Any]:
    return outcome._asdict()


def dialect(**fill: Any) -> Dialect:
    """A family of one tool, with parameters of its own."""
    face = Face(
        tool="notebook_edit", name="edit_cell", schema=SCHEMA, words="Edit.", params=PARAMS, fill=fill, says=said
    )
    return Dialect(name="test", faces=(face,))


def cell(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source, **more}


def write(root: Any, *cells: Any, name: str = "n.ipynb", minor: int = 5) -> bytes:
    book = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    raw = json.dumps(book, indent=1).encode() + b"\n"
    (root / name).write_bytes(raw)
    return raw


@pytest.fixture
async def engine(tmp_path):
    (tmp_path / "workspace").mkdir()
    async with Engine(tmp_path / "workspace", dialect=dialect(), ask=lambda _: True) as opened:
        yield opened


@pytest.fixture
async def strict(tmp_path):
    """An engine of a family that has to read before it writes."""
    async with Engine(tmp_path / "workspace", dialect=dialect(read_first=True), ask=lambda _: True) as opened:
        yield opened


async def test_a_replaced_cell_is_answered_with_its_id_source_and_diff(engine, root):
    before = write(root, cell("one", id="aa"), cell("two", id="bb"))
    path = os.path.realpath(root / "n.ipynb")

    reply = await engine.call("edit_cell", notebook="n.ipynb", cell="bb", text="zwei")

    assert reply.as_dict() == {
        "status": "done",
        "result": {
            "path": path,
            "cell_id": "bb",
            "mode": "replace",
            "source": "zwei",
            "diff": "diff --git a/n.ipynb b/n.ipynb\n--- a/n.ipynb\n+++ b/n.ipynb\n@@ -9,7 +9,7 @@\n   {\n"
            '    "cell_type": "markdown",\n    "metadata": {},\n-   "source": "two",\n+   "source": "zwei",\n'
            '    "id": "bb"\n   }\n  ],\n',
        },
        "trackFiles": [path],
    }
    assert (root / "n.ipynb").read_bytes() == before.replace(b"two", b"zwei")


async def test_git_can_take_the_diff_back(engine, root):
    before = write(root, cell("one", id="aa"), cell("two", id="bb"))
    reply = await engine.call("edit_cell", notebook="n.ipynb", cell="aa", text="x\ny", kind="code", how="insert")

    subprocess.run(["git", "apply", "-R", "-"], input=reply.result["diff"].encode(), cwd=root, check=True)

    assert (root / "n.ipynb").read_bytes() == before


async def test_a_new_cell_goes_to_the_start_or_behind_another(engine, root):
    write(root, cell("one"), cell("two"), minor=4)

    await engine.call("edit_cell", notebook="n.ipynb", text="zero", kind="markdown", how="insert")
    await engine.call("edit_cell", notebook="n.ipynb", cell="cell-1", text="1.5", kind="code", how="insert")

    cells = json.loads((root / "n.ipynb").read_bytes())["cells"]
    assert [one["source"] for one in cells] == ["zero", "one", "1.5", "two"]


async def test_a_deleted_cell_is_said_back_and_can_be_brought_back(engine, root):
    before = write(root, cell("one", id="aa"), cell("two", id="bb"))

    reply = await engine.call("edit_cell", notebook="n.ipynb", cell="aa", text="ignored", how="delete")

    assert (reply.result["mode"], reply.result["source"]) == ("delete", "one")
    assert len(json.loads((root / "n.ipynb").read_bytes())["cells"]) == 1
    await engine.undo()
    assert (root / "n.ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"how": "insert"}, "kind: a new cell needs it; give code or markdown.", id="insert"),
        pytest.param({"how": "delete"}, "cell: say which cell is to be deleted.", id="delete"),
    ],
)
async def test_what_a_mode_needs_is_named_as_the_caller_names_it(engine, root, given, words):
    before = write(root, cell("one"))

    reply = await engine.call("edit_cell", notebook="n.ipynb", text="x", **given)

    assert (reply.error.error_code, reply.error.message) == ("bad-arguments", words)
    assert (root / "n.ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        pytest.param("none.ipynb", {}, "not-found", id="missing"),
        pytest.param("none/none.ipynb", {}, "not-found", id="missing-folder"),
        pytest.param("a.json", {}, "not-a-notebook", id="name"),
        pytest.param("text.ipynb", {}, "bad-notebook", id="text"),
        pytest.param("n.ipynb", {"cell": "zz"}, "no-cell", id="unknown"),
        pytest.param("n.ipynb", {}, "no-cell", id="which"),
        pytest.param("n.ipynb", {"cell": "aa"}, "ambiguous-cell", id="twice"),
    ],
)
async def test_a_failure_has_a_code_and_changes_nothing(engine, root, name, given, code):
    before = write(root, cell("one", id="aa"), cell("two", id="aa"))
    (root / "text.ipynb").write_text("print(1)\n")

    reply = await engine.call("edit_cell", notebook=name, text="x", **given)

    assert reply.error.error_code == code
    assert reply.error.absolute_path == os.path.realpath(root / name)
    assert (root / "n.ipynb").read_bytes() == before
    assert sorted(os.listdir(root)) == ["n.ipynb", "text.ipynb"]


async def test_a_folder_is_no_notebook(engine, root):
    (root / "n.ipynb").mkdir()

    reply = await engine.call("edit_cell", notebook="n.ipynb", text="x")

    assert reply.status == "error"
    assert (root / "n.ipynb").is_dir()


async def test_a_family_that_reads_first_must_have_read(engine, strict, root):
    before = write(root, cell("one"))

    reply = await strict.call("edit_cell", notebook="n.ipynb", text="x")

    assert reply.error.error_code == "not-read"
    assert (root / "n.ipynb").read_bytes() == before


async def test_what_changed_since_it_was_read_must_be_read_again(engine, strict, root):
    strict._services[Ledger].saw(os.path.realpath(root / "n.ipynb"), b"old")
    before = write(root, cell("one"))

    reply = await strict.call("edit_cell", notebook="n.ipynb", text="x")

    assert reply.error.error_code == "stale"
    assert (root / "n.ipynb").read_bytes() == before


async def test_what_was_read_can_be_edited_again_and_again(engine, strict, root):
    strict._services[Ledger].saw(os.path.realpath(root / "n.ipynb"), write(root, cell("one")))

    replies = [await strict.call("edit_cell", notebook="n.ipynb", text=text) for text in ("two", "three")]

    assert [reply.status for reply in replies] == ["done", "done"]


async def test_an_edit_that_changes_nothing_says_so(engine, root):
    before = write(root, cell("one", id="aa"))

    reply = await engine.call("edit_cell", notebook="n.ipynb", text="one")

    assert reply.notes == ("The notebook reads like this already; nothing was written.",)
    assert reply.result["diff"] == ""
    assert (root / "n.ipynb").read_bytes() == before


async def test_outputs_that_go_do_not_fill_the_diff(engine, root):
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 100_000}}
    write(root, cell("one", id="aa", cell_type="code", execution_count=1, outputs=[picture]))

    reply = await engine.call("edit_cell", notebook="n.ipynb", text="two")

    assert reply.result["diff"].endswith(
        "@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n"
    )
    assert "the diff of the cell's source" in reply.notes[0]
    assert json.loads((root / "n.ipynb").read_bytes())["cells"][0]["outputs"] == []


async def test_a_diff_too_long_to_read_is_not_shown(engine, root):
    write(root, cell("one"))

    reply = await engine.call("edit_cell", notebook="n.ipynb", text="x\n" * 50_000, how="replace")

    assert reply.result["diff"] == ""
    assert "The diff is too long to be shown." in reply.notes


async def test_lost_attachments_are_mentioned(engine, root):
    write(root, cell("one", id="aa", attachments={"x.png": {"image/png": "AAAA"}}))

    reply = await engine.call("edit_cell", notebook="n.ipynb", text="one", kind="code")

    assert reply.notes == ("Code cells have no attachments; the cell lost what it had of them.",)
