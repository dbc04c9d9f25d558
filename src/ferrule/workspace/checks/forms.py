"""Complaints that stand in one line, in the forms of many programs; `path:line: message` comes last.

Lines are cut before they come here, so that no line can hold up anybody. Patterns are compiled on first use.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from ferrule.workspace.checks.hit import Hit, severity

_compiled = cache(re.compile)

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


def said(at: int, line: str, below: str = "") -> Iterator[Hit]:
    """What one line complains about, at most one thing; `below` is the next line, which may have its end."""
    for form in _FORMS:
        hit = form(at, line)
        if hit is not None:
            if hit.message:
                yield hit if hit.code else _continued(hit, line, below)
            return


def _continued(hit: Hit, line: str, below: str) -> Hit:
    """pyright explains itself in further lines and has its rule at the end; mypy folds long lines."""
    if " - " in line and below[:1].isspace() and _dashed(0, below) is None:
        return hit._replace(code=_split(below.strip(), _LAST_RULE)[1])
    if below[:1].strip() and line.endswith(tuple("abcdefghijklmnopqrstuvwxyz,\"'")):
        rest, code = _split(below, r"(.*?)  \[([a-z][\w-]*)\]")
        if code:
            return hit._replace(message=f"{hit.message} {rest}", code=code)
    return hit


def _bracketed(at: int, line: str) -> Hit | None:
    found = _compiled(_BRACKETS).search(line) if "): " in line or ") : " in line else None
    path = line[: found.start()].strip() if found else ""
    if found is None or not path:
        return None
    # MSBuild names the project behind the message.
    message = re.sub(r"\s\[[^\]]+proj(?:::[^\]]*)?\]$", "", found[5])
    source = "tsc" if (found[4] or "").startswith("TS") else ""
    return Hit(at, at, path, int(found[1]), message, int(found[2] or 0), severity(found[3]), source, found[4] or "")


def _dashed(at: int, line: str) -> Hit | None:
    found = _compiled(_DASH).fullmatch(line) if " - " in line else None
    if found is None:
        return None
    message, code = _split(found[6], _LAST_RULE) if not found[5] else (found[6], found[5])
    source = "tsc" if found[5] else ""
    return Hit(at, at, found[1], int(found[2]), message, int(found[3]), severity(found[4]), source, code)


def _maven(at: int, line: str) -> Hit | None:
    found = _compiled(_MAVEN).match(line) if line.startswith("[") else None
    if found is None:
        return None
    return Hit(at, at, found[2], int(found[3]), found[5], int(found[4]), severity(found[1]))


def _unformatted(at: int, line: str) -> Hit | None:
    if not line.startswith(("would reformat", "Would reformat", "ERROR: ", "Diff in ", "Changed ", "[warn] ")):
        return None
    for pattern, message in _UNFORMATTED:
        if found := _compiled(pattern).fullmatch(line):
            number = int(found[2]) if found.re.groups > 1 else 0
            is_sure = not line.startswith("[warn]") or " " not in found[1]
            return Hit(at, at, found[1], number, message, is_sure=is_sure)
    return None


def _refused(at: int, line: str) -> Hit | None:
    if not line.startswith(("error: cannot", "[error] ", "** (")):
        return None
    for pattern in _REFUSED:
        if found := _compiled(pattern).match(line):
            message = found[4] or "cannot be parsed"
            return Hit(at, at, found[1], int(found[2]), message, int(found[3] or 0))
    return None


def _coloned(at: int, line: str) -> Hit | None:
    """`path:line:column: message`; what follows the place tells whose it is."""
    found = _compiled(_COLONS).fullmatch(line.rstrip()) if ":" in line else None
    if found is None:
        return None
    path, number, character, rest = found[1], int(found[2]), int(found[3] or 0), found[4].strip()
    hit = Hit(at, at, path, number, rest, character)
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


def _with_code(hit: Hit, text: str, *, is_pylint: bool) -> Hit:
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


_FORMS: tuple[Callable[[int, str], Hit | None], ...] = (
    _bracketed,
    _dashed,
    _maven,
    _unformatted,
    _refused,
    _coloned,
)
