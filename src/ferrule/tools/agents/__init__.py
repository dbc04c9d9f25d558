"""Define the kinds of subagents, and hand work from a tool to one of them.

A file such as `.claude/agents/reviewer.md` describes one kind. It can only take rights away: if a restriction in
it cannot be understood, the whole file is unusable.

Files come from the project and from the user's own folders. If two have one name, the project's counts because
it is nearer, and the user is told. A file is a prompt that others may have written: it grants no rights, and in
a project nothing is read through a link.
"""

import itertools
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import BadArguments, ToolFailure, near
from ferrule.core.services import Job, Subagent, Subagents, Worked, subagents
from ferrule.core.tool import Context
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.system.folder import describe
from ferrule.tools import BUILTIN
from ferrule.tools.skills import (
    MOST_DESCRIPTION_CHARS,
    Unusable,
    as_text,
    clean_line,
    read_raw,
    require_front_matter,
    rules,
)

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
    header = require_front_matter(text)
    return _agent_file(header.values, header.body, file=file, layer=layer, models=models)


def agent_from_values(name: str, values: Mapping[str, Any]) -> AgentFile:
    """A kind that the user's program describes itself, in the words of the files. Raises: Unusable."""
    rest = {key: value for key, value in values.items() if key != "prompt" and value is not None}
    if isinstance(rest.get("maxTurns"), int):
        rest["maxTurns"] = str(rest["maxTurns"])
    body = values.get("prompt")
    said = {**rest, "name": name}
    return _agent_file(said, body if isinstance(body, str) else "", file="the program", layer="user", models=())


def _agent_file(values: Mapping[str, Any], body: str, *, file: str, layer: Layer, models: Collection[str]) -> AgentFile:
    said = _normalize_keys(values)
    name = _text(said, "name")
    if re.fullmatch(_NAME, name) is None:
        raise Unusable(
            f"its name {clean_line(name)[:80]!r} is not made of letters, digits and hyphens" if name else _lacks("name")
        )
    description = clean_line(_text(said, "description"))[:MOST_DESCRIPTION_CHARS]
    if not description:
        raise Unusable(_lacks("description"))
    system = _visible(body).strip()
    if not system:
        raise Unusable("it says nothing below its front matter, where the system prompt belongs")
    warnings = [
        f"what it says about {clean_line(key)[:80]} has no effect here"
        for key in values
        if _plain(key) not in _KNOWN | _HARMLESS
    ]
    agent = Subagent(
        name=name,
        model=_model(said, layer, models, warnings),
        tools=_parse_tools(said, warnings),
        system=system,
        description=description,
        denied=_parse_denied_tools(said, warnings),
        max_turns=_turns(said, warnings),
        mode=_mode(said),
    )
    return AgentFile(agent, layer, file, tuple(warnings))


def _normalize_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values by plain keys: `disallowed-tools` and `disallowedTools` are one."""
    said: dict[str, Any] = {}
    for key, value in values.items():
        if _plain(key) in said and _plain(key) in _KNOWN:
            raise Unusable(f"its front matter says {clean_line(key)} twice, and only one of the two would count")
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
        f"its model {clean_line(model)[:80]!r} is not used: a project may only say {', '.join(SHORT_MODELS)}, {INHERIT}"
        " or a model that the setting models.roles names"
    )
    return ""


def _parse_tools(said: Mapping[str, Any], warnings: list[str]) -> tuple[str, ...] | None:
    """The tools that it may have; all where it says nothing. A list that is empty gives none."""
    if "tools" not in said:
        return None
    given: list[str] = []
    for name in _names(said["tools"], "tools"):
        if "(" in name:
            warnings.append(f"its tool {clean_line(name)[:80]} is left out: a tool is given whole or not at all")
        else:
            given.append(name)
    return tuple(_of_servers(given))


def _parse_denied_tools(said: Mapping[str, Any], warnings: list[str]) -> tuple[str, ...]:
    denied: list[str] = []
    for name in _names(said.get("disallowedtools"), "disallowedTools"):
        if "(" in name:
            warnings.append(f"it disallows {clean_line(name)[:80]}, which takes the whole tool away here")
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
        f"its maxTurns {clean_line(text)[:20]!r} is no number from 1 to {_MOST_TURNS:,}, and the usual limit holds"
    )
    return None


def _mode(said: Mapping[str, Any]) -> str:
    text = _text(said, "permissionmode")
    if not text:
        return ""
    found = next((mode for mode in _MODES if _plain(mode) == _plain(text)), None)
    if found is None:
        raise Unusable(f"its permissionMode {clean_line(text)[:40]!r} is none of {', '.join(_MODES)}")
    return found


MOST_FILES = 200
_MOST_ENTRIES = 2000
_PROJECT = (".ferrule/agents", ".claude/agents")
_END = ".md"


class _AgentFileSnapshot(NamedTuple):
    """A file as it was when it was last read."""

    signature: tuple[object, ...]
    found: AgentFile | None
    warnings: tuple[str, ...]


class AgentFiles:
    """Finds them when it is asked, and remembers of each file what it said; nothing is read before."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        *,
        home: str | None = None,
        beside: str = "",
        models: Collection[str] = (),
        taken: Collection[str] = (),
        sources: Collection[str] = ("user", "project"),
    ) -> None:
        """`home` is the user's home folder, `beside` the folder of the settings file.

        `models` are those that the settings name, and `taken` are names that no file of a project may have.
        `sources` says whose files count.
        """
        self._sources = frozenset(sources)
        self._jail = jail
        self._guard = guard
        home = os.path.expanduser("~") if home is None else home
        self._home = home if os.path.isabs(home) else ""
        self._beside = beside
        self._models = frozenset(models)
        self._taken = frozenset(map(_alike, taken))
        self._lock = threading.Lock()
        self._read: dict[str, _AgentFileSnapshot] = {}
        self._warnings: dict[str, None] = {}
        self._given: dict[str, AgentFile] = {}
        self._folders: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence, by the last look."""
        return tuple(self._warnings)

    def give(self, agents: Iterable[AgentFile] = (), folders: Iterable[str] = ()) -> None:
        """Have these kinds beside those of files, and those of these folders; they count before all others."""
        with self._lock:
            self._given.update((one.agent.name, one) for one in agents)
            self._folders += folders

    def all(self) -> tuple[AgentFile, ...]:
        """Every kind that a file describes, those that count first first."""
        with self._lock:
            return tuple(self._find_agents().values())

    def places(self) -> list[tuple[str, Layer]]:
        """The folders that are looked in, whether they are there or not."""
        root = self._jail.folder
        given: list[tuple[str, Layer]] = [(os.path.normpath(folder), "user") for folder in self._folders]
        places: list[tuple[str, Layer]] = [(os.path.join(root, *name.split("/")), "project") for name in _PROJECT]
        own = [os.path.join(self._beside, "agents")] if self._beside else []
        own += [os.path.join(self._home, ".claude", "agents")] if self._home else []
        known = {path for path, _ in places}
        places += [(path, "user") for path in map(os.path.normpath, own) if path not in known]
        return given + [place for place in places if place[1] in self._sources]

    def _find_agents(self) -> dict[str, AgentFile]:
        self._warnings = {}
        found = dict(self._given)
        seen: set[str] = set()
        # Of each of the two: however many a project brings, the user's own are read.
        counts: dict[Layer, int] = {"project": 0, "user": 0}
        for folder, layer in self.places():
            for file in self._files(folder, layer):
                if file in seen:
                    continue
                if counts[layer] >= MOST_FILES:
                    self._warn(f"There are more than {MOST_FILES} files of agents; those of {folder} are not all read.")
                    break
                counts[layer] += 1
                seen.add(file)
                self._take(file, layer, found)
        self._read = {file: read for file, read in self._read.items() if file in seen}
        return found

    def _take(self, file: str, layer: Layer, found: dict[str, AgentFile]) -> None:
        read = self._read_cached(file, layer)
        for warning in read.warnings:
            self._warn(warning)
        if read.found is None:
            return
        name = read.found.agent.name
        if _alike(name) in self._taken and read.found.layer == "project":
            self._warn(f"{file} is left out: {name} is, or looks like, a kind that is built in. Give it another name.")
        elif name in found:
            self._warn(f"{file} is left out: {found[name].file} has the name {name} as well, and counts before it.")
        else:
            found[name] = read.found

    def _files(self, folder: str, layer: Layer) -> Iterator[str]:
        """The paths of the files of a folder: real ones for the user's own, and for a project as they are."""
        try:
            if layer == "project" and os.path.realpath(folder) != folder:
                if os.path.isdir(folder):
                    self._warn(f"{folder} is reached through a link and is not looked at.")
                return
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in itertools.islice(entries, _MOST_ENTRIES + 1))
        except OSError:
            return  # mostly it is not there
        if len(names) > _MOST_ENTRIES:
            self._warn(f"{folder} has more than {_MOST_ENTRIES:,} entries; the others are not looked at.")
        for name in names[:_MOST_ENTRIES]:
            if name.endswith(_END) and not name.startswith("."):
                path = os.path.join(folder, name)
                yield os.path.realpath(path) if layer == "user" else path

    def _read_cached(self, file: str, layer: Layer) -> _AgentFileSnapshot:
        """What a file says; one that is as it was is not read again."""
        # What lies in the workspace is the project's, whoever linked to it: a model may write there.
        if any(within(file, root.path) for root in self._jail.roots):
            layer = "project"
        try:
            self._guard.check_read(file)
            status = os.stat(file, follow_symlinks=False)
            signature = (layer, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            read = self._read.get(file)
            if read is None or read.signature != signature:
                read = self._read[file] = self._parse_file(file, layer, signature)
        except OSError as error:
            return _AgentFileSnapshot((), None, (f"{file} describes no agent: {describe(error)}.",))
        except ToolFailure as error:  # a rule may deny it
            return _AgentFileSnapshot((), None, (f"{file} describes no agent: {error.message}",))
        return read

    def _parse_file(self, file: str, layer: Layer, signature: tuple[object, ...]) -> _AgentFileSnapshot:
        try:
            text = as_text(read_raw(self._jail, file))
            found = read_agent(text, file=file, layer=layer, models=self._models)
        except Unusable as error:
            return _AgentFileSnapshot(signature, None, (f"{file} describes no agent: {error}.",))
        return _AgentFileSnapshot(signature, found, tuple(f"{file}: {warning}." for warning in found.warnings))

    def _warn(self, sentence: str) -> None:
        self._warnings[clean_line(sentence)] = None


def _alike(name: str) -> str:
    """What names have in common that are easily taken for each other."""
    return name.casefold().replace("_", "").replace("-", "")


USUAL = "general-purpose"
READS = ("read", "read_many", "view_image", "list_dir", "glob", "grep")
"""Tools that only read files."""
SHELLS = ("shell", "shell_session", "shell_output", "shell_list", "shell_stop", "shell_write")
LOOKING = (*READS, "lsp", "diagnostics", "web_fetch", "web_search", "shell", "shell_session", "shell_output")
"""Tools of those who find out: commands of theirs only read."""
CATALOG_CHARS = 8000
MOST_PROMPT_CHARS = 400_000
_HEAD = (
    "<available_agents>\n"
    "Kinds of agents that a task can be given to, and what each is for. What each can do is bounded by what you can."
)
_TAIL = "</available_agents>"
_MOST_NAMED = 20
_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")


class _KindRow(NamedTuple):
    """A kind that is built in."""

    file: str
    tools: tuple[str, ...] | None
    mode: str
    """`plan` holds it to reading, the shell included."""
    description: str


BUILT_IN = {
    USUAL: _KindRow(
        "general-purpose.md",
        None,
        "",
        "For work with several steps, and for searches that may take more than one try. It has all your tools.",
    ),
    "Explore": _KindRow(
        "explore.md",
        LOOKING,
        "plan",
        "Finds its way through a code base: files by pattern, places by what they say, how something works. It only "
        "reads. Say how thorough it is to be.",
    ),
    "Plan": _KindRow(
        "plan.md",
        LOOKING,
        "plan",
        "Designs a change before it is made: reads the code and answers with steps, files and risks. It only reads.",
    ),
    "Bash": _KindRow(
        "bash.md", SHELLS, "", "Runs commands: git, builds, tests, anything in the shell. It has only that."
    ),
}


class AgentKinds:
    """Every kind by its name."""

    def __init__(self, files: AgentFiles | None = None) -> None:
        self._files = files

    def names(self) -> tuple[str, ...]:
        """Those that are built in first."""
        return tuple(dict.fromkeys((*BUILT_IN, *self._agents_by_name())))

    def get(self, name: str) -> Subagent:
        """The kind of exactly this name: rules are about names. Raises `ToolFailure` with the names that there are."""
        all_described = self._agents_by_name()
        # A plugin's kind may be called with the plugin's name before it.
        described = all_described.get(name) or all_described.get(name.rpartition(":")[2])
        if described is not None:
            return described
        if name not in BUILT_IN:
            raise _unknown(name, self.names())
        row = BUILT_IN[name]
        return Subagent(
            name=name,
            model="",
            tools=row.tools,
            system=prompt(row.file),
            description=row.description,
            mode=row.mode,
        )

    def catalog_text(self, *, limit_chars: int = CATALOG_CHARS) -> str:
        """A line for each kind, for a system prompt."""
        described = self._agents_by_name()
        pairs = [
            (name, described[name].description if name in described else BUILT_IN[name].description)
            for name in self.names()
        ]
        lines, room = [], limit_chars - len(_HEAD) - len(_TAIL)
        for name, words in pairs:
            line = _escape_markup(f"- {name}: {words}")
            # A kind that is only named can still be started.
            line = line if len(line) < room else f"- {name}"
            if len(line) >= room:
                break
            lines.append(line)
            room -= len(line) + 1
        return "\n".join((_HEAD, *lines, _TAIL))

    def _agents_by_name(self) -> dict[str, Subagent]:
        return {} if self._files is None else {one.agent.name: one.agent for one in self._files.all()}


def agents(ctx: Context) -> AgentKinds:
    """The kinds that a call can start; only those that are built in where the session has no files of them."""
    try:
        return AgentKinds(ctx.need(AgentFiles))
    except TypeError:
        return AgentKinds()


def prompt(file: str) -> str:
    """A system prompt that is built in."""
    with open(os.path.join(_PROMPTS, file), encoding="utf-8") as text:
        return text.read().strip()


def _unknown(name: str, known: Iterable[str]) -> ToolFailure:

    names = list(known)
    meant = near(name[:100], names, most=2)
    hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ToolFailure(
        f"There is no kind of agent called {name[:100]!r}.{hint} There are {', '.join(names[:_MOST_NAMED])}{more}.",
        code="unknown-agent",
    )


def _escape_markup(line: str) -> str:
    """No description of a file ends the list."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_LISTED = 20


def find(name: str, ctx: Context) -> Worked:
    """The agent of this id. Raises with those that there are."""
    known = subagents(ctx).list()
    found = next((one for one in known if one.id == name.strip()), None)
    if found is None:
        names = ", ".join(f"{one.id} ({one.status})" for one in known[-_LISTED:])
        hint = f"There are {names}." if names else "None was left working in the background."
        raise ToolFailure(f"There is no agent with the id {name[:100]!r}. {hint}", code="unknown-task")
    return found


NOTHING_SAID = ("read", "grep", "glob")
"""What a task gets that names no tools."""
EDITS = tuple(name for name, tool in BUILTIN.items() if tool.rules == "Edit")
_EVERYTHING = "all"
GROUPS = {
    "read-only": READS,
    "edit": (*READS, *EDITS),
    "file": (*READS, *EDITS),
    "shell": SHELLS,
    "terminal": SHELLS,
    "web": ("web_fetch", "web_search"),
}
"""Names for several tools at once, beside `all`. Any other name is that of one tool."""
_PATTERN = frozenset("*?[]{}()!")
_MOST_NAMES = 100


def toolset(names: Sequence[str]) -> tuple[str, ...] | None:
    """The tools that a task names, singly or in groups; None for all that its caller has."""
    wanted = [name.strip() for name in names if name.strip()]
    if _EVERYTHING in wanted:
        return None
    if not wanted:
        return NOTHING_SAID
    found: dict[str, None] = {}
    for name in wanted[:_MOST_NAMES]:
        found.update(dict.fromkeys(GROUPS.get(name, (name,))))
    return tuple(found)


def tell_lacking(names: Iterable[str], runs: Subagents, ctx: Context) -> None:
    """Say which of the tools that are named singly the caller has not: nobody can be given those."""
    single = [name for name in map(str.strip, names) if name and name not in GROUPS and name != _EVERYTHING]
    single = [name for name in single[:_MOST_NAMES] if not _PATTERN.intersection(name)]
    had = runs.beyond(Subagent(name="", model="", tools=(), system=""), single, ctx)
    lacking = dict.fromkeys(repr(name[:80]) for name in single if name not in had)
    if lacking:
        ctx.note(f"You have no tool {', '.join(lacking)}, so the agent works without.")


def check_names(names: Sequence[str], ctx: Context) -> None:
    """Raise where it is not tools that are named: the user is asked about each, and not about a pattern."""
    for name in names:
        if not name.strip() or not name.isprintable() or _PATTERN.intersection(name):
            raise BadArguments(
                f"{ctx.param('allowed_tools')}: name each tool alone, without a pattern ({name[:80]!r})."
            )
    if len(names) > _MOST_NAMES:
        raise BadArguments(f"{ctx.param('allowed_tools')}: at most {_MOST_NAMES} tools can be named.")


async def grant_tools(agent: Subagent, names: Iterable[str], runs: Subagents, ctx: Context) -> Subagent:
    """The subagent with tools that its kind lacks and its caller has, where the user says yes to them."""
    wanted = tuple(dict.fromkeys(name.strip() for name in names))
    if not wanted:
        return agent
    tell_lacking(wanted, runs, ctx)
    barred = runs.beyond(agent._replace(tools=None), wanted, ctx)
    if barred:
        ctx.note(f"The kind {agent.name} rules out {', '.join(barred)}; that was not changed.")
    more = [name for name in runs.beyond(agent._replace(denied=()), wanted, ctx) if name not in barred]
    if not more or agent.tools is None:
        return agent
    held = " It would no longer be held to reading." if agent.mode == "plan" else ""
    if not await ctx.approve(
        f"Give the agent {agent.name} also {', '.join(more)}, which its kind does not have?{held} "
        "Each of its calls is decided on all the same."
    ):
        ctx.note(f"The user has not given the agent {', '.join(more)}; it works without.")
        return agent
    return agent._replace(tools=(*agent.tools, *more), mode="" if agent.mode == "plan" else agent.mode)


READING = ("read", "glob", "grep", "list_dir")
"""The tools of those who only look."""
WEB = ("web_search", "web_fetch", "read_web_page")
EDITING = ("read", "glob", "grep", "edit", "write")

_SUMMARY_CHARS = 400


def specialist(name: str, tools: tuple[str, ...], *, kind: str = "") -> Subagent:
    """A subagent for one purpose, with its prompt. Whoever has no tool to edit with is also held to reading.

    `kind` is what the settings call it, where that is not its name.
    """
    mode = "" if "edit" in tools else "plan"
    return Subagent(name=name, model="", tools=tools, system=prompt(f"{name}.md"), role=kind or name, mode=mode)


async def run_job(job: Job, ctx: Context) -> Worked:
    """Its end, where that is of use: an answer that a limit cut short has a note, one that never came is a failure."""
    done = await subagents(ctx).work(job, ctx)
    if done.status != "completed" and not (done.status == "stopped" and done.text.strip()):
        raise ToolFailure(f"The {job.agent.name} did not answer: {explain_unfinished(done)}", code="subagent-failed")
    if not done.text.strip():
        raise ToolFailure(
            f"The {job.agent.name} ended without an answer. Ask it again, or look yourself.", code="empty"
        )
    if done.reason != "end" or done.status != "completed":
        ctx.note(f"The {job.agent.name} was not done: {explain_unfinished(done)}")
    ctx.note(f"The {job.agent.name} took {format_usage((done,))}.")
    return done


def explain_unfinished(done: Worked) -> str:
    """Why it was not done, as a sentence."""
    why = done.why or done.text.strip()[:_SUMMARY_CHARS] or f"it was {done.status} ({done.reason})"
    return why if why.endswith((".", "!", "?")) else f"{why}."


def format_usage(every: tuple[Worked, ...]) -> str:
    """Turns and tokens, in words."""
    turns = sum(one.turns for one in every)
    tokens = sum(one.input_tokens + one.output_tokens for one in every)
    return f"{turns:,} turn{'s' * (turns != 1)} and {tokens:,} tokens"
