"""One Messages API for all tests of the SDK, and the program that the SDK starts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.sdk.messages_api import MessagesApi
from tests.cli.sdk.program import Program


@pytest.fixture(scope="session")
def api() -> Iterator[MessagesApi]:
    made = MessagesApi()
    yield made
    made.close()


@pytest.fixture
def program(api: MessagesApi, tmp_path: Path, unconfined: None) -> Program:
    return Program(api, tmp_path)
