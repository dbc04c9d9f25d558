"""Match files against path patterns as in a `.gitignore`, and select the tools that a rule is about.

Patterns are anchored in one of four places: `//x` starts at the root of the file system, `~/x` at home, `/x` at
the folder of the rule's file, `x` and `./x` at the working folder. A name without a slash matches at any depth,
and a folder matches with everything in it.

A rule that denies or asks is read widely: in any letter case, with the trailing dots, blanks and invisible
characters that lax file systems drop, for a link as well as for its target. A rule that allows is read narrowly:
the exact letters, both the link and its target, and a wildcard at the end matches one name and nothing below it.
Links in the rule's own path are resolved when the rule is read.

A rule is about one tool, a group of similar tools, or all tools whose names fit a pattern.
"""

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import normalize

from ferrule.core.tool import RuleGroup
from ferrule.files.globs import BadGlob, escape, expand, matcher
from ferrule.permissions.rules import PathAccess, Subject, Wildcard

Matcher = Callable[[str], bool]
_BELOW = ("/\x01", "/\x01/\x01/\x01")
"""Names that no pattern can mean: who covers them below a folder covers whatever is there."""
_TRAILING = ". \t\n\v\f\r"
_INVISIBLE = "[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"


class BadPath(ValueError):  # noqa: N818 - the state
    """The pattern cannot be read."""


class Anchors(NamedTuple):
    """Where patterns start. All are absolute."""

    source: str
    """For `/x`."""
    cwd: str
    home: str


class Area(NamedTuple):
    """The paths that a pattern stands for."""

    inside: tuple[str, ...]
    """Absolute patterns."""
    folders: tuple[str, ...]
    """The folder whose whole content is meant: who reads that, reads the folder."""
    wide: bool
    starts: tuple[str, ...] = ()
    """Where the literal beginning of the pattern leads."""
    roots: tuple[str, ...] = ()
    """All paths are in one of these, as lax file systems see them; empty where that is not certain."""

    def covers(self, path: str, mode: str) -> bool:
        patterns = self.inside + self.folders if self.wide or mode == "read" else self.inside
        lax = _lax(path)
        if self.roots and path.isascii() and not any(_within(lax, root) for root in self.roots):
            return False  # most rules are about other places, and their expressions need not be compiled
        forms = dict.fromkeys([path, _normalize_unicode(path), lax]) if self.wide else (path,)
        return any(_matcher(pattern, self.wide)(form) for pattern in patterns for form in forms)

    def lies_below(self, folder: str) -> bool:
        """Is the literal beginning of the pattern somewhere in this folder?"""
        above = _lax(folder)
        return any(_within(below, above) and below != above for below in map(_lax, self.starts))


class PathCondition(NamedTuple):
    """The condition of a rule about files."""

    area: Area
    mode: Literal["read", "write"]

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        if not strictly:
            # What may not be read may not be written either: that would tell, or destroy, what is there.
            return any(self._is_touched(path) for path in subject.paths if self.mode == "read" or path.mode == "write")
        if self.mode == "read" and any(path.mode == "write" for path in subject.paths):
            return False
        mine = [path for path in subject.paths if path.mode == self.mode]
        return bool(mine) and all(map(self._is_covered, mine))

    def _is_covered(self, path: PathAccess) -> bool:
        real, spelled = _slashes(path.real), _normal(path.spelled or path.real)
        ends = ("", *_BELOW) if path.deep else ("",)
        return real == _normal(real) and all(
            self.area.covers(one.rstrip("/") + end if end else one, path.mode)
            for one in (real, spelled)
            for end in ends
        )

    def _is_touched(self, path: PathAccess) -> bool:
        ways = {_normal(path.real), _normal(path.spelled or path.real)}
        return any(self.area.covers(way, path.mode) or (path.deep and self.area.lies_below(way)) for way in ways)


def area(pattern: str, anchors: Anchors, *, wide: bool) -> Area:
    """The paths that a pattern stands for; `wide` for rules that deny or ask.

    Raises: BadPath.
    """
    start, rest, anchored = _anchor(pattern.strip(), anchors, wide=wide)
    names = [name for name in rest.split("/") if name not in {"", "."}]
    while names and names[0] == "..":
        start = os.path.dirname(start)
        anchored = True
        del names[0]
    if ".." in names:
        raise BadPath("`..` may stand at its beginning only")
    if rest.endswith("/") and names and not (wide and names[-1] == "**"):
        # A slash at the end means folders, and so what is in them.
        names += ["*", "**"] if names[-1] == "**" else ["**"]
        anchored = anchored or len(names) > 2
    elif len(names) == 2 and names[1] == "**" and wide:
        pass  # one folder and all in it: to keep it out means every folder of that name
    else:
        anchored = anchored or len(names) > 1
    if not names or (names == ["*"] and not anchored):
        names = ["**"]
    elif not anchored:
        names = ["**", *names]
    try:
        return _area(start, names, wide=wide)
    except BadGlob as error:
        raise BadPath(str(error).rstrip(".")) from error


def _anchor(pattern: str, anchors: Anchors, *, wide: bool) -> tuple[str, str, bool]:
    """Where the pattern starts, the rest of it, and whether it is meant just there."""
    if re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", pattern):
        raise BadPath("it holds a control character")
    if pattern.startswith("!"):
        raise BadPath("a rule cannot take back another one with `!`; write a rule of the other kind")
    if "[[:" in pattern:
        raise BadPath("named classes such as `[[:alpha:]]` are not known; write the characters")
    if pattern.startswith(("$HOME", "${HOME}")):
        raise BadPath("variables are not replaced; write `~/`")
    if pattern.startswith("//"):
        return "/", pattern[2:], True
    if pattern.startswith("~"):
        if pattern[1:2] not in {"", "/"}:
            raise BadPath("`~` stands for your own home only")
        return _slashes(anchors.home), pattern[1:], True
    if pattern.startswith("/"):
        return _slashes(anchors.source), pattern, True
    # `./x` says here and not deeper; only a rule that denies takes it for every `x`.
    return _slashes(anchors.cwd), pattern, pattern.startswith("./") and not wide


def _area(start: str, names: list[str], *, wide: bool) -> Area:
    start = _normal(start)
    starts = dict.fromkeys([start, _slashes(os.path.realpath(start))])
    inside: list[str] = []
    folders: list[str] = []
    ways = dict.fromkeys([tuple(names), *([_expand_stars(names)] if wide else [])])
    for one in starts:
        for way in ways:
            _add(one, list(way), inside, folders, wide=wide)
    # What is meant at any depth is meant here too.
    here = names[1:] if names[0] == "**" else names
    literal = [re.sub(r"\\(.)", r"\1", name) for name in _plain_start(here)]
    leads = [_join(one, literal) for one in starts]
    if wide:
        for lead in dict.fromkeys(_slashes(os.path.realpath(lead)) for lead in leads):
            if lead not in leads:
                leads.append(lead)
                _add(lead, here[len(literal) :], inside, folders, wide=True)
    roots = tuple(dict.fromkeys(map(_lax, leads if here is names else [*starts, *leads])))
    certain = all(map(str.isascii, roots))
    return Area(
        _readings(inside, wide=wide), _readings(folders, wide=wide), wide, tuple(leads), roots if certain else ()
    )


@lru_cache(maxsize=4096)
def _matcher(pattern: str, wide: bool) -> Matcher:  # noqa: FBT001 - a cache key
    match = matcher(pattern, dots=True, ignore_case=wide)
    if not wide or not re.search(r"\[[!^]", pattern):
        return match
    # All but some letters are fewer names where case does not count, and more where it does.
    strict = matcher(pattern, dots=True)
    return lambda path: match(path) or strict(path)


def _add(start: str, names: list[str], inside: list[str], folders: list[str], *, wide: bool) -> None:
    """The absolute patterns for one place to start in."""
    at = escape(start)
    inside.append(_join(at, names))
    if names and names[-1] == "**":
        folders.append(_join(at, names[:-1]))
    elif wide or not re.search(r"[*?\[]", names[-1]):
        inside.append(_join(at, [*names, "**"]))


def _expand_stars(names: list[str]) -> tuple[str, ...]:
    """The names with every `**` that stands among letters taken for any folders, as in `src**.key`."""
    found: list[str] = []
    for name in names:
        head, *rest = re.split(r"\*\*+", name)
        if name == "**" or not rest:
            found.append(name)
            continue
        found.append(f"{head}*")
        for part in rest[:-1]:
            found += ["**", f"*{part}*"]
        found += ["**", f"*{rest[-1]}"]
    return tuple(found)


def _plain_start(names: list[str]) -> list[str]:
    """The names before the first wildcard, or what may be meant as one."""
    for at, name in enumerate(names):
        if re.search(r"[*?\[{]", name):
            return names[:at]
    return names


def _readings(patterns: Iterable[str], *, wide: bool) -> tuple[str, ...]:
    """The patterns as they are to be taken; a pattern that is kept out, in every way in which it may be meant."""
    found: list[str] = []
    for pattern in patterns:
        plain = _escape(pattern, "{}")
        expand(plain)
        found.append(plain)
        # Braces and brackets are often meant otherwise than a `.gitignore` takes them: `*.{pem,key}`, `[id].tsx`.
        others = [pattern, _escape(pattern, "{}[]")] if wide else []
        found += filter(_sound, others)
    if wide and not all(map(str.isascii, found)):
        found += [_normalize_unicode(one) for one in found] + [_normalize_unicode(one).casefold() for one in found]
    return tuple(dict.fromkeys(found))


def _sound(pattern: str) -> bool:
    try:
        expand(pattern)
    except BadGlob:
        return False
    return True


def _escape(pattern: str, characters: str) -> str:
    return re.sub(r"\\.|.", lambda one: f"\\{one[0]}" if one[0] in characters else one[0], pattern, flags=re.DOTALL)


def _join(start: str, names: Iterable[str]) -> str:
    return start.rstrip("/") + "".join(f"/{name}" for name in names) or "/"


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _normalize_unicode(text: str) -> str:
    if text.isascii():
        return text

    return normalize("NFC", text)


def _lax(path: str) -> str:
    """Any case, no trailing dots or blanks, no stream, no invisible characters."""
    if not path.isascii():
        path = _normalize_unicode(re.sub(_INVISIBLE, "", path)).casefold()
    names = path.lower().split("/")
    return "/".join(name.split(":", 1)[0].rstrip(_TRAILING) or name for name in names)


def _normal(path: str) -> str:
    return "/" + _slashes(os.path.normpath(path)).lstrip("/")


def _slashes(path: str) -> str:
    r"""A path with `/`; where there are drives, `C:\x` is `/c/x`."""
    if os.sep == "/":
        return path
    drive, rest = os.path.splitdrive(path)
    return (f"/{drive[0].lower()}" if drive[1:2] == ":" else drive.replace(os.sep, "/")) + rest.replace(os.sep, "/")


class ToolNameBinding(NamedTuple):
    """One tool, by any of its names."""

    name: str
    tool: str | None = None
    """The canonical one, where the name is known."""

    def binds(self, subject: Subject) -> bool:
        return self.name in subject.names or subject.tool in {self.name, self.tool}


class Grouped(NamedTuple):
    """Tools that do the same."""

    group: RuleGroup

    def binds(self, subject: Subject) -> bool:
        return subject.group == self.group


class FileSpecifier(NamedTuple):
    """Whatever touches files, the commands whose files are known among them."""

    group: RuleGroup
    """Tools that it binds also where no path is known."""
    mode: Literal["read", "write"]
    """What may not be read may not be written either."""

    def binds(self, subject: Subject) -> bool:
        return subject.group == self.group or any(self.mode == "read" or path.mode == "write" for path in subject.paths)


class Networked:
    """Whatever goes to a host."""

    def binds(self, subject: Subject) -> bool:
        return subject.group == "WebFetch" or bool(subject.hosts)


class Commanded:
    """Whatever runs commands."""

    def binds(self, subject: Subject) -> bool:
        return subject.group == "Bash" or bool(subject.commands)


class ToolNameGlob(NamedTuple):
    """Tools whose names fit a pattern."""

    pattern: Wildcard
    lax: bool
    """In any letter case?"""

    def binds(self, subject: Subject) -> bool:
        names = subject.names | {subject.tool}
        return any(self.pattern.matches(name.casefold() if self.lax else name) for name in names)


def parse_tool_glob(pattern: str, *, lax: bool) -> ToolNameGlob:
    """The tools whose names fit; `*` stands for any characters."""
    pattern = pattern.casefold() if lax else pattern
    return ToolNameGlob(Wildcard((tuple(pattern.split("*")),)), lax)
