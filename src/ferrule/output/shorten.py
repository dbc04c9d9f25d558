"""Shortening a text as a family's bound says: pure functions, one per kind of bound.

The laws of `cut` hold here too, but one: a text that fits is returned itself, a code point is never split, and what is
kept is within the bound. The sentence that says what is missing comes on top, as the families have it, so a text that
was shortened may be shortened again; the engine does it once. `missing` is how many characters a tool has left out of
the middle already; the sentences count them.
"""

from typing import Any

from ferrule.core.bound import Bound, Ends, Lines, Middle, Tail, Whole
from ferrule.output.cut import Cut


def shorten(text: str, bound: Bound, *, missing: int = 0) -> Cut:
    """The text within the bound, and how many bytes of it are left out."""
    how: Any = _HOW[type(bound)]
    cut: Cut = how(text, bound, missing)
    return cut


def _whole(text: str, _bound: Whole, _missing: int) -> Cut:
    return Cut(text, 0)


def _tail(text: str, bound: Tail, _missing: int) -> Cut:
    if len(text) <= bound.chars:
        return Cut(text, 0)
    at = len(text) - bound.chars
    return Cut(text[at:], _size(text[:at]))


def _ends(text: str, bound: Ends, missing: int) -> Cut:
    by_bytes = _ends_by_bytes(text, bound.limit_bytes, missing)
    if bound.lines is None:
        return by_bytes
    kept, omitted = _ends_by_lines(by_bytes.text, bound.lines)
    return Cut(kept, by_bytes.omitted_bytes + omitted)


def _ends_by_bytes(text: str, limit_bytes: int, missing: int) -> Cut:
    raw = text.encode(errors="surrogatepass")
    if len(raw) <= limit_bytes:
        return Cut(text, 0)
    half = limit_bytes // 2
    head, tail = _first(raw, half), _last(raw, half)
    notice = f"\n\n[output truncated: {len(raw) + missing - limit_bytes} bytes removed from middle]\n\n"
    return Cut(head + notice + tail, len(raw) - _size(head) - _size(tail))


def _ends_by_lines(text: str, most: int) -> tuple[str, int]:
    # A newline at the end counts as the beginning of a further line.
    lines = text.split("\n")
    if len(lines) <= most or not text:
        return text, 0
    half = most // 2
    head, gone, tail = lines[:half], lines[half : len(lines) - half], lines[len(lines) - half :]
    notice = f"\n[...{len(gone)} lines omitted...]\n"
    return "\n".join(head) + notice + "\n".join(tail), max(1, _size("\n".join(gone)))


def _middle(text: str, bound: Middle, missing: int) -> Cut:
    if len(text) <= bound.chars:
        return Cut(text, 0)
    half = bound.chars // 2
    gone = text[half : len(text) - half]
    notice = f"\n\n... [truncated {len(gone) + missing} chars] ...\n\n"
    return Cut(text[:half] + notice + text[len(text) - half :], _size(gone))


def _lines(text: str, bound: Lines, missing: int) -> Cut:
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
        return _with_notice(piece, text, said, last=bound.last)
    chosen = "\n".join(ordered[:kept][::-1]) + end * (kept > 0) if bound.last else "\n".join(ordered[:kept])
    # Nobody has counted the lines that the tool left out.
    of = "" if missing else f" of {len(lines)}"
    return _with_notice(chosen, text, f"{side} {kept}{of} lines", last=bound.last)


def _with_notice(kept: str, text: str, said: str, *, last: bool) -> Cut:
    notice = f"[Truncated: these are the {said}.]"
    together = f"{notice}\n\n{kept}" if last else f"{kept}\n\n{notice}"
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


_HOW = {Whole: _whole, Tail: _tail, Ends: _ends, Middle: _middle, Lines: _lines}
