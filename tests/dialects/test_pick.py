"""Which dialect a model gets, by its id, however a provider spells it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule import ConfigError, Engine, Settings, pick
from ferrule.dialects import FAMILIES, SMALLEST


@each_row(
    ("model", "dialect"),
    [
        pytest.param("claude-opus-4-5", "claude", id="claude"),
        pytest.param("claude-3-5-sonnet-20241022", "claude", id="claude-with-a-date"),
        pytest.param("gpt-5.2", "codex", id="gpt"),
        pytest.param("gpt-4o-mini", "codex", id="gpt-4o"),
        pytest.param("chatgpt-4o-latest", "codex", id="chatgpt"),
        pytest.param("gpt-oss-120b", "codex", id="gpt-oss"),
        pytest.param("gpt-5-codex", "codex", id="gpt-codex"),
        pytest.param("codex-mini-latest", "codex", id="codex"),
        pytest.param("o1", "codex", id="o1"),
        pytest.param("o3-mini", "codex", id="o3"),
        pytest.param("o4-mini-2025-04-16", "codex", id="o4"),
        pytest.param("gemini-3-pro", "gemini", id="gemini"),
        pytest.param("models/gemini-2.5-flash", "gemini", id="gemini-api"),
        pytest.param("llama3.1:8b", "claude", id="llama"),
        pytest.param("olmo-2-32b", "claude", id="an-o-without-a-number"),
        pytest.param("omni-moderation-latest", "claude", id="another-o"),
        pytest.param("qwen3-coder", "claude", id="qwen"),
        pytest.param("gemma-3", "claude", id="gemma-is-no-gemini"),
        pytest.param("", "claude", id="nothing"),
        pytest.param("///:::...", "claude", id="separators"),
        pytest.param("anthropic/claude-3.5-sonnet", "claude", id="openrouter-claude"),
        pytest.param("anthropic/claude-3.5-sonnet:beta", "claude", id="openrouter-variant"),
        pytest.param("openai/gpt-5:online", "codex", id="openrouter-gpt-variant"),
        pytest.param("openai/o3", "codex", id="openrouter-o3"),
        pytest.param("google/gemini-2.5-pro:free", "gemini", id="openrouter-gemini-variant"),
        pytest.param("openrouter/openai/gpt-4.1", "codex", id="two-providers"),
        pytest.param("openrouter/auto", "claude", id="openrouter-auto"),
        pytest.param("deepseek/deepseek-chat-v3.1:free", "claude", id="openrouter-other"),
        pytest.param("gemini/gemma-3-27b", "claude", id="a-provider-is-no-model"),
        pytest.param("gpt4all/mistral-7b", "claude", id="another-provider-that-is-no-model"),
        pytest.param("openai:gpt-5.2", "codex", id="colon"),
        pytest.param("google_genai:gemini-3-pro", "gemini", id="colon-gemini"),
        pytest.param("openai:o1", "codex", id="colon-o1"),
        pytest.param("ft:gpt-4o-mini-2024-07-18:acme::B7xYz", "codex", id="fine-tuned"),
        pytest.param("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude", id="bedrock"),
        pytest.param("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude", id="bedrock-region"),
        pytest.param("openai.gpt-oss-120b-1:0", "codex", id="bedrock-gpt"),
        pytest.param("meta.llama3-1-70b-instruct-v1:0", "claude", id="bedrock-llama"),
        pytest.param(
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-haiku-v1:0",
            "claude",
            id="bedrock-arn",
        ),
        pytest.param("bedrock/eu.openai.gpt-oss-20b-1:0", "codex", id="bedrock-by-way-of-a-router"),
        pytest.param("claude-opus-4@20250514", "claude", id="vertex-claude"),
        pytest.param("vertex_ai/gemini-2.5-pro", "gemini", id="vertex"),
        pytest.param(
            "projects/p/locations/us-central1/publishers/google/models/gemini-2.5-pro-preview@001",
            "gemini",
            id="vertex-path",
        ),
        pytest.param("azure/gpt-4o", "codex", id="azure"),
        pytest.param("github_copilot/claude-sonnet-4", "claude", id="copilot"),
        pytest.param("gpt-oss:20b", "codex", id="ollama"),
        pytest.param("  GPT-5  ", "codex", id="blanks-and-case"),
        pytest.param("Gemini-3-Pro", "gemini", id="case"),
    ],
)
def test_a_model_gets_the_dialect_that_it_speaks(model, dialect):
    assert pick(model) == dialect


@pytest.mark.parametrize(
    ("model", "window", "dialect"),
    [
        pytest.param("qwen2.5-coder-1.5b-q4_k_m.gguf", 32_768, "ah", id="a-file"),
        pytest.param("local:~/models/Qwen3.GGUF", None, "ah", id="a-file-by-its-path"),
        pytest.param("claude-tiny", 8_192, "ah", id="a-small-window"),
        pytest.param("gpt-x", 15_999, "ah", id="just-too-small"),
        pytest.param("gpt-x", 16_000, "codex", id="just-large-enough"),
        pytest.param("llama-3", None, "claude", id="nobody-knows"),
    ],
)
def test_a_small_model_gets_the_smallest_dialect(model, window, dialect):
    assert pick(model, window=window) == dialect
    assert pick(model, {"": "pi"}, window=window) == "pi"


async def test_no_dialect_has_smaller_tools_than_the_smallest(tmp_path):
    sizes = {}
    for name in FAMILIES:
        async with Engine(tmp_path, dialect=name, state=tmp_path / "state") as engine:
            sizes[name] = len(json.dumps(engine.definitions()))

    assert min(sizes, key=lambda name: sizes[name]) == SMALLEST


@each_row(
    ("model", "overrides", "dialect"),
    [
        pytest.param("qwen3-coder", {"qwen": "pi"}, "pi", id="a-beginning"),
        pytest.param("openrouter/qwen/qwen3-coder:free", {"qwen3": "pi"}, "pi", id="without-the-providers"),
        pytest.param("openrouter/qwen/qwen3-coder", {"openrouter/": "opencode"}, "opencode", id="by-the-provider"),
        pytest.param("claude-opus-4-5", {"claude": "amp"}, "amp", id="instead-of-the-usual-one"),
        pytest.param("gpt-5.2", {"gpt-": "ah", "gpt-5": "pi"}, "pi", id="the-longest-counts"),
        pytest.param("gpt-5.2", {"gpt-5": "pi", "gpt-": "ah"}, "pi", id="in-any-order"),
        pytest.param("gpt-4.1", {"gpt-": "ah", "gpt-5": "pi"}, "ah", id="only-one-fits"),
        pytest.param("us.anthropic.claude-x-v1:0", {"claude-x": "amp"}, "amp", id="behind-dots"),
        pytest.param("mistral-large", {"": "gemini"}, "gemini", id="an-empty-beginning-fits-all"),
        pytest.param("mistral-large", {"large": "gemini"}, "claude", id="a-middle-is-no-beginning"),
        pytest.param("GPT-5", {"Gpt-5": "amp"}, "amp", id="case"),
        pytest.param("gpt-5", {}, "codex", id="none"),
    ],
)
def test_a_user_may_choose_another(model, overrides, dialect):
    assert pick(model, overrides) == dialect


@given(st.text(max_size=60))
def test_every_id_has_a_dialect(model):
    assert pick(model) in FAMILIES


@given(st.sampled_from(["claude-x", "gpt-x", "gemini-x", "o3"]), st.lists(st.sampled_from("abcxyz"), max_size=5))
def test_folders_in_front_of_a_model_change_nothing(model, folders):
    assert pick("/".join([*folders, model])) == pick(model)


@pytest.mark.parametrize(
    ("given_dialect", "model", "settings", "dialect"),
    [
        pytest.param(None, "gpt-5", Settings(), "codex", id="by-the-model"),
        pytest.param("pi", "gpt-5", Settings(), "pi", id="what-is-given-counts"),
        pytest.param(None, None, Settings(dialect="ah"), "ah", id="the-setting-where-no-model-is-named"),
        pytest.param(None, "gpt-5", Settings(dialects={"gpt": "amp"}), "amp", id="the-setting-for-a-model"),
    ],
)
def test_an_engine_speaks_the_dialect_of_its_model(tmp_path, given_dialect, model, settings, dialect):
    engine = Engine(tmp_path, dialect=given_dialect, model=model, settings=settings)

    assert engine.dialect.name == dialect


def test_a_dialect_that_there_is_not_is_refused_at_once(tmp_path):
    with pytest.raises(ConfigError, match="klingon"):
        Engine(tmp_path, model="gpt-5", settings=Settings(dialects={"gpt": "klingon"}))
