"""An MCP server in plain Python, for sessions: what it offers is in a file, and each of its starts is written down.

Its first argument is that file, read anew for every list. A tool answers with its name and its arguments, but for some:
`notify` says that the lists have changed, `ask` asks the user, and `die` ends the server.
"""

import json
import os
import sys


def send(message):
    data = (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode()
    while data:
        data = data[os.write(1, data) :]


def offered(kind):
    with open(sys.argv[1], encoding="utf-8") as file:
        return json.load(file).get(kind, [])


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def ask():
    properties = {"name": {"type": "string"}}
    asked = {"message": "Who\x1b[31m?", "requestedSchema": {"type": "object", "properties": properties}}
    send({"id": "question", "method": "elicitation/create", "params": asked})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            return text(json.dumps(message.get("result", message.get("error"))))
    return sys.exit(0)


def call(name, arguments):
    if name == "notify":
        for kind in ("tools", "prompts"):
            send({"method": f"notifications/{kind}/list_changed"})
    if name == "die":
        os._exit(3)
    return ask() if name == "ask" else text(f"{name} {json.dumps(arguments)}")


def initialized():
    kinds = ("tools", "prompts", "resources")
    capabilities = {kind: {"listChanged": True} for kind in kinds if kind != "resources" or offered(kind)}
    about = {"name": "serving", "version": "1"}
    answer = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}
    return {**answer, "instructions": words} if (words := offered("instructions")) else answer


def answer(method, params):
    if method == "initialize":
        return initialized()
    if method in {"tools/list", "prompts/list", "resources/list"}:
        kind = method.partition("/")[0]
        return {kind: offered(kind)}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    if method == "prompts/get":
        said = f"Prompt {params['name']} {json.dumps(params.get('arguments'))}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"text of {params['uri']}"}]}
    return None


with open(f"{sys.argv[1]}.starts", "a", encoding="utf-8") as starts:
    starts.write(f"{os.getpid()}\n")
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message or "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        send({"id": message["id"], "result": result})
