"""The lines around one of them that belong together, by their indentation.

What encloses a line is the nearest one above it that is indented less. A line that goes on with what one above it has
begun (`else:`, `}`, a `{` of its own) encloses nothing itself: it belongs to what it goes on with.
"""

import re
from collections.abc import Sequence

_TAB_COLUMNS = 4
_REMARK = re.compile(
    r"#+(?:\s|\Z)|#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion)\b"
    r"|//|/\*|\*(?=[\s/]|\Z)|--(?=\s|\Z)|<!--"
)
"""How a comment begins, or a line for a preprocessor."""
_MARK = re.compile(r"@|#!?\[|\[\w")
"""How a decorator or an attribute begins."""
_GOES_ON = re.compile(
    r"[)\]}]|(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure)\b(?!\s*[=.])"
    r"|(?:then|do|end|endif|fi|done|esac)[),;\s]*(?:[|<>&#].*)?\Z"
)
_LABEL = re.compile(r"case\b[^=]*:|(?:default|(?:public|private|protected)(?:\s+\w+)?)\s*:\Z")
"""Stands as deep as what it is part of in some styles, and deeper in others."""


def block(
    lines: Sequence[str], anchor: int, *, levels: int, siblings: bool, header: bool, most: int
) -> tuple[int, int]:
    """First and last line, from 1, of the block that holds line `anchor`.

    It reaches `levels` levels out, or to the outermost one where that is 0: from the line that opens that level to the
    one that closes it. With `siblings` it is all that stands around the anchor on that level or deeper. With `header`,
    comments and decorators right above belong to it. When it has more than `most` lines, those nearest to the anchor
    are given. A blank anchor stands for the line above it, and one on a comment for the line below that.
    """
    page = _LineDepths(lines)
    at = page.resolve_anchor(anchor - 1)
    top = page.head(at)
    reached = 0
    while (levels == 0 or reached < levels) and (outer := page.outer(top)) is not None:
        top = page.head(outer)
        reached += 1
    first, last = page.level(at, page.depths[top]) if siblings else (top, page.end(at, top))
    if header:
        first = page.above(first)
    first, last = _nearest(first, last, min(max(anchor - 1, first), last), most)
    return first + 1, last + 1


def _nearest(first: int, last: int, at: int, most: int) -> tuple[int, int]:
    """At most so many lines around the anchor, as evenly as the ends allow."""
    if last - first + 1 <= most:
        return first, last
    start = max(first, min(at - most // 2, last - most + 1))
    return start, start + most - 1


class _LineDepths:
    """Lines with how deep each of them is."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = [line.strip() for line in lines]
        self.depths = [0] * len(lines)
        self._code = list(range(len(lines)))
        """For each line itself; for a comment, the line of code below it."""
        code, below = -1, 0
        for at in range(len(lines) - 1, -1, -1):
            line = lines[at]
            depth = len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(_TAB_COLUMNS))
            if _REMARK.match(self.texts[at]):
                # A comment at the margin does not end the block that it stands in.
                depth = max(depth, below)
                self._code[at] = code if code >= 0 else at
            elif self.texts[at]:
                code, below = at, depth
            self.depths[at] = depth

    def resolve_anchor(self, at: int) -> int:
        """The line that an anchor stands for."""
        while at > 0 and not self.texts[at]:
            at -= 1
        while not self.texts[at] and at + 1 < len(self.texts):
            at += 1
        while self._is_about(at):
            below = self.end(at, at) + 1
            if below >= len(self.texts) or not self.texts[below]:
                break
            if self.depths[below] != self.depths[at] and not self.texts[at].startswith("*"):
                break
            at = below
        return at

    def head(self, at: int) -> int:
        """The line that begins what this one goes on with."""
        found = at
        while self._goes_on(found) or _LABEL.match(self.texts[found]):
            above = self._above_at_depth(found)
            if above is None:
                return at
            found = above
        return found

    def outer(self, at: int) -> int | None:
        """The nearest line above that is indented less."""
        for above in range(at - 1, -1, -1):
            if self.texts[above] and self.depths[above] < self.depths[at] and not _REMARK.match(self.texts[above]):
                return above
        return None

    def end(self, at: int, top: int) -> int:
        """The last line of what `top` begins."""
        floor, labels = self.depths[top], not _LABEL.match(self.texts[top])
        last = at
        for below in range(at + 1, len(self.texts)):
            if not self.texts[below]:
                continue
            if self.depths[below] <= floor:
                goes_on = self._goes_on(below) or (labels and _LABEL.match(self.texts[below]))
                if self.depths[below] < floor or not goes_on:
                    break
            last = below
        return last

    def level(self, at: int, floor: int) -> tuple[int, int]:
        """All lines around this one that are at least so deep."""
        first = last = at
        for above in range(at - 1, -1, -1):
            if self.texts[above]:
                if self.depths[above] < floor:
                    break
                first = above
        for below in range(at + 1, len(self.texts)):
            if self.texts[below]:
                if self.depths[below] < floor:
                    break
                last = below
        return first, last

    def above(self, first: int) -> int:
        """The first of the comments and decorators that stand right above."""
        floor = self.depths[first]
        at = first - 1
        while at >= 0 and self.texts[at]:
            start = at
            if self.texts[at][0] in ")]":
                start = self._above_at_depth(at) or 0
            fits = self.depths[start] == floor or self.texts[start].startswith("*")
            if not fits or not self._is_about(start):
                break
            first, at = start, start - 1
        return first

    def _is_about(self, at: int) -> bool:
        """Is it a comment or a decorator?"""
        return bool(_REMARK.match(self.texts[at]) or _MARK.match(self.texts[at]))

    def _goes_on(self, at: int) -> bool:
        at = self._code[at]
        text = self.texts[at]
        if not text.startswith("{"):
            return bool(_GOES_ON.match(text))
        # A brace by itself opens the body of the line above, unless that is complete.
        above = at - 1
        return above >= 0 and self.depths[above] == self.depths[at] and self.texts[above][-1:] not in (*",;{}[(", "")

    def _above_at_depth(self, at: int) -> int | None:
        """The nearest line above that is as deep; None where one that is less deep comes first."""
        for above in range(at - 1, -1, -1):
            if self.texts[above] and self.depths[above] <= self.depths[at]:
                return above if self.depths[above] == self.depths[at] else None
        return None
