"""Ways to confine commands, tried where they work for the user at hand; a loud word where one does not."""

import warnings
from collections.abc import Callable

import pytest

from tests.ordinary.person import Person
from tests.ordinary.session import ways_of

Needs = Callable[[Person, str], None]


@pytest.fixture
def needs(request: pytest.FixtureRequest) -> Needs:
    """Skip where this user's commands cannot be confined this way, and say so in the summary."""

    def needed(person: Person, way: str) -> None:
        why = ways_of(person).get(way, "unknown to this engine")
        if not why:
            return
        reason = f"{way} for {person.title}: {why}"
        message = warnings.WarningMessage(
            pytest.PytestWarning(f"NOT TESTED ON THIS MACHINE: {reason}"), pytest.PytestWarning, str(request.path), 0
        )
        request.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": message, "nodeid": request.node.nodeid, "when": "runtest", "location": None}
        )
        pytest.skip(reason)

    return needed
