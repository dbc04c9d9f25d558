"""Keys that are kept: found again, removed, readable by nobody else, and in no text."""

import io
import os
import stat
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from ferrule.cli.main import run, with_command
from ferrule.core.errors import ConfigError
from ferrule.models.hosts import KeyStore, find_host, stored_key
from ferrule.settings import Models
from tests.cli.talk.terminals import Pty


def test_a_kept_key_is_found_until_it_is_removed_and_the_environment_comes_before_it():
    KeyStore().keep("OPENAI_API_KEY", "kept-key")
    kept = find_host("openai-chat", Models(), {}, stored_key)
    other = find_host("openai", Models(), {"OPENAI_API_KEY": "set"}, stored_key)

    assert (kept.key, kept.key_from) == ("kept-key", KeyStore().names()["OPENAI_API_KEY"])
    assert (other.key, other.key_from) == ("set", "environment")
    assert "kept-key" not in f"{kept!r}{stored_key('OPENAI_API_KEY')!r}"
    assert KeyStore().forget("OPENAI_API_KEY") is not None
    assert stored_key("OPENAI_API_KEY") is None


def test_the_file_is_readable_by_its_owner_alone():
    KeyStore().keep("XAI_API_KEY", "kept-key")

    assert stat.S_IMODE(os.stat(KeyStore().path).st_mode) == 0o600


def test_no_command_shows_a_kept_key(capsys):
    KeyStore().keep("MISTRAL_API_KEY", "kept-key")

    for words in (["login"], ["models"], ["models", "--json"], ["config", "show"]):
        assert run(words) == 0
    shown = capsys.readouterr()
    assert "mistral" in shown.out
    assert "kept-key" not in shown.out + shown.err


def test_words_without_a_command_are_a_task_and_one_word_is_not():
    assert with_command(["why is that?"]) == ["run", "why is that?"]
    assert with_command(["--", "explain"]) == ["run", "--", "explain"]
    assert with_command(["-m", "x"]) == ["run", "-m", "x"]
    assert with_command(["help", "run"]) == ["run", "--help"]
    for words in ([], ["explain"], ["call", "a b"], ["--version"], ["--model", "x", "run"]):
        assert with_command(words) == words


@pytest.mark.parametrize(
    ("words", "typed", "told"),
    [
        pytest.param(["anthropic", "sk-secret"], "", "in the shell's history", id="on the command line"),
        pytest.param(["anthropic", "--stdin"], "ANTHROPIC_API_KEY=sk-secret", "Give the key alone", id="with its name"),
        pytest.param(["anthropic", "--stdin"], "sk secret", "That is no key", id="with a blank"),
        pytest.param(["anthropic", "--stdin"], "\n", "The key is empty", id="nothing"),
        pytest.param(["ollama", "--stdin"], "sk-secret", "ollama wants no key", id="for a host without keys"),
        pytest.param(["antropic", "--stdin"], "sk-secret", "Did you mean 'anthropic'?", id="for no host"),
    ],
)
def test_what_is_no_key_is_not_kept_and_not_shown(capsys, monkeypatch, words, typed, told):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert run(["login", *words]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert "secret" not in said.out + said.err
    assert KeyStore().names() == {}


class Ring(KeyringBackend):
    """A keyring of this process."""

    priority = 5.0

    def __init__(self, *, locked=False):
        self.held: dict[tuple[str, str], str] = {}
        self.locked = locked

    def _open(self):
        if self.locked:
            raise KeyringLocked("sk-secret")

    def get_password(self, service, username):
        self._open()
        return self.held.get((service, username))

    def set_password(self, service, username, password):
        self._open()
        self.held[service, username] = password

    def delete_password(self, service, username):
        self._open()
        del self.held[service, username]


@pytest.fixture
def ring():
    """The system's keyring, for the time of a test."""
    before, one = keyring.get_keyring(), Ring()
    keyring.set_keyring(one)
    yield one
    keyring.set_keyring(before)


def test_where_there_is_a_keyring_the_key_is_in_it_and_in_no_file(ring, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-secret\n"))
    monkeypatch.delenv("XAI_API_KEY", raising=False)

    assert run(["login", "xai", "--stdin"]) == 0
    assert ring.held == {("ferrule", "XAI_API_KEY"): "sk-secret"}
    assert "secret" not in Path(KeyStore().path).read_text()
    assert find_host("xai", Models(), {}, stored_key).key == "sk-secret"
    assert run(["login"]) == 0
    assert "XAI_API_KEY         from the keyring" in capsys.readouterr().out
    assert run(["logout", "xai"]) == 0
    assert (ring.held, KeyStore().names()) == ({}, {})


def test_a_locked_keyring_takes_no_key_and_says_what_to_do_for_one_that_it_has(ring):
    KeyStore().keep("XAI_API_KEY", "sk-secret")
    ring.locked = True

    with pytest.raises(ConfigError, match="Unlock it, set XAI_API_KEY") as caught:
        find_host("xai", Models(), {}, stored_key)
    assert "sk-secret" not in str(caught.value)
    assert KeyStore().keep("GROQ_API_KEY", "sk-other") == "file"


def test_a_key_that_is_typed_is_not_shown(tmp_path):
    one = Pty(80, 24)
    try:
        one.start(["login", "anthropic"], tmp_path)
        one.wait("it is not shown")
        one.type("sk-secret\r")
        one.wait("The key of anthropic is kept in")
        assert one.ended() == 0
        assert "secret" not in one.screen()
    finally:
        one.close()
    assert stored_key("ANTHROPIC_API_KEY") == ("sk-secret", "file")
