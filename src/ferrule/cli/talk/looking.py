"""Commands that look: tools, changes, tasks, cost, earlier conversations."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.line import BLANK, Line, line, whole_rows
from ferrule.cli.talk.words import dollars, seconds, tokens
from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.core.subagents import Subagents, Worked
from ferrule.core.todos import todo_lines
from ferrule.support.tasks import Task, Tasks
from ferrule.workspace.journal import Journal
from ferrule.workspace.thread import About, when
from ferrule.workspace.todos import Todos

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat

T = TypeVar("T")
_MOST_DIFF_ROWS = 2000
MOST_THREADS = 15


async def tools(chat: "Chat", _: str) -> Next:
    faces = chat.session.engine.faces()
    column = max((len(face.name) for face in faces), default=0)
    chat.say(BLANK)
    for face in faces:
        chat.say(line(("cyan", f"  {face.name:<{column}}"), ("dim", f"  {face.words.strip().splitlines()[0]}")))
    chat.say(BLANK)
    return None


async def diff(chat: "Chat", rest: str) -> Next:
    from ferrule.cli.talk.changes import changes  # for who wants to see it

    engine = chat.session.engine
    texts = await asyncio.to_thread(changes, engine.need(Journal), engine.jail.shown, rest, engine.bytes_before)
    rows = [row for text in texts for row in text.rstrip("\n").split("\n")]
    chat.say(BLANK, *whole_rows(rows[:_MOST_DIFF_ROWS], "  ", chat.front.width))
    if not rows:
        chat.note(f"This conversation has changed nothing{f' in {rest}' if rest else ''}.")
    elif len(rows) > _MOST_DIFF_ROWS:
        chat.say(line(("dim", f"  … {len(rows) - _MOST_DIFF_ROWS:,} more lines")))
    chat.say(BLANK)
    return None


async def tasks(chat: "Chat", _: str) -> Next:
    engine = chat.session.engine
    rows: list[Line] = [_task(one) for one in engine.need(Tasks).list()]
    agents = _maybe(lambda: engine.need(Subagents).list())
    rows += [_worked(one) for one in agents or ()]
    try:
        todos = _maybe(lambda: engine.need(Todos))
        rows += [line(f"  {text}") for text in todo_lines(await todos.all() if todos is not None else ())]
    except ToolFailure as error:
        rows.append(line(("dim", f"  {error.message}")))
    chat.say(BLANK, *(rows or [line(("dim", "  Nothing runs in the background, and nothing is left to do."))]), BLANK)
    return None


def _maybe(need: Callable[[], T]) -> T | None:
    """A service that a session may lack."""
    try:
        return need()
    except (TypeError, FerruleError):
        return None


def _task(task: Task) -> Line:
    style = {"running": "yellow", "completed": "green"}.get(task.status, "red")
    return line((style, f"  {task.status:<10}"), f"{task.id}  {task.label}", ("dim", f"  {seconds(task.took_seconds)}"))


def _worked(one: Worked) -> Line:
    style = {"running": "yellow", "completed": "green"}.get(one.status, "red")
    facts = f"  {one.turns} turns · {tokens(one.input_tokens + one.output_tokens)} tokens · {seconds(one.seconds)}"
    return line((style, f"  {one.status:<10}"), f"{one.id}  {one.name} {one.description}", ("dim", facts))


async def cost(chat: "Chat", _: str) -> Next:
    agent = chat.session.agent
    spent, usage = agent.spent, agent.spent.usage
    cached = f" ({tokens(usage.cache_read)} from the cache)" if usage.cache_read else ""
    window = agent.model.window
    nothing = "nothing yet" if agent.model.prices is not None and not usage.input else ""
    share = f" ({100 * agent.context_tokens // window}% of {tokens(window)})" if window else ""
    chat.say(
        BLANK,
        line(("dim", "  model    "), agent.model.name),
        line(("dim", "  answers  "), f"{spent.turns}"),
        line(("dim", "  input    "), f"{tokens(usage.input)} tokens{cached}"),
        line(("dim", "  output   "), f"{tokens(usage.output)} tokens"),
        line(("dim", "  context  "), f"{tokens(agent.context_tokens)} tokens{share}"),
        line(("dim", "  cost     "), dollars(spent.cost) or nothing or "not known: no prices for this model"),
        BLANK,
    )
    return None


async def threads(chat: "Chat", _: str) -> Next:
    found = await listed(chat)
    chat.say(BLANK, *(thread_line(one) for one in found))
    if not found:
        chat.say(line(("dim", "  There are no earlier conversations of this folder.")))
    chat.say(BLANK)
    return None


async def listed(chat: "Chat") -> tuple[About, ...]:
    """The newest conversations of this folder. Raises `FerruleError` where the store cannot be used."""
    from ferrule.support.sqlite import UnusableError
    from ferrule.workspace.thread_store import ThreadStore

    engine = chat.session.engine
    store = engine.need(ThreadStore)
    try:
        return await asyncio.to_thread(store.list, limit=MOST_THREADS, workspace=engine.jail.folder)
    except UnusableError as error:
        raise FerruleError(str(error)) from error


def thread_line(about: About, number: int | None = None) -> Line:
    mark = f"  {number:>2} " if number is not None else "  "
    return line(("cyan bold", mark), ("dim", f"{when(about.updated)}  {about.id[:10]}  "), about.title or "(no title)")
