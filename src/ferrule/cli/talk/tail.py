"""The end of an earlier conversation, so that whoever goes on with it knows where they were."""

from collections.abc import Collection, Mapping, Sequence

from ferrule.agent.compacting import SUMMED_UP
from ferrule.agent.history import STOPPED_BEFORE
from ferrule.cli.talk.bang import OUTSIDE, RAN
from ferrule.cli.talk.line import BLANK, line, sentence
from ferrule.cli.talk.lines import Piece, Prose
from ferrule.cli.talk.words import about
from ferrule.flow import CHANGED_COMMAND
from ferrule.wire.turn import Document, Image, Part, Result, Text, Turn, Use

_MOST_TURNS = 8
_MOST_CHARS = 2000


def tail(
    turns: Sequence[Turn], cwd: str, typed: Mapping[int, str] | None = None, written: Collection[str] = ()
) -> list[Piece]:
    """The last turns; calls as a line each, and of long words only their end.

    `typed` is what the user wrote for the prompts, by the places of their turns, `written` all that they wrote, where
    that is known.
    """
    spoken = [(at, turn) for at, turn in enumerate(turns) if any(_is_shown(part) for part in turn.parts)]
    if not spoken:
        return []
    more = len(spoken) - _MOST_TURNS
    out: list[Piece] = [BLANK, line(("dim", f"  … {more} earlier messages"))] if more > 0 else []
    results = {part.id: part for turn in turns for part in turn.parts if isinstance(part, Result)}
    for at, turn in spoken[-_MOST_TURNS:]:
        for part in turn.parts:
            if isinstance(part, Use):
                values = part.input if isinstance(part.input, dict) else {"input": part.input}
                result = results.get(part.id)
                sign = ("red", "  ✗ ") if result is not None and result.failed else ("dim", "  • ")
                out.append(line(sign, ("bold", part.name), f" {about(values, cwd)}"))
                out += _made_of_it(result)
            elif isinstance(part, Text) and part.text == STOPPED_BEFORE:
                out += [BLANK, line(("dim", "  Interrupted."))]
            elif isinstance(part, Text) and turn.role == "user" and _is_told(part, turn, written):
                out += [BLANK, *_told(part.text)]
            elif isinstance(part, Text) and part.text.strip():
                text = (typed or {}).get(at, "") if part is _prompt(turn) else ""
                out += [BLANK, *_words(turn.role, text or part.text.strip())]
            elif isinstance(part, Image | Document):
                out.append(line(("dim", f"  [{part}]")))
    return [*out, BLANK]


def _told(text: str) -> list[Piece]:
    """The first line of what the model is told; of a command of the user's own that command, as it was typed."""
    if text.startswith(RAN) and "\n$ " in text:
        first, command, *_ = text.split("\n", 2)
        return _words("user", f"{'!!' if OUTSIDE in first else '!'}{command[2:]}")
    return [sentence(("dim", "  "), ("dim", text.split("\n", 1)[0]))]


def _made_of_it(result: Result | None) -> list[Piece]:
    """What the user made of a command before they allowed it: that is what has run."""
    texts = [part.text for part in result.parts[1:] if isinstance(part, Text)] if result is not None else []
    notes = [row for text in texts for row in text.split("\n")]
    changed = next((row for row in notes if row.startswith(f"Note: {CHANGED_COMMAND}")), "")
    return [sentence(("dim", f"    {changed.removeprefix('Note: ')}"))] if changed else []


def _prompt(turn: Turn) -> Part | None:
    """What the user has typed first; the answer to calls begins with their results."""
    first = next((part for part in turn.parts if not isinstance(part, Text) or part.text != STOPPED_BEFORE), None)
    return first if isinstance(first, Text) else None


def _is_told(part: Text, turn: Turn, written: Collection[str]) -> bool:
    """Is it what the program tells the model: a summary, a hook's words, what the user stopped or put in with @?"""
    told = ("[The user ", "[The session ")
    if part is _prompt(turn):
        return part.text.startswith(SUMMED_UP)
    return part.text not in written if written else part.text.startswith(told)


def _words(role: str, text: str) -> list[Piece]:
    text = text if len(text) <= _MOST_CHARS else f"…{text[-_MOST_CHARS:]}"
    if role == "assistant":
        return [Prose(text)]
    first, *rest = text.split("\n")
    shown = [sentence(("cyan bold", "> "), ("bold", first)), *(sentence("  ", ("bold", row)) for row in rest[:10])]
    return (
        [*shown, line(("dim", f"  … {len(rest) - 10} more line{'s' * (len(rest) > 11)}"))]
        if len(rest) > 10
        else [*shown]
    )


def _is_shown(part: Part) -> bool:
    return isinstance(part, Use | Image | Document) or (isinstance(part, Text) and bool(part.text.strip()))
