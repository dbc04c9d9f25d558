"""What a note says about an output that was cut is what works in that session."""

import json
import re

import pytest

from ferrule import Engine
from ferrule.agent.session import Session
from ferrule.dialects import FAMILIES
from ferrule.models.cues import said
from ferrule.models.recorder import Scripted
from ferrule.serve.mcp import Outputs

LINES = 60_000
HINT = re.compile(r"The full output is kept as (\w+): (.*)$", re.MULTILINE)


def hint(notes) -> tuple[str, str]:
    found = HINT.search("\n".join(notes))
    assert found is not None
    return found[1], found[2]


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_model_reads_the_rest_by_what_the_note_says(tmp_path, family):
    model = Scripted(said("ok"), workspace=tmp_path)
    async with Session(tmp_path, model=model, dialect=family, state=tmp_path / "state", ask=lambda _: True) as session:
        reply = await session.engine.call("shell", command=f"seq 1 {LINES}")
        name, given = hint(reply.notes)[1].removesuffix(" reads it.").split(" ", 1)
        middle = await session.engine.call(name, **json.loads(given), offset=LINES // 2, limit=1)

    assert str(LINES // 2) in middle.text


async def test_without_a_model_the_note_names_the_command(tmp_path):
    async with Engine(tmp_path, state=tmp_path / "state", ask=lambda _: True) as engine:
        reply = await engine.call("shell", command=f"seq 1 {LINES}")
        kept, where = hint(reply.notes)
        whole = (await engine.output(kept)).text

    assert where == f"ferrule output {kept}"
    assert whole is None or whole.count("\n") >= LINES


async def test_a_client_of_the_server_is_told_the_resource(tmp_path):
    async with Engine(tmp_path, state=tmp_path / "state", ask=lambda _: True) as engine:
        outputs = Outputs(engine)
        reply = await engine.call("shell", command=f"seq 1 {LINES}")
        outputs.note(reply)
        uri = hint(reply.notes)[1].removeprefix("the resource ").removesuffix(" has it.")
        read = await outputs.read(uri)

    assert read is not None
    assert f"\n{LINES // 2}\n" in read["contents"][0]["text"]
