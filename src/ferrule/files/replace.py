"""Replace pieces of text in a file, and explain why an edit found no place or more than one.

Likeness is measured here, and only here: it chooses the text to show, never the text to write. Reports speak of
"the old text" and "the new text", because each family has its own names for these parameters.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.files.diff import changes, diff, diff_of_splices
from ferrule.files.journal import find_changed_span
from ferrule.files.ledger import Ledger
from ferrule.files.match import BLANKS, Ambiguous, EditMatch, Missing, Rung, find
from ferrule.files.patch import Unplaced
from ferrule.files.text import Binary, Splice, TextFile, Unencodable, line_mark, lines, parse, splice

LIMIT_CHARACTERS = 2500
LIMIT_LINES = 400
"""How many lines of the old text are compared with the file."""
LIMIT_WIDTH = 160
LIMIT_CLUES = 24
LIMIT_HITS = 100
"""A clue that occurs more often than this tells nothing about where to look."""
LIMIT_LISTED = 20
LIKENESS = 0.4
"""The share of common words below which two texts have nothing to do with each other."""

_WORDS = re.compile(r"\w+|[^\w\s]")
_NUMBERED = re.compile(r"[ \t]*L?\d+(?:: ?|→|\t|[|] ?)")
_VISIBLE = str.maketrans({" ": "·", "\t": "→", "\r": "␍"})
_FORGIVEN: dict[Rung, str] = {
    "exact": "",
    "line-endings": "but for its line ends, ",
    "trailing-blanks": "but for blanks at the ends of lines, ",
    "indentation": "but for its indentation, ",
}


class _ComparisonRow(NamedTuple):
    """A line of the comparison."""

    number: int
    """The line's number in the file; 0 for a line of the old text."""
    shown: str
    differs: bool


def explain(file: TextFile, old: str, new: str, *, changed_since_read: bool) -> str:
    """What is wrong with an old text that was not found, and what to do about it."""
    if not file.text:
        return "The file is empty: there is nothing to replace."
    outcome = find(file, old, new, everywhere=False)
    parts = [_verdict(file, old, outcome)]
    if changed_since_read:
        parts.append("The file has changed since you read it: read it again before the next edit.")
    slip = _slip(file, old) if outcome == Missing() else ""
    if slip:
        return "\n".join([*parts, slip])
    # A short new text can be anywhere by chance.
    number = _line_of(file, new) if len(new.strip()) >= 12 else 0
    if number:
        parts.append(
            f"The new text is already in the file, at line {number}: "
            "if that is the place that you mean, nothing is left to do."
        )
    if isinstance(outcome, Missing) and outcome.reason != "repetitive":
        room = LIMIT_CHARACTERS - sum(len(part) + 1 for part in parts)
        parts += _closest(lines(file.text), file.text, lines(old), room)
    return "\n".join(parts)


def explain_ambiguous(file: TextFile, ambiguous: Ambiguous, old: str) -> str:
    """Where an old text was found more than once, and what to do about it."""
    count = len(ambiguous.lines)
    many = f"{count} places" if ambiguous.complete else f"more than {count} places"
    # A line can hold several places.
    numbers = [(number, sum(1 for _ in group)) for number, group in groupby(ambiguous.lines)]
    listed = [f"{number} ({times} times)" if times > 1 else str(number) for number, times in numbers[:LIMIT_LISTED]]
    rest = count - sum(times for _, times in numbers[:LIMIT_LISTED])
    more = f" and {rest} more" if rest else ""
    word = "line" if len(numbers) == 1 else "lines"
    what = "The old text" if old.strip() else "The old text, which is nothing but blanks,"
    where = f"{what} fits {many}: {_FORGIVEN[ambiguous.rung]}it stands at {word} {', '.join(listed)}{more}."
    advice = "Add lines before or after it, to both texts, until it fits one place only."
    return "\n".join(
        [where, f"Nothing was changed. {advice}", *_above(lines(file.text), [number for number, _ in numbers[:5]])]
    )


def _verdict(file: TextFile, old: str, outcome: EditMatch | Ambiguous | Missing) -> str:
    if outcome == Missing():
        return "The old text is not in the file. Nothing was changed."
    if outcome == Missing("unshiftable"):
        return (
            f"The old text stands at line {_line_of(file, old)} with another indentation, and the new text cannot be "
            "moved the same way. Nothing was changed. Write both with the file's own indentation."
        )
    return (
        "The file repeats itself so much that the old text has no certain place. Nothing was changed. "
        "Use an old text that begins with a line that is rare in the file."
    )


def _slip(file: TextFile, old: str) -> str:
    """What was only added to a text that is in the file, if that is the trouble."""
    pieces = old.split("\n")
    if all(_NUMBERED.match(piece) or not piece.strip() for piece in pieces):
        bare = (piece[m.end() :] if (m := _NUMBERED.match(piece)) else piece for piece in pieces)
        number = _line_of(file, "\n".join(bare))
        if number:
            return (
                "The lines of the old text begin with line numbers, which are not in the file. "
                f"Without them it stands at line {number}: leave them out, in the new text too."
            )
    number = _line_of(file, old.strip("\r\n"))
    if number:
        return (
            f"Without the line ends around it, the old text stands at line {number}: the file has none there. "
            "Leave them out, in the new text too."
        )
    return ""


def _line_of(file: TextFile, text: str) -> int:
    """Where the text stands first, be it loosely; 0 if nowhere."""
    outcome = find(file, text, text, everywhere=False)
    if isinstance(outcome, EditMatch):
        return outcome.lines[0][0]
    return outcome.lines[0] if isinstance(outcome, Ambiguous) else 0


def _closest(page: list[str], text: str, old: list[str], room: int) -> Iterator[str]:
    compared = old[:LIMIT_LINES]
    start = _likeliest(page, text, compared)
    if start is None:
        yield "Nothing in the file is like it: read the file again, or look for the text in other files."
        return
    rows = _rows(page, compared, start)
    numbers = [row.number for row in rows if row.number]
    first, last = numbers[0], numbers[-1]
    yield (
        f"The closest text is at lines {first} to {last}." if first < last else f"The closest text is at line {first}."
    )
    if any(row.differs for row in rows):
        yield "Where they differ, > is the file, · is a space, → a tab and ␍ a carriage return:"
        yield from _excerpt(rows, room - 250)
    elif len(old) > len(compared):
        yield f"The first {LIMIT_LINES} lines are the same; a later one differs. A shorter old text is enough."
    yield "Copy the old text from the file as it is now, and edit again."


def _likeliest(page: list[str], text: str, old: list[str]) -> int | None:
    """The line, from 0, at which a text like the old one begins."""
    votes: Counter[int] = Counter()
    for line, weight in _votes(text, old):
        votes[line] += weight
    # Lines that were added or left out move what follows: neighbours count together.
    near = {line: sum(votes[line + step] for step in (-2, -1, 0, 1, 2)) for line in list(votes)}
    best: tuple[float, int] | None = None
    wanted = Counter(_words(old))
    for line in sorted(near, key=lambda line: (-near[line], -votes[line], line))[:8]:
        start = min(max(line, 0), max(len(page) - 1, 0))
        window = page[start : start + len(old)]
        found = Counter(_words(window))
        alike = 2 * (wanted & found).total() / max(1, wanted.total() + found.total())
        same = sum(left.strip() == right.strip() for left, right in zip(window, old, strict=False)) / len(old)
        if alike >= LIKENESS and (best is None or alike + same > best[0]):
            best = (alike + same, start)
    return best[1] if best else None


def _votes(text: str, old: list[str]) -> Iterator[tuple[int, int]]:
    """Where the old text would begin, according to each occurrence of its most telling lines and words."""
    rare: list[tuple[int, int, int]] = []
    common: list[tuple[int, int, int]] = []
    for clue, line in _clues(old):
        hits: list[int] = []
        at = text.find(clue)
        while at >= 0 and len(hits) <= LIMIT_HITS:
            hits.append(at)
            at = text.find(clue, at + len(clue))
        found = rare if len(hits) <= LIMIT_HITS else common
        found += ((hit, line, 1000 * len(clue) // len(hits)) for hit in hits)
    mark = line_mark(text)
    number = counted = 0
    for at, line, weight in sorted(rare or common):
        number += text.count(mark, counted, at)
        counted = at
        yield number - line, weight


def _clues(old: list[str]) -> list[tuple[str, int]]:
    """The longest lines and words, each with the line where it comes first."""
    whole: dict[str, int] = {}
    words: dict[str, int] = {}
    for number, line in enumerate(old):
        bare = line.strip(BLANKS)[:LIMIT_WIDTH]
        if len(bare) > 3:
            whole.setdefault(bare, number)
        for word in _WORDS.findall(line[: LIMIT_WIDTH * 10]):
            if len(word) > 2:
                words.setdefault(word, number)
    return [*_longest(whole), *_longest({word: line for word, line in words.items() if word not in whole})]


def _longest(found: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda item: (-len(item[0]), item[1]))[:LIMIT_CLUES]


def _words(page: Sequence[str]) -> Iterable[str]:
    return (word for line in page for word in _WORDS.findall(line[: LIMIT_WIDTH * 10]))


def _rows(page: list[str], old: list[str], start: int) -> list[_ComparisonRow]:
    """The old text beside the file's lines there, with a few more of these to find where it truly begins and ends."""
    early = min(start, 3)
    first = start - early
    window = page[first : start + len(old) + 3]
    rows: list[_ComparisonRow] = []
    done = 0
    # Blanks at the ends of lines are forgiven, so they are no difference.
    one, other = ([line.rstrip(BLANKS) for line in part] for part in (old, window))
    for begin, end, new_begin, new_end in (*changes(one, other), (len(old), len(old), len(window), len(window))):
        rows += (_same(first + at + 1, window[at]) for at in range(done, new_begin))
        done = new_end
        surplus = max(0, new_end - new_begin - (end - begin))
        skipped = min(surplus, early if end else surplus) if begin == 0 else 0
        cut = surplus - skipped if end == len(old) else 0
        rows += _different(window[new_begin + skipped : new_end - cut], old[begin:end], first + new_begin + skipped + 1)
    return rows


def _same(number: int, line: str) -> _ComparisonRow:
    return _ComparisonRow(number, f"{number:>7}  {line[:LIMIT_WIDTH]}", differs=False)


def _different(theirs: list[str], mine: list[str], number: int) -> Iterator[_ComparisonRow]:
    """Line by line if there are as many of both, else first the file's and then the old text's."""
    paired = len(theirs) == len(mine)
    size = 1 if paired else max(len(theirs), len(mine))
    for at in range(0, max(len(theirs), len(mine)), size):
        ours, yours = theirs[at : at + size], mine[at : at + size]
        begin = _common(ours[0], yours[0]) if paired else 0
        for offset, line in enumerate(ours, number + at):
            yield _ComparisonRow(offset, f">{offset:>6}  {_visible(line, begin)}", differs=True)
        for line in yours:
            yield _ComparisonRow(0, f"{'old':>7}  {_visible(line, begin)}", differs=True)
        odd = (ours[0][begin : begin + 1] + yours[0][begin : begin + 1]) if paired else ""
        if len(odd) == 2 and not odd.isascii():
            one, other = (f"{character!r} (U+{ord(character):04X})" for character in odd)
            yield _ComparisonRow(0, f"{'':>7}  the file has {one} where the old text has {other}", differs=True)


def _common(one: str, other: str) -> int:
    """How many characters the two lines share at the beginning, found by halving: lines can be very long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _visible(line: str, around: int) -> str:
    """The line with its blanks made visible; of a long one, the part around that character."""
    begin = max(0, around - LIMIT_WIDTH // 2) if len(line) > LIMIT_WIDTH else 0
    # Half of a pair, which JSON can carry, is no character that a report could be written with.
    part = line[begin : begin + LIMIT_WIDTH].translate(_VISIBLE).encode(errors="replace").decode()
    return f"{'…' if begin else ''}{part}{'…' if begin + LIMIT_WIDTH < len(line) else ''}"


def _excerpt(rows: list[_ComparisonRow], room: int) -> Iterator[str]:
    """The rows that differ and their neighbours, as far as there is room."""
    skipping = False
    for at, row in enumerate(rows):
        if not any(near.differs for near in rows[max(0, at - 1) : at + 2]):
            skipping = True
            continue
        if skipping:
            yield "      …"
        skipping = False
        room -= len(row.shown) + 9
        if room < 0:
            yield "      … (more lines differ)"
            return
        yield row.shown


def _above(page: list[str], numbers: list[int]) -> list[str]:
    """For each of these lines, the text before it, if that tells it from the others."""
    found: list[tuple[int, str]] = []
    for number in numbers:
        above = page[max(0, number - 20) : number - 1]
        found.append((number, next((line.strip(BLANKS)[:100] for line in above[::-1] if line.strip()), "")))
    if len({before for _, before in found if before}) < 2:
        return []
    return [f"Line {number} comes after: {before}" for number, before in found if before]


HUNK_WIDTH = 80

_WHERE = (
    "Give lines of context around the change, or before it an @@ line with the class or function that it is in, until"
)


def explain_unplaced(file: TextFile, unplaced: Unplaced, *, changed_since_read: bool) -> str:
    """What is wrong with the hunk, and what to do about it. The file's own name is left to the caller."""
    hunk = unplaced.hunk
    name = f"the hunk at line {hunk.line} of the patch"
    match unplaced.reason:
        case "ambiguous":
            return (
                f"{name} fits {_count(unplaced)} places: {_format_lines(unplaced.lines, unplaced.heads)}. "
                f"Nothing was changed. {_WHERE} it fits one place only."
            )
        case "nowhere":
            return (
                f"{name} only adds lines and does not say where. Nothing was changed. Put the line that they come "
                "after behind @@, or give lines of context, or end it with *** End of File."
            )
        case "repetitive":
            return (
                f"{name} has no certain place, because the file repeats itself so much. Nothing was changed. "
                "Give lines of context that are rare in the file."
            )
        case "unshiftable":
            return (
                f"{name} fits line {unplaced.lines[0]} but for its indentation, and its added lines cannot be moved "
                "the same way. Nothing was changed. Write it with the file's own indentation."
            )
        case "elsewhere":
            return f"{name} has no place where it is looked for. Nothing was changed. {_elsewhere(unplaced)}"
        case "no-anchor":
            old, new, what = unplaced.anchor, "", "the line behind its @@"
        case "absent":
            old, new, what = "\n".join(hunk.old()), "\n".join(hunk.new()), "its context and removed lines"
    return f"{name} has no place. {_absent(file, old, new, what, changed_since_read=changed_since_read)}"


def _count(unplaced: Unplaced) -> str:
    return str(len(unplaced.lines)) if unplaced.complete else f"more than {len(unplaced.lines)}"


def _format_lines(lines: Sequence[int], heads: Sequence[str] = ()) -> str:
    """Line numbers, each with what the line is in where that is known."""
    inside = [f" (in {head[:HUNK_WIDTH]})" if head else "" for head in heads] or [""] * len(lines)
    shown = [f"{number}{head}" for number, head in zip(lines, inside, strict=True)][:LIMIT_LISTED]
    more = f" and {len(lines) - LIMIT_LISTED} more" if len(lines) > LIMIT_LISTED else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(shown)}{more}"


def _elsewhere(unplaced: Unplaced) -> str:
    hunk, where = unplaced.hunk, _format_lines(unplaced.lines)
    behind = f"after line {unplaced.done}, where the hunk before it ends" if unplaced.done else ""
    headed = f"after its @@ line {hunk.anchors[-1][:HUNK_WIDTH]!r}" if hunk.anchors and hunk.old() else ""
    closed = "at the end of the file, because of *** End of File" if hunk.at_end else ""
    needed = ", and ".join(part for part in (behind, headed, closed) if part)
    return (
        f"It fits {where}, but has to stand {needed}. Put the hunks in the order of the file, each after its @@ line."
    )


def _absent(file: TextFile, old: str, new: str, what: str, *, changed_since_read: bool) -> str:
    if not file.text:
        return "Nothing was changed. The file is empty: a hunk for it can only add lines."
    if not old.strip():
        return f"Nothing was changed. The file has no empty lines for {what}: give lines that are not empty."
    found = find(file, old, new, everywhere=False)
    if not isinstance(found, Missing):
        number = found.lines[0][0] if isinstance(found, EditMatch) else found.lines[0]
        return (
            f"Nothing was changed. At line {number} of the file, {what} are only parts of longer lines: "
            "a patch takes whole lines."
        )
    return f"Here, the old text is {what}.\n{explain(file, old, new, changed_since_read=changed_since_read)}"


class Piece(NamedTuple):
    """One old text and what to put in its place."""

    old: str
    new: str
    everywhere: bool = False
    expected: int | None = None
    """How many places there must be."""


class Replaced(NamedTuple):
    """A file with its pieces replaced."""

    before: TextFile
    after: TextFile
    first_line: int
    """Where the new text begins and ends in the file as it will be, from 1."""
    last_line: int
    places: int
    notes: tuple[str, ...]
    splices: tuple[Splice, ...] | None
    """What was done to the text, where it was done at once."""

    @property
    def raw(self) -> bytes:
        return self.after.raw

    def diff(self, name: str) -> str:
        """A diff of the file under the given name."""
        if self.splices is not None:
            return diff_of_splices(name, self.before.text, self.splices)
        return diff(name, self.before.text, self.after.text)


def current(raw: bytes | None, path: str, ledger: Ledger, *, read_first: bool) -> TextFile:
    """The text file that is to be changed; with `read_first` only one that the session has seen as it is."""
    if raw is None:
        raise ToolFailure("There is no such file to edit.", code="not-found", path=path)
    try:
        file = parse(raw)
    except Binary as error:  # before anybody is sent to read it, which cannot be done either
        raise ToolFailure("The file is binary and cannot be edited as text.", code="binary", path=path) from error
    if read_first:
        check_read(raw, path, ledger)
    return file


def check_read(raw: bytes, path: str, ledger: Ledger) -> None:
    """Refuse a file that the session has not read, or not as it now is."""
    if not ledger.knows(path):
        why = ledger.why_unread(path)
        hint = f"\nReading it has failed: {why}" if why else ""
        message = f"{path} has not been read yet. Read it first, then change it.{hint}"
        raise ToolFailure(message, code="not-read", path=path, hint=hint)
    if ledger.stale(path, raw):
        raise ToolFailure(f"{path} has changed since it was read. Read it again first.", code="stale", path=path)


def replace(file: TextFile, piece: Piece, path: str, *, stale: bool) -> Replaced:
    """The file with one piece replaced."""
    found = _place(file, piece, path, stale=stale, of="")
    first, last = found.lines[0][0], found.lines[-1][1]
    after = _apply_splices(file, found.splices, path)
    notes = (*_notes(found, ""), *_encoding_note(file))
    return Replaced(file, after, first, last, len(found.lines), notes, found.splices)


def replace_all(file: TextFile, pieces: Sequence[Piece], path: str, *, in_turn: bool, stale: bool) -> Replaced:
    """The file with all pieces replaced: each in what the ones before have left, or all in the file as it is."""
    if len(pieces) == 1:
        return replace(file, pieces[0], path, stale=stale)
    notes: list[str] = []
    every: list[EditMatch] = []
    after = file
    for number, piece in enumerate(pieces, 1):
        found = _place(after, piece, path, stale=stale, of=f"Edit {number} of {len(pieces)}: ")
        every.append(found)
        notes += _notes(found, f"Edit {number}: ")
        if in_turn:
            after = _apply_splices(after, found.splices, path)
    together = None
    if not in_turn:
        together = _together(every, path)
        after = _apply_splices(file, together, path)
    first, last = _find_changed_lines(file.text, after.text) or every[0].lines[0]
    places = sum(len(found.lines) for found in every)
    return Replaced(file, after, first, last, places, (*notes, *_encoding_note(file)), together)


def _together(every: Sequence[EditMatch], path: str) -> tuple[Splice, ...]:
    """The splices of all edits in the order of the text; two at one point stay in the order of the edits."""
    splices = sorted((one for found in every for one in found.splices), key=lambda one: (one.start, one.end))
    for one, other in itertools.pairwise(splices):
        if one.end > other.start:
            raise ToolFailure(
                "Two of the edits change the same text. Make one edit of them. Nothing was changed.",
                code="overlap",
                path=path,
            )
    return tuple(splices)


def _find_changed_lines(before: str, after: str) -> tuple[int, int] | None:
    """The first and the last line of what differs, in the text as it will be; None where nothing does."""
    new, mark = after.encode(errors="surrogatepass"), line_mark(after).encode()
    start, gone, come = find_changed_span(before.encode(errors="surrogatepass"), new)
    if not gone and not come:
        return None
    first = new.count(mark, 0, start) + 1
    ends = new.count(mark, start, start + come)
    return first, first + ends - (ends > 0 and new.endswith(mark, 0, start + come))


def _place(file: TextFile, piece: Piece, path: str, *, stale: bool, of: str) -> EditMatch:
    """The one place that is meant, or all of them; a failure explains itself."""
    if not piece.old:
        raise ToolFailure(f"{of}The old text is empty.", code="empty-old", path=path)
    if piece.old == piece.new:
        raise ToolFailure(f"{of}The old text and the new text are the same.", code="same-text", path=path)
    many = piece.everywhere or (piece.expected or 1) > 1
    match = find(file, piece.old, piece.new, everywhere=many)
    if isinstance(match, Missing):
        report = explain(file, piece.old, piece.new, changed_since_read=stale)
        raise ToolFailure(of + report, code="no-match", path=path)
    if isinstance(match, Ambiguous):
        report = explain_ambiguous(file, match, piece.old)
        raise ToolFailure(of + report, code="ambiguous", path=path, count=len(match.lines))
    if piece.expected is not None and len(match.lines) != piece.expected:
        raise ToolFailure(
            f"{of}The old text stands in {len(match.lines)} places, not in {piece.expected}. Nothing was changed.",
            code="unexpected-count",
            path=path,
            count=len(match.lines),
        )
    return match


def _apply_splices(file: TextFile, splices: Sequence[Splice], path: str) -> TextFile:
    """The file with the splices done; its encoding is not guessed anew, whatever the new text holds."""
    try:
        raw = splice(file, splices)
    except Unencodable as error:
        raise ToolFailure(f"{error} Nothing was changed.", code="unencodable", path=path) from error
    parts: list[str] = []
    done = 0
    for start, end, new in splices:
        parts += (file.text[done:start], new)
        done = end
    return TextFile(raw, "".join((*parts, file.text[done:])), file.encoding, file.bom)


def _notes(found: EditMatch, of: str) -> tuple[str, ...]:
    return () if found.rung == "exact" else (f"{of}The old text was matched loosely ({found.rung}).",)


def _encoding_note(file: TextFile) -> tuple[str, ...]:
    if file.encoding in ("utf-8", "ascii"):
        return ()
    return (f"The file is encoded as {file.encoding}, and still is.",)
