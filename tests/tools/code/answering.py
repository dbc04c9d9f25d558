"""A language server that answers what it is told at its start, method by method."""

import json
import sys
from typing import Any

ABILITIES = (
    *("definitionProvider", "referencesProvider", "hoverProvider", "documentSymbolProvider"),
    *("workspaceSymbolProvider", "implementationProvider", "callHierarchyProvider"),
)


def hear() -> dict[str, Any] | None:
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        if line == b"\r\n":
            break
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def say(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def main() -> None:
    told: dict[str, Any] = {}
    while (message := hear()) is not None:
        method, number = message.get("method"), message.get("id")
        if method == "exit":
            return
        if number is None or method is None:
            continue
        if method == "initialize":
            told = message["params"]["initializationOptions"]
            able = {name: True for name in ABILITIES if name not in told["lacks"]}
            say({"id": number, "result": {"capabilities": {**able, "textDocumentSync": 1}}})
        elif method == "shutdown":
            say({"id": number, "result": None})
        elif method in told["answers"]:
            say({"id": number, "result": told["answers"][method]})
        else:
            say({"id": number, "error": {"code": -32601, "message": f"{method} is not known"}})


if __name__ == "__main__":
    main()
