"""Names of models: hosts, short names, who chooses, keys, addresses, and what is known of a model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.models import ModelError, Prices
from ferrule.models.bodies import SPEECH
from ferrule.models.catalog import CATALOG, SHORT, about, choose_by_precedence, load_model, resolve_name
from ferrule.models.connection import Route
from ferrule.models.hosts import ROWS, find_host, is_near
from ferrule.settings import KnownModel, ModelHost, Models
from ferrule.wire import Usage
from tests.architecture.project import python
from tests.rows import each_row

NONE = Models()
KEYS = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "o-key", "GEMINI_API_KEY": "g-key"}

NAMES = [
    pytest.param("anthropic:claude-opus-4-5", ("anthropic", "claude-opus-4-5"), id="host and model"),
    pytest.param("claude-opus-4-5", ("anthropic", "claude-opus-4-5"), id="claude"),
    pytest.param("gpt-5.2", ("openai", "gpt-5.2"), id="gpt"),
    pytest.param("o3-mini", ("openai", "o3-mini"), id="o3"),
    pytest.param("gemini-3-pro", ("gemini", "gemini-3-pro"), id="gemini"),
    pytest.param("google:gemini-3-pro", ("google", "gemini-3-pro"), id="another name of a host"),
    pytest.param("ollama:qwen3:8b", ("ollama", "qwen3:8b"), id="a model with a colon"),
    pytest.param(
        "openrouter:anthropic/claude-opus-5.5", ("openrouter", "anthropic/claude-opus-5.5"), id="with a maker"
    ),
    pytest.param("mine:m", ("mine", "m"), id="a host of the settings"),
    pytest.param("sonnet", ("anthropic", "claude-sonnet-5-5"), id="short"),
    pytest.param("haiku", ("ollama", "tiny"), id="short by the settings"),
    pytest.param("finder", ("ollama", "tiny"), id="two steps"),
    pytest.param("scripted:a.jsonl", ("scripted", "a.jsonl"), id="scripted"),
    pytest.param("local:/a/b:c.gguf", ("local", "/a/b:c.gguf"), id="local"),
]


@each_row(("name", "wanted"), NAMES)
def test_a_name_means_a_model_at_a_host(name, wanted):
    roles = {"haiku": "ollama:tiny", "finder": "haiku"}

    assert resolve_name(name, Models(roles=roles, hosts={"mine": ModelHost(url="https://x")})) == wanted


WRONG = [
    pytest.param("antropic:claude-opus-4-5", "Did you mean 'anthropic'", id="near"),
    pytest.param("nowhere:m", "There are: anthropic, openai", id="nothing near"),
    pytest.param("qwen3", "ollama:qwen3", id="no host"),
    pytest.param("qwen3:8b", "as in ollama:qwen3:8b", id="no host but a colon"),
    pytest.param("opsu", "Did you mean 'opus'", id="near a short name"),
    pytest.param("anthropic:", "names no model", id="no model"),
    pytest.param("anthropic", "names no model", id="a host only"),
    pytest.param("local", "names no file", id="no file"),
    pytest.param("a", "circle: a → b → a", id="a circle"),
    pytest.param("", "HOST:MODEL", id="nothing"),
]


@each_row(("name", "words"), WRONG)
def test_a_name_that_means_nothing_is_refused_with_a_hint(name, words):
    with pytest.raises(ConfigError, match=words):
        load_model(name, Models(roles={"a": "b", "b": "a"}), environment=KEYS)


def test_a_flag_comes_before_the_environment_and_that_before_the_settings():
    settings = Models(default="s")

    assert choose_by_precedence("f", settings, {"FERRULE_MODEL": "e"}) == ("f", "flag", "")
    assert choose_by_precedence(None, settings, {"FERRULE_MODEL": "e"}) == ("e", "environment", "")
    assert choose_by_precedence("", settings, {"FERRULE_MODEL": " "}) == ("s", "setting", "")


@pytest.mark.parametrize(
    ("keys", "stored", "here", "wanted"),
    [
        pytest.param(["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], (), "", "anthropic", id="the first row of the table"),
        pytest.param(["GOOGLE_API_KEY"], (), "", "gemini", id="the second variable of a host"),
        pytest.param(["XAI_API_KEY"], ["ANTHROPIC_API_KEY"], "", "xai", id="the environment before what is kept"),
        pytest.param([], ["OPENAI_API_KEY"], "ollama:m", "openai", id="a key before a server"),
        pytest.param([], (), "ollama:m", "ollama", id="a server of this machine"),
    ],
)
def test_the_model_follows_from_the_keys_where_nobody_names_one(keys, stored, here, wanted):
    choice = choose_by_precedence(None, NONE, dict.fromkeys(keys, "k"), stored, lambda: here)

    assert resolve_name(choice.name, NONE).host == wanted
    assert choice.why.startswith("because")


def test_without_any_model_it_says_how_to_choose_one():
    with pytest.raises(ModelError, match=r"(?s)ferrule models.*ferrule login.*--model.*FERRULE_MODEL") as caught:
        choose_by_precedence(None, NONE, {})

    assert caught.value.kind == "none"


@pytest.mark.parametrize("name", ["anthropic:m", "openai:m", "openai-chat:m", "gemini:m", "openrouter:m"])
def test_a_missing_key_is_told_by_the_name_of_its_variable(name):
    with pytest.raises(ModelError, match=r"[A-Z]+_API_KEY.* is not set") as caught:
        load_model(name, NONE, environment={})

    assert caught.value.kind == "no-key"


@pytest.mark.parametrize("name", ["ollama:m", "vllm:m", "llamacpp:m", "lmstudio:m"])
def test_a_host_on_this_machine_needs_no_key(name):
    assert load_model(name, NONE, environment={}).name == name


def test_either_variable_of_google_will_do():
    assert find_host("gemini", NONE, {"GOOGLE_API_KEY": "k"}).key == "k"
    assert find_host("gemini", NONE, {"GOOGLE_API_KEY": "k", "GEMINI_API_KEY": "g"}).key == "g"


def test_a_header_that_says_who_asks_stands_for_a_key():
    settings = Models(hosts={"anthropic": ModelHost(headers={"Authorization": "Bearer ${TOKEN}"})})

    assert load_model("anthropic:m", settings, environment={"TOKEN": "t"}).wire == "anthropic"


def test_a_header_whose_variable_is_not_set_is_no_empty_one():
    settings = Models(hosts={"office": ModelHost(url="https://x", headers={"X-Team": "${TEAM}"})})

    with pytest.raises(ConfigError, match="The header 'X-Team' of the host office needs the variable TEAM"):
        find_host("office", settings, {})
    assert find_host("office", settings, {"TEAM": ""}).headers == {"X-Team": ""}


ADDRESSES = [
    pytest.param("ollama", {}, "http://127.0.0.1:11434/v1", id="ollama"),
    pytest.param("ollama", {"OLLAMA_HOST": "box:9999"}, "http://box:9999/v1", id="a machine and a port"),
    pytest.param("ollama", {"OLLAMA_HOST": "box"}, "http://box:11434/v1", id="a machine"),
    pytest.param("ollama", {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1", id="everywhere"),
    pytest.param("ollama", {"OLLAMA_HOST": "https://box.example/"}, "https://box.example:11434/v1", id="https"),
    pytest.param("openai", {"OPENAI_BASE_URL": "https://proxy.example/v1/"}, "https://proxy.example/v1", id="openai"),
    pytest.param("anthropic", {"ANTHROPIC_BASE_URL": "https://p.example/v1"}, "https://p.example", id="version twice"),
    pytest.param(
        "anthropic", {"ANTHROPIC_BASE_URL": "http://p.example"}, "http://p.example", id="plain, as the user says"
    ),
]


@each_row(("name", "environment", "url"), ADDRESSES)
def test_an_address_may_come_of_the_usual_variable(name, environment, url):
    assert find_host(name, NONE, environment).url == url


def test_the_settings_come_before_the_environment():
    settings = Models(hosts={"openai": ModelHost(url="https://s.example", key_env="MY_KEY", api="openai-chat")})
    host = find_host("openai", settings, {"OPENAI_BASE_URL": "https://e.example", "MY_KEY": " k \n"})

    assert (host.url, host.key, host.key_env, host.api) == ("https://s.example", "k", "MY_KEY", "openai-chat")


BAD = [
    pytest.param("ftp://x", "must begin with https", id="scheme"),
    pytest.param("x.example", "must begin with https", id="none"),
    pytest.param("https://", "name a machine", id="no machine"),
    pytest.param("https://me:pw@x", "name or a password", id="password"),
    pytest.param("https://x/\r\nhost: y", "must begin", id="line ends"),
    pytest.param("https://x/?key=abc", "must begin", id="a question in it"),
    pytest.param("https://bücher.example", "must begin", id="letters that need another spelling"),
    pytest.param("https://x:99999", "look at its port", id="no such port"),
    pytest.param("https://x:", "look at its port", id="no port behind the colon"),
    pytest.param("https://x:one", "look at its port", id="a word for a port"),
    pytest.param("https://[::1", "names no machine", id="half an address"),
    pytest.param("https://[::1]80", "names no machine", id="a port without a colon"),
    pytest.param("https://::1", "names no machine", id="an address without brackets"),
    pytest.param("https://::]", "names no machine", id="half a pair of brackets"),
]


@each_row(("url", "words"), BAD)
def test_an_address_that_cannot_be_used_is_refused(url, words):
    with pytest.raises(ConfigError, match=words):
        find_host("mine", Models(hosts={"mine": ModelHost(url=url)}), {})


@settings(max_examples=2_000)
@given(machine=st.text(alphabet="a1:[].%@-_", min_size=1, max_size=12))
def test_an_address_that_is_taken_can_be_gone_to(machine):
    """What is wrong with an address is said when it is read, and not when somebody waits for an answer."""
    try:
        host = find_host("mine", Models(hosts={"mine": ModelHost(url=f"http://{machine}")}), {})
    except ConfigError:
        return
    assert Route(host.url).target("/x") == b"/x"


def test_a_host_without_an_address_is_refused():
    with pytest.raises(ConfigError, match=r"models\.hosts\.mine\.url"):
        find_host("mine", Models(hosts={"mine": ModelHost()}), {})


@each_row("row", [pytest.param(row, id=name) for name, row in ROWS.items()])
def test_no_key_is_sent_in_the_clear_beyond_this_machine_by_default(row):
    machine = row.url.partition("://")[2].partition("/")[0]

    assert row.url.startswith("https://") or is_near(machine)
    assert row.api in SPEECH


NEAR = [("127.0.0.1:80", True), ("localhost", True), ("[::1]:8080", True), ("192.168.1.5", True), ("box.local:1", True),
        ("example.com", False), ("8.8.8.8:80", False), ("127.0.0.1.example.com", False)]  # fmt: skip


@each_row(("machine", "is_so"), NEAR)
def test_a_machine_is_near_or_not(machine, is_so):
    assert is_near(machine) is is_so


def test_the_longest_beginning_holds():
    assert about("claude-opus-4-5-20251101", {}).begins == "claude-opus-4-5"
    assert about("claude-opus-5-5", {}).prices == Prices(4, 20, 0.2, 5)
    assert about("anthropic/claude-opus-5.5", {}).prices == Prices(4, 20, 0.2, 5)
    assert about("gpt-5.2-codex", {}).window == 400_000


def test_a_model_that_nobody_knows_has_cautious_limits_and_no_prices():
    assert about("qwen3:8b", {})[1:4] == (128_000, 8_192, None)


def test_the_settings_know_better():
    known = {"qwen3": KnownModel(window=32_000, input=0.1, output=0.4), "claude-opus-5-5": KnownModel(cache_read=9)}

    assert about("qwen3:8b", known)[1:4] == (32_000, 8_192, Prices(0.1, 0.4, 0.1, 0.1))
    assert about("claude-opus-5-5", known).prices == Prices(4, 20, 9, 5)


def test_the_catalog_is_in_order():
    beginnings = [one.begins for one in CATALOG]

    assert len(set(beginnings)) == len(beginnings)
    for one in CATALOG:
        assert one.most_output <= one.window
        assert one.prices is None or one.prices.cache_read <= one.prices.input <= one.prices.output
    assert {about(resolve_name(name, NONE).model, {}).prices is not None for name in SHORT} == {True}


def test_a_cost_counts_each_token_once():
    assert Prices(1, 10, 0.1, 2).cost(Usage(100, 10, 50, 20)) == pytest.approx((30 + 100 + 5 + 40) / 1e6)


SECRETS = [
    pytest.param({"ANTHROPIC_API_KEY": "sk-\x00-secret"}, {}, id="a key with a control character"),
    pytest.param({"ANTHROPIC_API_KEY": "sk-…-secret"}, {}, id="a key that was copied from a page"),
    pytest.param({"W": "secret\r\nx: y"}, {"X-Token": "${W}"}, id="a header with a line end"),
]


@pytest.mark.parametrize(("environment", "headers"), SECRETS)
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(environment, headers):
    with pytest.raises(ConfigError, match="cannot be sent") as caught:
        find_host("anthropic", Models(hosts={"anthropic": ModelHost(headers=headers)}), environment)

    assert "secret" not in str(caught.value)


def test_naming_a_model_loads_nothing_that_only_asking_needs(tmp_path):
    code = """
import os, sys
from ferrule.settings import Models
from ferrule.models.catalog import load_model
load_model("anthropic:claude-opus-5-5", Models(), environment={"ANTHROPIC_API_KEY": "k"})
print(*sorted({"h11", "httpx2", "httpcore2", "anyio", "ferrule.wire.anthropic", "urllib.request"} & set(sys.modules)))
"""

    assert python(code, home=tmp_path).split() == []
