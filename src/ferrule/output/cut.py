"""Cutting: pure functions that make a text or a JSON value fit, and say how much they left out.

Two laws hold for all of them: a code point is never split, and cutting twice changes nothing.
Sizes are UTF-8 bytes; the size of a JSON value is that of its encoding, images not counted.
"""

import bisect
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

_NOTE = re.compile(r"\[Tool result truncated: \d{1,15}KB exceeds limit\. Please refine the query\.\]")
_NOTE_BYTES = 96
"""More than any note takes, with the quotes, blank line or comma that set it apart."""
_NESTING = 8
"""Objects deeper than this are cut as text: who reads a cut object does not look that deep."""


class Cut(NamedTuple):
    """What was kept, and how many bytes of the original are not in it."""

    text: str
    omitted_bytes: int


def cut_head(text: str, limit_bytes: int) -> Cut:
    """The first bytes of a text, back to the end of a line when that costs no more than half of them."""
    raw = _over(text, limit_bytes)
    if raw is None:
        return Cut(text, 0)
    end = _boundary(raw, limit_bytes)
    if raw[end] != ord("\n"):
        newline = raw.rfind(b"\n", (end + 1) // 2, end)
        end = newline if newline >= 0 else end
    return Cut(_text(raw[:end]), len(raw) - end)


def general(text: str, limit_bytes: int) -> Cut:
    """The bound of every result: the head, then a sentence saying that there was more."""
    kept = cut_head(text, limit_bytes)
    if not kept.omitted_bytes:
        return kept
    head, blank_line, last = text.rpartition("\n\n")
    if blank_line and _NOTE.fullmatch(last) and _over(head, limit_bytes) is None:
        return Cut(text, 0)
    return Cut(f"{kept.text}\n\n{_note(_utf8_size(text))}", kept.omitted_bytes)


def cut_value(value: Any, limit_bytes: int) -> tuple[Any, int]:
    """A JSON value that fits, and how many bytes of the original are not in it.

    A text is cut as `general` does. A list keeps its leading items and ends with the sentence. An object
    keeps its keys, and its largest members are cut to one size. What cannot be cut so becomes its JSON text.
    Images stay whole and do not count. A value that fits is returned itself.
    """
    # Nothing is shorter than an empty list.
    limit_bytes = max(len("[]"), limit_bytes)
    if isinstance(value, str):
        return general(value, limit_bytes)
    size = _json_size(value)
    if size <= limit_bytes or _is_image(value) or _is_cut_list(value, limit_bytes):
        return value, 0
    return _fit(value, limit_bytes, _note(size), depth=0)


def _fit(value: Any, room: int, note: str, *, depth: int) -> tuple[Any, int]:
    """A value that is too large, in `room` bytes; the note comes on top, except for an object."""
    if isinstance(value, str):
        kept = _head_by_json(value, room)
        return f"{kept}\n\n{note}", _utf8_size(value) - _utf8_size(kept)
    if isinstance(value, (list, tuple)):
        return _fit_list(value, room, note, depth=depth)
    if isinstance(value, dict) and depth < _NESTING:
        cut = _fit_object(value, room, note, depth=depth)
        if cut is not None:
            return cut
    text, images = _apart(value)
    if images:
        return _fit_list([text, *images], room, note, depth=depth)
    if depth:
        return _fit(text, room, note, depth=depth)
    head = cut_head(text, room)
    return f"{head.text}\n\n{note}", head.omitted_bytes


def _fit_list(items: Sequence[Any], room: int, note: str, *, depth: int) -> tuple[list[Any], int]:
    total_bytes = _json_size(items)
    pictures = next(_images(items), None) is not None
    kept: list[Any] = []
    readable = full = False
    room -= 1
    for item in items:
        size = 0 if _is_image(item) else _json_size(item) + 1
        if _is_image(item) or (size <= room and not full):
            kept.append(item)
            room -= size
            readable = readable or size > 0
            continue
        # A first item that is larger than the bound would leave nothing to read: its head stays.
        head, images = (None, list(_images(item))) if readable else _head_of_item(item, room - 1, note, depth)
        kept += images if head is None else [head, *images]
        readable = full = True
        if not pictures:
            break
    # Content parts stay content parts.
    last: Any = {"type": "text", "text": note} if all(map(_is_part, items)) else note
    return [*kept, last], max(1, total_bytes - _json_size(kept))


def _head_of_item(item: Any, room: int, note: str, depth: int) -> tuple[Any, list[Any]]:
    if isinstance(item, dict) and depth < _NESTING:
        cut = _fit_object(item, room, note, depth=depth + 1)
        if cut is not None:
            return cut[0], []
    text, images = (item, []) if isinstance(item, str) else _apart(item)
    return _head_by_json(text, room) or None, images


def _fit_object(value: dict[Any, Any], room: int, note: str, *, depth: int) -> tuple[Any, int] | None:
    """The object with its largest members cut to one size, or None when even that is too large."""
    sizes = {
        key: _json_size(member)
        for key, member in value.items()
        if isinstance(member, (str, list, tuple, dict)) and not _is_image(member)
    }
    left = room - (_json_size(value) - sum(sizes.values()))
    share = 0
    for rank, size in enumerate(sorted(sizes.values())):
        share = left // (len(sizes) - rank)
        if size > share:
            break
        left -= size
    if share < _NOTE_BYTES:
        return None
    cut = dict(value)
    omitted = 0
    for key, size in sizes.items():
        if size > share:
            cut[key], gone = _fit(value[key], share - _NOTE_BYTES, note, depth=depth + 1)
            omitted += gone
    return (cut, omitted) if _json_size(cut) <= room else None


def _head_by_json(text: str, room: int) -> str:
    """The longest head whose encoding fits: escapes make it longer than its bytes."""
    text = cut_head(text, room - 2).text
    if _json_size(text) <= room:
        return text
    lengths = range(_utf8_size(text) + 1)
    over = bisect.bisect_right(lengths, room, key=lambda limit: _json_size(cut_head(text, limit).text))
    return cut_head(text, over - 1).text


def _is_image(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "image"


def _is_part(value: Any) -> bool:
    """Is it an image, or a text that goes with images?"""
    return _is_image(value) or (
        isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str)
    )


def _is_cut_list(value: Any, limit_bytes: int) -> bool:
    if not isinstance(value, list) or not value:
        return False
    last = value[-1]["text"] if _is_part(value[-1]) and not _is_image(value[-1]) else value[-1]
    return isinstance(last, str) and _NOTE.fullmatch(last) is not None and _json_size(value[:-1]) <= limit_bytes


def _images(value: Any) -> Iterator[dict[str, Any]]:
    """The images in a value, in order, however deep they lie."""
    stack = [value]
    while stack:
        top = stack.pop()
        if _is_image(top):
            yield top
        elif isinstance(top, dict):
            stack.extend(reversed(top.values()))
        elif isinstance(top, (list, tuple)):
            stack.extend(reversed(top))


def _apart(value: Any) -> tuple[str, list[Any]]:
    """The JSON text of a value, with a stub for each image, and the images."""
    raw = _json(value)
    images = list(_images(value)) if b'"image"' in raw else []
    for image in images:
        raw = raw.replace(_json(image), b'{"type":"image"}')
    return _text(raw), images


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Lone surrogates have no UTF-8; cutting must not be what fails on them.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _json_size(value: Any) -> int:
    raw = _json(value)
    if b'"image"' not in raw:
        return len(raw)
    # With each image goes its comma.
    return len(raw) - sum(len(_json(image)) + 1 for image in _images(value))


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _over(text: str, limit_bytes: int) -> bytes | None:
    """The bytes of a text that is longer than the limit, or None when it is not."""
    if len(text) * 4 <= limit_bytes or (text.isascii() and len(text) <= limit_bytes):
        return None
    raw = text.encode("utf-8", "surrogatepass")
    return raw if len(raw) > max(0, limit_bytes) else None


def _boundary(raw: bytes, limit_bytes: int) -> int:
    """The last start of a code point that is not beyond the limit."""
    end = max(0, limit_bytes)
    while end and raw[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _note(total_bytes: int) -> str:
    kilobytes = (total_bytes + 512) // 1024
    return f"[Tool result truncated: {kilobytes}KB exceeds limit. Please refine the query.]"
