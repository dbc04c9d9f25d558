"""New errors after a message's edits, by a server that complains as a test wants."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.workspace.languages.noticed import Edited

from ferrule.settings import LanguageServer, LspSettings
from ferrule.tools.lsp.diagnostics import MOST_TOLD

SERVER = str(Path(__file__).parent / "complaining.py")


def settings(folder: Path, kind: str, **more: Any) -> LspSettings:
    def one(name: str) -> LanguageServer:
        args = ("-S", "-u", SERVER, kind, str(folder / f"{name}.log"))
        return LanguageServer(command=sys.executable, args=args, endings=(f".{name}",), language=name)

    return LspSettings(
        servers={"txt": one("txt"), "doc": one("doc")}, confined=False, **{"after_seconds": 30.0, **more}
    )


def heard(folder: Path, method: str, name: str = "txt") -> list[Any]:
    """The parameters of all messages of that method that the server got."""
    log = folder / f"{name}.log"
    messages = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [message["params"] for message in messages if message.get("method") == method]


@pytest.fixture
async def edited(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Edited]:
    (tmp_path / "work").mkdir()
    here = Edited(tmp_path / "work", settings(tmp_path, getattr(request, "param", "pull")))
    yield here
    await here.close()


async def brief(tmp_path: Path, **more: Any) -> Edited:
    (tmp_path / "work").mkdir()
    return Edited(tmp_path / "work", settings(tmp_path, "pull", **more))


both = pytest.mark.parametrize("edited", ["pull", "push"], indirect=True)
"""For servers that are asked, and for those that tell by themselves."""
OWN = "New errors after the edit (txt):\n"
ELSEWHERE = "New errors in other files after the edit (txt):\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param("a\n", "a\n b !x\n", "  2:4: x [!]", id="made"),
        pytest.param("a\n!x\n", "b\nc\na\n!x\n", "", id="moved"),
        pytest.param("!x\na\n", "!y\na\n", "  1:1: y [!]", id="one-fixed-and-one-made"),
        pytest.param("a\r\n!x\r\n", "b\r\na\r\n!x\r\nc !y\r\n", "  4:3: y [!]", id="crlf"),
        pytest.param("a\n", "?x\n", "", id="a-warning"),
        pytest.param("\U0001f600\n", "\U0001f600 !x\n", "  1:3: x [!]", id="outside-the-basic-plane"),
        pytest.param("a\n", "a\n!x\n!y\n", "  2:1: x [!]\n  3:1: y [!]", id="two"),
        pytest.param("!x\n", "ok\n", "", id="fixed"),
        pytest.param("", "!x\n", "  1:1: x [!]", id="from-empty"),
    ],
)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
async def test_what_is_new_is_told(edited, old, new, told, is_open):
    edited.write(a_txt=old, b_txt="b\n")
    await edited.open("a.txt" if is_open else "b.txt")

    assert await edited.edit(a_txt=new) == ({"a.txt": OWN + told} if told else {})
    assert await edited.edit(a_txt=new) == {}


@both
async def test_a_new_file_has_only_new_errors(edited):
    edited.write(a_txt="a !x\n")
    await edited.open("a.txt")

    assert await edited.edit(b_txt="!x\n") == {"b.txt": OWN + "  1:1: x [!]"}


@both
async def test_each_file_of_a_message_has_its_own_note(edited):
    edited.write(a_txt="a\n", b_txt="b\n", c_txt="c\n")
    await edited.open("a.txt", "c.txt")

    notes = await edited.edit(a_txt="!x\n", b_txt="!y\n", c_txt="c c\n")

    assert notes == {"a.txt": OWN + "  1:1: x [!]", "b.txt": OWN + "  1:1: y [!]"}


@both
async def test_what_breaks_in_an_open_file_is_told_with_the_first_of_the_edits(edited):
    edited.write(a_txt="=x\n", b_txt="b\n", user_txt="\n@x\n", closed_txt="@x\n")
    await edited.open("user.txt", "a.txt")

    notes = await edited.edit(b_txt="!y\n", a_txt="a\n")

    assert notes == {"b.txt": f"{OWN}  1:1: y [!]\n{ELSEWHERE}  user.txt:2:1: x [@]"}


@both
async def test_two_files_that_change_together_break_nothing(edited):
    edited.write(a_txt="=x\n", user_txt="@x\n")
    await edited.open("user.txt", "a.txt")

    assert await edited.edit(a_txt="=y\n", user_txt="@y\n") == {}


@both
async def test_a_file_that_goes_is_closed_and_what_needs_it_is_told(edited, tmp_path):
    edited.write(a_txt="=x\n", user_txt="@x\n")
    await edited.open("user.txt", "a.txt")

    assert await edited.edit(a_txt=None) == {"a.txt": ELSEWHERE + "  user.txt:1:1: x [@]"}
    assert len(heard(tmp_path, "textDocument/didClose")) == 1
    gone = [one for told in heard(tmp_path, "workspace/didChangeWatchedFiles") for one in told["changes"]]
    assert [(one["uri"].rpartition("/")[2], one["type"]) for one in gone] == [("a.txt", 3)]


async def test_of_many_errors_ten_are_told(edited):
    edited.write(a_txt="=z\n", user_txt="@z\n")
    await edited.open("a.txt", "user.txt")
    many = MOST_TOLD + 3

    notes = await edited.edit(a_txt="".join(f"!x{number}\n" for number in range(many)))

    rows = notes["a.txt"].splitlines()
    assert len(rows) == MOST_TOLD + 2
    assert rows[-1] == "  and 4 more"


async def test_a_file_that_no_call_declared_is_compared_with_what_the_server_had_open(edited):
    edited.write(a_txt="a\n!x\n", b_txt="!x\n")
    await edited.open("a.txt")

    notes = await edited.edit(declared=(), a_txt="!x\n!y\n", b_txt="b\n!y\n")

    assert notes == {"a.txt": OWN + "  2:1: y [!]"}, "of b.txt nobody knows what it was"


async def test_a_folder_may_be_declared(edited):
    edited.write(a_txt="a\n", sub__b_txt="b\n")
    await edited.open("a.txt")

    assert await edited.edit(declared=(".", "sub"), a_txt="!x\n") == {"a.txt": OWN + "  1:1: x [!]"}


async def test_a_server_that_was_synced_meanwhile_is_shown_the_old_text_again(edited):
    edited.write(a_txt="!x\n")
    server = await edited.open("a.txt")
    before = edited.noticing.begin([edited.path("a.txt")])
    assert before is not None
    edited.write(a_txt="!x\n!y\n")
    await server.sync(edited.path("a.txt"))

    notes = await edited.noticing.end(before, [edited.path("a.txt")] * 2)

    assert list(notes.values()) == [OWN + "  2:1: y [!]"]
    assert server.documents[edited.path("a.txt")].text == "!x\n!y\n"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\0\1\2", id="binary"),
        pytest.param(b"a" * (3 << 20), id="too-large"),
    ],
)
async def test_what_was_no_text_to_compare_with_is_not_told(edited, raw):
    edited.write(a_txt=raw, b_txt="b\n")
    await edited.open("b.txt")

    assert await edited.edit(a_txt="!x\n", b_txt="!y\n") == {"b.txt": OWN + "  1:1: y [!]"}


async def test_where_no_server_runs_nothing_is_begun_and_nothing_started(tmp_path):
    here = await brief(tmp_path)
    here.write(a_txt="a\n")

    assert here.noticing.begin([here.path("a.txt")]) is None
    assert here.servers.list_running() == ()
    await here.close()


async def test_a_cold_server_stays_cold_and_the_others_learn_of_the_change(tmp_path):
    here = await brief(tmp_path)
    here.write(a_txt="a\n", b_doc="b\n")
    server = await here.open("b.doc")

    assert await here.edit(a_txt="!x\n") == {}
    assert [running.name for running in here.servers.list_running()] == ["doc"]
    await server.sync(here.path("b.doc"))
    await server.diagnostics(here.path("b.doc"), seconds=30)

    (told,) = heard(tmp_path, "workspace/didChangeWatchedFiles", "doc")
    assert {one["uri"].rpartition("/")[2] for one in told["changes"]} == {"a.txt"}
    await here.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("a STALL\n", "!x\n", id="about-the-old-text"),
        pytest.param("a\n", "STALL !x\n", id="about-the-new-text"),
    ],
)
async def test_a_server_that_stalls_tells_nothing_and_sees_the_file_as_it_is(tmp_path, old, new):
    here = await brief(tmp_path, after_seconds=0.3)
    here.write(a_txt=old, b_txt="b\n")
    server = await here.open("b.txt")

    assert await here.edit(a_txt=new) == {}

    await server.sync(here.path("b.txt"))
    assert server.documents[here.path("a.txt")].text == new
    await here.close()


async def test_a_server_that_was_too_slow_is_not_waited_for_at_the_next_edit(tmp_path):
    here = await brief(tmp_path, after_seconds=1.0)
    here.write(a_txt="a\n", b_txt="b\n")
    await here.open("b.txt")
    assert await here.edit(a_txt="STALL !x\n") == {}
    asked = len(heard(tmp_path, "textDocument/diagnostic"))

    assert await here.edit(a_txt="!x\n") == {}

    assert len(heard(tmp_path, "textDocument/diagnostic")) == asked
    await here.close()


@pytest.mark.parametrize(
    ("old", "new"), [pytest.param("DIE\n", "!x\n", id="of-the-old-text"), pytest.param("a\n", "DIE\n", id="of-the-new")]
)
async def test_a_server_that_dies_tells_nothing(tmp_path, old, new):
    here = await brief(tmp_path, after_seconds=5.0)
    here.write(a_txt=old, b_txt="b\n")
    await here.open("b.txt")

    assert await here.edit(a_txt=new) == {}
    await here.close()


async def test_a_server_that_died_before_the_end_is_not_started_for_this(tmp_path):
    here = await brief(tmp_path)
    here.write(a_txt="a\n")
    server = await here.open("a.txt")
    before = here.noticing.begin([here.path("a.txt")])
    assert before is not None
    await server.close()
    here.write(a_txt="!x\n")

    assert await here.noticing.end(before, [here.path("a.txt")]) == {}
    assert len(heard(tmp_path, "initialize")) == 1
    await here.close()


async def test_whoever_is_cancelled_tells_nothing_and_the_server_still_learns_of_it(tmp_path):
    here = await brief(tmp_path)
    here.write(a_txt="STALL\n", b_txt="b\n")
    server = await here.open("b.txt")
    before = here.noticing.begin([here.path("a.txt")])
    assert before is not None
    here.write(a_txt="!x\n")
    ending = asyncio.create_task(here.noticing.end(before, [here.path("a.txt")]))
    async with asyncio.timeout(30):
        while not any("STALL" in one["textDocument"]["text"] for one in heard(tmp_path, "textDocument/didOpen")):
            await asyncio.sleep(0.01)

    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending

    await server.sync(here.path("b.txt"))
    assert server.documents[here.path("a.txt")].text == "!x\n"
    await here.close()


async def test_with_the_setting_off_servers_only_learn_which_files_changed(tmp_path):
    here = await brief(tmp_path, after_edits=False)
    here.write(a_txt="a\n", b_txt="b\n")
    server = await here.open("b.txt")

    assert await here.edit(a_txt="!x\n") == {}

    await server.sync(here.path("b.txt"))
    await server.diagnostics(here.path("b.txt"), seconds=30)
    assert len(heard(tmp_path, "workspace/didChangeWatchedFiles")) == 1
    assert len(heard(tmp_path, "textDocument/didOpen")) == 1
    await here.close()


@both
async def test_messages_at_the_same_time_are_compared_one_after_the_other(edited):
    edited.write(a_txt="a\n", b_txt="b\n")
    await edited.open("a.txt", "b.txt")

    first, second = await asyncio.gather(edited.edit(a_txt="!x\n"), edited.edit(b_txt="!y\n"))

    assert first["a.txt"].startswith(OWN + "  1:1: x [!]")
    assert second["b.txt"] == OWN + "  1:1: y [!]"
