"""The line below the input: what holds now. What matters most survives on a narrow terminal."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrule.agent.prompt import checked_out
from ferrule.cli.talk.line import Line, line, plain, wide
from ferrule.cli.talk.words import dollars
from ferrule.support.tasks import Tasks

OPENING = [line(("dim", "opening…"))]
_MOST_NAME = 44
_MOST_BRANCH = 32
_MOST_FOLDER = 40
_MOST_PORTS = 4
_BETWEEN = 3
_FULL_PERCENT = 70
_BRANCH_SECONDS = 1.0
_PORTS_SECONDS = 2.0
_STYLES = {"plan": "magenta bold", "bypassPermissions": "red bold", "acceptEdits": "yellow"}


class Port(NamedTuple):
    """A port on which a command listens."""

    number: int
    is_forwarded: bool
    """Does the user reach it too?"""


class Part(NamedTuple):
    """One thing that the line says, at length and in short."""

    rank: int
    """The lowest of them are left out last."""
    whole: Line
    short: Line


class Beside:
    """What is looked at now and then, for it changes without an event: the branch, and the ports of commands."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._branch = ("", float("-inf"), "")
        self._ports: tuple[Port, ...] = ()
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    def branch(self, folder: str) -> str:
        """What is checked out there, from the files of git; empty outside of a repository."""
        now = self._clock()
        known, looked_at, branch = self._branch
        if known != folder or now - looked_at >= _BRANCH_SECONDS:
            branch = checked_out(folder)
            self._branch = folder, now, branch
        return branch

    def ports(self, engine: Any) -> tuple[Port, ...]:
        """Where commands listen, as it was seen last. Nothing is asked while none runs."""
        if not engine.need(Tasks).running:
            self._ports = ()
        elif self._clock() - self._looked_at >= _PORTS_SECONDS and self._looking is None:
            self._looking = asyncio.ensure_future(self._look(engine))
        return self._ports

    async def _look(self, engine: Any) -> None:
        from ferrule.workspace.confinement import Confinement  # loaded with the first command

        try:
            found = await asyncio.to_thread(engine.need(Confinement).ports)
            self._ports = tuple(Port(*one) for one in found)
        finally:
            self._looked_at, self._looking = self._clock(), None


def status(agent: Any, engine: Any, mode: str, *, answer: str, beside: Beside, width: int) -> list[Line]:
    """Permission mode, model, context, cost, what runs in the background, branch, folder and dialect.

    Only what fits into so many columns; each in short if not all of them have room at length.
    """
    folder = engine.jail.folder
    parts = [
        Part(0, *_mode(mode, answer)),
        Part(4, *_model(agent.model.name)),
        Part(1, *_context(agent)),
        _same(2, dollars(agent.spent.cost)),
        Part(3, *_background(engine.need(Tasks).running, beside.ports(engine))),
        _same(5, _cut(beside.branch(folder), _MOST_BRANCH)),
        Part(6, *(line(("dim", text)) for text in _folder(folder))),
        _same(7, engine.dialect.name),
    ]
    return fit([part for part in parts if plain(part.whole)], width)


def fit(parts: Sequence[Part], width: int) -> list[Line]:
    """The parts that have room, in their order: first all of them in short, and then at length as far as it goes."""
    kept = {part.rank: part.short for part in parts}
    for part in sorted(parts, reverse=True):
        if _size(kept.values()) <= width:
            break
        if len(kept) > 1:
            del kept[part.rank]
    for part in sorted(parts):
        if part.rank in kept and _size({**kept, part.rank: part.whole}.values()) <= width:
            kept[part.rank] = part.whole
    return [kept[part.rank] for part in parts if part.rank in kept]


def _size(lines: Any) -> int:
    sizes = [wide(plain(one)) for one in lines]
    return sum(sizes) + _BETWEEN * (len(sizes) - 1)


def _same(rank: int, text: str) -> Part:
    one = line(("dim", text))
    return Part(rank, one, one)


def _mode(mode: str, answer: str) -> tuple[Line, Line]:
    shown = line((_STYLES.get(mode, "dim"), "plan mode" if mode == "plan" else mode))
    more = {"yes": line(("red bold", "yes")), "deny": line(("dim", "asks nobody"))}.get(answer, ())
    whole = (*shown, ("dim", " + "), *more) if more else shown
    return whole, whole


def _model(name: str) -> tuple[Line, Line]:
    """A model's name; in short without its host. Of one that is a file's, the end tells more than the way to it."""
    host, _, rest = name.partition(":")
    whole = name if len(name) <= _MOST_NAME else f"{host}:…{name[-_MOST_NAME // 2 :]}"
    short = os.path.basename(rest.rstrip("/")) or name
    return line(("dim", whole)), line(("dim", _cut(short, _MOST_NAME // 2)))


def _context(agent: Any) -> tuple[Line, Line]:
    window = agent.model.window
    used = min(100, 100 * agent.context_tokens // window) if window else 0
    style = "yellow" if used >= _FULL_PERCENT else "dim"
    return line((style, f"context {100 - used}% left")), line((style, f"{100 - used}% left"))


def _background(running: int, ports: Sequence[Port]) -> tuple[Line, Line]:
    """How many commands run, and where they listen; `inside` is a port that only other commands reach."""
    if not running:
        return (), ()
    count = f"{running} running"
    shown = [f"{one.number}{'' if one.is_forwarded else ' inside'}" for one in ports[:_MOST_PORTS]]
    shown += [f"{len(ports) - _MOST_PORTS} more"] if len(ports) > _MOST_PORTS else []
    if not shown:
        return (one := line(("yellow", count))), one
    few = f" :{shown[0]}" + (f" +{len(ports) - 1}" if len(ports) > 1 else "")
    named = f" on port{'s' * (len(ports) > 1)} {', '.join(shown)}"
    return line(("yellow", count + named)), line(("yellow", count + few))


def _folder(folder: str) -> tuple[str, str]:
    short = home_short(folder)
    return _cut(short, _MOST_FOLDER), os.path.basename(short.rstrip(os.sep)) or short


def _cut(text: str, most: int) -> str:
    """The end of a text: it tells more of a path or a branch than the beginning."""
    return text if len(text) <= most else f"…{text[-most + 1 :]}"


def home_short(path: str) -> str:
    """A path with `~` for the home folder."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if home != "/" and (path == home or path.startswith(home + os.sep)) else path
