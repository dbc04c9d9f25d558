"""`/context` and `/cost`: what fills the window, what it cost, and what is said when the cache is not hit."""

import re

from tests.cli.talk.typing_front import talk

from ferrule.cli.talk.status import WindowShare, shares
from ferrule.core.content import Image, Text
from ferrule.models.cues import said
from ferrule.models.recorder import Scripted
from ferrule.wire import Definition, Result, Thinking, Turn, Usage, Use


def test_every_part_of_what_is_sent_is_told_apart():
    system = (
        "x" * 700 + '\n\n<guidance file="/w/AGENTS.md">\n' + "g" * 350 + "\n</guidance>"
        '\n\n<server-instructions name="one">\n' + "i" * 35 + "\n</server-instructions>"
    )
    definitions = [Definition("Read", "r" * 98, {}), *(Definition(f"mcp__one__{at}", "m" * 348, {}) for at in range(2))]
    turns = [
        Turn("user", (Text("p" * 70), Image(data="x", media_type="image/png"))),
        Turn("assistant", (Thinking("t" * 35), Text("a" * 35), Use("1", "Read", {}))),
        Turn("user", (Result("1", (Text("o" * 350), Image(data="x", media_type="image/png"))),)),
    ]
    found = {part.name: part for part in shares(system, definitions, turns)}

    assert list(found) == [
        *("system prompt", "tools", "MCP tools", "guidance files", "prompts", "answers", "thinking", "calls"),
        *("results of calls", "pictures and files"),
    ]
    assert found["tools"] == WindowShare("tools", 29, "1 tools")
    assert found["MCP tools"].about == "one 2"
    assert found["guidance files"].about == "AGENTS.md 112"
    assert found["pictures and files"] == WindowShare("pictures and files", 3208, "2")
    assert 200 <= found["system prompt"].tokens <= 205


def usage(size, read=0):
    return Usage(size, 10, read, 0)


async def test_the_parts_add_up_to_what_the_host_has_counted(tmp_path):
    (tmp_path / "AGENTS.md").write_text("Speak plainly. " * 100)
    scripted = Scripted(said("Hello.", usage=usage(20_000)), said("More.", usage=usage(21_000, 19_900)))
    front = await talk(tmp_path, scripted, "hi", "again", "/context", "/cost")

    shown = front.after("/context")
    assert "  21.0k of 200.0k tokens, 11%  scripted" in shown
    assert re.search(r"guidance files .* AGENTS.md", shown)
    numbers = re.findall(r"^  (?!free)[a-zA-Z ]+?  +([\d.]+)(k?) ", shown, re.MULTILINE)
    total = sum(float(number) * (1000 if kilo else 1) for number, kilo in numbers)
    assert abs(total - 21_010) < 300
    assert "new  94%" in shown
    assert "41.0k tokens (19.9k from the cache)" in front.after("/cost")


async def test_the_user_is_told_once_when_the_cache_is_not_hit_any_more(tmp_path):
    read = (0, 19_000, 0, 0, 0, 0)
    scripted = Scripted(*(said("Yes.", usage=usage(20_000, part)) for part in read))
    front = await talk(tmp_path, scripted, *(f"prompt {number}" for number in range(len(read))), "/context")

    assert front.shown.count("The prompt cache was missed 3 times in a row") == 1
    assert "missed 3 times" in front.after("prompt 4")
    assert "new  95%  missed  missed  missed  missed" in front.after("/context")
