"""A store in a folder of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.output.store import Store

from .keeping import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def store(directory: Path, clock: Clock) -> AsyncIterator[Store]:
    store = Store(str(directory), keep_days=7, keep_bytes=1_000_000, clock=clock)
    yield store
    await store.close()
