"""Describe and run one toolbox tool, a user's program or a Markdown file for a subagent.

A program is started with `TOOLBOX_ACTION=describe` or `TOOLBOX_ACTION=execute`. It describes itself as JSON or
as `key: value` text, and receives the parameters of a call in the same format.

Programs get the user's environment without variables that look secret, as commands do; `shell.keep_env` names
the exceptions. Amp passes on the whole environment, but a program that a model calls can print what it was
given.

A Markdown file describes a subagent: a tool that hands a task to another model.
"""

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import Mixed, Subagent, Subagents
from ferrule.core.tool import Args, Context, Raw, Tool
from ferrule.files.frontmatter import front_matter
from ferrule.output import clean, clean_value
from ferrule.sandbox import Wrapped
from ferrule.settings import Settings
from ferrule.sources.program import run_program, usable
from ferrule.system.environment import apart, quiet_environment
from ferrule.system.folder import READ_NO_LINK, is_regular
from ferrule.system.tree import Roster

Format = Literal["json", "text"]

GENERIC = "generic argument - use a sensible value"
"""What a parameter is described as about which nothing is said."""
MOST_WORDS_CHARS = 20_000
_TYPES = frozenset({"string", "boolean", "number", "integer"})
_JSON_TYPES = _TYPES | {"array", "object"}
_KEY = r"[A-Za-z0-9_.-]{1,64}"


class Description(NamedTuple):
    """A tool as it describes itself."""

    name: str
    """As it says it; empty where it says nothing."""
    words: str
    schema: dict[str, Any]
    format: Format
    """In which it described itself, and is given its parameters."""
    subagent_types: tuple[str, ...] | None = None


def parse_description(text: str) -> Description:
    """What was written: JSON, or else `key: value` lines. Raises ValueError with a sentence."""
    text = text.removeprefix("\ufeff").strip()
    if not text:
        raise ValueError("It did not describe itself: it wrote nothing.")
    try:
        said = msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("Its description nests too deep.") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        name, words, schema = _from_text(text)
        return Description(name.strip(), _check_description(words), usable(schema), "text")
    if not isinstance(said, dict):
        raise ValueError("Its description is JSON, but not an object with name and description.")  # noqa: TRY004 - ours
    return _from_json(clean_value(said))


def _from_json(said: dict[str, Any]) -> Description:
    name, words = said.get("name", ""), said.get("description")
    if not isinstance(name, str):
        raise ValueError("Its name is not a text.")  # noqa: TRY004 - it is about what a program wrote
    if not isinstance(words, str):
        raise ValueError("It has no description: a model would not know what it is for.")  # noqa: TRY004 - as above
    schema, spec = said.get("inputSchema"), said.get("args")
    if schema is None:
        if not isinstance(spec, dict | None):
            raise ValueError('Its "args" are not a JSON object.')
        schema = {"type": "object", "properties": {key: _parameter(key, value) for key, value in (spec or {}).items()}}
        if not spec:
            schema["required"] = []
    return Description(
        name.strip(), _check_description(words), usable(schema), "json", _subagent_types(said.get("meta"))
    )


def _parameter(key: str, spec: Any) -> dict[str, Any]:
    """A parameter in the compact form: nothing, a description, a type and a description, or an object of both."""
    kind: object = "string"
    words: object = GENERIC
    match spec:
        case None | True | []:
            pass
        case [words] | str(words):
            pass
        case [kind, words, *_]:
            pass
        case dict():
            kind, words = spec.get("type", kind), spec.get("description", words)
        case _:
            raise ValueError(f"Its argument {key[:80]!r} is not understood: write [type, description].")
    if not isinstance(words, str):
        raise ValueError(f"The description of its argument {key[:80]!r} is not a text.")  # noqa: TRY004 - as above
    kind = kind if isinstance(kind, str) and kind in _JSON_TYPES else "string"
    about: dict[str, Any] = {"type": kind, "description": words}
    # Some model APIs refuse a list that says nothing of what it holds.
    return {**about, "items": {}} if kind == "array" else about


def _subagent_types(meta: Any) -> tuple[str, ...] | None:
    types = meta.get("subagentTypes") if isinstance(meta, dict) else None
    if types is None:
        return None
    types = [types] if isinstance(types, str) else types
    if not isinstance(types, list) or not all(isinstance(one, str) for one in types):
        # A restriction that cannot be read must not become none.
        raise ValueError("Its meta.subagentTypes are not a list of texts.")
    return tuple(types)


def _from_text(text: str) -> tuple[str, str, dict[str, Any]]:
    """Name, description and schema of `key: value` lines."""
    name = ""
    words: list[str] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    for number, line in enumerate(clean(text).split("\n"), 1):
        if not line.strip():
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not re.fullmatch(_KEY, key):
            raise ValueError(f"Its description is neither JSON nor `key: value` lines: see line {number}.")
        if key == "description":
            words.append(value)
        elif key in properties or (key == "name" and name):
            raise ValueError(f"It says {key!r} twice, the second time in line {number}.")
        elif key == "name":
            name = value
        else:
            properties[key], is_optional = _parse_parameter(value)
            required += [] if is_optional else [key]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return name, "\n".join(words), schema


def _parse_parameter(value: str) -> tuple[dict[str, str], bool]:
    """A parameter as `[type] description`, and whether it is optional."""
    head, *rest = value.split(None, 1) or [""]
    kind = head.removesuffix("?")
    words = "".join(rest) if kind in _TYPES else value
    has_mark = kind in _TYPES and head.endswith("?")
    lowered = words.casefold()
    is_optional = has_mark or "(optional)" in lowered or lowered.startswith("optional")
    return {"type": kind if kind in _TYPES else "string", "description": words or GENERIC}, is_optional


def _check_description(words: str) -> str:
    words = words.strip()
    if not words:
        raise ValueError("It has no description: a model would not know what it is for.")
    if len(words) > MOST_WORDS_CHARS:
        raise ValueError(f"Its description has {len(words):,} characters; {MOST_WORDS_CHARS:,} is the most.")
    return words


_BREAKS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""What some program takes for the end of a line, and other control characters; a tab is none."""
_LATER_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029]")
"""Those of them that JSON lets pass as they are."""


def encode_input(values: Mapping[str, Any], form: Format) -> bytes:
    """What goes to the tool's standard input. Raises `BadArguments` for what the text format cannot say."""
    if form == "json":
        return msgspec.json.encode(values) + b"\n"
    lines: dict[str, str] = {}
    for key, value in _flat(values):
        if key in lines:
            raise BadArguments(f"Two values would both be called {key} where the tool reads them; send them flatter.")
        lines[key] = value
    return ("\n".join(f"{key}: {value}" for key, value in lines.items()) + "\n").encode()


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys and their values as text; members of lists and objects have keys of their own: `k_0`, `k_sub`."""
    unseen: list[tuple[str, Any]] = [(_key(str(key)), value) for key, value in reversed(list(values.items()))]
    while unseen:
        key, value = unseen.pop()
        if isinstance(value, dict | list) and value:
            members = value.items() if isinstance(value, dict) else enumerate(value)
            unseen += [(f"{key}_{_key(str(name))}", member) for name, member in reversed(list(members))]
        elif value is not None:
            yield key, one_line(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _key(name: str) -> str:
    """A name that can end nowhere but at its colon."""
    return re.sub(r"[^\w.-]", "_", name) or "_"


def one_line(value: str) -> str:
    """The value in one line: as it is, or as a JSON string where it has several, so that none looks like a key.

    A value that would be taken for such a string is made one too: what is written can always be read back.
    """
    if not _needs_quotes(value):
        return value
    quoted = msgspec.json.encode(value).decode()
    return _LATER_BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _needs_quotes(value: str) -> bool:
    while _BREAKS.search(value) is None:
        if not (len(value) > 1 and value[0] == value[-1] == '"'):
            return False
        try:
            value = msgspec.json.decode(value, type=str)
        except msgspec.DecodeError:
            return False
    return True


DESCRIBE_BYTES = 1 << 20
_TAIL_CHARS = 2_000


class FailedError(Exception):
    """A program did not describe itself; the sentence says why."""


def environment(
    settings: Settings, action: str, *, cwd: str, roots: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a toolbox's program finds in its environment; nothing in `roots` is looked for by its name."""
    env = apart(quiet_environment(os.environ, keep=settings.shell.keep_env), roots)
    own = {"TOOLBOX_ACTION": action, "AGENT": "amp", "CLAUDECODE": "1", "PWD": cwd}
    return {**env, **own, **(more or {})}


async def ask_description(
    path: str,
    settings: Settings,
    roster: Roster | None,
    roots: Sequence[str] = (),
    confine: Callable[[Sequence[str], str], Wrapped | None] | None = None,
) -> str:
    """What a program says when it is described; `confine` holds it to reading if commands can be confined.

    Raises `FailedError`.
    """
    # Nobody has asked for this run yet: the workspace has no part in it.
    folder, seconds = os.path.dirname(path), settings.tools.describe_seconds
    try:
        wrapped = (confine([path], folder) if confine is not None else None) or Wrapped((path,))
        ran = await run_program(
            wrapped.argv,
            ctx=None,
            cwd=folder,
            env={**environment(settings, "describe", cwd=folder, roots=roots), **wrapped.env},
            seconds=seconds,
            roster=roster,
            apart=True,
            head_chars=DESCRIBE_BYTES,
            tail_chars=_TAIL_CHARS,
            limit_bytes=DESCRIBE_BYTES,
            wrapped=wrapped,
        )
    except ToolFailure as error:
        raise FailedError(
            f"{error.message} Its first line must name what runs it, as `#!/usr/bin/env bash`."
        ) from error
    if ran.flooded or ran.missing_chars:
        raise FailedError(f"It wrote more than {DESCRIBE_BYTES:,} bytes when it was described.")
    if ran.timed_out:
        raise FailedError(f"It did not describe itself within {seconds:g} seconds.")
    if ran.exit_code != 0:
        why = last_line(ran.errors) or last_line(ran.output)
        raise FailedError(f"It ended with exit code {ran.exit_code} when it was described{f': {why}' if why else '.'}")
    return ran.output


def last_line(text: str) -> str:
    """The last line that says something, as far as one reads it."""
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "")


_log = logging.getLogger("ferrule")

_HEAD_CHARS = _TOOL_TAIL_CHARS = 48_000
"""Kept of the output in memory, about as much as a reply holds; the log has the rest."""
_ERROR_CHARS = 4_000


class ToolboxTool(Tool[Raw, Mixed]):
    """One executable of a toolbox."""

    args = Raw
    source = "toolbox"

    def __init__(
        self,
        path: str,
        name: str,
        description: Description,
        *,
        session: str,
        pin: str = "",
        roots: Sequence[str] = (),
    ) -> None:
        """`pin` is the hash of the program that has described itself, where no other may run in its place.

        `roots` are the folders of the workspace, where it looks for no program.
        """
        self.name = name
        self.words = description.words
        self.schema = description.schema
        self.subagent_types = description.subagent_types
        self.origin = path
        self.exit_code: int | None = None
        """How its last run ended; for the command line."""
        self._format = description.format
        self._session = session
        self._pin = pin
        self._roots = tuple(roots)

    async def run(self, args: Raw, ctx: Context) -> Mixed:
        parameters = encode_input(args.values, self._format)
        if self._pin and await asyncio.to_thread(fingerprint, self.origin) != self._pin:
            raise ToolFailure(
                f"It was not run: {self.origin} has changed since it described itself. The project has to be trusted "
                "anew, in a new session.",
                code="changed",
            )
        settings, cwd = ctx.need(Settings), ctx.path(".")
        thread = {"AMP_THREAD_ID": self._session, "AGENT_THREAD_ID": self._session}
        ran = await run_program(
            [self.origin],
            ctx=ctx,
            cwd=cwd,
            env=environment(settings, "execute", cwd=cwd, roots=self._roots, more=thread),
            stdin=parameters,
            roster=ctx.need(Roster),
            apart=True,
            head_chars=_HEAD_CHARS,
            tail_chars=_TOOL_TAIL_CHARS,
        )
        code = self.exit_code = ran.exit_code
        text, errors = ran.output.removesuffix("\n"), ran.errors.strip()
        if code == 0:
            if errors:
                _log.debug("%s wrote to its standard error: %s", self.name, errors[-_ERROR_CHARS:])
            return Mixed((text,))
        parts = [text, errors[-_ERROR_CHARS:], f"The tool failed with exit code {code}."]
        return Mixed(("\n".join(part for part in parts if part),), failed=True)


def fingerprint(path: str) -> str:
    """A hash of a program's bytes; empty where it cannot be read, or is a link."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        descriptor = os.open(path, READ_NO_LINK)
        try:
            if not is_regular(descriptor):
                return ""
            while piece := os.read(descriptor, 1 << 20):
                digest.update(piece)
        finally:
            os.close(descriptor)
    except OSError:
        return ""
    return digest.hexdigest()


def hash_content(content: bytes | None) -> str:
    """The same of a content; empty where there is none."""
    return "" if content is None else hashlib.blake2b(content, digest_size=16).hexdigest()


PREFIX = "tb__"
MOST_CHARS = 64
"""What model APIs take, with the prefix."""
_HASH_CHARS = 8


def tool_name(said: str) -> str:
    """`tb__` and the name that a tool gives itself, in characters that model APIs take.

    Blanks become hyphens, other characters go, and a name that is too long ends in a hash of the whole.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "", re.sub(r"\s", "-", said))
    plain = re.sub(r"-{2,}", "-", plain).strip("-") or "tool"
    room = MOST_CHARS - len(PREFIX)
    if len(plain) > room:
        digest = hashlib.blake2b(said.encode(errors="surrogatepass"), digest_size=_HASH_CHARS // 2).hexdigest()
        plain = f"{plain[: room - _HASH_CHARS - 1]}-{digest}"
    return PREFIX + plain


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
