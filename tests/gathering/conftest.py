"""A world of its own for each test: no folder of the user's who runs the tests is looked into."""

from pathlib import Path

import pytest
from tests.gathering.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "AMP_TOOLBOX", "FERRULE_TOOLBOX"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)
