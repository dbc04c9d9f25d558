"""An engine on an empty workspace, with somebody who says yes."""

import pytest

from ferrule import Engine


@pytest.fixture
async def engine(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Engine(workspace, ask=lambda question: question.kind == "call") as opened:
        yield opened


@pytest.fixture
def root(engine, tmp_path):
    """The workspace's folder."""
    return tmp_path / "workspace"
