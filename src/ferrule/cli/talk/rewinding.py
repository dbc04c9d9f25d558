"""`/rewind`: back to before a prompt, with the files, the conversation, or both."""

import asyncio
from typing import TYPE_CHECKING

from ferrule.agent.attachments import words_of_parts
from ferrule.cli.rewinding import MOST_PROMPTS, Listed, done_words, listed, preview_rows, previewed
from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.line import BLANK, line, sentence
from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.workspace.entry_words import names_of
from ferrule.workspace.journal import Journal

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat
    from ferrule.workspace.rewind import Rewind

BACK = "back"
_STAYED = (
    "[The user has gone back to this point of the conversation. The files stayed as they are: what was changed behind "
    "this point is still there.]"
)
_CHOICES = {"b": "oth", "f": "iles", "c": "onversation", "n": "othing"}


async def rewind(chat: "Chat", rest: str) -> Next:
    """To the prompt of this number, or to one of a list; `back` takes the last rewind of the conversation back."""
    if rest.strip() == BACK:
        _unrewind(chat)
        return None
    agent, journal = chat.session.agent, chat.session.engine.need(Journal)
    entries = await asyncio.to_thread(journal.entries)
    prompts = listed(agent.talk.past, entries, agent.thread)
    if not prompts:
        chat.note("Nothing was said in this conversation yet.")
        return None
    said = rest.strip() or await _asked(chat, prompts)
    if said == BACK:
        _unrewind(chat)
    elif said:
        found = next((one for one in prompts if said == str(one.prompt.number)), None)
        if found is None:
            chat.note(f"There is no prompt {said}: they are numbered from 1 to {prompts[-1].prompt.number}.")
        else:
            await _rewind(chat, found)
    return None


async def _asked(chat: "Chat", prompts: list[Listed]) -> str:
    """What is typed to a list of the prompts."""
    column = len(str(prompts[-1].prompt.number))
    chat.say(BLANK)
    if len(prompts) > MOST_PROMPTS:
        chat.note(f"… {len(prompts) - MOST_PROMPTS:,} earlier ones: /rewind NUMBER goes back to one.")
    for one in prompts[-MOST_PROMPTS:]:
        chat.say(line(("cyan bold", f"  {one.prompt.number:>{column}}  "), one.words()))
    has_left = bool(chat.session.agent.talk.past.left)
    back = f", {BACK} to take back the last rewind of the conversation" if has_left else ""
    said = await chat.front.words(f"Back to before which one? (a number{back}; nothing to stay)")
    return (said or "").strip()


async def _rewind(chat: "Chat", one: Listed) -> None:
    engine, number = chat.session.engine, one.prompt.number
    try:
        preview = await previewed(engine, number)
    except ToolFailure as error:
        chat.note(error.message)
        return
    chat.say(BLANK, *(sentence(f"  {row}") for row in preview_rows(preview, engine.jail.shown)))
    has_files, has_talk = bool(preview.changes or preview.by_hand), one.prompt.place != "gone"
    if not has_talk:
        chat.note(f"Prompt {number} was summed up, so the conversation stays as it is.")
    offered = {"b": has_files and has_talk, "f": has_files, "c": has_talk, "n": True}
    if not (has_files or has_talk):
        return
    keys = [(key, rest) for key, rest in _CHOICES.items() if offered[key]]
    key = await chat.stoppable(chat.front.key(f"Go back to before prompt {number}?", keys))
    if key not in {"b", "f", "c"}:
        chat.note("Nothing was changed.")
        return
    over = False
    if key in {"b", "f"} and preview.by_hand:
        wanted = chat.front.key("Over what you changed by hand?", [("y", "es"), ("n", "o, leave that alone")])
        answer = await chat.stoppable(wanted)
        if answer is None:
            chat.note("Nothing was changed.")
            return
        over = answer == "y"
    await _go(chat, number, key, over=over)


async def _go(chat: "Chat", number: int, key: str, *, over: bool) -> None:
    """Files first: where they cannot go back, the conversation stays with them."""
    engine, agent = chat.session.engine, chat.session.agent
    changed: tuple[str, ...] = ()
    if key in {"b", "f"}:
        try:
            done: Rewind = await engine.rewind(number, over=over)
        except ToolFailure as error:
            chat.note(error.message)
            return
        changed = tuple(change.path for change in done.changes)
        how = " /undo takes that back." if done.entry else ""
        chat.note(f"{done_words(done, number)}{how}")
    if key == "f":
        if changed:
            names = names_of(changed, engine.jail.shown)
            agent.steer(
                f"[The user has taken files back to what they were before an earlier message: {names}.]", by_user=False
            )
        return
    try:
        text = agent.rewind(number)
    except FerruleError as error:
        chat.note(str(error))
        return
    chat.note(f"The conversation is before prompt {number} now. /rewind {BACK} takes that back.")
    if key == "c":
        agent.steer(_STAYED, by_user=False)
    chat.front.put_back(text, about=f"Prompt {number}")


def _unrewind(chat: "Chat") -> None:
    agent = chat.session.agent
    if not agent.unrewind():
        chat.note("The conversation was not rewound, so there is nothing to take back.")
        return
    agent.talk.steering = [parts for parts in agent.talk.steering if words_of_parts(parts) != _STAYED]
    chat.note("The conversation is as it was before it was rewound. The files stayed as they are.")
