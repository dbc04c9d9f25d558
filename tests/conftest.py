"""What holds for every test: its own state folder, the marks of the seeds' rows, golden files, and another user."""

import gc
import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from ferrule.models.hosts import ROWS
from tests.golden import Golden
from tests.ordinary.person import BOTH, Person, UnavailableError, myself, ordinary

# Time is measured in bench/, never asserted in a test: a busy machine must not fail one.
settings.register_profile("ferrule", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ferrule")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        choices=("compare", "write"),
        default="compare",
        help="compare with the golden files, or write them anew",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "contract(*rows): the rows of the seeds' contracts that a test proves")


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as there are cores: every third test waits for a process, a pipe or a clock."""
    return max(1, len(os.sched_getaffinity(0)) * 3 // 2) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pytest_collection_finish() -> None:
    """What was collected lives to the end: a collection of garbage that looks through all of it takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders for state, one for each test.

    Apart from the folders of `tmp_path`: to make one of those, pytest reads the names of all that there are, which
    takes longer with every test.
    """
    above = tmp_path_factory.mktemp("states")
    return (above / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_state(states: Iterator[Path]) -> Iterator[None]:
    """No test reads the user's settings or writes into the user's state; `tmp_path` stays empty for the test itself."""
    folder = next(states)
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FERRULE_STATE", str(folder / "state"))
        (folder / "settings.toml").touch()
        patch.setenv("FERRULE_SETTINGS", str(folder / "settings.toml"))
        # A model follows from these, and no test may ask a real one.
        for name in {key for row in ROWS.values() for key in row.keys} | {"FERRULE_MODEL"}:
            patch.delenv(name, raising=False)
        # Nor is the keyring of whoever runs this: a key that a test keeps would take the place of theirs.
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        patch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
        patch.setenv("LLAMACPP_BASE_URL", "http://127.0.0.1:9/v1")
        yield


@pytest.fixture
def unconfined(own_state: None) -> None:
    """Commands of this test run outside the sandbox: for tests that look at their processes from outside."""
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write('[sandbox]\nuse = "none"\n')


@pytest.fixture
def asking(own_state: None) -> None:
    """Confined commands of this test ask, also where they could be taken back: for tests of the questions."""
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write("[sandbox]\nauto_allow = false\n")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(write=request.config.getoption("--golden") == "write")


@pytest.fixture
def other_user(request: pytest.FixtureRequest) -> Iterator[Person]:
    """A user without the rights of root, in a home of its own; a test that has none is skipped, and that is said."""
    try:
        with ordinary() as person:
            yield person
    except UnavailableError as why:
        _untested(request, f"Ferrule as an ordinary user: {why}")


@pytest.fixture(params=BOTH)
def person(request: pytest.FixtureRequest) -> Iterator[Person]:
    """Whoever runs the tests, then a user without the rights of root. Who has none of them is tried once."""
    if request.param == "another user":
        if os.geteuid() != 0:
            pytest.skip("This user is an ordinary one already.")
        yield request.getfixturevalue("other_user")
        return
    with myself() as me:
        yield me


def _untested(request: pytest.FixtureRequest, reason: str) -> NoReturn:
    """Skip, and say so in the summary: what a machine cannot do is a gap in the proof."""
    message = warnings.WarningMessage(
        pytest.PytestWarning(f"NOT TESTED ON THIS MACHINE: {reason}"), pytest.PytestWarning, str(request.path), 0
    )
    request.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": message, "nodeid": request.node.nodeid, "when": "runtest", "location": None}
    )
    pytest.skip(reason)
