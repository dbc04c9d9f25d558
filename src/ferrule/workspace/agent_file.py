"""One kind of subagent: what a file such as `.claude/agents/reviewer.md` says of it.

Whoever wrote the file, it only ever takes away: what is written to keep something out and cannot be understood makes
the whole file unusable.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.subagents import Subagent
from ferrule.workspace.skill import MOST_DESCRIPTION_CHARS, Unusable, heading, rules, shown

MOST_BYTES = 32 << 10
"""A longer file is no prompt."""
SHORT_MODELS = ("sonnet", "opus", "haiku")
"""What families call their models in short; the settings say which is meant."""
INHERIT = "inherit"
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
_KNOWN = frozenset({"name", "description", "tools", "disallowedtools", "model", "permissionmode", "maxturns"})
_HARMLESS = frozenset({"color"})
"""Says how it looks elsewhere; nothing is lost without it."""
_MOST_MODEL_CHARS = 200
_MOST_TURNS = 10_000

Layer = Literal["user", "project"]


class AgentFile(NamedTuple):
    """A kind of subagent and where it was found."""

    agent: Subagent
    layer: Layer
    """Whose it is. What lies inside the workspace is the project's."""
    file: str
    warnings: tuple[str, ...] = ()
    """What was wrong with it though it can be used, each as the end of a sentence about the file."""


def read_agent(text: str, *, file: str, layer: Layer, models: Collection[str] = ()) -> AgentFile:
    """Understand a file. `models` are those that the settings name: a project chooses among them only.

    Raises: Unusable.
    """
    if (size := len(text.encode(errors="replace"))) > MOST_BYTES:
        raise Unusable(f"it has {size:,} bytes, and {MOST_BYTES:,} is the most")
    header = heading(text)
    return _agent_file(header.values, header.body, file=file, layer=layer, models=models)


def given_agent(name: str, values: Mapping[str, Any]) -> AgentFile:
    """A kind that the user's program describes itself, in the words of the files. Raises: Unusable."""
    rest = {key: value for key, value in values.items() if key != "prompt" and value is not None}
    if isinstance(rest.get("maxTurns"), int):
        rest["maxTurns"] = str(rest["maxTurns"])
    body = values.get("prompt")
    said = {**rest, "name": name}
    return _agent_file(said, body if isinstance(body, str) else "", file="the program", layer="user", models=())


def _agent_file(values: Mapping[str, Any], body: str, *, file: str, layer: Layer, models: Collection[str]) -> AgentFile:
    said = _said(values)
    name = _text(said, "name")
    if re.fullmatch(_NAME, name) is None:
        raise Unusable(
            f"its name {shown(name)[:80]!r} is not made of letters, digits and hyphens" if name else _lacks("name")
        )
    description = shown(_text(said, "description"))[:MOST_DESCRIPTION_CHARS]
    if not description:
        raise Unusable(_lacks("description"))
    system = _visible(body).strip()
    if not system:
        raise Unusable("it says nothing below its front matter, where the system prompt belongs")
    warnings = [
        f"what it says about {shown(key)[:80]} has no effect here"
        for key in values
        if _plain(key) not in _KNOWN | _HARMLESS
    ]
    agent = Subagent(
        name=name,
        model=_model(said, layer, models, warnings),
        tools=_given(said, warnings),
        system=system,
        description=description,
        denied=_denied(said, warnings),
        max_turns=_turns(said, warnings),
        mode=_mode(said),
    )
    return AgentFile(agent, layer, file, tuple(warnings))


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values by plain keys: `disallowed-tools` and `disallowedTools` are one."""
    said: dict[str, Any] = {}
    for key, value in values.items():
        if _plain(key) in said and _plain(key) in _KNOWN:
            raise Unusable(f"its front matter says {shown(key)} twice, and only one of the two would count")
        said[_plain(key)] = value
    return said


def _plain(key: str) -> str:
    return key.strip().lower().replace("-", "").replace("_", "")


def _lacks(key: str) -> str:
    return f"its front matter has no {key}"


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise Unusable(f"its {key} is no text")
    return (value or "").strip()


def _visible(text: str) -> str:
    """The text without characters that cannot be seen: a reader of the file would not have read them either."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " if char.isspace() else "" for char in text)


def _model(said: Mapping[str, Any], layer: Layer, models: Collection[str], warnings: list[str]) -> str:
    model = _text(said, "model")
    if model.lower() in {"", INHERIT}:
        return ""
    if model.lower() in SHORT_MODELS:
        return model.lower()
    if layer == "user" or model in models:
        return model[:_MOST_MODEL_CHARS]
    # Where prompts are sent to is not for a repository to say.
    warnings.append(
        f"its model {shown(model)[:80]!r} is not used: a project may only say {', '.join(SHORT_MODELS)}, {INHERIT} "
        "or a model that the setting models.roles names"
    )
    return ""


def _given(said: Mapping[str, Any], warnings: list[str]) -> tuple[str, ...] | None:
    """The tools that it may have; all where it says nothing. A list that is empty gives none."""
    if "tools" not in said:
        return None
    given: list[str] = []
    for name in _names(said["tools"], "tools"):
        if "(" in name:
            warnings.append(f"its tool {shown(name)[:80]} is left out: a tool is given whole or not at all")
        else:
            given.append(name)
    return tuple(_of_servers(given))


def _denied(said: Mapping[str, Any], warnings: list[str]) -> tuple[str, ...]:
    denied: list[str] = []
    for name in _names(said.get("disallowedtools"), "disallowedTools"):
        if "(" in name:
            warnings.append(f"it disallows {shown(name)[:80]}, which takes the whole tool away here")
        denied.append(name.partition("(")[0].strip())
    return tuple(_of_servers(denied))


def _names(value: Any, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in listed):
        raise Unusable(f"its {key} are no list of names")
    found = rules(value.strip().strip("[]") if isinstance(value, str) else value)
    if any(not one.isprintable() or one.count("(") != one.count(")") or one.startswith("(") for one in found):
        raise Unusable(f"its {key} cannot be read")
    return found


def _of_servers(names: list[str]) -> list[str]:
    """A server's name alone means all its tools."""
    return [
        f"{name.removesuffix('__')}__*" if re.fullmatch(r"mcp__(?:(?!__).)+(?:__)?", name) else name for name in names
    ]


def _turns(said: Mapping[str, Any], warnings: list[str]) -> int | None:
    text = _text(said, "maxturns")
    if not text:
        return None
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_TURNS:
        return int(text)
    warnings.append(
        f"its maxTurns {shown(text)[:20]!r} is no number from 1 to {_MOST_TURNS:,}, and the usual limit holds"
    )
    return None


def _mode(said: Mapping[str, Any]) -> str:
    text = _text(said, "permissionmode")
    if not text:
        return ""
    found = next((mode for mode in _MODES if _plain(mode) == _plain(text)), None)
    if found is None:
        raise Unusable(f"its permissionMode {shown(text)[:40]!r} is none of {', '.join(_MODES)}")
    return found
