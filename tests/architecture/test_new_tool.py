"""Adding a tool as CONTRIBUTING says: its blocks are put into a copy of the package, and the tool is used."""

import json
import re
import shutil
from pathlib import Path

import pytest

from .project import PACKAGE, ROOT, python

_BLOCK = re.compile(r"((?:^[^\n]+\n)+)\n^```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A paragraph, and the block of code below it."""
_FILE = re.compile(r"`(?:src/ferrule/)?((?:tools|dialects)/[\w./]+)`")
"""A file, below the package."""
_MOST_PLACES = 4
_USE = """
import asyncio, json, sys

package, folder = sys.argv[1:]
sys.path.insert(0, package)

import ferrule
from ferrule import Engine
from ferrule.core.call import Call
from ferrule.core.services import Planning
from ferrule.serve.mcp import ToolListCache
from ferrule.settings import Permissions, Settings

assert ferrule.__file__.startswith(package), ferrule.__file__
asked = []

def ask(question):
    asked.append((question.tool, question.kind))
    return False

async def main():
    rules = Permissions(deny=("Read(./denied.txt)",), ask=("Read(./asked.txt)",))
    async with Engine(folder, dialect="claude", settings=Settings(permissions=rules), ask=ask) as engine:
        async def call(name):
            (reply,) = await engine.run([Call("CountWords", {"file_path": f"{folder}/{name}"})])
            return reply.text if reply.ok or name == "words.txt" else reply.status

        told = {"shown": [one["name"] for one in engine.definitions()].count("CountWords")}
        told |= {name: await call(name) for name in ("words.txt", "denied.txt", "asked.txt")}
        listed = ToolListCache(engine).result("2025-11-25")["tools"]
        told["mcp"] = next(one for one in listed if one["name"] == "CountWords")
        engine.need(Planning).enter()
        told["planning"] = ["CountWords" in [face.name for face in engine.faces()], await call("words.txt")]
        told["asked"] = asked
        print(json.dumps(told))

asyncio.run(main())
"""


def blocks() -> dict[str, str]:
    """File → what CONTRIBUTING writes into it for a new tool."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## How to add a tool\n")[2].partition("\n## ")[0]
    return {_FILE.findall(above)[0]: block for above, block in _BLOCK.findall(section)}


def put(package: Path, name: str, block: str) -> None:
    """Write one block where CONTRIBUTING says it goes."""
    path = package / name
    if not path.exists():
        path.write_text(block, encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        after = json.dumps({**json.loads(before), **json.loads(block)})
    elif path.suffix == ".md":
        after = f"{before.rstrip()}\n\n{block}"
    else:
        old, new = ("".join(line[1:] for line in block.splitlines(True) if line[0] in marks) for marks in (" ", " +"))
        assert before.count(old) == 1
        after = before.replace(old, new)
    path.write_text(after, encoding="utf-8")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with the new tool in it."""
    copy = tmp_path_factory.mktemp("new-tool") / "ferrule"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, block in blocks().items():
        put(copy, name, block)
    return copy


def test_a_new_tool_is_written_in_at_most_four_places():
    """The folder of a family is one place."""
    places = {name.rpartition("/")[0] if name.startswith("dialects/") else name for name in blocks()}

    assert len(places) <= _MOST_PLACES
    assert len(blocks()) == 5


def test_a_tool_that_was_added_as_contributing_says_is_like_any_other(package, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("words.txt", "denied.txt", "asked.txt"):
        (folder / name).write_text("three small words\n")
    told = json.loads(python(_USE, str(package.parent), str(folder), home=tmp_path))

    assert told == {
        "shown": 1,
        "words.txt": "3 words",
        "denied.txt": "error",
        "asked.txt": "rejected-by-user",
        "asked": [["count_words", "call"]],
        "planning": [True, "3 words"],
        "mcp": {
            "name": "CountWords",
            "description": "Count the words in a file.",
            "inputSchema": json.loads(blocks()["dialects/claude/schemas.json"])["CountWords"],
            "title": "Count words",
            "annotations": {"title": "Count words", "readOnlyHint": True, "openWorldHint": False},
        },
    }
