"""An engine with checks of its own, and all that was asked and told while they ran."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from ferrule import Answer, Call, Engine, Question, Settings
from ferrule.core.call import Event, Progress, Reply
from ferrule.settings import CheckCommand, Checks, SandboxSettings
from ferrule.tools.checks import Check, Checked, CheckRun, CheckWatch

LIMIT_SECONDS = 60


class Watched(CheckWatch):
    """What a front end sees."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ends: list[str] = []
        self.run: CheckRun | None = None

    def began(self, check: Check) -> None:
        self.begun.append(check.name)

    def ended(self, checked: Checked) -> None:
        self.ends.append(checked.check.name)

    def done(self, run: CheckRun) -> None:
        self.run = run


class Session:
    """`async with Session(folder, {"lint": "true"}) as session: reply = await session.check()`."""

    def __init__(
        self,
        folder: Path,
        commands: Mapping[str, str | CheckCommand] | None = None,
        *,
        answer: bool | Answer | Callable[[Question], Any] = True,
        parallel: int = 4,
        confined: bool = False,
        dialect: str = "amp",
        settings: dict[str, Any] | None = None,
        checks: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        own = {
            name: CheckCommand(command=one) if isinstance(one, str) else one for name, one in (commands or {}).items()
        }
        self.questions: list[Question] = []
        self.events: list[Event] = []
        self.watched = Watched()
        self._answer = answer
        self.engine = Engine(
            folder,
            dialect=dialect,
            ask=self._ask,
            on_event=self.events.append,
            settings=Settings(
                checks=Checks(commands=own, parallel=parallel, **(checks or {})),
                **{"sandbox": SandboxSettings() if confined else SandboxSettings(use="none"), **(settings or {})},
            ),
            **more,
        )

    def _ask(self, question: Question) -> Any:
        self.questions.append(question)
        return self._answer(question) if callable(self._answer) else self._answer

    async def __aenter__(self) -> Self:
        await self.engine.__aenter__()
        self.engine.give("CheckWatch", lambda: self.watched)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.close()

    async def check(self, **values: Any) -> Reply:
        (reply,) = await self.engine.run([Call("Check", values)])
        return reply

    @property
    def run(self) -> CheckRun:
        assert self.watched.run is not None
        return self.watched.run

    @property
    def statuses(self) -> dict[str, str]:
        return {one.check.name: one.status for one in self.run.checks}

    def of(self, name: str) -> Checked:
        return next(one for one in self.run.checks if one.check.name == name)

    @property
    def progress(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Progress)]


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something, and not for ever."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not is_so():
            await asyncio.sleep(0.005)
