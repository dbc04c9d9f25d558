"""What holds for every test: its own state folder, the marks of the seeds' rows, and golden files."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.golden import Golden

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


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads the user's settings or writes into the user's state; `tmp_path` stays empty for the test itself."""
    folder = tmp_path_factory.mktemp("ferrule")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FERRULE_STATE", str(folder / "state"))
        (folder / "settings.toml").touch()
        patch.setenv("FERRULE_SETTINGS", str(folder / "settings.toml"))
        yield


@pytest.fixture
def unconfined(own_state: None) -> None:
    """Commands of this test run outside the sandbox: for tests that look at their processes from outside."""
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write('[sandbox]\nuse = "none"\n')


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(write=request.config.getoption("--golden") == "write")
