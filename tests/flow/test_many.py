"""A thousand calls at once: all answered, in order, with bounded workers."""

import asyncio
import os

from ferrule import Call, Engine, Settings, tool
from ferrule.settings import LimitSettings


async def test_a_thousand_calls_of_every_kind_are_answered_in_order(tmp_path):
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(f"text {number}\n")
    calls = []
    for number in range(1000):
        name = f"{number % 50}.txt"
        calls.append(
            (
                Call("Read", {"path": name}),
                Call("Read", {"path": f"missing{number}"}),
                Call("edit_file", {"path": name, "old_str": "text", "new_str": "text"}),
                Call("nothing", {}),
            )[number % 4]
        )
    calls[500] = Call("Grep", {"pattern": "text"})
    calls[501] = Call("Bash", {"cmd": "echo hi"})

    async with Engine(tmp_path, ask=lambda _: True) as engine:
        await engine.run([calls[501]])  # what a session opens once stays open
        before = len(os.listdir("/proc/self/fd"))
        replies = await engine.run(calls)
        after = len(os.listdir("/proc/self/fd"))

    assert [reply.name for reply in replies] == [call.name for call in calls]
    assert {reply.status for at, reply in enumerate(replies) if at % 4 == 0 and at != 500} == {"done"}
    assert after <= before + 4


async def test_no_more_calls_run_at_once_than_the_settings_say(tmp_path):
    running, most = 0, 0

    @tool(touches=[], inline=True)
    async def busy() -> None:
        """Count who is here."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    async with Engine(tmp_path, tools=[busy], settings=Settings(limits=LimitSettings(parallel=7))) as engine:
        await engine.run([Call("busy")] * 200)

    assert most == 7


async def test_two_hundred_edits_of_one_file_all_arrive(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"<{number}>\n" for number in range(200)))

    async with Engine(tmp_path, ask=lambda _: True) as engine:
        replies = await engine.run(
            [Call("edit_file", {"path": "a.txt", "old_str": f"<{n}>", "new_str": f"[{n}]"}) for n in range(200)]
        )

    assert all(reply.ok for reply in replies)
    assert (tmp_path / "a.txt").read_text() == "".join(f"[{number}]\n" for number in range(200))
