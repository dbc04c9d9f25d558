"""A model on loopback that streams at once, and takes the time between its last byte and the first of the next body.

    python -m bench.agent.server      prints its port, then answers until its standard input ends

It speaks Anthropic's Messages. What it answers is in the model's name: `read*8*20` is the scene `read`, with 8 calls
in a message, for 20 turns. `GET /times` gives what it took down, in seconds, and forgets it.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

FOLDER = os.environ.get("BENCH_FOLDER", "")
SCENES: dict[str, Any] = {
    "read": lambda at, _: ("Read", {"file_path": f"{FOLDER}/small{at % 8}.py"}),
    "mixed": lambda at, _: (
        ("Read", {"file_path": f"{FOLDER}/small{at}.py"}) if at % 2 else ("Grep", {"pattern": f"value_{at}"})
    ),
    "bash": lambda _, turn: ("Bash", {"command": "true" if turn % 2 else "true "}),
    "edit": lambda _, turn: (
        "Edit",
        {
            "file_path": f"{FOLDER}/large.py",
            "old_string": f"line 1000 {turn}\n",
            "new_string": f"line 1000 {turn + 1}\n",
        },
    ),
    "edit_read": lambda _, turn: (
        ("Read", {"file_path": f"{FOLDER}/large.py"}) if turn == 0 else SCENES["edit"](0, turn - 1)
    ),
}
_USAGE = {"input_tokens": 0, "output_tokens": 1}


def events(model: str, turn: int) -> bytes:
    """The answer to the `turn`th question of a conversation, from 0."""
    scene, calls, most = model.split("*")
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if turn < int(most):
        for at in range(int(calls)):
            name, given = SCENES[scene](at, turn)
            start = {"type": "tool_use", "id": f"toolu_{turn}_{at}", "name": name, "input": {}}
            blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(given)}))
    else:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}))
    message = {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "usage": _USAGE,
    }
    said: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (start, delta) in enumerate(blocks):
        said += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if turn < int(most) else "end_turn"
    said += [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": _USAGE}, {"type": "message_stop"}]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in said).encode()


class Server:
    """One listener; a conversation is told from another by how many answers its body holds."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.firsts: list[float] = []
        self._sent = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first = await reader.read(1)
                arrived = time.perf_counter()
                if not first:
                    return
                head = first + await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    self._tell(writer)
                    continue
                await self._answer(head, arrived, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def _tell(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"times": self.times, "firsts": self.firsts}).encode()
        self.times, self.firsts = [], []
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _answer(
        self, head: bytes, arrived: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        fields = {}
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            fields[name.strip().lower()] = value.strip()
        if b"content-length" in fields:
            body = await reader.readexactly(int(fields[b"content-length"]))
        else:
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
        asked = json.loads(body)
        turn = sum(message["role"] == "assistant" for message in asked["messages"])
        if turn:
            self.times.append(arrived - self._sent)
        else:
            self.firsts.append(time.time())
        said = events(asked["model"], turn)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
        )
        await writer.drain()
        self._sent = time.perf_counter()


async def main() -> None:
    server = Server()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
