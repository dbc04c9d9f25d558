"""Entering an engine again, and calls that were approved elsewhere."""

import asyncio

import pytest

from ferrule import Call, ConfigError, Decision, Engine, Settings
from ferrule.settings import Permissions

HOOK = Call("create_file", {"path": ".git/hooks/x", "content": "x"}, "mine")
WRITE = Call("create_file", {"path": "a.txt", "content": "x"}, "mine")


async def test_an_engine_that_was_closed_opens_again(tmp_path):
    engine = Engine(tmp_path, dialect="amp")
    for text in ("one", "two"):
        (tmp_path / "a.txt").write_text(text)
        async with engine:
            reply = await engine.call("Read", path="a.txt")
        assert text in reply.text
    with pytest.raises(ConfigError, match="not open"):
        await engine.call("Read", path="a.txt")


async def test_an_engine_that_is_entered_twice_stays_open_until_it_is_left_twice(tmp_path):
    engine = Engine(tmp_path, dialect="amp")

    async def work() -> str:
        async with engine:
            return (await engine.call("list_directory", path=".")).status

    async with engine:
        assert list(await asyncio.gather(work(), work())) == ["done", "done"]
        assert (await engine.call("list_directory", path=".")).ok
    with pytest.raises(ConfigError, match="not open"):
        await engine.call("list_directory", path=".")


async def test_an_engine_of_another_loop_says_so(tmp_path):
    engine = Engine(tmp_path)

    async def enter() -> None:
        async with engine:
            pass

    async with engine:
        with pytest.raises(ConfigError, match="open in another event loop"):
            await asyncio.to_thread(asyncio.run, enter())
    await asyncio.to_thread(asyncio.run, enter())


async def test_an_approved_call_runs_once_where_it_would_ask(tmp_path):
    async with Engine(tmp_path, dialect="amp") as engine:
        decided = await engine.decide(WRITE)
        assert isinstance(decided, Decision)
        assert decided.verdict == "ask"
        [refused] = await engine.run([WRITE])
        [written] = await engine.run([WRITE], approved={"mine"})
        [again] = await engine.run([Call("create_file", {"path": "a.txt", "content": "y"}, "mine")])

    assert [reply.status for reply in (refused, written, again)] == ["rejected-by-user", "done", "rejected-by-user"]
    assert (tmp_path / "a.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param(WRITE, "denied-by-rule", id="a rule denies"),
        pytest.param(HOOK, "writing-protected-file", id="a protected file"),
        pytest.param(Call("Read", {"path": "/etc/hostname"}, "mine"), "outside-workspace", id="another folder"),
    ],
)
async def test_an_approval_goes_over_no_refusal(tmp_path, call, code):
    settings = Settings(permissions=Permissions(deny=("create_file(a.txt)",)))
    async with Engine(tmp_path, dialect="amp", settings=settings) as engine:
        [reply] = await engine.run([call], approved=["mine"])

    assert (reply.ok, reply.error and reply.error.error_code) == (False, code)


async def test_an_approval_of_no_call_is_a_mistake(tmp_path):
    async with Engine(tmp_path, dialect="amp") as engine:
        with pytest.raises(ConfigError, match=r"names no call of this message: other\. Give each Call its id"):
            await engine.run([WRITE], approved={"other"})
