"""What a call would change, as rows for a person: numbered lines, with a few unchanged ones around them."""

import functools
from collections.abc import Callable, Iterator, Sequence

from ferrule.core.preview import Preview, Previewed
from ferrule.permissions.asker import visible
from ferrule.support.diff import CONTEXT_LINES, Change, changes
from ferrule.workspace.span import changed_span
from ferrule.workspace.textfile import Binary, parse

MOST_ROWS = 2000
MOST_ROW_CHARS = 4000
MOST_WHOLE_CHARS = 50_000
"""Of what has to be seen whole; nobody reads more before they say yes."""
_APART = "…"
Row = Callable[[], str]
"""A row that is put into words when it is shown: of a long file most are only counted."""


def rows(preview: Preview, shown: Callable[[str], str], *, most: int = MOST_ROWS) -> tuple[str, ...]:
    """The files one after the other. Nothing in a row steers the screen; a long end is left out and counted."""
    moving = {one.came_from for one in preview}
    files = [one for one in preview if one.path not in moving]
    found: list[str] = []
    left = 0
    for one in files:
        old = next((other for other in preview if other.path == one.came_from), None)
        told = list(_file(one._replace(before=old.before) if old else one, shown, named=len(files) > 1))
        room = max(0, most - len(found))
        found += (row() for row in told[:room])
        left += max(0, len(told) - room)
    return (*found, f"{_APART} {left:,} more line{'s' * (left > 1)}") if left else tuple(found)


class Unshown(Exception):  # noqa: N818 - it says what it is
    """What has to be seen whole cannot be."""


def whole(preview: Preview, shown: Callable[[str], str]) -> tuple[str, ...]:
    """The same to the last character. Raises `Unshown`, with the reason."""
    found = rows(preview, shown, most=MOST_WHOLE_CHARS)
    if sum(map(len, found)) > MOST_WHOLE_CHARS or len(found) > MOST_WHOLE_CHARS:
        raise Unshown("there is more to look at than a question can show")
    if any(row.startswith("(binary:") for row in found):
        raise Unshown("it is no text that could be shown")
    if any(len(line) > MOST_ROW_CHARS for one in preview for line in _text(one.after).splitlines()):
        raise Unshown("its lines are too long to be shown")
    return found


def _file(one: Previewed, shown: Callable[[str], str], *, named: bool) -> Iterator[Row]:
    name = visible(shown(one.path)) + ": " if named else ""
    if one.came_from:
        yield _said(f"({name}moved from {visible(shown(one.came_from))})")
    elif one.before == one.after:
        yield _said(f"({name}reads like this already: nothing would change)")
    elif one.before is None:
        yield _said(f"({name}new file, {_bytes(one.after)})")
    elif one.after is None:
        yield _said(f"({name}deletes the file, {_bytes(one.before)})")
    elif named:
        yield _said(f"({name}changes)")
    if one.before == one.after:
        return
    try:
        before, after = _text(one.before), _text(one.after)
    except Binary:
        yield _said(f"(binary: {_bytes(one.before)} before, {_bytes(one.after)} after)")
        return
    if before == after and None not in (one.before, one.after):
        yield _said("(the text stays as it is; its encoding changes)")
    yield from _numbered(before, after)


def _said(text: str) -> Row:
    return lambda: text


def _bytes(raw: bytes | None) -> str:
    size = len(raw or b"")
    return f"{size:,} byte{'s' * (size != 1)}"


def _text(raw: bytes | None) -> str:
    return "" if raw is None else parse(raw).text


def _numbered(before: str, after: str) -> Iterator[Row]:
    """The lines that differ with their numbers: of what goes as it is, of everything else as it will be."""
    above, one, other = _around(before, after)
    plain = all(line.endswith("\r\n") for line in (*one, *other) if line.endswith("\n"))
    found = changes(one, other)
    width = len(str(above + max(len(one), len(other))))
    for at, group in enumerate(_groups(found)):
        if at:
            yield _said(f"{' ' * width} {_APART}")
        for number, sign, line in _hunk(group, one, other):
            yield functools.partial(_row, above + number, width, sign, line, plain=plain)
        if lacks := _lacks_newline(group, one, other):
            yield _said(f"{' ' * width}  (no newline at the end{lacks})")


def _around(before: str, after: str) -> tuple[int, list[str], list[str]]:
    """How many lines are above, and the lines that differ with those around them: a long file is not compared whole."""
    one, other = (text.encode(errors="surrogatepass") for text in (before, after))
    start, gone, come = changed_span(one, other)
    first = start
    for _ in range(CONTEXT_LINES + 1):
        first = one.rfind(b"\n", 0, max(0, first)) if first > 0 else -1
    first += 1
    cut = [_behind(raw, start + size) for raw, size in ((one, gone), (other, come))]
    return one.count(b"\n", 0, first), _lines(one[first : cut[0]]), _lines(other[first : cut[1]])


def _behind(raw: bytes, end: int) -> int:
    for _ in range(CONTEXT_LINES + 1):
        found = raw.find(b"\n", end)
        if found < 0:
            return len(raw)
        end = found + 1
    return end


def _lines(raw: bytes) -> list[str]:
    """At LF alone, as in git."""
    pieces = raw.decode(errors="surrogatepass").split("\n")
    last = pieces.pop()
    return [f"{piece}\n" for piece in pieces] + ([last] if last else [])


def _groups(found: Sequence[Change]) -> Iterator[list[Change]]:
    group: list[Change] = []
    for change in found:
        if group and change.start - group[-1].end > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: Sequence[Change], one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Number, sign and line; what stays has the number that it will have."""
    moved = group[0].new_start - group[0].start
    at = max(0, group[0].start - CONTEXT_LINES)
    for change in group:
        yield from ((number + moved + 1, " ", one[number]) for number in range(at, change.start))
        yield from ((number + 1, "-", one[number]) for number in range(change.start, change.end))
        yield from ((number + 1, "+", other[number]) for number in range(change.new_start, change.new_end))
        at, moved = change.end, change.new_end - change.end
    end = min(len(one), at + CONTEXT_LINES)
    yield from ((number + moved + 1, " ", one[number]) for number in range(at, end))


def _lacks_newline(group: Sequence[Change], one: Sequence[str], other: Sequence[str]) -> str:
    """Which of the two ends without a newline, where the end of the file is among the changes."""
    is_last = group[-1].end == len(one) and group[-1].new_end == len(other)
    lacks = [bool(side) and not side[-1].endswith("\n") for side in (one, other)]
    if not is_last or not any(lacks):
        return ""
    return ", now and then" if all(lacks) else " now" if lacks[0] else " then"


def _row(number: int, width: int, sign: str, line: str, *, plain: bool) -> str:
    text = line.removesuffix("\n")
    text = text.removesuffix("\r") if plain else text
    more = len(text) - MOST_ROW_CHARS
    cut = visible(text[:MOST_ROW_CHARS].replace("\t", "    "))
    end = f" {_APART} {more:,} more characters" if more > 0 else ""
    return f"{number:>{width}} {sign} {cut}{end}".rstrip()
