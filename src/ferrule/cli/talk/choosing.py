"""What the model asks a person to choose: numbered options, several where that is wanted, or own words."""

from collections.abc import Sequence
from typing import Any, Protocol

from ferrule.cli.talk.line import BLANK, Line, line
from ferrule.core.people import Choice
from ferrule.permissions.asker import NO, Answer, Question, visible


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
