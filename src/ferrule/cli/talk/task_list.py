"""`/tasks` and `/ports`: what runs in the background, what it has printed, where it listens, and how to stop it."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.line import BLANK, Line, line, sentence
from ferrule.cli.talk.words import seconds, tokens
from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.core.subagents import Subagents, Worked
from ferrule.core.todos import todo_lines
from ferrule.support.near import near
from ferrule.support.proc import listening
from ferrule.support.tasks import Task, Tasks
from ferrule.workspace.confinement import Confinement
from ferrule.workspace.todos import Todos

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat

T = TypeVar("T")
_STOP = "stop"
_READ_CHARS = 1 << 20
_STYLES = {"running": "yellow", "completed": "green"}


async def tasks(chat: "Chat", rest: str) -> Next:
    """All of them; with an id what that one has printed, and with `stop` before it its end."""
    words = rest.split()
    if not words:
        await _show(chat)
    elif words[0] == _STOP and len(words) > 1:
        for name in words[1:]:
            await _stop(chat, name)
    elif words[0] == _STOP:
        await _stop_one(chat)
    elif len(words) > 1:
        chat.note("Write /tasks, /tasks ID for what one has printed, or /tasks stop ID.")
    else:
        await _print(chat, words[0])
    return None


def values(chat: "Chat") -> list[str]:
    """What can stand behind the command."""
    engine = chat.session.engine
    running = [one.id for one in engine.need(Tasks).list() if not one.running.ended]
    running += [one.id for one in _agents(chat) if one.status == "running"]
    every = [one.id for one in engine.need(Tasks).list()] + [one.id for one in _agents(chat)]
    return [*every, *(f"{_STOP} {one}" for one in running)]


async def _show(chat: "Chat") -> None:
    engine = chat.session.engine
    commands, agents = engine.need(Tasks).list(), _agents(chat)
    rows: list[Line] = [*map(_task, commands), *map(_worked, agents)]
    if rows:
        how = "/tasks ID shows what one has printed"
        is_running = any(not one.running.ended for one in commands) or any(one.status == "running" for one in agents)
        rows.append(sentence(("dim", f"  {how}{', /tasks stop ID stops one' if is_running else ''}.")))
    try:
        todos = _maybe(lambda: engine.need(Todos))
        rows += [line(f"  {text}") for text in todo_lines(await todos.all() if todos is not None else ())]
    except ToolFailure as error:
        rows.append(line(("dim", f"  {error.message}")))
    chat.say(BLANK, *(rows or [line(("dim", "  Nothing runs in the background, and nothing is left to do."))]), BLANK)


def _agents(chat: "Chat") -> tuple[Worked, ...]:
    return _maybe(lambda: chat.session.engine.need(Subagents).list()) or ()


def _maybe(need: Callable[[], T]) -> T | None:
    """A service that a session may lack."""
    try:
        return need()
    except (TypeError, FerruleError):
        return None


def _task(task: Task) -> Line:
    style = _STYLES.get(task.status, "red")
    code = task.running.finished().exit_code if task.running.ended else None
    how = f" · exit {code}" if code is not None else ""
    return line(
        (style, f"  {task.status:<10}"),
        f"{task.id}  ",
        ("give", _command(task)),
        ("dim give", f"  ({described})" if (described := task.description.strip()) else ""),
        ("dim", f"  {seconds(task.took_seconds)}{how}"),
    )


def _command(task: Task) -> str:
    """What runs, and not what the model says of it."""
    return " ".join(task.command.split())


def _worked(one: Worked) -> Line:
    style = _STYLES.get(one.status, "red")
    facts = f"  {one.turns} answers · {tokens(one.input_tokens + one.output_tokens)} tokens · {seconds(one.seconds)}"
    words = f"{one.name} {one.description}".rstrip()
    return line((style, f"  {one.status:<10}"), f"{one.id}  ", ("give", words), ("dim", facts))


def _found(chat: "Chat", name: str) -> Task | Worked | None:
    """By its id, or by the beginning of only one; a note says where there is none."""
    every: dict[str, Task | Worked] = {one.id: one for one in chat.session.engine.need(Tasks).list()}
    every |= {one.id: one for one in _agents(chat)}
    alike = [one for one in every if one.startswith(name)]
    if name not in every and len(alike) != 1:
        meant = near(name, every, most=1)
        hint = (
            f" Did you mean {meant[0]}?" if meant else " /tasks lists them." if every else " Nothing was left running."
        )
        chat.note(f"There is no task {name}.{hint}")
        return None
    return every[name if name in every else alike[0]]


async def _print(chat: "Chat", name: str) -> None:
    found = _found(chat, name)
    if isinstance(found, Task):
        await chat.front.page(_output(found))
    elif found is not None:
        await chat.front.page(
            [f"{found.name} {found.description}\n\n{found.text or found.why or '(It has said nothing yet.)'}\n"]
        )


def _output(task: Task) -> Iterator[str]:
    """The command and all that it has printed: its log where it has one, else what is kept of it."""
    finished = task.running.finished()
    how = "it runs" if not task.running.ended else f"exit {finished.exit_code}"
    yield f"{task.id}  {task.command}\n{task.cwd} · {how} · {seconds(task.took_seconds)}\n\n"
    whole = 0
    if task.log is not None and os.path.isfile(task.log):
        with open(task.log, encoding="utf-8", errors="replace") as file:
            while piece := file.read(_READ_CHARS):
                whole += len(piece)
                yield piece
    if not whole:
        yield finished.text + finished.errors or "(It has printed nothing.)\n"


async def _stop(chat: "Chat", name: str) -> None:
    found = _found(chat, name)
    if isinstance(found, Task):
        did = await chat.session.engine.need(Tasks).stop(found)
        label = _command(found)
    elif found is not None:
        did = found.status == "running"
        await chat.session.engine.need(Subagents).stop(found.id)
        label = f"{found.name} {found.description}".rstrip()
    else:
        return
    if not did:
        chat.note(f"{found.id} had ended already.")
        return
    chat.note(f"Stopped: {found.id} ({label}).")
    chat.session.agent.steer(f"[The user has stopped the task {found.id} ({label}).]", by_user=False)


async def _stop_one(chat: "Chat") -> None:
    """The one that runs; of several the user says which."""
    running = [one.id for one in chat.session.engine.need(Tasks).list() if not one.running.ended]
    running += [one.id for one in _agents(chat) if one.status == "running"]
    if len(running) == 1:
        await _stop(chat, running[0])
    elif running:
        chat.note(f"Say which one: /tasks stop {' or '.join(running)}.")
    else:
        chat.note("Nothing runs in the background.")


async def ports(chat: "Chat", _: str) -> Next:
    """Where commands of the session listen, who opened it, and how the user reaches it."""
    engine = chat.session.engine
    running = [one for one in engine.need(Tasks).list() if not one.running.ended]
    opened = await asyncio.to_thread(_opened, [(task, task.running.pids()) for task in running])
    machine = _maybe(lambda: engine.need(Confinement).begun_machine)
    inside = {} if machine is None else {one.port: str(one) for one in machine.listeners()}
    forwarded = set() if machine is None else set(machine.forwarded)
    every = {**{port: f"{host}:{port}" for port, (host, _) in opened.items()}, **inside}
    rows: list[Line] = []
    for port, where in sorted(every.items()):
        if port in inside and port not in forwarded:
            how = ("yellow", "not forwarded: reached by this session's commands alone")
        else:
            how = ("green", f"http://127.0.0.1:{port}/")
        rows.append(line(("cyan", f"  {where:<18}"), how))
        task = opened[port][1] if port in opened else None
        by = "a command of this session" if task is None else f"{task.id}  {_command(task)}"
        rows.append(sentence(("dim", f"    {by}")))
    if any(port not in forwarded for port in inside):
        rows.append(
            sentence(
                ("dim", "  sandbox.forward decides which ports are forwarded; those of well-known services are not.")
            )
        )
    chat.say(BLANK, *(rows or [line(("dim", "  No command of this session listens on a port."))]), BLANK)
    return None


def _opened(running: Iterable[tuple[Task, list[int]]]) -> dict[int, tuple[str, Task]]:
    """Port → where it is open, and the task that has opened it."""
    return {port: (host, task) for task, pids in running for port, host in listening(pids).items()}
