"""A driver for each worker, homes for the scenes, and a loud word about what cannot be tested on a machine."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.faults.stage import Stage

MEMORY = "/dev/shm"


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with Stage() as running:
        yield running


@pytest.fixture
def home() -> Iterator[Path]:
    """In memory where that can be had: thousands of fsyncs on a disk take minutes. Every user may enter it."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def cannot(request: pytest.FixtureRequest) -> Callable[[str], NoReturn]:
    """Skip, and say so in the summary: a fault that cannot be injected on this machine is a gap in the proof."""

    def skip(reason: str) -> NoReturn:
        message = warnings.WarningMessage(
            pytest.PytestWarning(f"NOT TESTED ON THIS MACHINE: {reason}"), pytest.PytestWarning, str(request.path), 0
        )
        request.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": message, "nodeid": request.node.nodeid, "when": "runtest", "location": None}
        )
        pytest.skip(reason)

    return skip
