"""What the user is asked before something of a server is used, in full: nothing is approved that was not shown."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple

from ferrule.output.clean import clean
from ferrule.sources.mcp.expand import variables
from ferrule.sources.mcp.server import Layer, ListedPrompt, ListedTool, Server


class Approval(NamedTuple):
    """One question about a server."""

    server: str
    layer: Layer
    about: Literal["start", "tools"]
    text: str
    """All that is approved by a yes."""


Approve = Callable[[Approval], Awaitable[bool]]


class Difference(NamedTuple):
    """A tool, a prompt or the instructions: new, or reading otherwise than they did."""

    kind: Literal["tool", "prompt", "instructions"]
    name: str
    """Empty for a server's instructions: it has but one text of them."""
    old: str | None
    """Its definition as it was approved; None where it is new, and empty where only its hash is left."""
    new: str


def start_question(server: Server, folder: str, *, is_changed: bool) -> Approval:
    """May the server be started at all?"""
    import shlex  # only a question pays for it

    lines = [f"The MCP server {server.name} is configured in {server.source}."]
    if is_changed:
        lines.append("How it is started, or a file that its command line names, has CHANGED since you approved it.")
    if server.url:
        lines.append(f"It would be talked to at {server.url}")
        lines += [f"  with the header {name}: {value}" for name, value in server.headers.items()]
    else:
        lines += ["It would run this program, with your own rights:", f"  {shlex.join((server.command, *server.args))}"]
        lines.append(f"in {server.cwd or folder}")
        lines += [f"  with the variable {name}={value}" for name, value in server.env.items()]
    if names := variables(server):
        lines.append(f"It would get the values of {', '.join(names)} from your environment.")
    return Approval(server.name, server.layer, "start", clean("\n".join(map(_one_line, lines))))


def tools_question(server: Server, differences: Sequence[Difference], *, is_first: bool = False) -> Approval:
    """May tools, prompts and instructions be used that are new, or that changed?

    What a server lists first is pinned as it is, but for the instructions of a server that others wrote.
    """
    lines = [f"The MCP server {server.name} offers something else than you approved."]
    if is_first:
        lines = [f"The MCP server {server.name} has instructions, which the model would read in every session."]
    for one in differences:
        what, has = f"{one.kind} {one.name}".rstrip(), "have" if one.kind == "instructions" else "has"
        if one.old is None:
            lines += [f"New {what}:", _indented(one.new)]
        elif not one.old:
            lines += [f"The {what} {has} CHANGED; what was approved is not known any more:", _indented(one.new)]
        else:
            lines += [f"The {what} {has} CHANGED:", _indented(_difference(one.old, one.new))]
    return Approval(server.name, server.layer, "tools", clean("\n".join(lines)))


def _difference(old: str, new: str) -> str:
    from ferrule.support.diff import diff  # only a question pays for it

    text = diff("definition", f"{old}\n", f"{new}\n")
    return text[text.find("@@") :]


def tool_text(tool: ListedTool | None) -> str:
    """A tool's definition as a person reads it, whole."""
    if tool is None:
        return ""
    import json  # only a question pays for it

    parts = [tool.words or "(no description)", json.dumps(tool.schema, indent=1, sort_keys=True, ensure_ascii=False)]
    if tool.hints or tool.title:
        parts.append(json.dumps({"title": tool.title, **tool.hints}, sort_keys=True, ensure_ascii=False))
    if tool.output_schema is not None:
        parts.append(f"Results: {json.dumps(tool.output_schema, sort_keys=True, ensure_ascii=False)}")
    return "\n".join(parts)


def prompt_text(prompt: ListedPrompt | None) -> str:
    """A prompt's definition as a person reads it."""
    if prompt is None:
        return ""
    needs = [f"  {name}{' (required)' if needed else ''}: {words}" for name, words, needed in prompt.arguments]
    return "\n".join([prompt.words or "(no description)", *needs])


def _one_line(text: str) -> str:
    """A value with line breaks in it must not look like more lines of ours."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
