"""Bodies of the real clients as test data: `python -m bench.clients.record` holds the conversations and keeps some.

Only their shape is kept. What the programs' makers wrote, words and descriptions, is replaced, and so are paths and
ids.
"""

import asyncio
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.clients.install import installed, version
from bench.clients.play import converse
from bench.clients.programs import CLIENTS, FOLDER, ROOT, Client

TRAFFIC = ROOT / "tests" / "serve" / "proxy" / "traffic"
_WORDS = ("description", "text", "content", "instructions", "output", "title", "$comment")
_MOST_CHARS = 160
_FILLER = "Words of the program. "
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{24,}\b")
_GRAMMAR = "start: /[\\s\\S]*/"
_BILLING = "x-anthropic-billing-header"
_LATER = ("t14", "t20")
"""Turns that add nothing but length."""


class Scrubber:
    """Takes out of bodies what is another's, this machine's or this hour's; ids that differ stay different."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._ids: dict[str, str] = {}

    def put(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.put(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.put(one, key) for one in value]
        return self._text(value, key) if isinstance(value, str) else value

    def _text(self, value: str, key: str) -> str:
        if value.startswith(_BILLING):
            return f"{_BILLING}: cc_version=1.0; cc_entrypoint=sdk-cli;"
        if key == "description":
            return _FILLER.strip()
        if key == "definition" and len(value) > _MOST_CHARS:
            return _GRAMMAR
        text = _ID.sub(self._id, value)
        for name, other in (
            (str(self._place), "/a-user"),
            (self._place.name, "a-user"),
            ("/root", "/top"),
            ("/tmp/", "/a/"),
        ):
            text = text.replace(name, other)
        if key in _WORDS and len(text) > _MOST_CHARS:
            return (_FILLER * 8)[:_MOST_CHARS].strip()
        return text

    def _id(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"{len(self._ids):08}-0000-4000-8000-000000000000")


def chosen(bodies: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The longest body of the conversation, that of an agent, and one beside the script, if there are."""
    seen = set()
    for kind, body in reversed([(_kind(body), body) for body in bodies]):
        if kind not in seen:
            seen.add(kind)
            yield body


def _kind(body: dict[str, Any]) -> str:
    text = json.dumps(body)
    if "[[t01]]" not in text:
        return "agent" if "[[child]]" in text else "beside"
    return "agent" if text.rfind("[[child]]") > text.rfind("[[t1") else "script"


def record(client: Client, modules: Path) -> int:
    """Write the file of one client. Returns its size."""
    place = Path(tempfile.mkdtemp(prefix="ferrule-client-"))
    try:
        only = [f"t{at:02}" for at in range(1, 20) if f"t{at:02}" not in _LATER]
        out = asyncio.run(converse(client, modules, client.api, place, only=only, direct=True))
        scrubber = Scrubber(place)
        rows = [scrubber.put(body) for body in chosen(out.bodies)]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    whole = {"client": client.name, "version": version(client), "api": client.api, "bodies": rows}
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    TRAFFIC.mkdir(exist_ok=True)
    # One body is one line, so that a difference can be looked at.
    (TRAFFIC / f"{client.name}.json").write_text(text.replace('},{"model"', '},\n{"model"') + "\n", encoding="utf-8")
    return len(text)


def main() -> int:
    if why := installed():
        print(why, file=sys.stderr)
        return 1
    for client in CLIENTS:
        if not sys.argv[1:] or client.name in sys.argv[1:]:
            print(f"{client.name}: {record(client, FOLDER / 'node_modules'):,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
