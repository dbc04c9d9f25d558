"""A real release of a public package, made again as edits and as patches in every dialect: the same bytes each time."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine
from ferrule.core.tool import Face
from ferrule.dialects import FAMILIES, load_dialect
from tests.catalog import lay_out
from tests.patches import codex_patch
from tests.replay.history import edits, versions


@pytest.fixture
def home() -> Iterator[Path]:
    """In memory where that can be had: every edit is written through to the disk, and there are thousands."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


def found(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def face_for(family: str, *tools: str) -> Face:
    """The family's own face for one of the tools, else the one that a model of another family would use."""
    own = [face for tool in tools for face in load_dialect(family).faces if face.tool == tool and face.shown]
    others = [face for name in FAMILIES for face in load_dialect(name).faces if face.tool == tools[0] and face.shown]
    return (own or others)[0]


def edit_call(face: Face, path: str, old: str, new: str) -> Call:
    values: dict[str, Any] = {"path": path, "old": old, "new": new}
    if face.tool == "multi_edit":
        values = {"path": path, "edits": [{"old": old, "new": new}]}
    return Call(face.name, face.advertised(values))


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_release_made_as_edits_has_the_bytes_of_the_release(family, home):
    older, newer = versions()
    workspace = home / "workspace"
    lay_out(workspace, older)
    read, edit = face_for(family, "read"), face_for(family, "edit", "multi_edit")
    made = 0
    async with Engine(workspace, dialect=family, ask=lambda question: True, state=home / "state") as engine:
        for path in sorted(older):
            if older[path] == newer[path]:
                continue
            (seen,) = await engine.run([Call(read.name, read.advertised({"path": path, "offset": 1, "limit": 10}))])
            assert seen.ok, seen
            for piece in edits(older[path].decode(), newer[path].decode()):
                (reply,) = await engine.run([edit_call(edit, path, piece.old, piece.new)])
                assert reply.ok, (path, piece, reply)
                made += 1

    assert found(workspace) == newer
    assert made > 500


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_release_made_as_one_patch_has_the_bytes_of_the_release_and_goes_back_with_one_undo(family, home):
    older, newer = versions()
    workspace = home / "workspace"
    lay_out(workspace, older)
    read, face = face_for(family, "read"), face_for(family, "patch")
    patch = codex_patch(dict(older), dict(newer))
    async with Engine(workspace, dialect=family, ask=lambda question: True, state=home / "state") as engine:
        for path in sorted(older):
            await engine.run([Call(read.name, read.advertised({"path": path, "offset": 1, "limit": 10}))])
        (reply,) = await engine.run([Call(face.name, face.advertised({"patch": patch}))])
        assert reply.ok, reply
        assert found(workspace) == newer

        await engine.undo()

    assert found(workspace) == older
