"""The options of `ferrule run` that hold for the chat too."""

import pytest
from tests.cli.recordings import recording

from ferrule.cli.run import command as run_command
from ferrule.cli.talk.command import command
from ferrule.cli.talk.commands import SessionRestart
from ferrule.cli.talk.start import _SessionOpener
from ferrule.permissions import Nobody

ABOUT_OUTPUT = {
    *(
        "--output",
        "--json",
        "--quiet",
        "--input",
        "--partial",
        "--image",
        "--file",
        "--verbose",
        "--include-hook-events",
    )
}
OF_PROGRAMS = {"--json-schema", "--permission-prompt-tool"}


def names(of):
    return {option.opts[0] for option in of.params if option.param_type_name == "option" and not option.hidden}


def test_the_chat_takes_what_run_takes_but_for_what_is_read_and_printed():
    assert names(run_command) - names(command) == ABOUT_OUTPUT | OF_PROGRAMS


async def opened(place, *arguments):
    """What an open session has for these options: its system prompt, limits, tools and settings."""
    path = recording(place / "c.jsonl")
    session = command.make_context("chat", [*arguments, "--workspace", str(place)]).params
    opener = _SessionOpener(session, "")
    opener.ask = Nobody()
    async with opener(SessionRestart("", None, None, f"scripted:{path}"), lambda _: None) as one:
        setup = one.agent.talk.setup
        shown = {definition["name"] for definition in one.engine.definitions("anthropic")}
        return setup.system, setup.limits, shown, one.engine.settings


@pytest.mark.parametrize("words", ["--append-system-prompt", "--system-prompt"])
async def test_words_reach_the_system_prompt(words, tmp_path):
    system, _, _, _ = await opened(tmp_path, words, "Speak of cats.")

    assert "Speak of cats." in system


async def test_limits_tools_and_settings_hold(tmp_path):
    arguments = ("--max-cost", "1.5", "--max-turns", "3", "--tools", "Read", "--effort", "low", "--dialect", "claude")
    _, limits, shown, settings = await opened(tmp_path, *arguments)

    assert (limits.cost, limits.turns) == (1.5, 3)
    assert "Read" in shown
    assert not {"Bash", "Edit"} & shown
    assert settings.models.effort == "low"


async def test_a_tool_that_is_refused_is_not_shown(tmp_path):
    _, _, shown, _ = await opened(tmp_path, "--dialect", "claude", "--disallowed-tools", "Bash")
    _, _, usual, _ = await opened(tmp_path, "--dialect", "claude")

    assert usual - shown == {"Bash"}
