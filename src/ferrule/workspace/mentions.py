"""What a guidance file says about other files: `@path` mentions in its prose, and the `globs:` of its front matter.

No file is opened here. Mentions in code blocks and code spans do not count, and whether a word after an `@` is a
mention at all is decided by whether there is such a file.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence

from ferrule.core.access import within

_MOST_GLOBS = 20
_MOST_WORD_CHARS = 512
"""A mention or a glob that is longer is none: matching takes time in proportion to it."""
_WALK_DEPTH = 16
_MOST_TRIMS = 8
_TRAILING = ".,;:!?)]}*_~'\""

# Patterns stay text until the first use: compiling them would be paid by every start of the program.
_MENTION = r"(?:^|(?<=[\s(\[{\"'*>|,;:]))@((?:\{[^\s{}]*\}|[^\s,;<>|\"'`])+)"
_FENCE = r"(?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}|~{3,})(.*)"
_ITEM = r"[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)"

Matches = Callable[[str, str], bool]
"""Does a file, given as its real path and the root that holds it, match?"""


def mentions(text: str) -> list[tuple[str, ...]]:
    """For every `@` in the prose what may be meant: the word after it, and the word without what closes a sentence."""
    found = dict.fromkeys(
        match[1] for piece in _prose(text) if "@" in piece for match in re.finditer(_MENTION, piece, re.MULTILINE)
    )
    return [tuple(_trimmed(word)) for word in found if len(word) <= _MOST_WORD_CHARS]


def _trimmed(word: str) -> Iterator[str]:
    yield word
    for _ in range(_MOST_TRIMS):
        if not word or word[-1] not in _TRAILING:
            return
        word = word[:-1]
        if word:
            yield word


def _prose(text: str) -> Iterator[str]:
    """The text without code: paragraphs, with blanks in place of code spans."""
    paragraph: list[str] = []
    fence = ""
    is_blank, in_list, in_code = True, False, False
    for line in text.splitlines():
        opening = re.match(_FENCE, line)
        if fence:
            closes = opening is not None and opening[1].startswith(fence) and not opening[2].strip()
            fence = "" if closes else fence
            continue
        if opening is not None and not (opening[1][0] == "`" and "`" in opening[2]):
            yield _without_spans("\n".join(paragraph))
            paragraph, fence, is_blank = [], opening[1], False
            continue
        was_blank, is_blank = is_blank, not line.strip()
        indented = line.startswith(("    ", "\t", "   \t", "  \t", " \t"))
        if not is_blank:
            in_list = re.match(_ITEM, line) is not None if was_blank and not indented else in_list or _begins(line)
            # In a list, an indented line goes on with the item.
            in_code = indented and not in_list and (was_blank or in_code)
        if not is_blank and not in_code:
            paragraph.append(line)
        elif paragraph:
            yield _without_spans("\n".join(paragraph))
            paragraph = []
    yield _without_spans("\n".join(paragraph))


def _begins(line: str) -> bool:
    return re.match(_ITEM, line) is not None


def _without_spans(paragraph: str) -> str:
    """A span goes from a run of backticks to the next run of the same length; a run without one is only text."""
    runs = [(match.start(), match.end()) for match in re.finditer("`+", paragraph)]
    following: dict[int, int] = {}
    closing = [-1] * len(runs)
    for at in range(len(runs) - 1, -1, -1):
        length = runs[at][1] - runs[at][0]
        closing[at] = following.get(length, -1)
        following[length] = at
    pieces: list[str] = []
    done = at = 0
    while at < len(runs):
        start = runs[at][0]
        if closing[at] < 0 or paragraph[start - 1 : start] == "\\":
            at += 1
            continue
        pieces += (paragraph[done:start], "`")
        done = runs[closing[at]][1]
        at = closing[at] + 1
    return "".join(pieces) + paragraph[done:]


def parts(text: str) -> tuple[tuple[str, ...], str]:
    """The globs of the front matter and the text below it; no globs where the file holds without a condition.

    A front matter that cannot be read, or is a trap, is only text.
    """
    if not text.startswith("---"):
        return (), text
    from ferrule.support.frontmatter import front_matter  # only for files that have one

    header = front_matter(text)
    found = header.values.get("globs")
    if isinstance(found, list):
        words = [one.strip() for one in found if isinstance(one, str)]
    else:
        words = _divided(found) if isinstance(found, str) else []
    said = (word for word in words if word not in {"", "~", "null"} and len(word) <= _MOST_WORD_CHARS)
    return tuple(itertools.islice(said, _MOST_GLOBS)), header.body


def _divided(words: str) -> list[str]:
    """The parts between commas, but for those in braces."""
    return [word.strip() for word in re.findall(r"(?:\{[^{}]*\}|[^,])+", words)]


def condition(globs: Sequence[str], file: str) -> Matches | None:
    """Does a path match any of the globs in the front matter of `file`? None where no glob can be understood.

    A glob that begins with `./` or `../` starts at the folder of `file`, any other one holds at every depth.
    """
    from ferrule.support.globs import BadGlob, matcher  # only for files that have globs

    tests: list[tuple[str | None, Callable[[str], bool]]] = []
    for glob in globs:
        base, pattern = None, f"**/{glob}"
        if glob.startswith(("./", "../")):
            base, pattern = os.path.dirname(file), glob
            while pattern.startswith(("./", "../")):
                step, _, pattern = pattern.partition("/")
                base = os.path.dirname(base) if step == ".." else base
        try:
            tests.append((base, matcher(pattern, dots=True)))
        except BadGlob:
            continue

    def matches(path: str, root: str) -> bool:
        for base, matched in tests:
            start = root if base is None else base
            if within(path, start) and matched(path[len(start) :].lstrip(os.sep).replace(os.sep, "/")):
                return True
        return False

    return matches if tests else None


class Walk:
    """Finds the files that patterns mean, and looks at a limited number of names for all of them."""

    def __init__(self, most_entries: int) -> None:
        self._left = most_entries

    def files(self, pattern: str, folder: str, reach: Sequence[str]) -> list[str]:
        """What a pattern, seen from a folder, matches below the folders of `reach`; linked folders are not entered."""
        from ferrule.support.globs import BadGlob, escape, expand, literal_prefix, matcher  # only for patterns

        whole = os.path.normpath(os.path.join(escape(folder), pattern)).replace(os.sep, "/")
        try:
            top, match = literal_prefix(whole) or "/", matcher(whole)
            levels = max(one.count("/") for one in expand(whole)) - top.rstrip("/").count("/")
        except BadGlob:
            return []
        if not any(within(os.path.normpath(top), one) for one in reach):
            return []
        found, folders = [], [(top, 1)]
        for above, level in folders:  # grows on the way
            for entry in self._entries(above):
                if entry.is_dir(follow_symlinks=False):
                    if level < (_WALK_DEPTH if "**" in whole else levels):
                        folders.append((entry.path, level + 1))
                elif match(entry.path.replace(os.sep, "/")):
                    found.append(entry.path)
        return sorted(found)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                found = list(itertools.islice(entries, self._left))
        except OSError:
            return []
        self._left -= len(found)
        return found
