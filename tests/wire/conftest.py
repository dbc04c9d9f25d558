"""The official packages are loaded whatever their compilation warns of: that is not ours to mend."""

import importlib
import warnings

import pytest


@pytest.fixture(scope="session")
def packages() -> None:
    """All of them, so that importing them again in a test compiles nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (
            "anthropic.types",
            "google.genai.types",
            "mcp.types",
            "openai.types.chat",
            "openai.types.responses",
        ):
            importlib.import_module(name)
