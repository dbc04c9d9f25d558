"""Choosing among the answers that a model offers, by their numbers, or answering in own words."""

from collections.abc import Callable

from ferrule.cli.filling import Typed
from ferrule.core.people import Choice
from ferrule.permissions.asker import NO, Answer, Question, visible

_OWN = "0"
_NOTHING = "!"


async def choose(question: Question, say: Callable[[str], None], typed: Typed) -> Answer:
    """The answers, or no. An empty line leaves a question open; `!` answers nothing at all."""
    say("\nThe model asks you. An empty line leaves a question open; ! answers nothing at all.")
    values: dict[str, str | list[str]] = {}
    for choice in question.choices:
        _show(choice, say)
        said = await _answered(choice, say, typed)
        if said is None:
            return NO
        if said:
            values[choice.key] = said if choice.multiple else said[0]
    return Answer(allow=True, values=values) if values else NO


def _show(choice: Choice, say: Callable[[str], None]) -> None:
    say("")
    lines = [visible(line) for line in choice.question.splitlines()] or [""]
    head = f"[{visible(choice.header)}] " if choice.header else ""
    for line in (f"{head}{lines[0]}", *lines[1:]):
        say(f"  {line}")
    for number, option in enumerate(choice.options, 1):
        about = f" - {visible(option.description)}" if option.description else ""
        say(f"    {number}. {visible(option.label)}{about}")


async def _answered(choice: Choice, say: Callable[[str], None], typed: Typed) -> list[str] | None:
    """Labels and own words; none where it is left open, None where nothing at all is to be answered."""
    while True:
        said = await typed(_offer(choice))
        if said is None or said == _NOTHING:
            return None
        if not said:
            return []
        chosen = picked(choice, said)
        if isinstance(chosen, str):
            say(f"  {chosen}")
            continue
        if "" not in chosen:
            return chosen
        own = await typed("  In your own words: ")
        if own is None:
            return None
        if own:
            return [*filter(None, chosen), own]


def _offer(choice: Choice) -> str:
    if not choice.options:
        return f"  Your answer{f' ({visible(choice.placeholder)})' if choice.placeholder else ''}: "
    numbers = f"1-{len(choice.options)}, several with commas between them" if choice.multiple else "A number"
    return f"  {numbers}{', or 0 or text for your own words' if choice.free else ''}: "


def picked(choice: Choice, said: str) -> list[str] | str:
    """The labels that a line names by number or by name, or the line itself as own words; empty for a `0`.

    A sentence where the line is no answer.
    """
    if not choice.options:
        return [said]
    labels = [option.label for option in choice.options]
    numbered = {str(number): label for number, label in enumerate(labels, 1)} | ({_OWN: ""} if choice.free else {})
    pieces = [piece.strip() for piece in said.split(",") if piece.strip()] if choice.multiple else [said]
    are_numbers = bool(pieces) and all(piece.isascii() and piece.isdigit() for piece in pieces)
    numbers = [piece.lstrip("0") or _OWN for piece in pieces] if are_numbers else []
    # First: a label may be a number too, and the numbers are what is offered.
    if numbers and numbered.keys() >= set(numbers):
        return list(dict.fromkeys(numbered[number] for number in numbers))
    by_name = {label.casefold(): label for label in labels}
    if choice.kind == "yesno":
        by_name |= {label[:1].casefold(): label for label in labels}
    if said.casefold() in by_name:
        return [by_name[said.casefold()]]
    if choice.free and not numbers:
        return [said]
    own = " Type 0 to answer in your own words." if choice.free else ""
    return f"The answers are 1 to {len(labels)}.{own}"
