"""Find guidance files (`AGENTS.md` and its fallbacks), follow their mentions, and tell which hold for a path.

A file of the workspace can bring in files of the workspace only, one of a folder above it the contents of that
folder, and one of the user's own the contents of the home folder; none of them a secret file. Links count by where
they lead.

A guidance file names other files by `@path` mentions in its prose and by the `globs:` of its front matter.
Mentions in code blocks and code spans do not count. A word after an `@` is a mention only if there is such a file.
Parsing the mentions opens no file.
"""

import itertools
import os
import re
import threading
from codecs import utf_8_decode
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.files.frontmatter import front_matter
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.system.folder import is_regular, open_folder, read_all

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
    return [tuple(_trim_variants(word)) for word in found if len(word) <= _MOST_WORD_CHARS]


def _trim_variants(word: str) -> Iterator[str]:
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

    header = front_matter(text)
    found = header.values.get("globs")
    if isinstance(found, list):
        words = [one.strip() for one in found if isinstance(one, str)]
    else:
        words = _split_commas(found) if isinstance(found, str) else []
    said = (word for word in words if word not in {"", "~", "null"} and len(word) <= _MOST_WORD_CHARS)
    return tuple(itertools.islice(said, _MOST_GLOBS)), header.body


def _split_commas(words: str) -> list[str]:
    """The parts between commas, but for those in braces."""
    return [word.strip() for word in re.findall(r"(?:\{[^{}]*\}|[^,])+", words)]


def condition(globs: Sequence[str], file: str) -> Matches | None:
    """Does a path match any of the globs in the front matter of `file`? None where no glob can be understood.

    A glob that begins with `./` or `../` starts at the folder of `file`, any other one holds at every depth.
    """
    from ferrule.files.globs import BadGlob, matcher  # only for files that have globs

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


class PatternFinder:
    """Finds the files that patterns mean, and looks at a limited number of names for all of them."""

    def __init__(self, most_entries: int) -> None:
        self._left = most_entries

    def files(self, pattern: str, folder: str, reach: Sequence[str]) -> list[str]:
        """What a pattern, seen from a folder, matches below the folders of `reach`; linked folders are not entered."""
        from ferrule.files.globs import BadGlob, escape, expand, literal_prefix, matcher  # only for patterns

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


NAMES = ("AGENTS.md", "Agents.md", "agents.md", "AGENT.md", "Agent.md", "agent.md", "CLAUDE.md")
"""Tried in this order; at most one counts in a folder."""

FILE_BYTES = 32_768
"""What is taken of one file."""
MOST_FILES = 100
MOST_BYTES = 1 << 18
"""Of all files that are told at once."""
MOST_DEPTH = 5
"""How far mentions lead: a mentioned file can mention others."""
_MOST_LOOKS = 1000
_MOST_ENTRIES = 20_000
"""Names that are looked at for all patterns of one answer."""
_MOST_WAITING = 200
_MOST_TOUCHED = 500
"""Files with a condition, and paths to compare them with: each is compared with each."""

Kind = Literal["project", "parent", "user", "mentioned"]


class Guide(NamedTuple):
    """A guidance file and what it says."""

    path: str
    text: str
    kind: Kind


class _Source(msgspec.Struct, frozen=True):
    """Where a mention stands: the file, how many mentions led to it, and the folders that it may reach into."""

    path: str
    depth: int
    reach: tuple[str, ...]


class _Waiting(msgspec.Struct, frozen=True):
    """A mentioned file that holds once a path has been touched that it is about."""

    source: _Source
    matches: Matches


class _GuideCollector:
    """What is told at once, and what is left of its limits."""

    def __init__(self, room_bytes: int = MOST_BYTES) -> None:
        self.guides: list[Guide] = []
        self.looks = _MOST_LOOKS
        self.walk = PatternFinder(_MOST_ENTRIES)
        self.files = MOST_FILES
        self.bytes = room_bytes
        self.full = False
        """Was something left out?"""

    def has_room(self) -> bool:
        self.full = self.full or self.files <= 0 or self.bytes <= 0 or self.looks <= 0
        return not self.full

    def finish(self) -> tuple[Guide, ...]:
        if self.full and self.guides:
            last = self.guides.pop()
            self.guides.append(last._replace(text=f"{last.text}\n\n[There is more guidance than is included here.]"))
        return tuple(self.guides)


class Guidance:
    """The guidance of a session. What holds from the start is told first, the rest when a tool goes there; all once."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        home: str | None = None,
        config: str | None = None,
        *,
        user: bool = True,
        project: bool = True,
    ) -> None:
        """`home` and `config` stand for the user's home folder and the one for configuration.

        `user`, `project`: do the user's own files count, and those of the workspace and above it?
        """
        self._of_user = user
        self._of_project = project
        self._jail = jail
        self._guard = guard
        home = os.path.expanduser("~") if home is None else home
        chosen = os.environ.get("XDG_CONFIG_HOME", "") if config is None else config
        self._home = os.path.realpath(home) if os.path.isabs(home) else None
        if not os.path.isabs(chosen):
            chosen = os.path.join(self._home, ".config") if self._home else ""
        self._config = os.path.realpath(chosen) if chosen else None
        self._lock = threading.Lock()
        self._begun: tuple[Guide, ...] | None = None
        self._looked: set[str] = set()
        """Folders whose own guidance is known."""
        self._told: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._touched: dict[str, str] = {}
        """Path → the root that holds it."""

    def start(self) -> tuple[Guide, ...]:
        """What always holds, each with what it mentions: the user's files, the folders above, then the workspace."""
        with self._lock:
            return self._begin()

    def discover(self, path: str) -> tuple[str, ...]:
        """The paths of what `touched` tells."""
        return tuple(guide.path for guide in self.guides_for(path))

    def is_settled(self, path: str) -> bool:
        """Is it sure, without a look at the disk, that there is nothing to tell about a path?"""
        folder, name = os.path.split(path)
        is_known = path in self._touched or len(self._touched) >= _MOST_TOUCHED
        is_seen = folder in self._looked or path in self._roots()
        return is_known and is_seen and not self._waiting and name.lower() not in _LOWERED

    def guides_for(self, path: str, room_bytes: int = MOST_BYTES) -> tuple[Guide, ...]:
        """What holds for a real path that a tool has read or written, and was not told before, outermost first."""
        root = next((root.path for root in self._jail.roots if within(path, root.path)), None)
        if root is None or not self._of_project:
            return ()
        folder, name = os.path.split(path)
        if name.lower() in _LOWERED:
            self.forget(folder)  # it may be new
        with self._lock:
            self._begin()
            answer = _GuideCollector(room_bytes)
            is_new = path not in self._touched
            if is_new and len(self._touched) < _MOST_TOUCHED:
                self._touched[path] = root
            for above in reversed(tuple(_upwards(folder, root))):
                self._look(above, path, answer)
            if is_new:
                self._wake(path, root, answer)
            return answer.finish()

    def forget(self, folder: str) -> None:
        """Look again for the guidance of a folder: there may be a new file. What was told is not told again."""
        with self._lock:  # those below it too: who comes to one of them comes through it
            self._looked = {one for one in self._looked if not within(one, folder)}

    def _begin(self) -> tuple[Guide, ...]:
        if self._begun is None:
            answer, workspace = _GuideCollector(), self._jail.folder
            if self._config is not None and self._of_user:
                reach = (self._config, self._home) if self._home is not None else (self._config,)
                for name in (os.path.join("amp", "AGENTS.md"), "AGENTS.md"):
                    self._tell(os.path.join(self._config, name), "user", reach, answer)
            self._looked.add(workspace)
            if self._of_project:
                for folder in reversed(self._parents(workspace)):
                    self._tell(guidance_in(folder), "parent", (folder, *self._roots()), answer)
                self._tell(guidance_in(workspace), "project", self._roots(), answer)
            self._begun = answer.finish()
        return self._begun

    def _parents(self, workspace: str) -> list[str]:
        """The folders above the workspace up to the home folder; none where it does not lie below that."""
        if self._home is None or workspace == self._home or not within(workspace, self._home):
            return []
        return list(_upwards(os.path.dirname(workspace), self._home))

    def _roots(self) -> tuple[str, ...]:
        return tuple(root.path for root in self._jail.roots)

    def _look(self, folder: str, path: str, answer: _GuideCollector) -> None:
        if folder in self._looked:
            return
        file = guidance_in(folder)
        # Whoever reads the file itself has it before the eyes; it is told to the next one who comes here.
        if file == path or not answer.has_room():
            return
        self._looked.add(folder)
        if file not in self._told:
            self._tell(file, "project", self._roots(), answer)

    def _tell(self, file: str | None, kind: Kind, reach: tuple[str, ...], answer: _GuideCollector) -> None:
        """Tell a guidance file, which must lie within `reach`, and then what it mentions."""
        if file is None:
            return
        real = os.path.realpath(file)
        # The user's own may be a link to anywhere, as those of dotfiles are.
        text = self._text(file, (os.path.dirname(real),) if kind == "user" else reach)
        if text is not None:
            self._told.update((file, real))
            self._add(Guide(file, text, kind), self._source(file, real, 0, reach), answer)

    def _source(self, file: str, real: str, depth: int, reach: tuple[str, ...]) -> _Source:
        """What stands in the workspace speaks for the workspace alone, whoever led there."""
        return _Source(file, depth, self._roots() if self._jail.holds(real) else reach)

    def _add(self, guide: Guide, source: _Source, answer: _GuideCollector) -> None:
        """Tell a file, and then the files that it mentions."""
        answer.guides.append(guide)
        answer.files -= 1
        answer.bytes -= len(guide.text.encode(errors="replace"))
        if source.depth >= MOST_DEPTH or "@" not in guide.text:
            return
        for words in mentions(guide.text):
            for file in self._resolve_mention(words, source, answer):
                if not answer.has_room():
                    return
                self._mention(file, source, answer)

    def _mention(self, file: str, source: _Source, answer: _GuideCollector) -> None:
        real = os.path.realpath(file)
        text = None if real in self._told else self._text(file, source.reach)
        if text is None:
            return
        below = self._source(real, real, source.depth + 1, source.reach)
        globs, body = parts(text)
        matches = condition(globs, real) if globs else None
        if matches is not None and not any(itertools.starmap(matches, self._touched.items())):
            answer.files -= 1  # it was read, and costs as much as one that is told
            if len(self._waiting) < _MOST_WAITING and all(real != one.source.path for one in self._waiting):
                self._waiting.append(_Waiting(below, matches))
            return
        self._told.add(real)
        self._add(Guide(real, body, "mentioned"), below, answer)

    def _wake(self, path: str, root: str, answer: _GuideCollector) -> None:
        """Tell the files that waited for a path like this one."""
        for one in [one for one in self._waiting if one.matches(path, root)]:
            if not answer.has_room():
                return  # the others wait for the next path
            self._waiting.remove(one)
            text = self._text(one.source.path, one.source.reach) if one.source.path not in self._told else None
            if text is not None:
                self._told.add(one.source.path)
                self._add(Guide(one.source.path, parts(text)[1], "mentioned"), one.source, answer)

    def _resolve_mention(self, words: Sequence[str], source: _Source, answer: _GuideCollector) -> list[str]:
        """The files that a mention means: the first word that is a file, or a pattern for files."""
        folder = os.path.dirname(source.path)
        for word in words:
            answer.looks -= 1
            file = os.path.normpath(os.path.join(folder, self._expand_home(word)))
            # Others are not even looked for: that alone can wake a disk or a server.
            if any(within(file, one) for one in source.reach) and answer.has_room() and os.path.isfile(file):
                return [file]
        patterns = (word for word in words if set(word) & set("*?[{") and answer.has_room())
        found = (answer.walk.files(self._expand_home(word), folder, source.reach) for word in patterns)
        return next(filter(None, found), [])

    def _expand_home(self, word: str) -> str:
        return self._home + word[1:] if word.startswith("~/") and self._home is not None else word

    def _text(self, file: str, allowed: Sequence[str]) -> str | None:
        """The text of a regular file that may be read from here, cut to size; None for any other."""
        real = os.path.realpath(file)
        if not any(within(real, one) for one in allowed) or self._guard.secret(real) or self._guard.secret(file):
            return None
        try:
            inside = self._jail.holds(real)
            with self._jail.place(real).folder() if inside else open_folder(os.path.dirname(real)) as folder:
                descriptor = folder.open(os.path.basename(real))
                try:
                    size = os.fstat(descriptor).st_size
                    raw = read_all(descriptor, FILE_BYTES) if is_regular(descriptor) else b"\0"
                finally:
                    os.close(descriptor)
        except (OSError, ToolFailure):  # gone, not ours to read, or no longer where it was
            return None
        if b"\0" in raw:
            return None
        text = utf_8_decode(raw[:FILE_BYTES], "replace", len(raw) <= FILE_BYTES)[0].removeprefix("\ufeff")
        if len(raw) > FILE_BYTES:
            text += f"\n\n[Cut after {FILE_BYTES:,} of {size:,} bytes; read {real} for the rest.]"
        return text


_LOWERED = frozenset(name.lower() for name in NAMES)


def _upwards(folder: str, root: str) -> Iterator[str]:
    while folder != root and within(folder, root):
        yield folder
        folder = os.path.dirname(folder)
    yield root


def guidance_in(folder: str) -> str | None:
    """The one guidance file of a folder."""
    try:
        there = set(os.listdir(folder))
    except OSError:
        return None
    files = (os.path.join(folder, name) for name in NAMES if name in there)
    return next((file for file in files if os.path.isfile(file)), None)
