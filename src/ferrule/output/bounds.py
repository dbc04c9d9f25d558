"""Bound results: cut and shorten a text to what a family's model gets, and keep the whole.

This is the only place that bounds results. There is one pure function for each kind of bound that a family has.

The laws of `cut` hold here, too: a text that fits is returned itself, a code point is never split, and the kept
part is within the bound. There is one exception: the sentence about the missing part comes on top, as the
families have it, so a shortened text may be shortened again; the engine shortens only once. `missing` is the
number of characters that a tool has already left out of the middle; the sentences count them.

Two laws hold for all of them: a code point is never split, and cutting twice changes nothing.
Sizes are UTF-8 bytes; the size of a JSON value is that of its encoding, images not counted.

The laws of `cut` hold here too, but one: a text that fits is returned itself, a code point is never split, and what is
kept is within the bound. The sentence that says what is missing comes on top, as the families have it, so a text that
was shortened may be shortened again; the engine does it once. `missing` is how many characters a tool has left out of
the middle already; the sentences count them.
"""

import asyncio
import bisect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from ferrule.core.call import result_text
from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.core.tool import WHOLE, Bound, Ends, LineLimit, Middle, Tail, Whole
from ferrule.output import clean_value
from ferrule.system.highlights import SHARE, OutputHighlights, block

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ferrule.output.store import Store


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


def shorten(text: str, bound: Bound, *, missing: int = 0, found: Callable[[], OutputHighlights] | None = None) -> Cut:
    """The text within the bound, and how many bytes of it are left out.

    `found` gives the lines of it that matter, where somebody has looked for them: those that are left out come in
    between, and take their room from the two ends.
    """
    how: Any = _HOW[type(bound)]
    newlines = None if missing else text.count("\n")
    cut: Cut = how(text, bound, missing, "", newlines)
    if not cut.omitted_bytes or found is None:
        return cut
    matter, most = found(), _most(bound)
    if missing and matter.newlines is not None:
        newlines = text.count("\n") + matter.newlines
    share, share_lines = _chars(bound) // SHARE, None if most is None else most // SHARE
    narrow = how(text, _less(bound, share, share_lines or 0), missing, "", newlines)
    between = block(matter.lines, narrow.text.split("\n"), chars=share, lines=share_lines)
    lines = between.count("\n") + 1 if between else 0
    short: Cut = how(text, _less(bound, _size(between), lines), missing, between, newlines)
    return short


def _chars(bound: Bound) -> int:
    if isinstance(bound, Tail | Middle):
        return bound.chars
    return 0 if isinstance(bound, Whole) else bound.limit_bytes


def _most(bound: Bound) -> int | None:
    return bound.lines if isinstance(bound, Ends | LineLimit) else None


def _less(bound: Bound, size: int, lines: int) -> Bound:
    """The bound with less room: so many characters or bytes, and so many lines."""
    if isinstance(bound, Tail | Middle):
        return msgspec.structs.replace(bound, chars=bound.chars - size)
    if isinstance(bound, Whole):
        return bound
    most = None if bound.lines is None else bound.lines - lines
    return msgspec.structs.replace(bound, limit_bytes=bound.limit_bytes - size, lines=most)


def _whole(text: str, _bound: Whole, _missing: int, _between: str, _newlines: int | None) -> Cut:
    return Cut(text, 0)


def _tail(text: str, bound: Tail, _missing: int, between: str, _newlines: int | None) -> Cut:
    if len(text) <= bound.chars:
        return Cut(text, 0)
    at = len(text) - bound.chars
    return Cut(f"{between}\n\n{text[at:]}" if between else text[at:], _size(text[:at]))


def _ends(text: str, bound: Ends, missing: int, between: str, newlines: int | None) -> Cut:
    head, notice, tail, omitted = _ends_by_bytes(text, bound.limit_bytes, missing)
    if bound.lines is not None:
        head, notice, tail, also = _ends_by_lines(head, notice, tail, bound.lines, newlines)
        omitted += also
    return Cut(_join_parts(head, notice, between, tail) if notice else text, omitted)


def _join_parts(head: str, notice: str, between: str, tail: str) -> str:
    gap = "\n" * (len(notice) - len(notice.rstrip("\n")))
    return f"{head}{notice}{between}{gap}{tail}" if between else f"{head}{notice}{tail}"


def _ends_by_bytes(text: str, limit_bytes: int, missing: int) -> tuple[str, str, str, int]:
    raw = text.encode(errors="surrogatepass")
    if len(raw) <= limit_bytes:
        return text, "", "", 0
    half = limit_bytes // 2
    head, tail = _first(raw, half), _last(raw, half)
    notice = f"\n\n[output truncated: {len(raw) + missing - limit_bytes} bytes removed from middle]\n\n"
    return head, notice, tail, len(raw) - _size(head) - _size(tail)


def _ends_by_lines(head: str, notice: str, tail: str, most: int, newlines: int | None) -> tuple[str, str, str, int]:
    """The same by lines. `newlines` is how many there were before anything was left out, where that is known."""
    text = head + notice + tail
    # A newline at the end counts as the beginning of a further line.
    lines = text.split("\n")
    if len(lines) <= most or not text:
        return head, notice, tail, 0
    half = most // 2
    first, gone, last = lines[:half], lines[half : len(lines) - half], lines[len(lines) - half :]
    above = head.count("\n") + 1
    # The notice of what was left out before is three lines, and none of them is of the output.
    noted = [at for at in range(above, above + 3) if half <= at < len(lines) - half] if notice else []
    count = f"{len(gone) - len(noted)}"
    if above + 1 in noted:
        # It is not seen any more, so what it spoke of is counted here.
        shown = 2 * half - (3 - len(noted))
        count = f"{newlines + 1 - shown}" if newlines is not None else f"more than {count}"
    return "\n".join(first), f"\n[...{count} lines omitted...]\n", "\n".join(last), max(1, _size("\n".join(gone)))


def _middle(text: str, bound: Middle, missing: int, between: str, _newlines: int | None) -> Cut:
    if len(text) <= bound.chars:
        return Cut(text, 0)
    half = bound.chars // 2
    gone = text[half : len(text) - half]
    notice = f"\n\n... [truncated {len(gone) + missing} chars] ...\n\n"
    return Cut(_join_parts(text[:half], notice, between, text[len(text) - half :]), _size(gone))


def _lines(text: str, bound: LineLimit, _missing: int, between: str, newlines: int | None) -> Cut:
    # A newline at the end belongs to the last line; otherwise the last one kept might be an empty one behind it.
    end = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    if _size(text) <= bound.limit_bytes and (len(lines) <= bound.lines or not text):
        return Cut(text, 0)
    ordered = lines[::-1] if bound.last else lines
    kept, room = 0, bound.limit_bytes - (len(end) if bound.last else 0)
    for line in ordered[: bound.lines]:
        room -= _size(line) + (kept > 0)
        if room < 0:
            break
        kept += 1
    side = "last" if bound.last else "first"
    if kept == 0 and bound.lines > 0:
        raw = ordered[0].encode(errors="surrogatepass")
        piece = (_last if bound.last else _first)(raw, bound.limit_bytes)
        said = f"{side} {_size(piece)} bytes of a line of {len(raw)} bytes"
        return _with_notice(piece, text, said, between, last=bound.last)
    chosen = "\n".join(ordered[:kept][::-1]) + end * (kept > 0) if bound.last else "\n".join(ordered[:kept])
    # Where nobody has counted the lines that the tool left out, nothing is said of them.
    of = "" if newlines is None else f" of {newlines + (not end)}"
    return _with_notice(chosen, text, f"{side} {kept}{of} lines", between, last=bound.last)


def _with_notice(kept: str, text: str, said: str, between: str, *, last: bool) -> Cut:
    notice = f"[Truncated: these are the {said}.]"
    amid = f"{between}\n\n" if between else ""
    together = f"{notice}\n\n{amid}{kept}" if last else f"{kept}\n\n{amid}{notice}"
    return Cut(together, _size(text) - _size(kept))


def _first(raw: bytes, limit_bytes: int) -> str:
    """The text of the first bytes; a character that reaches over the limit goes."""
    end = min(limit_bytes, len(raw))
    while 0 < end < len(raw) and _is_inside(raw[end]):
        end -= 1
    return raw[:end].decode(errors="surrogatepass")


def _last(raw: bytes, limit_bytes: int) -> str:
    """The same from the end."""
    start = max(0, len(raw) - limit_bytes)
    while start < len(raw) and _is_inside(raw[start]):
        start += 1
    return raw[start:].decode(errors="surrogatepass")


def _is_inside(byte: int) -> bool:
    """Is it a byte of a character other than its first?"""
    return byte & 0xC0 == 0x80


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


_HOW = {Whole: _whole, Tail: _tail, Ends: _ends, Middle: _middle, LineLimit: _lines}


_SMALL = 200_000
"""Characters, items or members."""


class BoundingContext(Protocol):
    """What bounding needs of a call's context."""

    call_id: str
    name: str
    log: tuple[str, str] | None
    kept: int | None
    missing: int
    found: "Callable[[], OutputHighlights] | None"

    def note(self, sentence: str) -> None: ...

    def drop_log(self) -> None: ...


class BoundedResult(NamedTuple):
    """A result fit to be sent, and where the whole of it is."""

    result: Any
    output_id: str | None


class OutputLimiter:
    """Cuts and keeps."""

    def __init__(self, store: "Callable[[], Store]", where: "Callable[[str], str]") -> None:
        self._store = store
        self.where = where
        """Says how whoever reads the note gets at an output, by its id."""

    async def bound(
        self, result: Any, ctx: BoundingContext, bound: Bound = WHOLE, *, limit_bytes: int
    ) -> BoundedResult:
        """The result within the limit. Raises `ToolFailure` for a result that is no JSON value."""
        if bound is not WHOLE and isinstance(result, str):
            return await self._shorten_text(result, ctx, bound, limit_bytes)
        if isinstance(result, str) and len(result) * 4 <= limit_bytes:
            return BoundedResult(clean_value(result), await self._keep_log(ctx))
        try:
            if _is_small(result):
                kept, whole, omitted = _shape(result, limit_bytes)
            else:
                kept, whole, omitted = await asyncio.to_thread(_shape, result, limit_bytes)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise ToolFailure(
                f"{ctx.name} returned something that is not a JSON value ({type(result).__name__}).", code="bad-result"
            ) from error
        output_id = await self._keep_log(ctx)
        if omitted and output_id is None:
            output_id = await self._keep_output(
                self._store().put(result_text(whole), call_id=ctx.call_id, tool=ctx.name), ctx
            )
        return BoundedResult(kept, output_id)

    async def _shorten_text(self, result: str, ctx: BoundingContext, bound: Bound, limit_bytes: int) -> BoundedResult:
        """A text within the family's own bound; whatever that is, the general limit holds as well."""
        whole = clean_value(result)
        short = shorten(whole, bound, missing=ctx.missing, found=ctx.found)
        kept, _, omitted = _shape(short.text, limit_bytes)
        output_id = await self._keep_log(ctx)
        if (short.omitted_bytes or omitted) and output_id is None:
            output_id = await self._keep_output(self._store().put(whole, call_id=ctx.call_id, tool=ctx.name), ctx)
        return BoundedResult(kept, output_id)

    async def _keep_log(self, ctx: BoundingContext) -> str | None:
        """The id of the log that the tool itself wrote, when it is worth keeping."""
        if ctx.log is None or ctx.kept is None:
            return None
        path, size = ctx.log[1], ctx.kept
        return await self._keep_output(
            self._store().adopt(path, size_bytes=size, call_id=ctx.call_id, tool=ctx.name), ctx
        )

    async def _keep_output(self, keeping: "Coroutine[Any, Any, str]", ctx: BoundingContext) -> str | None:
        try:
            output_id = await keeping
        except FerruleError as error:
            ctx.note(f"The full output could not be kept: {error}")
            ctx.drop_log()
            return None
        ctx.note(f"The full output is kept as {output_id}: {self.where(output_id)}")
        return output_id


def _is_small(result: Any) -> bool:
    """Is it shaped before anybody would notice? What is large is shaped away from the event loop."""
    return not isinstance(result, (str, list, tuple, dict)) or len(result) < _SMALL


def _shape(result: Any, limit_bytes: int) -> tuple[Any, Any, int]:
    """The result within the limit, the whole of it, and how many bytes were left out."""
    # Values of other types become the JSON values that they stand for, so that nothing hides inside them.
    cleaned = clean_value(msgspec.to_builtins(result, str_keys=True))
    if len(msgspec.json.encode(cleaned)) <= limit_bytes:
        return cleaned, cleaned, 0

    kept, omitted = cut_value(cleaned, limit_bytes)
    return kept, cleaned, omitted
