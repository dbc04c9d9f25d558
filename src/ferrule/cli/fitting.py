"""What `ferrule run` may be told beside the session's options: rules, tools and words for this one run."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ferrule.cli.candidates import tools
from ferrule.core.errors import ConfigError

if TYPE_CHECKING:
    from ferrule.agent.session import Session
    from ferrule.permissions.modes import ModeConfig

F = TypeVar("F", bound=Callable[..., Any])
FITTING = (
    "allowed_tools",
    "disallowed_tools",
    "tools",
    "append_system_prompt",
    "append_system_prompt_file",
    "system_prompt",
    "system_prompt_file",
)
"""The names under which they arrive."""

_OPTIONS = (
    click.option(
        "--allowed-tools",
        "--allowedTools",
        "allowed_tools",
        metavar="RULES",
        shell_complete=tools,
        multiple=True,
        help='Rules that allow calls in this run, with commas between them: "Read,Bash(git log:*)".',
    ),
    click.option(
        "--disallowed-tools",
        "--disallowedTools",
        "disallowed_tools",
        metavar="RULES",
        shell_complete=tools,
        multiple=True,
        help="The same that refuse calls.",
    ),
    click.option(
        "--tools",
        metavar="NAMES",
        shell_complete=tools,
        help='The built-in tools of this run: "Read,Grep"; "" for none.',
    ),
    click.option("--append-system-prompt", metavar="TEXT", default="", help="More words for the system prompt."),
    click.option(
        "--append-system-prompt-file", type=click.Path(), metavar="FILE", default="", help="The same from a file."
    ),
    click.option("--system-prompt", metavar="TEXT", default="", help="Words in the place of the system prompt."),
    click.option("--system-prompt-file", type=click.Path(), metavar="FILE", default="", help="The same from a file."),
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
        append_system_prompt_file: str,
        system_prompt: str,
        system_prompt_file: str,
    ) -> None:
        self._allowed = rules_in(allowed_tools)
        self._denied = rules_in(disallowed_tools)
        self._tools = tools
        self._more = append_system_prompt
        self.append(_words_in(append_system_prompt_file))
        self.words = _words_in(system_prompt_file) or system_prompt
        self.extra: tuple[str, ...] = ()
        """Tools that the session has beside those."""
        self.is_done: Callable[[], bool] | None = None
        """Is the model not to be asked again after calls that give all that was wanted?"""

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
        setup.system = session.prompt(self.words)
        if self._more:
            setup.system = f"{setup.system}\n\n{self._more}"
        if self.is_done is not None:
            setup.is_done = self.is_done
        session.agent.talk.tools_changed()  # what is refused is not shown, and what stands above is weighed anew


def _words_in(path: str) -> str:
    """The words of a file; none where none is named. Raises: ConfigError."""
    if not path:
        return ""
    try:
        with open(os.path.expanduser(path), encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"The system prompt {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"The system prompt {path} is not UTF-8 text.") from error


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
