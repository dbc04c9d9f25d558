"""The tool as an MCP server, in plain Python so that it starts at once."""

import json
import os
import sys

TOOL = {
    "name": "count_words",
    "description": "Zählt Wörter — 数える.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "unique": {"type": "boolean"}},
        "required": ["text"],
    },
}


def send(message):
    data = (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode()
    while data:
        data = data[os.write(1, data) :]


def call(given, meta):
    """The answer; None for one that never comes."""
    text = given["text"]
    words = text.split()
    if words[:1] == ["fail"]:
        return {"content": [{"type": "text", "text": "I cannot count “that”."}], "isError": True}
    if words[:1] == ["crash"]:
        os._exit(3)
    if words[:1] == ["hang"]:
        progress = {"progressToken": meta["progressToken"], "progress": 1, "message": "hangs"}
        send({"method": "notifications/progress", "params": progress})
        return None
    said = f"{len(set(words) if given.get('unique') else words)} words: {text}"
    return {"content": [{"type": "text", "text": said}]}


result: dict | None
for line in sys.stdin:
    message = json.loads(line)
    method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        about = {"name": "words", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        result = call(params["arguments"], params.get("_meta") or {})
    elif id_ is not None:
        send({"id": id_, "error": {"code": -32601, "message": "Method not found"}})
        continue
    else:
        continue
    if result is not None:
        send({"id": id_, "result": result})
