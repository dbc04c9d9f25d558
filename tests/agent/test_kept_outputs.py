"""What a note says about an output that was cut is what works in that session."""

import json
import re

import pytest

from ferrule import Engine
from ferrule.agent.session import Session
from ferrule.dialects.dialect import FAMILIES
from ferrule.models.cues import said
from ferrule.models.scripted import Scripted
from ferrule.serve.outputs import Outputs

LINES = 60_000
HINT = re.compile(r"The full output is kept as (\w+): (.*)$", re.MULTILINE)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_model_reads_the_rest_by_what_the_note_says(tmp_path, family):
    model = Scripted(said("ok"), workspace=tmp_path)
    async with Session(tmp_path, model=model, dialect=family, state=tmp_path / "state", ask=lambda _: True) as session:
        reply = await session.engine.call("shell", command=f"seq 1 {LINES}")
        _, hint = HINT.search("\n".join(reply.notes)).groups()
        name, given = hint.removesuffix(" reads it.").split(" ", 1)
        middle = await session.engine.call(name, **json.loads(given), offset=LINES // 2, limit=1)

    assert str(LINES // 2) in middle.text


async def test_without_a_model_the_note_names_the_command(tmp_path):
    async with Engine(tmp_path, state=tmp_path / "state", ask=lambda _: True) as engine:
        reply = await engine.call("shell", command=f"seq 1 {LINES}")
        kept, hint = HINT.search("\n".join(reply.notes)).groups()
        whole = (await engine.output(kept)).text

    assert hint == f"ferrule output {kept}"
    assert whole is None or whole.count("\n") >= LINES


async def test_a_client_of_the_server_is_told_the_resource(tmp_path):
    async with Engine(tmp_path, state=tmp_path / "state", ask=lambda _: True) as engine:
        outputs = Outputs(engine)
        reply = await engine.call("shell", command=f"seq 1 {LINES}")
        outputs.note(reply)
        uri = re.search(r"the resource (\S+) has it", "\n".join(reply.notes))[1]
        read = await outputs.read(uri)

    assert f"\n{LINES // 2}\n" in read["contents"][0]["text"]
