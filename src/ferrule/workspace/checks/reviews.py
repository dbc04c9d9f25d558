"""Reviews that files describe: `.agents/checks/*.md`, what a reviewer is to look for in the files beside and below it.

A file is a prompt that others may have written: it gives no right to anybody. In a project nothing is read through a
link, and what a file says to keep tools from its reviewer and cannot be understood makes it unusable. Of two reviews of
one name the closer one holds for its files; where one lies inside the folder of the other, the outer one leaves that
out.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import describe
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.skill import MOST_DESCRIPTION_CHARS, Unusable, heading, rules, shown
from ferrule.workspace.skill_file import as_text, read_raw

Importance = Literal["low", "medium", "high", "critical"]

MOST_BYTES = 32 << 10
"""A longer file is no prompt."""
MOST_REVIEWS = 100
MOST_FOLDERS = 2000
MOST_LEVELS = 6
_MOST_ENTRIES = 2000
_MOST_NAME_CHARS = 100
_MOST_ABOVE = 20
_MOST_WARNINGS = 20
_FOLDER = (".agents", "checks")
_GLOBAL = ((".config", "amp", "checks"), (".config", "agents", "checks"))
_IMPORTANCES: dict[str, Importance] = {"low": "low", "medium": "medium", "high": "high", "critical": "critical"}
_KNOWN = frozenset({"name", "description", "severity-default", "tools"})
_NOT_ENTERED = frozenset({"node_modules", "venv", "target", "vendor", "dist", "build", "site-packages", "__pycache__"})


class Review(NamedTuple):
    """One review."""

    name: str
    description: str
    severity: Importance
    """Of what it finds, where nothing else is said."""
    tools: tuple[str, ...] | None
    """What its reviewer may use; None where the file does not say."""
    body: str
    """The instructions."""
    scope: str
    """The folder of the workspace, absolute, whose files it is about, with all below."""
    path: str
    layer: Literal["project", "user"] = "project"
    """Whose it is. What lies inside the workspace, or in a folder of the repository above it, is the project's."""
    without: tuple[str, ...] = ()
    """Folders below, absolute, for which a closer review of this name holds."""


class Reviews(NamedTuple):
    """All of them, the closest to the files first, then those of the folders above, then the user's."""

    reviews: tuple[Review, ...]
    warnings: tuple[str, ...] = ()


def find_reviews(jail: Jail, guard: Guard, *, beside: str, home: str) -> Reviews:
    """The reviews for the workspace. `beside` is the folder of the settings file, `home` the user's home folder."""
    warnings: dict[str, None] = {}

    def warn(sentence: str) -> None:
        if len(warnings) < _MOST_WARNINGS:
            warnings[shown(sentence)] = None

    found: list[Review] = []
    places = itertools.chain(_below(jail.folder, warn), _above(jail.folder), _own(jail, beside, home))
    for folder, scope, layer in places:
        names: set[str] = set()
        for path in _files(folder, layer, warn):
            if len(found) >= MOST_REVIEWS:
                warn(f"There are more than {MOST_REVIEWS} reviews; those of {folder} are not all read.")
                return Reviews(_settled(found), tuple(warnings))
            review = _review(jail, guard, path, scope=scope, layer=layer, warn=warn)
            if review is not None and review.name in names:
                warn(f"{path} is left out: another file of its folder has the name {review.name} as well.")
            elif review is not None:
                names.add(review.name)
                found.append(review)
    return Reviews(_settled(found), tuple(warnings))


def _below(root: str, warn: Callable[[str], None]) -> Iterator[tuple[str, str, Literal["project", "user"]]]:
    """The folders of reviews in the workspace, the deepest first."""
    found: list[str] = []
    waiting, looked = [(root, 0)], 0
    while waiting:
        folder, level = waiting.pop(0)
        if looked >= MOST_FOLDERS:
            warn(f"The workspace has more than {MOST_FOLDERS:,} folders; reviews of the others are not looked for.")
            break
        looked += 1
        names = _folders(folder)
        if _FOLDER[0] in names:
            found.append(folder)
        if level < MOST_LEVELS:
            inner = sorted(name for name in names if not name.startswith(".") and name not in _NOT_ENTERED)
            waiting += [(os.path.join(folder, name), level + 1) for name in inner]
    for folder in sorted(found, key=lambda one: (-one.count(os.sep), one)):
        yield os.path.join(folder, *_FOLDER), folder, "project"


def _above(root: str) -> Iterator[tuple[str, str, Literal["project", "user"]]]:
    """Those of the folders above, as far as the repository goes: what lies outside of it is nobody's word here."""
    folders, folder = list[str](), root
    for _ in range(_MOST_ABOVE):
        if os.path.lexists(os.path.join(folder, ".git")):
            for above in folders:
                # Only the files of the workspace are the session's to look at.
                yield os.path.join(above, *_FOLDER), root, "project"
            return
        if os.path.dirname(folder) == folder:
            return
        folder = os.path.dirname(folder)
        folders.append(folder)


def _own(jail: Jail, beside: str, home: str) -> Iterator[tuple[str, str, Literal["project", "user"]]]:
    """The user's own, Ferrule's first. They are about everything."""
    folders = [os.path.join(beside, "checks")] if beside else []
    folders += [os.path.join(home, *names) for names in _GLOBAL] if os.path.isabs(home) else []
    for folder in dict.fromkeys(map(os.path.normpath, folders)):
        real = os.path.realpath(folder)
        # What lies in the workspace is the project's, whoever linked to it: a model may write there.
        yield real, jail.folder, "project" if jail.holds(real) else "user"


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            some = itertools.islice(entries, _MOST_ENTRIES)
            return [entry.name for entry in some if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # not there any more, or not for us


def _files(folder: str, layer: str, warn: Callable[[str], None]) -> list[str]:
    """The files of a folder of reviews: real ones for the user's own, and for a project as they are."""
    try:
        if layer == "project" and os.path.realpath(folder) != folder:
            if os.path.isdir(folder):
                warn(f"{folder} is reached through a link and is not looked at.")
            return []
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, _MOST_ENTRIES))
    except OSError:
        return []  # mostly it is not there
    paths = [os.path.join(folder, name) for name in names if name.endswith(".md") and not name.startswith(".")]
    return [os.path.realpath(path) for path in paths] if layer == "user" else paths


def _review(
    jail: Jail,
    guard: Guard,
    path: str,
    *,
    scope: str,
    layer: Literal["project", "user"],
    warn: Callable[[str], None],
) -> Review | None:
    layer = "project" if jail.holds(path) else layer
    try:
        guard.check_read(path)
        review, troubles = read_review(as_text(read_raw(jail, path)), path=path, scope=scope, layer=layer)
    except OSError as error:
        warn(f"{path} describes no review: {describe(error)}.")
    except Unusable as error:
        warn(f"{path} describes no review: {error}.")
    except ToolFailure as error:  # a rule may deny it
        warn(f"{path} describes no review: {error.message}")
    else:
        for trouble in troubles:
            warn(f"{path}: {trouble}.")
        return review
    return None


def read_review(
    text: str, *, path: str, scope: str, layer: Literal["project", "user"] = "project"
) -> tuple[Review, tuple[str, ...]]:
    """Understand a file; with it what was wrong though it can be used, each as the end of a sentence about the file.

    Raises: Unusable.
    """
    if (size := len(text.encode(errors="replace"))) > MOST_BYTES:
        raise Unusable(f"it has {size:,} bytes, and {MOST_BYTES:,} is the most")
    header = heading(text)
    said = {key.strip().lower().replace("_", "-"): value for key, value in header.values.items()}
    if len(said) < len(header.values):
        raise Unusable("its front matter says something twice, and only one of the two would count")
    name = shown(_text(said, "name"))
    if not name or len(name) > _MOST_NAME_CHARS:
        raise Unusable(f"its name has more than {_MOST_NAME_CHARS} characters" if name else "it has no name")
    body = _visible(header.body).strip()
    if not body:
        raise Unusable("it says nothing below its front matter, where the instructions belong")
    troubles = [f"what it says about {shown(key)[:80]} has no effect here" for key in said if key not in _KNOWN]
    importance = _text(said, "severity-default").lower()
    if importance and importance not in _IMPORTANCES:
        troubles.append(f"its severity-default {shown(importance)[:40]!r} is none of {', '.join(_IMPORTANCES)}")
    description = shown(_text(said, "description"))[:MOST_DESCRIPTION_CHARS]
    severity = _IMPORTANCES.get(importance, "medium")
    return Review(name, description, severity, _tools(said), body, scope, path, layer), tuple(troubles)


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise Unusable(f"its {key} is no text")
    return (value or "").strip()


def _tools(said: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The tools that it may have; all that reviewers have where it says nothing. A list that is empty gives none."""
    if "tools" not in said:
        return None
    value = said["tools"]
    listed = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, str) for one in listed):
        raise Unusable("its tools are no list of names")
    named = rules(value.strip().strip("[]") if isinstance(value, str) else listed)
    if any(not one.isprintable() or "(" in one for one in named):
        raise Unusable("its tools are no list of names; a tool is given whole or not at all")
    return named


def _visible(text: str) -> str:
    """The text without characters that cannot be seen: a reader of the file would not have read them either."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " if char.isspace() else "" for char in text)


def _settled(found: list[Review]) -> tuple[Review, ...]:
    """The reviews without those that a closer one of the same name replaces."""
    settled: list[Review] = []
    for review in found:
        closer = [one for one in settled if one.name == review.name]
        if any(within(review.scope, one.scope) for one in closer):
            continue
        inner = tuple(one.scope for one in closer if within(one.scope, review.scope))
        settled.append(review._replace(without=inner))
    return tuple(settled)
