"""A conversation as the store has it: found, and made ready to go on."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from ferrule.agent.events import Spent
from ferrule.agent.history import LEFT_OFF, RESUMED, History, failed
from ferrule.agent.past import REWOUND, UNREWOUND, Mark, Past, Step, View, moved, prompt_text
from ferrule.agent.planned import PLANNING, Plan
from ferrule.agent.reads import READ
from ferrule.core.errors import ConfigError
from ferrule.wire.turn import Document, Image, Part, Result, Text, Turn, Use
from ferrule.workspace.ledger import Sights
from ferrule.workspace.thread import PROMPT, WRITTEN, named

if TYPE_CHECKING:
    from ferrule.workspace.thread_store import Item, Thread, ThreadStore


T = TypeVar("T")
UNREAD = "[What was said before this could not be read any more.]"
"""Stands before what the model said, where nothing of the user's is left: the user speaks first, and between."""


class _Whole(msgspec.Struct):
    turns: list[Turn]
    marks: list[Mark] = []


class Resumed(NamedTuple):
    """What is known of an earlier conversation."""

    history: History
    spent: Spent
    mended: Turn | None
    """The results of calls that a crash has left without any; they are in the history."""
    lost: int
    """How many items could not be read."""
    is_left_off: bool
    """Did the user interrupt it, and has said nothing since?"""
    past: Past
    reads: tuple[Sights, ...] = ()
    """What was read in it, in its order."""
    plan: Plan | None = None
    """The plan mode that it was left in."""
    workspace: str = ""
    """Where it was had."""
    written: tuple[str, ...] = ()
    """What the user wrote in it, also where it was rewound or summed up since."""
    titled_by: str = ""
    """Who has given it its title: `user`, `model`, or nobody."""


def found(state: str, name: str, workspace: str) -> str:
    """The id of the conversation that is meant, by its name or as the `last` of a folder. Raises: ConfigError."""
    from ferrule.workspace.thread_store import ThreadStore  # SQLite is for conversations that go on

    folder = os.path.realpath(workspace)
    # One of its own: how long threads are kept is known only with the settings, and reading does not ask for it.
    store = ThreadStore(os.path.join(state, "threads"))
    try:
        meant = looked_up(lambda: (store.latest(folder) or "",) if name == "last" else store.meant(name))
    finally:
        store.close()
    if len(meant) > 1:
        raise ConfigError(f"{name!r} is the beginning of several ids: {', '.join(meant)}. Give more of it.")
    if any(meant):
        return meant[0]
    if name == "last":
        raise ConfigError(f"There is no conversation to go on with in {folder}: `ferrule threads list --all`.")
    raise ConfigError(no_thread(name))


def no_thread(name: str) -> str:
    """What to say about the name of a conversation that there is none of."""
    what = "" if named(name) else " An id begins with T-, as T-a27930f2."
    return (
        f"There is no conversation {name!r}.{what} `ferrule threads list --all` lists their ids, and /resume, or "
        "`ferrule chat --resume`, lets you choose one."
    )


def unused(state: str, thread: str) -> None:
    """Raise `ConfigError` if there is a conversation of this id already."""
    from ferrule.workspace.thread_store import ThreadStore  # as above

    store = ThreadStore(os.path.join(state, "threads"))
    try:
        is_there = looked_up(lambda: store.about(thread)) is not None
    finally:
        store.close()
    if is_there:
        raise ConfigError(f"There is a conversation {thread} already: --resume {thread} goes on with it.")


def copied(state: str, thread: str, copy: str) -> str:
    """Copy a conversation, and return the id of the copy. Raises: ConfigError."""
    from ferrule.workspace.thread_store import ThreadStore  # as above

    store = ThreadStore(os.path.join(state, "threads"))

    try:
        if not looked_up(lambda: store.copy(thread, copy)):
            raise ConfigError("The conversation cannot be copied: the store has nothing of it.")
    finally:
        store.close()
    return copy


def looked_up(work: Callable[[], T]) -> T:
    """What is in the store; where it cannot be read, the user has to do something about it. Raises: ConfigError."""
    from ferrule.support.sqlite import UnusableError  # with the store

    try:
        return work()
    except UnusableError as error:
        raise ConfigError(str(error)) from error


def opened(store: "ThreadStore", thread: str) -> Resumed:
    """A session's own conversation, to go on with. Raises: ConfigError."""
    loaded = looked_up(lambda: store.load(thread))
    if loaded is None:
        return resume(())
    return resume(loaded.items)._replace(workspace=loaded.about.workspace, titled_by=loaded.about.titled_by)


def below(store: "ThreadStore", parent: str, name: str) -> tuple[str, Resumed] | None:
    """A conversation of a subagent of the parent's, with its id; None where it has none of that name.

    Raises: ConfigError.
    """

    def load() -> "Thread | None":
        meant = store.resolve(name)
        return None if meant is None else store.load(meant)

    thread = looked_up(load)
    if thread is None or thread.about.parent != parent:
        return None
    return thread.about.id, resume(thread.items)


class _Replayed:
    """A conversation as its items say it went, one after the other."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.past = Past()
        self.reads: list[Sights] = []
        self.written: list[str] = []
        self.answers = 0
        """Of the model, also where a crash has left them out of what was spent."""
        self.spent = Spent()
        self.is_left_off = False
        self.plan: Plan | None = None
        self.ids: set[str] = set()
        """Of all calls that there ever were."""
        self._number = 0
        """Of the prompt that the next turn is, if it is one."""
        self._typed: list[str] = []
        """What the user wrote since the last turn. The first is what they wrote for the prompt, if that is not all."""

    def play(self, item: "Item") -> None:
        """Raises: MsgspecError, UnicodeDecodeError."""
        if item.kind == "turn":
            number, self._number = self._number, 0
            typed, self._typed = self._typed, []
            turn = msgspec.json.decode(item.body, type=Turn)
            if number:
                self.past.begin(
                    number, len(self.turns), turn, item.at, "" if prompt_text(turn) in typed else "".join(typed[:1])
                )
            self.turns.append(turn)
            self.answers += turn.role == "assistant"
            self.ids.update(part.id for part in turn.parts if isinstance(part, Use))
            self.is_left_off = False
        elif item.kind == "compacted":
            whole = msgspec.json.decode(item.body, type=_Whole)
            self.turns, self.past.marks = whole.turns, whole.marks
        elif item.kind == REWOUND:
            step = msgspec.json.decode(item.body, type=Step)
            self._show(self.past.rewind(step, self.view()))
        elif item.kind == UNREWOUND:
            self._show(self.past.unrewind(self.view()))
        else:
            self._hear(item)

    def _hear(self, item: "Item") -> None:
        """What is said about it."""
        if item.kind == PROMPT:
            self._number = msgspec.json.decode(item.body, type=int)
        elif item.kind == READ:
            self.reads.append(msgspec.json.decode(item.body, type=Sights))
        elif item.kind == WRITTEN:
            self.written.append(msgspec.json.decode(item.body, type=str))
            self._typed.append(self.written[-1])
        elif item.kind == LEFT_OFF:
            self.is_left_off = True
        elif item.kind == "spent":
            self.spent = msgspec.json.decode(item.body, type=Spent)
        elif item.kind == PLANNING:
            self.plan = msgspec.json.decode(item.body, type=Plan | None)

    def view(self) -> View:
        return View(tuple(self.turns), tuple(self.past.marks), self.is_left_off)

    def _show(self, view: View | None) -> None:
        if view is not None:
            self.turns, self.is_left_off = list(view.turns), view.is_left_off


def resume(items: "Sequence[Item]") -> Resumed:
    """The conversation as its model saw it last; what a crash has left open is answered."""
    played, lost = _Replayed(), 0
    for item in items:
        try:
            played.play(item)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            lost += 1
    past = played.past
    past.written = frozenset(played.written)
    past.left = [_whole(view) for view in past.left]
    view = _whole(played.view())
    history, past.marks = History(view.turns), list(view.marks)
    history.ids |= played.ids  # an id that was rewound or summed up stands for what was read there
    return Resumed(
        history,
        msgspec.structs.replace(played.spent, turns=max(played.spent.turns, played.answers)),
        history.mend(RESUMED),
        lost,
        played.is_left_off,
        past,
        tuple(played.reads),
        played.plan,
        written=tuple(played.written),
    )


def _whole(view: View) -> View:
    """The same, valid for any model API."""
    turns, places = _answered(view.turns)
    return View(tuple(turns), tuple(moved(view.marks, places)), view.is_left_off)


def _answered(turns: Sequence[Turn]) -> tuple[list[Turn], list[int]]:
    """Every call has one id, one result, and every result its call, whatever could not be read or was put there.

    With the place that each turn has now; negative for one that is gone.
    """
    out: list[Turn] = []
    places: list[int] = []
    taken: set[str] = set()
    waiting: dict[str, list[Use]] = {}
    for turn in turns:
        if turn.role == "assistant":
            out += _results(waiting)
            waiting = {}
            parts = tuple(_distinct(part, taken, waiting) for part in turn.parts if not isinstance(part, Result))
        elif turn.role == "user":
            kept = [found for part in turn.parts if (found := _its_own(part, waiting)) is not None]
            parts = (*(part for missing in _results(waiting) for part in missing.parts), *kept)
            waiting = {}
        else:  # what stands above a conversation is no part of it
            parts = ()
        if turn.role == "assistant" and parts and (not out or out[-1].role == "assistant"):
            out.append(Turn("user", (Text(UNREAD),)))
        places.append(len(out) if parts else -1)
        if parts:
            out.append(turn if parts == turn.parts else Turn(turn.role, parts))
    return out, places


def _distinct(part: Part, taken: set[str], waiting: dict[str, list[Use]]) -> Part:
    """A call under an id that no other has; it waits for its result."""
    if not isinstance(part, Use):
        return part
    own, number = part.id, 0
    while not own or own in taken:
        number += 1
        own = f"{part.id or 'call'}_{len(taken) + number}"
    taken.add(own)
    use = part if own == part.id else msgspec.structs.replace(part, id=own)
    waiting.setdefault(part.id, []).append(use)
    return use


def _its_own(part: Part, waiting: dict[str, list[Use]]) -> Part | None:
    """A part of the user's side; None for a call, for blank words, and for a result of nothing."""
    if isinstance(part, Use) or (isinstance(part, Text) and not part.text.strip()):
        return None
    if not isinstance(part, Result):
        return part
    uses = waiting.get(part.id)
    if not uses:
        return None
    use = uses.pop(0)
    return part if use.id == part.id else msgspec.structs.replace(part, id=use.id)


def _results(waiting: dict[str, list[Use]]) -> list[Turn]:
    """A turn that answers the calls that still wait, or none."""
    uses = [use for some in waiting.values() for use in some]
    return [Turn("user", tuple(failed(use, RESUMED) for use in uses))] if uses else []


def as_text(items: "Sequence[Item]", shown: Callable[[str], str] = str) -> str:
    """All turns as text, line by line, for whoever reads back what was summed up."""
    lines: list[str] = []
    for item in items:
        if item.kind != "turn":
            continue
        try:
            turn = msgspec.json.decode(item.body, type=Turn)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        lines += (shown(line) for line in _lines(turn))
    return "\n".join(lines)


def _is_told(part: Part) -> bool:
    return isinstance(part, Text | Image | Document)


def _lines(turn: Turn) -> list[str]:
    out = [f"## {turn.role}"]
    for part in turn.parts:
        match part:
            case Text():
                out.append(part.text)
            case Use():
                out.append(f"call {part.name} {msgspec.json.encode(part.input).decode()}")
            case Result():
                head = "failed" if part.failed else "result"
                out.append(f"{head} of {part.name}:")
                out += (one.text if isinstance(one, Text) else f"({one})" for one in part.parts if _is_told(one))
            case Image():
                out.append(f"({part})")
            case Document():
                out += (f"({part})", *part.text.splitlines())
            case _:
                pass
    return out
