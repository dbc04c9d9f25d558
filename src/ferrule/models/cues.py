"""Read and write the file format of recorded conversations: JSON lines that people can edit.

The first line is a header that describes the file. Every other line is one cue: the model's answer to one
request. Empty lines and lines that begin with `#` are ignored.

Placeholders stand for values that differ between machines and runs. `${workspace}` is the folder that the
conversation works in, and `${python}` is the interpreter. `${result:ID:REGEX}` is the match of the regular
expression in the result of the call ID: its first group, or the whole match. A second dollar sign in front,
`$${workspace}`, means the text itself.

Short helper functions build the cues of a conversation in Python.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec
import regex  # type: ignore[import-untyped]

from ferrule.core.errors import ConfigError, FerruleError
from ferrule.models import Prices, Trouble
from ferrule.wire import Reason, Usage
from ferrule.wire.conversation import json_text

_Kind = TypeVar("_Kind")

VERSION = 1
LIMIT_BYTES = 256 << 20


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line, or a part of one; what is as usual is not written."""


class Header(_Line, frozen=True, kw_only=True):
    """The first line: what is recorded here, and of which model."""

    ferrule: Literal["conversation"] = "conversation"
    version: int = VERSION
    model: str = "scripted"
    """The model's own id; the dialect follows from it."""
    wire: str = "scripted"
    window: int = 200_000
    most_output: int = 32_000
    prices: Prices | None = None
    vision: bool = True
    piece: int | None = None
    """How many characters come at once, where the cue does not say it; None means a word."""
    pause: float = 0.0
    """How many seconds pass before each piece, where the cue does not say it."""


class Spoken(_Line, frozen=True, kw_only=True):
    """A part of an answer: words, thinking, or the use of a tool."""

    text: str | None = None
    thinking: str | None = None
    signature: str = ""
    sealed: str = ""
    wire: str | None = None
    """The wire that the thinking came on, where it is not the header's."""
    use: str | None = None
    """The name of the tool."""
    id: str = ""
    """Counted where it is left out: `c1`, `c2` and so on through the file."""
    input: dict[str, Any] | str = {}
    """An object; text is sent as it is, whether it is JSON or not."""
    free: bool = False
    """Does the tool take free text?"""
    cut: bool = False
    """Did the answer stop in the middle of the input?"""


class Whom(_Line, frozen=True, kw_only=True):
    """The conversation that a cue is for. What is named has to be in it; where several fit, the longest text counts."""

    prompt: str = ""
    """A part of the first words of the user; of those of the call, for a subagent."""
    system: str = ""
    """A part of the system prompt."""


class RecordedFailure(_Line, frozen=True, kw_only=True):
    """The model cannot be asked, or breaks off."""

    kind: Trouble
    message: str = "The recording says that this fails."


class Repeat(_Line, frozen=True, kw_only=True):
    """What was said until here is void; the next cue is the answer."""

    why: str = "The recording says that the stream was cut."
    seconds: float = 0.0


class RecordedError(_Line, frozen=True, kw_only=True):
    """The API reports an error in the middle of the answer, which ends all the same."""

    message: str
    kind: str = ""


class Cue(_Line, frozen=True, kw_only=True):
    """What a model says when it is asked once."""

    whom: Whom | None = msgspec.field(default=None, name="for")
    """None for the conversation that no other cue is for."""
    prompt: str = ""
    """What the user had said; for whoever reads it, nothing is compared with it."""
    expect: dict[str, str | list[str]] | str = {}
    """What has to be in the result of a call, by its id; a text has to be in what the model heard last."""
    text: str = ""
    """Words, before the parts: most answers have no others."""
    parts: tuple[Spoken, ...] = ()
    reason: Reason | None = None
    """`tools` where a tool is used and `end` where none is, if nothing is said."""
    usage: Usage = Usage()
    piece: int | None = None
    pause: float | None = None
    broke: RecordedError | None = None
    """Comes after all parts."""
    fail: RecordedFailure | None = None
    """The same."""
    again: Repeat | None = None
    """The same."""
    hang: bool = False
    """After all parts nothing comes any more, and no end: until whoever asked has had enough."""

    @property
    def stops(self) -> Reason:
        return self.reason or ("tools" if any(part.use is not None for part in self.parts) else "end")


class Recorded(msgspec.Struct, frozen=True):
    """A whole file."""

    header: Header
    cues: tuple[Cue, ...]

    @property
    def prompts(self) -> tuple[str, ...]:
        """What the user said in the main conversation, in order."""
        return tuple(cue.prompt for cue in self.cues if cue.prompt and cue.whom is None)


def line(written: Header | Cue) -> bytes:
    """One line of a file."""
    value = msgspec.to_builtins(written)
    if isinstance(written, Header):
        value = {"ferrule": written.ferrule, "version": written.version, **value}
    elif usage := {name: count for name, count in value.pop("usage", {}).items() if count}:
        value["usage"] = usage
    return json_text(value).encode() + b"\n"


def read(path: str) -> Recorded:
    """Raises: ConfigError, which names the line."""
    try:
        with open(path, "rb") as file:
            raw = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"The recording {path} cannot be read: {error.strerror}.") from error
    if len(raw) > LIMIT_BYTES:
        raise ConfigError(f"The recording {path} is larger than {LIMIT_BYTES >> 20} MiB and is not read.")
    try:
        lines = raw.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no recording: it is not UTF-8.") from error
    rows = [(at, line) for at, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise ConfigError(f"The recording {path} is empty.")
    header = _header(rows[0][1], f"{path}, line {rows[0][0]}")
    return Recorded(header, tuple(_cue(line, f"{path}, line {at}") for at, line in rows[1:]))


def _header(line: str, where: str) -> Header:
    value = _value(line, where)
    if not isinstance(value, dict) or value.get("ferrule") != "conversation":
        raise ConfigError(
            f'{where}: this is no recorded conversation; its first line would say {{"ferrule":"conversation",…}}.'
        )
    if value.get("version") != VERSION:
        raise ConfigError(
            f"{where}: the recording has version {value.get('version')!r}, and this Ferrule knows {VERSION}."
        )
    return _convert(value, Header, where)


def _cue(line: str, where: str) -> Cue:
    cue = _convert(_value(line, where), Cue, where)
    if sum((cue.fail is not None, cue.again is not None, cue.hang)) > 1:
        raise ConfigError(f"{where}: of `fail`, `again` and `hang` there can be one.")
    for part in cue.parts:
        if sum(kind is not None for kind in (part.text, part.thinking, part.use)) != 1:
            raise ConfigError(f"{where}: each part has one of `text`, `thinking` and `use`.")
    return cue


def _value(line: str, where: str) -> Any:
    try:
        return json.loads(line)  # lone surrogates, which models do write, are read by no other
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: this is no JSON: {error}.") from error


def _convert(value: Any, kind: type[_Kind], where: str) -> _Kind:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}.") from error


_LOOK_SECONDS = 1.0
"""For one look: an expression can be written so that it takes for ever."""


class NotFound(FerruleError):  # noqa: N818 - the state: whoever replays turns it into an error of its own
    """Nothing in a result is what a recording wants from there; the message is a sentence."""


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(
        r"\$(?P<escaped>\$+\{(?:workspace\}|python\}|result:))"
        r"|\$\{(?P<name>workspace|python)\}"
        r"|\$\{result:(?P<id>[^:{}]+):(?P<regex>(?:[^{}]|\{[^{}]*\})*)\}"
    )


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with every text in it changed; names of members stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(member, change) for member in value]
    if isinstance(value, dict):
        return {key: each_text(member, change) for key, member in value.items()}
    return value


def fill_placeholders(value: Any, workspace: str, results: Callable[[], Mapping[str, str]]) -> Any:
    """A value of a recording as it is here and now; `results` are looked at only where something wants one.

    Raises: NotFound.
    """

    def put(match: re.Match[str]) -> str:
        if escaped := match["escaped"]:
            return escaped
        if name := match["name"]:
            return workspace if name == "workspace" else sys.executable
        return _find_in_result(match["id"], match["regex"], results())

    return each_text(value, lambda text: _marks().sub(put, text) if "${" in text else text)


def _find_in_result(call_id: str, expression: str, results: Mapping[str, str]) -> str:
    if call_id not in results:
        raise NotFound(f"it wants something from the result of {call_id}, and there is none.")

    try:
        match = regex.search(expression, results[call_id], timeout=_LOOK_SECONDS)
    except TimeoutError as error:
        raise NotFound(f"the regular expression {expression!r} takes too long to look for.") from error
    except (regex.error, OverflowError, RecursionError) as error:
        raise NotFound(f"the regular expression {expression!r} is not valid: {error}.") from error
    if match is None:
        raise NotFound(f"nothing in the result of {call_id} matches {expression!r}.")
    return (match[1] if match.re.groups else match[0]) or ""


class Portable:
    """Makes what a model said fit for other machines."""

    def __init__(self, workspace: str) -> None:
        names = {sys.executable: "${python}"}
        for path in (os.path.realpath(workspace), os.path.abspath(workspace)):
            names[path] = "${workspace}"
        self._names = {path: name for path, name in names.items() if path != os.path.dirname(path)}
        """A root folder is no name for a workspace: every path would match it."""
        paths = "|".join(re.escape(path) for path in sorted(self._names, key=len, reverse=True))
        self._paths = re.compile(rf"(?<![\w$./\\-])(?:{paths})(?![\w-]|\.\w)") if paths else None
        self._special = re.compile(r"\$+\{(?:workspace\}|python\}|result:)")
        self._secrets: dict[str, None] = {}

    def hide(self, secrets: Iterable[str]) -> None:
        """These are never written, whoever says them: a model may have been told a key, or a host repeats it."""
        self._secrets |= dict.fromkeys(secrets)

    def insert_placeholders(self, value: Any, results: Mapping[str, str] | None = None) -> Any:
        """The inverse of `filled`. With `results`, ids that were read there are looked for there again."""
        return self._replace_ids(each_text(value, self._text), results) if results else each_text(value, self._text)

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = self._special.sub(lambda match: "$" + match[0], text)
        return self._paths.sub(lambda match: self._names[match[0]], text) if self._paths else text

    def _replace_ids(self, value: Any, results: Mapping[str, str]) -> Any:
        if isinstance(value, list):
            return [self._replace_ids(member, results) for member in value]
        if not isinstance(value, dict):
            return value
        return {
            key: _lookup(member, results)
            if isinstance(member, str) and (key.lower().endswith("id") or key == "resume")
            else self._replace_ids(member, results)
            for key, member in value.items()
        }


def _lookup(text: str, results: Mapping[str, str]) -> str:
    """Ids are made anew in every run: one that stood in a result is told by the words before it."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{5,64}", text):  # what else is a letter is not the same to everybody
        return text
    for call_id, result in results.items():
        at = re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", result)
        if at is None or ":" in call_id or "{" in call_id or "}" in call_id:
            continue
        before = re.split(r"[{}\n]", result[max(0, at.start() - 24) : at.start()])[-1]
        expression = re.escape(before).replace("\\ ", " ") + r"([\w-]+)"
        again = re.search(expression, result)
        if before.strip() and again is not None and again[1] == text:
            return f"${{result:{call_id}:{expression}}}"
    return text


Used = tuple[str, dict[str, Any] | str] | tuple[str, dict[str, Any] | str, str] | Spoken
"""A tool's name, its input and, where it matters, the id of the call."""
Expected = Mapping[str, str | list[str]] | str
_NOTHING: Expected = {}


def said(
    text: str,
    *,
    thinking: str = "",
    reason: Reason | None = None,
    usage: Usage = Usage(),  # noqa: B008 - frozen
    expect: Expected = _NOTHING,
    prompt: str = "",
    system: str = "",
) -> Cue:
    """It says something; `prompt` and `system` name the conversation in which it does."""
    return _cues_cue(_parts(text, thinking, ()), reason=reason, usage=usage, expect=expect, whom=_whom(prompt, system))


def calls(
    *uses: Used,
    text: str = "",
    thinking: str = "",
    reason: Reason | None = None,
    usage: Usage = Usage(),  # noqa: B008 - frozen
    expect: Expected = _NOTHING,
    prompt: str = "",
    system: str = "",
) -> Cue:
    """It calls tools: `calls(("Read", {"file_path": "a.py"}), ("Grep", {"pattern": "x"}), text="I look.")`.

    Calls without an id are `c1`, `c2` and so on through the script; text as input is sent as it is.
    """
    return _cues_cue(
        _parts(text, thinking, uses), reason=reason, usage=usage, expect=expect, whom=_whom(prompt, system)
    )


def fails(kind: Trouble, message: str = "It failed.", *, text: str = "", prompt: str = "", system: str = "") -> Cue:
    """It cannot be asked; or, with some text, it breaks off behind it."""
    return Cue(whom=_whom(prompt, system), text=text, fail=RecordedFailure(kind=kind, message=message))


def repeats(text: str = "", *uses: Used, why: str = "The stream was cut.", seconds: float = 0.0) -> Cue:
    """The stream is cut behind the text and the calls: the next cue is the answer."""
    return Cue(text=text, parts=tuple(map(_convert_use, uses)), again=Repeat(why=why, seconds=seconds))


def hangs(text: str = "", *uses: Used, prompt: str = "", system: str = "") -> Cue:
    """It begins and does not end, until it is interrupted."""
    return Cue(whom=_whom(prompt, system), text=text, parts=tuple(map(_convert_use, uses)), hang=True)


def _cues_cue(
    parts: tuple[Spoken, ...], *, reason: Reason | None, usage: Usage, expect: Expected, whom: Whom | None
) -> Cue:
    wanted = expect if isinstance(expect, str) else dict(expect)
    return Cue(whom=whom, parts=parts, reason=reason, usage=usage, expect=wanted)


def _parts(text: str, thinking: str, uses: tuple[Used, ...]) -> tuple[Spoken, ...]:
    thoughts = (Spoken(thinking=thinking),) if thinking else ()
    words = (Spoken(text=text),) if text else ()
    return (*thoughts, *words, *map(_convert_use, uses))


def _convert_use(use: Used) -> Spoken:
    if isinstance(use, Spoken):
        return use
    return Spoken(use=use[0], input=use[1], id=use[2] if len(use) == 3 else "")


def _whom(prompt: str, system: str) -> Whom | None:
    return Whom(prompt=prompt, system=system) if prompt or system else None
