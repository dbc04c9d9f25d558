"""Who answers when the policy says ask: a person at a terminal, a callback, or nobody (which means no)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ferrule.core.access import Access
from ferrule.permissions.kinds import KINDS, KindName

if TYPE_CHECKING:
    from ferrule.core.people import Choice


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked."""

    kind: KindName
    call_id: str
    name: str
    """The tool, in the session's words."""
    tool: str = ""
    """The canonical tool."""
    summary: str
    """One line: what would happen."""
    touches: tuple[Access, ...]
    input: Mapping[str, Any] = {}
    """The arguments in the canonical tool's names and in their final form."""
    given: Mapping[str, Any] | None = None
    """The arguments as the model gave them, in the names of the session; None where that is `input`."""
    changes: tuple[str, ...] = ()
    """What would be written: the rows of a diff of the files as they are, with line numbers."""
    folder: str = ""
    """For `folder`: the folder that a yes opens, for this session."""
    why: str = ""
    """One sentence: why the policy asks."""
    effects: tuple[str, ...] = ()
    """What a command is seen to read and write, each as `writes build/out.txt`; it may touch more."""
    proposals: tuple[str, ...] = ()
    """The rules that "always" would save; without any it holds for the very same call, in this session."""
    who: str = ""
    """The subagent whose call it is; empty for the session's own."""
    schema: Mapping[str, Any] = {}
    """For `values`: the JSON Schema of what the server asks for. For `choose`: the same for the choices."""
    choices: "tuple[Choice, ...]" = ()
    """For `choose`: what the model asks. Whoever shows their texts makes them `visible`."""


class Answer(msgspec.Struct, frozen=True):
    """What the person said."""

    allow: bool
    always: bool = False
    """Do not ask about the like again in this session."""
    message: str = ""
    """A reason for the model."""
    input: Mapping[str, Any] | None = None
    """For a call that is allowed: the input that it is to be made with instead, in the words of `Question.given`.

    It is decided about anew, without another question: rules that deny, and guarded files, hold for it too.
    """
    stop: bool = False
    """For a call that is not allowed: does the user want the work to end with it?"""
    values: Mapping[str, Any] | None = None
    """For a question of the kind `values`: what the user filled in.

    For one of the kind `choose`: the key of each choice that was answered → a label, a list of labels, or own words.
    For one of the kind `plan`: with `mode` `acceptEdits`, edits in the workspace need no question from then on.
    """


YES = Answer(allow=True)
NO = Answer(allow=False)
ABSENT = Answer(allow=False, message="There is nobody to ask in this session.")
"""For a question of the kind `choose`: nobody was asked, which is not the same as somebody who does not answer."""
UNAPPROVED = Answer(
    allow=False,
    message="Nobody is here to approve the plan, so the plan is what this session comes to: say what it is and stop.",
)


class Asker(Protocol):
    """Answers questions; it may take its time. One that has `is_person` set puts every question to a person."""

    async def ask(self, question: Question) -> Answer: ...


class Nobody:
    """There is nobody to ask: everything that would ask is denied."""

    async def ask(self, question: Question) -> Answer:
        if question.kind != "call":
            return {"choose": ABSENT, "plan": UNAPPROVED}.get(question.kind, NO)
        return Answer(
            allow=False,
            message=f"Nobody can be asked, so this was not allowed: {stated(question.summary)}"
            "On the command line, --yes allows it; in a program, ask= answers questions.",
        )


class Everybody:
    """The user said yes beforehand to every call. It widens nothing: folders outside stay outside."""

    async def ask(self, question: Question) -> Answer:
        if question.kind == "choose":
            return ABSENT
        if question.kind == "plan" and question.input.get("begun_by") == "model":
            return YES  # what held before it began to plan holds again, and nothing more
        return YES if question.kind == "call" else UNAPPROVED if question.kind == "plan" else NO


Callback = Callable[[Question], bool | Answer | Awaitable[bool | Answer]]


class Listener:
    """A function of the library's user answers."""

    def __init__(self, function: Callback) -> None:
        self._function = function

    async def ask(self, question: Question) -> Answer:
        said = self._function(question)
        if isinstance(said, Awaitable):
            said = await said
        if isinstance(said, Answer):
            return said
        # Who says yes to whatever is asked has not said so about a secret: that takes an `Answer`.
        return Answer(allow=said is True and question.kind != "secret")


def answering(asker: Asker) -> Asker:
    """Who answers in the end: one that only hands questions on says in `behind` to whom."""
    while (behind := getattr(asker, "behind", None)) is not None:
        asker = behind
    return asker


def is_for(asker: Asker, question: Question) -> bool:
    """May this one answer? What only a person may allow goes to no program, whatever it was told beforehand."""
    return not KINDS[question.kind].only_persons or getattr(asker, "is_person", False) is True


def stated(summary: str) -> str:
    """A summary as the end of a sentence that another one follows; several rows end with their line."""
    return f"{summary}\n" if "\n" in summary else f"{summary}. "


def visible(text: str) -> str:
    """A text in which nothing steers the screen that it is shown on, or hides there."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
