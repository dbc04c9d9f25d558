"""Filling in what a server asks for, one value after the other."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ferrule.core.errors import ConfigError
from ferrule.permissions.asker import NO, Answer, Question, visible

Typed = Callable[[str], Awaitable[str | None]]
"""Shows an offer and gives back the line that was typed; None at the end of input."""
_YES, _NO = {"y", "yes", "true", "1"}, {"n", "no", "false", "0"}


async def fill(question: Question, say: Callable[[str], None], typed: Typed) -> Answer:
    """The values, or no. An empty line takes the default, or leaves out what may be left out; `!` says no to all."""
    say("  A server asks you for this. An empty line takes what is in brackets; ! answers nothing at all.")
    required = set(question.schema.get("required") or ())
    values: dict[str, Any] = {}
    for name, about in (question.schema.get("properties") or {}).items():
        while True:
            said = await typed(_offer(name, about, optional=name not in required))
            if said is None or said == "!":
                return NO
            if not said and ("default" in about or name not in required):
                if "default" in about:
                    values[name] = about["default"]
                break
            try:
                values[name] = _fitting(name, read(said, about), about)
                break
            except ValueError as error:
                say(visible(f"  {error}"))
    return Answer(allow=True, values=values)


def _offer(name: str, about: Mapping[str, Any], *, optional: bool) -> str:
    words = about.get("title") or about.get("description") or name
    choices = _choices(about)
    kinds = (
        f" ({', '.join(_titled(choices, about))})" if choices else " (y/n)" if about.get("type") == "boolean" else ""
    )
    usual = f" [{_plain(about['default'])}]" if "default" in about else " [nothing]" if optional else ""
    return visible(f"  {words}{kinds}{usual}: ")


def _plain(default: Any) -> str:
    """A default as one would type it."""
    if isinstance(default, bool):
        return "y" if default else "n"
    if isinstance(default, list):
        return ", ".join(map(str, default))
    return default if isinstance(default, str) and default else json.dumps(default, ensure_ascii=False)


def _fitting(name: str, value: Any, about: Mapping[str, Any]) -> Any:
    """The value, where the server will take it: one that it would not would make an end of all that was typed."""
    from ferrule.arguments import misfits  # for whoever is asked by a server
    from ferrule.arguments.judge import judge

    schema = {"type": "object", "properties": {name: dict(about)}}
    try:
        judged = judge(schema)
    except ConfigError:
        return value  # what refers to other parts of the schema is looked at with the whole
    if not judged.is_valid({name: value}):
        line = misfits.lines(schema, {name: value}, judged.iter_errors({name: value}))[0]
        raise ValueError(f"It {line.removeprefix(f'{name}: ')}")
    return value


def _choices(about: Mapping[str, Any]) -> list[str]:
    held = about.get("items") if about.get("type") == "array" else about
    if not isinstance(held, Mapping):
        return []
    listed = held.get("enum") or [one.get("const") for one in held.get("oneOf") or held.get("anyOf") or ()]
    return [str(one) for one in listed if one is not None]


def _titled(choices: list[str], about: Mapping[str, Any]) -> list[str]:
    """The choices with what they mean, where the server says so."""
    held = about.get("items") if about.get("type") == "array" else about
    assert isinstance(held, Mapping)
    named = {str(one.get("const")): one.get("title") for one in held.get("oneOf") or held.get("anyOf") or ()}
    named |= dict(zip(choices, held.get("enumNames") or (), strict=False))
    return [f"{one} = {named[one]}" if named.get(one) else one for one in choices]


def read(said: str, about: Mapping[str, Any]) -> Any:
    """What was typed, as the kind of value that is wanted. Raises `ValueError` with a sentence."""
    if not said:
        raise ValueError("This one is needed.")
    choices, kind = _choices(about), about.get("type")
    if kind == "array":
        several = [one.strip() for one in said.split(",") if one.strip()]
        if choices and not set(several) <= set(choices):
            raise ValueError(f"Some of {', '.join(choices)}, with commas between them.")
        return several
    if choices and said not in choices:
        raise ValueError(f"One of {', '.join(choices)}.")
    if kind == "boolean":
        if said.lower() not in _YES | _NO:
            raise ValueError("y or n.")
        return said.lower() in _YES
    if kind in {"integer", "number"}:
        return _number(said, whole=kind == "integer")
    return said


def _number(said: str, *, whole: bool) -> int | float:
    try:
        return int(said) if whole else float(said)
    except ValueError:
        raise ValueError("A whole number." if whole else "A number.") from None
