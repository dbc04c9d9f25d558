"""Which models answer a request: rules, sizes, the model itself, the default, and the fallbacks behind them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.models import ModelError
from ferrule.models.catalog import NO_MODEL
from ferrule.serve.proxy.server import routing_of
from ferrule.serve.proxy.upstreams import Routes, size
from ferrule.settings import ModelHost, Models, ProxySettings, Routing, Settings
from tests.rows import each_row

MODELS = Models(hosts={"mine": ModelHost(url="http://127.0.0.1:1/v1")}, roles={"quick": "ollama:qwen3"})
RULES = {
    "claude-haiku-*": "ollama:tiny",
    "claude-*": "ollama:any-claude",
    "claude-opus-5-5": ("openai:gpt-6-sol", "deepseek:deepseek-chat"),
    "gpt-?": "ollama:gpt-single",
    "my-alias": "mine:m",
}
KEYED = ("openai:", "anthropic:", "mine:", "gemini:", "openrouter:")


def routes(default: str = "ollama:default", **rules: object) -> Routes:
    def chosen() -> str:
        if not default:
            raise ModelError(NO_MODEL, "none")
        return default

    return Routes(Routing(**rules), MODELS, chosen, lambda name: name.startswith(KEYED))  # type: ignore[arg-type]


@each_row(
    ("asked", "expected"),
    [
        pytest.param("claude-opus-5-5", ("openai:gpt-6-sol", "deepseek:deepseek-chat"), id="its-own-rule"),
        pytest.param("claude-haiku-4-5", ("ollama:tiny",), id="the-longer-pattern"),
        pytest.param("claude-sonnet-5", ("ollama:any-claude",), id="the-shorter-pattern"),
        pytest.param("CLAUDE-HAIKU-9", ("ollama:tiny",), id="patterns-take-any-case"),
        pytest.param("gpt-6", ("ollama:gpt-single",), id="one-letter"),
        pytest.param("gpt-66", ("openai:gpt-66",), id="not-two-letters"),
        pytest.param("my-alias", ("mine:m",), id="an-alias"),
        pytest.param("models/my-alias", ("mine:m",), id="as-gemini-names-it"),
        pytest.param("", ("ollama:default",), id="nothing"),
        pytest.param("whatever", ("ollama:default",), id="unknown"),
    ],
)
def test_a_rule_names_the_models_in_their_order(asked, expected):
    assert routes(models=RULES).chain(asked) == expected


@each_row(
    ("asked", "expected"),
    [
        ("claude-haiku-5", "small"),
        ("gpt-6-mini", "small"),
        ("gemini-3.8-flash-lite", "small"),
        ("claude-sonnet-5", "medium"),
        ("something-else", "medium"),
        ("claude-opus-5-5", "big"),
        ("gpt-6.1-sol", "big"),
        ("gemini-3-pro", "big"),
        ("minimal-model", "medium"),
        ("proper", "medium"),
        ("", "medium"),
    ],
)
def test_the_size_of_a_model_is_told_by_whole_words_of_its_name(asked, expected):
    assert size(asked) == expected


@pytest.mark.parametrize(
    ("sizes", "small", "medium", "big"),
    [
        ({"small": "ollama:s"}, "ollama:s", "ollama:s", "ollama:s"),
        ({"small": "ollama:s", "big": "ollama:b"}, "ollama:s", "ollama:b", "ollama:b"),
        ({"medium": "ollama:m"}, "ollama:m", "ollama:m", "ollama:m"),
        ({"small": "ollama:s", "medium": "ollama:m", "big": "ollama:b"}, "ollama:s", "ollama:m", "ollama:b"),
    ],
)
def test_a_size_that_is_not_set_takes_the_next_one(sizes, small, medium, big):
    made = routes(**sizes)

    asked = ("claude-haiku-5", "claude-sonnet-5", "claude-opus-5")
    assert [made.chain(one) for one in asked] == [(small,), (medium,), (big,)]


def test_a_star_comes_after_the_sizes_and_before_the_model_itself():
    assert routes(models={"*": "ollama:all"}, small="ollama:s").chain("gpt-mini") == ("ollama:s",)
    assert routes(models={"*": "ollama:all"}).chain("openai:gpt-6") == ("ollama:all",)


@each_row(
    ("asked", "expected"),
    [
        pytest.param("openai:gpt-5.5", "openai:gpt-5.5", id="host-and-model"),
        pytest.param("claude-opus-5-5", "anthropic:claude-opus-5-5", id="a-known-model-alone"),
        pytest.param("mine:some/model@1", "mine:some/model@1", id="a-host-of-the-settings"),
        pytest.param("openrouter:z-ai/glm-5:free", "openrouter:z-ai/glm-5:free", id="a-colon-in-the-model"),
        pytest.param("deepseek:deepseek-chat", "ollama:default", id="no-key-for-its-host"),
        pytest.param("nohost:model", "ollama:default", id="no-such-host"),
        pytest.param("quick", "ollama:default", id="a-role-of-the-user"),
        pytest.param("scripted:/etc/passwd", "ollama:default", id="a-recording"),
        pytest.param("local:/models/a.gguf", "ollama:default", id="a-file"),
        pytest.param(" scripted:x", "ollama:default", id="a-recording-behind-a-blank"),
        pytest.param("http://evil.example/v1:m", "ollama:default", id="an-address"),
        pytest.param("gemini:../../secret", "ollama:default", id="a-way-up"),
        pytest.param("gemini:m?key=x", "ollama:default", id="a-query"),
        pytest.param("gemini:m#x", "ollama:default", id="a-fragment"),
        pytest.param("openai:a\r\nx-evil: 1", "ollama:default", id="a-header"),
        pytest.param("openai:a b", "ollama:default", id="a-blank"),
        pytest.param("openai:\x1b[31m", "ollama:default", id="a-colour"),
        pytest.param("openai:\N{CYRILLIC SMALL LETTER A}", "ollama:default", id="another-alphabet"),
        pytest.param("openai:" + "x" * 300, "ollama:default", id="an-endless-name"),
        pytest.param("openai:", "ollama:default", id="no-model"),
    ],
)
def test_a_request_names_models_of_hosts_with_keys_and_nothing_else(asked, expected):
    assert routes().chain(asked) == (expected,)


def test_the_fallbacks_come_last_and_nobody_twice():
    made = routes(models={"a": ("ollama:x", "ollama:y")}, fallback=("ollama:y", "ollama:z"))

    assert made.chain("a") == ("ollama:x", "ollama:y", "ollama:z")
    assert made.chain("b") == ("ollama:default", "ollama:y", "ollama:z")


def test_without_any_model_it_is_said_how_to_name_one():
    with pytest.raises(ModelError, match="No model is chosen"):
        routes(default="").chain("x")


def test_a_rule_that_names_no_model_is_refused_at_once():
    with pytest.raises(ConfigError, match=r"The proxy cannot use 'nonsense'"):
        routes(models={"a": "nonsense"})


def test_the_list_has_what_can_be_asked_for_once_each_and_no_patterns():
    made = routes(models={**RULES, "*": "ollama:any-claude"}, small="ollama:s", fallback=("ollama:s",))

    names = made.names()
    assert names[:2] == ["claude-opus-5-5", "my-alias"]
    assert sorted(names) == sorted(set(names))
    assert not any(sign in name for name in names for sign in "*?[")
    assert {"ollama:tiny", "mine:m", "ollama:s", "ollama:default"} <= set(names)


def test_the_list_is_what_rules_name_where_no_model_is_chosen():
    assert routes(default="", models={"a": "mine:m"}).names() == ["a", "mine:m"]


@given(asked=st.text(max_size=40))
def test_every_request_finds_a_chain_of_models_that_the_user_has_or_hosts_with_keys(asked):
    chain = routes(models=RULES).chain(asked)

    targets = {"ollama:tiny", "ollama:any-claude", "openai:gpt-6-sol", "deepseek:deepseek-chat", "ollama:gpt-single"}
    for name in chain:
        known = name in targets | {"mine:m", "ollama:default"}
        assert known or (name.startswith(KEYED) and name.isascii() and name.isprintable() and ".." not in name)


@pytest.mark.parametrize(
    ("model", "rules", "expected"),
    [
        pytest.param(None, {}, {"a": ("ollama:profile",)}, id="the-settings"),
        pytest.param("ollama:one", {}, {"*": "ollama:one"}, id="one-model-takes-all"),
        pytest.param(
            "ollama:one", {"b": ("ollama:two",)}, {"*": "ollama:one", "b": ("ollama:two",)}, id="but-for-maps"
        ),
        pytest.param(None, {"a": ("ollama:two",)}, {"a": ("ollama:two",)}, id="a-map-comes-before-a-rule"),
    ],
)
def test_what_the_command_line_names_comes_before_the_settings(model, rules, expected):
    settings = Settings(
        proxy=ProxySettings(models={"a": ("ollama:profile",)}, small="ollama:s", fallback=("ollama:f",))
    )

    routing = routing_of(settings, None, model, rules)

    assert routing.models == expected
    assert routing.fallback == ("ollama:f",)
    assert routing.small == ("" if model else "ollama:s")


def test_a_profile_takes_the_place_of_all_rules():
    profile = Routing(models={"*": "ollama:p"})
    settings = Settings(
        proxy=ProxySettings(models={"a": "ollama:x"}, fallback=("ollama:f",), profiles={"night": profile})
    )

    assert routing_of(settings, "night", None, {}) == profile
    with pytest.raises(ConfigError, match=r"no profile 'day' under proxy\.profiles; there are: night"):
        routing_of(settings, "day", None, {})
