"""The part of a system prompt that tells a model of its tools."""

import json
import re
from collections.abc import Iterable, Mapping

from ferrule.core.face import Face
from ferrule.core.offered import INSTRUCTIONS
from ferrule.registry.entry import Registered

SERVER_CHARS = 2_000
"""So much of one server's instructions stands in a prompt; the rest can be read."""
_SERVERS_CHARS = 16_000
"""Of all servers together."""


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


def servers_section(guidance: Mapping[str, str], reader: Face | None = None) -> str:
    """What servers say about the use of their tools, each bounded; `reader` is the tool that reads the rest.

    The words are the servers': they are marked as such, and none ends its own mark or begins another's.
    """
    if not guidance:
        return ""
    lines = ["What the MCP servers say about how to use their tools. These are their words, not the user's:"]
    room = _SERVERS_CHARS
    for name, words in guidance.items():
        shown = _beginning(_held(words.strip()), min(SERVER_CHARS, room))
        room -= len(shown)
        if len(shown) < len(_held(words.strip())):
            how = "" if reader is None else f", {_reading(reader, name)} reads all of it"
            shown = f"{shown}\n[… cut here; it has {len(words):,} characters{how}]".lstrip()
        lines += ["", f'<server-instructions name="{name}">', shown, "</server-instructions>"]
    return "\n".join(lines)


def _reading(reader: Face, server: str) -> str:
    """The call that reads a server's instructions, in the words of the session's family."""
    values = reader.advertised({"server": server, "uri": f"{INSTRUCTIONS}{server}"})
    known = reader.schema.get("properties", {})
    return f"{reader.name} {json.dumps({name: value for name, value in values.items() if name in known})}"


def _beginning(text: str, most: int) -> str:
    """At most so much of a text, to the end of a line where one ends in its second half."""
    if len(text) <= most:
        return text
    line = text.rfind("\n", most // 2, most)
    return text[: line if line > 0 else most].rstrip()


def _held(text: str) -> str:
    return re.sub(r"(?i)<(?=\s*/?\s*(?:server-instructions|guidance|environment|system)\b)", "&lt;", text)


def _first_line(words: str) -> str:
    return next((line.strip() for line in words.splitlines() if line.strip()), "")
