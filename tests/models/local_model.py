"""The small model that tests ask for real, and the one lock under which it is in memory: one process at a time."""

import importlib.util
import os
import tempfile
import warnings
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from ferrule.models import RetryNotice
from ferrule.models.local import LocalModel
from ferrule.system.folder import Locks
from ferrule.wire import Delta, ModelRequest, ToolChoice

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), ".venv", "model")
_SECONDS = 300.0
"""Whoever waits so long waits for a process that does not end."""


def model_path() -> str:
    """Where `scripts/provide.py` put the model; empty where it could not be had."""
    try:
        names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".gguf"))
    except OSError:
        names = []
    return os.path.join(FOLDER, names[0]) if names else ""


@contextmanager
def held(request: pytest.FixtureRequest) -> Iterator[str]:
    """The model's path, while no other test of this user has it in memory.

    Without a model the test is skipped, and the summary says so; its grammar and its reader are tested all the same.
    """
    path = model_path()
    if not path or importlib.util.find_spec("xllamacpp") is None:
        reason = f"{request.node.name}, which needs xllamacpp and the model that scripts/provide.py fetches"
        message = warnings.WarningMessage(
            pytest.PytestWarning(f"NOT TESTED ON THIS MACHINE: {reason}"), pytest.PytestWarning, str(request.path), 0
        )
        request.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": message, "nodeid": request.node.nodeid, "when": "runtest", "location": None}
        )
        pytest.skip(reason)
    user = getattr(os, "getuid", lambda: "")()
    folder = os.path.join(tempfile.gettempdir(), f"ferrule-tests-{user}")
    with Locks(folder, seconds=_SECONDS).hold(["local-model"]):
        yield path


class Pressed(LocalModel):
    """A model that is told at each question what it must do: so small a one calls nothing of its own accord."""

    choices: tuple[ToolChoice, ...] = ()
    """For one question after the other; the last one also for all that follow."""
    answer_tokens = 60
    asks = 0

    async def ask(self, asked: ModelRequest) -> AsyncGenerator[Delta | RetryNotice, None]:
        choice = self.choices[min(self.asks, len(self.choices) - 1)]
        self.asks += 1
        async for delta in super().ask(replace(asked, choice=choice, max_tokens=self.answer_tokens)):
            yield delta
