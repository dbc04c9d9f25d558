"""A closer look at the little programs that commands carry in their words: sed, awk, jq, test, printf."""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence

from ferrule.permissions.shell.form import Given, Judged, is_single
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.sed import refusal
from ferrule.support.globs import BadGlob, expand
from ferrule.workspace.secrets import SECRET, kind_of

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


def sed(given: Given) -> Judged:
    """All parts of the script together, as sed joins them."""
    parts = given.values("-e", "--expression") or list(given.operands[:1])
    if not parts:
        return Judged("sed has no script")
    if any(not part.known for part in parts):
        return Judged("sed's script is not certain")
    return Judged(refusal("\n".join(part.text for part in parts)))


def awk(given: Given) -> Judged:
    """Patterns, fields and `print`: nothing that runs a command, opens a file or tells the environment."""
    if not given.operands or not given.operands[0].known:
        return Judged("awk's program is not certain")
    text = given.operands[0].text
    condition, _, rest = text.partition("{")
    # Before the first block there is no statement, so `>` compares there and `|` is part of a pattern.
    writes = ">" in rest or "|" in rest.replace("||", "") or ("{" not in text and re.search(r"\bprint", condition))
    if writes or re.search(_AWK, text):
        return Judged("awk's program may run commands or write files")
    # A later word such as `FS=,` sets a variable; such a word could also set the names of more files.
    if any(word.known and "=" in word.text for word in given.operands[1:]):
        return Judged("awk takes a word with = for a variable")
    return Judged()


def jq(given: Given) -> Judged:
    """A jq program cannot write or run anything; it may tell the environment or load modules."""
    return _clean(given.operands[:1], _JQ, "jq's program may tell the environment or load a file")


def yq(given: Given) -> Judged:
    """There are two programs of that name, and one takes a sub-command first: every word is looked at."""
    return _clean(given.operands, _YQ, "yq's program may tell the environment or load a file")


def _clean(words: tuple[Word, ...], pattern: str, why: str) -> Judged:
    if any(not word.known for word in words):
        return Judged("the program in its words is not certain")
    return Judged(why if any(re.search(pattern, word.text) for word in words) else "")


def grep(given: Given) -> Judged:
    """With a search through folders and no folder named it takes the one where it runs."""
    walks = given.has("-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories")
    named = len(given.operands) - (0 if given.has("-e", "--regexp") else 1)
    globs = [value.text if value.known else "*" for value in given.values("--include")]
    reads = (".",) if walks and named < 1 else ()
    # With `--exclude` before them, files that fit none of these are searched as well.
    only = () if given.has("--exclude") else tuple(value.text for value in given.values("--include"))
    return Judged(reads=(*reads, *secrets_named(globs)), searches=tuple(globs), only=only)


def ag(given: Given) -> Judged:
    """It is told which files to look into by patterns of their names."""
    patterns = [value.text if value.known else "" for value in given.values("-G", "--file-search-regex")]
    try:
        found = next((name for name in _samples() for one in patterns if re.search(one, name)), "")
    except re.error:
        found = _samples()[0]
    return Judged(reads=(found,) if found else ())


def rg(given: Given) -> Judged:
    """Globs and types let it look into hidden files that they match."""
    if given.has("--files", "--type-list"):
        # What it is told to search for counts more than that it is to list, wherever it stands.
        return Judged("rg is told to list and to search") if given.has(*_SEARCHES) else Judged(names_only=True)
    globs = [value for value in given.values("-g", "--glob", "--iglob") if not value.text.startswith("!")]
    endings = dict(pair.split(":") for pair in _ENDINGS.split())
    types = [value.text if value.known else "" for value in given.values("-t", "--type")]
    unhides = [value.text if value.known else "*" for value in globs]
    return Judged(
        unhides=(*unhides, *(f"*.{endings[name]}" if name in endings else "*" for name in types)),
        reads=secrets_named(unhides),
        searches=tuple(unhides),
    )


def secrets_named(globs: Iterable[str]) -> tuple[str, ...]:
    """Names of secret files that a search is told to look into: by a glob that fits such a name, and few others.

    One such as `*.json` names none; whether there are secret files that it fits, the folder tells.
    """
    from fnmatch import fnmatchcase  # for searches alone

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


def known_words(given: Given) -> Judged:
    """A calculation; what only the shell knows may be anything."""
    return Judged(harmless=all(word.known for word in given.operands))


def plus(given: Given) -> Judged:
    """A pager takes a word with `+` for a command of its own, which may run a program."""
    return Judged(
        "a pager takes a word with + for a command" if any(w.text.startswith("+") for w in given.operands) else ""
    )


def printf(given: Given) -> Judged:
    """The format `%n` sets a variable."""
    if given.operands and not given.operands[0].known:
        return Judged(harmless=False)
    text = given.operands[0].text.replace("%%", "") if given.operands else ""
    return Judged("printf's %n changes a variable" if re.search(r"%[-+ #'0-9.*hlLjztq]*n", text) else "")


def brackets(given: Given) -> Judged:
    """Comparisons and questions about files. `-v` and `-R` evaluate an index, which may run a command."""
    words, unknown = given.operands, [word for word in given.operands if not word.known]
    if any(word.known and word.text in {"-v", "-R"} for word in words):
        return Judged("test -v evaluates what it is given")
    if any(word.known and re.search(r"\[.|[$`]", word.text) for word in words):
        return Judged("test may evaluate such a word")
    if any(not is_single(word) for word in unknown) or len(unknown) > 1:
        return Judged("test may evaluate a word that only the shell knows" if unknown else "")
    files = itertools.pairwise(words)
    reads = tuple(file.text for flag, file in files if re.fullmatch(r"-[a-hkprsuwxLOGSN]", flag.text) and file.known)
    return Judged(reads=reads)
