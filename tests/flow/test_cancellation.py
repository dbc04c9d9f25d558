"""Cancelling a message at every moment leaves no process, lock, temporary file or half edit."""

import asyncio
import os

from ferrule import Call, Engine
from ferrule.core.call import Done, Event
from tests.rows import each_row

CALLS = [
    Call("edit_file", {"path": "a.txt", "old_str": "one", "new_str": "1"}, "edit"),
    Call("create_file", {"path": "deep/er/b.txt", "content": "new"}, "create"),
    Call("Grep", {"pattern": "two"}, "grep"),
    Call("glob", {"filePattern": "**/*"}, "glob"),
    Call("Read", {"path": "c.txt"}, "read"),
    Call("Bash", {"cmd": "sleep 300 & setsid sleep 300 & echo x > d.txt; sleep 300"}, "bash"),
    Call("edit_file", {"path": "a.txt", "old_str": "two", "new_str": "2"}, "last"),
]
MOMENTS = [*range(12), 15, 20, 30, 45, 70, 100, 200]


def left_behind(folder, state):
    """Whatever a call must not leave: processes, temporary files, announced writes, logs."""
    out = []
    for name in os.listdir("/proc"):
        if name.isdigit() and name != str(os.getpid()):
            try:
                if os.readlink(f"/proc/{name}/cwd").startswith(str(folder)):
                    out.append(f"process {name}")
            except OSError:
                continue
    for where, _, names in os.walk(folder):
        out += [os.path.join(where, name) for name in names if name.startswith(".ferrule")]
    for where, _, names in os.walk(state):
        if os.path.basename(where) in ("pending", "logs"):
            out += [os.path.join(where, name) for name in names]
    return out


async def message(tmp_path, moment, stop):
    """Run the calls and stop them after so many turns of the loop; what came of it."""
    folder, state = tmp_path / "workspace", tmp_path / "state"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "c.txt").write_text("three\n")
    heard: list[Event] = []
    async with asyncio.timeout(60), Engine(folder, ask=lambda _: True, state=state, on_event=heard.append) as engine:
        running = asyncio.create_task(engine.run(CALLS))
        for _ in range(moment):
            await asyncio.sleep(0)
        stop(engine, running)
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert left_behind(folder, state) == []
        text = (folder / "a.txt").read_text()
        new = text.replace("1", "one").replace("2", "two").replace("one", "one!")
        again = await engine.call("edit_file", path="a.txt", old_str=text, new_str=new)
        assert again.ok, again
    return ended, [event.reply for event in heard if isinstance(event, Done)], text


@each_row("moment", MOMENTS)
async def test_cancelling_the_task_cancels_every_call_and_passes_on(tmp_path, moment):
    ended, told, text = await message(tmp_path, moment, lambda _, running: running.cancel())

    assert isinstance(ended, asyncio.CancelledError)
    assert text in ("one\ntwo\n", "1\ntwo\n")
    told = [reply for reply in told if reply.id in {call.id for call in CALLS}]
    if told:
        assert sorted(reply.id for reply in told) == sorted(call.id for call in CALLS)
        assert told[-1].status in ("cancelled", "done")


@each_row("moment", MOMENTS)
async def test_cancelling_through_the_engine_answers_every_call_once(tmp_path, moment):
    def stop(engine, running):
        if moment == 0:
            running.cancel()  # it has not begun: there is nothing for the engine to stop yet
        else:
            engine.cancel()

    ended, _, text = await message(tmp_path, moment, stop)

    if moment == 0:
        assert isinstance(ended, asyncio.CancelledError)
        return
    assert [reply.id for reply in ended] == [call.id for call in CALLS]
    statuses = {reply.id: reply.status for reply in ended}
    assert statuses["bash"] == statuses["last"] == "cancelled"
    assert text == ("1\ntwo\n" if statuses["edit"] == "done" else text)
    assert text in ("one\ntwo\n", "1\ntwo\n")
