"""What a tool does wrong stays with its own call: odd declarations, odd results, odd endings."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from ferrule import Access, Call, ConfigError, Context, Engine, Tool, tool
from ferrule.core.tool import Args


class Nothing(Args, frozen=True, kw_only=True):
    pass


class Declares(Tool[Nothing, str]):
    """A tool whose access is whatever the test says."""

    name = "declares"
    args = Nothing
    words = "Declare something odd."

    def __init__(self, touches: Any) -> None:
        self._touches = touches

    def access(self, args: Nothing, ctx: Context) -> Any:
        return self._touches()

    async def run(self, args: Nothing, ctx: Context) -> str:
        return "ran"


async def test_an_access_that_can_be_read_only_once_is_still_asked_about(tmp_path):
    def touches() -> Iterator[Access]:
        yield Access.write(str(tmp_path / "a"))

    async with Engine(tmp_path, tools=[Declares(touches)]) as engine:
        reply = await engine.call("declares")

    assert reply.status == "rejected-by-user"


@pytest.mark.parametrize(
    "touches",
    [
        pytest.param(lambda: None, id="nothing-at-all"),
        pytest.param(lambda: ["a"], id="a-word"),
        pytest.param(lambda: [("path", "write", "/a", "")], id="a-plain-tuple"),
        pytest.param(lambda: [Access("host", "write", ["h"])], id="a-list-as-key"),  # type: ignore[arg-type]
        pytest.param(lambda: 1 / 0, id="a-bug"),
    ],
)
async def test_an_odd_access_fails_its_own_call_and_holds_up_nobody(tmp_path, touches):
    (tmp_path / "a.txt").write_text("x\n")
    async with asyncio.timeout(20), Engine(tmp_path, tools=[Declares(touches)], ask=lambda _: True) as engine:
        odd, read = await engine.run([Call("declares"), Call("Read", {"path": "a.txt"})])
        later = await engine.call("create_file", path="a.txt", content="y")

    assert (odd.status, read.status, later.status) == ("error", "done", "done")


@pytest.mark.parametrize(
    "touches",
    [
        pytest.param(lambda: [Access.command("git status", "/"), Access.command("rm -rf x", "/")], id="two-commands"),
        pytest.param(lambda: [Access.process("make")], id="a-process"),
    ],
)
async def test_a_plain_command_excuses_no_other(tmp_path, touches):
    async with Engine(tmp_path, tools=[Declares(touches)]) as engine:
        reply = await engine.call("declares")

    assert reply.status == "rejected-by-user"


class Pair(NamedTuple):
    word: str


class Record(msgspec.Struct):
    word: str


@pytest.mark.parametrize(
    ("value", "result"),
    [
        pytest.param(Record("a\x1b[31mb"), {"word": "ab"}, id="struct"),
        pytest.param(Pair("a\u202eb"), ["ab"], id="named-tuple"),
        pytest.param({"k": ["x\x07"]}, {"k": ["x"]}, id="nested"),
        pytest.param({1: "x"}, {"1": "x"}, id="number-as-key"),
        pytest.param("\ud800", "\ufffd", id="half-a-pair"),
        pytest.param(["\ud800"] * 3, ["\ufffd"] * 3, id="half-pairs"),
        pytest.param(None, None, id="nothing"),
    ],
)
async def test_a_result_is_clean_json_whatever_it_was(tmp_path, value, result):
    @tool(touches=[])
    def give() -> object:
        """Give something."""
        return value

    async with Engine(tmp_path, tools=[give]) as engine:
        reply = await engine.call("give")

    assert (reply.status, reply.result) == ("done", result)


async def test_a_result_that_holds_itself_and_half_a_pair_ends(tmp_path):
    loop: list[Any] = ["\ud800"]
    loop.append(loop)

    @tool(touches=[])
    def give() -> object:
        """Give a circle."""
        return loop

    async with asyncio.timeout(20), Engine(tmp_path, tools=[give]) as engine:
        reply = await engine.call("give")

    assert reply.status == "error"


@pytest.mark.parametrize(
    "cmd",
    [
        r"yes $'\xff' | head -c 200000",
        "for i in $(seq 60000); do printf 界; done",
        "for i in $(seq 60000); do printf é; done #" + "x" * 5000,
    ],
)
async def test_the_exit_code_of_a_wide_output_is_kept(tmp_path, cmd):
    async with Engine(tmp_path, ask=lambda _: True) as engine:
        reply = await engine.call("Bash", cmd=cmd)

    assert reply.result.endswith("<exit_code>0</exit_code>")
    assert len(reply.result.encode()) <= 102_400
    assert [note for note in reply.notes if "kept as" in note] == [
        f"The full output is kept as {reply.output_id}: ferrule output {reply.output_id}"
    ]


async def test_a_write_that_was_cancelled_too_late_is_told(tmp_path):
    async with Engine(tmp_path, ask=lambda _: True) as engine:
        for number in range(30):
            running = asyncio.create_task(engine.run([Call("create_file", {"path": f"{number}.txt", "content": "x"})]))
            for _ in range(number):
                await asyncio.sleep(0)
            if number:
                engine.cancel()
            (reply,) = await running
            assert bool(reply.track_files) == (tmp_path / f"{number}.txt").exists()


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"pattern": "x", "glob": "{" + ",".join("abcdefghijkl") + "}" * 1}, id="braces"),
        pytest.param({"pattern": "x", "glob": "{a,b}" * 12}, id="too-many-alternatives"),
        pytest.param({"pattern": "x" * 100_000}, id="long-pattern"),
        pytest.param({"pattern": "\x00"}, id="nul"),
        pytest.param({"pattern": "(?P<n>a"}, id="unclosed"),
    ],
)
async def test_no_search_is_a_bug(tmp_path, values):
    async with Engine(tmp_path) as engine:
        reply = await engine.call("Grep", **values)

    assert reply.error is None or reply.error.error_code != "bug", reply


async def test_more_matches_of_one_file_are_noted(tmp_path):
    (tmp_path / "a.txt").write_text("x\n" * 30)
    async with Engine(tmp_path) as engine:
        reply = await engine.call("Grep", pattern="x")

    assert len(reply.result) == 10
    assert any("more than 10" in note for note in reply.notes)


async def test_an_engine_that_is_not_open_says_so(tmp_path):
    engine = Engine(tmp_path)
    for use in (engine.cancel, engine.events, lambda: engine.store):
        with pytest.raises(ConfigError, match="not open"):
            use()
