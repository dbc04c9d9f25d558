"""One skill: what the front matter of its `SKILL.md` says, or what a server says of a prompt."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.support.frontmatter import FrontMatter, front_matter, is_true

FILE = "SKILL.md"
MOST_DESCRIPTION_CHARS = 1024
_MOST_WORD_CHARS = 200
_MOST_RULES = 100
_MOST_RULE_CHARS = 1000
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_UNOBEYED = ("hooks", "context", "agent", "model")

Layer = Literal["user", "project", "server"]


class Parameter(NamedTuple):
    """What a server's prompt wants to know."""

    name: str
    words: str = ""
    is_required: bool = False


class ServerPrompt(NamedTuple):
    """A prompt of an MCP server, which counts as a skill."""

    server: str
    name: str
    words: str
    parameters: tuple[Parameter, ...] = ()


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as it is on disk, or as a server offers it."""

    name: str
    description: str
    layer: Layer
    """Whose it is. What lies inside the workspace is the project's, wherever it was found."""
    trusted: bool = False
    """May it bring rules, tools and servers? The user's own may, and a project's that the user trusts."""
    place: str = ""
    """The folder of skills that it was found in."""
    folder: str = ""
    """Its own folder, real; empty for a prompt."""
    called: str = ""
    """What its folder is called where it was found, which a link may call otherwise."""
    file: str = ""
    """Its `SKILL.md`, real."""
    hint: str = ""
    """What it wants as arguments, for people."""
    for_model: bool = True
    """May a model load it?"""
    for_user: bool = True
    """May a person?"""
    rules: tuple[str, ...] = ()
    """Its `allowed-tools`: calls that it wants allowed."""
    unobeyed: Mapping[str, Any] = {}
    """What it says about hooks, a model, a context and an agent. It is kept as data and not obeyed."""
    body: str = ""
    """The instructions; only where one skill was asked for."""
    toolbox: str = ""
    """The folder of tools that it carries; as above."""
    servers: str = ""
    """The file of MCP servers that it carries; as above."""
    server: str = ""
    """For a prompt: the server that has it."""
    prompt: str = ""
    """For a prompt: its name there."""
    parameters: tuple[Parameter, ...] = ()


class Said(NamedTuple):
    """What a `SKILL.md` says, and what was wrong with it though it can be used."""

    values: dict[str, Any]
    """Fields of `Skill`."""
    warnings: tuple[str, ...]
    """Each as the end of a sentence about the file."""


class Unusable(ValueError):  # noqa: N818 - the state
    """The file is no skill; the message says why, as the end of a sentence about it."""


def heading(text: str) -> FrontMatter:
    """The front matter of a file that has to have one. Raises: Unusable."""
    header = front_matter(text, lenient=True)
    if not header.present:
        raise Unusable("it does not begin with a front matter between two lines of `---`")
    if header.problem:
        raise Unusable(f"its front matter cannot be read, for {header.problem}")
    if header.twice:
        raise Unusable(f"its front matter says {shown(header.twice[0])} twice, and only one of the two would count")
    return header


def read_skill(text: str, folder_name: str) -> Said:
    """Understand a `SKILL.md`; its folder's name counts where it has none of its own.

    Raises: Unusable.
    """
    header = heading(text)
    said = {key.strip().lower().replace("_", "-"): value for key, value in header.values.items()}
    warnings: list[str] = []
    name = _name(said.get("name"), folder_name, warnings)
    description = shown(_text(said.get("description")))
    if not description:
        raise Unusable("its front matter has no description")
    if len(description) > MOST_DESCRIPTION_CHARS:
        warnings.append(f"its description has {len(description):,} characters and was cut")
        description = description[:MOST_DESCRIPTION_CHARS]
    values = {
        "name": name,
        "description": description,
        "hint": shown(_text(said.get("argument-hint")))[:_MOST_WORD_CHARS],
        # A word that nobody understands here was to keep something out.
        "for_model": not is_true(
            said.get("disable-model-invocation"), otherwise=_says(said, "disable-model-invocation")
        ),
        "for_user": is_true(said.get("user-invocable"), otherwise=not _says(said, "user-invocable")),
        "rules": rules(said.get("allowed-tools")),
        "unobeyed": {key: said[key] for key in _UNOBEYED if said.get(key) is not None},
        "body": header.body,
    }
    return Said(values, tuple(warnings))


def from_prompt(prompt: ServerPrompt) -> Skill:
    """A server's prompt as a skill."""
    hint = " ".join(f"{one.name}=…" if one.is_required else f"[{one.name}=…]" for one in prompt.parameters)
    words = shown(prompt.words)[:MOST_DESCRIPTION_CHARS]
    return Skill(
        name=shown(f"{prompt.server}:{prompt.name}")[:_MOST_WORD_CHARS],
        description=words or f"A prompt of the server {shown(prompt.server)}.",
        layer="server",
        hint=shown(hint)[:_MOST_WORD_CHARS],
        server=prompt.server,
        prompt=prompt.name,
        parameters=prompt.parameters,
    )


def rules(value: Any) -> tuple[str, ...]:
    """The rules of `allowed-tools`: a list, or words between commas or blanks, of which parentheses keep some whole."""
    if isinstance(value, list):
        found = [one.strip() for one in value if isinstance(one, str)]
    else:
        found = _divided(value) if isinstance(value, str) else []
    return tuple(dict.fromkeys(one for one in found if one and len(one) <= _MOST_RULE_CHARS))[:_MOST_RULES]


def shown(text: str) -> str:
    """A text in one line, without characters that steer a terminal or cannot be seen."""
    return " ".join("".join(char if char.isprintable() else " " if char.isspace() else "" for char in text).split())


def is_name(name: str) -> bool:
    return re.fullmatch(_NAME, name) is not None


def _name(value: Any, folder_name: str, warnings: list[str]) -> str:
    for name in (_text(value).strip(), folder_name):
        if not name:
            continue
        if is_name(name):
            return name
        if is_name(name.lower()):
            warnings.append(f"its name {name} was taken as {name.lower()}")
            return name.lower()
        warnings.append(f"its name {shown(name)[:80]!r} is not made of small letters, digits and hyphens")
    raise Unusable(warnings[-1])


def _says(said: Mapping[str, Any], key: str) -> bool:
    return said.get(key) is not None


def _text(value: Any) -> str:
    """A value that is to be a text; `[file] [more]` is read as a list, and was meant as it is written."""
    if isinstance(value, list):
        return " ".join(f"[{one}]" for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _divided(words: str) -> list[str]:
    """The parts between commas and blanks, but for those inside of parentheses."""
    found, word, depth = [], "", 0
    for char in words:
        if depth == 0 and (char == "," or char.isspace()):
            found.append(word)
            word = ""
            continue
        depth = max(0, depth + (char == "(") - (char == ")"))
        word += char
    return [*found, word]
