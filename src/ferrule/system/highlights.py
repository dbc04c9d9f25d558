"""Lines that matter in a long output: errors, failures, warnings and the summaries of the usual tools."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

LINE_CHARS = 240
"""So much of a line is kept."""
_COUNTED_CHARS = 16 << 20
"""In so much of a stream lines are counted."""
_CLOSE_CHARS = 1 << 19
"""In so much of it every sign is looked for, and behind that those that most tools have."""
_WEIGHED = 4_000
"""So many lines with a sign are weighed, and of what is behind them the end: nobody waits for the looking."""
_RECENT_CHARS, _RECENT_LINES = 1 << 18, 40
_WAITING_CHARS = 1 << 15
"""Less than this is not looked through before somebody asks: most outputs are short, and are shown whole."""
_LOOKED_LINE_CHARS = 4 * LINE_CHARS
_HELD = {3: (24, 24), 2: (4, 12), 1: (6, 6)}
"""By weight: so many of the first lines and of the last ones."""

_COMMON = ("err", "fail", "warn", "fatal", "panic", "exception", "traceback", "passed")
_SIGNS = (
    *_COMMON,
    *("pass", "killed", "not ok", "caused by", "no such file", "not found", "denied", "undefined", "fault", "memory"),
    *("dumped", "deprecat", "problem", "ran ", "test", "total", "build", "compilation", "exit", "***", "\nok", "\ne  "),
    *("critical", "severe", "sanitizer", "timed out", "refused", "no space", "in use", "unable to", "cannot ", "\ne: "),
    "rspec ./",
)
"""What a line that matters has in it, in lower case; text without any of these is not taken apart into lines."""
_PICTURED = "✕✗✘●❌"

_ERROR = rf"""
    (?i:(?<![\w./-])(?:errors?|fatal|failed|failures?|fail|exception|traceback|panic(?:ked)?)(?![\w/-]|\.\w))
    | \b[A-Z]\w*(?:Error|Exception|Failure)\b (?=:|$|\s*\()
    | ^E\s{{2,}}\S | ^\s*[{_PICTURED}]\s | ^\s*not\ ok\b | ^npm\ (?:ERR!|error)
    | ^(?:g?make|ninja)\S*:\ \*\*\* | (?i:segmentation\ fault|core\ dumped|out\ of\ memory|undefined\ reference)
    | (?i:command\ not\ found|no\ such\ file\ or\ directory|permission\ denied) | ^Killed\b | ^Caused\ by:
    | \b(?:CRITICAL|SEVERE)\b | \w+Sanitizer: | ^E:\ \S | ^rspec\ \./
    | (?i:\btimed\ out\b | connection\ (?:refused|reset) | no\ space\ left\ on | address\ already\ in\ use)
    | ^(?:\S+:\ )*(?:Cannot|cannot|Unable\ to|unable\ to)\ \w
    | \bexit(?:ed)?\ (?:with\ )?(?:code|status)[:\ ]+[1-9]
    """
_SUMMARY = r"""
    ^=+\ .*\b(?:passed|failed|errors?|no\ tests\ ran)\b.*=+$
    | (?i:(?<![\w.:-])\d+\ (?:tests?\ )?(?:passed|failed|passing|failing|errors?|warnings?|problems?)\b)
    | ^(?:Tests?|Test\ Suites|Test\ Files|Snapshots):\s | ^test\ result: | ^Ran\ \d+\ tests?
    | ^(?:OK|FAILED)\b(?:\ \(|$)
    | \bBUILD\ (?:SUCCESS|SUCCESSFUL|FAILED|FAILURE)\b | ^(?:ok|FAIL)\ *\t\S | ^TOTAL\b
    | (?i:^\s*(?:build|compilation)\ (?:succeeded|failed|finished))
    """
_WARNING = r"(?i:(?<![\w./-])(?:warn(?:ing)?s?|deprecat(?:ed|ion\w*))(?![\w/-]|\.\w))|\b[A-Z]\w*Warning\b"
_HARMLESS = r"""
    (?i:\b(?:0|no|zero|without)\ (?:\w+\ )?(?:errors?|failures?|failed|warnings?|problems?)\b)
    | (?i:\b(?:errors?|failures?|failed|warnings?)\s*[:=]\s*0\b)
    | ^\s*(?:ok\b(?!\ *\t)|✓|✔|√|PASS\b) | (?:PASSED|\bok)\s*(?:\[\s*\d+%\])?\s*$
    | ^\s*--fail | (?i:fail[-_ ]?(?:fast|safe|over))
    """


class Highlight(NamedTuple):
    """A line that matters."""

    weight: int
    """3 for an error, 2 for a summary, 1 for a warning."""
    line: int
    """Its number, from 1."""
    text: str


def weight(line: str) -> int:
    """How much a line matters: 0 where it does not."""
    summary, harmless, error, warning = _patterns()
    if summary.search(line):
        return 2
    if harmless.search(line):
        return 0
    return 3 if error.search(line) else 1 if warning.search(line) else 0


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """On first use: most outputs are shown whole."""
    return tuple(re.compile(one, re.VERBOSE) for one in (_SUMMARY, _HARMLESS, _ERROR, _WARNING))


class OutputHighlights(NamedTuple):
    """What matters in an output."""

    lines: Sequence[Highlight]
    newlines: int | None
    """How many lines of it are at their end; None where that was not counted."""


class Highlights:
    """Takes an output piece by piece, and holds the lines of it that matter: the first ones and the last ones.

    What it takes is bounded in memory and in time, however much comes.
    """

    def __init__(self) -> None:
        self._line = 1
        self._waiting: list[str] = []
        self._waiting_chars = 0
        self._taken_chars = 0
        self._weighed = 0
        self._rest = ""
        """The beginning of the line that is not at its end yet."""
        self._first: dict[int, list[Highlight]] = {weight: [] for weight in _HELD}
        self._last: dict[int, deque[Highlight]] = {weight: deque(maxlen=last) for weight, (_, last) in _HELD.items()}
        self._recent: deque[str] = deque()
        """The end of what was not weighed."""
        self._recent_chars = 0
        self._is_counted = True

    def feed(self, text: str) -> None:
        """Take more of the output. It is looked at when there is much of it, or when somebody asks."""
        if self._taken_chars >= _COUNTED_CHARS:
            self._is_counted = False
            self._put_by(text)
            return
        self._waiting.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars > _WAITING_CHARS:
            self._flush()

    def _flush(self) -> None:
        text = "".join(self._waiting)
        self._waiting.clear()
        self._waiting_chars = 0
        self._taken_chars += len(text)
        if self._weighed >= _WEIGHED:
            self._line += text.count("\n")
            self._put_by(text)
        else:
            self._look(text)

    def _put_by(self, text: str) -> None:
        self._recent.append(text)
        self._recent_chars += len(text)
        while self._recent_chars - len(self._recent[0]) >= _RECENT_CHARS:
            self._recent_chars -= len(self._recent.popleft())

    def _look(self, text: str) -> None:
        end = text.rfind("\n") + 1
        if not end:
            self._rest = (self._rest + text)[:_LOOKED_LINE_CHARS]
            return
        whole, self._rest = self._rest + text[:end], text[end:][:_LOOKED_LINE_CHARS]
        signs = _SIGNS if self._taken_chars < _CLOSE_CHARS else _COMMON
        if not _may_matter(whole, signs):
            self._line += whole.count("\n")
            return
        for line in whole[:-1].split("\n"):
            if _may_matter(line[:_LOOKED_LINE_CHARS], signs):
                self._weighed += 1
                if found := _highlight(line, self._line):
                    self._hold(found)
            self._line += 1

    def _hold(self, found: Highlight) -> None:
        first = self._first[found.weight]
        if len(first) < _HELD[found.weight][0]:
            first.append(found)
        else:
            self._last[found.weight].append(found)

    def collect(self, line: str = "") -> OutputHighlights:
        """Those that are held, in their order; `line` is one more, which is still being written.

        The number of one behind what was looked through is not known: 0.
        """
        self._flush()
        is_counted = self._is_counted
        held = [one for found in (*self._first.values(), *self._last.values()) for one in found]
        rows = f"{''.join(self._recent) if self._recent else self._rest}{line}".split("\n")
        begins = self._line - len(rows) + 1 if is_counted else 0
        behind = [
            found
            for at, row in enumerate(rows)
            if _may_matter(row[:_LOOKED_LINE_CHARS], _SIGNS)
            and (found := _highlight(row, begins + at if is_counted else 0))
        ]
        lines = [*sorted(held, key=lambda one: one.line), *behind[-_RECENT_LINES:]]
        return OutputHighlights(lines, self._line - 1 if is_counted else None)


def together(several: Sequence[OutputHighlights]) -> OutputHighlights:
    """What matters in the output, and in the errors that were kept apart from it."""
    if len(several) == 1:
        return several[0]
    output, errors = several
    said = [one._replace(text=f"stderr: {one.text}") for one in errors.lines]
    counted = output.newlines is not None and errors.newlines is not None
    newlines = (output.newlines or 0) + (errors.newlines or 0) if counted else None
    return OutputHighlights([*output.lines, *said], newlines)


def _highlight(line: str, number: int) -> Highlight | None:
    found = weight(line[:_LOOKED_LINE_CHARS])
    return Highlight(found, number, line.strip()[:LINE_CHARS]) if found else None


def _may_matter(text: str, signs: Sequence[str]) -> bool:
    low = f"\n{text.lower()}"
    return any(sign in low for sign in signs) or (not text.isascii() and any(picture in text for picture in _PICTURED))


SHARE = 5
"""Of the room that an output has, lines from the part that is left out take this part at most."""
HEAD = "[Lines from the part that is left out, with their numbers:]"


def block(highlights: Sequence[Highlight], shown: Iterable[str], *, chars: int, lines: int | None = None) -> str:
    """The lines that matter and are not shown, within so much room, as they stand between the two ends of an output.

    Those that matter most come in first, of equal ones the first and the last; they stand in their order.
    """
    seen = {line.strip()[:LINE_CHARS] for line in shown}
    first = {one.text: one for one in reversed(highlights)}
    hidden = [one for one in highlights if first[one.text] is one and one.text and one.text not in seen]
    room, left = chars - len(HEAD) - 1, len(hidden) if lines is None else lines - 1
    chosen: set[int] = set()
    for at in _by_worth(hidden):
        size = len(_row(hidden[at])) + 1
        if left > 0 and size <= room:
            chosen.add(at)
            room, left = room - size, left - 1
    rows = [_row(one) for at, one in enumerate(hidden) if at in chosen]
    return "\n".join([HEAD, *rows]) if rows else ""


def _by_worth(highlights: Sequence[Highlight]) -> list[int]:
    """Errors and summaries before warnings; from both ends inwards, for the first and the last say most."""
    out: list[int] = []
    for weights in ((2, 3), (1,)):
        places = deque(at for at, one in enumerate(highlights) if one.weight in weights)
        while places:
            out.append(places.popleft())
            if places:
                out.append(places.pop())
    return out


def _row(highlight: Highlight) -> str:
    return f"{highlight.line}: {highlight.text}" if highlight.line else f"later: {highlight.text}"


def gap(missing: int) -> str:
    """What stands in the place of so many characters of an output."""
    return f"\n\n[{missing:,} characters are not shown here]\n\n"


def insert_highlights(text: str, missing: int, found: Callable[[], OutputHighlights]) -> str:
    """The two ends of an output with the lines that matter between them: they take their room from the second end."""
    head, mark, tail = text.partition(gap(missing)) if missing else (text, "", "")
    if not mark:
        return text
    between = block(found().lines, text.split("\n"), chars=len(text) // SHARE)
    return f"{head}{mark}{between}\n\n{tail[len(between) + 2 :]}" if between else text


def subtract_newlines(found: OutputHighlights, newlines: int) -> OutputHighlights:
    """The same, with the number of lines that are missing where so many are shown."""
    return found if found.newlines is None else found._replace(newlines=found.newlines - newlines)
