"""A call's parameters as a toolbox tool reads them: in the format in which it described itself."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ferrule.core.errors import BadArguments
from ferrule.sources.toolbox.description import Format

_BREAKS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""What some program takes for the end of a line, and other control characters; a tab is none."""
_LATER_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029]")
"""Those of them that JSON lets pass as they are."""


def written(values: Mapping[str, Any], form: Format) -> bytes:
    """What goes to the tool's standard input. Raises `BadArguments` for what the text format cannot say."""
    if form == "json":
        return msgspec.json.encode(values) + b"\n"
    lines: dict[str, str] = {}
    for key, value in _flat(values):
        if key in lines:
            raise BadArguments(f"Two values would both be called {key} where the tool reads them; send them flatter.")
        lines[key] = value
    return ("\n".join(f"{key}: {value}" for key, value in lines.items()) + "\n").encode()


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys and their values as text; members of lists and objects have keys of their own: `k_0`, `k_sub`."""
    unseen: list[tuple[str, Any]] = [(_key(str(key)), value) for key, value in reversed(list(values.items()))]
    while unseen:
        key, value = unseen.pop()
        if isinstance(value, dict | list) and value:
            members = value.items() if isinstance(value, dict) else enumerate(value)
            unseen += [(f"{key}_{_key(str(name))}", member) for name, member in reversed(list(members))]
        elif value is not None:
            yield key, one_line(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _key(name: str) -> str:
    """A name that can end nowhere but at its colon."""
    return re.sub(r"[^\w.-]", "_", name) or "_"


def one_line(value: str) -> str:
    """The value in one line: as it is, or as a JSON string where it has several, so that none looks like a key.

    A value that would be taken for such a string is made one too: what is written can always be read back.
    """
    if not _needs_quotes(value):
        return value
    quoted = msgspec.json.encode(value).decode()
    return _LATER_BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _needs_quotes(value: str) -> bool:
    while _BREAKS.search(value) is None:
        if not (len(value) > 1 and value[0] == value[-1] == '"'):
            return False
        try:
            value = msgspec.json.decode(value, type=str)
        except msgspec.DecodeError:
            return False
    return True
