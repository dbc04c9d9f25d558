"""Which checks a call is about: those of the project, or those that it names."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from ferrule.core.access import within
from ferrule.core.checks import Check, CheckKind
from ferrule.core.delegated import subagents
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context
from ferrule.settings import Settings, settings_path
from ferrule.tool_settings import Checks
from ferrule.workspace.checks.files import reader
from ferrule.workspace.checks.found import Found, find
from ferrule.workspace.checks.reviews import Review, Reviews, find_reviews
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail

KINDS = get_args(CheckKind)
_SETTINGS = "settings"
_NAMED = 60


class Chosen(NamedTuple):
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

    found: Found
    reviews: Reviews
    covering: tuple[str, ...] = ()

    def named(self, only: Sequence[str], root: str) -> "Known":
        """Those that are meant, by name, by a glob, or by kind. Raises `BadArguments` for names that nothing has."""
        every = (*self.found.checks, *self.found.others)
        titles = {one: title(one, root) for one in self.reviews.reviews}
        meant = _named(only, every, self, titles)
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
    looked: "Looked | None" = None,
) -> Chosen:
    """Read the project's files and choose. Raises `BadArguments` for names that nothing has."""
    root = ctx.need(Jail).folder
    folder = as_folder(path, ctx.path(path or "."), ctx.need(Jail), ctx.need(Guard))
    whole = known(folder, ctx.need(Jail), ctx.need(Guard), ctx.need(Settings).checks, looked)
    meant = whole.named(only, root) if only else whole
    # What runs only when it is named was named.
    checks = (*meant.found.checks, *(meant.found.others if only else ()))
    why = _unreviewed(review, ctx) if meant.reviews.reviews else ""
    every = (*whole.found.checks, *whole.found.others)
    return Chosen(
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


class Looked(NamedTuple):
    """What the files of the whole workspace say."""

    found: Found
    reviews: Reviews


def look(jail: Jail, guard: Guard, settings: Checks) -> Looked:
    """Walk through the workspace for it."""
    found = find(reader(jail, guard), jail.folder, commands=settings.commands, disable=settings.disable)
    return Looked(found, find_reviews(jail, guard, beside=os.path.dirname(settings_path()), home=_home()))


class Ahead:
    """What was looked at away from the event loop, for the calls that are made next.

    Which commands a call runs has to be known before anything may be waited for. What has changed since is no danger:
    only what was declared is run, and the project is looked at again before that.
    """

    def __init__(self, jail: Jail, guard: Guard, settings: Checks) -> None:
        self._given = (jail, guard, settings)
        self._looked: Looked | None = None

    def look(self) -> None:
        """Walk through the workspace; on a thread."""
        self._looked = look(*self._given)

    def looked(self, jail: Jail) -> Looked | None:
        """What was found; None for whoever works elsewhere."""
        return self._looked if jail.folder == self._given[0].folder else None

    def forget(self) -> None:
        """The calls run, and whoever asks later looks anew."""
        self._looked = None


def known(folder: str, jail: Jail, guard: Guard, settings: Checks, looked: Looked | None = None) -> Known:
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


def _named(only: Sequence[str], every: Sequence[Check], known: Known, reviews: Mapping[Review, str]) -> set[str]:
    """The names of the checks that are meant: by name, by a glob, or by kind."""
    from fnmatch import fnmatchcase  # for calls that name some

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
    above = f" The checks of the folder above are about this folder too: {_listed(known.covering)}."
    above = above * bool(known.covering)
    if not names:
        nothing = "nothing here speaks of any (pyproject.toml, package.json, Makefile, …)"
        return f"{lacks} in this folder.{above}" if above else f"{lacks}: {nothing}."
    from ferrule.support.near import near  # only a mistake pays for it

    meant = near(word, [*names, *KINDS], most=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    return f"{lacks}.{hint} The checks here are: {_listed(names)}; the kinds are: {', '.join(KINDS)}.{above}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)


def _unreviewed(review: bool | None, ctx: Context) -> str:  # noqa: FBT001 - an argument
    """Why reviews are not done; empty where they are."""
    if review is False:
        return "the call leaves them out"
    if review is None and not ctx.need(Settings).checks.review:
        return "checks.review is off"
    return "" if subagents(ctx).can_run else "this session has no model for subagents"
