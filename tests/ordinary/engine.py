"""One session of an engine, driven by lines of JSON: the program behind `Session`, run as whichever user.

The first line says how: the workspace, settings, the dialect, the kinds of questions that are answered with yes, what
the user has said to a model. Each line after it is a call, and gets one line: its reply, with what was asked meanwhile.
The call `undo` is one step back.
"""

import asyncio
import json
import sys
from typing import Any

import msgspec

from ferrule import Engine, Settings
from ferrule.core.errors import ToolFailure
from ferrule.permissions import Question
from ferrule.sandbox import report
from ferrule.tools.web import Addresses


async def main() -> None:
    """Until standard input ends."""
    how = json.loads(sys.stdin.readline())
    asked: list[dict[str, str]] = []

    def ask(question: Question) -> bool:
        asked.append({"kind": question.kind, "summary": question.summary, "why": question.why})
        return question.kind in how["yes"]

    settings = msgspec.convert(how["settings"], Settings)
    more = {"permission_mode": how["mode"]} if how.get("mode") else {}
    ways = {row.name: "" if row.works else row.why for row in report()}
    async with Engine(how["folder"], dialect=how["dialect"], settings=settings, ask=ask, **more) as engine:
        if how.get("said"):
            engine.need(Addresses).hear(how["said"])
        _say({"ways": ways})
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            call = json.loads(line)
            asked.clear()
            if call["name"] == "undo":
                _say({"status": "done", "text": await _undone(engine), "notes": [], "code": None, "asked": list(asked)})
                continue
            reply = await engine.call(call["name"], **call["arguments"])
            failure = reply.error
            _say(
                {
                    "status": reply.status,
                    "text": reply.text,
                    "notes": list(reply.notes),
                    "code": failure.error_code if failure else None,
                    "asked": list(asked),
                }
            )


async def _undone(engine: Engine) -> str:
    """One step back, as a person takes it; what is said where there is none."""
    try:
        return repr(await engine.undo())
    except ToolFailure as refused:
        return refused.message


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
