"""Commands that look: the model's tools, and what a conversation has changed."""

import asyncio
from typing import TYPE_CHECKING

from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.line import BLANK, line, sentence, whole_rows
from ferrule.workspace.journal import Journal

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat

_MOST_DIFF_ROWS = 2000


async def tools(chat: "Chat", _: str) -> Next:
    faces = chat.session.engine.faces()
    column = max((len(face.name) for face in faces), default=0)
    chat.say(BLANK)
    for face in faces:
        chat.say(sentence(("cyan", f"  {face.name:<{column}}"), ("dim", f"  {face.words.strip().splitlines()[0]}")))
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
        more = len(rows) - _MOST_DIFF_ROWS
        chat.say(line(("dim", f"  … {more:,} more line{'s' * (more > 1)}")))
    chat.say(BLANK)
    return None
