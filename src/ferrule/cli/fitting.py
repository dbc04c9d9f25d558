"""What `ferrule run` may be told beside the session's options: rules, tools and words for this one run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ferrule.agent.session import Session
    from ferrule.permissions.modes import ModeConfig

F = TypeVar("F", bound=Callable[..., Any])
FITTING = ("allowed_tools", "disallowed_tools", "tools", "append_system_prompt", "system_prompt")
"""The names under which they arrive."""

_OPTIONS = (
    click.option(
        "--allowed-tools",
        "--allowedTools",
        "allowed_tools",
        metavar="RULES",
        multiple=True,
        help='Rules that allow calls in this run, with commas between them: "Read,Bash(git log:*)".',
    ),
    click.option(
        "--disallowed-tools",
        "--disallowedTools",
        "disallowed_tools",
        metavar="RULES",
        multiple=True,
        help="The same that refuse calls.",
    ),
    click.option("--tools", metavar="NAMES", help='The built-in tools of this run: "Read,Grep"; "" for none.'),
    click.option("--append-system-prompt", metavar="TEXT", default="", help="More words for the system prompt."),
    click.option("--system-prompt", metavar="TEXT", default="", help="Words in the place of the system prompt."),
)


def fitting_options(command: F) -> F:
    """Add them to a command; `Fitting` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Fitting:
    """What was said, for the session that it was said about."""

    def __init__(
        self,
        *,
        allowed_tools: tuple[str, ...],
        disallowed_tools: tuple[str, ...],
        tools: str | None,
        append_system_prompt: str,
        system_prompt: str,
    ) -> None:
        self._allowed = rules_in(allowed_tools)
        self._denied = rules_in(disallowed_tools)
        self._tools = tools
        self._more = append_system_prompt
        self.words = system_prompt
        self.extra: tuple[str, ...] = ()
        """Tools that the session has beside those."""

    @property
    def mode(self) -> "ModeConfig | None":
        """The tools that the session has; None where nothing is said about them."""
        if self._tools is None or self._tools.strip() == "default":
            return None
        from ferrule.permissions.modes import ModeConfig  # for whoever says so

        names = (*rules_in([self._tools]), *self.extra)
        return ModeConfig(include_tools=names, allow_mcp=True, allow_toolbox=True)

    def append(self, words: str) -> None:
        """More words, from elsewhere."""
        self._more = "\n\n".join(filter(None, (self._more, words)))

    def fit(self, session: "Session") -> None:
        """Have it hold for an open session. Raises: ConfigError for a rule that nobody understands."""
        engine, setup = session.engine, session.agent.talk.setup
        if self._allowed or self._denied:
            around = engine.sources.around
            if self._denied:
                around.policing.deny(engine.policy, around.services, self._denied, source="--disallowed-tools")
            understood = around.policing.allow(engine.policy, self._allowed, source="--allowed-tools")
            for text in self._allowed:
                if text not in understood:
                    session.agent.talk.warn(
                        f"--allowed-tools: the rule {text!r} is not understood, and allows nothing."
                    )
        setup.system = self.words or setup.system
        if self._more:
            setup.system = f"{setup.system}\n\n{self._more}"
        session.agent.talk.tools_changed()  # what is refused is not shown, and what stands above is weighed anew


def rules_in(texts: "tuple[str, ...] | list[str]") -> list[str]:
    """The rules in texts that have commas or spaces between them; those in parentheses belong to a rule."""
    found, depth, begun = [], 0, ""
    for character in ",".join(texts):
        depth = max(0, depth + (character == "(") - (character == ")"))
        if depth == 0 and character in ", \t\n":
            found.append(begun)
            begun = ""
        else:
            begun += character
    return [text for text in (*found, begun) if text]
