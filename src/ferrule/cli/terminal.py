"""Asking a person at the terminal, while the event loop goes on."""

import asyncio
import sys

from ferrule.permissions.asker import Answer, Question


class Terminal:
    """Asks on standard error, reads a line from standard input."""

    async def ask(self, question: Question) -> Answer:
        print(f"\n{question.summary}", file=sys.stderr)
        if question.kind == "folder":
            print("Open this folder for the session? [y]es, [n]o: ", end="", file=sys.stderr, flush=True)
        else:
            print("Allow? [y]es, [a]lways in this session, [n]o: ", end="", file=sys.stderr, flush=True)
        said = (await _line()).strip().lower()
        return Answer(allow=said in ("y", "yes", "a", "always"), always=said in ("a", "always"))


async def _line() -> str:
    """One line; end of input is an empty one, which means no."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not ready.done():
            ready.set_result(sys.stdin.readline())

    try:
        loop.add_reader(sys.stdin, read)
    except (NotImplementedError, OSError):
        return await asyncio.to_thread(sys.stdin.readline)
    try:
        return await ready
    finally:
        loop.remove_reader(sys.stdin)
