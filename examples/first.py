"""Read, edit and undo, in a folder made for it. Run it: python examples/first.py

It prints:

> 1: def greet():
> 2:     return "hello"
> edit_file done, lines 2 to 2
>     return "good morning"
>     return "hello"
"""

import asyncio
import tempfile
from pathlib import Path

from ferrule import Call, Engine


async def main(folder: Path) -> None:
    file = folder / "greet.py"
    file.write_text('def greet():\n    return "hello"\n')
    # Writes ask; this answer allows every call and no other folder.
    async with Engine(folder, ask=lambda question: question.kind == "call") as engine:
        read, edited = await engine.run(
            [
                Call("Read", {"path": "greet.py"}),
                Call("edit_file", {"path": "greet.py", "old_str": '"hello"', "new_str": '"good morning"'}),
            ]
        )
        print(read.text)
        first, last = edited.result["lineRange"]
        print(f"{edited.name} {edited.status}, lines {first} to {last}")
        print(file.read_text().splitlines()[1])

        await engine.undo("greet.py")
        print(file.read_text().splitlines()[1])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(main(Path(made)))
