"""Patches made from two states of some files, with just as much context as each hunk needs to be clear."""

from collections.abc import Iterator, Mapping, Sequence

from ferrule.files.diff import DiffChange, changes
from ferrule.files.text import Binary, TextFile, line_mark, lines, parse


def codex_patch(before: Mapping[str, bytes | None], after: Mapping[str, bytes | None], *, context: int = 3) -> str:
    """The patch that makes the one of the other; None and a name left out stand for a file that is not there.

    Raises ValueError for what a patch cannot say (see `is_sayable`) and where there is nothing to say.
    """
    out = ["*** Begin Patch"]
    for path in sorted(before.keys() | after.keys()):
        out += section(path, before.get(path), after.get(path), context=context)
    if len(out) == 1:
        raise ValueError("nothing differs")
    return "\n".join([*out, "*** End Patch", ""])


def section(path: str, old: bytes | None, new: bytes | None, *, context: int = 3) -> list[str]:
    """The lines about one file; none where it stays as it is."""
    if old == new:
        return []
    if not is_sayable(old, new):
        raise ValueError(f"a patch cannot say this about {path}")
    if new is None:
        return [f"*** Delete File: {path}"]
    if old is None:
        return [f"*** Add File: {path}", *(f"+{line}" for line in lines(new.decode()))]
    return [f"*** Update File: {path}", *update(lines(parse(old).text), lines(parse(new).text), context=context)]


def is_sayable(old: bytes | None, new: bytes | None) -> bool:
    """Can a patch say this? It carries no line ends, no encoding and no final newline: a file keeps its own."""
    if new is None:
        return True
    try:
        then, now = parse(old if old is not None else b""), parse(new)
    except Binary:
        return False
    if old is None:
        return now[2:] == ("utf-8", b"") and _ends(now) <= {"\n"} and _is_closed(now) and not _has_stray_cr(now)
    if then[2:] != now[2:] or _has_stray_cr(then) or _has_stray_cr(now):
        return False
    if then.text and now.text and _is_closed(then) != _is_closed(now):
        return False
    if not then.text:
        return _ends(now) <= {"\n"} and _is_closed(now)
    kinds = _ends(then) | _ends(now) | (set() if _ends(then) else {"\n"})
    return len(kinds) <= 1


def update(old: Sequence[str], new: Sequence[str], *, context: int = 3) -> list[str]:
    """The hunks of one file, each with more context than asked for where it would fit more than one place."""
    found = changes(old, new)
    while True:
        hunks = list(_grouped(found, len(old), context))
        if all(_is_clear(old, hunks, at) for at in range(len(hunks))):
            break
        context = context * 2 + 1
    out: list[str] = []
    for start, end, part in hunks:
        out.append("@@")
        at = start
        for change in part:
            out += (f" {line}" for line in old[at : change.start])
            out += (f"-{line}" for line in old[change.start : change.end])
            out += (f"+{line}" for line in new[change.new_start : change.new_end])
            at = change.end
        out += (f" {line}" for line in old[at:end])
    return out


def _grouped(found: Sequence[DiffChange], total: int, context: int) -> Iterator[tuple[int, int, list[DiffChange]]]:
    """Changes that share context, with the first and the last line of each group."""
    group: list[DiffChange] = []
    for change in found:
        if group and change.start - group[-1].end > 2 * context:
            yield max(0, group[0].start - context), min(total, group[-1].end + context), group
            group = []
        group.append(change)
    if group:
        yield max(0, group[0].start - context), min(total, group[-1].end + context), group


def _is_clear(old: Sequence[str], hunks: Sequence[tuple[int, int, list[DiffChange]]], at: int) -> bool:
    """Does the hunk fit one place only, after the one before it?"""
    start, end, _ = hunks[at]
    if start == end:
        return not old
    floor = hunks[at - 1][1] if at else 0
    hay, needle = "\n".join(["", *old[floor:], ""]), "\n".join(["", *old[start:end], ""])
    first = hay.find(needle)
    return hay.find(needle, first + 1) < 0


def _ends(file: TextFile) -> set[str]:
    mark = line_mark(file.text)
    pieces = file.text.split(mark)[:-1]
    return {"\r\n" if mark == "\n" and piece.endswith("\r") else mark for piece in pieces}


def _is_closed(file: TextFile) -> bool:
    return not file.text or file.text.endswith(line_mark(file.text))


def _has_stray_cr(file: TextFile) -> bool:
    """A CR at the end of a line is taken for a part of the line end."""
    return any("\r" in line for line in lines(file.text))
