r"""Patterns for file names: `**`, `*`, `?`, `[a-z]`, `[!a]`, `{a,b}` and `\`, on relative paths with `/`.

A wildcard does not match the dot that begins a hidden name, and `**` does not enter a hidden directory:
the pattern has to write that dot. Matching takes time in proportion to pattern times path, whatever they are.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache

_ALTERNATIVES = 512
_LENGTH = 4096
_BRACES = 32
_EXPANDED = 16_384
"""Of all alternatives together; compiling more would hold up the event loop."""


class BadGlob(ValueError):  # noqa: N818 - the reader is a model
    """The pattern stands for too many patterns, or is too long."""


_Element = str | None
"""An expression that takes one character, or None for a star."""


def matcher(pattern: str, *, dots: bool = False, ignore_case: bool = False) -> Callable[[str], bool]:
    """Does a path match? With `dots`, wildcards also match hidden names.

    Raises: BadGlob.
    """
    match, ends = _compile_glob(pattern, dots, ignore_case)
    return lambda path: path.endswith(ends) and match(path) is not None


def select(pattern: str, paths: Iterable[str]) -> list[str]:
    """The paths that match, in their order; without a call of ours for each of thousands.

    Raises: BadGlob.
    """
    match, ends = _compile_glob(pattern, False, False)
    return [path for path in paths if path.endswith(ends) and match(path)]


@lru_cache(maxsize=256)
def only_end(pattern: str) -> str:
    """The end of a name that is all that a pattern asks for: `.py` for `**/*.py`; empty where it asks for more."""
    end = _literal_end(pattern)
    return end if pattern == f"**/*{end}" and re.fullmatch(r"[A-Za-z0-9_.-]+", end) else ""


@lru_cache(maxsize=256)
def _compile_glob(
    pattern: str,
    dots: bool,  # noqa: FBT001 - a cache key
    ignore_case: bool,  # noqa: FBT001 - the same
) -> tuple[Callable[[str], re.Match[str] | None], tuple[str, ...]]:
    """An expression for whole paths, and the suffixes that a match can have.

    Most paths of a tree fail on their suffix, and comparing that costs a fraction of the expression.
    """
    alternatives = expand(pattern)
    expression = "|".join(_alternative(alternative, dots=dots) for alternative in alternatives)
    match = re.compile(expression, re.DOTALL | (re.IGNORECASE if ignore_case else 0)).fullmatch
    ends = {_literal_end(alternative) for alternative in alternatives}
    return match, ("",) if ignore_case or "" in ends else tuple(ends)


def escape(path: str) -> str:
    """A pattern that matches this path and nothing else."""
    return re.sub(r"([*?\[\]{}\\!,])", r"\\\1", path)


def names_hidden(pattern: str) -> bool:
    """Does the pattern write the leading dot of some name, so that hidden files can match?

    Raises: BadGlob.
    """
    return any(
        component.removeprefix("\\").startswith(".") and component not in {".", ".."}
        for alternative in expand(pattern)
        for component in alternative.split("/")
    )


def literal_prefix(pattern: str) -> str:
    """The directories that every match is below, as far as the pattern names them without a wildcard.

    Raises: BadGlob.
    """
    common: list[str] | None = None
    for alternative in expand(pattern):
        names: list[str] = []
        for component in alternative.split("/")[:-1]:
            if component == ".." or any(map(_wild, _elements(component))):
                break
            names.append(re.sub(r"\\(.)", r"\1", component, flags=re.DOTALL))
        if common is None:
            common = names
        while common != names[: len(common)]:
            common.pop()
    return "/".join(common or ())


def exclude_names(pattern: str, names: Collection[str]) -> list[str]:
    """Patterns that together match what `pattern` does, in any case, but not files of these names.

    Only a last name of plain characters and one `*` at its end can be divided so; another pattern is given back whole.
    """
    folder, slash, last = pattern.rpartition("/")
    start = last.removesuffix("*")
    ends = {name[len(start) :].lower() for name in names if name.lower().startswith(start.lower())}
    if start == last or re.search(r"[*?\[\]{}\\]", start) or not ends or not all(map(str.isalnum, ends)):
        return [pattern]
    patterns: list[str] = []
    for begun in sorted({end[:size] for end in ends for size in range(len(end) + 1)}):
        following = sorted({end[len(begun)] for end in ends if end.startswith(begun) and end != begun})
        patterns += [begun] * (begun not in ends)
        patterns.append(begun + (f"[!{''.join(following)}]*" if following else "?*"))
    return [folder + slash + start + one for one in patterns]


@lru_cache(maxsize=256)
def expand(pattern: str) -> tuple[str, ...]:
    """The patterns without braces that the pattern stands for, each once, with their slashes tidied.

    Raises: BadGlob.
    """
    if len(pattern) > _LENGTH:
        raise BadGlob(f"The pattern has {len(pattern)} characters; at most {_LENGTH} are possible.")
    if pattern.count("{") > _BRACES:
        raise BadGlob(f"The pattern has more than {_BRACES} braces; use fewer of them, or `*`.")
    alternatives = tuple(dict.fromkeys(_tidy(alternative) for alternative in _braces(pattern)))
    if sum(map(len, alternatives)) > _EXPANDED:
        raise BadGlob(f"The braces stand for more than {_EXPANDED:,} characters of patterns; use fewer, or `*`.")
    return alternatives


def _tidy(pattern: str) -> str:
    names = [name for name in pattern.split("/") if name not in {"", "."}]
    if pattern.endswith("/"):
        names.append("**")  # a directory stands for what is in it
    absolute = pattern.startswith("/")
    names = [name for at, name in enumerate(names) if name != "**" or names[at - 1 : at] != ["**"]]
    return "/" * absolute + "/".join(names)


def _braces(pattern: str) -> list[str]:
    whole = [""]
    at = 0
    while at < len(pattern):
        options = _options(pattern, at) if pattern[at] == "{" else None
        if options is None:
            size = 2 if pattern[at] == "\\" else 1
            while at + size < len(pattern) and pattern[at + size] not in "{\\":
                size += 1
            whole = [head + pattern[at : at + size] for head in whole]
            at += size
            if len(whole) * len(whole[0]) > _EXPANDED * 4:
                raise BadGlob("The braces stand for too many long patterns; use fewer of them, or `*`.")
            continue
        parts, at = options
        tails = [tail for part in parts for tail in _braces(part)]
        if len(whole) * len(tails) > _ALTERNATIVES:
            raise BadGlob(f"The braces stand for more than {_ALTERNATIVES} patterns; use fewer of them, or `*`.")
        whole = [head + tail for head in whole for tail in tails]
    return whole


def _options(pattern: str, start: int) -> tuple[list[str], int] | None:
    """The parts of the brace at `start`, and where the text goes on after it; None if it is not closed."""
    parts = [""]
    depth = 0
    at = start
    while at < len(pattern):
        character = pattern[at]
        size = 2 if character == "\\" else 1
        piece = pattern[at : at + size]
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return parts, at + 1
        if depth == 1 and character == ",":
            parts.append("")
        elif at > start:
            parts[-1] += piece
        at += size
    return None


def _alternative(pattern: str, *, dots: bool) -> str:
    """One pattern without braces as an expression.

    A run between two wildcards is taken at its leftmost place and never given back (atomic groups): a later
    place leaves less to match, so nothing is lost and backtracking cannot explode. Hidden directories do not
    change that: a run that begins later would have to cross the same names.
    """
    if not pattern:
        return "(?!)"
    above = r"(?:[^/]+/)*?" if dots else r"(?:[^/.][^/]*/)*?"
    last = r"[^/]+" if dots else r"[^/.][^/]*"
    runs: list[list[str]] = [[]]
    names = pattern.split("/")
    for name in names[:-1]:
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(_component(name, dots=dots) + "/")
    runs[-1].append(last if names[-1] == "**" else _component(names[-1], dots=dots))
    if names[-1] == "**":
        runs.append([runs[-1].pop()])
    head, *rest = ("".join(run) for run in runs)
    if not rest:
        return head
    return head + "".join(f"(?>{above}{run})" for run in rest[:-1]) + above + rest[-1]


def _component(name: str, *, dots: bool) -> str:
    runs: list[list[str]] = [[]]
    elements = list(_elements(name))
    for element in elements:
        if element is None:
            runs.append([])
        else:
            runs[-1].append(element)
    guarded = not dots and elements != [] and _wild(elements[0])
    head, *rest = ("".join(run) for run in runs)
    expression = (r"(?!\.)" if guarded else "") + head
    if rest:
        expression += "".join(f"(?>[^/]*?{run})" for run in rest[:-1] if run) + "[^/]*" + rest[-1]
        # A name is never empty: a pattern of stars alone must take at least one character.
        expression = expression if any(map(len, runs)) else expression.replace("[^/]*", "[^/]+")
    return expression


def _wild(element: _Element) -> bool:
    return element is None or element[0] in "[("


def _elements(name: str) -> Iterator[_Element]:
    at = 0
    while at < len(name):
        character = name[at]
        at += 1
        if character == "*":
            yield None
        elif character == "?":
            yield "[^/]"
        elif character == "[" and (closed := _class_end(name, at)):
            yield _class(name[at:closed])
            at = closed + 1
        elif character == "\\" and at < len(name):
            yield re.escape(name[at])
            at += 1
        else:
            yield re.escape(character)


def _class_end(name: str, at: int) -> int:
    """Where the bracket closes, or 0. One that comes first is a member."""
    at += name[at : at + 1] in {"!", "^"}
    start = at
    while at < len(name):
        if name[at] == "]" and at > start:
            return at
        at += 2 if name[at] == "\\" else 1
    return 0


def _class(body: str) -> str:
    negated = body[0] in "!^"
    characters = [(one[-1], len(one) == 1) for one in re.findall(r"\\.|.", body[negated:], flags=re.DOTALL)]
    members: list[str] = []
    at = 0
    while at < len(characters):
        low = characters[at][0]
        if at + 2 < len(characters) and characters[at + 1] == ("-", True):
            high = characters[at + 2][0]
            if low <= high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
            at += 3
        else:
            members.append(re.escape(low))
            at += 1
    if negated:
        return "[^/" + "".join(members) + "]"
    # The lookahead keeps a range such as `[+-9]` from matching the slash in it.
    return "(?!/)[" + "".join(members) + "]" if members else "(?!)"


def _literal_end(pattern: str) -> str:
    r"""Plain characters that every match ends with. Taking `]` and `\` for wildcards is only careful."""
    return re.split(r"[*?\]\\]", pattern)[-1].rpartition("/")[2]
