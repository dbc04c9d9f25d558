"""The range that a reading names is the range that it shows: whoever goes on behind it misses no line."""

import re

import pytest

from ferrule import Engine
from ferrule.dialects.dialect import FAMILIES

LINES = 7_000
SHOWN = re.compile(r"\bL(\d+)\b")
RANGE = re.compile(r"lines (\d+)(?: to |-)(\d+)")


@pytest.mark.parametrize("width", [1, 40, 300])
@pytest.mark.parametrize("family", FAMILIES)
async def test_what_is_named_is_shown_and_what_follows_it_visits_every_line_once(tmp_path, family, width):
    path = tmp_path / "long.txt"
    path.write_text("".join(f"L{number} {'x' * width}\n" for number in range(1, LINES + 1)))
    visited: list[int] = []
    async with Engine(tmp_path, dialect=family, state=tmp_path / "state") as engine:
        while len(visited) < LINES:
            reply = await engine.call("read", path=str(path), offset=len(visited) + 1, limit=5_000)
            said = "\n".join((*reply.notes, reply.text))
            named = RANGE.search(said)
            # Where nothing is named, all that is left was shown.
            first, last = map(int, named.groups()) if named else (len(visited) + 1, LINES)
            shown = list(dict.fromkeys(map(int, SHOWN.findall(reply.text))))
            assert shown == list(range(first, last + 1))
            visited += shown

    assert visited == list(range(1, LINES + 1))


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_reading_that_nobody_limits_costs_about_ten_thousand_tokens(tmp_path, family):
    (tmp_path / "long.txt").write_text("".join(f"some words of line {number} of many\n" for number in range(6_000)))
    async with Engine(tmp_path, dialect=family, state=tmp_path / "state") as engine:
        broad = await engine.call("read", path="long.txt", offset=1)
        wanted = await engine.call("read", path="long.txt", offset=1, limit=1_900)

    assert len(broad.text) <= (51_000 if family == "ah" else 42_000)  # ah shows both ends, by its own limit
    assert len(wanted.text) > len(broad.text) or family in ("ah", "amp")


@pytest.mark.parametrize("size", [500_000, 9_000_000, 70_000_000])
async def test_a_large_file_is_edited_where_a_part_of_it_was_read(tmp_path, size):
    line = "line {} of a large file\n"
    with (tmp_path / "large.txt").open("w") as file:
        for number in range(1, size // len(line)):
            file.write(line.format(number))
    edit = {"file_path": str(tmp_path / "large.txt"), "old_string": "line 500 of", "new_string": "LINE 500 of"}
    async with Engine(tmp_path, dialect="claude", state=tmp_path / "state", ask=lambda _: True) as engine:
        unread = await engine.call("Edit", **edit)
        await engine.call("Read", file_path=edit["file_path"])
        again = await engine.call("Edit", **edit)
        await engine.call("Read", file_path=edit["file_path"], offset=450, limit=100)
        done = await engine.call("Edit", **edit)

    assert unread.text == "File has not been read yet. Read it first before writing to it."
    assert again.text.startswith(f"{unread.text}\nReading it has failed: It has ")
    assert "give offset and limit to read part of it" in again.text
    assert done.ok
    with (tmp_path / "large.txt").open() as file:
        assert "LINE 500 of a large file\n" in [next(file) for _ in range(600)]
