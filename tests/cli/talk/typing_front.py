"""A place to talk without a terminal: it types what a test has written down, and remembers what was shown."""

import contextlib
from typing import TYPE_CHECKING

from ferrule.agent.session import Session
from ferrule.cli.talk.chatting import Chat
from ferrule.cli.talk.commands import Again
from ferrule.permissions.asker import Everybody

if TYPE_CHECKING:
    from collections.abc import Callable

    from ferrule.cli.talk.line import Line


class Typing:
    """Sends a line whenever it is the user's turn, answers questions in the order of the script, and leaves."""

    colour = steer = False
    width = 200

    def __init__(self, *lines, answers=()):
        self._lines = list(lines)
        self._answers = list(answers)
        self.shown = ""
        self.asked = []
        self.back = []
        self.live: Callable[[int, int], list[str]] = lambda _columns, _rows: []
        self.status: Callable[[], list[Line]] = list
        self.on_line: Callable[[str], object] = lambda _: None
        self.on_interrupt: Callable[[], bool] = lambda: False

    def print(self, text):
        self.shown += text

    def print_lines(self, *lines):
        self.shown += "".join("".join(text for _, text in row) + "\n" for row in lines)

    def echo(self, text):
        self.shown += f"\n> {text}\n"

    def ready(self):
        self.on_line(self._lines.pop(0) if self._lines else "/exit")

    def refresh(self):
        pass

    def leave(self):
        pass

    def put_back(self, text, about=""):
        self.back.append(text)

    async def key(self, words, keys, *, again=False):
        self.asked.append((words, "".join(key for key, _ in keys)))
        return self._answers.pop(0)

    async def words(self, offer):
        self.asked.append((offer, ""))
        return self._answers.pop(0)

    async def during(self, talk):
        return await talk()

    def after(self, line):
        """What was shown behind a line that was typed, and before the next one."""
        return self.shown.split(f"\n> {line}\n", 1)[1].split("\n> ", 1)[0]


async def talk(workspace, model, *lines, answers=(), resume=""):
    """The front of a whole conversation; `model` answers in all sessions of it."""

    @contextlib.asynccontextmanager
    async def opening(wanted, tell):
        session = Session(
            str(workspace),
            model=model,
            dialect=wanted.dialect or "claude",
            ask=Everybody(),
            resume=wanted.resume or "",
            permission_mode=wanted.permission_mode,
            on_event=tell,
        )
        async with session:
            yield session

    front = Typing(*lines, answers=answers)
    await Chat(front, opening, first=Again(resume)).talk()
    return front
