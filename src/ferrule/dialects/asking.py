"""How families ask the user to choose, and how they read the answers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ferrule.core.face import Values
from ferrule.dialects.arrange import members, turned

if TYPE_CHECKING:
    from ferrule.core.people import Chosen

_QUESTION = {name: name for name in ("question", "header", "options")}


def asking(**names: str) -> dict[str, Any]:
    """`lift` and `lower` for a family's questions: what it calls their members, beside those that all call alike."""
    every = {**_QUESTION, **names}

    def lift(values: Values) -> Values:
        return members(values, "questions", every)

    def lower(values: Values) -> Values:
        return members(values, "questions", turned(every))

    return {"lift": lift, "lower": lower}


def answered(outcome: "Chosen") -> str:
    """Each question with its answer, a line each."""
    rows = (
        f'- "{choice.question}": {", ".join(said) if said else "(left open; decide yourself)"}'
        for choice, said in outcome.answers
    )
    return "\n".join(["The user has answered:", *rows])


def answers(outcome: "Chosen") -> Mapping[str, Any]:
    """The same by question."""
    return {"answers": {choice.question: ", ".join(said) for choice, said in outcome.answers if said}}


def answers_by_id(outcome: "Chosen") -> Mapping[str, Any]:
    """The same by id, with several answers apart."""
    return {"answers": {choice.key: {"answers": list(said)} for choice, said in outcome.answers}}
