"""Commands about conversations as they are kept: going on with one, copying, naming and writing out this one."""

import asyncio
import os
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from ferrule.cli.talk.commands import Next, SessionRestart
from ferrule.cli.talk.picker import PickerRow, Scope
from ferrule.cli.talk.status import home_short
from ferrule.cli.talk.text import BLANK, Line, cut, line, wide
from ferrule.core.errors import FerruleError
from ferrule.tools.threads.thread import Item, Thread, ThreadMetadata, count_noun, parse_thread_id, when

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ferrule.cli.talk.chat import Chat
    from ferrule.tools.threads.store import ThreadStore


T = TypeVar("T")
_MOST_THREADS = 1_000
_MOST_LISTED = 15
_AGES = ((60.0, 60, "m"), (3_600.0, 24, "h"), (86_400.0, 14, "d"), (7 * 86_400.0, 52, "w"))
_BRANCH_COLUMNS = 14
_FOLDER_COLUMNS = 16
_WIDE_COLUMNS, _WIDER_COLUMNS = 80, 100
"""A narrower terminal shows less beside the titles."""


class _Columns(NamedTuple):
    """How wide what stands before the titles is; 0 for what has no room."""

    prompts: int
    branch: int
    folder: int


async def resume(chat: "Chat", rest: str) -> Next:
    """Go on with another conversation: by its id, or chosen from a list, which words behind the command filter."""
    if rest and (thread := await _by_id(chat, rest)):
        return _go_on(chat, thread)
    here = await _rows(chat, every=False)
    other = Scope("all folders", "this folder", lambda: _rows(chat, every=True))
    if rest and not any(row.has(rest.casefold().split()) for row in here):
        here = [row for row in await other.rows() if row.has(rest.casefold().split())]
        if not here:
            chat.note(f"No other conversation of any folder has “{rest}” in its title, folder, branch or last words.")
            return None
        chat.note(f"None of this folder has “{rest}”; these are of other folders.")
    if not here and not await other.rows():
        chat.note("There are no earlier conversations.")
        return None
    chosen = await chat.front.pick("Which conversation?", here, other=other, query=rest)
    return None if chosen is None else _go_on(chat, chosen)


async def _by_id(chat: "Chat", name: str) -> str:
    """The conversation that an id means; empty for words. Raises `FerruleError` for an id that means none, or many."""
    wanted = parse_thread_id(name)
    found = await _ask_store(lambda store: store.find_ids(name), chat) if wanted else ()
    if len(found) == 1:
        return str(found[0])
    if len(found) > 1:
        raise FerruleError(f"{name} is the beginning of several ids: {', '.join(found)}. Give more of it.")
    if name.isdecimal() or name.strip().lower().lstrip("@").startswith("t-"):
        raise FerruleError(
            f"There is no conversation with the id {name}: an id is as T-a27930f2, or six characters of it. "
            "/resume without one lists them to choose from."
        )
    return ""


def _go_on(chat: "Chat", thread: str) -> Next:
    if thread == chat.session.agent.thread:
        chat.note("That is this conversation.")
        return None
    return SessionRestart(resume=thread)


async def _rows(chat: "Chat", *, every: bool) -> list[PickerRow]:
    """The conversations of this folder and those below it, or of all, as rows; the newest first."""
    folder = None if every else chat.session.engine.jail.folder
    found = await _ask_store(lambda store: store.list(limit=_MOST_THREADS, workspace=folder), chat)
    found = [about for about in found if about.id != chat.session.agent.thread]
    width = chat.front.width
    longest = max((wide(about.branch) for about in found), default=0)
    columns = _Columns(
        prompts=11 if width >= (_WIDER_COLUMNS if every else _WIDE_COLUMNS) else 0,
        branch=min(longest, _BRANCH_COLUMNS if width >= _WIDE_COLUMNS else 0 if every else 10),
        folder=(_FOLDER_COLUMNS if width >= _WIDE_COLUMNS else 12) if every else 0,
    )
    now = time.time()
    return [_row(about, now, columns) for about in found]


def _row(about: ThreadMetadata, now: float, columns: _Columns) -> PickerRow:
    folder = home_short(about.workspace)
    last = about.last_answer or about.last_prompt
    # Shown as they are: what a model or a file has called something is made harmless by `line`.
    parts = [f"{age(about.updated, now):>4}"]
    if columns.prompts:
        parts.append(f"{count_noun(about.prompts, 'prompt'):>{columns.prompts}}")
    if columns.branch:
        parts.append(_pad_column(about.branch, columns.branch))
    if columns.folder:
        parts.append(_pad_column(os.path.basename(about.workspace), columns.folder))
    facts = [about.size, about.id[:10], *([folder] if columns.folder else []), *([f"“{last}”"] if last else [])]
    return PickerRow(
        about.id,
        line(("dim", "  ".join(parts) + "  "), about.title or "(no title)"),
        search=f"{about.title} {folder} {about.branch} {about.last_prompt} {about.last_answer} {about.id[:10]}",
        detail=" · ".join(facts),
    )


def _pad_column(text: str, columns: int) -> str:
    shown = cut(" ".join(text.split()), columns)
    return shown + " " * (columns - wide(shown))


def age(then: float, now: float) -> str:
    """How long ago something was, in four columns: `now`, `5m`, `3h`, `2d`, `6w`, or a year and a month."""
    seconds = max(0.0, now - then)
    if seconds < _AGES[0][0]:
        return "now"
    for unit, most, sign in _AGES:
        if seconds < unit * most:
            return f"{int(seconds // unit)}{sign}"
    return time.strftime("%b%y", time.localtime(then))


async def threads(chat: "Chat", _: str) -> Next:
    """The newest conversations of this folder."""
    folder = chat.session.engine.jail.folder
    found = await _ask_store(lambda store: store.list(limit=_MOST_LISTED, workspace=folder), chat)
    chat.say(BLANK, *map(_thread_line, found))
    if not found:
        chat.note("There are no earlier conversations of this folder.")
    chat.say(BLANK)
    return None


def _thread_line(about: ThreadMetadata) -> Line:
    facts = f"{when(about.updated)}  {about.id[:10]}  {count_noun(about.prompts, 'prompt'):>11}  "
    return line(("dim", f"  {facts}"), about.title or "(no title)")


async def _ask_store(ask: "Callable[[ThreadStore], Sequence[T]]", chat: "Chat") -> "Sequence[T]":
    """What the store of conversations has. Raises `FerruleError` if it cannot be used."""
    from ferrule.system.sqlite import UnusableError  # loads SQLite
    from ferrule.tools.threads.store import ThreadStore

    store = chat.session.engine.need(ThreadStore)
    await chat.session.agent.talk.flush()  # what was said here last is in it too
    try:
        return await asyncio.to_thread(ask, store)
    except UnusableError as error:
        raise FerruleError(str(error)) from error


async def fork(chat: "Chat", _: str) -> Next:
    """Go on in a copy of this conversation; the one that is copied stays as it is."""
    before = chat.session.agent.thread
    copy = await chat.session.copy()
    chat.note(
        f"You go on in a copy of this conversation, {copy}. What was changed so far belongs to the one before it, and "
        f"/diff begins anew. That one stays: /resume {before[:10]}"
    )
    chat.move(copy)
    return SessionRestart(resume=copy, permission_mode=None if chat.mode() == "plan" else chat.mode())


async def rename(chat: "Chat", rest: str) -> Next:
    """Give this conversation the user's own title."""
    if rest:
        chat.session.rename(rest)
        chat.note(f"This conversation is called “{' '.join(rest.split())}” now.")
        return None
    thread = chat.session.agent.thread
    found = await _ask_store(lambda store: [one for one in [store.about(thread)] if one is not None], chat)
    called = f"This conversation is called “{found[0].title}”. " if found and found[0].title else ""
    chat.note(f"{called}/rename TITLE gives it another title.")
    return None


async def export(chat: "Chat", rest: str) -> Next:
    """Write this conversation into a file: Markdown, or JSON by the ending of its name."""
    from ferrule.cli.threads import export_form, render_export, write_export  # for who takes one away

    agent, folder = chat.session.agent, chat.session.engine.jail.folder
    if not agent.turns and not agent.talk.past.number:
        chat.note("Nothing was said in this conversation yet, so there is nothing to write.")
        return None
    name = os.path.expanduser(rest.strip() or f"{agent.thread[:10]}.md")
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        chat.note(f"{home_short(path)} is a folder. Name a file in it: /export {os.path.join(name, 'NAME.md')}")
        return None
    text = await asyncio.to_thread(render_export, await _whole(chat), export_form(path))
    over = False
    while True:
        try:
            await asyncio.to_thread(write_export, path, text, over=over)
        except FileExistsError:
            keys = [("y", "es"), ("n", "o")]
            if (
                await chat.stoppable(chat.front.key(f"{home_short(path)} is there already. Write over it?", keys))
                != "y"
            ):
                chat.note("Nothing was written.")
                return None
            over = True
        except OSError as error:
            chat.note(f"{home_short(path)} cannot be written: {error.strerror or error}. /export FILE names another.")
            return None
        else:
            chat.note(f"Wrote {home_short(path)}. It holds all that was said and read, so it is for you alone.")
            return None


async def _whole(chat: "Chat") -> Thread:
    """This conversation as it is kept; if it is not, as its model sees it."""
    agent, engine = chat.session.agent, chat.session.engine
    await agent.talk.flush()
    loaded = await _ask_store(lambda store: [one for one in [store.load(agent.thread)] if one and one.items], chat)
    if loaded:
        return loaded[0]
    about = ThreadMetadata(agent.thread, engine.jail.folder, model=agent.model.name, dialect=engine.dialect.name)
    return Thread(about, tuple(Item("turn", turn.role, msgspec.json.encode(turn)) for turn in agent.turns))
