"""Conversations as hypothesis draws them: what every wire format can hold, and nothing that it is known to lose."""

from typing import Any

from hypothesis import strategies as st

from ferrule.core.content import Image, Text
from ferrule.wire import Definition, Result, Thinking, Turn, Use

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda text: not text.startswith("[Error] ")
)
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
NAMES = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)
IMAGES = st.builds(
    Image, st.sampled_from(["image/png", "image/jpeg"]), st.from_regex(r"[A-Za-z0-9+/]{4,16}", fullmatch=True)
)
TEXTS = st.builds(Text, WORDS)


@st.composite
def conversations(
    draw: st.DrawFn, *, result_images: bool = False, many_texts: bool = False, names: bool = False, wire: str = ""
) -> tuple[Turn, ...]:
    """A system's words, then turns that alternate, every call answered in the turn behind it."""
    turns: list[Turn] = []
    if draw(st.booleans()):
        turns.append(Turn("system", (draw(TEXTS),)))
    turns.append(Turn("user", tuple(draw(st.lists(TEXTS | IMAGES, min_size=1, max_size=3)))))
    taken: set[str] = set()
    for _ in range(draw(st.integers(0, 2))):
        uses = draw(st.lists(st.builds(Use, IDS, NAMES, OBJECTS), max_size=3))
        uses = [use for use in uses if use.id not in taken and not taken.add(use.id)]  # type: ignore[func-returns-value]
        words = draw(st.lists(TEXTS, min_size=0 if uses else 1, max_size=2 if many_texts else 1))
        thoughts = (Thinking("hm", "sig", wire=wire),) if wire and draw(st.booleans()) else ()
        turns.append(Turn("assistant", (*thoughts, *words, *uses)))
        results = [draw(_result(use, result_images=result_images, names=names)) for use in uses]
        more = draw(st.lists(TEXTS | IMAGES, min_size=0 if results else 1, max_size=2))
        turns.append(Turn("user", (*results, *more)))
    return tuple(turns)


@st.composite
def _result(draw: st.DrawFn, use: Use, *, result_images: bool, names: bool) -> Result:
    parts: list[Text | Image] = draw(st.lists(TEXTS, max_size=1))
    if result_images:
        parts += draw(st.lists(IMAGES, max_size=2))
    return Result(use.id, tuple(parts), draw(st.booleans()), use.name if names else "")


def definition(name: str = "read", **properties: Any) -> Definition:
    """A tool whose parameters are all required."""
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return Definition(name, "Read a file.", schema)
