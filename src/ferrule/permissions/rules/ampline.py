"""The text form of Amp's rules: one line is one rule, such as `allow Bash --cmd 'git diff*' --cmd 'git log*'`."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules.expression import literal
from ferrule.permissions.rules.pattern import is_expression

ACTIONS = ("allow", "reject", "ask", "delegate")
OPTIONS = ("context", "to", "message")
"""What stands before the tool; the same words after it are arguments of the tool."""
_LITERAL = r"true|false|null|-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?"
_BARE = r"[A-Za-z0-9_@%+,./][A-Za-z0-9_@%+,./:=-]*"
_KEY = r"--([^\s:='\"\\*-][^\s:='\"\\*]*)(?::([a-z]+))?"
_OPERATORS = ("glob", "regex", "literal", "eq")


class _Word(NamedTuple):
    """One word of a line."""

    text: str
    quoted: bool
    """Is any of it in quotes, or after a backslash? Then it is a text, whatever it looks like."""
    wild: bool
    """Does it have a star that is not in quotes?"""


def parse_line(text: str) -> dict[str, Any]:
    """The rule of a line, as it would stand in JSON; empty for a line that has only a comment.

    Raises: ConfigError.
    """
    if text.lstrip().startswith("{"):
        whole: dict[str, Any] = parse_json(text)
        return whole
    words = _words(text)
    if not words:
        return {}
    entry: dict[str, Any] = {"action": words[0].text}
    if words[0].text not in ACTIONS:
        raise ConfigError(f"a line begins with {', '.join(ACTIONS)}, and not with {words[0].text}")
    at = 1
    while at < len(words) and _is_key(words[at]):
        name = words[at].text[2:]
        if name not in OPTIONS:
            raise ConfigError(f"{words[at].text} stands before the tool; only --{', --'.join(OPTIONS)} may")
        if name in entry:
            raise ConfigError(f"--{name} is there twice")
        entry[name] = _value(words, at).text
        at += 2
    if at == len(words):
        raise ConfigError("the tool is missing")
    entry["tool"] = words[at].text
    matches = _matches(words[at + 1 :])
    return entry | {"matches": matches} if matches else entry


def show(entry: Mapping[str, Any]) -> str:
    """The line of a rule. One that has no text form, such as one with a line break in it, is shown as JSON."""
    pieces = [entry["action"]]
    pieces += [f"--{name} {_quoted(entry[name])}" for name in OPTIONS if name in entry]
    pieces.append(_quoted(entry["tool"]))
    try:
        for key, condition in _flat(entry.get("matches", {})):
            pieces += [f"--{key} {_shown(one)}" for one in (condition if isinstance(condition, list) else [condition])]
    except _NoTextFormError:
        return json.dumps(entry)
    line = " ".join(pieces)
    return line if line.isprintable() else json.dumps(entry)


def parse_json(text: str) -> Any:
    """A JSON value in which no key is there twice and no number is none.

    Raises: ConfigError.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            left = dict(pairs)
            twice = next(key for key, _ in pairs if left.pop(key, left) is left)
            raise ConfigError(f"the key {json.dumps(twice)} is there twice")
        return found

    def no_number(word: str) -> None:
        raise ConfigError(f"{word} is not JSON")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except RecursionError:
        raise ConfigError("it is nested too deeply") from None
    except ValueError as error:
        raise ConfigError(f"it is not JSON ({error})") from None


class _NoTextFormError(Exception):
    """The condition can be written in JSON only."""


def _matches(words: list[_Word]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for at in range(0, len(words), 2):
        name = None if words[at].quoted else re.fullmatch(_KEY, words[at].text)
        if name is None:
            raise ConfigError(f"{words[at].text} stands where an argument's name is expected, such as --path")
        key, operator = name[1], name[2]
        value = _value(words, at)
        if value.wild:
            raise ConfigError(f"{value.text} has a * and must be in quotes: --{key} '{value.text}'")
        if operator is not None and operator not in _OPERATORS:
            raise ConfigError(f"--{key}:{operator} is not known; there are :{', :'.join(_OPERATORS)}")
        found.setdefault(key, []).append(_condition(value, operator))
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def _condition(value: _Word, operator: str | None) -> Any:
    """JSON has no operators: what one of them says is said there by how the text looks."""
    text = value.text
    if operator == "regex":
        if not text:
            raise ConfigError("a regular expression is empty")
        slashes = re.sub(r"(?s)(\\.)|/", lambda found: found[1] or r"\/", text)
        return text if is_expression(text) else f"/{slashes}/"
    if operator == "glob":
        pieces = ".*".join(map(literal, text.split("*")))
        return f"/^{pieces}$/s" if is_expression(text) else text
    if not value.quoted and re.fullmatch(_LITERAL, text):
        number = json.loads(text)
        if number in {float("inf"), float("-inf")}:
            raise ConfigError(f"{text} is too large a number")
        return number
    if operator is None or not (is_expression(text) or "*" in text or "$" in text):
        return text
    return f"/^{literal(text)}$/"


def _value(words: list[_Word], at: int) -> _Word:
    if at + 1 == len(words) or _is_key(words[at + 1]):
        raise ConfigError(f"{words[at].text} has no value; one that begins with -- must be in quotes")
    return words[at + 1]


def _is_key(word: _Word) -> bool:
    return word.text.startswith("--") and not word.quoted


def _words(text: str) -> list[_Word]:
    """As a shell splits a line; nothing is expanded."""
    found: list[_Word] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == "#":
            break
        else:
            word, at = _word(text, at)
            found.append(word)
    return found


def _word(text: str, at: int) -> tuple[_Word, int]:
    pieces: list[str] = []
    quoted = wild = False
    piece = re.compile(r"""(?s)'([^']*)'|"((?>(?:[^"\\]|\\.)*))"|\\(.)|([^\s'"\\]+)""")
    while at < len(text) and not text[at].isspace():
        found = piece.match(text, at)
        if found is None:
            what = "a backslash has nothing after it" if text[at] == "\\" else f"the quote {text[at]} is not closed"
            raise ConfigError(what)
        single, double, escaped, bare = found.groups()
        if double is not None:
            # A backslash before anything else stays, so that "\d" is what it looks like.
            double = re.sub(r'\\(["\\$`])', r"\1", double)
        pieces.append(next(one for one in (single, double, escaped, bare) if one is not None))
        quoted |= bare is None
        wild |= bare is not None and "*" in bare
        at = found.end()
    return _Word("".join(pieces), quoted, wild), at


def _flat(matches: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """The conditions by dotted keys, for the text form has no objects."""
    flat: list[tuple[str, Any]] = []
    for key, condition in matches.items():
        if ":" in key or not re.fullmatch(_KEY, f"--{before}{key}"):
            raise _NoTextFormError
        if isinstance(condition, dict):
            flat += _flat(condition, f"{before}{key}.")
        elif condition == []:
            raise _NoTextFormError
        else:
            flat.append((before + key, condition))
    if len({key for key, _ in flat}) != len(flat) or (before and not flat):
        raise _NoTextFormError
    return flat


def _shown(condition: Any) -> str:
    if isinstance(condition, str):
        return _quoted(condition)
    if isinstance(condition, dict | list):
        raise _NoTextFormError
    return json.dumps(condition)


def _quoted(text: str) -> str:
    if re.fullmatch(_BARE, text) and not re.fullmatch(_LITERAL, text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
