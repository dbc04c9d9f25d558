"""A language server that misbehaves, and what it is told: with the fake one, which does as the test says."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.workspace.languages.servers_world import (
    PYTHON,
    SECONDS,
    definition,
    died,
    failure,
    fake,
    heard,
    misbehaving,
    opened,
    put,
    watches,
    wrong,
)

from ferrule.tools.lsp import opened as documents

HELPER = {"textDocument": {"uri": ""}, "position": {"line": 4, "character": 1}}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return put(tmp_path, "a.fake", PYTHON)


async def test_one_server_is_started_for_two_who_ask_at_once(path, tmp_path):
    async with opened(tmp_path) as languages:
        first, second = await asyncio.gather(languages.server(path), languages.server(path))

        assert first is second
        assert len(await heard(first, "initialize")) == 1


async def test_what_takes_a_while_is_told(path, tmp_path):
    told: list[str] = []
    async with opened(tmp_path) as languages:
        await languages.server(path, tell=told.append)
        await languages.server(path, tell=told.append)

    assert told == ["Starting fake"]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        pytest.param({"words": "Hello, I am no server"}, "no message to its output: Hello, I am no server", id="words"),
        pytest.param({"words": "x" * 9000}, "no message to its output: xxx", id="many-words"),
        pytest.param({"crash_on": "initialize"}, "exit code 3. It said last:\nI fall over now", id="crash"),
        pytest.param({"refuse": True}, "does not start: not today", id="refusal"),
        pytest.param({"stall_on": "initialize"}, "did not start within 0.3 seconds", id="stall"),
    ],
)
async def test_a_server_that_does_not_start_says_why(told, says, path, tmp_path):
    seconds = 0.3 if "stall_on" in told else SECONDS
    async with opened(tmp_path, {"fake": misbehaving(**told)}, start_seconds=seconds) as languages:
        error = await failure(languages.server(path))

        assert error.code == "no-language-server"
        assert says in error.message
        assert "How to get one that can (fake: see its own page)" in error.message
        assert languages.list_running() == ()


async def test_a_server_that_dies_over_a_question_is_asked_once_more(path, tmp_path):
    once = str(tmp_path / "once")
    server = misbehaving(crash_on="textDocument/definition", once=once)
    async with opened(tmp_path, {"fake": server}) as languages:
        found = await definition(await languages.server(path), path, 5, 2)

    assert found == [1]
    assert os.path.exists(once)


async def test_a_server_that_always_dies_is_left_alone_and_its_last_words_are_told(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(crash_on="textDocument/definition")}) as languages:
        server = await languages.server(path)
        messages = [(await failure(definition(server, path, 5, 2))).message for _ in range(3)]

    assert "ended with exit code 3. It said last:\nI fall over now" in messages[0]
    assert "was started 4 times within 5 minutes" in messages[2]
    assert "I fall over now" in messages[2]


async def test_a_server_that_talks_nonsense_is_ended_and_is_warm_no_more(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(garble_on="textDocument/didSave")}) as languages:
        server = await languages.server(path)
        await server.sync(path)
        put(tmp_path, "a.fake", "other = 1\n")
        await server.sync(path)
        await died(server)

        assert languages.warm(path) is None
        assert languages.list_running() == ()


async def test_a_question_that_takes_too_long_is_taken_back(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(stall_on="textDocument/definition")}) as languages:
        server = await languages.server(path)
        error = await failure(definition(server, path, 5, 2, seconds=0.1))

        assert error.code == "server-slow"
        assert len(await heard(server, "$/cancelRequest")) == 1


async def test_a_question_that_is_given_up_is_taken_back(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(stall_on="textDocument/definition")}) as languages:
        server = await languages.server(path)
        asking = asyncio.create_task(definition(server, path, 5, 2))
        while not await heard(server, "textDocument/definition"):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

        assert asking.cancelled()
        assert len(await heard(server, "$/cancelRequest")) == 1


async def test_what_a_server_lacks_it_says(path, tmp_path):
    async with opened(tmp_path) as languages:
        server = await languages.server(path)
        await server.sync(path)

        assert server.can("textDocument/definition")
        assert not server.can("textDocument/hover")
        error = await failure(server.ask("textDocument/hover", HELPER))
        assert (error.code, error.message) == (
            "unsupported",
            "The language server fake does not offer textDocument/hover.",
        )
        assert (await failure(server.ask("fake/again", {}))).code == "unsupported"


async def test_nothing_found_while_the_project_is_still_read_is_asked_again(path, tmp_path):
    async with opened(tmp_path, {"fake": fake(busy=True)}) as languages:
        server = await languages.server(path)

        assert await definition(server, path, 5, 2) == [1]
        assert len(await heard(server, "textDocument/definition")) == 2


async def test_a_server_that_wants_to_be_asked_again_is(path, tmp_path):
    async with opened(tmp_path, {"fake": fake(modified=2)}) as languages:
        assert await definition(await languages.server(path), path, 5, 2) == [1]


async def test_the_questions_of_a_server_are_answered(path, tmp_path):
    asks = [
        ["workspace/configuration", {"items": [{"section": "tools.deep"}, {"section": "nowhere"}, {}]}],
        ["workspace/workspaceFolders", None],
        ["window/workDoneProgress/create", {"token": 1}],
        ["window/showMessageRequest", {"type": 1, "message": "?"}],
        ["workspace/applyEdit", {"edit": {}}],
        ["client/unregisterCapability", {"unregisterations": [{"id": "id fake/again", "method": "fake/again"}]}],
        ["workspace/configuration", {"items": 7}],
        ["workspace/unheardOf", {}],
        ["workspace/configuration", {"items": [{}] * 50_000}],
    ]
    row = msgspec.structs.replace(fake(asks=asks), configuration={"tools": {"deep": {"a": 1}}})
    async with opened(tmp_path, {"fake": row}) as languages:
        server = await languages.server(path)
        answers: dict[str, Any] = {}
        while len(answers) < len(asks):
            given = await server.ask("fake/answers", {})
            answers = {one["id"]: one for one in given if one["id"].startswith("ask")}

        results = [answers[f"ask {number}"].get("result") for number in range(5)]
        assert results[0] == [{"a": 1}, None, {"tools": {"deep": {"a": 1}}}]
        assert results[1] == [{"uri": f"file://{tmp_path}/work", "name": "work"}]
        assert results[2:4] == [None, None]
        assert results[4]["applied"] is False
        assert not server.can("fake/again")
        assert answers["ask 6"]["error"]["code"] == -32602
        assert answers["ask 7"]["error"]["code"] == -32601
        assert len(answers["ask 8"]["result"]) == 200


async def test_a_flood_of_words_harms_nobody(path, tmp_path):
    async with opened(tmp_path) as languages:
        server = await languages.server(path)

        assert await server.ask("fake/flood", {"count": 20_000}) == 20_000
        assert await definition(server, path, 5, 2) == [1]


async def test_all_servers_are_told_of_files_that_tools_changed(path, tmp_path):
    async with opened(tmp_path, {"fake": fake(register=["workspace/didChangeWatchedFiles"])}) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        languages.touch([put(tmp_path, "new.txt", "")])
        await server.sync(path)

        assert len(await heard(server, "workspace/didChangeWatchedFiles")) == 1


async def test_an_unchanged_document_is_told_once(path, tmp_path):
    async with opened(tmp_path) as languages:
        server = await languages.server(path)
        versions = [(await server.sync(path)).version for _ in range(3)]
        os.utime(path, (1, 1))
        versions.append((await server.sync(path)).version)

        assert versions == [1, 1, 1, 1]
        assert len(await heard(server, "textDocument/didOpen", "textDocument/didChange")) == 1


async def test_other_documents_that_changed_on_disk_are_told_too(path, tmp_path):
    other = put(tmp_path, "b.fake", "one\n")
    gone = put(tmp_path, "c.fake", "two\n")
    async with opened(tmp_path, {"fake": fake(register=["workspace/didChangeWatchedFiles"])}) as languages:
        server = await watches(await languages.server(path))
        for each in (other, gone, path):
            await server.sync(each)
        put(tmp_path, "b.fake", "three\n")
        os.unlink(gone)
        await server.sync(path)

        changes = await heard(server, "textDocument/didChange")
        assert [one["contentChanges"] for one in changes] == [[{"text": "three\n"}]]
        assert [one["textDocument"]["uri"] for one in await heard(server, "textDocument/didClose")] == [
            f"file://{gone}"
        ]
        assert [one["textDocument"]["uri"] for one in await heard(server, "textDocument/didSave")] == [
            f"file://{other}"
        ]
        (watched,) = await heard(server, "workspace/didChangeWatchedFiles")
        assert watched == {"changes": [{"uri": f"file://{other}", "type": 2}, {"uri": f"file://{gone}", "type": 3}]}


async def test_files_that_tools_changed_are_told_once_to_a_server_that_wants_to_know(path, tmp_path):
    async with opened(tmp_path, {"fake": fake(register=["workspace/didChangeWatchedFiles"])}) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        new, gone = put(tmp_path, "new.txt", ""), str(tmp_path / "work" / "gone.txt")
        server.touch([new, gone])
        await server.sync(path)
        server.touch([new])
        await server.sync(path)
        await server.sync(path)

        told = [one["changes"] for one in await heard(server, "workspace/didChangeWatchedFiles")]
        kinds = [[(os.path.basename(change["uri"]), change["type"]) for change in changes] for changes in told]
        assert kinds == [[("new.txt", 3), ("new.txt", 1), ("gone.txt", 3)], [("new.txt", 2)]]


async def test_only_so_many_documents_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MOST_OPEN", 2)
    paths = [put(tmp_path, f"{number}.fake", "text\n") for number in range(4)]
    async with opened(tmp_path) as languages:
        server = await languages.server(paths[0])
        for each in (*paths[:2], paths[0], *paths[2:]):
            await server.sync(each)

        closed = [one["textDocument"]["uri"][-6:] for one in await heard(server, "textDocument/didClose")]
        assert closed == ["1.fake", "0.fake"]


async def test_a_server_that_takes_no_changes_has_the_document_opened_again(path, tmp_path):
    async with opened(tmp_path, {"fake": fake(change=0)}) as languages:
        server = await languages.server(path)
        await server.sync(path)
        await server.sync(path, "helper(1)\n")

        assert await wrong(server, path) == []
        assert [one["textDocument"]["version"] for one in await heard(server, "textDocument/didOpen")] == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        pytest.param("secret.env", b"a = 1\n", "reading-secret-file", id="secret"),
        pytest.param("a.fake", b"\0\1\2" * 99, "binary", id="binary"),
        pytest.param("a.fake", b"x" * ((8 << 20) + 1), "too-large", id="too-large"),
        pytest.param("missing.fake", None, "not-found", id="missing"),
        pytest.param("../outside.fake", b"text", "outside-workspace", id="outside"),
    ],
)
async def test_what_may_not_or_cannot_be_read_is_not_shown_to_a_server(name, content, code, tmp_path):
    good = put(tmp_path, "good.fake", "text\n")
    file = tmp_path / "work" / name
    if content is not None:
        file.write_bytes(content)
    async with opened(tmp_path) as languages:
        server = await languages.server(good)
        error = await failure(server.sync(str(file)))

        assert error.code == code
        assert await heard(server, "textDocument/didOpen") == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="pulled"),
        pytest.param({"late_pull": True}, id="pulled-as-it-says-later"),
        pytest.param({"push": True}, id="pushed"),
        pytest.param({"push": True, "late_seconds": 0.1}, id="pushed-late"),
        pytest.param({"push": True, "versions": False}, id="pushed-without-versions"),
        pytest.param({"push": True, "versions": False, "late_seconds": 0.1}, id="pushed-late-without-versions"),
    ],
)
async def test_what_is_wrong_is_said_of_the_version_that_was_synced(options, path, tmp_path):
    async with opened(tmp_path, {"fake": fake(**options)}) as languages:
        server = await languages.server(path)
        seen = []
        for text in (PYTHON, PYTHON, "helper(1)\n", 'helper("t")\n'):
            put(tmp_path, "a.fake", text)
            await server.sync(path)
            seen.append(await wrong(server, path))

    assert seen == [[5], [5], [], [1]]


async def test_a_server_that_says_nothing_in_time_is_not_waited_for(path, tmp_path):
    async with opened(tmp_path, {"fake": fake(push=True, late_seconds=30)}) as languages:
        server = await languages.server(path)
        await server.sync(path)

        assert await wrong(server, path, seconds=0.1) is None


async def test_a_server_that_stalls_over_what_is_wrong_is_not_waited_for(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(stall_on="textDocument/diagnostic")}) as languages:
        server = await languages.server(path)
        await server.sync(path)

        assert await wrong(server, path, seconds=0.1) is None


async def test_what_is_wrong_with_a_document_that_is_not_open_is_not_known(path, tmp_path):
    async with opened(tmp_path) as languages:
        assert (await failure(wrong(await languages.server(path), path))).code == "not-found"


async def test_a_text_that_somebody_gave_stays_until_the_file_is_asked_for(path, tmp_path):
    other = put(tmp_path, "b.fake", "text\n")
    async with opened(tmp_path) as languages:
        server = await languages.server(path)
        await server.sync(path, "helper(1)\n")
        await server.sync(other)
        assert await wrong(server, path) == []

        await server.sync(path)
        assert await wrong(server, path) == [5]


async def test_after_a_crash_the_documents_are_open_again(path, tmp_path):
    other = put(tmp_path, "b.fake", 'helper("u")\n')
    async with opened(tmp_path) as languages:
        server = await languages.server(path)
        await server.sync(path)
        await server.sync(other)
        os.kill(server.pid, 9)
        await died(server)
        put(tmp_path, "b.fake", "\n" + 'helper("u")\n')

        assert await wrong(server, other) == [2]
        assert await wrong(server, path) == [5]


async def test_a_server_that_reads_nothing_keeps_nobody_waiting_at_the_end(path, tmp_path):
    large = put(tmp_path, "large.fake", "x" * (4 << 20))
    row = misbehaving(stall_on="textDocument/definition", deaf=True)
    async with opened(tmp_path, {"fake": row}) as languages:
        server = await languages.server(path)
        error = await failure(definition(server, large, 1, 1, seconds=0.2))

        assert error.code == "server-slow"


async def test_a_server_that_complains_without_end_is_listened_to(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(complains=2 << 20)}) as languages:
        server = await languages.server(path)

        assert await definition(server, path, 5, 2) == [1]
        os.kill(server.pid, 9)
        await died(server)
        assert server._life is not None
        assert len(server._life.failure.message) < 1000


async def test_a_server_that_ends_without_a_word_is_started_again_for_the_next_question(path, tmp_path):
    async with opened(tmp_path, {"fake": misbehaving(crash_on="fake/again")}) as languages:
        server = await languages.server(path)
        first = server.pid
        assert await definition(server, path, 5, 2) == [1]
        assert (await failure(server.ask("fake/again", {}))).code == "server-failed"

        assert await definition(server, path, 5, 2) == [1]
        assert server.pid != first


async def test_a_lone_surrogate_is_refused_and_the_server_goes_on(path, tmp_path):
    async with opened(tmp_path) as languages:
        server = await languages.server(path)
        asked = await failure(server.ask("fake/heard", {"query": "\udc80"}))
        given = await failure(server.sync(path, "a\udc80"))

        assert "surrogate" in asked.message
        assert "surrogate" in given.message
        assert await definition(server, path, 5, 2) == [1]
