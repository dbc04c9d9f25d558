"""Check the small programs in the arguments of commands such as sed, awk, jq, grep, test and printf.

The reader of sed scripts knows the commands that only print, and no others. It parses each script as GNU sed
does, and refuses scripts that another sed could split at a different place.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ferrule.files.globs import BadGlob, expand
from ferrule.files.guard import SECRET, kind_of
from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, is_single
from ferrule.permissions.shell.line import Word

_ALONE = ["p", "P", "=", "n", "N", "d", "D", "g", "G", "h", "H", "x", "z", "F"]
_NUMBERED = ["q", "Q", "l"]
_BRANCHES = ["b", "t", "T"]
_REACHING = {
    "w": "writes a file",
    "W": "writes a file",
    "e": "runs a program",
    "r": "reads a file",
    "R": "reads a file",
}


class Refused(Exception):  # noqa: N818 - a state, for the caller alone
    """Why a script is not known to be plain."""


def refusal(script: str) -> str:
    """Why the script may do more than print; empty where it only prints."""
    try:
        _Script(script).commands()
    except Refused as error:
        return str(error)
    return ""


class _Script:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def commands(self) -> None:
        while self._skip(" \t\n;"):
            if self._take(r"\}"):
                self.depth -= 1
                if self.depth < 0:
                    raise Refused("sed's script has a bracket too many")
                self._end()
                continue
            self._addresses()
            self._command()
        if self.depth:
            raise Refused("sed's script lacks a bracket")

    def _skip(self, blanks: str) -> bool:
        while self.at < len(self.text) and self.text[self.at] in blanks:
            self.at += 1
        return self.at < len(self.text)

    def _take(self, pattern: str) -> str | None:
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group()

    def _addresses(self) -> None:
        if self._address():
            self._skip(" \t")
            if self._take(","):
                self._skip(" \t")
                if self._take(r"[+~]\d+") is None and not self._address():
                    raise Refused("sed's script has an address that is not known")
        self._skip(" \t")
        while self._take("!"):
            self._skip(" \t")

    def _address(self) -> bool:
        if self._take(r"\d+(~\d+)?") or self._take(r"\$"):
            return True
        if self._take("/"):
            self._until("/")
        elif opened := self._take(r"\\[^\n\\]"):
            self._until(opened[1])
        else:
            return False
        self._take("[IM]*")
        return True

    def _command(self) -> None:
        letter = self._take(r"(?s:.)")
        if letter in _REACHING:
            raise Refused(f"sed's {letter} command {_REACHING[letter]}")
        if letter == "{":
            self.depth += 1
        elif letter in {"s", "y"}:
            self._replacement(letter)
        elif letter in _ALONE:
            self._end()
        elif letter in _NUMBERED:
            self._take(r"[ \t]*\d*")
            self._end()
        elif letter == ":":
            if not self._take(r"[ \t]*\w+"):
                raise Refused("sed's script has a label that is not known")
            self._end()
        elif letter in _BRANCHES:
            self._take(r"[ \t]*\w*")
            self._end()
        else:
            raise Refused(f"sed's {letter or 'empty'} command is not known to be plain")

    def _replacement(self, letter: str) -> None:
        delimiter = self._take(r"[^\n\\]")
        if delimiter is None:
            raise Refused("sed's script lacks a delimiter")
        self._until(delimiter)
        self._until(delimiter)
        if letter == "s":
            self._take(r"[gpiImM0-9]*")
            flag = self.text[self.at : self.at + 1]
            if flag == "w":
                raise Refused("sed's w flag writes a file")
            if flag == "e":
                raise Refused("sed's e flag runs a program")
        self._end()

    def _until(self, delimiter: str) -> None:
        """To the end of a pattern. Some seds do not end one inside of brackets: that is refused."""
        begin = self.at
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "\\":
                self.at += 1
                # Behind a backslash the line may go on in a replacement; in a pattern that is an error.
            elif letter == delimiter:
                body = self.text[begin : self.at]
                self.at += 1
                if _open_bracket(body):
                    raise Refused("sed's script has its delimiter inside of brackets")
                return
            elif letter == "\n":
                break
            self.at += 1
        raise Refused("sed's script has a pattern without an end")

    def _end(self) -> None:
        """A command ends at a semicolon, a new line, a closing bracket or the end of the script."""
        self._skip(" \t")
        if self.at < len(self.text) and self.text[self.at] not in ";\n}":
            raise Refused("sed's script goes on where a command should end")


def _open_bracket(body: str) -> bool:
    """Does the text end inside of a list of characters?"""
    at = 0
    while at < len(body):
        if body[at] == "\\":
            at += 2
        elif body[at] == "[":
            # The first character of a list, after `^`, does not end it; `[:alpha:]` and its like are lists inside.
            close = re.compile(r"\[\^?\]?(?:\[[:.=]\w{1,20}[:.=]\]|[^\]])*\]").match(body, at)
            if close is None:
                return True
            at = close.end()
        else:
            at += 1
    return False


_AWK = (
    r"system|getline|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|ARGV|ARGC|close|fflush|func|extension|include|load|@|::|\\\n|\\$"
    r"|/inet"
)
"""Text that a plain awk program has nowhere, not even in its strings: what is a string is a question of its grammar."""
_TOLD = r"\$(?:\s|#[^\n]*\n)*(?:ENV|__)"
"""Variables that tell the environment; between the dollar and the name there may be blanks, and even a comment."""
_JQ = _TOLD + r"|(?<![.\w])env\b|\b(?:import|include|modulemeta|get_search_list|input_filename|halt_error)\b"
_ENDINGS = (
    "py:py* rust:rs js:*js* ts:*ts* go:go c:[chH]* cpp:[chHit]* java:j* md:m* markdown:m* html:*htm* css:*css ruby:r*"
    " php:ph* swift:swift kotlin:kt* scala:s* lua:lua sql:*sql json:*json yaml:y*ml toml:toml csv:csv txt:txt vue:vue"
    " svelte:svelte elixir:e* haskell:*hs zig:zig cs:cs proto:proto graphql:g* xml:x* svg:svg"
)
"""The types of ripgrep that are told by endings alone, as globs of these."""
_COMMON = frozenset({"", ".", *(f".{one}" for one in ("json", "yaml", "yml", "toml", "ini", "old", "orig", "bak"))})
"""What is left of a glob that fits far more than secret files."""
_SEARCHES = ("-c", "--count", "--count-matches", "-l", "--files-with-matches", "--files-without-match", "--json")
"""Flags of ripgrep that have it search though another one has it list."""
_YQ = rf"(?i){_TOLD}|\b(?:load\w*|env|strenv|envsubst|eval|import|include|input_filename|split_doc|system)\b"


def sed(given: CommandArguments) -> ArgumentAnalysis:
    """All parts of the script together, as sed joins them."""
    parts = given.values("-e", "--expression") or list(given.operands[:1])
    if not parts:
        return ArgumentAnalysis("sed has no script")
    if any(not part.known for part in parts):
        return ArgumentAnalysis("sed's script is not certain")
    return ArgumentAnalysis(refusal("\n".join(part.text for part in parts)))


def awk(given: CommandArguments) -> ArgumentAnalysis:
    """Patterns, fields and `print`: nothing that runs a command, opens a file or tells the environment."""
    if not given.operands or not given.operands[0].known:
        return ArgumentAnalysis("awk's program is not certain")
    text = given.operands[0].text
    condition, _, rest = text.partition("{")
    # Before the first block there is no statement, so `>` compares there and `|` is part of a pattern.
    writes = ">" in rest or "|" in rest.replace("||", "") or ("{" not in text and re.search(r"\bprint", condition))
    if writes or re.search(_AWK, text):
        return ArgumentAnalysis("awk's program may run commands or write files")
    # A later word such as `FS=,` sets a variable; such a word could also set the names of more files.
    if any(word.known and "=" in word.text for word in given.operands[1:]):
        return ArgumentAnalysis("awk takes a word with = for a variable")
    return ArgumentAnalysis()


def jq(given: CommandArguments) -> ArgumentAnalysis:
    """A jq program cannot write or run anything; it may tell the environment or load modules."""
    return _clean(given.operands[:1], _JQ, "jq's program may tell the environment or load a file")


def yq(given: CommandArguments) -> ArgumentAnalysis:
    """There are two programs of that name, and one takes a sub-command first: every word is looked at."""
    return _clean(given.operands, _YQ, "yq's program may tell the environment or load a file")


def _clean(words: tuple[Word, ...], pattern: str, why: str) -> ArgumentAnalysis:
    if any(not word.known for word in words):
        return ArgumentAnalysis("the program in its words is not certain")
    return ArgumentAnalysis(why if any(re.search(pattern, word.text) for word in words) else "")


def grep(given: CommandArguments) -> ArgumentAnalysis:
    """With a search through folders and no folder named it takes the one where it runs."""
    walks = given.has("-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories")
    named = len(given.operands) - (0 if given.has("-e", "--regexp") else 1)
    globs = [value.text if value.known else "*" for value in given.values("--include")]
    reads = (".",) if walks and named < 1 else ()
    # With `--exclude` before them, files that fit none of these are searched as well.
    only = () if given.has("--exclude") else tuple(value.text for value in given.values("--include"))
    return ArgumentAnalysis(reads=(*reads, *secrets_named(globs)), searches=tuple(globs), only=only)


def ag(given: CommandArguments) -> ArgumentAnalysis:
    """It is told which files to look into by patterns of their names."""
    patterns = [value.text if value.known else "" for value in given.values("-G", "--file-search-regex")]
    try:
        found = next((name for name in _samples() for one in patterns if re.search(one, name)), "")
    except re.error:
        found = _samples()[0]
    return ArgumentAnalysis(reads=(found,) if found else ())


def rg(given: CommandArguments) -> ArgumentAnalysis:
    """Globs and types let it look into hidden files that they match."""
    if given.has("--files", "--type-list"):
        # What it is told to search for counts more than that it is to list, wherever it stands.
        return (
            ArgumentAnalysis("rg is told to list and to search")
            if given.has(*_SEARCHES)
            else ArgumentAnalysis(names_only=True)
        )
    globs = [value for value in given.values("-g", "--glob", "--iglob") if not value.text.startswith("!")]
    endings = dict(pair.split(":") for pair in _ENDINGS.split())
    types = [value.text if value.known else "" for value in given.values("-t", "--type")]
    unhides = [value.text if value.known else "*" for value in globs]
    return ArgumentAnalysis(
        unhides=(*unhides, *(f"*.{endings[name]}" if name in endings else "*" for name in types)),
        reads=secrets_named(unhides),
        searches=tuple(unhides),
    )


def secrets_named(globs: Iterable[str]) -> tuple[str, ...]:
    """Names of secret files that a search is told to look into: by a glob that fits such a name, and few others.

    One such as `*.json` names none; whether there are secret files that it fits, the folder tells.
    """
    ends = [one.lower().rstrip("/").rpartition("/")[2] for glob in globs for one in _alternatives(glob)]
    telling = [end for end in ends if re.sub(r"[*?]|\[[^]]*\]", "", end) not in _COMMON]
    plain = (re.sub(r"[*?]+|\[[^]]*\]", "x", end) for end in telling)
    fitting = (name for name in _samples() if any(fnmatchcase(name, end) for end in telling))
    return tuple(itertools.islice((name for name in (*plain, *fitting) if kind_of(name)), 1))


def _alternatives(glob: str) -> Sequence[str]:
    try:
        return expand(glob)
    except BadGlob:  # the program says so
        return (glob,)


@functools.lru_cache(maxsize=1)
def _samples() -> tuple[str, ...]:
    """One name of each kind that secret files have."""
    found: dict[str, None] = {}
    for pattern in SECRET:
        if "/" in pattern:
            continue
        head, _, rest = pattern.partition("{")
        choices, _, tail = rest.partition("}")
        for choice in choices.split(","):
            found.setdefault((head + choice + tail).replace("*", "x"))
    found.setdefault("credentials.json")
    return tuple(name for name in found if name != "credentials.x")


def known_words(given: CommandArguments) -> ArgumentAnalysis:
    """A calculation; what only the shell knows may be anything."""
    return ArgumentAnalysis(harmless=all(word.known for word in given.operands))


def plus(given: CommandArguments) -> ArgumentAnalysis:
    """A pager takes a word with `+` for a command of its own, which may run a program."""
    return ArgumentAnalysis(
        "a pager takes a word with + for a command" if any(w.text.startswith("+") for w in given.operands) else ""
    )


def printf(given: CommandArguments) -> ArgumentAnalysis:
    """The format `%n` sets a variable."""
    if given.operands and not given.operands[0].known:
        return ArgumentAnalysis(harmless=False)
    text = given.operands[0].text.replace("%%", "") if given.operands else ""
    return ArgumentAnalysis("printf's %n changes a variable" if re.search(r"%[-+ #'0-9.*hlLjztq]*n", text) else "")


def brackets(given: CommandArguments) -> ArgumentAnalysis:
    """Comparisons and questions about files. `-v` and `-R` evaluate an index, which may run a command."""
    words, unknown = given.operands, [word for word in given.operands if not word.known]
    if any(word.known and word.text in {"-v", "-R"} for word in words):
        return ArgumentAnalysis("test -v evaluates what it is given")
    if any(word.known and re.search(r"\[.|[$`]", word.text) for word in words):
        return ArgumentAnalysis("test may evaluate such a word")
    if any(not is_single(word) for word in unknown) or len(unknown) > 1:
        return ArgumentAnalysis("test may evaluate a word that only the shell knows" if unknown else "")
    files = itertools.pairwise(words)
    reads = tuple(file.text for flag, file in files if re.fullmatch(r"-[a-hkprsuwxLOGSN]", flag.text) and file.known)
    return ArgumentAnalysis(reads=reads)
