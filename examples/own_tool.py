"""A tool of one's own, beside the built-in ones. Run it: python examples/own_tool.py

It prints:

> count_words: Count the words of a file.
> done 3
> error There is no file at missing.txt; look with glob first.
"""

import asyncio
import tempfile
from pathlib import Path

from ferrule import Access, Context, Engine, ToolFailure, tool


@tool(touches=lambda path: [Access.read(path)])
def count_words(path: str, ctx: Context) -> int:
    """Count the words of a file."""
    try:
        with open(ctx.path(path), encoding="utf-8") as file:
            return len(file.read().split())
    except FileNotFoundError as error:
        raise ToolFailure(f"There is no file at {path}; look with glob first.") from error


async def main(folder: str) -> None:
    async with Engine(folder, tools=[count_words]) as engine:
        shown = next(entry for entry in engine.definitions() if entry["name"] == "count_words")
        print(f"{shown['name']}: {shown['description']}")
        for path in ("a.txt", "missing.txt"):
            reply = await engine.call("count_words", path=path)
            print(reply.status, reply.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        Path(made, "a.txt").write_text("one two three\n")
        asyncio.run(main(made))
