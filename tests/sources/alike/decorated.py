"""The tool as a Python module with a function under @tool; also what a package or a program gives."""

import os
import time

from ferrule import tool
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context


@tool(guidance="Count before you cut.")
def count_words(text: str, ctx: Context, *, unique: bool = False) -> str:
    """Zählt Wörter — 数える."""
    words = text.split()
    if words[:1] == ["fail"]:
        raise ToolFailure("I cannot count “that”.")
    if words[:1] == ["crash"]:
        raise SystemExit(3)
    if words[:1] == ["hang"]:
        ctx.progress("hangs")
        while not os.path.exists(words[1]):
            time.sleep(0.01)
    return f"{len(set(words) if unique else words)} words: {text}"
