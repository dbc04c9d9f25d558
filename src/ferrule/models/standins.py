"""What stands in a recording for values that differ from one machine and one run to the next.

`${workspace}` is the folder that the conversation works in and `${python}` the interpreter. `${result:ID:REGEX}` is
what the regular expression finds in the result of the call ID: its first group, or all that it matched.
A second dollar sign in front, `$${workspace}`, means the text itself.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from ferrule.core.errors import FerruleError

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


def filled(value: Any, workspace: str, results: Callable[[], Mapping[str, str]]) -> Any:
    """A value of a recording as it is here and now; `results` are looked at only where something wants one.

    Raises: NotFound.
    """

    def put(match: re.Match[str]) -> str:
        if escaped := match["escaped"]:
            return escaped
        if name := match["name"]:
            return workspace if name == "workspace" else sys.executable
        return _found(match["id"], match["regex"], results())

    return each_text(value, lambda text: _marks().sub(put, text) if "${" in text else text)


def _found(call_id: str, expression: str, results: Mapping[str, str]) -> str:
    if call_id not in results:
        raise NotFound(f"it wants something from the result of {call_id}, and there is none.")
    import regex  # type: ignore[import-untyped]  # it has no types, and it can be stopped; for recordings that look

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

    def made(self, value: Any, results: Mapping[str, str] | None = None) -> Any:
        """The inverse of `filled`. With `results`, ids that were read there are looked for there again."""
        return self._borrowed(each_text(value, self._text), results) if results else each_text(value, self._text)

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = self._special.sub(lambda match: "$" + match[0], text)
        return self._paths.sub(lambda match: self._names[match[0]], text) if self._paths else text

    def _borrowed(self, value: Any, results: Mapping[str, str]) -> Any:
        if isinstance(value, list):
            return [self._borrowed(member, results) for member in value]
        if not isinstance(value, dict):
            return value
        return {
            key: _lookup(member, results)
            if isinstance(member, str) and (key.lower().endswith("id") or key == "resume")
            else self._borrowed(member, results)
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
