"""Answer questions, and listen to what happens. Run it: python examples/questions.py

It prints:

> asked: create_file: write a.txt
> create_file blocked-on-user
> create_file started
> create_file done
> asked: run `echo hello > b.txt`
> Bash blocked-on-user
> Bash rejected-by-user: Only files, please.
"""

import asyncio
import os
import tempfile

from ferrule import Answer, Blocked, Done, Engine, Event, Question, Settings, Started
from ferrule.settings import SandboxSettings


def ask(question: Question) -> Answer:
    if question.kind == "call" and question.name == "create_file":
        return Answer(allow=True)
    return Answer(allow=False, message="Only files, please.")


def listen(event: Event) -> None:
    if isinstance(event, Blocked):
        print(f"asked: {event.question.replace(os.getcwd(), 'the workspace')}")
        print(event.name, "blocked-on-user")
    elif isinstance(event, Started):
        print(event.name, "started")
    elif isinstance(event, Done):
        why = f": {event.reply.error.message}" if event.reply.error else ""
        print(f"{event.name} {event.reply.status}{why}")


async def main() -> None:
    # Confined commands would run without a question: what they change can be undone.
    settings = Settings(sandbox=SandboxSettings(auto_allow=False))
    async with Engine(".", ask=ask, settings=settings, on_event=listen) as engine:
        await engine.call("create_file", path="a.txt", content="hello\n")
        await engine.call("Bash", cmd="echo hello > b.txt")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        os.chdir(os.path.realpath(made))
        asyncio.run(main())
