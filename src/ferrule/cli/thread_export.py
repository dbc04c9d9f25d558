"""A thread as a file to take away: Markdown to read, or JSON with everything that is kept."""

import os
import re
import stat
from typing import Any

import msgspec

from ferrule.cli.show import shown_json
from ferrule.output.clean import clean
from ferrule.workspace.thread import when
from ferrule.workspace.thread_store import Item, Thread
from ferrule.workspace.thread_turns import Called, Message, messages


def exported(thread: Thread, form: str) -> str:
    """The thread as `md`, `json` or `jsonl`; it ends in a newline."""
    if form == "md":
        return _markdown(thread)
    about = {"thread": thread.about.facts(), "files": list(thread.files)}
    items = [_entry(item) for item in thread.items]
    if form == "json":
        return shown_json(msgspec.json.format(msgspec.json.encode({**about, "items": items})).decode()) + "\n"
    return "".join(shown_json(msgspec.json.encode(row).decode()) + "\n" for row in (about, *items))


def export_form(path: str) -> str:
    """The form that a file's name asks for: `json` and `jsonl` by its ending, else `md`."""
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    return ending if ending in {"json", "jsonl"} else "md"


def write_export(path: str, text: str, *, over: bool) -> None:
    """Write it for the user alone, for it may hold secrets. Raises OSError, if the file is there and not `over` too."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if over else os.O_EXCL)
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8", newline="\n") as file:
        if os.name == "posix" and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fchmod(file.fileno(), 0o600)  # also where it was there, for all to read
        file.write(text)


def _entry(item: Item) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, RecursionError):
        body = item.body.decode("utf-8", "replace")
    return {"kind": item.kind, "role": item.role, "at": item.at, "body": body}


def _markdown(thread: Thread) -> str:
    about = thread.about
    facts = [
        ("Thread", about.id),
        ("Begun", when(about.created)),
        ("Workspace", about.workspace),
        ("Model", about.model),
    ]
    rows = "\n".join(f"- {name}: {value}" for name, value in facts if value)
    blocks = [f"# {' '.join(about.title.split()) or about.id}", rows, *map(_message, messages(thread.items))]
    return clean("\n\n".join(blocks)) + "\n"


def _message(message: Message) -> str:
    calls = [_call(call) for call in message.calls]
    return "\n\n".join(filter(None, [f"## {message.speaker.capitalize()}", message.text, *calls]))


def _call(call: Called) -> str:
    result = "no result" if call.result is None else call.result.strip()
    head = f"**{call.name}**{' (failed)' if call.failed else ''}"
    return "\n\n".join([head, _fenced(call.given, "json"), *([_fenced(result, "")] if result else [])])


def _fenced(text: str, language: str) -> str:
    """A fence longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
