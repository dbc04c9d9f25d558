"""A place to talk without a terminal: it types what a test has written down, and remembers what was shown."""

import contextlib
from typing import TYPE_CHECKING

from ferrule.agent.session import Session
from ferrule.cli.talk.chat import Chat
from ferrule.cli.talk.commands import SessionRestart
from ferrule.cli.talk.picker import pick_by_number
from ferrule.cli.talk.text import PLAIN
from ferrule.permissions import Everybody

if TYPE_CHECKING:
    from collections.abc import Callable

    from ferrule.cli.talk.text import Line


class Typing:
    """Sends a line whenever it is the user's turn, answers questions in the order of the script, and leaves."""

    colour = PLAIN
    steer = False
    composes = True
    subject = ""
    width = 200
    asks = False

    def __init__(self, *lines, answers=()):
        self._lines = list(lines)
        self._answers = list(answers)
        self.shown = ""
        self.asked = []
        self.back = []
        self.live: Callable[[int, int], list[str]] = lambda _columns, _rows: []
        self.status: Callable[[int], list[Line]] = lambda _width: []
        self.working: Callable[[], bool] = lambda: False
        self.on_line: Callable[[str], object] = lambda _: None
        self.on_interrupt: Callable[[], bool] = lambda: False
        self.on_rewind: Callable[[], object] = lambda: None
        self.on_mode: Callable[[], str] = str
        self.on_background: Callable[[], str] = str
        self.on_expand: Callable[[], object] = lambda: None

    def adopt(self, settings, folder):
        pass

    def print(self, text):
        self.shown += text

    def draw(self, image):
        pass

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

    async def page(self, pieces):
        self.shown += "".join(pieces)

    def put_back(self, text, about=""):
        self.back.append(text)

    async def key(self, words, keys, *, again=False):
        self.asked.append((words, "".join(key for key, _ in keys)))
        assert self._answers, f"No answer is left for {words!r} behind:\n{self.shown}"
        return self._answers.pop(0)

    async def words(self, offer, start=""):
        self.asked.append((offer, start))
        return self._answers.pop(0)

    async def edit(self, text, suffix):
        self.asked.append((suffix, text))
        return self._answers.pop(0)

    async def pick(self, title, rows, *, other=None, query="", at=""):
        return await pick_by_number(self, title, rows, other=other, query=query)

    async def run_chat(self, talk):
        return await talk()

    def after(self, line):
        """What was shown behind a line that was typed, and before the next one."""
        return self.shown.split(f"\n> {line}\n", 1)[1].split("\n> ", 1)[0]


async def talk(workspace, model, *lines, answers=(), resume="", composes=True, ask=None, **more):
    """The front of a whole conversation; `model` answers in all sessions of it, which get `more`."""

    @contextlib.asynccontextmanager
    async def opening(wanted, tell):
        session = Session(
            str(workspace),
            model=model,
            dialect=wanted.dialect or "claude",
            ask=ask or Everybody(),
            resume=wanted.resume or "",
            permission_mode=wanted.permission_mode,
            on_event=tell,
            **more,
        )
        async with session:
            yield session

    front = Typing(*lines, answers=answers)
    front.composes = composes
    await Chat(front, opening, first=SessionRestart(resume)).talk()
    return front
