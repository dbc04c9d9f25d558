"""The front matter of a text: YAML between two lines of dashes, read without its traps, and the text below it.

Every scalar stays the text that it is, so that `on` is no truth value and `1.10` no number. A header with anchors,
which can make gigabytes of a few lines, or one that is nested deeply, is not read. Of a key that is written twice
the first counts.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

MOST_CHARS = 16_384
"""A longer header is not read."""
_MOST_DEPTH = 16

# Patterns stay text until the first use: compiling them would be paid by every start of the program.
_HEADER = r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)"
_LINE = r"([\w-]+):[ \t]*(.*)"


class FrontMatter(NamedTuple):
    """What stands above a text, and the text."""

    values: dict[str, Any]
    """Texts, lists and mappings of them, and None for what was left empty."""
    body: str
    """What is below the header; the whole text where there is none, or none that can be read."""
    problem: str = ""
    """Why a header could not be read, as the end of a sentence."""
    present: bool = True
    """Is there a header at all?"""
    twice: tuple[str, ...] = ()
    """Keys of the header that are written more than once."""


class _Trap(ValueError):  # noqa: N818 - the state
    """A header that must not be read."""


def front_matter(text: str, *, lenient: bool = False) -> FrontMatter:
    """Take a text apart. `lenient`: where the header is no YAML, each `key: value` line of it counts by itself."""
    header = re.match(_HEADER, text, re.DOTALL | re.MULTILINE)
    if header is None:
        return FrontMatter({}, text, present=False)
    if len(header[1]) > MOST_CHARS:
        return FrontMatter({}, text, f"it is longer than {MOST_CHARS:,} characters")
    twice: list[str] = []
    try:
        values = _values(header[1], twice, lenient=lenient)
    except _Trap as error:
        return FrontMatter({}, text, str(error))
    return FrontMatter(values, text[header.end() :], twice=tuple(twice))


def is_true(value: Any, *, otherwise: bool) -> bool:
    """What a value of a header says, where it is yes or no; `otherwise` where it is neither."""
    said = value.strip().lower() if isinstance(value, str) else ""
    if said in {"true", "yes", "on", "1"}:
        return True
    return False if said in {"false", "no", "off", "0"} else otherwise


def _values(header: str, twice: list[str], *, lenient: bool) -> dict[str, Any]:
    import yaml  # only for texts that have a header

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(header, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            # Aliases can make gigabytes of a few lines, and depth can overflow the reader.
            if depth > _MOST_DEPTH:
                raise _Trap("it is nested too deeply")
            if getattr(event, "anchor", None) is not None:
                raise _Trap("it has anchors or aliases")
        # Composed, not constructed: every scalar stays the text that it is.
        root = yaml.compose(header, Loader=loader)
    except yaml.YAMLError as error:
        if lenient:
            return _lines(header, twice)
        raise _Trap("it is no YAML") from error
    if root is None:
        return {}
    found = _value(root, twice)
    if not isinstance(found, dict):
        raise _Trap("it is no mapping")
    return found


def _value(node: Any, twice: list[str]) -> Any:
    """A node as texts, lists and mappings; the kind of a node decides, whatever it says that it is."""
    if node.id == "sequence":
        return [_value(one, []) for one in node.value]
    if node.id == "mapping":
        pairs = [(key.value, value) for key, value in node.value if key.id == "scalar"]
        twice += _find_duplicates([key for key, _ in pairs])
        return _firsts((key, _value(value, [])) for key, value in pairs)
    is_empty = not node.style and node.value in {"", "~", "null", "Null", "NULL"}
    return None if is_empty else node.value


def _lines(header: str, twice: list[str]) -> dict[str, Any]:
    """A header that is no YAML, line by line, as people write it: `description: Use it so: then that`."""
    pairs = [(pair[1], pair[2].strip()) for line in header.splitlines() if (pair := re.fullmatch(_LINE, line))]
    twice += _find_duplicates([key for key, _ in pairs])
    return _firsts((key, _unquote(value) or None) for key, value in pairs)


def _firsts(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _find_duplicates(keys: list[str]) -> list[str]:
    return [key for key, times in Counter(keys).items() if times > 1]
