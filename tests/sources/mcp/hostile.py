"""A scripted MCP server, in plain Python so that it starts at once: well-behaved by default, and bad in many ways.

It speaks the older protocol over its standard streams. What it does wrong is named by its first argument.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
MEGABYTE = 1 << 20
OBJECT = {"type": "object", "properties": {}}
state = {"added": False, "next": 1000}
cancelled: list = []


def write(text):
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def answer(id_, result):
    send({"id": id_, "result": result})


def text(id_, words, **more):
    answer(id_, {"content": [{"type": "text", "text": words}], **more})


def ask(method, params):
    """A question of the server's own, and the answer to it."""
    state["next"] += 1
    send({"id": state["next"], "method": method, "params": params})
    while True:
        message = read()
        if message.get("id") == state["next"] and "method" not in message:
            return message.get("result", {"error": message.get("error")})


def read():
    line = sys.stdin.readline()
    if not line:
        if MODE != "stays":
            sys.exit(0)
        while True:
            time.sleep(60)
    return json.loads(line)


def flood(descriptor, total_bytes, line):
    block = line * (MEGABYTE // len(line))
    for _ in range(total_bytes // len(block)):
        os.write(descriptor, block)


def tools():
    listed: list = [{"name": name, "description": f"Does {name}.", "inputSchema": OBJECT} for name in CALLS]
    if MODE == "bad-schemas":
        deep = OBJECT
        for _ in range(100):
            deep = {"type": "object", "properties": {"x": deep}}
        listed += [
            {"name": "no_schema"},
            {"name": "schema_is_a_list", "inputSchema": []},
            {"name": "schema_of_a_string", "inputSchema": {"type": "string"}},
            {"name": "properties_is_a_list", "inputSchema": {"type": "object", "properties": []}},
            {"name": "deep", "inputSchema": deep},
            {"name": "huge", "inputSchema": {"type": "object", "title": "x" * 300_000}},
            {"name": "\x1b[31mred", "inputSchema": OBJECT},
            {"name": "", "inputSchema": OBJECT},
            {"name": "echo", "inputSchema": OBJECT},
            {"name": "hints", "inputSchema": OBJECT, "annotations": {"readOnlyHint": "perhaps"}},
            "no tool at all",
            {"name": "wordy", "description": "w" * MEGABYTE, "inputSchema": {"properties": {}}},
            {"name": "hidden", "description": "a\u202eb\U000e0041c", "inputSchema": OBJECT},
        ]
    if state["added"]:
        listed.append({"name": "added", "description": "New.", "inputSchema": OBJECT})
    return listed


def list_tools(id_, params):
    cursor = params.get("cursor")
    page = int(cursor or 0)
    if MODE == "endless-pages":
        answer(id_, {"tools": [{"name": f"t{page}", "inputSchema": OBJECT}], "nextCursor": str(page + 1)})
    elif MODE == "same-page":
        answer(id_, {"tools": tools(), "nextCursor": "1"})
    elif MODE == "three-pages":
        more = {"nextCursor": str(page + 1)} if page < 2 else {}
        answer(id_, {"tools": [{"name": f"t{page}", "inputSchema": OBJECT}], **more})
    else:
        answer(id_, {"tools": tools()})


def echo(id_, arguments, _):
    text(id_, arguments.get("text", ""))


def fail(id_, _, __):
    text(id_, "It did not work.", isError=True)


def refuse(id_, _, __):
    send({"id": id_, "error": {"code": -32602, "message": "No such \x1b[31mthing."}})


def parts(id_, _, __):
    blob = base64.b64encode(b"\0\1\2").decode()
    answer(
        id_,
        {
            "content": [
                {"type": "text", "text": "Parts:"},
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "image", "data": "no base64", "mimeType": "image/png"},
                {"type": "image", "data": blob, "mimeType": "image/png"},
                {"type": "audio", "data": blob, "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "mem://a", "name": "a", "description": "A."},
                {"type": "resource", "resource": {"uri": "mem://t", "text": "embedded text"}},
                {"type": "resource", "resource": {"uri": "mem://p", "blob": PNG, "mimeType": "image/png"}},
                {"type": "resource", "resource": {"uri": "mem://b", "blob": blob}},
                {"type": "hologram", "data": "?"},
            ]
        },
    )


def structured(id_, arguments, _):
    answer(id_, {"content": [{"type": "text", "text": "said"}], "structuredContent": {"count": arguments.get("count")}})


def progress(id_, _, meta):
    for step in (1, 2, 3):
        params = {"progressToken": meta["progressToken"], "progress": step, "total": 3, "message": f"step {step}"}
        send({"method": "notifications/progress", "params": params})
        send({"method": "notifications/message", "params": {"level": "info", "data": "logged"}})
        ask("ping", {})
        time.sleep(0.06)
    text(id_, "done")


def wait(id_, _, __):
    """Never answers by itself; a cancellation is remembered."""


def was_cancelled(id_, _, __):
    text(id_, json.dumps(cancelled))


def elicit(id_, arguments, _):
    if arguments.get("url"):
        asked: dict = {"mode": "url", "message": "Look", "url": "https://example.com", "elicitationId": "1"}
    else:
        properties = {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}}
        asked = {"message": "Who?", "requestedSchema": {"type": "object", "properties": properties}}
    text(id_, json.dumps(ask("elicitation/create", asked)))


def ask_other(id_, arguments, _):
    text(id_, json.dumps(ask(arguments["method"], arguments.get("params", {}))))


def change(id_, _, __):
    state["added"] = True
    for _ in range(5):
        send({"method": "notifications/tools/list_changed"})
    text(id_, "changed")


def environment(id_, _, __):
    text(id_, json.dumps({"cwd": os.getcwd(), "env": dict(os.environ), "pid": os.getpid()}))


def crash(_, __, ___):
    os.write(2, b"\x1b[31mlast words\x1b[0m\n")
    os._exit(3)


def crash_later(id_, _, __):
    text(id_, "goodbye")
    os._exit(0)


def hang(_, __, ___):
    while True:
        time.sleep(60)


def flood_stdout(id_, _, __):
    flood(1, 100 * MEGABYTE, b"y\n")
    text(id_, "after the flood")


def flood_objects(id_, _, __):
    write('{"level": "info"}\n' * 10_000)
    text(id_, "after the flood")


def flood_stderr(id_, _, __):
    flood(2, 100 * MEGABYTE, b"complaint\n")
    text(id_, "after the flood")


def large(id_, arguments, _):
    write(f'{{"jsonrpc": "2.0", "id": {id_}, "result": {{"content": [{{"type": "text", "text": "')
    flood(1, arguments["megabytes"] * MEGABYTE, b"x" * 1024)
    write('"}]}}\n')


def junk(id_, _, __):
    write('hello\n\n  \n{"not": "a message"}\n[1, 2]\n{broken\n\udcff'.encode(errors="replace").decode() + "\n")
    os.write(1, b"\xff\xfe\x00 junk\n")
    text(id_, "after junk")


def half(id_, _, __):
    write(f'{{"jsonrpc": "2.0", "id": {id_}, "result": {{"cont\n')


def half_and_die(id_, _, __):
    write(f'{{"jsonrpc": "2.0", "id": {id_}, "result": {{"cont')
    os._exit(0)


def nested(id_, _, __):
    write(f'{{"jsonrpc": "2.0", "id": {id_}, "result": ' + "[" * 5000 + "]" * 5000 + "}\n")


def wrong_id(id_, _, __):
    text(id_ + 500, "not yours")
    answer("x", {})
    send({"id": None, "error": {"code": 1, "message": "whose?"}})
    text(id_, "yours")


def twice(id_, _, __):
    text(id_, "first")
    text(id_, "second")


def not_a_result(id_, _, __):
    answer(id_, {"content": "no list"})


def endless_progress(_, __, meta):
    step = 0
    while True:
        step += 1
        send({"method": "notifications/progress", "params": {"progressToken": meta["progressToken"], "progress": step}})


def many_questions(_, __, ___):
    for number in range(200):
        send(
            {"id": 5000 + number, "method": "elicitation/create", "params": {"message": "?", "requestedSchema": OBJECT}}
        )


def daemon(id_, _, __):
    """A child in a session of its own holds the pipes."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *sys.argv[2:]], start_new_session=True)
    text(id_, "started")


def daemon_and_die(id_, arguments, meta):
    daemon(id_, arguments, meta)
    os._exit(0)


def close_output(_, __, ___):
    os.close(1)
    time.sleep(600)


CALLS = {
    function.__name__: function
    for function in (
        echo, fail, refuse, parts, structured, progress, wait, was_cancelled, elicit, ask_other, change, environment,
        crash, crash_later, hang, flood_stdout, flood_objects, flood_stderr, large, junk, half, half_and_die, nested,
        wrong_id, twice, not_a_result, endless_progress, many_questions, daemon, daemon_and_die, close_output,
    )
}  # fmt: skip


def initialize(id_, params):
    state["client"] = params["capabilities"]
    capabilities = {"tools": {"listChanged": True}}
    if MODE != "only-tools":
        capabilities |= {"resources": {}, "prompts": {}}
    about = {"name": "hostile", "version": "1.2", "title": "Hostile"}
    result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}
    answer(id_, {**result, "instructions": "Be careful."})


def read_resource(id_, params):
    if params["uri"] == "mem://picture":
        content = {"blob": PNG, "mimeType": "image/png"}
    elif params["uri"] == "mem://a":
        content = {"text": "text of a", "mimeType": "text/plain"}
    else:
        send({"id": id_, "error": {"code": -32002, "message": "Resource not found"}})
        return
    answer(id_, {"contents": [{"uri": params["uri"], **content}]})


def list_resources(id_, _):
    answer(id_, {"resources": [{"uri": "mem://a", "name": "a", "description": "A."}, {"uri": 5}]})


def list_templates(id_, _):
    answer(id_, {"resourceTemplates": [{"uriTemplate": "mem://{x}", "name": "any"}]})


def list_prompts(id_, _):
    arguments = [{"name": "who", "description": "Whom.", "required": True}]
    answer(
        id_, {"prompts": [{"name": "greet", "description": "Greets.", "arguments": arguments}, {"title": "nameless"}]}
    )


def get_prompt(id_, params):
    who = params.get("arguments", {}).get("who")
    messages = [{"role": "user", "content": {"type": "text", "text": f"Hello {who}"}}]
    if who == "both":
        messages.append({"role": "assistant", "content": {"type": "text", "text": "Hello you"}})
    answer(id_, {"messages": messages})


METHODS = {
    "initialize": initialize,
    "tools/list": list_tools,
    "ping": lambda id_, _: answer(id_, {}),
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
}


def main():
    if MODE in {"stays", "ignores-term"}:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "crash-at-start":
        sys.stderr.write("cannot find the configuration\n")
        sys.exit(7)
    if MODE == "hang-at-start":
        time.sleep(600)
    if MODE == "flood-at-start":
        while True:
            os.write(1, b"y" * 65536)
    while True:
        message = read()
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if MODE == "strict" and method == "server/discover":
            sys.exit(1)
        if method == "notifications/cancelled":
            cancelled.append(params["requestId"])
            if MODE == "answers-cancelled":
                text(params["requestId"], "too late")
        elif method == "tools/call":
            CALLS[params["name"]](id_, params.get("arguments") or {}, params.get("_meta") or {})
        elif method in METHODS:
            METHODS[method](id_, params)
        elif id_ is not None and method:
            send({"id": id_, "error": {"code": -32601, "message": "Method not found"}})


main()
