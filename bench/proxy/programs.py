"""The programs beside the proxy that `bench/proxy/load.py` starts: an upstream that streams, and a bare relay.

`python -m bench.proxy.programs upstream` or `… relay UPSTREAM-PORT`; each prints its port.
"""

import asyncio
import json
import socket
import sys
from typing import Any

import httpcore2
import uvicorn

PIECES = 200
"""Events of one long answer."""
WORDS = "some words of an answer "
HOLD = "hold"
"""A prompt with this word in it is answered by the first event, and then by nothing."""
SHORT = "short"
"""A prompt with this word in it is answered by one word."""


def _texts(pieces: int) -> list[str]:
    """They differ: LiteLLM ends an answer that says the same again and again."""
    return [f"{WORDS}{at:03} " for at in range(pieces)]


def messages(pieces: int) -> list[bytes]:
    """The events of a Messages stream."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0}
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    values: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        block,
        *({**delta, "delta": {"type": "text_delta", "text": text}} for text in _texts(pieces)),
        {"type": "content_block_stop", "index": 0},
        stop,
        {"type": "message_stop"},
    ]
    return [f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode() for value in values]


def chat(pieces: int) -> list[bytes]:
    """The chunks of a Chat stream."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        value = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        return f"data: {json.dumps(value)}\n\n".encode()

    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    last = f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n".encode()
    words = [chunk({"content": text}) for text in _texts(pieces)]
    return [chunk({"role": "assistant", "content": ""}), *words, chunk({}, "stop"), last, b"data: [DONE]\n\n"]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            body = await reader.readexactly(int(length[15:]))
            events = _CHAT if b"/chat/completions" in head else _MESSAGES
            if SHORT.encode() in body:
                events = _SHORT_CHAT if events is _CHAT else _SHORT_MESSAGES
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for at, event in enumerate(events):
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await writer.drain()
                if HOLD.encode() in body and at == 3:
                    await reader.read()
                    return
                # Every event is a packet of its own, as models speak.
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


_MESSAGES, _CHAT, _SHORT_MESSAGES, _SHORT_CHAT = messages(PIECES), chat(PIECES), messages(1), chat(1)


async def upstream() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def relay(port: int) -> None:
    """Pass requests and answers on, byte by byte, with the same server as the proxy has."""
    pool = httpcore2.AsyncConnectionPool(max_connections=2_000, max_keepalive_connections=500)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        wanted = (b"content-type", b"x-api-key", b"anthropic-version", b"authorization")
        headers = [pair for pair in scope["headers"] if pair[0] in wanted]
        headers += [(b"host", b"127.0.0.1"), (b"content-length", str(len(body)).encode())]
        url = httpcore2.URL(scheme=b"http", host=b"127.0.0.1", port=port, target=scope["raw_path"])
        async with pool.stream("POST", url, headers=headers, content=body) as answer:
            kept = [pair for pair in answer.headers if pair[0].lower() == b"content-type"]
            await send({"type": "http.response.start", "status": answer.status, "headers": kept})
            async for piece in answer.aiter_stream():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    # Without it the words behind a head wait for the client's system to confirm the head: 40 ms, and no relay's own.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    if sys.argv[1] == "upstream":
        asyncio.run(upstream())
    else:
        relay(int(sys.argv[2]))
