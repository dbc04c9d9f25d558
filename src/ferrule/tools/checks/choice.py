"""Choose the checks and reviews of a call, and read the reviews in `.agents/checks/*.md`.

A review file says what a reviewer looks for in the files beside and below it. It is a prompt that others may
have written and grants no rights. In a project nothing is read through a link. If a file restricts the
reviewer's tools in a way that cannot be understood, it is unusable.

If two reviews have one name, the closer one holds for its files; if the folder of one lies inside the folder of
the other, the outer one leaves the inner folder out.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, get_args

from ferrule.core.access import within
from ferrule.core.errors import BadArguments, ToolFailure, near
from ferrule.core.services import subagents
from ferrule.core.tool import Context
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.settings import Checks, Settings, settings_path
from ferrule.system.folder import describe
from ferrule.tools.checks import Check, CheckKind
from ferrule.tools.checks.find import ProjectChecks, find
from ferrule.tools.checks.manifests import reader
from ferrule.tools.skills import (
    MOST_DESCRIPTION_CHARS,
    Unusable,
    as_text,
    clean_line,
    read_raw,
    require_front_matter,
    rules,
)

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
            warnings[clean_line(sentence)] = None

    found: list[Review] = []
    places = itertools.chain(_below(jail.folder, warn), _above(jail.folder), _own(jail, beside, home))
    for folder, scope, layer in places:
        names: set[str] = set()
        for path in _files(folder, layer, warn):
            if len(found) >= MOST_REVIEWS:
                warn(f"There are more than {MOST_REVIEWS} reviews; those of {folder} are not all read.")
                return Reviews(_drop_overridden(found), tuple(warnings))
            review = _review(jail, guard, path, scope=scope, layer=layer, warn=warn)
            if review is not None and review.name in names:
                warn(f"{path} is left out: another file of its folder has the name {review.name} as well.")
            elif review is not None:
                names.add(review.name)
                found.append(review)
    return Reviews(_drop_overridden(found), tuple(warnings))


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
    header = require_front_matter(text)
    said = {key.strip().lower().replace("_", "-"): value for key, value in header.values.items()}
    if len(said) < len(header.values):
        raise Unusable("its front matter says something twice, and only one of the two would count")
    name = clean_line(_text(said, "name"))
    if not name or len(name) > _MOST_NAME_CHARS:
        raise Unusable(f"its name has more than {_MOST_NAME_CHARS} characters" if name else "it has no name")
    body = _visible(header.body).strip()
    if not body:
        raise Unusable("it says nothing below its front matter, where the instructions belong")
    troubles = [f"what it says about {clean_line(key)[:80]} has no effect here" for key in said if key not in _KNOWN]
    importance = _text(said, "severity-default").lower()
    if importance and importance not in _IMPORTANCES:
        troubles.append(f"its severity-default {clean_line(importance)[:40]!r} is none of {', '.join(_IMPORTANCES)}")
    description = clean_line(_text(said, "description"))[:MOST_DESCRIPTION_CHARS]
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


def _drop_overridden(found: list[Review]) -> tuple[Review, ...]:
    """The reviews without those that a closer one of the same name replaces."""
    settled: list[Review] = []
    for review in found:
        closer = [one for one in settled if one.name == review.name]
        if any(within(review.scope, one.scope) for one in closer):
            continue
        inner = tuple(one.scope for one in closer if within(one.scope, review.scope))
        settled.append(review._replace(without=inner))
    return tuple(settled)


KINDS = get_args(CheckKind)
_SETTINGS = "settings"
_NAMED = 60


class CheckSelection(NamedTuple):
    """What is to run, and what was looked at for it."""

    checks: tuple[Check, ...]
    reviews: tuple[Review, ...]
    looked_in: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    why_unreviewed: str = ""
    """Why reviews that there are will not be done; empty where there are none, or they will be."""
    known: tuple[str, ...] = ()
    """The names of all checks and reviews that there are."""
    covering: tuple[str, ...] = ()
    """The names of checks of folders above the one that was named, which are about its files too."""


class Known(NamedTuple):
    """The checks and the reviews of a folder."""

    found: ProjectChecks
    reviews: Reviews
    covering: tuple[str, ...] = ()

    def select(self, only: Sequence[str], root: str) -> "Known":
        """Those that are meant, by name, by a glob, or by kind. Raises `BadArguments` for names that nothing has."""
        every = (*self.found.checks, *self.found.others)
        titles = {one: title(one, root) for one in self.reviews.reviews}
        meant = _match_names(only, every, self, titles)
        found = self.found._replace(
            checks=tuple(one for one in self.found.checks if one.name in meant),
            others=tuple(one for one in self.found.others if one.name in meant),
        )
        reviews = self.reviews._replace(reviews=tuple(one for one in titles if titles[one] in meant))
        return self._replace(found=found, reviews=reviews)


def choose(
    only: Sequence[str],
    path: str,
    review: bool | None,  # noqa: FBT001 - an argument
    ctx: Context,
    looked: "CheckDiscovery | None" = None,
) -> CheckSelection:
    """Read the project's files and choose. Raises `BadArguments` for names that nothing has."""
    root = ctx.need(Jail).folder
    folder = as_folder(path, ctx.path(path or "."), ctx.need(Jail), ctx.need(Guard))
    whole = find_known(folder, ctx.need(Jail), ctx.need(Guard), ctx.need(Settings).checks, looked)
    meant = whole.select(only, root) if only else whole
    # What runs only when it is named was named.
    checks = (*meant.found.checks, *(meant.found.others if only else ()))
    why = _explain_no_reviews(review, ctx) if meant.reviews.reviews else ""
    every = (*whole.found.checks, *whole.found.others)
    return CheckSelection(
        checks,
        () if why else tuple(meant.reviews.reviews),
        whole.found.looked_in,
        (*whole.found.warnings, *whole.reviews.warnings),
        why,
        (*(one.name for one in every), *(title(one, root) for one in whole.reviews.reviews)),
        whole.covering,
    )


def as_folder(path: str, folder: str, jail: Jail, guard: Guard) -> str:
    """The folder that `path` names, absolute and real; raises for what is none, or not in the workspace."""
    jail.place(folder)
    guard.check_read(folder)
    if not os.path.isdir(folder):
        raise ToolFailure(f"{path} is not a folder; name one, or leave it out.", code="not-a-folder", path=folder)
    return folder


class CheckDiscovery(NamedTuple):
    """What the files of the whole workspace say."""

    found: ProjectChecks
    reviews: Reviews


def look(jail: Jail, guard: Guard, settings: Checks) -> CheckDiscovery:
    """Walk through the workspace for it."""
    found = find(reader(jail, guard), jail.folder, commands=settings.commands, disable=settings.disable)
    return CheckDiscovery(found, find_reviews(jail, guard, beside=os.path.dirname(settings_path()), home=_home()))


class Ahead:
    """What was looked at away from the event loop, for the calls that are made next.

    Which commands a call runs has to be known before anything may be waited for. What has changed since is no danger:
    only what was declared is run, and the project is looked at again before that.
    """

    def __init__(self, jail: Jail, guard: Guard, settings: Checks) -> None:
        self._given = (jail, guard, settings)
        self._looked: CheckDiscovery | None = None

    def look(self) -> None:
        """Walk through the workspace; on a thread."""
        self._looked = look(*self._given)

    def discovery_for(self, jail: Jail) -> CheckDiscovery | None:
        """What was found; None for whoever works elsewhere."""
        return self._looked if jail.folder == self._given[0].folder else None

    def forget(self) -> None:
        """The calls run, and whoever asks later looks anew."""
        self._looked = None


def find_known(folder: str, jail: Jail, guard: Guard, settings: Checks, looked: CheckDiscovery | None = None) -> Known:
    """The checks and the reviews of a folder. Checks of the settings are the workspace's, and run where they say."""
    whole, every = looked or look(jail, guard, settings)
    reviews = _within(every, folder)
    if folder == jail.folder:
        return Known(whole, reviews)
    below = find(reader(jail, guard), folder, commands={}, disable=settings.disable)
    own = [one for one in whole.checks if one.source == _SETTINGS and within(one.folder, folder)]
    names = {one.name for one in own}
    checks = (*(one for one in below.checks if one.name not in names), *own)
    warnings = tuple(dict.fromkeys((*below.warnings, *whole.warnings)))
    covering = tuple(one.name for one in whole.checks if one.folder != folder and within(folder, one.folder))
    return Known(below._replace(checks=checks, warnings=warnings, left_out=whole.left_out), reviews, covering)


def _home() -> str:
    return os.path.expanduser("~")


def _within(found: Reviews, folder: str) -> Reviews:
    """Those that are about files of the folder, and about no others."""
    narrowed = (
        one if within(one.scope, folder) else one._replace(scope=folder)
        for one in found.reviews
        if within(one.scope, folder) or within(folder, one.scope)
    )
    return found._replace(reviews=tuple(one for one in narrowed if not any(within(one.scope, x) for x in one.without)))


def title(review: Review, root: str) -> str:
    """What a review is called among the checks: with its folder before it, as checks of folders are."""
    where = os.path.relpath(review.scope, root).replace(os.sep, "/")
    return review.name if where == "." else f"{where}: {review.name}"


def _match_names(only: Sequence[str], every: Sequence[Check], known: Known, reviews: Mapping[Review, str]) -> set[str]:
    """The names of the checks that are meant: by name, by a glob, or by kind."""
    names: dict[str, tuple[str, ...]] = {one.name: (one.name,) for one in every}
    names |= {shown: (shown, one.name) for one, shown in reviews.items()}
    meant: set[str] = set()
    for word in only:
        fitting = {name for name, words in names.items() if word in words}
        fitting = fitting or {name for name, words in names.items() if any(fnmatchcase(one, word) for one in words)}
        if not fitting and word in KINDS:
            # A kind of which there is nothing here is no mistake in the word.
            fitting = {one.name for one in known.found.checks if one.kind == word}
            fitting |= set(reviews.values()) if word == "review" else set()
        elif not fitting:
            raise BadArguments(_unknown(word, list(names), known))
        meant |= fitting
    return meant


def _unknown(word: str, names: Sequence[str], known: Known) -> str:
    if word in known.found.left_out:
        return f"The check {word!r} of the settings is left out: {known.found.left_out[word]}."
    lacks = f"There is no check {word[:100]!r}"
    above = f" The checks of the folder above are about this folder too: {_format_list(known.covering)}."
    above = above * bool(known.covering)
    if not names:
        nothing = "nothing here speaks of any (pyproject.toml, package.json, Makefile, …)"
        return f"{lacks} in this folder.{above}" if above else f"{lacks}: {nothing}."

    meant = near(word, [*names, *KINDS], most=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    return f"{lacks}.{hint} The checks here are: {_format_list(names)}; the kinds are: {', '.join(KINDS)}.{above}"


def _format_list(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)


def _explain_no_reviews(review: bool | None, ctx: Context) -> str:  # noqa: FBT001 - an argument
    """Why reviews are not done; empty where they are."""
    if review is False:
        return "the call leaves them out"
    if review is None and not ctx.need(Settings).checks.review:
        return "checks.review is off"
    return "" if subagents(ctx).can_run else "this session has no model for subagents"
