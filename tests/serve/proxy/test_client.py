"""A real client program, pi from npm, in a whole conversation through `ferrule proxy` onto each wire."""

import sys
from pathlib import Path

import pytest
from bench.clients.play import MODELS, converse
from bench.clients.programs import CLIENTS
from bench.clients.script import TURNS

MODULES = Path(sys.prefix) / "npm" / "node_modules"
PI = next(client for client in CLIENTS if client.name == "pi")


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.skipif(not (MODULES / PI.program).exists(), reason="npm could not fetch the packages of tests/npm")
async def test_a_real_program_holds_a_whole_conversation_on_a_wire(wire, tmp_path):
    out = await converse(PI, MODULES, wire, tmp_path / "talk")

    assert (out.faults, out.exit, out.turns, out.outside) == ([], 0, len(TURNS), [])
    assert all(row["input"] for row in out.rows if row["status"] == 200)
    assert out.tokens > 0
