"""The end of an earlier conversation, so that whoever goes on with it knows where they were."""

from collections.abc import Sequence

from ferrule.cli.talk.line import BLANK, line
from ferrule.cli.talk.lines import Piece, Prose
from ferrule.cli.talk.words import about
from ferrule.wire.turn import Document, Image, Part, Text, Turn, Use

_MOST_TURNS = 8
_MOST_CHARS = 2000


def tail(turns: Sequence[Turn], cwd: str) -> list[Piece]:
    """The last turns; calls as a line each, and of long words only their end."""
    spoken = [turn for turn in turns if any(_is_shown(part) for part in turn.parts)]
    if not spoken:
        return []
    more = len(spoken) - _MOST_TURNS
    out: list[Piece] = [BLANK, line(("dim", f"  … {more} earlier turns"))] if more > 0 else []
    for turn in spoken[-_MOST_TURNS:]:
        for part in turn.parts:
            if isinstance(part, Use):
                values = part.input if isinstance(part.input, dict) else {"input": part.input}
                out.append(line(("dim", "  • "), ("bold", part.name), f" {about(values, cwd)}"))
            elif isinstance(part, Text) and part.text.strip():
                out += [BLANK, *_words(turn.role, part.text.strip())]
            elif isinstance(part, Image | Document):
                out.append(line(("dim", f"  [{part}]")))
    return [*out, BLANK]


def _words(role: str, text: str) -> list[Piece]:
    text = text if len(text) <= _MOST_CHARS else f"…{text[-_MOST_CHARS:]}"
    if role == "assistant":
        return [Prose(text)]
    first, *rest = text.split("\n")
    return [line(("cyan bold", "> "), ("bold", first)), *(line("  ", ("bold", row)) for row in rest[:10])]


def _is_shown(part: Part) -> bool:
    return isinstance(part, Use | Image | Document) or (isinstance(part, Text) and bool(part.text.strip()))
