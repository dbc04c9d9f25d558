"""Having a person choose, through whoever answers the session's questions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ferrule.core.people import Answers, Choice, People, nobody
from ferrule.core.tool import Context
from ferrule.permissions.asker import Answer, Question, visible

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
        name = str(getattr(ctx, "name", "ask_user"))
        question = Question(
            kind="choose",
            call_id=ctx.call_id,
            name=name,
            tool="ask_user",
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
        return heard(choices, answer.values or {}) or None


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


def heard(choices: Sequence[Choice], values: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
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
