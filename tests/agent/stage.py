"""A stage for scripted conversations: a workspace, a session on it, and all that happened."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

from ferrule.agent import AgentEvent, Called, Ended
from ferrule.agent.session import Session
from ferrule.core.call import Done, Reply
from ferrule.core.content import Text
from ferrule.models.recorder import Line, Scripted
from ferrule.permissions import Everybody
from ferrule.wire import Result, Turn, Use


class Stage:
    """Plays cues on a workspace. `async with Stage(tmp_path, cue, cue) as stage: await stage.run("do it")`."""

    def __init__(self, workspace: Any, *cues: Line, dialect: str = "claude", model: Any = None, **session: Any) -> None:
        self.workspace = str(workspace)
        self.model = model or Scripted(*cues, workspace=self.workspace)
        self.events: list[AgentEvent] = []
        self.on: Callable[[AgentEvent], object] = lambda _: None
        """Called with every event, for tests that act in the middle."""
        self.session = Session(
            self.workspace,
            model=self.model,
            dialect=dialect,
            **{"ask": Everybody(), **session},
            on_event=self._hear,
        )

    def _hear(self, event: AgentEvent) -> None:
        self.events.append(event)
        self.on(event)

    async def __aenter__(self) -> Self:
        await self.session.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.__aexit__()

    async def run(self, prompt: Any = "Do it.") -> Ended:
        return await self.session.agent.run(prompt)

    @property
    def agent(self) -> Any:
        return self.session.agent

    def of(self, kind: type) -> list[Any]:
        """The events of a kind, in their order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def replies(self) -> list[Reply]:
        """Of all calls, the subagents' too, in the order of their ends."""
        return [event.call.reply for event in self.of(Called) if isinstance(event.call, Done)]

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.workspace, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, name: str) -> str:
        with open(os.path.join(self.workspace, name), encoding="utf-8") as file:
            return file.read()


def results(turn: Turn) -> list[Result]:
    return [part for part in turn.parts if isinstance(part, Result)]


def words(holder: Turn | Result) -> str:
    return "\n".join(part.text for part in holder.parts if isinstance(part, Text))


def check_valid(turns: Sequence[Turn]) -> None:
    """Every call has exactly one result, right behind its answer; every model API wants that."""
    for at, turn in enumerate(turns):
        uses = [part.id for part in turn.parts if isinstance(part, Use)]
        behind = turns[at + 1] if at + 1 < len(turns) else Turn("user", ())
        if turn.role == "assistant":
            assert sorted(uses) == sorted(result.id for result in results(behind))
        before = turns[at - 1] if at else Turn("user", ())
        if results(turn):
            assert before.role == "assistant"
