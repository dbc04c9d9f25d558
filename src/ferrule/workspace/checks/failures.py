"""What the runners of tests say of a failure: which test, what it says, and the innermost line of the project's own."""

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache

from ferrule.workspace.checks.hit import Hit, IsOwn

_compiled = cache(re.compile)
_SECTION = r"=+ (.+?) =+"
_TEST = r"_{3,} (.+?) _{3,}"
_PLACE = r"(\S.{0,500}?):(\d{1,7}): ?(?:in .*|[\w.]*)"
_SUMMARY = r"(FAILED|ERROR) (\S+?\.\w+|\S+)(?:::(.+?))?(?: - (.*))?"
_END = r"=* ?(?:\d+ (?:failed|passed|errors?|skipped|deselected|warnings?)\b.*|no tests ran.*)"
_PHASE = r"ERROR (?:collecting|at (?:setup|teardown) of) "
_FRAME = r'\s*File "(.{1,500}?)", line (\d{1,7})(?:, in .*)?'
_UNITTEST = r"(?:FAIL|ERROR): (\S+).*"


def pytest(lines: Sequence[str], is_own: IsOwn) -> Iterator[Hit]:
    """The sections about failures and errors, and of the summary what they do not have."""
    known: set[str] = set()
    at = 0
    while at < len(lines):
        section = _compiled(_SECTION).fullmatch(lines[at])
        if section and section[1] in {"FAILURES", "ERRORS"}:
            end = _next(lines, at + 1, _SECTION)
            for hit, name in _sections(lines, at + 1, end, is_own):
                known |= {name} if hit.message else set()
                yield hit
            at = end
        elif section and section[1] == "short test summary info":
            end = min(_next(lines, at + 1, _END), len(lines) - 1)
            yield from _summary(lines, at + 1, end, known)
            at = end + 1
        else:
            at += 1


def _next(lines: Sequence[str], start: int, pattern: str) -> int:
    fits = _compiled(pattern).fullmatch
    return next((at for at in range(start, len(lines)) if fits(lines[at])), len(lines))


def _sections(lines: Sequence[str], start: int, end: int, is_own: IsOwn) -> Iterator[tuple[Hit, str]]:
    heads = [at for at in range(start, end) if lines[at].startswith("___") and _compiled(_TEST).fullmatch(lines[at])]
    for first, after in itertools.pairwise([*heads, end]):
        found = _compiled(_TEST).fullmatch(lines[first])
        title = found[1] if found else ""
        name = re.sub(_PHASE, "", title)
        yield _section(lines, first, after, name, is_own), name


def _section(lines: Sequence[str], first: int, after: int, name: str, is_own: IsOwn) -> Hit:
    captured = next((at for at in range(first, after) if re.match(r"-{3,} Captured ", lines[at])), after)
    said = _complaint([line[1:].strip() if line[:2] == "E " else None for line in lines[first:captured]])
    places = [
        (found[1], int(found[2])) for line in lines[first:captured] if (found := _compiled(_PLACE).fullmatch(line))
    ]
    written = [line for line in lines[first:captured] if line.startswith("E ")]
    # A file that cannot be compiled has no frame of its own.
    places += [(found[1], int(found[2])) for line in written if (found := _compiled(_FRAME).fullmatch(line[1:]))]
    is_file = is_own(name)
    own = [place for place in places if is_own(place[0])] or ([(name, 0)] if is_file else [])
    if not own:  # the summary knows the file
        return Hit(first, after - 1, "", 0, "")
    message = said or "failed"
    return Hit(first, after - 1, *own[-1], message if is_file else f"{name}: {message}", source="pytest")


def _complaint(said: Sequence[str | None]) -> str:
    """The first line of the last complaint; of a file that cannot be compiled the last one."""
    group: list[str] = []
    for text, before in zip(said, (None, *said), strict=False):
        if text is not None:
            if before is None:
                group = []
            group.append(text)
    if group and group[0].startswith("File "):
        return group[-1]
    return next((text for text in group if text), "")


def _summary(lines: Sequence[str], start: int, end: int, known: set[str]) -> Iterator[Hit]:
    last = start
    for at in range(start, end + 1):
        found = _compiled(_SUMMARY).fullmatch(lines[at])
        if found is None:
            continue
        name = (found[3] or "").replace("::", ".")
        is_told = name in known if name else found[2] in known
        if not is_told:
            said = found[4] or "failed"
            message = f"{name}: {said}" if name else said
            yield Hit(at, at, found[2], 0, message, source="pytest", is_sure=found[1] == "FAILED")
        last = at
    # Diffs stand below the names, and are no complaints of their own.
    yield Hit(start, max(last, end - 1), "", 0, "")


def tracebacks(lines: Sequence[str], is_own: IsOwn) -> Iterator[Hit]:
    """Tracebacks of Python: the innermost frame of the project's own, and the exception."""
    title, at = "", 0
    while at < len(lines):
        if found := _compiled(_UNITTEST).fullmatch(lines[at]):
            title = found[1]
        frame = _compiled(_FRAME).fullmatch(lines[at]) if 'File "' in lines[at] else None
        if frame is None:
            at += 1
            continue
        indent = len(lines[at]) - len(lines[at].lstrip())
        first, frames = at, list[tuple[str, int]]()
        while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) >= indent):
            if found := _compiled(_FRAME).fullmatch(lines[at]):
                frames.append((found[1], int(found[2])))
            elif not lines[at].strip():
                break
            at += 1
        message = lines[at].strip() if at < len(lines) else ""
        own = [one for one in frames if is_own(one[0])]
        if own and message:
            yield Hit(first, at, own[-1][0], own[-1][1], f"{title}: {message}" if title else message)
        title = ""
