"""The part of a system prompt that tells a model of its tools."""

from collections.abc import Iterable

from ferrule.registry.entry import Registered


def tools_section(entries: Iterable[Registered], *, listed: bool = True) -> str:
    """The names in one line, each tool's description in one, and then the guidance of those that have some.

    Without `listed` the guidance alone: a line with some of the names would read as if there were no others.
    """
    known = sorted(entries, key=lambda entry: entry.face.name)
    if not known:
        return ""
    lines = []
    if listed:
        lines += [f"Tools: {', '.join(entry.face.name for entry in known)}."]
        lines += [f"{entry.face.name}: {_first_line(entry.face.words)}" for entry in known]
    for entry in known:
        if guidance := entry.tool.guidance.strip():
            lines += ["", f"## {entry.face.name}", guidance]
    return "\n".join(lines).lstrip("\n")


def _first_line(words: str) -> str:
    return next((line.strip() for line in words.splitlines() if line.strip()), "")
