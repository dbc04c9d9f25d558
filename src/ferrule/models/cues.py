"""Short words for the cues of a scripted conversation, for whoever writes one in Python."""

from collections.abc import Mapping
from typing import Any

from ferrule.models.model import Trouble
from ferrule.models.recorded import Cue, Failure, Repeat, Spoken, Whom
from ferrule.wire.turn import Reason, Usage

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
    return _cue(_parts(text, thinking, ()), reason=reason, usage=usage, expect=expect, whom=_whom(prompt, system))


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
    return _cue(_parts(text, thinking, uses), reason=reason, usage=usage, expect=expect, whom=_whom(prompt, system))


def fails(kind: Trouble, message: str = "It failed.", *, text: str = "", prompt: str = "", system: str = "") -> Cue:
    """It cannot be asked; or, with some text, it breaks off behind it."""
    return Cue(whom=_whom(prompt, system), text=text, fail=Failure(kind=kind, message=message))


def repeats(text: str = "", *uses: Used, why: str = "The stream was cut.", seconds: float = 0.0) -> Cue:
    """The stream is cut behind the text and the calls: the next cue is the answer."""
    return Cue(text=text, parts=tuple(map(_spoken, uses)), again=Repeat(why=why, seconds=seconds))


def hangs(text: str = "", *uses: Used, prompt: str = "", system: str = "") -> Cue:
    """It begins and does not end, until it is interrupted."""
    return Cue(whom=_whom(prompt, system), text=text, parts=tuple(map(_spoken, uses)), hang=True)


def _cue(parts: tuple[Spoken, ...], *, reason: Reason | None, usage: Usage, expect: Expected, whom: Whom | None) -> Cue:
    wanted = expect if isinstance(expect, str) else dict(expect)
    return Cue(whom=whom, parts=parts, reason=reason, usage=usage, expect=wanted)


def _parts(text: str, thinking: str, uses: tuple[Used, ...]) -> tuple[Spoken, ...]:
    thoughts = (Spoken(thinking=thinking),) if thinking else ()
    words = (Spoken(text=text),) if text else ()
    return (*thoughts, *words, *map(_spoken, uses))


def _spoken(use: Used) -> Spoken:
    if isinstance(use, Spoken):
        return use
    return Spoken(use=use[0], input=use[1], id=use[2] if len(use) == 3 else "")


def _whom(prompt: str, system: str) -> Whom | None:
    return Whom(prompt=prompt, system=system) if prompt or system else None
