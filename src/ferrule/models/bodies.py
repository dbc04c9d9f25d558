"""Encode requests for each model API, and reuse the bytes of earlier turns of a conversation.

A conversation is cut into segments: what the model said, and everything after it until the model speaks again. A
turn never changes, so each segment is encoded once, and a body is its segments put together. The result is the
same as encoding the whole conversation at once, for every wire; a test checks this.

A body is given in pieces, and the old pieces are the same objects every time: copying a long conversation into
one text would cost more than the rest of the request.

The parts of a body besides the conversation (thinking, cache marks, limits) are shaped for each API and model.
For each API the module also knows the path, the way to send the key, and the reader for its streams.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, is_
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from ferrule.core.content import Text
from ferrule.models.catalog import ModelProfile
from ferrule.models.hosts import Host
from ferrule.settings import Models
from ferrule.wire import Definition, ModelRequest, Result, Thinking, Turn, Use, effort, is_own, load_wire
from ferrule.wire.conversation import unwrap_free_text

MARK: dict[str, Any] = {"type": "ephemeral"}
BINDING = "thinking-binding-controls-2026-08-01"
"""The beta that lets a conversation be made smaller although thinking is tied to it."""
_EFFORT = "effort-2025-11-24"
_TASK = "task-budgets-2026-03-13"
_EFFORT_BESIDE = ("claude-opus-4-5",)
"""Models that have a budget for thinking, and are told of an effort all the same."""
_PLAIN_EFFORTS = {"xhigh": "high", "max": "high"}
"""What an effort is to hosts that know three of them."""

_Shape = Callable[[dict[str, Any], ModelRequest, Host, ModelProfile, str], dict[str, Any]]


def shape_body(
    body: dict[str, Any], asked: ModelRequest, host: Host, about: ModelProfile, conversation: str, *, marks: bool = True
) -> dict[str, Any]:
    """The body of a codec, made to fit. The keys stay in their order; the conversation itself is not looked at.

    Without `marks`, what is to be cached is what the caller has marked.
    """
    body = _SHAPES[host.api](body, asked, host, about, conversation)
    return _add_marks(body, asked, host) if marks else body


def _add_marks(body: dict[str, Any], asked: ModelRequest, host: Host) -> dict[str, Any]:
    """The body with marks behind what stays the same in every turn."""
    if host.api == "anthropic":
        if system := body.get("system"):
            blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
            body["system"] = [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]
        if tools := body.get("tools"):
            body["tools"] = mark_last(tools)
    elif host.takes_marks(asked.model):
        body["cache_control"] = MARK
    return body


def mark_last(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools with a mark on the last one that may have one: those that are loaded later may not."""
    at = next((at for at in range(len(tools) - 1, -1, -1) if not tools[at].get("defer_loading")), None)
    if at is None:
        return tools
    return [*tools[:at], {**tools[at], "cache_control": MARK}, *tools[at + 1 :]]


def betas(api: str, model: str, about: ModelProfile, settings: Models) -> list[str]:
    """What of Anthropic's API has to be switched on for what is asked of the model."""
    if api != "anthropic":
        return []
    is_needed = {
        BINDING: about.thinks == "bound",
        _EFFORT: bool(settings.effort) and model.startswith(_EFFORT_BESIDE),
        _TASK: settings.task_tokens is not None,
    }
    return [*(beta for beta, needed in is_needed.items() if needed), *settings.betas]


def _anthropic(
    body: dict[str, Any],
    asked: ModelRequest,
    host: Host,  # noqa: ARG001 - one shape for all
    about: ModelProfile,
    conversation: str,  # noqa: ARG001 - the same
) -> dict[str, Any]:
    if told := _output_config(asked, about):
        body["output_config"] = told
    if about.thinks in {"", "budget"}:
        return body
    body.pop("thinking", None)
    # Models that decide themselves how much they think refuse every other temperature than their own.
    body.pop("temperature", None)
    wanted = asked.thinking_tokens
    if wanted or about.thinks in {"always", "bound"}:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    if wanted == 0 and about.thinks != "bound":
        body["thinking"] = {"type": "disabled"}
    elif wanted is not None and not asked.effort:
        body["output_config"] = {**body.get("output_config", {}), "effort": _effort(wanted)}
    if about.thinks == "bound":
        # The loop makes old turns smaller; what was thought behind them is then left out instead of refused.
        body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        if asked.choice is not None and asked.choice.kind in {"any", "tool"}:
            body["tool_choice"] = {"type": "auto"}
    return body


def _output_config(asked: ModelRequest, about: ModelProfile) -> dict[str, Any]:
    """What the model is told about how to work, besides its thinking."""
    told: dict[str, Any] = {}
    if asked.task_tokens is not None:
        told["task_budget"] = {"type": "tokens", "total": asked.task_tokens}
    if asked.effort and (about.thinks not in {"", "budget"} or asked.model.startswith(_EFFORT_BESIDE)):
        told["effort"] = asked.effort
    return told


def _chat(
    body: dict[str, Any], asked: ModelRequest, host: Host, about: ModelProfile, conversation: str
) -> dict[str, Any]:
    row = host.row
    if row.max_tokens != "max_completion_tokens" and "max_completion_tokens" in body:
        body[row.max_tokens] = body.pop("max_completion_tokens")
    if word := _effort_word(asked):
        body["reasoning_effort"] = word
    if about.thinks == "effort":
        body.pop("temperature", None)
    if row.conversation and conversation:
        body["prompt_cache_key"] = conversation
    return body


def _responses(
    body: dict[str, Any], asked: ModelRequest, host: Host, about: ModelProfile, conversation: str
) -> dict[str, Any]:
    if about.thinks == "effort":
        body["include"] = ["reasoning.encrypted_content"]
        body.pop("temperature", None)
    elif not about.thinks and asked.thinking_tokens is None and not asked.effort:
        body.pop("include", None)
    if word := _effort_word(asked):
        body["reasoning"] = {**body.get("reasoning", {}), "effort": word}
    if host.row.conversation and conversation:
        body["prompt_cache_key"] = conversation
    return body


def _generate(
    body: dict[str, Any],
    asked: ModelRequest,
    host: Host,  # noqa: ARG001 - one shape for all
    about: ModelProfile,
    conversation: str,  # noqa: ARG001 - the same
) -> dict[str, Any]:
    body.pop("model", None)
    if (word := _effort_word(asked)) and about.thinks == "level":
        level = "LOW" if word == "low" else "HIGH"
        body["generationConfig"]["thinkingConfig"] = {"thinkingLevel": level, "includeThoughts": True}
    return body


def _effort_word(asked: ModelRequest) -> str:
    """The effort that is wanted, in words that every host knows; empty where nothing is said about it."""
    if asked.effort:
        return _PLAIN_EFFORTS.get(asked.effort, asked.effort)
    return "" if asked.thinking_tokens is None else _effort(asked.thinking_tokens)


def _effort(tokens: int) -> str:
    """An effort in words that all of the newer models know."""
    word = effort(tokens)
    return "low" if word == "minimal" else word


_SHAPES: dict[str, _Shape] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _generate,
}


class _ConversationField(NamedTuple):
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
    "anthropic": _ConversationField("messages"),
    "openai-chat": _ConversationField("messages", inline=True, ends_thinking=True),
    "openai-responses": _ConversationField("input", leading=True),
    "gemini": _ConversationField("contents", vouches=True, ends_thinking=True),
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

    def with_mark(self) -> bytes:
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

    def __init__(self, host: Host, about: ModelProfile, *, marks: bool = True) -> None:
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
        self._frame_for: tuple[str, ModelRequest] | None = None
        self._frame = (b"", b"")

    def body(self, asked: ModelRequest, conversation: str = "", *, thoughts: bool = True) -> bytes:
        """All that is sent, as one text."""
        return b"".join(self.pieces(asked, conversation, thoughts=thoughts))

    def pieces(self, asked: ModelRequest, conversation: str = "", *, thoughts: bool = True) -> list[bytes]:
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
        before, behind = self._build_frame(asked, system, conversation)
        self._take(wire, turns, asked.definitions, thoughts=thoughts)
        if not all(segment.is_alone for segment in self._segments):
            whole = self._list(wire, turns, asked.definitions, thoughts=thoughts)
            return [before, encode_json(whole)[1:-1], behind]
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
            new.append(old[at] if known else self._build_segment(wire, some, definitions, thoughts=thoughts))
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
                pieces[at] = last[at].with_mark()
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

    def _build_frame(self, asked: ModelRequest, system: tuple[Turn, ...], conversation: str) -> tuple[bytes, bytes]:
        """What stands before and behind the conversation."""
        bare = msgspec.structs.replace(asked, turns=system)
        wanted = (conversation, bare)
        # Whoever makes these anew for every turn need not pay for it: it is enough that they are equal.
        if self._frame_for == wanted:
            return self._frame
        assert self._wire is not None
        spoken = tuple(kept for turn in system if (kept := sound(turn, ends_thinking=False)).parts)
        bare = msgspec.structs.replace(bare, turns=spoken)
        body = shape_body(
            self._wire.asked_out(bare, **self._options),
            bare,
            self._host,
            self._about,
            conversation,
            marks=self._is_marked,
        )
        names = list(body)
        at = names.index(self._place.key)
        before = encode_json({name: body[name] for name in names[:at]})[1:-1]
        behind = encode_json({name: body[name] for name in names[at + 1 :]})[1:-1]
        self._frame_for = wanted
        self._frame = (
            b"{" + before + (b"," if before else b"") + b'"%b":[' % self._place.key.encode(),
            b"]" + (b"," if behind else b"") + behind + b"}",
        )
        return self._frame

    def _build_segment(
        self, wire: ModuleType, turns: tuple[Turn, ...], definitions: Sequence[Definition], *, thoughts: bool
    ) -> _Segment:
        parts = list(chain.from_iterable(turn.parts for turn in turns))
        answered = {part.id for part in parts if isinstance(part, Result)}
        is_alone = answered <= {part.id for part in parts if isinstance(part, Use)}
        data = encode_json(self._list(wire, turns, definitions, thoughts=thoughts))[1:-1] if is_alone else b""
        kept = b""
        # What stands behind the results by itself may be a reminder, which is there for one question only.
        if data and self._marks and len(turns) > 1 and turns[-1].role == turns[-2].role == "user":
            kept = encode_json(self._list(wire, turns[:-1], definitions, thoughts=thoughts))[1:-1]
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
            turns = [_add_signature(turn) for turn in turns]
        return wire.turns_out(unwrap_free_text(turns, definitions), **self._options)[self._place.key]


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


def _add_signature(turn: Turn) -> Turn:
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


def encode_json(value: Any) -> bytes:
    """A value as JSON. Halves of surrogate pairs, which JSON has no place for, become U+FFFD."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


Headers = list[tuple[bytes, bytes]]


class Speech(NamedTuple):
    """One API."""

    path: Callable[[str], str]
    """From a model's id to where it is asked."""
    list_path: str
    key: tuple[str, str]
    """The header of the key, and what stands before it."""
    plain: tuple[tuple[str, str], ...] = ()
    """Headers that it always wants."""
    forgets: bool = False
    """Does it sometimes end an answer before it has begun, and say that all is well?"""

    def build_headers(self, host: Host, betas: Sequence[str] = ()) -> Headers:
        """Headers that say who asks, and what is switched on; what the settings say comes over all others."""
        name, before = self.key
        headers = dict(self.plain)
        if host.key:
            headers[name] = before + host.key
        own = {key.lower(): value for key, value in host.headers.items()}
        if betas:
            asked = own.pop(_BETA, "").split(",")
            headers[_BETA] = ",".join(dict.fromkeys(one.strip() for one in (*betas, *asked) if one.strip()))
        headers |= {key: value for key, value in own.items() if key not in _OURS}
        return [(key.encode(), value.encode()) for key, value in headers.items()]


_BETA = "anthropic-beta"
_OURS = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
"""Headers that belong to the line itself."""


def generate_path(model: str, action: str) -> str:
    """Where something is asked of a model of Gemini's API."""
    where = model if "/" in model else f"models/{model}"
    return f"/{quote(where, safe='/-._~')}:{action}"


SPEECH = {
    "anthropic": Speech(
        lambda _: "/v1/messages",
        "/v1/models?limit=1000",
        ("x-api-key", ""),
        # The version that every gateway and every model knows; the newer one only takes things away that are not sent.
        (("anthropic-version", "2023-06-01"),),
    ),
    "openai-chat": Speech(
        lambda _: "/chat/completions",
        "/models",
        ("authorization", "Bearer "),
    ),
    "openai-responses": Speech(
        lambda _: "/responses",
        "/models",
        ("authorization", "Bearer "),
    ),
    "gemini": Speech(
        lambda model: generate_path(model, "streamGenerateContent?alt=sse"),
        "/models?pageSize=1000",
        ("x-goog-api-key", ""),
        forgets=True,
    ),
}


def parse_model_ids(body: bytes) -> list[str]:
    """The ids in an answer that lists models, whatever the API calls them."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    rows = value.get("data") or value.get("models") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        return []
    names = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    kept = (name.removeprefix("models/") for name in names if isinstance(name, str) and name.isprintable())
    return sorted(dict.fromkeys(kept))
