"""MCP over standard input and output, as a process: what is said there, and how it ends."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import JSONRPCResponse

from ferrule.serve.mcp.stdio import LineReader, line_of
from tests.serve.program import FERRULE, LIMIT_SECONDS, OFFERED, ROOT, program

PARSE, INVALID, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602


async def test_whatever_is_said_is_answered_and_the_server_goes_on(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    async with program(*FERRULE, folder=tmp_path) as server:
        greeted = await server.greet()
        codes = []
        for junk in (
            b"{",
            b"\xff\xfe\x00",
            b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}',
            b"[]",
            b"17",
            b'{"id": 1}',
            b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
        ):
            server.say(junk)
            codes.append((await server.hear())["error"]["code"])
        server.say(b"")
        server.say(b"   ")
        answers = {
            "unknown method": await server.ask("tools/nothing"),
            "no name": await server.ask("tools/call", {}),
            "name of a wrong type": await server.ask("tools/call", {"name": 5}),
            "arguments of a wrong type": await server.ask("tools/call", {"name": "Read", "arguments": [1]}),
            "unknown tool": await server.ask("tools/call", {"name": "Nothing"}),
        }
        bad = await server.ask("tools/call", {"name": "Read", "arguments": {"path": 7, "read_range": "x"}})
        done = await server.ask("tools/call", {"name": "Read", "arguments": {"path": "a.txt"}})
        server.process.stdin.close()
        rest, code = await server.hear(), await server.ended()
        errors = await server.process.stderr.read()

    assert greeted["capabilities"]["tools"] == {"listChanged": True}
    assert "prompts" not in greeted["capabilities"]
    assert codes == [PARSE, PARSE, PARSE, INVALID, INVALID, INVALID, INVALID]
    assert {name: answer["error"]["code"] for name, answer in answers.items()} == {
        "unknown method": NO_METHOD,
        "no name": BAD_PARAMS,
        "name of a wrong type": BAD_PARAMS,
        "arguments of a wrong type": BAD_PARAMS,
        "unknown tool": BAD_PARAMS,
    }
    assert bad["result"]["isError"] is True
    assert done["result"]["content"] == [{"type": "text", "text": "1: one"}]
    assert (rest, code, errors) == (None, 0, b"")


async def test_the_last_answers_are_given_to_a_client_that_has_said_all(tmp_path):
    async with program(*FERRULE, folder=tmp_path) as server:
        await server.greet()
        server.say({"id": "a", "method": "ping"})
        server.process.stdin.write(b'{"jsonrpc": "2.0", "id": "b", "method": "ping"')
        assert (await server.hear())["id"] == "a"
        server.process.stdin.write(b"}")
        server.process.stdin.close()

        heard = [await server.hear(), await server.hear()]
        assert heard[0] is None or heard[0]["id"] == "b"
        assert await server.ended() == 0


ENDINGS = [
    pytest.param(None, 0, id="end-of-input"),
    pytest.param(signal.SIGTERM, 128 + signal.SIGTERM, id="terminated"),
    pytest.param(signal.SIGINT, 128 + signal.SIGINT, id="interrupted"),
]


@pytest.mark.parametrize(("number", "code"), ENDINGS)
@pytest.mark.usefixtures("unconfined")
async def test_the_end_in_the_middle_of_a_call_leaves_nothing_running(tmp_path, number, code):
    async with program(*FERRULE, "--yes", folder=tmp_path) as server:
        await server.greet()
        command = "echo $$ > pid; echo begun; sleep 300 & sleep 301; echo never > late"
        meta = {"progressToken": 1}
        server.say(
            {"id": 9, "method": "tools/call", "params": {"name": "Bash", "arguments": {"cmd": command}, "_meta": meta}}
        )
        assert (await server.hear())["method"] == "notifications/progress"
        group = int((tmp_path / "pid").read_text())
        if number is None:
            server.process.stdin.close()
        else:
            server.process.send_signal(number)

        assert await server.ended() == code
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
    assert not (tmp_path / "late").exists()


async def test_a_client_that_reads_no_more_ends_the_server(tmp_path):
    async with program(*FERRULE, folder=tmp_path) as server:
        await server.greet()
        server.process._transport.get_pipe_transport(1).close()
        server.say({"id": 1, "method": "ping"})

        assert await server.ended() == 0


async def test_what_a_tool_prints_does_not_reach_the_client(tmp_path):
    async with program(*OFFERED, folder=tmp_path) as server:
        await server.greet()
        done = await server.ask("tools/call", {"name": "prints", "arguments": {}})
        server.process.stdin.close()
        assert await server.hear() is None
        errors = await server.process.stderr.read()

    assert done["result"]["content"][0]["text"] == "printed, and read: ''"
    assert b"on standard output" in errors


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_the_client_of_the_package_is_served(tmp_path, era):
    (tmp_path / "a.txt").write_text("one\n")
    command = StdioServerParameters(
        command=sys.executable,
        args=[*FERRULE, "--workspace", str(tmp_path), "--dialect", "claude"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    client: Any
    async with asyncio.timeout(LIMIT_SECONDS), Client(command, mode=era) as client:
        names = [one.name for one in (await client.list_tools()).tools]
        done = await client.call_tool("Read", {"file_path": str(tmp_path / "a.txt")})

    assert {"Read", "Edit", "Bash"} <= set(names)
    assert "one" in done.content[0].text


def test_an_answer_that_is_no_json_is_an_error_of_its_own_request():
    answer = json.loads(line_of(JSONRPCResponse(jsonrpc="2.0", id=7, result={"half": "\ud800"})))

    assert (answer["id"], answer["error"]["code"]) == (7, -32603)


async def test_lines_are_put_together_and_those_that_are_too_long_are_left_out():
    read_from, write_to = os.pipe()
    lines = LineReader(read_from, limit_bytes=10)
    lines.start()
    os.write(write_to, b"one\ntw")
    os.write(write_to, b"o\n" + b"x" * 11 + b"\n" + b"y" * 10 + b"\n\nlast")
    os.close(write_to)
    async with asyncio.timeout(LIMIT_SECONDS):
        heard = [line async for line in lines]
    os.close(read_from)

    assert heard == [b"one", b"two", None, b"y" * 10, b"", b"last"]


async def test_a_message_of_many_megabytes_goes_both_ways(tmp_path):
    (tmp_path / "long.txt").write_text("x" * 100_000)
    async with program(*FERRULE, "--yes", folder=tmp_path) as server:
        await server.greet()
        content = "\n".join(["y" * 1000] * 5000)
        written = await server.ask(
            "tools/call", {"name": "create_file", "arguments": {"path": "big.txt", "content": content}}
        )
        listed = await server.ask("tools/list")

    assert written["result"]["isError"] is False
    assert len((tmp_path / "big.txt").read_text().strip()) == len(content)
    assert len(json.dumps(listed)) > 4096
