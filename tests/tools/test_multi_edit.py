"""Several edits of one file, through the whole flow: all of them or none."""

import os

import pytest
from tests.direct import Direct

from ferrule import Engine
from ferrule.core.errors import BadArguments
from ferrule.tools.files.edit import MultiEdit


@pytest.fixture
async def session(tmp_path):
    async with Engine(tmp_path, dialect="claude", ask=lambda question: True) as engine:
        (tmp_path / "a.py").write_bytes(b"one\r\ntwo\r\ntwo\r\nfour\r\n")
        await engine.call("Read", file_path="a.py")
        yield engine


def edit(old: str, new: str, **more: bool) -> dict[str, object]:
    return {"old_string": old, "new_string": new, **more}


@pytest.mark.parametrize(
    ("edits", "raw"),
    [
        pytest.param([edit("one", "1")], b"1\r\ntwo\r\ntwo\r\nfour\r\n", id="one"),
        pytest.param(
            [edit("one", "1"), edit("two", "2", replace_all=True), edit("four", "4\n5")],
            b"1\r\n2\r\n2\r\n4\r\n5\r\n",
            id="three-with-the-file-s-line-ends",
        ),
        pytest.param([edit("one", "two two"), edit("two two", "2")], b"2\r\ntwo\r\ntwo\r\nfour\r\n", id="in-turn"),
    ],
)
async def test_edits_are_made_one_after_the_other(session, tmp_path, edits, raw):
    reply = await session.call("MultiEdit", file_path="a.py", edits=edits)

    assert reply.status == "done"
    assert reply.result.startswith(f"The file {os.path.realpath(tmp_path / 'a.py')} has been updated.\n```diff\n")
    assert reply.track_files == (os.path.realpath(tmp_path / "a.py"),)
    assert (tmp_path / "a.py").read_bytes() == raw


@pytest.mark.parametrize(
    ("edits", "code", "start"),
    [
        pytest.param([], "bad-arguments", "edits: has too few items: 0,", id="none"),
        pytest.param([edit("one", "1"), edit("nine", "9")], "no-match", "Edit 2 of 2:", id="the-second-misses"),
        pytest.param([edit("one", "1"), edit("two", "2")], "ambiguous", "Edit 2 of 2:", id="the-second-is-unclear"),
        pytest.param([edit("one", "1"), edit("four", "four")], "same-text", "Edit 2 of 2:", id="the-second-is-none"),
        pytest.param([edit("one", "1"), edit("", "x")], "empty-old", "Edit 2 of 2:", id="the-second-is-empty"),
        pytest.param([{"old_string": "one"}], "bad-arguments", "edits[0].new_string: ", id="half-an-edit"),
        pytest.param("one", "bad-arguments", "edits: ", id="no-list"),
    ],
)
async def test_nothing_is_written_unless_all_of_them_are_clear(session, tmp_path, edits, code, start):
    reply = await session.call("MultiEdit", file_path="a.py", edits=edits)

    assert reply.status == "error"
    assert reply.error.error_code == code
    assert reply.error.message.startswith(start)
    assert (tmp_path / "a.py").read_bytes() == b"one\r\ntwo\r\ntwo\r\nfour\r\n"


async def test_all_edits_are_one_step_back(session, tmp_path):
    await session.call("MultiEdit", file_path="a.py", edits=[edit("one", "1"), edit("four", "4")])
    await session.undo()

    assert (tmp_path / "a.py").read_bytes() == b"one\r\ntwo\r\ntwo\r\nfour\r\n"
    assert (await session.history())[0] == []


async def test_edits_that_come_to_nothing_write_nothing(session, tmp_path):
    reply = await session.call("MultiEdit", file_path="a.py", edits=[edit("one", "1"), edit("1", "one")])

    assert reply.status == "done"
    assert "The file reads like this already; nothing was written." in reply.notes
    assert (await session.history())[0] == []


async def test_edits_that_are_made_at_once_may_not_meet(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abc\n")
    async with Engine(tmp_path, dialect="pi", ask=lambda question: True) as engine:
        meeting = [{"oldText": "ab", "newText": "x"}, {"oldText": "bc", "newText": "y"}]
        reply = await engine.call("edit", path="a.txt", edits=meeting)

    assert reply.as_dict()["error"]["errorCode"] == "overlap"
    assert (tmp_path / "a.txt").read_bytes() == b"abc\n"


async def test_a_text_that_looks_binary_can_be_written(session, tmp_path):
    reply = await session.call("MultiEdit", file_path="a.py", edits=[edit("one", "\x01\x02"), edit("four", "4")])

    assert reply.status == "done"
    assert (tmp_path / "a.py").read_bytes() == b"\x01\x02\r\ntwo\r\ntwo\r\n4\r\n"


async def test_no_edits_at_all_are_refused_in_the_tool_s_own_words_too(tmp_path):
    direct = Direct(tmp_path)
    try:
        with pytest.raises(BadArguments, match="edits: is empty; give at least one edit"):
            await direct(MultiEdit(), path="a.py", edits=())
    finally:
        direct.close()
