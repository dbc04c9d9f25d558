"""Ask the user questions in the chat: approvals, and choices that the model offers.

A question is shown whole in the scrollback, and answered with one key that was pressed after that. Choices are
numbered options, several if that is wanted, or the user's own words.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from ferrule.cli.prompts import Draft, approve_draft, covers, draft, fill, offer_text, touches, truncate_summary
from ferrule.cli.talk.markdown import is_whole
from ferrule.cli.talk.text import BLANK, Line, line, sentence, visible_rows, whole_rows, wide, wrap_diff_rows, wrap_text
from ferrule.core.services import Choice
from ferrule.permissions import KINDS, NO, YES, Answer, Question, visible
from ferrule.permissions.question import headline, question_rows, script
from ferrule.tools.plan import unfit


class Person(Protocol):
    """Whoever is asked."""

    def say(self, *lines: Line) -> None: ...

    def tell(self, text: str, style: str = "") -> None: ...

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str: ...

    async def words(self, offer: str) -> str | None: ...


async def choose(question: Question, person: Person) -> Answer:
    """The answers, by the key of each choice; no where the person does not want to answer any."""
    values: dict[str, Any] = {}
    for number, choice in enumerate(question.choices, 1):
        count = f" ({number} of {len(question.choices)})" if len(question.choices) > 1 else ""
        header = f"{choice.header}: " if choice.header else ""
        person.say(BLANK, line(("yellow bold", f"? The model asks{count}:")))
        person.tell(f"{header}{choice.question}", "bold")
        for at, option in enumerate(choice.options, 1):
            about = f": {option.description}" if option.description else ""
            person.tell(f"  {at}. {option.label}{about}")
        said = await _one(choice, person)
        if said is None:
            person.say(line(("dim", "  → no answer")), BLANK)
            return NO
        if said:
            values[choice.key] = list(said) if choice.multiple else said[0]
        person.say(line(("dim", f"  → {', '.join(said) or 'left open'}")), BLANK)
    return Answer(allow=True, values=values) if values else NO


async def _one(choice: Choice, person: Person) -> tuple[str, ...] | None:
    """The labels, or own words; empty for one that is left open, None for no answer at all."""
    numbers = [str(at) for at in range(1, min(9, len(choice.options)) + 1)]
    chosen: list[str] = []
    again = False
    while True:
        keys = [(number, "") for number in numbers]
        if choice.multiple and numbers:
            keys.append(("d", "one"))
        if choice.free or not numbers:
            keys.append(("o", "wn words"))
        keys += [("l", "eave open"), ("n", "o answer")]
        have = f" (chosen: {', '.join(sorted(chosen))})" if chosen else ""
        key = await person.key(f"{'Choose any' if choice.multiple else 'Choose one'}{have}:", keys, again=again)
        again = True
        if key in numbers and choice.multiple:
            chosen.remove(key) if key in chosen else chosen.append(key)
        elif key in numbers:
            return (choice.options[int(key) - 1].label,)
        elif key == "d":
            return tuple(choice.options[int(one) - 1].label for one in sorted(chosen))
        elif key == "o":
            own = await person.words(visible(choice.placeholder) or "In your own words:")
            if own:
                return (*(choice.options[int(one) - 1].label for one in sorted(chosen)), own)
        else:
            return None if key == "n" else ()


_MOST_ROWS = 20
_INDENT = "    "
_KEY_COLUMNS = 16
"""What is around the words of a key in a row of its own."""
_EDIT_COMMAND = "Edit the command. Enter runs it, ctrl-G opens your editor, ctrl-C goes back:"
_REASON = "The user did not allow this and says: "
_AS_EDITED = ", as you have edited it"
_SAID = {
    "y": "yes",
    "a": "always",
    "n": "no",
    "o": "run it outside the sandbox",
}


class QuestionConsole(Protocol):
    """Where a person can be asked."""

    @property
    def width(self) -> int: ...

    def print(self, text: str) -> None: ...

    def print_lines(self, *lines: Line) -> None: ...

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str: ...

    async def words(self, offer: str, start: str = "") -> str | None: ...

    async def edit(self, text: str, suffix: str) -> str | None: ...


class InPerson:
    """Asks whoever sits there, one question after the other."""

    is_person = True

    def __init__(self, front: QuestionConsole, *, markdown: Callable[[str], str]) -> None:
        self._front = front
        self._markdown = markdown
        self._one_at_a_time = asyncio.Lock()
        self.on_shown: Callable[[str], object] = lambda _: None
        """Told the id of a call whose changes the question shows."""
        self.on_printed: Callable[[], object] = lambda: None
        self.on_asked: Callable[[str], object] = lambda _: None
        """Told what is asked, before it is."""
        self.on_waiting: Callable[[str, bool], object] = lambda _call, _is_asked: None
        """Told when a question about a call is put, and when it is answered."""

    async def ask(self, question: Question) -> Answer:
        async with self._one_at_a_time:
            self.on_asked(question.summary)
            self.on_waiting(question.call_id, True)
            try:
                return await self._ask_by_kind(question)
            finally:
                self.on_waiting(question.call_id, False)

    async def _ask_by_kind(self, question: Question) -> Answer:
        if question.kind == "choose":
            return await choose(question, self)
        self._show(question)
        return await (self._ask_values(question) if question.kind == "values" else self._ask_decision(question))

    def say(self, *lines: Line) -> None:
        self._front.print_lines(*lines)
        self.on_printed()

    def tell(self, text: str, style: str = "") -> None:
        """A text in as many rows as it takes."""
        self.say(*(line((style, f"  {row}")) for row in wrap_text(visible_rows(text), self._front.width - 4)))

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        return await self._front.key(words, keys, again=again)

    async def words(self, offer: str) -> str | None:
        return await self._front.words(offer)

    def _show(self, question: Question) -> None:
        """What would happen, all that it would write as far as there is room, and why it is asked."""
        who = [("dim", f"  ({question.who})")] if question.who else []
        first, *rest = wrap_text(visible_rows(truncate_summary(headline(question))), self._front.width - 4)
        self.say(BLANK, line(("yellow bold", "? "), ("bold", first), *who))
        self.say(*(line("  ", row) for row in rest))
        if question.kind == "plan":
            self._show_plan(str(question.input.get("plan", "")))
        else:
            shown, more = self._first(question)
            self.say(*shown)
            if more:
                self.say(line(("dim", f"    … {more:,} more line{'s' * (more > 1)}, s shows all")))
            elif shown and not script(question):
                self.on_shown(question.call_id)
        # A plan's yes allows all of these at once, so that none may be left out.
        for row in map(visible, question.effects) if question.kind == "plan" else touches(question):
            # What is below a script must not look like a line of it.
            indent = "  " if script(question) else _INDENT
            self.say(*(line(("dim", f"{indent}{part}")) for part in wrap_text(row, self._front.width - 6)))
        if question.why:
            self.tell(question.why, "dim")

    def _show_plan(self, plan: str) -> None:
        """Drawn where that shows all of it, else as it was written: what nobody saw would be approved too."""
        drawn = self._markdown(plan)
        if is_whole(plan, drawn):
            self._front.print(f"\n{drawn}\n")
        else:
            self.say(BLANK)
            self.tell(plan)
            self.say(BLANK)

    def _first(self, question: Question) -> tuple[list[Line], int]:
        """As many rows as there is room for, and how many are left.

        They are shown to their ends: what is cut off at the edge of the screen would be allowed unseen.
        """
        shown: list[Line] = []
        every, is_whole = question_rows(question), KINDS[question.kind].is_whole
        for at, parts in enumerate(wrap_diff_rows(every, _INDENT, self._front.width)):
            if shown and len(shown) + len(parts) > _MOST_ROWS and not is_whole:
                return shown, len(every) - at
            shown += parts
        return shown, 0

    async def _ask_decision(self, question: Question) -> Answer:
        """Yes, always, no, or why not."""
        plan, made = question.input.get("plan"), draft(question)
        keys = self._keys(question, made)
        while True:
            key = await self.key(offer_text(question), keys)
            if key == "s":
                self._show_all(question)
            elif key == "e" and question.kind == "plan":
                question = await self._edit_plan(question)
            elif key == "e" and made is not None:
                if (changed := await self._edit_command(question, made)) is not None:
                    return changed
            elif (answer := await self._ask_reason() if key == "t" else _answer(key, question)) is not None:
                said = f"no: {answer.message.removeprefix(_REASON)}" if answer.message else _describe_key(key, question)
                self.say(sentence(("dim", "  → "), ("dim", said)), BLANK)
                return _with_plan(answer, question, plan)

    def _keys(self, question: Question, made: Draft | None) -> list[tuple[str, str]]:
        keys = [("y", "es (in this session)" if question.kind == "host" else "es")]
        if KINDS[question.kind].has_always:
            keys.append(("a", f"lways ({self._describe_cover(question)})"))
        if question.kind == "host":
            keys.append(("o", "utside: run it outside the sandbox, once"))
        if question.kind == "plan" and question.input.get("mode", "default") == "default":
            keys.append(("a", "ccept edits too, unasked"))
        if made is not None:
            keys.append(("e", "dit it first"))
        keys += [("n", "o"), ("t", "ell the model why not")]
        if _is_cut(question) or (question.kind != "plan" and self._first(question)[1]):
            keys.append(("s", "how all"))
        return keys

    def _show_all(self, question: Question) -> None:
        if _is_cut(question):
            self.tell(headline(question))
        self.say(*whole_rows(question_rows(question), _INDENT, self._front.width))
        if not script(question):
            self.on_shown(question.call_id)

    async def _edit_command(self, question: Question, made: Draft) -> Answer | None:
        """A yes to the command as the person has changed it; None where they thought better of it."""
        said = await self._front.words(_EDIT_COMMAND, made.text)
        if not said or not said.strip():
            return None
        if said.strip() == made.text.strip():
            self.say(line(("dim", "  → yes, unchanged")), BLANK)
            return YES
        self.say(line(("dim", "  → yes, changed to:")))
        self.say(*whole_rows(map(visible, said.split("\n")), _INDENT, self._front.width), BLANK)
        return approve_draft(question, made, said)

    async def _edit_plan(self, question: Question) -> Question:
        """The question about the plan as the person has changed it."""
        before = str(question.input.get("plan", ""))
        said = await self._front.edit(before, ".md")
        if said is None or said.strip() == before.strip():
            self.tell("The plan is as it was.", "dim")
            return question
        if problem := unfit(said):
            self.tell(f"The plan stays as it was: what you left has a fault, {problem}.", "yellow")
            return question
        question = msgspec.structs.replace(
            question,
            summary=question.summary if question.summary.endswith(_AS_EDITED) else question.summary + _AS_EDITED,
            input={**question.input, "plan": said},
        )
        self._show(question)
        return question

    def _describe_cover(self, question: Question) -> str:
        """What "always" would allow; where that is too long for the row of the keys, it is said above them, whole."""
        words = covers(question)
        if wide(words) <= self._front.width - _KEY_COLUMNS:
            return words
        self.tell(f"Always: {words}.", "dim")
        return "as said above"

    async def _ask_reason(self) -> Answer | None:
        """No, with a reason in the person's own words; None where they thought better of it."""
        said = await self.words("What should the model know? (Enter sends, ctrl-C goes back)")
        if not said:
            return None
        return Answer(allow=False, message=f"{_REASON}{visible_rows(said)}")

    async def _ask_values(self, question: Question) -> Answer:
        """The values that a server asks for; nothing that is typed already counts."""
        key = await self.key("Answer it?", [("y", "es"), ("n", "o")])
        if key == "n":
            return NO
        return await fill(question, lambda text: self.say(line(text)), self.words)


def _is_cut(question: Question) -> bool:
    return truncate_summary(headline(question)) != headline(question)


def _with_plan(answer: Answer, question: Question, before: object) -> Answer:
    """A yes to a plan that was changed is one to what it became."""
    plan = question.input.get("plan")
    if question.kind != "plan" or not answer.allow or plan == before:
        return answer
    return msgspec.structs.replace(answer, input={"plan": plan})


def _describe_key(key: str, question: Question) -> str:
    if key == "a" and question.kind == "plan":
        return "yes, and edits in the workspace need no question"
    return _SAID.get(key, key)


def _answer(key: str, question: Question) -> Answer:
    if key == "a" and question.kind == "plan":
        return Answer(allow=True, values={"mode": "acceptEdits"})
    if key == "o":
        return Answer(allow=False, values={"run": "outside"})
    return Answer(allow=True, always=True) if key == "a" else YES if key == "y" else NO
