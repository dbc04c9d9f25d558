"""A public package's change from one version to the next: files before and after, and the edits between them."""

import difflib
import zipfile
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]
WHEELS = PROJECT / ".venv" / "replay"
VERSIONS = ("click-8.1.8-py3-none-any.whl", "click-8.2.0-py3-none-any.whl")


class Piece(NamedTuple):
    """One old text and its new one."""

    old: str
    new: str


def versions() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Path → bytes of the older and of the newer version."""
    missing = [name for name in VERSIONS if not (WHEELS / name).is_file()]
    assert not missing, f"{', '.join(missing)}: run scripts/provide.py, which fetches them"
    older, newer = (_files(WHEELS / name) for name in VERSIONS)
    return older, newer


def _files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.startswith("click/")}


def edits(before: str, after: str) -> list[Piece]:
    """Replacements that turn one text into the other, one after the other; each has one place when it is made."""
    out: list[Piece] = []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    # From the end, so that the lines before a change still have their places.
    now = list(old)
    for tag, first, last, start, end in reversed(matcher.get_opcodes()):
        if tag == "equal":
            continue
        piece = _unique(now, first, last, new[start:end])
        out.append(piece)
        now[first:last] = new[start:end]
    assert "".join(now) == after
    return out


def _unique(lines: list[str], first: int, last: int, new: list[str]) -> Piece:
    """The change with as many lines around it as make it the only place."""
    text = "".join(lines)
    above, below = first, last
    while True:
        old = "".join(lines[above:below])
        if old.strip() and text.count(old) == 1:
            return Piece(old, "".join([*lines[above:first], *new, *lines[last:below]]))
        assert above > 0 or below < len(lines)
        above, below = max(0, above - 1), min(len(lines), below + 1)
