"""Shortening a text as a family's bound says: pure functions, one per kind of bound.

The laws of `cut` hold here too, but one: a text that fits is returned itself, a code point is never split, and what is
kept is within the bound. The sentence that says what is missing comes on top, as the families have it, so a text that
was shortened may be shortened again; the engine does it once. `missing` is how many characters a tool has left out of
the middle already; the sentences count them.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from ferrule.core.face import Bound, Ends, LineLimit, Middle, Tail, Whole
from ferrule.output.cut import Cut
from ferrule.system.highlights import SHARE, OutputHighlights, block


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
