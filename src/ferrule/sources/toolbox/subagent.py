"""Subagents in a toolbox: a Markdown file is a tool that hands a task to another model."""

from typing import Any

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.subagents import Subagent, Subagents
from ferrule.core.tool import Context, Tool
from ferrule.output.clean import clean
from ferrule.sources.toolbox.description import MOST_WORDS_CHARS
from ferrule.sources.toolbox.naming import PREFIX
from ferrule.support.frontmatter import front_matter

MOST_BYTES = 1 << 20
"""A longer file is no prompt."""


class SubagentArgs(Args, frozen=True, kw_only=True):
    prompt: str
    description: str = ""


class SubagentTool(Tool[SubagentArgs, str]):
    """One subagent. Its own calls are decided on one by one, so that it touches nothing by itself."""

    args = SubagentArgs
    source = "toolbox"
    timed = False
    waits = True

    def __init__(self, path: str, subagent: Subagent, *, name: str, can_run: bool) -> None:
        """`can_run`: has the session a model for it? It is not shown to anybody where it has none."""
        self.name = name
        self.origin = path
        self.subagent = subagent
        self.words = subagent.description or f"Hand a task to the subagent {subagent.name} and get its last message."
        self.exposure = None if can_run else "hidden"
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "prompt": {
                    "type": "string",
                    "description": "The task, with all that the subagent needs to know: it sees nothing else.",
                },
                "description": {"type": "string", "description": "The task in a few words, for the user."},
            },
            "required": ["prompt"],
        }

    def access(self, args: SubagentArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the tool's signature
        return ()

    async def run(self, args: SubagentArgs, ctx: Context) -> str:
        try:
            subagents = ctx.need(Subagents)
        except TypeError:  # the host has given none
            subagents = Subagents()
        return await subagents.run(self.subagent, args.prompt, ctx)


def subagent(text: str, name: str) -> Subagent | None:
    """The subagent that a file describes; None for a file about something else. Raises ValueError with a sentence."""
    header = front_matter(text.removeprefix("\ufeff"), lenient=True)
    if header.problem and "subagent" in text:
        raise ValueError(f"Its front matter cannot be read: {header.problem}.")
    said = header.values
    if said.get("type") != "subagent":
        return None
    system = clean(header.body).strip()
    if not system:
        raise ValueError("It says nothing below its front matter, where the system prompt of the subagent belongs.")
    model, description = said.get("model") or "", said.get("description") or ""
    if not isinstance(model, str) or not isinstance(description, str):
        raise ValueError("Its model and its description are texts.")  # noqa: TRY004 - it is about a file
    return Subagent(
        name=name.removeprefix(PREFIX),
        model=model.strip(),
        tools=_tools(said),
        system=system,
        description=clean(description).strip()[:MOST_WORDS_CHARS],
    )


def _tools(said: dict[str, Any]) -> tuple[str, ...] | None:
    key = next((key for key in ("tools", "toolPatterns") if key in said), None)
    if key is None:
        return None
    # A restriction that is empty or cannot be read must not become none.
    named = said[key] or []
    if isinstance(named, str):
        named = named.strip("[]").split(",")
    if not isinstance(named, list) or not all(isinstance(one, str) and one.strip() for one in named):
        raise ValueError("Its tools are not a list of names.")
    return tuple(one.strip() for one in named)
