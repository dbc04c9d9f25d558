"""Define every setting with its meaning and default, and read the settings file.

The user's TOML file may change any of them. Errors in a settings file are reported with the values that would be
right.
"""

import os
import re
import sys
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from ferrule.core.errors import ConfigError, near

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Dollars = Annotated[float, msgspec.Meta(ge=0)]


class ModelHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where models are: an address that speaks one of the four APIs."""

    api: Literal["", "anthropic", "openai-chat", "openai-responses", "gemini"] = ""
    """What it speaks; for a host that is not known beforehand, `openai-chat` where nothing is said."""
    url: str = ""
    key_env: str = ""
    """The environment variable with its key."""
    headers: dict[str, str] = {}
    """More headers; `${NAME}` is expanded."""


class KnownModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a model, over what Ferrule knows itself. Prices are dollars for a million tokens."""

    window: _Count | None = None
    most_output: _Count | None = None
    input: _Dollars | None = None
    output: _Dollars | None = None
    cache_read: _Dollars | None = None
    cache_write: _Dollars | None = None
    vision: bool | None = None
    """Does it take pictures and PDF files?"""


class Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models."""

    default: str = ""
    """The model that is asked where none is named, as `anthropic:claude-opus-4-5`; `FERRULE_MODEL` comes before it."""
    small: str = ""
    """A cheaper one, for summaries and questions about pages; the session's own where nothing is said."""
    roles: dict[str, str] = {}
    """A subagent's kind, such as `finder`, `oracle` or `Explore`, or a family's short name such as `haiku` → the model
    that runs it; the session's own where nothing is said."""
    hosts: dict[str, ModelHost] = {}
    """More hosts, or other addresses of those that are known."""
    known: dict[str, KnownModel] = {}
    """A model's id, or how it begins → its window and prices."""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 6
    """How often a model is asked again after a failure that may pass."""
    quiet_seconds: _Seconds = 180.0
    """A model that sends nothing for so long has broken off."""
    max_tokens: _Count | None = None
    """Of each answer; as many as the model gives, at most 32,000, where nothing is said."""
    thinking_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How much the model may think before it answers; the API's own way where nothing is said."""
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""
    """How much work a model puts into its answers, for models that are told so."""
    task_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many tokens a whole task may take, as models of Anthropic are told, to plan with; nothing enforces it."""
    betas: tuple[str, ...] = ()
    """Betas of Anthropic's API that are switched on."""


class Loop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The loop: how long it may go on by itself, and how much it remembers."""

    turns: _Count | None = None
    """How often the model may be asked for one prompt; no limit by default."""
    tokens: _Count | None = None
    """How many tokens one prompt may take."""
    cost: _Dollars | None = None
    """How many dollars one prompt may take, where the prices are known."""
    seconds: _Seconds | None = None
    """How long one prompt may take."""
    repeats: Annotated[int, msgspec.Meta(ge=2)] = 5
    """The same call with the same answer so often in a row stops the loop; two turns before, the model is told."""
    compact_at: Annotated[float, msgspec.Meta(gt=0.1, le=1)] = 0.8
    """The part of the window that the conversation may fill before it is made smaller."""
    keep_turns: _Count = 4
    """The last turns whose outputs stay as they are."""
    depth: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How deep subagents may have subagents; 0 means none at all."""
    children: _Count = 8
    """How many subagents of a session run at once, at each depth."""
    child_turns: _Count = 50
    """How often a subagent's model may be asked, where nothing else is said."""


class PlanMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Plan mode."""

    folder: str = ".ferrule/plans"
    """Where plans are written, in the workspace."""


class Conversations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The store of conversations."""

    keep: bool = True
    """Is every conversation kept?"""
    titles: bool = True
    """Does a small model make their titles: `models.small`, else the small one of the model's host?"""
    keep_days: Annotated[float, msgspec.Meta(ge=0)] = 365.0


class TerminalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terminal of `ferrule chat`."""

    theme: Literal["auto", "terminal", "dark", "light", "high-contrast", "high-contrast-light", "none"] = "auto"
    """Its colours; `auto` follows COLORFGBG, and is the terminal's own colours where that is not set."""
    title: bool = True
    """Does the title of the terminal say the folder, and whether the agent works, asks or is done?"""
    notify: Literal["auto", "bell", "osc9", "osc777", "off"] = "auto"
    """How a question that waits and the end of a long run are announced while nobody looks at the terminal."""
    notify_seconds: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """A run that took at least so long is a long one."""
    keys: Literal["emacs", "vim"] = "emacs"
    """The keys with which the input is edited."""
    pictures: Literal["auto", "kitty", "iterm2", "off"] = "auto"
    """How pictures are shown that tools read or the user attaches; `auto` only where the terminal is known."""


class LibrarianRepository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A repository that the librarian may read."""

    path: str
    about: str = ""
    """What it is, for the model."""


_ToolSeconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
"""Not endless: clocks are counted on."""


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the web is searched."""

    backend: Literal["ddgs", "brave", "tavily", "exa", "searxng"] = "ddgs"
    """Who is asked. `ddgs` needs no key; the others but `searxng`, which needs an address, need one."""
    url: str = ""
    """Another address of the back end; for `searxng` the address of the server."""
    key_env: str = ""
    """The environment variable with the key; `BRAVE_API_KEY`, `TAVILY_API_KEY` or `EXA_API_KEY` unless said."""
    results: Annotated[int, msgspec.Meta(ge=1, le=50)] = 8
    """How many results are given where the caller does not say."""


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages of the web."""

    private_hosts: tuple[str, ...] = ()
    """Hosts of this machine or of its own network that may be fetched from, as `localhost:8080` or `*.intern.example`;
    without a port at 80 and 443."""
    robots: bool = True
    """Are pages left alone that their site's robots.txt closes to programs?"""
    user_agent: str = ""
    """What sites are told about who asks; Ferrule with its version where nothing is said."""
    proxy: str = ""
    """An http proxy for all pages, as `http://proxy.example:3128`. It looks names up itself, so that only addresses in
    the place of names are judged here."""
    seconds: _ToolSeconds = 30.0
    """How long one page may take, with all of its redirects."""
    most_mb: Annotated[float, msgspec.Meta(gt=0, le=4096)] = 10.0
    """How large a page may be, on the wire and unpacked."""
    hops: Annotated[int, msgspec.Meta(ge=0, le=50)] = 10
    """How many redirects are followed."""
    cache_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 900.0
    """How long a page that was fetched is given again; 0 means never."""
    answers: bool = True
    """Does a model read a page that something is asked about, so that only its answer comes back?"""
    search: SearchSettings = SearchSettings()


class LanguageServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A language server: one of one's own, or what is to be different about one that is known."""

    command: str = ""
    """A program on PATH, or its absolute path."""
    args: tuple[str, ...] | None = None
    endings: tuple[str, ...] = ()
    """Endings of the files it is for, as `.py`."""
    language: str = ""
    """What the protocol calls the language, where it is not the server's name here."""
    markers: tuple[str, ...] = ()
    """Files that lie where a project of that language begins."""
    env: dict[str, str] = {}
    """Variables that it gets beside the ordinary ones."""
    options: dict[str, Any] = {}
    """What it is told when it starts."""
    configuration: dict[str, Any] = {}
    """What it is told when it asks for its configuration."""
    disabled: bool = False


class LspSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Language servers."""

    servers: dict[str, LanguageServer] = {}
    """A name → a server: one that is known, such as `ty` or `gopls`, or another. Those that are written here come first
    for their files."""
    seconds: _ToolSeconds = 30.0
    """How long an answer may take."""
    start_seconds: _ToolSeconds = 60.0
    """How long a server may take to start."""
    idle_seconds: _ToolSeconds = 1800.0
    """A server that nobody has asked for so long is ended."""
    most: _Count = 6
    """How many run at once; the one that was asked longest ago ends for another one."""
    confined: bool = True
    """Do they run in the sandbox, where there is one?"""
    after_edits: bool = True
    """Are new errors told after edits, where a server for the file runs already?"""
    after_seconds: _ToolSeconds = 3.0
    """How long the replies to edits wait for that at most."""


class CheckCommand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check of one's own."""

    command: str
    """A command line for the shell."""
    kind: Literal["types", "lint", "format", "tests", "build", "other"] = "other"
    folder: str = ""
    """Where it runs, from the workspace."""
    shares: str = ""
    """A word: checks with the same one do not run at the same time."""


class Checks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The project's own checks."""

    commands: dict[str, CheckCommand] = {}
    """A name → a check beside those that are found; one of the same name replaces it."""
    disable: tuple[str, ...] = ()
    """Globs of names of checks that are not run unless they are named."""
    parallel: _Count = 4
    """How many run at once."""
    review: bool = True
    """Are the reviews of `.agents/checks` done too, where there is a model?"""


_ProxySeconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Routing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which model answers a request, and for whom."""

    models: dict[str, str | tuple[str, ...]] = {}
    """A model that clients ask for, or a pattern such as `claude-haiku-*`, → the model that answers, as HOST:MODEL, or
    several that are tried in their order. `*` stands for every model that nothing else fits."""
    small: str = ""
    """The model for requests to small models, such as `claude-haiku-…` or `gpt-…-mini`."""
    medium: str = ""
    """The model for requests to medium models, such as `claude-sonnet-…`, and to models of no known size."""
    big: str = ""
    """The model for requests to big models, such as `claude-opus-…`."""
    fallback: tuple[str, ...] = ()
    """Models that are tried after every other one has failed."""


class ProxySettings(Routing, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The proxy."""

    profiles: dict[str, Routing] = {}
    """A name → routing that holds in place of this one with `--profile NAME`."""
    parallel: _Count = 64
    """How many requests each host is asked at the same moment; more of them wait."""
    queue: Annotated[int, msgspec.Meta(ge=0)] = 256
    """How many requests wait for a host at most; more are refused with status 429."""
    queue_seconds: _ProxySeconds = 120.0
    """How long a request waits for its turn before it is refused."""
    requests_a_minute: _Count | None = None
    """How many requests each host is sent in a minute; no limit by default."""
    tokens_a_minute: _Count | None = None
    """How many tokens each host is sent and sends in a minute; no limit by default."""
    failures: _Count = 5
    """After so many failures in a row a model is not asked for a while, and the next one in the chain answers."""
    rest_seconds: _ProxySeconds = 30.0
    """How long a model that failed too often is not asked."""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How often a model is asked again before its answer has begun; after that it never is."""
    ping_seconds: _ProxySeconds = 10.0
    """A stream that was silent for so long is kept alive with a ping."""
    body_mb: _Count = 64
    """The longest request."""
    web: bool = True
    """Does Ferrule search and fetch for clients whose own API would, if the host cannot?"""
    count_upstream: bool = True
    """Are tokens counted by the host that answers, if it can?"""


Source = Literal["user", "project", "local"]
COMMAND_FOLDERS = (".claude/commands", ".agents/commands", ".ferrule/commands")
"""Where files with commands are, in a project and in the home folder; the later one overrides the earlier one."""
SOURCES: tuple[Source, ...] = ("user", "project", "local")
"""The user's own files, those that come with a project, and those that somebody has beside a project for themselves."""


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much may happen, and for how long."""

    seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """A tool's time limit; progress starts it anew."""
    parallel: Annotated[int, msgspec.Meta(ge=1)] = 32
    """How many calls run at the same moment at most."""


class FileSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workspace."""

    add_dirs: tuple[str, ...] = ()
    """Folders beside the workspace that may be read and written."""
    guarded_allow: tuple[str, ...] = ()
    """Globs of secret or protected files that may be read and written all the same."""


class ShellSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class SkillSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class CheckpointSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of the workspace, so that what commands change can be taken back."""

    keep: bool = True
    """Is it kept at all?"""
    file_mb: Annotated[int, msgspec.Meta(ge=0)] = 200
    """Larger files are not kept."""
    keep_mb: Annotated[int, msgspec.Meta(ge=1)] = 2000
    """So much is kept of one workspace; the oldest goes first."""


class UndoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    limits: LimitSettings = LimitSettings()
    files: FileSettings = FileSettings()
    shell: ShellSettings = ShellSettings()
    sandbox: SandboxSettings = SandboxSettings()
    permissions: Permissions = Permissions()
    tools: Tools = Tools()
    mcp: Mcp = Mcp()
    skills: SkillSettings = SkillSettings()
    hooks: dict[str, tuple[HookSetting, ...]] = {}
    """An event, such as `PreToolUse` → the programs that are told of it."""
    output: Output = Output()
    undo: UndoSettings = UndoSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    models: Models = Models()
    loop: Loop = Loop()
    plan: PlanMode = PlanMode()
    chat: TerminalSettings = TerminalSettings()
    threads: Conversations = Conversations()
    repositories: dict[str, LibrarianRepository] = {}
    """A name → a repository that the librarian may read, beside the workspace."""
    web: WebSettings = WebSettings()
    lsp: LspSettings = LspSettings()
    checks: Checks = Checks()
    proxy: ProxySettings = ProxySettings()


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
        raise ConfigError(f"{path}: {error}.{explain_error(str(error), Settings)}") from error


def managed_path() -> str:
    """The settings file of whoever runs the machine."""
    folder = "/Library/Application Support/ferrule" if sys.platform == "darwin" else "/etc/ferrule"
    return os.path.join(folder, "settings.toml")


def explain_error(said: str, kind: type[msgspec.Struct]) -> str:
    """The complaint about a value for `kind`, with the values or names that there are; empty where nothing is known."""
    found = re.search(r" - at `(?:key in )?\$\.?([^`]*)`", said)
    here = _at(kind, found[1] if found else "")
    unknown = re.search(r"unknown field `([^`]*)`", said)
    if unknown and isinstance(here, type) and issubclass(here, msgspec.Struct):
        names = [field.name for field in msgspec.structs.fields(here)]
        meant = near(unknown[1], names)
        return f" Did you mean {' or '.join(meant)}?" if meant else f" There are {', '.join(sorted(names))}."
    if get_origin(here) is Literal:
        *values, last = [str(value) or "nothing" for value in get_args(here)]
        return f" It is one of {', '.join(values)} and {last}."
    return ""


def _at(kind: Any, path: str) -> Any:
    """The type of the setting at a path, as `checks.commands[...].kind`; None where there is none."""
    for name, inside in re.findall(r"([^.\[\]]+)|(\[[^\]]*\])", path):
        kind = _plain(kind)
        if inside:
            arguments = get_args(kind)
            kind = (arguments[-1] if get_origin(kind) is dict else arguments[0]) if arguments else None
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = next((field.type for field in msgspec.structs.fields(kind) if field.name == name), None)
        else:
            return None
    return _plain(kind)


def _plain(kind: Any) -> Any:
    """A type without its limits, and without the None that may stand in its place."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in {Union, types.UnionType}:
        rest = [each for each in get_args(kind) if each is not type(None)]
        return _plain(rest[0]) if len(rest) == 1 else kind
    return kind
