"""Subagents: what runs them is the host's, for it has the model."""

from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context


class Subagent(NamedTuple):
    """A helper of the model's own kind, as a file describes it."""

    name: str
    model: str
    """The model that it wants; empty where it says nothing."""
    tools: tuple[str, ...] | None
    """Names, or globs of names, of the tools that it may have of those that its parent has; None means all of them."""
    system: str
    """Its system prompt."""
    description: str = ""


class Subagents:
    """Whoever runs them: `ctx.need(Subagents)`. A host with a model gives its own subclass."""

    async def run(self, subagent: Subagent, prompt: str, ctx: Context) -> str:  # noqa: ARG002 - subclasses use them
        """Its last message. It has no tool and no permission that its parent has not."""
        raise ToolFailure(
            f"The subagent {subagent.name} cannot be run: this session has no model to run it. Do the work yourself, "
            "with the other tools.",
            code="no-model",
        )
