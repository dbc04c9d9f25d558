"""A conversation as the loop keeps it, for the tools that read it."""

import json
from typing import Any

from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore

PICTURE = "iVBORw0KGgoAAAANSUhEUg" * 50


def turn(role: str, *parts: dict[str, Any]) -> Item:
    body = json.dumps({"role": role, "parts": list(parts)}).encode()
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    return Item("turn", role, body, text)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(number: int, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "use", "id": f"u{number}", "name": name, "input": given}


def result(number: int, words: str, *, failed: bool = False, more: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"type": "result", "id": f"u{number}", "parts": [text(words), *more], "failed": failed, "name": ""}


PICTURED = {"type": "image", "media_type": "image/png", "data": PICTURE}
TALK = (
    turn("system", text("You are an agent.")),
    turn("user", text("Why does parse_query fail on empty input?"), PICTURED),
    turn(
        "assistant",
        {"type": "thinking", "text": "secret thoughts", "signature": "s"},
        text("I look at it."),
        use(1, "Read", path="src/parse.py"),
        use(2, "Bash", cmd="pytest -q"),
        use(3, "Grep", pattern="x" * 400),
    ),
    turn(
        "user",
        result(1, "1: def parse_query(text):\n2:     return text[0]", more=(PICTURED,)),
        result(2, "exit code 1\nIndexError: string index out of range", failed=True),
        result(3, ""),
    ),
    Item("spent", "", b'{"input": 12}'),
    turn(
        "assistant",
        text("It takes `text[0]` of an empty text.\n\nI mend it."),
        use(4, "edit_file", path="src/parse.py"),
    ),
    turn("user", text("Wait!")),
    Item("compacted", "", b"{}", "The user wants parse_query mended."),
    turn("assistant", text("Stopped.")),
    Item("turn", "user", b'{"role": "user"}', ""),
    Item("turn", "user", b'{"role": "user", "parts": [1, {"type": "text", "text": 7}, {"type": "use"}]}', ""),
)


def keep(store: ThreadStore, thread: str, workspace: str, items: tuple[Item, ...] = TALK, **about: str) -> None:
    store.begin(thread, workspace=workspace, **about)
    store.append(thread, items)
