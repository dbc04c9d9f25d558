"""A whole agent loop over one model API, with a model that only pretends. Run it: python examples/loop.py

It prints:

> the model is shown 19 tools
> Read done
> Edit done
> the model says: It says good morning now.
> print("good morning")
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from ferrule import Engine
from ferrule.core.content import Text
from ferrule.wire import ModelRequest, ModelResponse, Turn, Use, call_of, load_wire, result_of

API = "anthropic"  # or openai-chat, openai-responses or gemini: nothing below knows which
MODEL = "claude-opus-4-5"

EDIT = {"file_path": "greet.py", "old_string": "hello", "new_string": "good morning"}
SCRIPT = iter(
    (
        Use("toolu_1", "Read", {"file_path": "greet.py"}),
        Use("toolu_2", "Edit", EDIT),
        Text("It says good morning now."),
    )
)


def send(body: dict[str, Any]) -> dict[str, Any]:
    """Stands for the HTTP call: takes a body of the API and gives an answer of the API."""
    assert body["model"] == MODEL
    part = next(SCRIPT)
    said = ModelResponse(id="msg_1", model=MODEL, parts=(part,), reason="tools" if isinstance(part, Use) else "end")
    answer: dict[str, Any] = load_wire(API).said_out(said)
    return answer


async def main(folder: str) -> None:
    wire = load_wire(API)
    async with Engine(folder, model=MODEL, ask=lambda question: question.kind == "call") as engine:
        definitions = wire.definitions_in(engine.definitions(wire=API))
        print(f"the model is shown {len(definitions)} tools")
        turns = [Turn("user", (Text("Make greet.py more polite."),))]
        while True:
            asked = ModelRequest(model=MODEL, turns=tuple(turns), definitions=definitions)
            said = wire.said_in(send(wire.asked_out(asked)))
            turns.append(Turn("assistant", said.parts))
            uses = [part for part in said.parts if isinstance(part, Use)]
            if not uses:
                break
            replies = await engine.run([call_of(use) for use in uses])
            for reply in replies:
                print(reply.name, reply.status)
            turns.append(Turn("user", tuple(result_of(reply) for reply in replies)))
        print("the model says:", "".join(part.text for part in said.parts if isinstance(part, Text)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        file = Path(made, "greet.py")
        file.write_text('print("hello")\n')
        asyncio.run(main(made))
        print(file.read_text(), end="")
