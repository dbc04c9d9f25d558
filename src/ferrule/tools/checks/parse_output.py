"""Parse the output of compilers, linters and test runners into problems in files.

The output comes from any program of the project, so nothing in it is trusted: it is read up to a limit and line
by line, a path counts as a file of the workspace only if such a file exists, and every pattern takes time in
proportion to the line.

Long lines are cut before they are matched, so that no line can hold up the engine. Patterns are compiled on
first use. Among the forms of one line, the general `path:line: message` comes last.

For a failed test the problem names the test, its message, and the innermost line of the project's own code.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.system.stream import TerminalRenderer
from ferrule.tools.checks import Check
from ferrule.tools.lsp import Problem, Severity
from ferrule.tools.skills import clean_line


class CheckDiagnostic(NamedTuple):
    """A complaint, and the lines of the output that it was in."""

    first: int
    last: int
    path: str
    line: int
    message: str
    character: int = 0
    severity: Severity = "error"
    source: str = ""
    code: str = ""
    is_sure: bool = True
    """Is it a complaint even where nobody knows the file?"""


IsOwn = Callable[[str], bool]
"""Is it a file of the project's, and of none that was installed into it?"""
Reading = Callable[[Sequence[str], IsOwn], Iterator[CheckDiagnostic]]

_SEVERITIES: dict[str, Severity] = {
    **dict.fromkeys(("warning", "warn", "w", "c", "r", "convention", "refactor", "style", "medium"), "warning"),
    **dict.fromkeys(("info", "information", "note", "help", "i", "low"), "information"),
}


def severity(word: str) -> Severity:
    """What programs call it, as one of ours; whatever is not known to be less is an error."""
    return _SEVERITIES.get(word.lower(), "error")


_compiled = cache(re.compile)
_ARROW = r"\s*(?:-->|└─) (\S.{0,500}?):(\d{1,7})(?::(\d{1,7}))?(?::? .*)?"
_HEADER = r"(error|warning|fatal)(?:\[([\w:-]+)\])?: (.*)"
_RUFF = r"(?:([A-Z]{1,7}\d{1,5})|([a-z]+(?:-[a-z]+)*)):? (?:\[\*\] )?(.*)"
_BIOME = (
    r"(\S.{0,500}?)(?::(\d{1,7}):(\d{1,7}))? ((?:lint|assist|parse|format|organizeImports|internalError)\S*)"
    r"(?:\s+FIXABLE)?\s+━{3,}"
)
_BIOME_MARKS = {
    "!": "warning",
    "\u26a0": "warning",
    "i": "info",
    "\u2139": "info",
    "\u00d7": "error",
    "\u2716": "error",
}
_ROW = r"\s+(\d{1,7})(?::(\d{1,7}))?\s+(?:[\u2716\u00d7\u26a0]\s+)?(error|warning)?\s*(\S.*)"
_RULE = r"(.*?)\s{2,}(\S+)"
_PANIC = r"\s*thread '(.{1,500}?)'(?: \(\d+\))? panicked at (?:'(.*)', )?(\S.{0,500}?):(\d{1,7}):(\d{1,7}):?"
_SIDE = r"\s*((?:left|right): .*)"
_GO_LINE = r"\s{4,}([\w.-]+\.go):(\d{1,7}): (.*)"
_GO_FAIL = r"\s*--- FAIL: (\S+) .*"
_GO_PACKAGE = r"FAIL\s+(\S+)(?:\s.*)?"
_HCL = r"(?:│\s*)?\s+on (\S.{0,500}?) line (\d{1,7})(?:,.*)?:?"
_MOST_LOOKED_BACK = 6
_MOST_PARTS = 8


def arrows(lines: Sequence[str], _: IsOwn) -> Iterator[CheckDiagnostic]:
    """rustc, clippy, ruff, ty and mix: a headline, and under it an arrow with the place."""
    for at, line in enumerate(lines):
        arrow = _compiled(_ARROW).fullmatch(line) if "-->" in line or "└─" in line else None
        if arrow is None or at == 0:
            continue
        first = at - 1
        if "└─" in line:
            back = range(at - 1, max(-1, at - 1 - _MOST_LOOKED_BACK), -1)
            first = next((one for one in back if re.match(r"\s*(?:error|warning): ", lines[one])), at - 1)
        hit = CheckDiagnostic(first, at, arrow[1], int(arrow[2]), "", int(arrow[3] or 0))
        headline = lines[first].strip() if "└─" in line else lines[first]
        if found := _compiled(_HEADER).fullmatch(headline):
            yield hit._replace(message=found[3], severity=severity(found[1]), code=found[2] or "")
        elif not headline.startswith(("note", "help", "info", " ")) and (found := _compiled(_RUFF).fullmatch(headline)):
            yield hit._replace(message=found[3], source="ruff", code=found[1] or found[2])


def panics(lines: Sequence[str], _: IsOwn) -> Iterator[CheckDiagnostic]:
    """What a test of Rust says when it fails."""
    for at, line in enumerate(lines):
        found = _compiled(_PANIC).fullmatch(line) if "panicked at " in line else None
        if found is not None:
            said = found[2] or (lines[at + 1].strip() if at + 1 < len(lines) else "")
            message = f"{found[1]}: {said}" if found[1] != "main" else said
            values = _sides(lines, at + 1 if found[2] else at + 2) if "left " in said else ()
            message += f" ({', '.join(values)})" if values else ""
            yield CheckDiagnostic(at, at + 1 + len(values), found[3], int(found[4]), message, int(found[5]))


def _sides(lines: Sequence[str], start: int) -> tuple[str, ...]:
    """The values that an assertion has compared, where they stand in a line each."""
    found = [_compiled(_SIDE).fullmatch(line) for line in lines[start : start + 2]]
    return tuple(side[1].strip() for side in found if side)


def biome(lines: Sequence[str], _: IsOwn) -> Iterator[CheckDiagnostic]:
    """biome: a headline with the place and the rule, and the message below it."""
    for at, line in enumerate(lines):
        found = _compiled(_BIOME).fullmatch(line.rstrip()) if "━━━" in line else None
        if found is not None:
            below = next((one.strip() for one in lines[at + 1 : at + 4] if one.strip()), "")
            mark, blank, text = below.partition(" ")
            message = text.strip() if blank and mark in _BIOME_MARKS else below
            kind = severity(_BIOME_MARKS.get(mark, "error"))
            if found[4] == "format":
                message = "is not formatted as it should be"
            yield CheckDiagnostic(
                at, at + 3, found[1], int(found[2] or 0), message, int(found[3] or 0), kind, "biome", found[4]
            )


def tables(lines: Sequence[str], is_own: IsOwn) -> Iterator[CheckDiagnostic]:
    """eslint, stylelint and phpstan: a line with the file, and below it lines with numbers."""
    path, at_path = "", 0
    for at, line in enumerate(lines):
        if not line.strip():
            path = path if at == at_path + 1 else ""
            continue
        if path and set(line.strip()) <= {"-", " "}:
            continue
        row = _compiled(_ROW).fullmatch(line) if path and line[0] == " " else None
        if row is not None and (row[2] or not row[3]):
            message, rule = row[4].rstrip(), ""
            if row[2] and (found := _compiled(_RULE).fullmatch(message)):
                message, rule = found[1], found[2]
            kind = severity(row[3] or "error")
            yield CheckDiagnostic(at, at, path, int(row[1]), message, int(row[2] or 0), kind, "", rule)
            continue
        if path and line.startswith("      "):  # more about the row above
            continue
        name = line.strip().removeprefix("Line ").strip()
        is_file = " " not in line.rstrip() or line.lstrip().startswith("Line ") or is_own(name)
        path, at_path = (name, at) if is_file and re.search(r"[./\\]", name) else ("", at)


def go_tests(lines: Sequence[str], is_own: IsOwn) -> Iterator[CheckDiagnostic]:
    """`go test` names files without their folder; the package, which it tells at the end, has that in its name."""
    waiting: list[CheckDiagnostic] = []
    test = ""
    for at, line in enumerate(lines):
        if found := _compiled(_GO_FAIL).fullmatch(line):
            test = found[1]
        elif test and (found := _compiled(_GO_LINE).fullmatch(line)):
            waiting.append(
                CheckDiagnostic(at, at, found[1], int(found[2]), f"{test}: {found[3].strip() or _below(lines, at)}")
            )
        elif waiting and (found := _compiled(_GO_PACKAGE).fullmatch(line)) and found[1] != "FAIL":
            parts = found[1].split("/")[-_MOST_PARTS:]
            for hit in waiting:
                ways = ("/".join([*parts[start:], hit.path]) for start in range(len(parts) + 1))
                yield hit._replace(path=next((way for way in ways if is_own(way)), hit.path))
            waiting, test = [], ""
    yield from waiting


def _below(lines: Sequence[str], at: int) -> str:
    """What a library for tests says below a line that only has the place."""
    errors = (re.match(r"\s*Error:\s+(.*)", line) for line in lines[at + 1 : at + 1 + _MOST_LOOKED_BACK])
    return next((found[1] for found in errors if found), "failed")


def terraform(lines: Sequence[str], _: IsOwn) -> Iterator[CheckDiagnostic]:
    """`Error: message`, and below it `on main.tf line 3`."""
    message = ""
    for at, line in enumerate(lines):
        text = line.lstrip("│╷ ")
        if text.startswith(("Error: ", "Warning: ")):
            message = text
        elif message and (found := _compiled(_HCL).fullmatch(line)):
            kind = severity(message.partition(":")[0])
            yield CheckDiagnostic(at, at, found[1], int(found[2]), message.partition(": ")[2], 0, kind)
            message = ""


_SECTION = r"=+ (.+?) =+"
_TEST = r"_{3,} (.+?) _{3,}"
_PLACE = r"(\S.{0,500}?):(\d{1,7}): ?(?:in .*|[\w.]*)"
_SUMMARY = r"(FAILED|ERROR) (\S+?\.\w+|\S+)(?:::(.+?))?(?: - (.*))?"
_END = r"=* ?(?:\d+ (?:failed|passed|errors?|skipped|deselected|warnings?)\b.*|no tests ran.*)"
_PHASE = r"ERROR (?:collecting|at (?:setup|teardown) of) "
_FRAME = r'\s*File "(.{1,500}?)", line (\d{1,7})(?:, in .*)?'
_UNITTEST = r"(?:FAIL|ERROR): (\S+).*"


def pytest(lines: Sequence[str], is_own: IsOwn) -> Iterator[CheckDiagnostic]:
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


def _sections(lines: Sequence[str], start: int, end: int, is_own: IsOwn) -> Iterator[tuple[CheckDiagnostic, str]]:
    heads = [at for at in range(start, end) if lines[at].startswith("___") and _compiled(_TEST).fullmatch(lines[at])]
    for first, after in itertools.pairwise([*heads, end]):
        found = _compiled(_TEST).fullmatch(lines[first])
        title = found[1] if found else ""
        name = re.sub(_PHASE, "", title)
        yield _section(lines, first, after, name, is_own), name


def _section(lines: Sequence[str], first: int, after: int, name: str, is_own: IsOwn) -> CheckDiagnostic:
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
        return CheckDiagnostic(first, after - 1, "", 0, "")
    message = said or "failed"
    return CheckDiagnostic(first, after - 1, *own[-1], message if is_file else f"{name}: {message}", source="pytest")


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


def _summary(lines: Sequence[str], start: int, end: int, known: set[str]) -> Iterator[CheckDiagnostic]:
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
            yield CheckDiagnostic(at, at, found[2], 0, message, source="pytest", is_sure=found[1] == "FAILED")
        last = at
    # Diffs stand below the names, and are no complaints of their own.
    yield CheckDiagnostic(start, max(last, end - 1), "", 0, "")


def tracebacks(lines: Sequence[str], is_own: IsOwn) -> Iterator[CheckDiagnostic]:
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
            yield CheckDiagnostic(first, at, own[-1][0], own[-1][1], f"{title}: {message}" if title else message)
        title = ""


_BRACKETS = (
    r"\((\d{1,7})(?:,(\d{1,7}))?(?:,\d{1,7},\d{1,7})?\)\s?: (?:fatal )?(error|warning|info|message)"
    r"(?: ([A-Za-z]{1,20}\d{1,9}))?\s?: (.*)"
)
"""tsc and everything of Microsoft's: `a.ts(1,2): error TS2322: …`."""
_DASH = r"\s*(\S.{0,500}?):(\d{1,7}):(\d{1,7}) - (error|warning|information|note|info)\b:?\s*(?:(TS\d+): )?(.*)"
"""tsc for people, pyright and its relatives."""
_COLONS = (
    r"(?:vet: |ERROR: |error: |e: |w: )?(?:file://)?((?:[A-Za-z]:[\\/])?[^:\s][^:]{0,500})"
    r":(\d{1,7})(?::(\d{1,7}))?(?:-\d{1,7})?:? +(.*)"
)
_PLAUSIBLE = r"(?=.*[./\\])[\w.+@~/\\:-]+"
"""A path that is taken for one though no such file is there: a program may well tell it from another folder."""
_MAVEN = r"\[(ERROR|WARNING)\] (/?\S[^:]{0,500}):\[(\d{1,7}),(\d{1,7})\] (.*)"
_WORD = r"(?:fatal )?(error|warning|note|info|information|hint)(?:\[([\w:-]+)\])?:? +(.*)"
_CODED = r"([A-Z]{1,7}\d{1,5})(:?) (?:\[\*\] )?(.*)"
_SYNTAX = r"(invalid-syntax|SyntaxError|E999)(?:: | )(.*)"
_COP = r"([CWEFRI]): (?:\[Correctable\] )?([\w/]+): (.*)"
_UNIX = r"(.*) \[(Error|Warning)(?:/([\w@/-]+))?\]"
_LAST_CODE = r"(.*?)\s+\[(-?[a-zA-Z][\w.,=-]*)\]"
_LAST_RULE = r"(.*?)\s+\(([a-zA-Z][\w-]*)\)"
_UNFORMATTED = (
    (r"[Ww]ould reformat:? (.+)", "is not formatted as it should be"),
    (r"ERROR: (.+?) Imports are incorrectly sorted and/or formatted\.", "its imports are not sorted as they should be"),
    (r"Diff in (.+?)(?::| at line )(\d+):", "is not formatted as it should be"),
    (r"Changed (\S+\.dart)", "is not formatted as it should be"),
    (r"\[warn\] (\S.*\.\w+)", "is not formatted as it should be"),
)
_REFUSED = (
    r"error: cannot parse: (.+?):(\d+):(\d+)()",
    r"error: cannot format (.+?): Cannot parse(?: for target version [^:]+)?: (\d+):(\d+): (.*)",
    r"\[error\] (\S[^:]*): SyntaxError: (?=.*\((\d+):(\d+)\))(.*)",
    r"\*\* \((?:\w+Error)\) ([^:]+):(\d+)(?::(\d+))?: (.*)",
)


def parse_line(at: int, line: str, below: str = "") -> Iterator[CheckDiagnostic]:
    """What one line complains about, at most one thing; `below` is the next line, which may have its end."""
    for form in _FORMS:
        hit = form(at, line)
        if hit is not None:
            if hit.message:
                yield hit if hit.code else _join_continuation(hit, line, below)
            return


def _join_continuation(hit: CheckDiagnostic, line: str, below: str) -> CheckDiagnostic:
    """pyright explains itself in further lines and has its rule at the end; mypy folds long lines."""
    if " - " in line and below[:1].isspace() and _match_dash(0, below) is None:
        return hit._replace(code=_split(below.strip(), _LAST_RULE)[1])
    if below[:1].strip() and line.endswith(tuple("abcdefghijklmnopqrstuvwxyz,\"'")):
        rest, code = _split(below, r"(.*?)  \[([a-z][\w-]*)\]")
        if code:
            return hit._replace(message=f"{hit.message} {rest}", code=code)
    return hit


def _match_brackets(at: int, line: str) -> CheckDiagnostic | None:
    found = _compiled(_BRACKETS).search(line) if "): " in line or ") : " in line else None
    path = line[: found.start()].strip() if found else ""
    if found is None or not path:
        return None
    # MSBuild names the project behind the message.
    message = re.sub(r"\s\[[^\]]+proj(?:::[^\]]*)?\]$", "", found[5])
    source = "tsc" if (found[4] or "").startswith("TS") else ""
    return CheckDiagnostic(
        at, at, path, int(found[1]), message, int(found[2] or 0), severity(found[3]), source, found[4] or ""
    )


def _match_dash(at: int, line: str) -> CheckDiagnostic | None:
    found = _compiled(_DASH).fullmatch(line) if " - " in line else None
    if found is None:
        return None
    message, code = _split(found[6], _LAST_RULE) if not found[5] else (found[6], found[5])
    source = "tsc" if found[5] else ""
    return CheckDiagnostic(at, at, found[1], int(found[2]), message, int(found[3]), severity(found[4]), source, code)


def _match_maven(at: int, line: str) -> CheckDiagnostic | None:
    found = _compiled(_MAVEN).match(line) if line.startswith("[") else None
    if found is None:
        return None
    return CheckDiagnostic(at, at, found[2], int(found[3]), found[5], int(found[4]), severity(found[1]))


def _match_unformatted(at: int, line: str) -> CheckDiagnostic | None:
    if not line.startswith(("would reformat", "Would reformat", "ERROR: ", "Diff in ", "Changed ", "[warn] ")):
        return None
    for pattern, message in _UNFORMATTED:
        if found := _compiled(pattern).fullmatch(line):
            number = int(found[2]) if found.re.groups > 1 else 0
            is_sure = not line.startswith("[warn]") or " " not in found[1]
            return CheckDiagnostic(at, at, found[1], number, message, is_sure=is_sure)
    return None


def _match_refusal(at: int, line: str) -> CheckDiagnostic | None:
    if not line.startswith(("error: cannot", "[error] ", "** (")):
        return None
    for pattern in _REFUSED:
        if found := _compiled(pattern).match(line):
            message = found[4] or "cannot be parsed"
            return CheckDiagnostic(at, at, found[1], int(found[2]), message, int(found[3] or 0))
    return None


def _match_colons(at: int, line: str) -> CheckDiagnostic | None:
    """`path:line:column: message`; what follows the place tells whose it is."""
    found = _compiled(_COLONS).fullmatch(line.rstrip()) if ":" in line else None
    if found is None:
        return None
    path, number, character, rest = found[1], int(found[2]), int(found[3] or 0), found[4].strip()
    hit = CheckDiagnostic(at, at, path, number, rest, character)
    is_path = _compiled(_PLAUSIBLE).fullmatch(path) is not None
    if word := _compiled(_WORD).fullmatch(rest):
        message, code = (word[3], word[2]) if word[2] else _split(word[3], _LAST_CODE)
        # A note explains the error above it.
        message = "" if word[1] == "note" else message
        return hit._replace(message=message, severity=severity(word[1]), code=code, is_sure=is_path)
    if word := _compiled(_COP).fullmatch(rest):
        return hit._replace(message=word[3], severity=severity(word[1]), code=word[2], is_sure=is_path)
    if word := _compiled(_SYNTAX).fullmatch(rest):
        return hit._replace(message=word[2], code=word[1], is_sure=is_path)
    if word := _compiled(_CODED).fullmatch(rest):
        return _with_code(hit._replace(code=word[1], is_sure=is_path), word[3], is_pylint=bool(word[2]))
    if word := _compiled(_UNIX).fullmatch(rest):
        return hit._replace(message=word[1], severity=severity(word[2]), code=word[3] or "", is_sure=is_path)
    if rest.startswith("in ") or not rest:  # a step of a traceback
        return hit._replace(message="")
    if line.startswith("w: "):  # Kotlin
        return hit._replace(severity="warning")
    # golangci-lint names the linter.
    message, code = _split(rest, _LAST_RULE) if path.endswith(".go") else (rest, "")
    return hit._replace(message=message, code=code, is_sure=False)


def _with_code(hit: CheckDiagnostic, text: str, *, is_pylint: bool) -> CheckDiagnostic:
    if not is_pylint:
        return hit._replace(message=text)
    message, _ = _split(text, _LAST_RULE)
    # pylint counts characters from 0.
    character = hit.character + 1 if hit.character or message != text else 0
    return hit._replace(message=message, severity=severity(hit.code[0]), character=character)


def _split(text: str, pattern: str) -> tuple[str, str]:
    """The message, and the code behind it."""
    found = _compiled(pattern).fullmatch(text) if text.endswith((")", "]")) else None
    return (found[1], found[2].removeprefix("-W")) if found else (text, "")


_FORMS: tuple[Callable[[int, str], CheckDiagnostic | None], ...] = (
    _match_brackets,
    _match_dash,
    _match_maven,
    _match_unformatted,
    _match_refusal,
    _match_colons,
)


_TITLES = (
    r"\s+● (.+)",  # jest
    r"\s*FAIL\s+(\S.* > .+)",  # vitest
    r"\s+\d{1,6}\) (.+?):?",  # mocha and rspec
    r"\d{1,6}\) (\S+::\S.*)",  # phpunit
    r"\s*not ok \d{1,6} - (.+)",  # TAP
    r"\s*✖ (.+?) \([\d.]+ms\)",  # node
)
_TITLE_MARKS = (") ", "\u25cf", "FAIL", "not ok ", "\u2716")
_FRAMES = (
    r"\s+at (?:.*\()?(?:file://)?([^()\s][^()]{0,500}?):(\d{1,7}):(\d{1,7})\)?",
    r"\s*\u276f (?:\S+ )?(\S{1,500}?):(\d{1,7}):(\d{1,7})",
    r"\s+[\w.<>$ ]{1,200}\((?:file://)?([^()\s][^()]{0,500}?):(\d{1,7}):(\d{1,7})\)",  # TAP
    r"(\S{1,500}\.php):(\d{1,7})()",
    r"\s+# (\S{1,500}\.rb):(\d{1,7}):in()\b.*",
)
_TAP_ERROR = r"\s*error: (?:'(.*)'|\"(.*)\"|(\|-?)|(.*))"
_TAP_KEY = r"(?:code|name|expected|actual|operator|stack): "
_TAP_PARENT = "subtestsFailed"
_COMPARED = ("equal:", "match:", "deep-equal:", "deep-equal to:", "to:")
_LEGENDS = ("+ actual - expected", "- expected + actual")
_MOST_VALUES = 30
_MOST_SHOWN = 4
_MOST_LINES = 400
"""Between a title and its first frame."""


def stacks(lines: Sequence[str], is_own: IsOwn) -> Iterator[CheckDiagnostic]:
    """Every title with the first frame below it that is the project's own."""
    title, first, said = "", 0, ""
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        if named := _title(line):
            title, first, said = named, at, ""
        elif title and at - first < _MOST_LINES:
            frame = _frame(line)
            if frame is not None and is_own(frame[0]):
                yield CheckDiagnostic(first, at, *frame[:2], f"{title}: {said}" if said else title, frame[2])
                title = ""
            elif frame is None:
                title, said = _read_detail(lines, at, title, said)


def _read_detail(lines: Sequence[str], at: int, title: str, said: str) -> tuple[str, str]:
    """What else is known after a line: the rest of the title, or the complaint."""
    line = lines[at].strip()
    if error := _compiled(_TAP_ERROR).fullmatch(lines[at]):
        below = _with_values(lines, at + 1) if at + 1 < len(lines) else ""
        return title, error[1] or error[2] or error[4] or below
    if _TAP_PARENT in line:
        return "", ""
    if said or re.match(r"(?:---|duration_ms|location|type|failureType|Failure/Error)\b|---|[-+?^|]", line):
        return title, said
    # mocha writes the groups of a test one below the other, and a colon behind the last.
    if line.endswith(":") and lines[at].startswith("       ") and " " not in line[:1]:
        return f"{title} {line[:-1]}", said
    return title, _with_values(lines, at)


def _with_values(lines: Sequence[str], at: int) -> str:
    """A complaint; one of node's ends with a colon, and what was compared stands below it."""
    said = lines[at].strip()
    if not said.endswith(_COMPARED):
        return said
    below = itertools.takewhile(lambda line: _frame(line) is None, lines[at + 1 : at + 1 + _MOST_VALUES])
    values = [line.strip() for line in below]
    # Of a longer comparison the differences count; it begins with a legend and ends where other things are told.
    rows = [line for line in itertools.takewhile(lambda line: not re.match(_TAP_KEY, line), values) if line]
    differing = [line for line in rows if line[:2] in {"+ ", "- "} and line not in _LEGENDS]
    shown = differing or rows[:1]
    return f"{said} {', '.join(shown[:_MOST_SHOWN])}" if shown else said


def _title(line: str) -> str:
    if not any(mark in line for mark in _TITLE_MARKS):
        return ""
    for pattern in _TITLES:
        if found := _compiled(pattern).fullmatch(line):
            return re.sub(r"\s+", " ", found[1]).strip()
    return ""


def _frame(line: str) -> tuple[str, int, int] | None:
    if ":" not in line:
        return None
    for pattern in _FRAMES:
        if found := _compiled(pattern).fullmatch(line):
            return found[1], int(found[2]), int(found[3] or 0)
    return None


MOST_CHARS = 1 << 20
"""Of an output: its two halves, where it is longer."""
MOST_PROBLEMS = 200
_MOST_LINE_CHARS = 2000
_MOST_MESSAGE_CHARS = 500
_MOST_PATHS = 5000
"""That are looked for on disk."""
_ERRORS_FRAME = re.compile(r"[\s>│]*\d{1,7} ?[|│┆](?:\s|$)")
"""A line of a source that a program quotes, with its number; what stands there is no complaint."""
_INSTALLED = frozenset({"node_modules", "site-packages", ".venv", "venv", "vendor", "dist-packages"})

_READINGS: tuple[tuple[tuple[str, ...], Reading], ...] = (
    (("= FAILURES =", "= ERRORS =", "short test summary info"), pytest),
    (('File "',), tracebacks),
    (("--> ", "└─ "), arrows),
    (("panicked at ",), panics),
    (("━━━",), biome),
    (("--- FAIL: ",), go_tests),
    (("● ", "FAIL  ", "not ok ", "✖ ", " failing", "Failures:", "failure"), stacks),
    (("  error  ", "  warning  ", "  Line   "), tables),
    (("Error: ", "Warning: "), terraform),
)
"""Which readers are asked, by what an output has in it."""


def problems(check: Check, output: str, *, root: str) -> tuple[Problem, ...]:
    """What the output of a check complains about, in its order; `root` is the workspace, absolute and real."""
    screen = TerminalRenderer()
    text = screen.feed(_truncate(output)) + screen.end()
    places = _Places(root, check.folder)
    lines = [line[:_MOST_LINE_CHARS] for line in text.split("\n")]
    found: dict[tuple[str, int, str], Problem] = {}
    for hit in _hits(text, lines, places):
        if not hit.message:
            continue
        path = places.file(hit.path)
        if not path and (not hit.is_sure or not hit.path):
            continue
        message = clean_line(hit.message)[:_MOST_MESSAGE_CHARS]
        source = hit.source or check.name
        problem = Problem(
            path or clean_line(hit.path), hit.line, message, hit.character, hit.severity, source, hit.code
        )
        if message:
            found.setdefault((problem.path, problem.line, message), problem)
        if len(found) >= MOST_PROBLEMS:
            break
    return tuple(found.values())


def _hits(text: str, lines: list[str], places: "_Places") -> list[CheckDiagnostic]:
    hits: list[CheckDiagnostic] = []
    taken: set[int] = set()
    for marks, reading in _READINGS:
        if any(mark in text for mark in marks):
            new = [hit for hit in reading(lines, places.is_own) if hit.first not in taken]
            hits += new
            for hit in new:
                taken.update(range(hit.first, hit.last + 1))
    hits += _single(lines, taken)
    return sorted(hits, key=lambda hit: hit.first)


def _single(lines: list[str], taken: set[int]) -> Iterator[CheckDiagnostic]:
    for at, line in enumerate(lines):
        if at not in taken and len(line) > 4 and not _ERRORS_FRAME.match(line):
            yield from parse_line(at, line, lines[at + 1] if at + 1 < len(lines) else "")


def _truncate(output: str) -> str:
    """The two ends of an output that is too long: compilers say what counts first, runners of tests last."""
    if len(output) <= MOST_CHARS:
        return output
    half = MOST_CHARS // 2
    return f"{output[:half].rpartition(chr(10))[0]}\n{output[-half:].partition(chr(10))[2]}"


class _Places:
    """Paths as programs write them, and the files of the workspace that they mean."""

    def __init__(self, root: str, folder: str) -> None:
        self._root = root
        self._folder = folder if within(folder, root) else root
        self._known: dict[str, str] = {}

    def file(self, path: str) -> str:
        """The file of the workspace, absolute; nothing where there is none. A path is from the check's folder, or from
        the root for programs that go there by themselves."""
        if path not in self._known:
            if len(self._known) >= _MOST_PATHS:
                return ""
            self._known[path] = self._find_file(path.strip().removeprefix("file://"))
        return self._known[path]

    def is_own(self, path: str) -> bool:
        """Is it a file of the workspace that was not installed there?"""
        file = self.file(path)
        return bool(file) and _INSTALLED.isdisjoint(os.path.relpath(file, self._root).split(os.sep))

    def _find_file(self, path: str) -> str:
        if not path or not path.isprintable():
            return ""
        for folder in dict.fromkeys((self._folder, self._root)):
            file = os.path.normpath(os.path.join(folder, path))
            # Nothing is asked about files outside: whether they are there is nobody's business.
            if within(file, self._root) and os.path.isfile(file):
                return file
        return ""
