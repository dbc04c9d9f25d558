"""A language server for texts: `!x` is an error, `?x` a warning, and `@x` an error unless some text has `=x`.

Its arguments are `pull` or `push`, and a file where it writes what it hears. It never says anything about a text with
`STALL` in it, and ends when it sees `DIE`.
"""

import json
import os
import re
import sys
from typing import Any
from urllib.parse import unquote, urlsplit

PUSH = sys.argv[1:2] == ["push"]
texts: dict[str, str] = {}
versions: dict[str, int] = {}


def hear() -> dict[str, Any] | None:
    length = 0
    while (line := sys.stdin.buffer.readline()) != b"\r\n":
        if not line:
            return None
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def say(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def everything() -> str:
    """All texts of the folder, the open ones as they were told."""
    folders = {os.path.dirname(unquote(urlsplit(uri).path)) for uri in texts}
    opened = {unquote(urlsplit(uri).path): text for uri, text in texts.items()}
    for folder in folders:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if path not in opened and os.path.isfile(path):
                with open(path, encoding="utf-8", newline="") as file:
                    opened[path] = file.read()
    return "\n".join(opened.values())


def wrong(uri: str) -> list[dict[str, Any]]:
    found, every = [], set(re.findall(r"=(\w+)", everything()))
    for number, line in enumerate(re.split("\r\n|\n|\r", texts[uri])):
        for match in re.finditer(r"([!?@])(\w+)", line):
            if match[1] == "@" and match[2] in every:
                continue
            place = {"line": number, "character": len(line[: match.start()].encode("utf-16-le")) // 2}
            severity = 2 if match[1] == "?" else 1
            found.append(
                {"range": {"start": place, "end": place}, "severity": severity, "message": match[2], "code": match[1]}
            )
    return found


def publish(first: str) -> None:
    for uri in sorted(texts, key=lambda one: one != first):
        if "STALL" not in texts[uri]:
            told = {"uri": uri, "version": versions[uri], "diagnostics": wrong(uri)}
            say(method="textDocument/publishDiagnostics", params=told)


def take(method: str, params: dict[str, Any]) -> None:
    """A notification about a document."""
    document = params["textDocument"]
    uri = document["uri"]
    if method.endswith("didClose"):
        texts.pop(uri, None)
        return
    if method.endswith(("didOpen", "didChange")):
        texts[uri] = document["text"] if method.endswith("didOpen") else params["contentChanges"][-1]["text"]
        versions[uri] = document["version"]
        if "DIE" in texts[uri]:
            sys.exit(3)
        if PUSH:
            publish(uri)


def main() -> None:
    sync = {"openClose": True, "change": 1}
    able = {"textDocumentSync": sync} | ({} if PUSH else {"diagnosticProvider": {"interFileDependencies": True}})
    with open(sys.argv[2], "a", encoding="utf-8") as log:
        while (message := hear()) is not None:
            log.write(json.dumps(message) + "\n")
            log.flush()
            method, number, params = message.get("method", ""), message.get("id"), message.get("params") or {}
            if method == "initialize":
                say(id=number, result={"capabilities": able})
            elif method == "initialized":
                registration = {"id": "w", "method": "workspace/didChangeWatchedFiles"}
                say(id="r", method="client/registerCapability", params={"registrations": [registration]})
            elif method == "shutdown":
                say(id=number, result=None)
            elif method == "exit":
                return
            elif method == "textDocument/diagnostic":
                uri = params["textDocument"]["uri"]
                if "STALL" not in texts.get(uri, "STALL"):
                    say(id=number, result={"kind": "full", "items": wrong(uri)})
            elif method == "workspace/didChangeWatchedFiles" and PUSH:
                publish("")
            elif method.startswith("textDocument/did"):
                take(method, params)
            elif number is not None and method:
                say(id=number, error={"code": -32601, "message": method})


if __name__ == "__main__":
    main()
