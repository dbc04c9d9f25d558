"""Attacks in the words of every family, with hostile files and hostile streams, each on what it once broke."""

import base64
import json
import os
from typing import Any

import pytest

from ferrule import Call, Engine, Event, Prepared
from ferrule.dialects import FAMILIES
from ferrule.dialects.shared import parts
from ferrule.files.patch import LIMIT_FILES, Hunk, Unplaced, place
from ferrule.files.text import parse
from ferrule.tools.files.format import MOST_BYTES_TOGETHER, choose
from ferrule.wire import Definition, openai_responses
from ferrule.wire.anthropic_stream import AnthropicWriter
from ferrule.wire.openai_chat_stream import ChatReader
from ferrule.wire.stream import LIMIT_BYTES
from ferrule.wire.translate import Translator

NOT_FOR_CALLERS: dict[str, dict[str, Any]] = {
    "shell": {
        "flags": ["-x"],
        "apart": True,
        "head_chars": 7,
        "tail_bytes": 7,
        "tail_chars": 7,
        "most_seconds": 7e9,
        "yields": True,
        "carry": True,
    },
    "read": {"most_bytes": 10**12, "line_bytes": 10**12, "usual_lines": 10**9, "refuse_bytes": 10**12},
    "write": {"read_first": False, "name_guidance": False},
    "edit": {"read_first": False, "may_create": True},
    "grep": {"line_chars": 10**9},
}
NEEDED = {
    "shell": {"command": "true"},
    "read": {"path": "a.txt"},
    "write": {"path": "a.txt", "content": "x"},
    "edit": {"path": "a.txt", "old": "x", "new": "y"},
    "grep": {"pattern": "x"},
}


def files_only(question) -> bool:
    """A person who lets files be written and no command run."""
    return question.kind == "call" and all(access.kind == "path" for access in question.touches)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tool", NOT_FOR_CALLERS)
async def test_no_caller_sets_what_is_the_engines_to_fill_in(tmp_path, family, tool):
    heard = []

    def listen(event: Event) -> None:
        if isinstance(event, Prepared):
            heard.append(event.arguments)

    async with Engine(tmp_path, dialect=family, on_event=listen) as engine:
        await engine.run([Call(tool, NEEDED[tool])])
        for name, value in NOT_FOR_CALLERS[tool].items():
            await engine.run([Call(tool, {**NEEDED[tool], name: value})])

    usual, *others = heard
    for values in others:
        for name, value in NOT_FOR_CALLERS[tool].items():
            assert values.get(name) == usual.get(name) or values.get(name) != value


@pytest.mark.parametrize(
    ("family", "call"),
    [
        pytest.param("amp", Call("Bash", {"command": ["ls"], "background": True}), id="a-list-for-a-command"),
        pytest.param("amp", Call("shell_command", {"command": 5}), id="a-number-for-a-command"),
        pytest.param("ah", Call("create_file", {"path": [{}], "content": "x"}), id="a-list-for-a-path"),
    ],
)
async def test_values_of_the_wrong_kind_are_refused_before_anything_looks_at_them(tmp_path, family, call):
    async with Engine(tmp_path, dialect=family, ask=files_only) as engine:
        [reply] = await engine.run([call])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({f"name{number}": 1 for number in range(20_000)}, id="names"),
        pytest.param({"todos": [{"a": 1}] * 100_000}, id="values"),
        pytest.param({"include": [f"{number}" for number in range(5_000)]}, id="paths"),
        pytest.param({"include": ["a/" * 2_000] * 60}, id="deep-paths"),
        pytest.param({"include": ["a"], "exclude": ["{a,b}*"] * 200}, id="patterns"),
    ],
)
async def test_more_arguments_than_anybody_writes_are_refused_and_not_pondered(tmp_path, values):
    async with Engine(tmp_path) as engine:
        [reply] = await engine.run([Call("read_many_files", values)])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"


async def test_a_list_of_ignored_names_has_an_end(tmp_path):
    async with Engine(tmp_path) as engine:
        reply = await engine.call("list_directory", dir_path=".", ignore=[f"{number}*" for number in range(500)])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param([f"a{number}" for number in range(LIMIT_FILES + 1)], id="many-files"),
        pytest.param([f"{'a/' * 1_500}{number}" for number in range(100)], id="deep-folders"),
    ],
)
async def test_a_patch_of_endless_files_is_refused_before_their_paths_are_looked_up(tmp_path, paths):
    body = "".join(f"*** Delete File: {path}\n" for path in paths)
    async with Engine(tmp_path) as engine:
        [reply] = await engine.run([Call("apply_patch", {"input": f"*** Begin Patch\n{body}*** End Patch"})])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"
    assert "send several patches" in reply.text


def test_a_hundred_thousand_anchors_do_not_multiply_with_the_lines_of_the_file():
    file = parse(b"x\n" * 300_000)
    outcome = place(file, [Hunk(1, ("x",) * 100_000, ("+y",), at_end=False)])

    assert isinstance(outcome, Unplaced)
    assert outcome.reason == "ambiguous"


async def test_what_another_session_wrote_is_not_undone_without_a_question(tmp_path):
    async with Engine(tmp_path, ask=files_only) as theirs:
        await theirs.call("create_file", path="a.txt", content="theirs\n")

    asked = []

    def only_writes(question) -> bool:
        asked.append(question.name)
        return bool(question.name != "undo_edit")

    async with Engine(tmp_path, ask=only_writes) as engine:
        refused = await engine.call("undo_edit", path="a.txt")
        await engine.call("create_file", path="a.txt", content="mine\n")
        once, twice = await engine.run([Call("undo_edit", {"path": "a.txt"})] * 2)

    assert asked == ["undo_edit", "create_file"]
    assert refused.status == "rejected-by-user"
    assert twice.error is not None
    assert (once.status, twice.error.error_code) == ("done", "changed-meanwhile")
    assert (tmp_path / "a.txt").read_text() == "theirs\n"


async def test_guidance_files_do_not_flood_a_reply(tmp_path):
    for number in range(20):
        folder = tmp_path / f"d{number}"
        (folder / "docs").mkdir(parents=True)
        (folder / "AGENTS.md").write_text("@docs/*.md\n" + "w" * 30_000)
        (folder / "docs" / "more.md").write_text("m" * 30_000)
        (folder / "a.txt").write_text("a\n")
    patch = "".join(f"*** Update File: d{number}/a.txt\n@@\n-a\n+b\n" for number in range(20))

    async with Engine(tmp_path, ask=files_only) as engine:
        [reply] = await engine.run([Call("apply_patch", {"input": f"*** Begin Patch\n{patch}*** End Patch"})])
        later = await engine.call("Read", path="d19/a.txt")

    assert reply.ok
    assert 0 < sum(map(len, reply.notes)) < 150_000
    assert any(note.startswith(os.path.realpath(tmp_path / "d19" / "AGENTS.md")) for note in later.notes)


async def test_pictures_of_a_notebook_fit_into_a_turn_or_are_left_out(tmp_path):
    whole = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    padded = whole + b"\0" * 3_000_000
    cut_off = whole[:40]
    cells = [
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": f"c{number}",
            "metadata": {},
            "source": "draw()",
            "outputs": [
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {"image/png": base64.b64encode(data).decode()},
                }
            ],
        }
        for number, data in enumerate([cut_off, padded, padded, padded, padded])
    ]
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (tmp_path / "a.ipynb").write_text(json.dumps(book))

    async with Engine(tmp_path, dialect="claude") as engine:
        reply = await engine.call("Read", file_path=str(tmp_path / "a.ipynb"))

    kinds = [part["type"] for part in reply.result]
    assert kinds.count("image") == 2
    assert "cut off" in reply.text
    assert "no room for another picture" in reply.text


def test_a_million_pieces_become_one_text_at_once():
    assert len(parts(["x" * 40] * 1_000_000)) == 42 * 1_000_000 - 2


def test_configuration_files_at_every_level_are_not_all_parsed():
    filling = "".join(f"a{number}.b.c = 1\n" for number in range(10_000)) + "# ruff format black\n"
    levels = MOST_BYTES_TOGETHER // len(filling) + 2
    folder = "/p" + "/d" * levels
    files = {f"/p{'/d' * level}/pyproject.toml": filling.encode() for level in range(1, levels + 1)}
    files["/p/pyproject.toml"] = b"[tool.ruff.format]\n"

    assert choose(f"{folder}/a.py", "/p", files.get) is None
    assert choose("/p/d/a.py", "/p", files.get) is not None


def test_a_stream_that_ends_in_an_endless_event_ends_with_an_error_and_no_whole_message():
    translator = Translator(ChatReader(), AnthropicWriter())
    begun = translator.feed(b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\ndata: ' + b"z" * LIMIT_BYTES)
    ended = translator.end()

    assert b"message_stop" not in begun + ended
    assert ended.count(b"event: error") == 1
    assert b"longer than" in ended


def test_a_schema_of_lists_in_lists_is_refused_or_taken_and_overflows_nothing():
    nested: list[Any] = []
    for _ in range(600):
        nested = [nested]
    given = {"type": "object", "properties": {}, "anyOf": nested, "$defs": {"a": {}}}

    [out] = openai_responses.definitions_out([Definition("t", "", given)])

    assert out["name"] == "t"
