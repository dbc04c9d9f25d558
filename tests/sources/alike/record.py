"""The tool as a Python module with a record."""

import os
import time


def count(given, ctx):
    text = given["text"]
    words = text.split()
    if words[:1] == ["fail"]:
        return "I cannot count “that”.", True
    if words[:1] == ["crash"]:
        raise SystemExit(3)
    if words[:1] == ["hang"]:
        ctx.progress("hangs")
        while not os.path.exists(words[1]):
            time.sleep(0.01)
    return f"{len(set(words) if given.get('unique') else words)} words: {text}"


TOOL = {
    "name": "count_words",
    "description": "Zählt Wörter — 数える.",
    "input_schema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "unique": {"type": "boolean"}},
        "required": ["text"],
    },
    "system_prompt": "Count before you cut.",
    "execute": count,
}
