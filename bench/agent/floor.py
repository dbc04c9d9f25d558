"""The barest loop: `http.client`, direct file and subprocess calls, no policy, no store, nothing checked.

python -m bench.agent.floor PORT MODEL FOLDER
"""

import http.client
import json
import subprocess
import sys
from typing import Any


def run(port: int, model: str, folder: str) -> None:
    line = http.client.HTTPConnection("127.0.0.1", port)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do it."}]
    while True:
        body = json.dumps({"model": model, "max_tokens": 1000, "stream": True, "messages": messages})
        line.request("POST", "/v1/messages", body, {"Content-Type": "application/json"})
        content = _heard(line.getresponse())
        messages.append({"role": "assistant", "content": content})
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": _call(use["name"], use["input"], folder)}
            for use in uses
        ]
        messages.append({"role": "user", "content": results})


def _heard(answer: http.client.HTTPResponse) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    pieces = ""
    for line in answer:
        if not line.startswith(b"data: "):
            continue
        said = json.loads(line[6:])
        if said["type"] == "content_block_start":
            blocks.append(said["content_block"])
            pieces = ""
        elif said["type"] == "content_block_delta":
            pieces += said["delta"].get("partial_json") or said["delta"].get("text", "")
        elif said["type"] == "content_block_stop":
            if blocks[-1]["type"] == "tool_use":
                blocks[-1]["input"] = json.loads(pieces)
            else:
                blocks[-1]["text"] = pieces
    answer.read()  # so that the connection is free for the next
    return blocks


def _call(name: str, given: dict[str, Any], folder: str) -> str:
    if name == "Read":
        with open(given["file_path"], encoding="utf-8") as file:
            return "".join(f"{number:6}\t{text}" for number, text in enumerate(file, 1))
    if name == "Grep":
        return subprocess.run(
            ["rg", "-l", given["pattern"], folder], capture_output=True, text=True, check=False
        ).stdout
    if name == "Bash":
        done = subprocess.run(["bash", "-c", given["command"]], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr
    with open(given["file_path"], encoding="utf-8") as file:
        text = file.read()
    with open(given["file_path"], "w", encoding="utf-8") as file:
        file.write(text.replace(given["old_string"], given["new_string"]))
    return "ok"


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], sys.argv[3])
