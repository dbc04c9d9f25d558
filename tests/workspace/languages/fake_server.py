"""A small language server for tests. It knows one language: `def name(` or `function name(` defines a name, and every
line with `helper("` is wrong. What it is told at its start, or in the variable FAKE, makes it misbehave.

It is a program of its own: nothing is imported but the standard library.
"""

import json
import os
import re
import socket
import sys
import threading
import time

OUT = sys.stdout.buffer
LOCK = threading.Lock()


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with LOCK:
        OUT.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        OUT.flush()


def receive():
    length = 0
    while (line := sys.stdin.buffer.readline()) not in {b"\r\n", b""}:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


class Fake:
    def __init__(self):
        self.options = json.loads(os.environ.get("FAKE", "{}"))
        self.texts = {}
        self.versions = {}
        self.heard = []
        self.answers = []
        self.asked = 0
        self.results = 0

    def serve(self):
        if "words" in self.options:
            print(self.options["words"], flush=True)
        if "complains" in self.options:
            sys.stderr.write("oh no\n" * (self.options["complains"] // 6))
            sys.stderr.flush()
        while (message := receive()) is not None:
            method, number = message.get("method"), message.get("id")
            if method is None:
                self.answers.append(message)
                continue
            self.heard.append([method, message.get("params")])
            if method == "exit":
                return
            if method == "initialized" and self.options.get("deaf"):
                time.sleep(600)
            if self.options.get("crash_on") == method and self.may_crash():
                print("I fall over now", file=sys.stderr, flush=True)
                os._exit(3)
            if self.options.get("garble_on") == method:
                sys.stdout.buffer.write(b"Content-Length: 5\r\n\r\n{{{{{")
                sys.stdout.buffer.flush()
                continue
            if self.options.get("stall_on") == method:
                continue
            answer = getattr(self, "on_" + re.sub(r"\W", "_", method), None)
            if number is None:
                if answer:
                    answer(message.get("params"))
            elif answer is None:
                send({"id": number, "error": {"code": -32601, "message": f"no {method}"}})
            else:
                send({"id": number, **answer(message.get("params"))})

    def may_crash(self):
        once = self.options.get("once")
        if once is None:
            return True
        if os.path.exists(once):
            return False
        open(once, "w").close()
        return True

    def on_initialize(self, params):
        self.options |= params.get("initializationOptions") or {}
        if self.options.get("refuse"):
            return {"error": {"code": -32000, "message": "not today"}}
        capabilities = {
            "positionEncoding": self.options.get("encoding", "utf-16"),
            "textDocumentSync": {"openClose": True, "change": self.options.get("change", 1), "save": True},
            "definitionProvider": True,
            "hoverProvider": False,
        }
        if not self.options.get("push") and not self.options.get("late_pull"):
            capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
        return {"result": {"capabilities": capabilities, "serverInfo": {"name": "fake"}}}

    def on_initialized(self, params):
        methods = [
            "fake/heard",
            "fake/answers",
            "fake/flood",
            "fake/probe",
            "fake/again",
            *self.options.get("register", ()),
        ]
        methods += ["textDocument/diagnostic"] if self.options.get("late_pull") else []
        wanted = [{"id": f"id {method}", "method": method} for method in methods]
        send({"id": "registers", "method": "client/registerCapability", "params": {"registrations": wanted}})
        for number, (method, given) in enumerate(self.options.get("asks", ())):
            send({"id": f"ask {number}", "method": method, "params": given})
        if self.options.get("busy"):
            self.progress("begin")

    def progress(self, kind):
        value = {"kind": kind} | ({"title": "Reading"} if kind == "begin" else {})
        send({"method": "$/progress", "params": {"token": "reading", "value": value}})

    def on_shutdown(self, params):
        return {"result": None}

    def on_textDocument_didOpen(self, params):
        document = params["textDocument"]
        self.put(document["uri"], document["version"], document["text"])

    def on_textDocument_didChange(self, params):
        document = params["textDocument"]
        self.put(document["uri"], document["version"], params["contentChanges"][-1]["text"])

    def on_textDocument_didClose(self, params):
        del self.texts[params["textDocument"]["uri"]]

    def put(self, uri, version, text):
        self.texts[uri], self.versions[uri] = text, version
        if self.options.get("push"):
            threading.Thread(target=self.publish, args=(uri, version, text), daemon=True).start()

    def on_workspace_didChangeWatchedFiles(self, params):
        """Some tell after a while what another file has done to this one."""
        if self.options.get("republish"):
            for uri, version in self.versions.items():
                threading.Timer(0.05, self.publish, [uri, version, 'helper("broken from elsewhere")']).start()

    def publish(self, uri, version, text):
        time.sleep(self.options.get("late_seconds", 0))
        told = {"uri": uri, "diagnostics": problems(text)}
        if self.options.get("versions", True):
            told["version"] = version
        send({"method": "textDocument/publishDiagnostics", "params": told})

    def on_textDocument_diagnostic(self, params):
        uri = params["textDocument"]["uri"]
        known = f"{self.versions[uri]}"
        if params.get("previousResultId") == known:
            return {"result": {"kind": "unchanged", "resultId": known}}
        return {"result": {"kind": "full", "resultId": known, "items": problems(self.texts[uri])}}

    def on_textDocument_definition(self, params):
        self.asked += 1
        if self.options.get("busy") and self.asked == 1:
            threading.Timer(0.05, self.progress, ["end"]).start()
            return {"result": None}
        if self.options.get("modified") and self.asked <= self.options["modified"]:
            return {"error": {"code": -32801, "message": "content modified"}}
        uri, place = params["textDocument"]["uri"], params["position"]
        lines = self.texts[uri].split("\n")
        found = next(
            (word for word in re.finditer(r"\w+", lines[place["line"]]) if word.end() > place["character"]), None
        )
        for number, line in enumerate(lines):
            defined = re.search(r"(?:def|function) (\w+)\(", line)
            if found and defined and defined[1] == found[0]:
                start, end = ({"line": number, "character": at} for at in defined.span(1))
                return {"result": [{"uri": uri, "range": {"start": start, "end": end}}]}
        return {"result": []}

    def on_fake_heard(self, params):
        return {"result": self.heard}

    def on_fake_answers(self, params):
        return {"result": self.answers}

    def on_fake_probe(self, params):
        """What it can reach: each is the name of an error, or nothing."""
        return {"result": {name: attempt(name, params) for name in ("write", "secret", "network", "environment")}}

    def on_fake_flood(self, params):
        for number in range(params["count"]):
            told = {"uri": f"file:///flood/{number}", "diagnostics": []}
            send({"method": "textDocument/publishDiagnostics", "params": told})
        return {"result": params["count"]}


def attempt(name, params):
    try:
        if name == "write":
            open(params["write"], "w").close()
        elif name == "secret":
            open(params["secret"]).close()
        elif name == "network":
            socket.create_connection(("127.0.0.1", params["port"]), timeout=5).close()
        else:
            return sorted(key for key in os.environ if key in params["environment"])
    except OSError as error:
        return type(error).__name__
    return ""


def problems(text):
    found = []
    for number, line in enumerate(text.split("\n")):
        at = line.find('helper("')
        if at >= 0:
            start, end = {"line": number, "character": at + 7}, {"line": number, "character": at + 10}
            found.append({"range": {"start": start, "end": end}, "severity": 1, "message": "wrong", "source": "fake"})
    return found


if __name__ == "__main__":
    Fake().serve()
