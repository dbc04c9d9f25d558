"""A front end for browsers: one session, its events as server-sent events. Run it: python examples/web.py

`GET /?task=...` answers with everything that happens, as it happens; `GET /answer?allow=1` says yes to the question
that is open. Here a client in the same program stands for the browser; a real server asks who it is first. It prints:

> began
> spoke I write it down.
> question Write: write note.txt
> done Write done
> spoke It is written.
> ended end
"""

import asyncio
import contextlib
import os
import tempfile
from urllib.parse import parse_qs, urlsplit

import msgspec

from ferrule import Answer, Question, Session
from ferrule.agent import AgentEvent
from ferrule.models.cues import calls, said
from ferrule.models.recorder import Scripted

HEAD = b"HTTP/1.1 %s\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PATIENCE_SECONDS = 60.0


class Page:
    """One browser at a time: what it is sent, and what it is asked."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.answer: asyncio.Future[bool] | None = None

    def send(self, event: AgentEvent | dict[str, str]) -> None:
        """Every event is a struct, so that it can be written as JSON as it is."""
        self.events.put_nowait(b"data: " + msgspec.json.encode(event) + b"\n\n")

    async def ask(self, question: Question) -> Answer:
        self.answer = asyncio.get_running_loop().create_future()
        self.send({"event": "question", "summary": question.summary})
        try:
            return Answer(allow=await asyncio.wait_for(self.answer, PATIENCE_SECONDS))
        except TimeoutError:
            return Answer(allow=False, message="The page did not answer.")


async def serve(session: Session, page: Page, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    asked = urlsplit((await reader.readline()).split()[1].decode())
    values = parse_qs(asked.query)
    with contextlib.closing(writer):
        if asked.path == "/answer":
            is_open = page.answer is not None and not page.answer.done()
            if is_open and page.answer is not None:
                page.answer.set_result(values.get("allow") == ["1"])
            writer.write(HEAD % (b"204 No Content" if is_open else b"409 Conflict"))
            return
        writer.write(HEAD % b"200 OK")
        work = asyncio.create_task(session.agent.run(values["task"][0]))
        work.add_done_callback(lambda _: page.events.put_nowait(b""))
        try:
            while chunk := await page.events.get():
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            session.agent.interrupt()  # the browser has gone: nobody sees what would still be done
        await work


async def browser(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /?task=Remember+the+milk. HTTP/1.1\r\n\r\n")
    words = ""
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        event = msgspec.json.decode(line.removeprefix(b"data: "))
        match event["event"]:
            case "began":
                print("began")
            case "spoke":
                words += event["text"]
            case "turn-ended":
                print("spoke", words)
                words = ""
            case "question":
                print("question", event["summary"])
                answering, asking = await asyncio.open_connection("127.0.0.1", port)
                asking.write(b"GET /answer?allow=1 HTTP/1.1\r\n\r\n")
                await answering.read()
                asking.close()
            case "called" if event["call"]["event"] == "done":
                print("done", event["call"]["name"], event["call"]["reply"]["status"])
            case "ended":
                print("ended", event["reason"])
    writer.close()


async def main(folder: str) -> None:
    model = Scripted(  # in the place of "anthropic:claude-opus-5-5", so that this needs no key
        calls(("Write", {"file_path": "note.txt", "content": "milk\n"}), text="I write it down."),
        said("It is written."),
    )
    page = Page()
    async with Session(folder, model=model, dialect="claude", ask=page, on_event=page.send) as session:
        server = await asyncio.start_server(lambda r, w: serve(session, page, r, w), "127.0.0.1", 0)
        async with server:
            await browser(server.sockets[0].getsockname()[1])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(main(os.path.realpath(made)))
