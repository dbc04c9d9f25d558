"""Long outputs of commands in every dialect: what matters stays, and the numbers can be followed."""

import re
from typing import Any

import pytest

from ferrule import Engine
from ferrule.dialects import FAMILIES
from ferrule.permissions import Everybody
from ferrule.settings import SandboxSettings, Settings

COMMANDS = {
    "amp": ("Bash", "cmd"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
    **dict.fromkeys(("claude", "wayland"), ("Bash", "command")),
    **dict.fromkeys(("ah", "opencode", "pi"), ("bash", "command")),
}
LINE = "seq 1 20000; echo 'ERROR: it broke'; seq 20002 40000; echo '=== 3 passed ==='; seq 40002 90000"


def engine(folder: Any, dialect: str) -> Engine:
    return Engine(folder, dialect=dialect, ask=Everybody(), settings=Settings(sandbox=SandboxSettings(use="none")))


def test_every_family_has_a_shell_here() -> None:
    assert COMMANDS.keys() == set(FAMILIES)


@pytest.mark.parametrize("dialect", COMMANDS)
async def test_errors_and_summaries_in_the_middle_are_shown_with_their_numbers(tmp_path, dialect):
    tool, param = COMMANDS[dialect]
    async with engine(tmp_path, dialect) as one:
        plain = await one.call(tool, **{param: "seq 1 90000"})
        reply = await one.call(tool, **{param: LINE})
        assert reply.output_id
        kept = (await one.output(reply.output_id)).read(0, 1 << 20).text.splitlines()

    for row in ("20001: ERROR: it broke", "40001: === 3 passed ==="):
        assert f"\n{row}\n" in reply.text
        number, _, said = row.partition(": ")
        assert kept[int(number) - 1] == said
    assert len(reply.text) <= len(plain.text) + len(LINE) + 10  # amp repeats the command
    assert "ERROR" not in plain.text


@pytest.mark.parametrize("dialect", COMMANDS)
async def test_what_is_shown_and_what_is_said_to_be_missing_is_all_there_is(tmp_path, dialect):
    tool, param = COMMANDS[dialect]
    async with engine(tmp_path, dialect) as one:
        reply = await one.call(tool, **{param: "seq 1 100000"})
    assert reply.lines == 100_000
    text, whole = reply.text, "".join(f"{number}\n" for number in range(1, 100_001))
    if found := re.search(r"\[\.\.\.(\d+) lines omitted", text):
        shown = re.findall(r"(?m)^\d+$", text)
        assert len(shown) + int(found[1]) == 100_000
    elif found := re.search(r"last (\d+) of (\d+) lines", text):
        shown = re.findall(r"(?m)^\d+$", text)
        assert (len(shown), 100_000) == (int(found[1]), int(found[2]))
    elif dialect == "amp":
        said = re.search(r"last ([\d,]+) of ([\d,]+) characters", " ".join(reply.notes))
        assert said is not None
        assert int(said[2].replace(",", "")) == len(whole)
        assert whole[-int(said[1].replace(",", "")) :].strip() in text
    else:
        (notice,) = re.findall(r"\n\n(?:\.\.\. )?\[[^\]]*\](?: \.\.\.)?\n\n", text)
        head, _, tail = text.partition(notice)
        head, tail = head[head.index("1\n2\n3\n") :], tail[: tail.rindex("100000")]
        missing = int("".join(char for char in notice if char.isdigit()))
        assert whole.startswith(head)
        # What a family says around the output may count as output.
        assert tail[60:160] in whole[len(head) + missing - 60 :][:400]
