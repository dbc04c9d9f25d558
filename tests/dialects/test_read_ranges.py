"""The range that a reading names is the range that it shows: whoever goes on behind it misses no line."""

import re

import pytest

from ferrule import Engine
from ferrule.dialects import FAMILIES

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


CUT = re.compile(r"(\d+) lines? (?:was|were) cut after")


@pytest.mark.parametrize("wide", ["x", "\u20ac"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_as_many_lines_are_said_to_be_cut_as_are_shown_without_their_end(tmp_path, family, wide):
    lengths = [500_000, 5_000, 3, 1_500, 2_500, *[3_000] * 300, 3]
    text = "".join(f"L{number} {wide * length} E{number}\n" for number, length in enumerate(lengths, 1))
    (tmp_path / "long.txt").write_text(text, encoding="utf-8")
    async with Engine(tmp_path, dialect=family, state=tmp_path / "state") as engine:
        for offset in (1, 2, 100, len(lengths)):
            reply = await engine.call("read", path="long.txt", offset=offset, limit=1_000)
            shown = set(map(int, SHOWN.findall(reply.text)))
            ended = set(map(int, re.findall(r"\bE(\d+)\b", reply.text)))
            said = sum(int(number) for number in CUT.findall("\n".join(reply.notes)))
            whole = "truncated" not in reply.text  # else the family's own bound has cut a line, and says so

            assert said == len(shown - ended) or not whole


@pytest.mark.parametrize("width", [1, 150, 1_900])
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "codex"])
async def test_a_search_says_how_many_of_the_lines_it_shows(tmp_path, family, width):
    (tmp_path / "many.txt").write_text("".join(f"L{number} {'x' * width}\n" for number in range(1, LINES + 1)))
    async with Engine(tmp_path, dialect=family, state=tmp_path / "state") as engine:
        reply = await engine.call("grep", pattern="^L[0-9]+ x", mode="lines")
        shown = [int(number) for number in re.findall(r"\bL(\d+) x", reply.text)]
        said = [int(number) for number in re.findall(r"Showing (\d+) of", "\n".join(reply.notes))]

    if "... [truncated" in reply.text:  # the family leaves the middle out, and nothing is said of what is shown
        assert said == []
        assert f"Of {LINES} lines found" in "\n".join(reply.notes)
    else:
        assert shown == list(range(1, len(shown) + 1))
        assert said == ([len(shown)] if family != "amp" else [])  # it shows so many of each file, and says that


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
