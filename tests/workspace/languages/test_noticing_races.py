"""New errors after edits while others use the same server: nobody is shown an old text, and nothing wrong is told."""

import asyncio
import json
from pathlib import Path

from tests.workspace.languages.noticed import Edited
from tests.workspace.languages.test_noticing import brief, heard, settings


def texts(folder: Path) -> list[str]:
    """What the server was shown of documents, in order."""
    log = [json.loads(line) for line in (folder / "txt.log").read_text().splitlines()]
    told = [one["params"] for one in log if one.get("method") in ("textDocument/didOpen", "textDocument/didChange")]
    return [
        one["contentChanges"][-1]["text"] if "contentChanges" in one else one["textDocument"]["text"] for one in told
    ]


async def test_who_asks_while_an_old_text_is_shown_waits_until_the_new_one_is(tmp_path):
    here = await brief(tmp_path, after_seconds=60.0)
    here.write(a_txt="old\n")
    server = await here.open("a.txt")
    before = here.noticing.begin([here.path("a.txt")])
    here.write(a_txt="new !x\n")
    assert before is not None
    noticing = asyncio.create_task(here.noticing.end(before, [here.path("a.txt")]))
    asking = asyncio.create_task(server.sync(here.path("a.txt")))
    notes, document = await asyncio.gather(noticing, asking)
    await here.close()

    assert document.text == "new !x\n"
    assert "x" in notes[here.path("a.txt")]
    assert texts(tmp_path)[-1] == "new !x\n"


async def test_who_is_cancelled_at_any_moment_leaves_no_old_text_and_keeps_nobody_waiting(tmp_path):
    here = await brief(tmp_path, after_seconds=60.0)
    here.write(a_txt="0\n")
    server = await here.open("a.txt")
    for turns in range(25):
        before = here.noticing.begin([here.path("a.txt")])
        here.write(a_txt=f"{turns} !x\n")
        assert before is not None
        noticing = asyncio.create_task(here.noticing.end(before, [here.path("a.txt")]))
        for _ in range(turns):
            await asyncio.sleep(0)
        noticing.cancel()
        await asyncio.wait([noticing])
        async with asyncio.timeout(60):
            document = await server.sync(here.path("a.txt"))
        assert document.text == f"{turns} !x\n"
        assert document.signature is not None
    await here.close()


async def test_many_edits_of_slow_files_take_no_longer_than_one(tmp_path):
    """The time is that of the message, not of each file: fifty that are never answered about are given up together."""
    (tmp_path / "work").mkdir()
    here = Edited(tmp_path / "work", settings(tmp_path, "pull", after_seconds=0.5))
    names = [f"f{number}.txt" for number in range(50)]
    for name in names:
        (here.folder / name).write_text("old\n")
    await here.open("f0.txt")
    paths = [here.path(name) for name in names]
    before = here.noticing.begin(paths)
    assert before is not None
    for name in names:
        (here.folder / name).write_text("STALL !x\n")
    async with asyncio.timeout(20):
        assert await here.noticing.end(before, paths) == {}
    await here.close()

    assert len(heard(tmp_path, "textDocument/didOpen")) <= 50
