"""An agent of one's own: a tool, questions, an interruption, and going on later. Run it: python examples/agent.py

It prints:

> I count them.
> count_lines: done
> There are 2 lines.
> [end]
> may it: Write: write b.txt
> Write: rejected-by-user
> Then not.
> [end]
> Let me think
> [interrupted]
> going on after 10 turns
> Where were we? At the lines of a.txt.
> [end]
"""

import asyncio
import tempfile
from pathlib import Path

from ferrule import Access, Answer, Context, Done, Limits, Question, Session, tool
from ferrule.agent import AgentEvent, Called, Ended, Spoke, TurnEnded
from ferrule.core.content import Text
from ferrule.models.cues import calls, hangs, said
from ferrule.models.recorder import Scripted


@tool(touches=lambda path: [Access.read(path)])
def count_lines(path: str, ctx: Context) -> int:
    """Count the lines of a file."""
    with open(ctx.path(path), encoding="utf-8") as file:
        return sum(1 for _ in file)


def ask(question: Question) -> Answer:
    print("may it:", question.summary)
    return Answer(allow=False, message="Nothing is to be written today.")


class Teller:
    """Prints what happens, and interrupts the answer that does not come to an end."""

    session: Session

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case Spoke():
                print(event.text, end="")
                if event.text.endswith("think"):
                    self.session.agent.interrupt()
            case TurnEnded() if any(isinstance(part, Text) for part in event.said.parts):
                print()
            case Called(call=Done(reply=reply)):
                print(f"{reply.name}: {reply.status}")
            case Ended():
                print(f"[{event.reason}]")


async def main(folder: str, state: str) -> None:
    model = Scripted(  # in the place of "anthropic:claude-opus-5-5", so that this needs no key
        calls(("count_lines", {"path": "a.txt"}), text="I count them."),
        said("There are 2 lines."),
        calls(("Write", {"file_path": "b.txt", "content": "2\n"})),
        said("Then not."),
        hangs("Let me think"),
        said("Where were we? At the lines of a.txt."),
    )
    tell = Teller()
    async with Session(
        folder,
        model=model,
        dialect="claude",
        tools=[count_lines],
        ask=ask,
        limits=Limits(turns=10),
        state=state,
        on_event=tell,
    ) as tell.session:
        for prompt in ("How many lines has a.txt?", "Write that down.", "And now?"):
            await tell.session.agent.run(prompt)
        thread = tell.session.agent.thread

    async with Session(
        folder, model=model, dialect="claude", resume=thread, state=state, on_event=tell
    ) as tell.session:
        print(f"going on after {len(tell.session.agent.turns)} turns")
        await tell.session.agent.run("Go on.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as kept:
        Path(made, "a.txt").write_text("one\ntwo\n")
        asyncio.run(main(made, kept))
