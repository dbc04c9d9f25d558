"""Words as a search for code compares them: names taken apart, endings taken off, kindred words beside each other."""

import functools
import re
from collections.abc import Mapping

NAME = re.compile(r"[^\W\d]\w{1,63}")
"""A name of a program, or a word of a text. What is longer was written by a machine."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_LEAST = 2
_STEMMED = 4
"""Shorter words stay as they are: little would be left of them."""

_SAYS_NOTHING = (
    "a about all also an and any are as at be because been before but by can code could did do does done each"
    " every exist exists find for from get gets give given go goes had handled happen happens has have how i if"
    " implemented in into is it its kind like list located look made make makes many may me might must my no not"
    " of on one only or our out place places put really see shall show should so some somewhere such tell than"
    " that the their them then there these they thing things this those to us used uses using very via want was"
    " way we were what when where whether which while who whose why will with work works would you"
)
_KIN = (
    "symlink link",
    "directory dir folder",
    "config configuration setting option preference",
    "delete remove unlink",
    "cancel abort interrupt stop",
    "error failure exception",
    "retry again attempt backoff",
    "auth login permission",
    "parse decode",
    "serialize encode dump",
    "argument parameter param",
    "database sqlite db sql",
    "timeout deadline limit",
    "concurrent parallel",
    "queue schedule scheduler",
    "start launch spawn",
    "fetch download",
    "create new make",
    "check validate verify",
    "print output show display",
    "test spec",
    "dependency requirement",
    "entry main",
    "secret credential token",
    "cache kept",
    "truncate cut shorten",
    "shell command bash",
    "sandbox confine confinement",
    "merge combine join layer",
    "strip scrub sanitize clean escape",
    "misspell typo suggestion near",
    "kill terminate end",
    "environment env variable",
)


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """What a word in small letters has in common with its other forms, roughly: `walked` and `walks` are `walk`."""
    if len(word) < _STEMMED:
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if word.endswith(ending):
            word = word[: -len(ending)] + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ations", "ation", "ings", "ing", "ers", "er", "ed", "ly", "ment", "or", "ion"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _STEMMED - 1 and any(vowel in rest for vowel in "aeiouy"):
            word = rest
            break
    if len(word) >= _STEMMED and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] if len(word) > _STEMMED and word.endswith("e") else word


@functools.lru_cache(maxsize=65_536)
def terms(name: str) -> tuple[str, ...]:
    """What a name is found by: itself, and its parts where it has several, as in `readFile` and `read_file`."""
    parts = [part.lower() for part in _PART.findall(name)]
    whole = stem(parts[0]) if len(parts) == 1 else name.strip("_").lower()
    found = [whole, *map(stem, parts)] if len(parts) > 1 else [whole]
    return tuple(dict.fromkeys(one for one in found if len(one) >= _LEAST))


def asked(query: str) -> dict[str, float]:
    """The terms of a question, each with how much it counts; words that every question has count nothing."""
    found: dict[str, float] = {}
    says_nothing = frozenset(_SAYS_NOTHING.split())
    for name in NAME.findall(query):
        if name.lower() in says_nothing:
            continue
        for place, term in enumerate(terms(name)):
            is_part = place > 0
            found[term] = max(found.get(term, 0.0), 0.6 if is_part else 1.0)
    for term in list(found):
        for other in _kin().get(term, ()):
            found.setdefault(other, 0.35 * found[term])
    return found


@functools.cache
def _kin() -> Mapping[str, tuple[str, ...]]:
    kin: dict[str, tuple[str, ...]] = {}
    for row in _KIN:
        stems = [stem(word) for word in row.split()]
        for one in stems:
            kin[one] = (*kin.get(one, ()), *(other for other in stems if other != one))
    return kin
