"""Load the tools of installed packages, the user and the project: executables and modules.

`deploy.sh` is the tool `deploy_sh`, for model APIs take no dots, and `deploy.sh.md` beside it describes it.
Without such a file the program is asked with `--help`, in families that do so: once for its content, unable to
write anything or reach anybody, and never if nothing can confine it so.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.services import Mixed
from ferrule.core.tool import Args, Context, Tool
from ferrule.files.frontmatter import front_matter
from ferrule.output import clean
from ferrule.permissions.trust import StateFile
from ferrule.sandbox import Wrapped
from ferrule.settings import Settings, settings_path
from ferrule.sources import SourceTools
from ferrule.sources.custom.module import foreign, load_module, make_tools, resolve_offer
from ferrule.sources.program import run_program
from ferrule.system.environment import apart, quiet_environment
from ferrule.system.folder import READ, READ_NO_LINK, describe, read_regular
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from ferrule.core.tool import AnyTool


LIMIT_BYTES = 1 << 20
"""Of a module, or of what is written about an executable."""

Kind = Literal["python", "lua", "program"]
_ORDER: tuple[Kind, ...] = ("python", "lua", "program")
"""Within one folder; a later one overrides an earlier one of the same name."""


class ToolFolder(NamedTuple):
    """A folder of tools; of a project's, only what was trusted is used."""

    folder: str
    contents: Mapping[str, bytes] | None = None
    """The trusted files of a project by their paths; None for the user's own folder."""
    needs_words: bool = False
    """Is a program a tool only if a file beside it describes it?"""


class Candidate(NamedTuple):
    """A file that may be a tool."""

    path: str
    kind: Kind


def user_folders(settings: Settings) -> tuple[str, ...]:
    """The folders of the user's own tools: `tools` beside the settings file, and those that the settings name."""
    beside = os.path.dirname(settings_path())
    named = (os.path.join(beside, os.path.expanduser(folder)) for folder in settings.tools.folders)
    return (os.path.join(beside, "tools"), *(os.path.normpath(folder) for folder in named))


def project_place(folder: str, contents: Mapping[str, bytes], *, needs_words: bool = False) -> ToolFolder:
    """The folder with what was trusted of it."""
    folder = os.path.normpath(folder)
    inside = {os.path.normpath(path): raw for path, raw in contents.items()}
    return ToolFolder(
        folder, {path: raw for path, raw in inside.items() if os.path.dirname(path) == folder}, needs_words
    )


def candidates(place: ToolFolder) -> list[Candidate]:
    """The files that may be tools: modules by name, then executables by name. A folder that is not there has none."""
    if place.contents is None:
        try:
            names = sorted(os.listdir(place.folder))
        except OSError:
            return []
    else:
        names = sorted(os.path.basename(path) for path in place.contents)
    found = []
    for name in names:
        path = os.path.join(place.folder, name)
        kind = _kind(path, name, follow=place.contents is None)
        if kind is not None:
            found.append(Candidate(path, kind))
    return sorted(found, key=lambda one: _ORDER.index(one.kind))


def is_described(place: ToolFolder, path: str) -> bool:
    """Is there a file beside a program that says what it does?"""
    words = f"{path}.md"
    return os.path.exists(words) if place.contents is None else words in place.contents


def content(place: ToolFolder, path: str) -> bytes | None:
    """What a file holds, None where it is not there: of a project the very bytes that were trusted.

    Raises ValueError with a reason where it cannot be used, and OSError where it cannot be read.
    """
    if place.contents is not None:
        return place.contents.get(path)
    try:
        raw = read_regular(os.open(path, READ), LIMIT_BYTES)
    except FileNotFoundError:
        return None
    if raw is None:
        raise ValueError("it is not a regular file.")
    if len(raw) > LIMIT_BYTES:
        raise ValueError(f"it is larger than {LIMIT_BYTES:,} bytes.")
    return raw


def _kind(path: str, name: str, *, follow: bool) -> Kind | None:
    if name.startswith((".", "_")) or name.endswith(("~", ".md")):
        return None
    try:
        mode = os.stat(path, follow_symlinks=follow).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        return None
    if name.endswith(".py"):
        return "python"
    if name.endswith(".lua"):
        return "lua"
    return "program" if mode & 0o111 else None


_HELP_CHARS = 200
_OUTPUT_CHARS = 2000
_HEAD_CHARS = _TAIL_CHARS = 48_000
"""Kept of a call's output in memory, about as much as a reply holds; the log has the rest."""
_BLOCK_BYTES = 1 << 20
_PINNED_BYTES = 256 << 20

SCHEMA = {
    "type": "object",
    "properties": {
        "args": {"type": "string", "description": "The arguments of the program, quoted as for a shell."},
    },
}


class ProgramArgs(Args, frozen=True, kw_only=True):
    """What a program is called with."""

    args: str = ""


class ProbeOptions(NamedTuple):
    """How a program is asked what it is."""

    seconds: float
    keep_env: Collection[str] = ()
    roster: Roster | None = None
    roots: Sequence[str] = ()
    """The folders of the workspace: nothing in them is looked for by its name."""
    confine: Callable[[Sequence[str], str], Wrapped | None] | None = None
    """A command and its folder → the command so that it can only read, or None if nothing can confine it: then it is
    not asked."""
    answers: "ProgramAnswers | None" = None
    """What programs have answered before."""
    asks: bool = True
    """May a program be run to hear what it is? Else what it has answered before has to do."""


class ProgramTool(Tool[ProgramArgs, Any]):
    """A program with its arguments. It runs in the workspace, without a shell, and with what it may all do."""

    args = ProgramArgs
    source = "custom"
    schema = SCHEMA

    def __init__(self, path: str, *, words: str, guidance: str = "", pin: str = "", roots: Sequence[str] = ()) -> None:
        """`pin` is the hash of the only content that may run; empty for the user's own programs.

        `roots` are the folders of the workspace, where it looks for no program.
        """
        self.origin = path
        self.name = tool_name(path)
        spelled = os.path.basename(path)
        self.aliases: tuple[str, ...] = (spelled,) if spelled != self.name else ()
        """The file's own name, for whoever calls it so."""
        self.words = words
        self.guidance = guidance
        self._pin = pin
        self._roots = tuple(roots)

    async def run(self, args: ProgramArgs, ctx: Context) -> Any:
        words = split(args.args)
        check(self.origin, self._pin)
        ran = await run_program(
            [self.origin, *words],
            ctx=ctx,
            cwd=ctx.path("."),
            env=_environment(ctx.need(Settings).shell.keep_env, self._roots),
            roster=ctx.need(Roster),
            head_chars=_HEAD_CHARS,
            tail_chars=_TAIL_CHARS,
        )
        parts = [ran.output] if ran.output else []
        if ran.exit_code:
            parts.append(f"exit code: {ran.exit_code}")
        text = "\n".join(parts) or "(no output)"
        return Mixed((text,), failed=True) if ran.exit_code else text


async def load_program(path: str, place: ToolFolder, asking: ProbeOptions) -> SourceTools:
    """The tool that a program is."""
    raw = place.contents.get(path) if place.contents is not None else None
    pin = hashlib.sha256(raw).hexdigest() if raw is not None else ""
    words, guidance = "", ""
    warnings: tuple[str, ...] = ()
    try:
        check(path, pin)
        written = content(place, f"{path}.md")
        if written is not None:
            words, guidance = about(written.decode("utf-8", "replace"))
    except ToolFailure as error:
        return SourceTools((), (f"failed to load {path}: {error}",))
    except (OSError, ValueError) as error:
        problem = describe(error) if isinstance(error, OSError) else str(error)
        warnings = (f"failed to load {path}.md: {problem}",)
    words = words or await _describe_program(path, raw, asking) or f"CLI tool: {os.path.basename(path)}"
    return SourceTools((ProgramTool(path, words=words, guidance=guidance, pin=pin, roots=asking.roots),), warnings)


def _environment(keep: Collection[str], roots: Sequence[str]) -> dict[str, str]:
    return apart(quiet_environment(os.environ, keep=keep), roots)


def tool_name(path: str) -> str:
    """The file's name with its extension, in letters that model APIs take."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", os.path.basename(path))[:64]


def split(text: str) -> list[str]:
    """The words of the arguments, quotes as in a shell; where those do not match, whatever is between blanks."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def about(text: str) -> tuple[str, str]:
    """The description and the guidance that a companion file has."""
    header = front_matter(text.removeprefix("\ufeff"), lenient=True)
    said = header.values.get("description")
    words = " ".join(said.split()) if isinstance(said, str) else ""
    if not words:
        lines = (line.strip() for line in header.body.splitlines())
        words = next((line for line in lines if line.strip("-") and not line.startswith("#")), "")
    return clean(words), clean(header.body).strip()


def check(path: str, pin: str) -> None:
    """Refuse a program that is not the one that was trusted. Raises ToolFailure."""
    if not pin:
        return
    changed = f"{path} is not what was trusted any more. Look at it, and trust the project again."
    try:
        descriptor = os.open(path, READ_NO_LINK)
    except OSError as error:
        raise ToolFailure(changed, code="changed", path=path) from error
    try:
        status = os.fstat(descriptor)
        total = hashlib.sha256()
        if stat.S_ISREG(status.st_mode) and status.st_size <= _PINNED_BYTES:
            while block := os.read(descriptor, _BLOCK_BYTES):
                total.update(block)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(status.st_mode) or total.hexdigest() != pin:
        raise ToolFailure(changed, code="changed", path=path)


async def _describe_program(path: str, raw: bytes | None, asking: ProbeOptions) -> str:
    """What the program says of itself, now or when these very bytes were asked before."""
    content = hashlib.sha256(raw).hexdigest() if raw is not None else _hash(path)
    known = asking.answers.of(content) if asking.answers is not None and content else None
    if known is not None or not asking.asks:
        return known or ""
    said = await _help(path, asking)
    if said is not None and asking.answers is not None and content:
        asking.answers.keep(content, said)
    return said or ""


def _hash(path: str) -> str:
    """The hash of a program of the user's own; nothing where it cannot be read, or is too long to."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size <= _PINNED_BYTES:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        pass
    return ""


async def _help(path: str, asking: ProbeOptions) -> str | None:
    """The first line that the program says to `--help`, empty where it says nothing in its time; None: it never ran."""
    argv, folder = [path, "--help"], os.path.dirname(path)
    wrapped = Wrapped(tuple(argv))
    try:
        if asking.confine is not None:
            confined = asking.confine(argv, folder)
            if confined is None:
                return None
            wrapped = confined
        ran = await run_program(
            wrapped.argv,
            ctx=None,
            cwd=folder,
            env={**_environment(asking.keep_env, asking.roots), **wrapped.env},
            seconds=asking.seconds,
            roster=asking.roster,
            apart=True,
            head_chars=_OUTPUT_CHARS,
            tail_chars=_OUTPUT_CHARS,
            wrapped=wrapped,
        )
    except (ToolFailure, OSError, ValueError):
        return None
    lines = (line.strip() for line in clean(ran.output).splitlines())
    return next((line for line in lines if line), "")[:_HELP_CHARS]


_AT_ONCE = 8
"""Programs that are asked what they are at the same moment."""


async def load(
    *,
    packages: bool = True,
    folders: Sequence[str] = (),
    project: Sequence[str] = (),
    contents: Mapping[str, bytes] | None = None,
    roots: Sequence[str] = (),
    describe_seconds: float = 5.0,
    keep_env: Collection[str] = (),
    roster: Roster | None = None,
    takes_all: bool = True,
    everyday: Collection[str] = (),
    asks: bool = True,
    confine: "Callable[[Sequence[str], str], Wrapped | None] | None" = None,
    answers: "ProgramAnswers | None" = None,
) -> SourceTools:
    """All of them, by name; they override built-in tools of the same name, too.

    `folders` are the user's. `project` are folders of the project that the user trusts, and `contents` the very bytes
    of each file in them that was trusted: no other file there is used, and no other bytes run. `roots` are the folders
    that a session may write: a folder of the user's in one of them is refused, for what is there needs trust. What
    cannot be used is a warning, in the words of ah and without its `warning: `.

    Without `takes_all` a program is a tool only if a file beside it describes it, and nothing is run to find out more;
    of those in folders of `everyday`, which projects have for other reasons too, nothing is said. Without `asks` no
    program is asked now: what it has answered before is enough. `confine` and `answers` are for asking.
    """
    brought: list[SourceTools] = []
    if packages:
        brought.append(load_packages())
    outside = [folder for folder in dict.fromkeys(folders) if not _is_inside(folder, roots)]
    refused = [folder for folder in dict.fromkeys(folders) if folder not in outside and os.path.isdir(folder)]
    needs_words = not takes_all
    places = [ToolFolder(folder, needs_words=needs_words) for folder in outside]
    places += [project_place(folder, contents or {}, needs_words=needs_words) for folder in dict.fromkeys(project)]
    asking = ProbeOptions(describe_seconds, keep_env, roster, roots, confine, answers, asks=asks)
    brought += [await _of(place, asking, tells=place.folder not in everyday) for place in places]
    tools: dict[str, AnyTool] = {}
    for tool in (tool for one in brought for tool in one.tools):
        tools.pop(tool.name, None)
        tools[tool.name] = tool
    told = [
        f"the tools in {folder} are not used: they are inside of the workspace and not trusted." for folder in refused
    ]
    told += [warning for one in brought for warning in one.warnings]
    warnings = dict.fromkeys(map(clean, told))
    return SourceTools(tuple(tools.values()), tuple(warnings))


def _is_inside(folder: str, roots: Sequence[str]) -> bool:
    real = os.path.realpath(folder)
    return any(within(real, os.path.realpath(root)) for root in roots)


async def _of(place: ToolFolder, asking: ProbeOptions, *, tells: bool) -> SourceTools:
    """The tools of one folder. Executables override modules of the same name."""
    every = candidates(place)
    mute = [one for one in every if one.kind == "program" and place.needs_words and not is_described(place, one.path)]
    found = [one for one in every if one not in mute]
    modules = [_module(one, place) for one in found if one.kind != "program"]
    room = asyncio.Semaphore(_AT_ONCE)

    async def program(path: str) -> SourceTools:
        async with room:
            return await load_program(path, place, asking)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(program(one.path)) for one in found if one.kind == "program"]
    programs = [task.result() for task in tasks]
    warnings = [*_twice(modules), *_twice(programs)]
    for one in (*modules, *programs):
        warnings += one.warnings
    if mute and tells:
        first = os.path.basename(mute[0].path)
        others = f" and {len(mute) - 1} more" if len(mute) > 1 else ""
        warnings.append(
            f"{mute[0].path}{others}: no tool, for nothing describes it. Write what it does into {first}.md beside it."
        )
    return SourceTools(tuple(tool for one in (*modules, *programs) for tool in one.tools), tuple(warnings))


def _module(candidate: Candidate, place: ToolFolder) -> SourceTools:
    path = candidate.path
    try:
        source = content(place, path)
    except (OSError, ValueError) as error:
        problem = describe(error) if isinstance(error, OSError) else str(error)
        return SourceTools((), (f"failed to load {path}: {problem}",))
    if source is None:
        return SourceTools((), (f"failed to load {path}: it is not there any more.",))
    if candidate.kind == "python":
        return load_module(path, source, may_be_other=place.contents is not None)
    from ferrule.sources.custom.module import load_lua  # as above

    return load_lua(path, source)


def _twice(brought: Sequence[SourceTools]) -> list[str]:
    """A warning for each name that two files of one folder share: which of them counts is hardly what was meant."""
    owners: dict[str, str] = {}
    warnings = []
    for tool in (tool for one in brought for tool in one.tools):
        if tool.name in owners:
            warnings.append(f"{tool.origin} replaces the tool {tool.name} of {owners[tool.name]}.")
        owners[tool.name] = tool.origin
    return warnings


GROUP = "ferrule.tools"


def load_packages() -> SourceTools:
    """All of them. An entry is a tool, a record, a list of these, or a function that returns one of all that."""
    if not _is_any():
        return SourceTools(())
    from importlib.metadata import entry_points  # 20 ms that only whoever has such a package pays

    tools: list[AnyTool] = []
    warnings: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda one: (one.dist.name if one.dist else "", one.name)):
        origin = f"{entry.dist.name if entry.dist else 'a package'}:{entry.name}"
        offer = None
        with foreign() as problems:
            offer = resolve_offer(entry.load())
        if problems:
            warnings.append(f"failed to load {origin}: {problems[0]}")
            continue
        offered = list(offer) if isinstance(offer, list | tuple) else [offer]
        brought = make_tools(offered, origin, none="its list is empty.")
        tools += brought.tools
        warnings += brought.warnings
    return SourceTools(tuple(tools), tuple(warnings))


def _is_any() -> bool:
    """Does any installed package name the group? Mostly none does, and reading these files is quick."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            # Every Python has the place of a zip in its path, and hardly any has the zip.
            if folder.endswith((".zip", ".whl")) and os.path.isfile(folder):
                return True
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and _names_it(os.path.join(folder, name)):
                return True
    return False


def _names_it(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return GROUP.encode() in file.read(1 << 20)
    except OSError:
        return False


_MOST = 1000
_LONGEST_CHARS = 20_000
"""A longer answer is not kept: it is asked for again."""


class _AnswerCache(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: the hash of a program's content → what it has answered, the newest last."""

    version: Literal[1] = 1
    lines: dict[str, str] = {}


class ProgramAnswers:
    """The answers of this user's programs, kept in the state folder: what they said to `--help`, or to `describe`."""

    def __init__(self, state_folder: str, question: Literal["help", "describe"] = "help") -> None:
        self._kept = StateFile(os.path.join(state_folder, "tools", f"{question}.json"), _AnswerCache)
        self._lines: dict[str, str] | None = None

    def of(self, content: str) -> str | None:
        """What the program with this content has answered; None where it was never asked."""
        if self._lines is None:
            self._lines = self._kept.read().lines
        return self._lines.get(content)

    def keep(self, content: str, line: str) -> None:
        """Keep its answer, if only for the session."""
        if len(line) > _LONGEST_CHARS:
            return
        if self._lines is not None:
            self._lines[content] = line
        with contextlib.suppress(ConfigError):
            self._kept.change(lambda kept: _AnswerCache(lines=dict([*kept.lines.items(), (content, line)][-_MOST:])))
