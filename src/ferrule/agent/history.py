"""The turns of a conversation, how much of a window they fill, and that no call among them stays unanswered."""

from collections.abc import Iterable, Sequence

from ferrule.core.content import data_bytes
from ferrule.wire.turn import Document, Image, Part, Result, Said, Text, Thinking, Turn, Use

RESUMED = "error: tool execution was interrupted (session resumed)"
INTERRUPTED = "error: tool execution was interrupted by the user"
STOPPED_BEFORE = "[The user interrupted you before this message.]"
EMPTY = "[The user sent nothing.]"
LEFT_OFF = "left-off"
"""What the store calls the place where the user has interrupted a conversation."""

CHARS_PER_TOKEN = 3.5
_IMAGE_TOKENS = 1_600
_PAGE_TOKENS = 2_000
_PAGE_BYTES = 25_000
"""Of a PDF whose pages nobody has counted: the API says with its answer how many tokens they were."""
_MOST_PAGES = 100
_TURN_TOKENS = 4


class History:
    """Turns in their order. Turns are never changed: what was encoded once need not be encoded again."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.turns: list[Turn] = list(turns)
        self.ids = {part.id for turn in self.turns for part in turn.parts if isinstance(part, Use)}
        """Of all calls that there ever were, those that were summed up too."""
        self._measured = 0
        """Tokens that the API has counted, up to and with the turn `_upto - 1`."""
        self._upto = 0
        self._above = 0
        """About how many tokens the system prompt and the definitions take, where the API has not counted them."""

    def weigh_above(self, chars: int) -> None:
        """Say how long what stands above the conversation is."""
        self._above = int(chars / CHARS_PER_TOKEN)

    @property
    def above(self) -> int:
        """About how many tokens the system prompt and the tools take."""
        return self._above

    @property
    def tokens(self) -> int:
        """About how much of the window it fills: what the API has counted, and an estimate of what came since."""
        counted = self._measured or self._above
        return counted + sum(map(tokens_of, self.turns[self._upto :]))

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)

    def hear(self, said: Said) -> Turn | None:
        """Take the model's answer; None where it said nothing at all."""
        turn = Turn("assistant", said.parts) if said.parts else None
        if turn is not None:
            self.turns.append(turn)
            self.ids.update(part.id for part in said.parts if isinstance(part, Use))
        # Where the API counts nothing, the estimate so far stands for it: no turn is estimated twice.
        self._measured = said.usage.input + max(0, said.usage.output) if said.usage.input > 0 else self.tokens
        self._upto = len(self.turns)
        return turn

    def replace(self, turns: Sequence[Turn]) -> None:
        """Have another, smaller conversation from now on."""
        before = sum(map(tokens_of, self.turns))
        above = max(self._above, self.tokens - before) if self._measured else self._above
        self.turns = list(turns)
        self._measured, self._upto, self._above = 0, 0, above

    def unanswered(self) -> list[Use]:
        """The calls of the last answer that have no result."""
        last = next((at for at in reversed(range(len(self.turns))) if self.turns[at].role == "assistant"), None)
        if last is None:
            return []
        behind = (part for turn in self.turns[last + 1 :] for part in turn.parts)
        answered = {part.id for part in behind if isinstance(part, Result)}
        return [part for part in self.turns[last].parts if isinstance(part, Use) and part.id not in answered]

    def mend(self, words: str) -> Turn | None:
        """Answer the calls that nobody has answered, so that any model API takes the conversation; the turn added."""
        missing = self.unanswered()
        if not missing:
            return None
        turn = Turn("user", tuple(failed(use, words) for use in missing))
        self.turns.append(turn)
        return turn


def failed(use: Use, words: str) -> Result:
    """The answer to a call that was not made, or of which nobody knows what came."""
    return Result(use.id, (Text(words),), failed=True, name=use.name)


def tokens_of(turn: Turn) -> int:
    """About how many tokens a turn takes."""
    return _TURN_TOKENS + sum(map(_part_tokens, turn.parts))


def _part_tokens(part: Part) -> int:
    match part:
        case Text():
            return int(len(part.text) / CHARS_PER_TOKEN) + 1
        case Thinking():
            return int((len(part.text) + len(part.sealed)) / CHARS_PER_TOKEN) + 1
        case Image():
            return _IMAGE_TOKENS
        case Document():
            return _document_tokens(part)
        case Use():
            size = len(part.input) if isinstance(part.input, str) else len(str(part.input))
            return int((size + len(part.name)) / CHARS_PER_TOKEN) + 8
        case Result():
            return 8 + sum(map(_part_tokens, part.parts))
        case _:
            return int(len(str(part.block)) / CHARS_PER_TOKEN)


def _document_tokens(document: Document) -> int:
    size = data_bytes(document)
    if document.media_type.startswith("text/"):
        return int(size / CHARS_PER_TOKEN) + 1
    return _PAGE_TOKENS * max(1, min(_MOST_PAGES, size // _PAGE_BYTES))


def words_of(turn: Turn) -> str:
    """What was said in words."""
    return "".join(part.text for part in turn.parts if isinstance(part, Text))
