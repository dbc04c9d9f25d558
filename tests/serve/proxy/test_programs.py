"""How each client program is started: the environment and the options by which it asks the proxy."""

import pytest

from ferrule.serve.proxy.server import PROGRAMS, start_of

URL, TOKEN = "http://127.0.0.1:8790", "the-token"
USER = {
    "PATH": "/bin",
    "ANTHROPIC_API_KEY": "sk-ant-user",
    "OPENAI_API_KEY": "sk-user",
    "GEMINI_API_KEY": "AIza-user",
    "GOOGLE_API_KEY": "AIza-other",
}


@pytest.mark.parametrize("program", ["mine", "/usr/local/bin/mine", *PROGRAMS])
def test_every_program_finds_the_proxy_and_no_key_of_the_user(program):
    start = start_of([program, "--flag", "a b"], URL, TOKEN, USER)

    environment = start.environment
    assert start.command[0] == program
    assert start.command[-2:] == ["--flag", "a b"]
    assert environment["ANTHROPIC_BASE_URL"] == environment["GOOGLE_GEMINI_BASE_URL"] == URL
    assert environment["OPENAI_BASE_URL"] == f"{URL}/v1"
    assert environment["OPENAI_API_KEY"] == environment["GEMINI_API_KEY"] == TOKEN
    assert environment["PATH"] == "/bin"
    assert not any(value.startswith(("sk-", "AIza")) for value in environment.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_token_is_in_no_command_line(program):
    assert not any(TOKEN in word for word in start_of([program, "x"], URL, TOKEN, USER).command)


def test_claude_is_given_the_token_as_such_and_no_key_to_ask_about():
    environment = start_of(["/opt/bin/claude"], URL, TOKEN, USER).environment

    assert environment["ANTHROPIC_AUTH_TOKEN"] == TOKEN
    assert "ANTHROPIC_API_KEY" not in environment


def test_codex_is_told_of_a_provider_before_its_own_options():
    command = start_of(["codex", "exec", "do it"], URL, TOKEN, USER).command

    assert command[-2:] == ["exec", "do it"]
    assert f'model_providers.ferrule.base_url="{URL}/v1"' in command
    assert 'model_providers.ferrule.env_key="OPENAI_API_KEY"' in command


def test_other_variables_of_the_user_stay():
    environment = start_of(["mine"], URL, TOKEN, {**USER, "LANG": "de_DE", "EDITOR": "vi {x}"}).environment

    assert (environment["LANG"], environment["EDITOR"]) == ("de_DE", "vi {x}")
    assert "NO_PROXY" not in environment


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"HTTP_PROXY": "http://corp:3128"}, "127.0.0.1"),
        ({"http_proxy": "http://corp:3128", "no_proxy": "a.example"}, "a.example,127.0.0.1"),
        ({"ALL_PROXY": "socks5://corp", "NO_PROXY": "b.example"}, "b.example,127.0.0.1"),
    ],
)
def test_a_web_proxy_is_not_asked_for_this_machine(there, expected):
    environment = start_of(["mine"], URL, TOKEN, {**USER, **there}).environment

    assert environment["NO_PROXY"] == environment["no_proxy"] == expected
