"""The whole loop with a real model on this machine: offline, far too small to be clever, and real."""

import pytest

from ferrule.agent import Spoke, TurnEnded
from ferrule.models.local import look
from ferrule.permissions import ModeConfig
from ferrule.wire import ToolChoice
from tests.models.local_model import Pressed, held

from .stage import Stage, check_valid, results, words

PROMPTS = ("Read the file notes.txt.", "Read notes.txt", "Look at notes.txt", "What is in the file notes.txt?")


async def test_a_model_on_this_machine_calls_a_tool_hears_the_answer_and_speaks(
    tmp_path, request: pytest.FixtureRequest
):
    # What so small a model makes of a prompt depends on every word of it, also on where the workspace is: one of these
    # it understands.
    with held(request) as path:
        for number, prompt in enumerate(PROMPTS):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "notes.txt").write_text("The meeting is on Tuesday.\n")
            model = Pressed(look(path))
            model.choices = (ToolChoice("tool", "Read"), ToolChoice("none"))
            async with Stage(folder, model=model, mode=ModeConfig(include_tools=("read",))) as stage:
                ended = await stage.run(prompt)
                if not stage.replies and prompt != PROMPTS[-1]:
                    continue

                assert ended.reason in {"end", "length"}
                assert [reply.name for reply in stage.replies] == ["Read"]
                assert len(results(stage.agent.turns[2])) == 1
                assert words(stage.agent.turns[3]).strip()
                assert len(stage.of(Spoke)) > 1
                assert all(turn.said.usage.input > 0 for turn in stage.of(TurnEnded))
                check_valid(stage.agent.turns)
                return
