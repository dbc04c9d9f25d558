"""Ask the user to choose."""

from collections.abc import Iterable, Sequence
from typing import Any

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import Choice, ChoiceAnswers, ChoiceKind, Option, People
from ferrule.core.tool import READS, Args, Context, Tool

MOST_QUESTIONS = 4
FEWEST_OPTIONS, MOST_OPTIONS = 2, 4
HEADER_CHARS = 12
_MOST_CHARS = {"question": 2_000, "label": 200, "description": 1_000, "id": 200}


class OptionArgs(Args, frozen=True, kw_only=True):
    label: str
    description: str = ""


class QuestionArgs(Args, frozen=True, kw_only=True):
    question: str
    header: str = ""
    options: tuple[OptionArgs, ...] = ()
    multiple: bool = False
    id: str = ""
    kind: ChoiceKind = "choice"
    placeholder: str = ""


class AskUserArgs(Args, frozen=True, kw_only=True):
    questions: tuple[QuestionArgs, ...]
    answers: dict[str, Any] | None = None
    header_chars: int = HEADER_CHARS


class AskUser(Tool[AskUserArgs, ChoiceAnswers]):
    """Waits for a person as long as that takes; only a person answers."""

    name = "ask_user"
    args = AskUserArgs
    title = "Ask the user"
    hints = READS
    timed = False

    def access(self, args: AskUserArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it touches nothing
        return ()

    async def run(self, args: AskUserArgs, ctx: Context) -> ChoiceAnswers:
        asked = ctx.param("questions")
        if wrong := list(_faults(args.questions, asked)):
            raise BadArguments("\n".join(wrong))
        if args.answers:
            ctx.note(f"{ctx.param('answers')} was ignored: only the user answers.")
        choices = [self._choice(one, args.header_chars, ctx) for one in args.questions]
        answers = await ctx.need(People).choose(choices, ctx)
        if answers is None:
            raise ToolFailure(
                "The user did not answer. Do not ask the same again: decide yourself, and say in your answer which "
                "assumption you have made.",
                code="not-answered",
            )
        return ChoiceAnswers(tuple((choice, answers.get(choice.key, ())) for choice in choices))

    def _choice(self, one: QuestionArgs, header_chars: int, ctx: Context) -> Choice:
        header = _line(one.header)
        if len(header) > header_chars:
            ctx.note(f"The header {header[:60]!r} was cut to {header_chars} characters.")
        options = tuple(Option(_line(option.label), _line(option.description)) for option in one.options)
        return Choice(
            question=_text(one.question),
            header=header[:header_chars].rstrip(),
            options={"choice": options, "text": (), "yesno": (Option("Yes"), Option("No"))}[one.kind],
            multiple=one.multiple and one.kind == "choice",
            id=_line(one.id),
            kind=one.kind,
            placeholder=_line(one.placeholder)[: _MOST_CHARS["label"]],
        )


def _faults(questions: Sequence[QuestionArgs], name: str) -> Iterable[str]:
    """What is wrong with them, a line each."""
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        yield f"{name}: has {len(questions)} questions; ask 1 to {MOST_QUESTIONS}."
    for at, one in enumerate(questions):
        where = f"{name}[{at}]"
        if not _text(one.question):
            yield f"{where}.question: is empty."
        yield from (
            f"{where}.{part}: has {len(text):,} characters; {_MOST_CHARS[part]:,} is the most."
            for part, text in (("question", one.question), ("id", one.id))
            if len(text) > _MOST_CHARS[part]
        )
        if one.kind == "choice":
            yield from _unfit(one.options, f"{where}.options")
    # Their answers could not be told apart.
    for part in ("question", "id"):
        every = [_text(getattr(one, part)) for one in questions]
        twice = sorted({text for text in every if text and every.count(text) > 1})
        yield from (f"{name}: two have the {part} {text[:80]!r}." for text in twice)
    texts = [_text(one.question) for one in questions]
    crossed = {_line(one.id) for at, one in enumerate(questions) if _line(one.id) in (*texts[:at], *texts[at + 1 :])}
    yield from (
        f"{name}: {text[:80]!r} is the id of one and the question of another." for text in sorted(crossed - {""})
    )


def _unfit(options: Sequence[OptionArgs], where: str) -> Iterable[str]:
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        yield (
            f"{where}: has {len(options)} options; offer {FEWEST_OPTIONS} to {MOST_OPTIONS}. The user can always "
            "answer in their own words."
        )
    labels = [_line(option.label).casefold() for option in options]
    if "" in labels:
        yield f"{where}: a label is empty."
    twice = sorted({label for label in labels if label and labels.count(label) > 1})
    yield from (f"{where}: two have the label {label[:80]!r}." for label in twice)
    for part in ("label", "description"):
        longest = max((len(getattr(option, part)) for option in options), default=0)
        if longest > _MOST_CHARS[part]:
            yield f"{where}: a {part} has {longest:,} characters; {_MOST_CHARS[part]:,} is the most."


def _line(text: str) -> str:
    """In one line, and nothing in it that steers a screen."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def _text(text: str) -> str:
    """The same with its line ends."""
    return "\n".join(map(_line, text.splitlines())).strip()
