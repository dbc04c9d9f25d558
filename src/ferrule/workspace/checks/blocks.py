"""Complaints of compilers and linters that take several lines: what is wrong stands in one, where in another."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from ferrule.workspace.checks.hit import Hit, IsOwn, severity

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


def arrows(lines: Sequence[str], _: IsOwn) -> Iterator[Hit]:
    """rustc, clippy, ruff, ty and mix: a headline, and under it an arrow with the place."""
    for at, line in enumerate(lines):
        arrow = _compiled(_ARROW).fullmatch(line) if "-->" in line or "└─" in line else None
        if arrow is None or at == 0:
            continue
        first = at - 1
        if "└─" in line:
            back = range(at - 1, max(-1, at - 1 - _MOST_LOOKED_BACK), -1)
            first = next((one for one in back if re.match(r"\s*(?:error|warning): ", lines[one])), at - 1)
        hit = Hit(first, at, arrow[1], int(arrow[2]), "", int(arrow[3] or 0))
        headline = lines[first].strip() if "└─" in line else lines[first]
        if found := _compiled(_HEADER).fullmatch(headline):
            yield hit._replace(message=found[3], severity=severity(found[1]), code=found[2] or "")
        elif not headline.startswith(("note", "help", "info", " ")) and (found := _compiled(_RUFF).fullmatch(headline)):
            yield hit._replace(message=found[3], source="ruff", code=found[1] or found[2])


def panics(lines: Sequence[str], _: IsOwn) -> Iterator[Hit]:
    """What a test of Rust says when it fails."""
    for at, line in enumerate(lines):
        found = _compiled(_PANIC).fullmatch(line) if "panicked at " in line else None
        if found is not None:
            said = found[2] or (lines[at + 1].strip() if at + 1 < len(lines) else "")
            message = f"{found[1]}: {said}" if found[1] != "main" else said
            values = _sides(lines, at + 1 if found[2] else at + 2) if "left " in said else ()
            message += f" ({', '.join(values)})" if values else ""
            yield Hit(at, at + 1 + len(values), found[3], int(found[4]), message, int(found[5]))


def _sides(lines: Sequence[str], start: int) -> tuple[str, ...]:
    """The values that an assertion has compared, where they stand in a line each."""
    found = [_compiled(_SIDE).fullmatch(line) for line in lines[start : start + 2]]
    return tuple(side[1].strip() for side in found if side)


def biome(lines: Sequence[str], _: IsOwn) -> Iterator[Hit]:
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
            yield Hit(at, at + 3, found[1], int(found[2] or 0), message, int(found[3] or 0), kind, "biome", found[4])


def tables(lines: Sequence[str], is_own: IsOwn) -> Iterator[Hit]:
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
            yield Hit(at, at, path, int(row[1]), message, int(row[2] or 0), kind, "", rule)
            continue
        if path and line.startswith("      "):  # more about the row above
            continue
        name = line.strip().removeprefix("Line ").strip()
        is_file = " " not in line.rstrip() or line.lstrip().startswith("Line ") or is_own(name)
        path, at_path = (name, at) if is_file and re.search(r"[./\\]", name) else ("", at)


def go_tests(lines: Sequence[str], is_own: IsOwn) -> Iterator[Hit]:
    """`go test` names files without their folder; the package, which it tells at the end, has that in its name."""
    waiting: list[Hit] = []
    test = ""
    for at, line in enumerate(lines):
        if found := _compiled(_GO_FAIL).fullmatch(line):
            test = found[1]
        elif test and (found := _compiled(_GO_LINE).fullmatch(line)):
            waiting.append(Hit(at, at, found[1], int(found[2]), f"{test}: {found[3].strip() or _below(lines, at)}"))
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


def terraform(lines: Sequence[str], _: IsOwn) -> Iterator[Hit]:
    """`Error: message`, and below it `on main.tf line 3`."""
    message = ""
    for at, line in enumerate(lines):
        text = line.lstrip("│╷ ")
        if text.startswith(("Error: ", "Warning: ")):
            message = text
        elif message and (found := _compiled(_HCL).fullmatch(line)):
            kind = severity(message.partition(":")[0])
            yield Hit(at, at, found[1], int(found[2]), message.partition(": ")[2], 0, kind)
            message = ""
