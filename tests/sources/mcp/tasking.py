"""A scripted MCP server whose tools run as tasks, in plain Python. Its first argument says what it leaves out.

What a task goes through is named by its tool, one state for each time that somebody asks.
"""

import json
import sys

MODE = sys.argv[1]
STATES = {
    "done": ["working", "working", "completed"],
    "fails": ["working", "failed"],
    "stops": ["working", "cancelled"],
    "asks": ["working", "input_required", "input_required"],
    "endless": ["working"],
}
asked: dict[str, int] = {}
waiting: dict[str, str] = {}
cancelled: list[str] = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def state(task):
    steps = STATES[task]
    step = min(asked.get(task, 0), len(steps) - 1)
    at = "2026-01-01T00:00:00Z"
    words = {"statusMessage": f"step\x1b[31m {step}"} if steps[step] != "completed" else {}
    times = {"createdAt": at, "lastUpdatedAt": at, "ttl": None, "pollInterval": 1}
    return {"taskId": task, "status": steps[step], **times, **words}


def call(id_, params):
    name = params["name"]
    if name == "plain":
        send({"id": id_, "result": text(f"cancelled: {cancelled}")})
    elif "task" not in params:
        send({"id": id_, "error": {"code": -32601, "message": f"{name} requires task augmentation"}})
    else:
        send({"id": id_, "result": {"task": state(name)}})


def result(id_, task):
    if task == "asks":
        waiting["result"] = id_
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        asking = {"message": "Who?", "requestedSchema": form}
        send({"id": "q", "method": "elicitation/create", "params": asking})
    else:
        send({"id": id_, "result": text(f"result of {task}", isError=task == "fails")})


def answer(id_, method, params):
    if method == "initialize":
        tasks: dict = {} if MODE == "without" else {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        about = {"serverInfo": {"name": "tasking", "version": "1"}, "capabilities": {"tools": {}, **tasks}}
        send({"id": id_, "result": {"protocolVersion": "2025-11-25", **about}})
    elif method == "tools/list":
        needs = {"execution": {"taskSupport": "required"}}
        tools = [{"name": name, "inputSchema": {"type": "object"}, **needs} for name in STATES]
        plain = {"name": "plain", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
        send({"id": id_, "result": {"tools": [*tools, plain]}})
    elif method == "tools/call":
        call(id_, params)
    elif method == "tasks/get":
        task = params["taskId"]
        asked[task] = asked.get(task, 0) + 1
        send({"id": id_, "result": state(task)})
    elif method == "tasks/cancel":
        cancelled.append(params["taskId"])
        send({"id": id_, "result": {**state(params["taskId"]), "status": "cancelled"}})
    elif method == "tasks/result":
        result(id_, params["taskId"])
    elif id_ is not None:
        send({"id": id_, "error": {"code": -32601, "message": "Method not found"}})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        answer(message.get("id"), message["method"], message.get("params") or {})
    elif message.get("id") == "q":
        send({"id": waiting["result"], "result": text(f"hello {message['result']['content']['name']}")})
