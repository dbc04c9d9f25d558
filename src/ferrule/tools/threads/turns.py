"""The turns of a thread as text: who said what, each call in a line, and the part of it that serves a goal.

A turn's body is JSON that this file reads as it comes: nothing of it is taken for granted. Pictures are named and never
given, and what a model thought is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ferrule.tools.threads.thread import Item, count_phrases, phrases, rank_texts

_LINE_CHARS = 160
_CUT_CHARS = 4_000
_NAMED_CUT_CHARS = 20_000
_GAP_CHARS = 50
"""With the line about what is missing beside a message."""
_BYTES_A_CHAR = 2.4
_GOAL_CHARS = 2_000
_GOAL_WORDS = 64
_NUMBERS = r"#?[0-9]{1,9}(?:\s*(?:-|to)\s*#?[0-9]{1,9})?"
_NAMED = rf"\b(?:messages?|turns?)\s+({_NUMBERS}(?:\s*(?:,|;|&|and)\s*(?:and\s+)?{_NUMBERS})*)"
_FIRST_LAST = r"([0-9]+)(?:\s*(?:-|to)\s*#?([0-9]+))?"
_BESIDE = "give show read bring get me the and please of this thread from left out what was in only just"
"""Words that say nothing beside the numbers of messages."""
_MOST_NAMED = 10_000
_REWINDS = frozenset({"rewound", "unrewound"})

_SHORTENED = re.compile(r"\[(?:Tool result truncated:|output truncated:|truncated) \d+")
"""What stands where a result was shortened: its lines are not those that there were."""
_FILES = {"image": "a picture", "document": "a document"}


class ThreadCall(NamedTuple):
    """A call, and what came of it."""

    name: str
    given: str
    """Its input, as JSON."""
    result: str | None = None
    """None where it has none."""
    failed: bool = False


class Message(NamedTuple):
    """What one side said at once."""

    number: int
    """Its place among the messages, from 1; the results of calls stand with the calls."""
    speaker: str
    text: str
    calls: tuple[ThreadCall, ...] = ()
    at: float = 0.0


class Selected(NamedTuple):
    """A part of a thread."""

    text: str
    shown: int
    total: int
    left_out: str = ""
    """The numbers of the messages that are not in it."""


def messages(items: Iterable[Item]) -> list[Message]:
    """The messages of a thread, without the system's."""
    items = list(items)
    results = {key: result for item in items if item.kind == "turn" for key, result in _results(item)}
    found: list[Message] = []
    for item in items:
        if item.kind in _REWINDS:
            message = Message(0, "rewind", _rewind(item), at=item.at)
        elif item.kind != "turn":
            message = Message(0, "summary", _summary(item), at=item.at)
        else:
            parts = _parts(item)
            text = "\n\n".join(said for part in parts if (said := _render_part(part)))
            calls = tuple(_build_call(part, results) for part in parts if _is_call(part))
            message = Message(0, item.role or "?", text, calls, item.at)
        if message.speaker != "system" and (message.text or message.calls):
            found.append(message._replace(number=len(found) + 1))
    return found


def _summary(item: Item) -> str:
    """Of an earlier part, where the conversation was made smaller; whatever else is kept is nothing to read."""
    return item.text.strip() if item.kind == "compacted" else ""


def _rewind(item: Item) -> str:
    if item.kind == "unrewound":
        return "The last rewind was taken back: what it had left is said again."
    try:
        step = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    number = step.get("prompt") if isinstance(step, dict) else None
    if not isinstance(number, int):
        return ""
    return f"The conversation went back to before prompt {number}: what was said from there on is said no more."


def _parts(item: Item) -> list[Mapping[str, Any]]:
    try:
        body = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, RecursionError):
        return [{"type": "text", "text": "[This message could not be read.]"}]
    parts = body.get("parts") if isinstance(body, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _render_part(part: Mapping[str, Any]) -> str:
    if part.get("type") == "text":
        text = part.get("text")
        return text.strip() if isinstance(text, str) else ""
    if part.get("type") not in _FILES:
        return ""
    about = (part.get("title"), part.get("media_type"))
    known = ", ".join((_FILES[part["type"]], *(one[:80] for one in about if isinstance(one, str) and one)))
    text = part.get("text")
    return f"[{known}]\n{text}".strip() if isinstance(text, str) else f"[{known}]"


def _results(item: Item) -> Iterator[tuple[str, tuple[str, bool]]]:
    for part in _parts(item):
        if part.get("type") == "result" and isinstance(part.get("id"), str):
            inner = part.get("parts")
            texts = [_render_part(one) for one in inner if isinstance(one, dict)] if isinstance(inner, list) else []
            yield part["id"], ("\n".join(filter(None, texts)), part.get("failed") is True)


def _is_call(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "use" and isinstance(part.get("name"), str)


def _build_call(part: Mapping[str, Any], results: Mapping[str, tuple[str, bool]]) -> ThreadCall:
    given = part.get("input")
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    key = part.get("id")
    result, failed = results.get(key, (None, False)) if isinstance(key, str) else (None, False)
    return ThreadCall(part["name"], text, result, failed)


def render(message: Message, *, full: bool = False) -> str:
    """A message as text; `full` gives the calls with all that they came back with."""
    head = f"[{message.number}] {message.speaker.capitalize()}:"
    body = [message.text] if message.text else []
    calls = "\n".join(_whole_line(call) if full else _line(call) for call in message.calls)
    return "\n".join([head, *body, *([calls] if calls else [])])


def _line(call: ThreadCall) -> str:
    """A call and its outcome."""
    if call.result is None:
        outcome = "no result"
    else:
        lines = call.result.strip().split("\n")
        outcome = _short(lines[0]) or "nothing"
        if _SHORTENED.search(call.result):
            outcome += " (and more, shortened)"
        elif len(lines) > 1:
            outcome += f" (and {len(lines) - 1:,} more line{'s' if len(lines) > 2 else ''})"
    return f"- {_short(f'{call.name} {call.given}')} → {'failed: ' if call.failed else ''}{outcome}"


def _whole_line(call: ThreadCall) -> str:
    result = "no result" if call.result is None else call.result.strip() or "nothing"
    inside = "\n".join(f"    {line}" for line in result.split("\n"))
    return f"- {call.name} {call.given} →{' failed:' if call.failed else ''}\n{inside}"


def _short(text: str) -> str:
    line = " ".join(text[: 2 * _LINE_CHARS].split())
    return line if len(line) <= _LINE_CHARS and len(text) <= 2 * _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


def _cut(text: str, limit_chars: int) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= limit_chars:
        return text
    head, tail = limit_chars * 3 // 4, limit_chars // 4
    gone = len(text) - head - tail
    return f"{text[:head].rstrip()}\n[… {gone:,} characters left out …]\n{text[-tail:].lstrip()}"


def select(said: Sequence[Message], goal: str, *, limit_chars: int) -> Selected:
    """All of a thread where it fits; else its beginning, its end, and what shares most words with the goal.

    Messages that the goal names, as `messages 4-6, 9`, come first; a goal that says nothing else brings no others.
    """
    asked = _parse_numbers(goal)
    texts = [_cut(render(one), _NAMED_CUT_CHARS if one.number in asked else _CUT_CHARS) for one in said]
    costs = [_cost(text) + _GAP_CHARS for text in texts]
    kept = set(range(len(texts)))
    if sum(costs) > limit_chars:
        kept.clear()
        room = limit_chars
        alone = _names_only(goal) and any(one.number in asked for one in said)
        for at in _order(said, texts, goal, asked):
            if costs[at] <= room and not (alone and said[at].number not in asked):
                kept.add(at)
                room -= costs[at]
    return _join_kept(texts, kept)


def _cost(text: str) -> int:
    """Its characters; more for scripts that take three bytes for one, because what a model gets is bound in bytes."""
    return max(len(text), int(len(text.encode("utf-8", "replace")) / _BYTES_A_CHAR))


def _parse_numbers(goal: str) -> set[int]:
    asked: set[int] = set()
    for named in re.findall(_NAMED, goal[:_GOAL_CHARS], re.IGNORECASE):
        for first, last in re.findall(_FIRST_LAST, named, re.IGNORECASE):
            begin = int(first)
            asked |= set(range(begin, min(int(last or first), begin + _MOST_NAMED) + 1))
    return asked


def _names_only(goal: str) -> bool:
    """Does the goal say nothing but which messages?"""
    rest = re.sub(_NAMED, " ", goal[:_GOAL_CHARS], flags=re.IGNORECASE)
    return not set(re.findall(r"\w+", rest.lower())) - set(_BESIDE.split())


def _order(said: Sequence[Message], texts: Sequence[str], goal: str, asked: set[int]) -> list[int]:
    """The places of the messages, those that matter most first."""
    sought = [(form, True) for word in goal[:_GOAL_CHARS].split()[:_GOAL_WORDS] for form in phrases(word)]
    scores = rank_texts([count_phrases(text, sought) for text in texts])
    first = next((at for at, one in enumerate(said) if one.speaker == "user"), -1)
    last = next((at for at in reversed(range(len(said))) if said[at].speaker == "assistant" and said[at].text), -1)
    return sorted(
        range(len(said)),
        key=lambda at: (said[at].number not in asked, at not in (first, last), -scores[at], -at),
    )


def _join_kept(texts: Sequence[str], kept: set[int]) -> Selected:
    """What is kept, in its order, with a line wherever something is missing."""
    blocks: list[str] = []
    gaps: list[str] = []
    at = 0
    while at < len(texts):
        if at in kept:
            blocks.append(texts[at])
            at += 1
            continue
        begin = at
        while at < len(texts) and at not in kept:
            at += 1
        gaps.append(str(at) if at == begin + 1 else f"{begin + 1}-{at}")
        blocks.append(f"[… message{'' if at == begin + 1 else 's'} {gaps[-1]} left out …]")
    return Selected("\n\n".join(blocks), len(kept), len(texts), ", ".join(gaps))
