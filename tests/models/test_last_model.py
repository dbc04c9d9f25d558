"""The model that the chat remembers."""

import pytest

from ferrule.models.catalog import last_model, remember_model
from ferrule.settings import Models

KEY = {"ANTHROPIC_API_KEY": "a-key"}


@pytest.mark.parametrize(
    ("name", "then", "now", "environment", "wanted"),
    [
        pytest.param("opus", "", "", KEY, "opus", id="remembered"),
        pytest.param("ollama:qwen3", "opus", "opus", {}, "ollama:qwen3", id="over the settings"),
        pytest.param("ollama:qwen3", "", "opus", {}, "", id="the settings name one since"),
        pytest.param("ollama:qwen3", "", "", {"FERRULE_MODEL": "opus"}, "", id="the environment names one"),
        pytest.param("opus", "", "", {}, "", id="the key is gone"),
        pytest.param("scripted:a.jsonl", "", "", {}, "", id="a recording"),
    ],
)
def test_a_model_is_remembered_until_another_one_is_named(name, then, now, environment, wanted):
    remember_model(name, Models(default=then))

    assert last_model(Models(default=now), environment) == wanted


def test_nothing_is_remembered_at_first():
    assert last_model(Models(), KEY) == ""
