"""Bodies as bytes: what a conversation already had when it was sent last is not written again.

A conversation is cut into segments: what the model said, and what came behind it until the model speaks again. A turn
never changes, so a segment is written once, and a body is its segments put together. That this is the same as writing
the conversation at once holds for every wire, and a test says so.

A body is given in pieces, and the old ones are the same objects every time: to copy a long conversation into one text
would cost more than all the rest of asking.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter, is_
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from ferrule.models.catalog import About
from ferrule.models.hosts import Host
from ferrule.models.shaping import shaped
from ferrule.wire.conversation import freed
from ferrule.wire.thinking import is_own
from ferrule.wire.turn import Asked, Definition, Result, Text, Thinking, Turn, Use
from ferrule.wire.wire import load_wire


class _Place(NamedTuple):
    """Where an API has the conversation."""

    key: str
    leading: bool = False
    """Do only the first of the system's words stand apart?"""
    inline: bool = False
    """Do all of the system's words stand in the conversation?"""
    vouches: bool = False
    """Do models that think by a level want their calls signed?"""
    ends_thinking: bool = False
    """May what the model said end in thinking? Others refuse it: something has to follow."""


_PLACES = {
    "anthropic": _Place("messages"),
    "openai-chat": _Place("messages", inline=True, ends_thinking=True),
    "openai-responses": _Place("input", leading=True),
    "gemini": _Place("contents", vouches=True, ends_thinking=True),
}
_MARKED = b',"cache_control":{"type":"ephemeral"}}]}'
_END = b"}]}"
_NOT_OURS = Thinking("", "skip_thought_signature_validator", wire="gemini")
"""What Gemini documents for calls that it has not signed itself."""
_MARKS = 2
_LAST = 3
"""So many segments may still change: the last one grows, and two are marked."""
_PIECE_BYTES = 96 * 1024
"""A piece that is not going to grow any more has at least so many."""


class _Segment:
    """Some turns as they are sent."""

    __slots__ = ("_kept", "data", "is_alone", "turns")

    def __init__(self, turns: tuple[Turn, ...], data: bytes, *, is_alone: bool, kept: bytes = b"") -> None:
        """`kept` is how `data` begins, up to what the next question may not have any more."""
        self.turns = turns
        self.data = data
        self._kept = kept or data
        self.is_alone = is_alone
        """Can it be written without looking at the others? Not where it answers a call of another one."""

    def marked(self) -> bytes:
        """The same, and the API keeps what it has read until here."""
        return self._kept[: -len(_END)] + _MARKED + self.data[len(self._kept) :]

    @property
    def can_be_marked(self) -> bool:
        return self.turns[-1].role == "user" and self._kept.endswith(_END)


class _Joined:
    """The first segments of a conversation, put together, with a comma behind each."""

    def __init__(self) -> None:
        self.turns: tuple[Turn, ...] = ()
        self._done: list[bytes] = []
        self._growing = bytearray()

    def put(self, segment: _Segment) -> None:
        self.turns += segment.turns
        if segment.data:
            self._growing += segment.data
            self._growing += b","
        if len(self._growing) >= _PIECE_BYTES:
            self._done.append(bytes(self._growing))
            self._growing.clear()

    def begins(self, turns: tuple[Turn, ...]) -> bool:
        """Does a conversation begin with these? Turns that are the same objects are not looked into."""
        return turns[: len(self.turns)] == self.turns

    def pieces(self) -> list[bytes]:
        return [*self._done, bytes(self._growing)] if self._growing else self._done


class Encoder:
    """Writes the bodies of one conversation."""

    def __init__(self, host: Host, about: About, *, marks: bool = True) -> None:
        """Without `marks`, none are set beside those that a conversation brings; these go to hosts that take them."""
        self._host = host
        self._about = about
        self._place = _PLACES[host.api]
        self._is_marked = marks
        self._marks = marks and host.api == "anthropic"
        self._vouches = self._place.vouches and about.thinks == "level"
        self._options: dict[str, Any] = {}
        """How the wire writes marks that the conversation brings."""
        self._wire: ModuleType | None = None
        self._variant: object = None
        self._segments: list[_Segment] = []
        """The last segments, those that are not put together yet."""
        self._joined = _Joined()
        self._frame_for: tuple[str, Asked] | None = None
        self._frame = (b"", b"")

    def body(self, asked: Asked, conversation: str = "", *, thoughts: bool = True) -> bytes:
        """All that is sent, as one text."""
        return b"".join(self.pieces(asked, conversation, thoughts=thoughts))

    def pieces(self, asked: Asked, conversation: str = "", *, thoughts: bool = True) -> list[bytes]:
        """All that is sent. Without `thoughts`, what the model thought stays here."""
        wire = self._wire = self._wire or load_wire(self._host.api)
        thoughts = thoughts and self._host.row.takes_thinking
        free = frozenset(one.name for one in asked.definitions if one.grammar)
        brings = not self._is_marked and self._host.takes_marks(asked.model)
        if self._variant != (free, thoughts, brings):
            self._variant = (free, thoughts, brings)
            self._options = {"marks": "cache_control"} if brings else {}
            self._segments, self._joined = [], _Joined()
        system, turns = self._apart(asked.turns)
        before, behind = self._framed(asked, system, conversation)
        self._take(wire, turns, asked.definitions, thoughts=thoughts)
        if not all(segment.is_alone for segment in self._segments):
            whole = self._list(wire, turns, asked.definitions, thoughts=thoughts)
            return [before, encoded(whole)[1:-1], behind]
        out = [before, *self._joined.pieces(), b",".join(self._last()), behind]
        if not out[-2] and len(out) > 3:
            out[-3] = out[-3][:-1]
        return out

    def _take(
        self, wire: ModuleType, turns: tuple[Turn, ...], definitions: Sequence[Definition], *, thoughts: bool
    ) -> None:
        """Writes the segments that are new. All but the last few are put together for good."""
        old, joined = self._segments, self._joined
        start = len(joined.turns)
        # What was put together holds as long as the conversation goes on behind it, and the model speaks next there.
        goes_on = start < len(turns) and turns[start].role == "assistant"
        if start and not (goes_on and joined.begins(turns)):
            old, start = [], 0
            joined = self._joined = _Joined()
        new: list[_Segment] = []
        for at, some in enumerate(_segments(turns[start:])):
            known = at < len(old) and _same(old[at].turns, some)
            new.append(old[at] if known else self._written(wire, some, definitions, thoughts=thoughts))
        done = 0
        while done < len(new) - _LAST and new[done].is_alone:
            joined.put(new[done])
            done += 1
        self._segments = new[done:]

    def _last(self) -> list[bytes]:
        """The segments that are not put together yet; the marks of an API that wants them are among these."""
        last = self._segments
        pieces = [segment.data for segment in last]
        marks = _MARKS if self._marks else 0
        for at in range(len(pieces) - 1, -1, -1):
            if marks and last[at].can_be_marked:
                pieces[at] = last[at].marked()
                marks -= 1
        return [piece for piece in pieces if piece]

    def _apart(self, turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
        """The turns that stand before the conversation, and the conversation."""
        if self._place.inline:
            return (), tuple(turns)
        first = next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))
        system, rest = tuple(turns[:first]), tuple(turns[first:])
        if self._place.leading:
            return system, rest
        # What was put together has no words of the system in it, and need not be looked through again.
        new = rest[len(self._joined.turns) :] if self._joined.begins(rest) else rest
        if "system" in map(_role, new):
            system += tuple(turn for turn in rest if turn.role == "system")
            rest = tuple(turn for turn in rest if turn.role != "system")
        return system, rest

    def _framed(self, asked: Asked, system: tuple[Turn, ...], conversation: str) -> tuple[bytes, bytes]:
        """What stands before and behind the conversation."""
        bare = msgspec.structs.replace(asked, turns=system)
        wanted = (conversation, bare)
        # Whoever makes these anew for every turn need not pay for it: it is enough that they are equal.
        if self._frame_for == wanted:
            return self._frame
        assert self._wire is not None
        spoken = tuple(kept for turn in system if (kept := sound(turn, ends_thinking=False)).parts)
        bare = msgspec.structs.replace(bare, turns=spoken)
        body = shaped(
            self._wire.asked_out(bare, **self._options),
            bare,
            self._host,
            self._about,
            conversation,
            marks=self._is_marked,
        )
        names = list(body)
        at = names.index(self._place.key)
        before = encoded({name: body[name] for name in names[:at]})[1:-1]
        behind = encoded({name: body[name] for name in names[at + 1 :]})[1:-1]
        self._frame_for = wanted
        self._frame = (
            b"{" + before + (b"," if before else b"") + b'"%b":[' % self._place.key.encode(),
            b"]" + (b"," if behind else b"") + behind + b"}",
        )
        return self._frame

    def _written(
        self, wire: ModuleType, turns: tuple[Turn, ...], definitions: Sequence[Definition], *, thoughts: bool
    ) -> _Segment:
        parts = list(chain.from_iterable(turn.parts for turn in turns))
        answered = {part.id for part in parts if isinstance(part, Result)}
        is_alone = answered <= {part.id for part in parts if isinstance(part, Use)}
        data = encoded(self._list(wire, turns, definitions, thoughts=thoughts))[1:-1] if is_alone else b""
        kept = b""
        # What stands behind the results by itself may be a reminder, which is there for one question only.
        if data and self._marks and len(turns) > 1 and turns[-1].role == turns[-2].role == "user":
            kept = encoded(self._list(wire, turns[:-1], definitions, thoughts=thoughts))[1:-1]
        return _Segment(turns, data, is_alone=is_alone, kept=kept if data.startswith(kept) else b"")

    def _list(
        self, wire: ModuleType, turns: Sequence[Turn], definitions: Sequence[Definition], *, thoughts: bool
    ) -> Any:
        if not thoughts:
            turns = [
                Turn(turn.role, tuple(part for part in turn.parts if not isinstance(part, Thinking)), turn.extra)
                for turn in turns
            ]
        turns = [kept for turn in turns if (kept := sound(turn, ends_thinking=self._place.ends_thinking)).parts]
        if self._vouches:
            turns = [_vouched(turn) for turn in turns]
        return wire.turns_out(freed(turns, definitions), **self._options)[self._place.key]


def _segments(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ...]]:
    start = 0
    for at in range(1, len(turns)):
        if turns[at].role == "assistant" and turns[at - 1].role != "assistant":
            yield tuple(turns[start:at])
            start = at
    if start < len(turns):
        yield tuple(turns[start:])


def sound(turn: Turn, *, ends_thinking: bool) -> Turn:
    """A turn without what APIs refuse in any conversation: blank words, and thinking that nothing follows.

    A model does say such things, and every later request would be refused for them.
    """
    parts = turn.parts
    for part in parts:
        if isinstance(part, Text) and not part.text.strip():
            parts = tuple(one for one in parts if not isinstance(one, Text) or one.text.strip())
            break
    while not ends_thinking and parts and isinstance(parts[-1], Thinking):
        parts = parts[:-1]
    return turn if parts is turn.parts else Turn(turn.role, parts, turn.extra)


def _vouched(turn: Turn) -> Turn:
    """A turn with calls of another model's. Newer models of Gemini refuse calls that are not signed; this says why."""
    at = next((at for at, part in enumerate(turn.parts) if isinstance(part, Use)), None)
    if at is None:
        return turn
    before = turn.parts[at - 1] if at else None
    # The signature of a call is thinking without words right before it; that of a thought is the thought's.
    if isinstance(before, Thinking) and before.signature and not before.text and is_own(before, "gemini"):
        return turn
    return Turn(turn.role, (*turn.parts[:at], _NOT_OURS, *turn.parts[at:]), turn.extra)


def _same(old: Sequence[object], new: Sequence[object]) -> bool:
    return old is new or (len(old) == len(new) and all(map(is_, old, new)))


_role = attrgetter("role")
_encode = msgspec.json.Encoder().encode


def encoded(value: Any) -> bytes:
    """A value as JSON. Halves of surrogate pairs, which JSON has no place for, become U+FFFD."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        import json  # only texts that nobody could write otherwise pay for it

        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
