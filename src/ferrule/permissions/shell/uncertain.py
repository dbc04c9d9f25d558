"""Commands that could turn out to be one that a rule refuses, because not all that they run is known.

Where commands run confined without a question, such a one would be a way around the rule. What a script, a build or a
test runs by itself is not looked at: a rule about commands is about those that the line names.
"""

import os
import re
from collections.abc import Iterator, Sequence

from ferrule.permissions.shell.cover import CommandPart
from ferrule.permissions.shell.git_losses import alias_of, split
from ferrule.permissions.shell.line import GIVEN, Word
from ferrule.permissions.shell.nested import SHELLS
from ferrule.permissions.shell.programs import table

_READS = SHELLS | {"eval", "source", "."}
_ADDS = frozenset({"xargs", "parallel"})
"""They run a command with more words than are written."""
_HELPED = frozenset({"rg", "sort", "tar"})
"""A flag of theirs names a program that they give files."""
_CODE = (
    r"python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|perl|ruby|php|lua|Rscript|R|julia|osascript|tclsh|expect|pwsh|groovy"
    r"|elixir|iex|erl|vi|vim|nvim|view|ex|ed|emacs|less|more|most|man|gdb|lldb|[gmn]?awk|g?sed|sqlite3|psql|mysql"
    r"|tmux|screen|at|batch|crontab"
)
"""Programs that run what they find in the text of their words."""
_RENAMES = frozenset({"alias", "hash", "enable"})
"""With these a later word may be another program."""
_SAME = {
    "npm": {
        "install": "i in ins inst insta instal isnt isnta isntal isntall add",
        "uninstall": "un unlink remove rm r",
        "ci": "ic clean-install install-clean isntall-clean",
        "test": "t tst",
        "run": "run-script rum urn",
        "exec": "x",
        "update": "up upgrade udpate",
        "link": "ln",
    },
    "pnpm": {"install": "i", "remove": "rm uninstall un", "update": "up upgrade"},
    "cargo": {"build": "b", "check": "c", "doc": "d", "test": "t", "run": "r", "remove": "rm"},
    "git": {"add": "stage"},
    "brew": {"uninstall": "remove rm"},
}
"""Other words for a program's sub-commands."""
_GROUPS = frozenset({"image", "container"})
"""Docker's sub-commands also stand behind one of these."""
_SHORT = 2
"""So many letters of a sub-command may be an abbreviation of it."""
_OPERATORS = r"""[\s'",()\[\]{}+;&|]+"""
_SUBS = 6
"""So many words of git's are looked at for its sub-command."""


def could_be(
    every: Sequence[CommandPart], refused: Sequence[str], command: str, roots: Sequence[str], *, doubtful: bool = False
) -> str:
    """The rule that one of the commands of a line could turn out to be about; empty where none can be about any.

    `doubtful`: is it not certain what the line runs? Then a text of it may be run that stands for none here.
    """
    patterns = {rule: found[1] for rule in refused if (found := re.fullmatch(r"\w+\((?s:(.*))\)", rule))}
    # An alias holds for the lines behind it, the others at once.
    renamed = any(part.program in _RENAMES and len(part.simple.words) > 1 for part in every)
    for part in every:
        if refused and (renamed or _is_anything(part)):
            return refused[0]
        for words in _readings(part, command, roots):
            for rule, pattern in patterns.items():
                if _fits(pattern, words):
                    return rule
        for rule, pattern in patterns.items():
            if _means(pattern, part) or _mentions(pattern, part, command):
                return rule
    return next((rule for rule, pattern in patterns.items() if doubtful and _says(pattern, [command])), "")


def _is_anything(part: CommandPart) -> bool:
    """Does it run a program that is not known, or the text of commands that comes from elsewhere?"""
    words = part.simple.stripped or part.simple.words
    if not words:
        return False
    name = os.path.basename(words[0].text)
    if not words[0].known:
        return True
    certain = all(word.known for word in (*words, *part.simple.words))
    if name in _ADDS and GIVEN not in words and not certain:
        return True
    if name == "parallel" and not part.simple.inside:
        return True
    if name not in _READS:
        return False
    if not certain or any(word.text.startswith("/dev/") for word in words[1:]):
        return True
    # Without a script a shell runs what it reads; text that the line hands over has been looked at.
    alone = name in SHELLS and all(re.match(r"[-+]", word.text) for word in words[1:])
    handed = any(one.operator in {"<<", "<<-", "<<<"} for one in part.simple.redirects)
    return alone and not handed and not any(re.match(r"-\w*c|--(?:version|help)$", word.text) for word in words[1:])


def _readings(part: CommandPart, command: str, roots: Sequence[str]) -> Iterator[Sequence[Word]]:
    """The words of the command, where not all are known: those of a search, an alias of git's, or more to come."""
    simple = part.simple
    words = tuple(
        word._replace(known=False) if "{}" in word.text and word.known else word
        for word in simple.stripped or simple.words
    )
    if not words:
        return
    if not all(word.known for word in words):
        yield words
    if os.path.basename(words[0].text) in _ADDS | _HELPED:
        yield from ((*one.words, GIVEN) for one in simple.inside[:1])
    if os.path.basename(words[0].text) == "git":
        rest = [word for word in words[1:] if not (word.known and word.text.startswith("-"))]
        # A flag may have a word for its value, which is then taken for the sub-command too.
        for at, word in enumerate(rest[:_SUBS]):
            if word.known and f"git {word.text}" not in table() and simple.cwd is not None:
                if re.search(rf"(?i)alias\.{re.escape(word.text)}\b", command):
                    yield (words[0], GIVEN)
                alias = alias_of(word.text, (), os.path.join(simple.cwd, part.finding.folder), roots)
                if alias:
                    program = () if alias.startswith("!") else words[:1]
                    yield (*program, *split(alias.removeprefix("!")), *rest[at + 1 :], GIVEN)
                    break


def _fits(pattern: str, words: Sequence[Word]) -> bool:
    """Could the words be those of the pattern, as far as they are known? Flags before a sub-command do not count."""
    wanted = pattern.removesuffix(":*").split()
    flags = 1
    while flags < len(words) and words[flags].known and words[flags].text.startswith("-"):
        flags += 1
    # The last of these flags may have a value.
    starts = {1, flags, flags + 1} if flags > 1 else {1}
    return any(_begins(wanted, [words[0], *words[start:]]) for start in starts)


def _begins(wanted: Sequence[str], words: Sequence[Word]) -> bool:
    for text, word in zip(wanted, words, strict=False):
        if not word.known:
            return True
        if "*" in text:
            continue
        if text != word.text.rsplit("/", 1)[-1]:
            return False
    # All that is certain fits: more words may come, or what comes is behind what the pattern names.
    return len(wanted) > len(words) or all(word.known for word in words[: len(wanted)])


def _means(pattern: str, part: CommandPart) -> bool:
    """Are the words those of the pattern in another spelling: flags in another order, a program's other name?"""
    wanted, words = _plain_words(pattern), [word.text for word in part.simple.stripped or part.simple.words]
    if not wanted or not words:
        return False
    wanted, words = _normalize_words(wanted), _normalize_words(words)
    if wanted[0] != words[0]:
        return False
    named, flags = _split_flags(wanted[1:])
    given, had = _split_flags(words[1:])
    # A flag before the sub-command may have a value.
    starts = range(len(given) if words[1:2] and words[1].startswith("-") else 1)
    fits = any(
        all(text == meant or _is_short(text, meant, words[0]) for meant, text in zip(named, given[at:], strict=False))
        for at in starts
        if len(given) - at >= len(named)
    )
    return (fits or not named) and all(flag in had or _has(had, flag) for flag in flags)


def _plain_words(pattern: str) -> list[str]:
    return [text for text in pattern.removesuffix(":*").split() if "*" not in text]


def _normalize_words(words: Sequence[str]) -> list[str]:
    """A program by its plain name, with the words that its other names and those of its sub-commands stand for."""
    name, rest = re.sub(r"(?<=[a-z])[-\d.]*\d$|\.exe$", "", os.path.basename(words[0])), list(words[1:])
    if name == "python" and "-m" in rest:
        name, *rest = rest[rest.index("-m") + 1 :] or [name]
    if name.startswith("git-"):
        name, rest = "git", [name.removeprefix("git-"), *rest]
    if (name, rest[:1]) == ("uv", ["pip"]):
        name, rest = "pip", rest[1:]
    if rest and rest[0].startswith("+"):
        rest = rest[1:]  # the version of a tool chain
    at = next((at for at, text in enumerate(rest) if not text.startswith("-")), None)
    if at is not None:
        if name == "docker" and rest[at] in _GROUPS and at + 1 < len(rest):
            rest[at : at + 2] = ["rmi" if rest[at : at + 2] == ["image", "rm"] else rest[at + 1]]
        others = _SAME.get(name, {})
        rest[at] = next((sub for sub, texts in others.items() if rest[at] in texts.split()), rest[at])
    return [name, *rest]


def _split_flags(words: Sequence[str]) -> tuple[list[str], list[str]]:
    return [text for text in words if not text.startswith("-")], [text for text in words if text.startswith("-")]


def _is_short(text: str, meant: str, program: str) -> bool:
    """Could it be an abbreviation of the sub-command that is meant?"""
    return len(text) >= _SHORT and meant.startswith(text) and f"{program} {text}" not in table()


def _has(given: Sequence[str], meant: str) -> bool:
    """Could the flag be among these: cut short, or letter by letter in others, or a word for its letter?"""
    if not meant.startswith("--"):
        return all(any(_is_letter(letter, flag) for flag in given) for letter in meant[1:])
    return any(
        meant.startswith(flag.partition("=")[0]) if flag.startswith("--") else _is_letter(meant[2:3], flag)
        for flag in given
        if flag != "--"
    )


def _is_letter(letter: str, flag: str) -> bool:
    return letter.lower() in (flag[2:3] if flag.startswith("--") else flag[1:]).lower()


def _mentions(pattern: str, part: CommandPart, command: str) -> bool:
    """Is the refused command written in code that a program is given, or among the words of one that nobody knows?"""
    words = part.simple.stripped or part.simple.words
    name = os.path.basename(words[0].text) if words else ""
    if part.finding.harmless:
        return False
    runs = re.search(r"\b(runs?|program)\b", part.finding.doubt) is not None
    if not re.fullmatch(_CODE, name):
        return (runs or not part.finding.known) and _says(pattern, [" ".join(word.text for word in words[1:])])
    if name in {"sed", "gsed"} and not runs:
        return False
    reads = not any(word.known and not word.text.startswith("-") for word in words[1:])
    texts = [command] if reads else [word.text for word in words[1:]]
    texts += [one.target.text for one in part.simple.redirects if one.operator.startswith("<<")]
    return _says(pattern, texts)


def _says(pattern: str, texts: Sequence[str]) -> bool:
    """Do the words of the pattern stand in one of the texts, with nothing but blanks, quotes and the like between?"""
    wanted = _plain_words(pattern)
    sought = rf"(?<![\w.-]){_OPERATORS.join(map(re.escape, wanted))}(?![\w-]|\.\w)"
    return bool(wanted) and any(re.search(sought, text) for text in texts)
