"""Every setting, its meaning and its default. One TOML file of the user's may change them."""

import os
from typing import Annotated, Literal

import msgspec

from ferrule.agent_settings import Conversations, Loop, Models, PlanMode, Repository, Terminal
from ferrule.core.errors import ConfigError
from ferrule.proxy_settings import Proxy
from ferrule.tool_settings import Checks, Lsp, Web

Source = Literal["user", "project", "local"]
SOURCES: tuple[Source, ...] = ("user", "project", "local")
"""The user's own files, those that come with a project, and those that somebody has beside a project for themselves."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much may happen, and for how long."""

    seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """A tool's time limit; progress starts it anew."""
    parallel: Annotated[int, msgspec.Meta(ge=1)] = 32
    """How many calls run at the same moment at most."""


class Files(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workspace."""

    add_dirs: tuple[str, ...] = ()
    """Folders beside the workspace that may be read and written."""
    guarded_allow: tuple[str, ...] = ()
    """Globs of secret or protected files that may be read and written all the same."""


class Shell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Commands."""

    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """A time limit for commands; none by default."""
    quiet_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """A command that writes nothing for so long is stopped; no limit by default."""
    background_max: Annotated[int, msgspec.Meta(ge=1)] = 256
    """How many commands may be left running at once."""
    memory_mb: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How much memory each process of a command may have."""
    processes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many processes and threads a command may have."""
    open_files: Annotated[int, msgspec.Meta(ge=8)] | None = None
    """How many files each process of a command may have open."""
    file_mb: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How large a file may become that a command writes."""
    log_mb: Annotated[int, msgspec.Meta(ge=0)] = 1024
    """How much of one command's output is kept on disk."""
    keep_env: tuple[str, ...] = ()
    """Environment variables that look secret and are handed to commands all the same."""


class Sandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What confines commands."""

    use: Literal["auto", "bubblewrap", "namespaces", "landlock", "seatbelt", "none"] = "auto"
    """The way that commands are confined; the best one there is by default."""
    required: bool = False
    """Does no command run where none can be confined?"""
    auto_allow: bool | Literal["auto"] = "auto"
    """Do confined commands run without a question? By default where the walls are whole and a checkpoint is kept."""
    network: bool = False
    """May confined commands use the network?"""
    hosts: tuple[str, ...] = ()
    """Hosts that they may reach all the same, such as `pypi.example` or `*.example.org`."""
    unix_sockets: bool = False
    """May they talk to other programs of this machine through sockets?"""
    writable: tuple[str, ...] = ()
    """Folders beside the workspace that they may write."""
    masked: tuple[str, ...] = ()
    """More files and folders whose contents they cannot read."""
    forward: Literal["auto", "on", "off"] = "auto"
    """Are ports that background commands listen on forwarded to the user's 127.0.0.1? By default in the chat only."""


class Permissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules about calls."""

    mode: str = "default"
    """What happens to calls that no rule speaks about: default, acceptEdits, plan, dontAsk or bypassPermissions."""
    allow: tuple[str, ...] = ()
    """Calls that need no question, as `Bash(git commit *)` or `Edit(docs/**)`."""
    ask: tuple[str, ...] = ()
    """Calls that always need one."""
    deny: tuple[str, ...] = ()
    """Calls that are refused."""
    ordered: tuple[str, ...] = ()
    """Rules of which the first that matches decides, as `reject Bash --cmd 'git push*'`."""
    files: tuple[str, ...] = ()
    """Files of rules: settings of Claude Code, Amp or Wayland, or ordered rules as text."""
    bypass: bool = True
    """May a session be in the mode bypassPermissions?"""


class Tools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tools from elsewhere."""

    folders: tuple[str, ...] = ()
    """More folders of the user's own tools, beside `tools` in the configuration directory."""
    toolbox: tuple[str, ...] | None = None
    """Folders of toolboxes; `FERRULE_TOOLBOX` or `AMP_TOOLBOX` where nothing is said."""
    describe_seconds: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """How long a program may take to describe itself."""
    packages: bool = True
    """May installed Python packages bring tools?"""
    exposure: dict[str, Literal["direct", "deferred", "hidden"]] = {}
    """A tool's name, or a glob of names → how it is exposed."""
    disable: tuple[str, ...] = ()
    """Globs of tools that the session does not have; `builtin:NAME` means only the built-in one."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MCP server: a command that is started, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Variables that it gets beside the ordinary ones; `${NAME}` and `${NAME:-otherwise}` are expanded."""
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    transport: Literal["", "stdio", "http", "sse"] = ""
    """How it is talked to, where that does not follow from the command or the address."""
    disabled: bool = False
    include_tools: tuple[str, ...] = ()
    """Globs of the tools that are wanted; none means all."""
    exposure: Literal["", "direct", "deferred", "hidden"] = ""
    permission: Literal["allow", "ask", "deny"] = "ask"
    """What is said to its calls where no rule speaks about them."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """A time limit for its calls; progress starts it anew."""
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """How long it may take to start."""


class Mcp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """MCP servers."""

    servers: dict[str, McpServer] = {}
    files: tuple[str, ...] = ()
    """Files in the forms of Claude Code or Amp with more of them."""
    defer_tokens: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """Tools of servers are deferred when their definitions take more tokens than this together."""
    result_mb: Annotated[int, msgspec.Meta(ge=1)] = 32
    """How large one message of a server may be."""
    strict: bool = False
    """Does a session have only the servers that it is given, beside those of whoever runs the machine?"""


class Skills(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Skills."""

    folders: tuple[str, ...] = ()
    """More folders of skills; they come first."""
    disable: tuple[str, ...] = ()
    """Globs of skills that the session does not have."""
    only: tuple[str, ...] | None = None
    """The only skills that it has, by their names; all by default."""


class HookSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that is told of an event."""

    command: str
    """A command line for the shell."""
    matcher: str = ""
    """A regular expression that covers the whole name of a tool; all tools where nothing is said."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] = 60.0


class Output(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The store of full outputs."""

    keep_days: Annotated[float, msgspec.Meta(ge=0)] = 7.0
    keep_mb: Annotated[int, msgspec.Meta(ge=0)] = 2048


class Checkpoints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of the workspace, so that what commands change can be taken back."""

    keep: bool = True
    """Is it kept at all?"""
    file_mb: Annotated[int, msgspec.Meta(ge=0)] = 200
    """Larger files are not kept."""
    keep_mb: Annotated[int, msgspec.Meta(ge=1)] = 2000
    """So much is kept of one workspace; the oldest goes first."""


class Undo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The journal of writes."""

    keep_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    keep_mb: Annotated[int, msgspec.Meta(ge=0)] = 512


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them."""

    dialect: str = "amp"
    """The model family whose tools are advertised where no model is named."""
    dialects: dict[str, str] = {}
    """How a model's id begins → its dialect, where that is not the usual one."""
    sources: tuple[Source, ...] = SOURCES
    """Whose rules, hooks, guidance, skills, kinds of agents and servers count; the machine's always do."""
    limits: Limits = Limits()
    files: Files = Files()
    shell: Shell = Shell()
    sandbox: Sandbox = Sandbox()
    permissions: Permissions = Permissions()
    tools: Tools = Tools()
    mcp: Mcp = Mcp()
    skills: Skills = Skills()
    hooks: dict[str, tuple[HookSetting, ...]] = {}
    """An event, such as `PreToolUse` → the programs that are told of it."""
    output: Output = Output()
    undo: Undo = Undo()
    checkpoints: Checkpoints = Checkpoints()
    models: Models = Models()
    loop: Loop = Loop()
    plan: PlanMode = PlanMode()
    chat: Terminal = Terminal()
    threads: Conversations = Conversations()
    repositories: dict[str, Repository] = {}
    """A name → a repository that the librarian may read, beside the workspace."""
    web: Web = Web()
    lsp: Lsp = Lsp()
    checks: Checks = Checks()
    proxy: Proxy = Proxy()


def state_folder() -> str:
    """Where Ferrule keeps its own files: `FERRULE_STATE`, or the user's state directory."""
    chosen = os.environ.get("FERRULE_STATE")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    from platformdirs import user_state_dir  # only who does not choose a folder pays for it

    return user_state_dir("ferrule", appauthor=False)


def settings_path() -> str:
    """The user's settings file: `FERRULE_SETTINGS`, or `settings.toml` in the user's configuration directory."""
    chosen = os.environ.get("FERRULE_SETTINGS")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    from platformdirs import user_config_dir  # as above

    return os.path.join(user_config_dir("ferrule", appauthor=False), "settings.toml")


def load_settings(path: str | None = None) -> Settings:
    """The user's settings over the defaults; a file that is not there means the defaults."""
    path = path or settings_path()
    raw = read_settings(path)
    return Settings() if raw is None else decode_settings(raw, path)


def read_settings(path: str) -> bytes | None:
    """A settings file as it is; None where there is none. Raises `ConfigError` where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        if os.environ.get("FERRULE_SETTINGS") and path == settings_path():
            # Whoever names a file has something in it, such as rules that deny.
            raise ConfigError(f"{path}, which FERRULE_SETTINGS names, is not there.") from None
        return None
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error


def decode_settings(raw: bytes, path: str) -> Settings:
    """What a settings file says, over the defaults."""
    try:
        return msgspec.toml.decode(raw, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        from ferrule.setting_words import explained  # for files that are wrong

        raise ConfigError(f"{path}: {error}.{explained(str(error), Settings)}") from error


def managed_path() -> str:
    """The settings file of whoever runs the machine."""
    import sys  # only for this

    folder = "/Library/Application Support/ferrule" if sys.platform == "darwin" else "/etc/ferrule"
    return os.path.join(folder, "settings.toml")
