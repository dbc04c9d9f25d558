"""Define the kinds of questions, who answers them, and how a person chooses between options.

A question is answered by a person at a terminal, by a callback, or by nobody, which means no. Each kind says what
the question is about, what a yes means, and whose yes counts.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from ferrule.core.access import Access
from ferrule.core.services import Answers, Choice, People, nobody
from ferrule.core.tool import Context
from ferrule.tools import ASK_USER

KindName = Literal[
    "call", "folder", "outside", "host", "protected", "planted", "secret", "server", "values", "choose", "plan"
]
"""`call`: may this call run? `folder`: may the session go into this folder outside the workspace?

`outside`: may what the sandbox seems to have stopped run again outside of it?
`host`: may commands reach these hosts? "Always" keeps them for the workspace; `values` with `run` as `outside` says no
to the hosts, and lets the command run outside the sandbox.
`protected`: may this file be written, though programs run or obey it by themselves?
`planted`: may such a file stay, which a command has written?
`secret`: may this secret file be read?
`server`: may this MCP server be started, or may its tools be used as they are now?
`values`: what does the user answer to a server that asks for something?
`choose`: what does the user answer to the model, which asks them to choose?
`plan`: does the user approve the plan in `input`, and with it what `effects` say?
"""


class QuestionKind(NamedTuple):
    """What holds for all questions of a kind."""

    offer: str = "Allow it?"
    """What a yes means, at the end of the question."""
    only_persons: bool = False
    """Does nothing but a person's own answer count? Then no program, callback or `--yes` is asked at all."""
    is_whole: bool = False
    """Is all of what it is about shown at once, or the question not asked?"""
    has_always: bool = False
    """May the answer hold for the like of it from then on?"""
    comes_first: bool = False
    """Is it asked before anything of the call has run, so that the call can be made again with the answer?"""


KINDS: Mapping[str, QuestionKind] = MappingProxyType(
    {
        "call": QuestionKind("Allow it?", has_always=True, comes_first=True),
        "folder": QuestionKind("Open this folder for the session?", comes_first=True),
        "outside": QuestionKind("Run it outside the sandbox?"),
        "host": QuestionKind("Let commands reach it?", has_always=True),
        "protected": QuestionKind("Write it?", only_persons=True, is_whole=True, comes_first=True),
        "planted": QuestionKind("Let it stay?", only_persons=True, is_whole=True),
        "secret": QuestionKind("Let this file be read?", only_persons=True, comes_first=True),
        "server": QuestionKind("Approve it, from now on?", is_whole=True),
        "values": QuestionKind("Answer it?"),
        "choose": QuestionKind(comes_first=True),
        "plan": QuestionKind("Approve the plan?", is_whole=True, comes_first=True),
    }
)


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
            message=f"Nobody can be asked, so this was not allowed: {end_sentence(question.summary)}"
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


class CallbackAsker:
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


def final_asker(asker: Asker) -> Asker:
    """Who answers in the end: one that only hands questions on says in `behind` to whom."""
    while (behind := getattr(asker, "behind", None)) is not None:
        asker = behind
    return asker


def is_for(asker: Asker, question: Question) -> bool:
    """May this one answer? What only a person may allow goes to no program, whatever it was told beforehand."""
    return not KINDS[question.kind].only_persons or getattr(asker, "is_person", False) is True


def end_sentence(summary: str) -> str:
    """A summary as the end of a sentence that another one follows; several rows end with their line."""
    return f"{summary}\n" if "\n" in summary else f"{summary}. "


def visible(text: str) -> str:
    """A text in which nothing steers the screen that it is shown on, or hides there."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


OWN_WORDS = "{} (in your own words)"
"""What the schema calls the place for own words beside the labels of a choice."""
_MOST_CHARS = 10_000
_SILENT = "The user does not want to be asked in this session."


class Choosers(People):
    """Puts the choices to the asker as one question."""

    def __init__(
        self,
        put: Callable[[Question], Awaitable[Answer]],
        blocked: Callable[[str, str, str], None],
        is_silent: Callable[[], bool] = bool,
    ) -> None:
        """`put` asks. `blocked` is told, before, which call waits: its id, its name and what is asked.

        `is_silent` tells whether the permission mode says no to whatever would ask.
        """
        self._put = put
        self._blocked = blocked
        self._is_silent = is_silent

    async def choose(self, choices: Sequence[Choice], ctx: Context) -> Answers | None:
        if self._is_silent():
            raise nobody(_SILENT)
        name = str(getattr(ctx, "name", ASK_USER))
        question = Question(
            kind="choose",
            call_id=ctx.call_id,
            name=name,
            tool=ASK_USER,
            summary=visible(f"The model asks: {' '.join(choice.question for choice in choices)}"),
            touches=(),
            choices=tuple(choices),
            schema=schema_of(choices),
        )
        self._blocked(ctx.call_id, name, question.summary)
        answer = await self._put(question)
        if answer.allow is not True:
            if answer.message:
                raise nobody(answer.message)
            return None
        return parse_answers(choices, answer.values or {}) or None


def schema_of(choices: Sequence[Choice]) -> dict[str, Any]:
    """The choices as a flat schema, for hosts that know forms only. Nothing has to be answered."""
    properties: dict[str, Any] = {}
    for choice in choices:
        title = {"title": choice.header} if choice.header else {}
        if not choice.options:
            hint = f" ({choice.placeholder})" if choice.placeholder else ""
            properties[choice.key] = {"type": "string", **title, "description": f"{choice.question}{hint}"}
            continue
        lines = [f"- {one.label}: {one.description}" if one.description else f"- {one.label}" for one in choice.options]
        about = {**title, "description": "\n".join([choice.question, *lines])}
        labels = {"type": "string", "enum": [one.label for one in choice.options]}
        properties[choice.key] = {"type": "array", "items": labels, **about} if choice.multiple else {**labels, **about}
        if choice.free:
            own = {"type": "string", **title, "description": f"{choice.question} An answer that is not among these."}
            properties[OWN_WORDS.format(choice.key)] = own
    return {"type": "object", "properties": properties}


def parse_answers(choices: Sequence[Choice], values: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The answers in what a host gave back; what is no answer to anything that was asked is left out."""
    out: dict[str, tuple[str, ...]] = {}
    for choice in choices:
        chosen = _labels(choice, values.get(choice.key))
        own = _labels(choice, values.get(OWN_WORDS.format(choice.key))) if choice.options and choice.free else ()
        # Whoever may choose one thing and also says something means what they say.
        said = tuple(dict.fromkeys((*chosen, *own))) if choice.multiple else (own or chosen)[:1]
        if said:
            out[choice.key] = said
    return out


def _labels(choice: Choice, value: Any) -> tuple[str, ...]:
    """A value as labels and own words."""
    if isinstance(value, list | tuple):
        return tuple(one for member in value for one in _labels(choice, member) if isinstance(member, str))
    if isinstance(value, bool):
        value = "Yes" if value else "No"
    text = str(value).strip()[:_MOST_CHARS] if isinstance(value, str | int | float) else ""
    if not text:
        return ()
    known = {option.label.casefold(): option.label for option in choice.options}
    if text.casefold() in known:
        return (known[text.casefold()],)
    several = _several(text.casefold(), known) if choice.multiple else ()
    return several or ((text,) if choice.free or not choice.options else ())


def _several(text: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Labels with commas between them, all of the text or nothing; a label may have a comma of its own."""
    for label in sorted(known, key=len, reverse=True):
        if text == label:
            return (known[label],)
        if text.startswith(label) and (rest := text[len(label) :].lstrip()).startswith(","):
            others = _several(rest[1:].strip(), {one: shown for one, shown in known.items() if one != label})
            if others:
                return (known[label], *others)
    return ()
