"""The flags of `ferrule run` that change settings for one session: whose files count, how a model thinks, plugins.

What `ferrule run` may be told beside the session's options: rules, tools and words for this one run.
"""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ferrule.cli.options import tools
from ferrule.core.errors import ConfigError
from ferrule.permissions import ModeConfig
from ferrule.settings import SOURCES
from ferrule.tools.skills import Unusable

if TYPE_CHECKING:
    from ferrule.agent.session import Session
    from ferrule.hooks import Hook
    from ferrule.tools.agents import AgentFile


F = TypeVar("F", bound=Callable[..., Any])
EFFORTS = ("low", "medium", "high", "xhigh", "max")
ADAPTIVE_TOKENS = 32_000
"""What a model may think that is to decide by itself how much, if it wants a number."""
_FALLBACK_RETRIES = 2
"""So often a model is asked again before another one is asked in its place."""
_ROOT = "${CLAUDE_PLUGIN_ROOT}"
_SILENT = frozenset(
    {"$schema", "attribution", "cleanupPeriodDays", "includeCoAuthoredBy", "outputStyle", "statusLine", "theme"}
)
"""Keys of Claude Code's settings that are about its own terminal: nothing is lost without them."""

_OPTIONS = (
    click.option(
        "--settings",
        "flag_settings",
        metavar="JSON",
        default="",
        help="Settings of Claude Code for this run, a file or JSON: permissions, hooks, env, model, sandbox.",
    ),
    click.option(
        "--setting-sources",
        metavar="NAMES",
        help='Whose files count: user, project and local, with commas between them; "" for none.',
    ),
    click.option("--thinking", type=click.Choice(["adaptive", "enabled", "disabled"]), help="Does the model think?"),
    click.option(
        "--max-thinking-tokens",
        type=click.IntRange(0),
        metavar="N",
        help="How much the model may think before it answers; 0: not at all.",
    ),
    click.option(
        "--effort", type=click.Choice(EFFORTS), help="How much work the model puts into its answers, if it knows that."
    ),
    click.option(
        "--task-budget",
        type=click.IntRange(1),
        metavar="N",
        help="The tokens that the model is told it has for the task; nothing enforces it.",
    ),
    click.option("--betas", metavar="NAMES", default="", help="Betas of Anthropic's API, with commas between them."),
    click.option("--fallback-model", metavar="ID", default="", help="Asked if the model cannot be."),
    click.option("--strict-mcp-config", is_flag=True, help="No MCP servers but those of --mcp-config."),
    click.option(
        "--plugin-dir",
        "plugins",
        type=click.Path(),
        metavar="DIR",
        multiple=True,
        help="A plugin of Claude Code: its skills, agents, hooks and MCP servers.",
    ),
    click.option("--session-id", metavar="UUID", default="", help="The id that a new conversation gets."),
    click.option(
        "--fork-session",
        is_flag=True,
        help="With --resume or --continue: go on with a copy, and leave the first alone.",
    ),
    click.option("--no-session-persistence", is_flag=True, help="Do not keep the conversation."),
    click.option("--debug-to-stderr", is_flag=True, hidden=True, expose_value=False, help="Nothing: for SDKs."),
    click.option("--thinking-display", hidden=True, expose_value=False, help="Nothing: for SDKs."),
)
FLAGS = (
    "flag_settings",
    "setting_sources",
    "thinking",
    "max_thinking_tokens",
    "effort",
    "task_budget",
    "betas",
    "fallback_model",
    "strict_mcp_config",
    "plugins",
    "session_id",
    "fork_session",
    "no_session_persistence",
)
"""The names under which they arrive."""


def session_flags(command: F) -> F:
    """Add them to a command; `SessionFlags` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class SessionFlags:
    """What was said, as a session takes it. Raises `ConfigError` and `click.UsageError` for what is wrong."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.over: dict[str, Any] = {}
        """Settings by their names."""
        self.hooks: list[Hook] = []
        self.servers: list[str] = []
        """As `--mcp-config` takes them."""
        self.agents: list[str] = []
        """Folders of kinds of agents."""
        self.kinds: list[AgentFile] = []
        self.warnings: list[str] = []
        self.model = ""
        self.folders: list[str] = []
        self.fallback = str(given["fallback_model"])
        self.thread = _thread(given["session_id"])
        self.fork = bool(given["fork_session"])
        if given["setting_sources"] is not None:
            self.over["sources"] = _sources(given["setting_sources"])
        self._models(given)
        if given["strict_mcp_config"]:
            self._set("mcp", strict=True)
        if given["no_session_persistence"]:
            self._set("threads", keep=False)
        if given["flag_settings"]:
            self._settings(given["flag_settings"])
        for folder in given["plugins"]:
            self._plugin(folder)

    def describe(self, agents: Mapping[str, Any]) -> None:
        """Have kinds of agents as a program describes them. One that cannot be used is a warning."""
        from ferrule.tools.agents import agent_from_values  # for whoever has some

        for name, values in agents.items():
            try:
                made = agent_from_values(name, values if isinstance(values, dict) else {})
            except Unusable as error:
                self.warnings.append(f"The agent {name!r} is left out: {error}.")
                continue
            self.kinds.append(made)
            self.warnings += [f"The agent {name}: {warning}." for warning in made.warnings]

    def give(self, session: "Session") -> None:
        """Have an open session know the kinds of agents."""
        if self.kinds or self.agents:
            from ferrule.tools.agents import AgentFiles  # for whoever has some

            session.engine.need(AgentFiles).give(self.kinds, self.agents)

    def only_skills(self, names: Sequence[str]) -> None:
        """The session has these skills and no others."""
        self._set("skills", only=list(names))

    def _models(self, given: Mapping[str, Any]) -> None:
        tokens = given["max_thinking_tokens"]
        if given["thinking"] is not None:
            tokens = {"disabled": 0, "enabled": tokens or ADAPTIVE_TOKENS, "adaptive": ADAPTIVE_TOKENS}[
                given["thinking"]
            ]
        if tokens is not None:
            self._set("models", thinking_tokens=tokens)
        if given["effort"]:
            self._set("models", effort=given["effort"])
        if given["task_budget"]:
            self._set("models", task_tokens=given["task_budget"])
        if betas := [one.strip() for one in given["betas"].split(",") if one.strip()]:
            self._set("models", betas=betas)
        if self.fallback:
            self._set("models", retries=_FALLBACK_RETRIES)

    def _set(self, section: str, **values: Any) -> None:
        self.over[section] = {**self.over.get(section, {}), **values}

    def _settings(self, text: str) -> None:
        """Settings of Claude Code. A key that nobody here knows is a warning."""
        raw, source = _read(text)
        said = _object(raw, source)
        readers: dict[str, Callable[[Any], None]] = {
            "permissions": self._permissions,
            "env": self._environment,
            "model": self._model,
            "sandbox": self._sandbox,
            "effortLevel": lambda value: self._set("models", effort=value),
            "hooks": lambda _: self._hooks(raw, source),
        }
        for key, value in said.items():
            if key in readers:
                readers[key](value)
            elif key not in _SILENT:
                self.warnings.append(f"{source}: nobody here knows {key!r}, so it has no effect.")

    def _permissions(self, said: Any) -> None:
        if not isinstance(said, dict):
            raise ConfigError("--settings: permissions has to be an object.")
        for key, value in said.items():
            if key in {"allow", "ask", "deny"}:
                self._set("permissions", **{key: _texts(value, f"permissions.{key}")})
            elif key == "additionalDirectories":
                self.folders += _texts(value, "permissions.additionalDirectories")
            elif key == "defaultMode":
                self._set("permissions", mode=str(value))
            elif key == "disableBypassPermissionsMode":
                self._set("permissions", bypass=False)
            else:
                self.warnings.append(f"--settings: nobody here knows permissions.{key}, so it has no effect.")

    def _environment(self, said: Any) -> None:
        if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
            raise ConfigError("--settings: env has to be an object of texts.")
        os.environ.update(said)

    def _model(self, said: Any) -> None:
        self.model = str(said)

    def _sandbox(self, said: Any) -> None:
        if not isinstance(said, dict):
            raise ConfigError("--settings: sandbox has to be an object.")
        about = dict(said)
        network = about.pop("network", None) or {}
        if not isinstance(network, dict):
            raise ConfigError("--settings: sandbox.network has to be an object.")
        about |= {f"network.{key}": value for key, value in network.items()}
        for key, value in about.items():
            match key:
                case "enabled":
                    self._set("sandbox", use="auto" if value else "none")
                case "autoAllowBashIfSandboxed":
                    self._set("sandbox", auto_allow=bool(value))
                case "failIfUnavailable":
                    self._set("sandbox", required=bool(value))
                case "network.allowedDomains":
                    self._set("sandbox", hosts=_texts(value, "sandbox.network.allowedDomains"))
                case "network.allowAllUnixSockets":
                    self._set("sandbox", unix_sockets=bool(value))
                case _:
                    self.warnings.append(f"--settings: nobody here knows sandbox.{key}, so it has no effect.")

    def _hooks(self, raw: bytes, source: str) -> None:
        from ferrule.hooks.read import from_claude  # for whoever has hooks

        found = from_claude(raw, layer="user", source=source)
        self.hooks += found.hooks
        self.warnings += found.warnings

    def _plugin(self, folder: str) -> None:
        """What of a plugin there is a place for. One that is not there is a warning."""
        path = os.path.abspath(os.path.expanduser(folder))
        if not os.path.isdir(path):
            self.warnings.append(f"The plugin {folder} is not there, and is left out.")
            return
        if os.path.isdir(skills := os.path.join(path, "skills")):
            self._set("skills", folders=[*self.over.get("skills", {}).get("folders", ()), skills])
        if os.path.isdir(agents := os.path.join(path, "agents")):
            self.agents.append(agents)
        if os.path.isfile(hooks := os.path.join(path, "hooks", "hooks.json")):
            self._hooks(_whole(hooks).replace(_ROOT.encode(), path.encode()), hooks)
        if os.path.isfile(servers := os.path.join(path, ".mcp.json")):
            self.servers.append(_whole(servers).decode(errors="replace").replace(_ROOT, path))
        if os.path.isdir(os.path.join(path, "commands")):
            self.warnings.append(f"The commands of the plugin {folder} are not used: there are only its skills.")


def _sources(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SOURCES:
            raise click.UsageError(f"--setting-sources: there is no source {name!r}; there are {', '.join(SOURCES)}.")
    return names


def _thread(text: str) -> str:
    if not text:
        return ""
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise click.UsageError(f"--session-id: {text!r} is no UUID.") from error


def _read(text: str) -> tuple[bytes, str]:
    """The bytes of a file, or of the text itself if it is JSON, and what they are called."""
    if text.lstrip().startswith("{"):
        return text.encode(errors="surrogateescape"), "--settings"
    path = os.path.abspath(os.path.expanduser(text))
    return _whole(path), path


def _whole(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error


def _object(raw: bytes, source: str) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{source} is no JSON: {error}.") from error
    if not isinstance(said, dict):
        raise ConfigError(f"{source} has to be an object.")
    return said


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"--settings: {name} has to be a list of texts.")
    return value


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

_FITTING_OPTIONS = (
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


def add_fitting_options(command: F) -> F:
    """Add them to a command; `Fitting` takes them."""
    for option in reversed(_FITTING_OPTIONS):
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
