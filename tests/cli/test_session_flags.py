"""The flags of `ferrule run` that change settings for one session: wrong ones say what is wrong, unknown ones go."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.recordings import recording

from ferrule.cli.main import run
from ferrule.cli.run import command
from ferrule.models.cues import said

DRIVEN = ["--input-format", "stream-json"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--setting-sources", "user,none"], "there is no source 'none'; there are user, project, local"),
        (["--settings", "{"], "--settings is no JSON"),
        (["--settings", "nowhere.json"], "nowhere.json cannot be read"),
        (["--settings", "{}x"], "is no JSON"),
        (["--settings", json.dumps({"permissions": 3})], "permissions has to be an object"),
        (["--settings", json.dumps({"permissions": {"deny": "Bash"}})], "permissions.deny has to be a list of texts"),
        (["--settings", json.dumps({"env": {"A": 1}})], "env has to be an object of texts"),
        (["--settings", json.dumps({"sandbox": {"network": 3}})], "sandbox.network has to be an object"),
        (["--settings", json.dumps({"hooks": {"PreToolUse": 3}})], "PreToolUse"),
        (["--settings", json.dumps({"effortLevel": "huge"})], "Invalid enum value 'huge'"),
        (["--effort", "huge"], "'huge' is not one of"),
        (["--max-thinking-tokens", "-1"], "-1 is not in the range"),
        (["--session-id", "none"], "'none' is no UUID"),
        (["--system-prompt-file", "nowhere.txt"], "nowhere.txt cannot be read"),
        (["--no-such-flag"], "No such option '--no-such-flag'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_asked(tmp_path, monkeypatch, capsys, flags, words):
    monkeypatch.chdir(tmp_path)
    path = recording(tmp_path / "c.jsonl", said("Never."))

    assert run(["run", "Go.", "--replay", path, *flags]) == 2
    out, err = capsys.readouterr()
    assert (out, words in err) == ("", True), err


def test_settings_that_nobody_knows_are_a_warning(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = recording(tmp_path / "c.jsonl", said("Done."))
    settings = json.dumps({"theme": "dark", "nonsense": 1, "sandbox": {"excludedCommands": ["x"]}})

    assert run(["run", "Go.", "--replay", path, "--settings", settings, "--plugin-dir", "none"]) == 0
    out, err = capsys.readouterr()
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert (out, [words in " ".join(warnings) for words in ("nonsense", "excludedCommands", "none", "theme")]) == (
        "Done.\n",
        [True, True, True, False],
    )


KNOWN = [["--verbose"], ["--model", "-x"], ["--tools", ""], ["--resume=--x"], ["--max-turns", "3"]]
UNKNOWN = [["--flag"], ["--flag", "value"], ["--flag=value"], ["--flag=--x"]]


@given(st.lists(st.one_of(*(st.just((one, True)) for one in KNOWN), *(st.just((one, False)) for one in UNKNOWN))))
def test_what_nobody_knows_goes_with_its_value_and_nothing_else_does(groups):
    given_args = [word for words, _ in groups for word in words]
    kept = [word for words, known in groups if known for word in words]

    left, unknown = command._split_unknown([*given_args, *DRIVEN])

    assert (left, unknown) == ([*kept, *DRIVEN], ["--flag" for _, known in groups if not known])
