"""The conversation of twenty turns: what a user asks, and what the model says and does, in no program's words."""

from dataclasses import dataclass, field, replace
from typing import Literal

LONG = "".join(f"Line {at} of a long answer: größer, 日本, 👩\u200d💻.\n" for at in range(400))
HOOKED = "hooked.txt"
"""The file that a hook writes a line into behind each call of the shell."""
PARALLEL = 20


@dataclass(frozen=True)
class Deed:
    """Something that the model does by a tool of the client's."""

    kind: Literal["read", "write", "edit", "shell", "picture", "agent", "wait"]
    path: str = ""
    text: str = ""
    """What is written, the new text of an edit, the command line, or the prompt of a subagent."""
    old: str = ""
    shows: str = ""
    """Stands in the result that the upstream is sent."""


@dataclass(frozen=True)
class Step:
    """One answer of the model."""

    words: str = ""
    thinking: str = ""
    deeds: tuple[Deed, ...] = ()
    refusals: tuple[int, ...] = ()
    """Statuses with which it is refused before it is given."""
    ending: Literal["whole", "cut", "held"] = "whole"
    """Cut: the connection breaks behind the first half, and who asks again gets the words. Held: nothing follows its
    first half until the other side has gone."""


@dataclass(frozen=True)
class Turn:
    """One prompt."""

    name: str
    prompt: str
    steps: tuple[Step, ...]
    picture: bool = False
    needs: str = ""
    """What a client must have for it: pictures, agents or hooks."""
    files: dict[str, str] = field(default_factory=dict)
    """What files hold afterwards."""

    @property
    def ending(self) -> str:
        return self.steps[-1].ending

    @property
    def text(self) -> str:
        return f"[[{self.name}]] {self.prompt}"


def canary(at: int) -> str:
    return f"canary-{at:02}-{at * 7919 % 1000:03}"


FILES = {
    "notes.txt": "The notes say: walrus.\n",
    "code.py": "def total(values):\n    return sum(values) + 1\n",
    **{f"many/{at:02}.txt": f"{canary(at)}\n" for at in range(PARALLEL)},
}
"""The project, beside `picture.png`."""
QUOTED = 'She said "no".\n\tA tab, a \\ and größer 日本 👩\u200d💻.\n'
_READS = tuple(Deed("read", f"many/{at:02}.txt", shows=canary(at)) for at in range(PARALLEL))

TURNS = (
    Turn("t01", "Say hello.", (Step("Hello, I am the model."),)),
    Turn("t02", "Think about it.", (Step("Größe: 日本.", thinking="Let me think about größer things."),)),
    Turn("t03", "Read notes.txt.", (Step("", deeds=(Deed("read", "notes.txt", shows="walrus"),)), Step("A walrus."))),
    Turn(
        "t04",
        "Write made.txt.",
        (Step("I write it.", deeds=(Deed("write", "made.txt", QUOTED),)), Step("Written.")),
        files={"made.txt": QUOTED},
    ),
    Turn(
        "t05",
        "Mend code.py.",
        (
            Step(thinking="Read it first.", deeds=(Deed("read", "code.py", shows="sum(values) + 1"),)),
            Step(deeds=(Deed("edit", "code.py", "sum(values)\n", "sum(values) + 1\n"),)),
            Step("Mended."),
        ),
        files={"code.py": "def total(values):\n    return sum(values)\n"},
    ),
    Turn(
        "t06",
        "Run a command.",
        (
            Step("", deeds=(Deed("shell", text="printf 'it ran\\n' > ran.txt && cat ran.txt", shows="it ran"),)),
            Step("It ran."),
        ),
        files={"ran.txt": "it ran\n"},
    ),
    Turn("t07", "Read all twenty files of many.", (Step("All at once.", deeds=_READS), Step("Twenty canaries."))),
    Turn("t08", "What is in this picture?", (Step("A dot."),), picture=True, needs="pictures"),
    Turn(
        "t09",
        "Look at picture.png.",
        (Step("", deeds=(Deed("picture", "picture.png"),)), Step("A dot again.")),
        needs="pictures in results",
    ),
    Turn(
        "t10",
        "Let another agent read the notes.",
        (
            Step("", deeds=(Deed("agent", text="[[child]] Read notes.txt and report.", shows="reported: walrus"),)),
            Step("The agent has reported."),
        ),
        needs="agents",
    ),
    Turn(
        "t11",
        "Run a command that is watched.",
        (Step("", deeds=(Deed("shell", text="echo watched", shows="watched"),)), Step("It was watched.")),
        needs="hooks",
    ),
    Turn("t12", "Read what is not there.", (Step(deeds=(Deed("read", "absent.txt"),)), Step("It is not there."))),
    Turn("t13", "Go on, once there is room.", (Step("There was room.", refusals=(429,)),)),
    Turn("t14", "Go on, once you are awake.", (Step("Awake.", refusals=(529, 529, 529, 503)),)),
    Turn("t15", "Tell me much.", (Step("These words will be cut in their middle.", ending="cut"),)),
    Turn(
        "t16",
        "Write after.txt.",
        (Step("", deeds=(Deed("write", "after.txt", "after a cut\n"),)), Step("It goes on.")),
        files={"after.txt": "after a cut\n"},
    ),
    Turn("t17", "Talk until I stop you.", (Step("I talk and talk, until somebody stops me.", ending="held"),)),
    Turn(
        "t18",
        "Run a command.",
        (
            Step("", deeds=(Deed("shell", text="echo still > still.txt && cat still.txt", shows="still"),)),
            Step("Still here."),
        ),
        files={"still.txt": "still\n"},
    ),
    Turn(
        "t19",
        "Write half.txt.",
        (Step("I did not.", deeds=(Deed("write", "half.txt", "half of a call " * 40),), ending="cut"),),
    ),
    Turn(
        "t20",
        "Tell me all, and write last.txt.",
        (
            Step(LONG, thinking="Everything, then.", deeds=(Deed("write", "last.txt", LONG),)),
            Step("That was all."),
        ),
        files={"last.txt": LONG},
    ),
)
WAITING = (
    Step("", deeds=(Deed("agent", text="[[child]] Read notes.txt and report."),)),
    Step("", deeds=(Deed("wait", shows="reported: walrus"),)),
    Step("The agent has reported."),
)
"""How the turn of the agent goes where a client's agents work beside it."""
CHILD = Turn(
    "child",
    "",
    (Step("", deeds=(Deed("read", "notes.txt", shows="walrus"),)), Step("reported: walrus")),
)


def turns(*, waits: bool) -> tuple[Turn, ...]:
    """The conversation for one client."""
    return tuple(replace(turn, steps=WAITING) if waits and turn.needs == "agents" else turn for turn in TURNS)


ABSENT = ("half.txt",)
"""Half a call must not be run."""
