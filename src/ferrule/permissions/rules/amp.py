"""Read Amp's permission rules: an ordered list in which the first matching rule decides.

The rules come as JSON with comments (the list itself, a settings file with dotted keys, or
`{"permissions": [...]}`) or as text with one rule in each line, such as
`allow Bash --cmd 'git diff*' --cmd 'git log*'`. If any part cannot be understood, the whole file is refused: half
of a policy is no policy.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import Action, Always, Layer, Rule, RuleSet
from ferrule.permissions.rules.match import AnyOf, Literal, Matches, Nested, NoneOf, Test, ToolNamePattern
from ferrule.permissions.rules.pattern import BadRulePattern, RulePattern, is_expression, literal
from ferrule.permissions.rules.pattern import read as read_pattern

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
    pieces += [f"--{name} {_quote(entry[name])}" for name in OPTIONS if name in entry]
    pieces.append(_quote(entry["tool"]))
    try:
        for key, condition in _flat(entry.get("matches", {})):
            pieces += [
                f"--{key} {_format_condition(one)}"
                for one in (condition if isinstance(condition, list) else [condition])
            ]
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


def _format_condition(condition: Any) -> str:
    if isinstance(condition, str):
        return _quote(condition)
    if isinstance(condition, dict | list):
        raise _NoTextFormError
    return json.dumps(condition)


def _quote(text: str) -> str:
    if re.fullmatch(_BARE, text) and not re.fullmatch(_LITERAL, text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


_LENGTH = 1 << 20
_RULES = 10_000
_EXPRESSIONS = 1000
_DEPTH = 32
_KEYS: dict[str, type] = {"tool": str, "action": str, "matches": dict, "context": str, "to": str, "message": str}
_COMMAND_KEYS = frozenset({"cmd", "command"})
"""What families call the argument that holds the command."""
_PREFIX = "amp."
_USED = frozenset(
    {"amp.permissions", "amp.dangerouslyAllowAll", "amp.tools.disable", "amp.tools.enable"}
    | {"amp.guardedFiles.allowlist"}
)


def read(text: str, *, source: str, layer: Layer, home: str) -> RuleSet:
    """The rules of a file; `source` names it for people, and `home` is what `$HOME` stands for.

    A file of a project opens no guarded files and does not turn the questions off, trusted or not.
    Raises: ConfigError, with the number of the rule and what to do.
    """
    if len(text) > _LENGTH:
        raise ConfigError(f"{source} is longer than {_LENGTH} characters; that is too much for rules.")
    reader = _AmpRulesReader(source, tuple(dict.fromkeys((home, os.path.realpath(home)))) if home else ())
    body = text.removeprefix("\ufeff")
    if not body.lstrip().startswith(("[", "{", "/")) or _is_line(body):
        return RuleSet(reader.lines(body), ordered=True, source=source, layer=layer, warnings=tuple(reader.warnings))
    with_settings = reader.json(body)
    if isinstance(with_settings, list):
        rules = reader.rules(with_settings)
        return RuleSet(rules, ordered=True, source=source, layer=layer, warnings=tuple(reader.warnings))
    return _settings(reader, with_settings, layer)


def _is_line(body: str) -> bool:
    """Does a text begin with a line that is a whole rule in JSON, as rules are shown that have no text form?"""
    try:
        return "action" in parse_line(body.lstrip().partition("\n")[0])
    except ConfigError:
        return False


def _settings(reader: "_AmpRulesReader", settings: Any, layer: Layer) -> RuleSet:
    if not isinstance(settings, dict):
        raise reader.wrong("a list of rules or an object with amp.permissions is expected")
    unknown = [key for key in settings if key != "permissions" and not key.startswith(_PREFIX)]
    if "permissions" in settings and "amp.permissions" in settings:
        raise reader.wrong("it has permissions and amp.permissions; keep one of them")
    if unknown and "permissions" not in settings and "amp.permissions" not in settings:
        raise reader.wrong(f"{json.dumps(unknown[0])} is not a setting with rules; the list of them is amp.permissions")
    entries = settings.get("amp.permissions", settings.get("permissions", []))
    if isinstance(entries, dict):
        raise reader.wrong("permissions is an object, as in Claude Code's settings; Amp's rules are a list")
    unused = [key for key in settings if key not in _USED and key != "permissions"]
    if unused:
        reader.warnings.append(f"{reader.source}: these settings are not used here: {', '.join(sorted(unused))}.")
    off = [_deny_rule(reader, text) for text in reader.texts(settings, "amp.tools.disable")]
    if "amp.tools.enable" in settings:
        kept = tuple(reader.names(text, strictly=True) for text in reader.texts(settings, "amp.tools.enable"))
        off.append(Rule("deny", "*", "amp.tools.enable", binds=NoneOf(kept), message="This tool is not enabled."))
    everything = settings.get("amp.dangerouslyAllowAll", False)
    if not isinstance(everything, bool):
        raise reader.wrong("amp.dangerouslyAllowAll is true or false")
    opened = reader.texts(settings, "amp.guardedFiles.allowlist")
    if layer == "project" and (everything or opened):
        reader.warnings.append(
            f"{reader.source}: a project neither turns the questions off nor opens guarded files; put "
            "amp.dangerouslyAllowAll and amp.guardedFiles.allowlist into your own settings if you want them."
        )
        everything, opened = False, []
    return RuleSet(
        (*off, *reader.rules(entries)),
        ordered=True,
        source=reader.source,
        layer=layer,
        warnings=tuple(reader.warnings),
        mode="bypassPermissions" if everything else "",
        guarded_allow=tuple(one for text in opened for one in reader.at_home(text)),
    )


def _deny_rule(reader: "_AmpRulesReader", text: str) -> Rule:
    name = text.removeprefix("builtin:")
    names = reader.names(name, strictly=False)._replace(built_in=name != text)
    return Rule("deny", name, f"amp.tools.disable {text}", binds=names, message="This tool is disabled.")


class _AmpRulesReader:
    """One file of rules."""

    def __init__(self, source: str, homes: tuple[str, ...]) -> None:
        self.source = source
        self.warnings: list[str] = []
        self._homes = homes
        self._expressions = 0

    def wrong(self, message: str, number: int | None = None) -> ConfigError:
        where = self.source if number is None else f"{self.source}, rule {number}"
        return ConfigError(f"{where}: {message}.")

    def json(self, text: str) -> Any:
        try:
            return parse_json(without_comments(text))
        except ConfigError as error:
            raise self.wrong(str(error)) from None

    def lines(self, text: str) -> tuple[Rule, ...]:
        entries: list[Any] = []
        for number, line in enumerate(text.split("\n"), start=1):
            try:
                entry = parse_line(line)
            except ConfigError as error:
                raise ConfigError(f"{self.source}, line {number}: {error}.") from None
            if entry:
                entries.append(entry)
        return self.rules(entries)

    def rules(self, entries: Any) -> tuple[Rule, ...]:
        if not isinstance(entries, list):
            raise self.wrong("the rules are a list")
        if len(entries) > _RULES:
            raise self.wrong(f"it has more than {_RULES} rules")
        return tuple(self._read_rule(number, entry) for number, entry in enumerate(entries, start=1))

    def texts(self, settings: Mapping[str, Any], key: str) -> list[str]:
        value = settings.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self.wrong(f"{key} is a list of texts")
        return cast("list[str]", value)

    def names(self, text: str, *, strictly: bool) -> ToolNamePattern:
        return ToolNamePattern(self._pattern(text, of_paths=False), strictly=strictly)

    def at_home(self, text: str) -> Iterable[str]:
        """A glob for each name of the home folder that it begins with."""
        if re.match(r"\$HOME(?![A-Za-z0-9_])", text):
            return [home + text.removeprefix("$HOME") for home in self._homes]
        return [text]

    def _read_rule(self, number: int, entry: Any) -> Rule:
        try:
            return self._rule(number, _check_entry(entry))
        except (BadRulePattern, ConfigError) as error:
            raise self.wrong(str(error), number) from None

    def _rule(self, number: int, entry: dict[str, Any]) -> Rule:
        action = cast("Action", {"reject": "deny"}.get(entry["action"], entry["action"]))
        tool = entry["tool"]
        strictly = action == "allow"
        tests = tuple((key, self._test(value, key)) for key, value in entry.get("matches", {}).items())
        self.warnings += [f"{self.source}, rule {number}: {doubt}." for doubt in _doubts(tests, strictly=strictly)]
        is_name = "*" not in tool and not is_expression(tool)
        return Rule(
            action,
            tool,
            show(entry),
            condition=Matches(tests) if tests else Always(),
            binds=None if is_name else self.names(tool, strictly=strictly),
            exact=_exact(tests),
            context=entry.get("context"),
            to=entry.get("to", ""),
            message=entry.get("message", ""),
        )

    def _test(self, value: Any, key: str, depth: int = 0) -> Test:
        if depth > _DEPTH:
            raise ConfigError(f"the condition on {key} is nested too deeply")
        if isinstance(value, str):
            return self._pattern(value, of_paths=True)
        if value is None or isinstance(value, bool | int | float):
            if isinstance(value, int | float) and not abs(value) < 1e300:
                raise ConfigError(f"the number for {key} is too large")
            return Literal(value)
        if not value:
            raise ConfigError(f"the condition on {key} is empty and would never hold; say what is to match")
        if isinstance(value, list):
            return AnyOf(tuple(self._test(one, key, depth + 1) for one in value))
        return Nested(tuple((inner, self._test(one, inner, depth + 1)) for inner, one in value.items()))

    def _pattern(self, text: str, *, of_paths: bool) -> RulePattern:
        self._expressions += is_expression(text)
        if self._expressions > _EXPRESSIONS:
            raise ConfigError(f"there are more than {_EXPRESSIONS} regular expressions; use globs")
        try:
            return read_pattern(text, self._homes, of_paths=of_paths)
        except BadRulePattern as error:
            raise ConfigError(f"the pattern {json.dumps(text[:80])} cannot be used: {error}") from None


def _check_entry(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError("a rule is an object with tool and action")
    for key, value in entry.items():
        if key not in _KEYS:
            raise ConfigError(f"{json.dumps(key)} is not a part of a rule; there are {', '.join(_KEYS)}")
        empty = value == "" and key != "message"
        if not isinstance(value, _KEYS[key]) or empty:
            kind = "an object" if key == "matches" else "a text that is not empty"
            raise ConfigError(f"{key} must be {kind}")
    for key in ("tool", "action"):
        if key not in entry:
            raise ConfigError(f"{key} is missing")
    if "" in entry.get("matches", {}):
        raise ConfigError("an argument in matches has no name")
    _check_parts(entry)
    return entry


def _check_parts(entry: Mapping[str, Any]) -> None:
    action, to = entry["action"], entry.get("to", "")
    if action not in ACTIONS:
        raise ConfigError(f"the action {json.dumps(action)} is not known; there are {', '.join(ACTIONS)}")
    if entry.get("context", "thread") not in {"thread", "subagent"}:
        raise ConfigError("context must be thread or subagent")
    if (action == "delegate") != ("to" in entry):
        raise ConfigError("to, the program that decides, belongs to the action delegate, which needs it")
    if "message" in entry and action != "reject":
        raise ConfigError("message belongs to the action reject only")
    if "\0" in to or (os.path.dirname(to) and not os.path.isabs(to)):
        raise ConfigError("to must be the name of a program on PATH, or an absolute path")


def _patterns(tests: Iterable[Test]) -> Iterable[Test]:
    for test in tests:
        if isinstance(test, AnyOf):
            yield from _patterns(test.tests)
        elif isinstance(test, Nested):
            yield from _patterns(inner for _, inner in test.tests)
        else:
            yield test


def _exact(tests: Sequence[tuple[str, Test]]) -> bool:
    commands = list(_patterns(test for key, test in tests if key in _COMMAND_KEYS))
    return bool(commands) and all(isinstance(test, RulePattern) and test.plain for test in commands)


def _doubts(tests: Sequence[tuple[str, Test]], *, strictly: bool) -> Iterable[str]:
    for test in _patterns(test for _, test in tests):
        if isinstance(test, RulePattern) and test.text.startswith("~/"):
            yield f"~ is not expanded in {test.text}; write $HOME instead"
        if isinstance(test, RulePattern) and test.kind == "either" and strictly:
            yield f"{test.text} may be a path or an expression, so it only allows what both match"


def without_comments(text: str) -> str:
    """JSON from JSON with comments and commas too many; every step takes time in proportion to the text."""

    def kept(found: re.Match[str]) -> str:
        piece = found[0]
        if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
            raise ConfigError("a comment is not closed")
        return piece if piece.startswith('"') else " "

    string = r'"(?>(?:[^"\\]|\\.)*)(?:"|\\?\Z)'
    bare = re.sub(rf"(?s){string}|//[^\n\r]*|/\*.*?(?:\*/|\Z)", kept, text)
    return re.sub(rf"(?s)({string})|,(?=\s*[\]}}])", lambda found: found[1] or "", bare)
