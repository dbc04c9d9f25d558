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


def choose(only: Sequence[str], path: str, review: bool | None, ctx: Context) -> Chosen:  # noqa: FBT001 - an argument
    """Read the project's files and choose. Raises `BadArguments` for names that nothing has."""
    folder = as_folder(path, ctx.path(path or "."), ctx.need(Jail), ctx.need(Guard))
    found, reviewing = known(folder, ctx.need(Jail), ctx.need(Guard), ctx.need(Settings).checks)
    checks, reviews = found.checks, tuple(reviewing.reviews)
    root, every = ctx.need(Jail).folder, (*found.checks, *found.others)
    titles = {one: title(one, root) for one in reviews}
    if only:
        named = _named(only, every, found.checks, titles, ctx)
        checks = tuple(one for one in every if one.name in named)
        reviews = tuple(one for one in reviews if titles[one] in named)
    why = _unreviewed(review, ctx) if reviews else ""
    return Chosen(
        checks,
        () if why else reviews,
        found.looked_in,
        (*found.warnings, *reviewing.warnings),
        why,
        (*(one.name for one in every), *titles.values()),
    )


def as_folder(path: str, folder: str, jail: Jail, guard: Guard) -> str:
    """The folder that `path` names, absolute and real; raises for what is none, or not in the workspace."""
    jail.place(folder)
    guard.check_read(folder)
    if not os.path.isdir(folder):
        raise ToolFailure(f"{path} is not a folder; name one, or leave it out.", code="not-a-folder", path=folder)
    return folder


def known(folder: str, jail: Jail, guard: Guard, settings: Checks) -> tuple[Found, Reviews]:
    """The checks and the reviews of a folder. Checks of the settings are the workspace's, and run where they say."""
    read, root = reader(jail, guard), jail.folder
    reviews = _within(find_reviews(jail, guard, beside=os.path.dirname(settings_path()), home=_home()), folder)
    whole = find(read, root, commands=settings.commands, disable=settings.disable)
    if folder == root:
        return whole, reviews
    below = find(read, folder, commands={}, disable=settings.disable)
    own = [one for one in whole.checks if one.source == _SETTINGS and within(one.folder, folder)]
    names = {one.name for one in own}
    checks = (*(one for one in below.checks if one.name not in names), *own)
    warnings = tuple(dict.fromkeys((*below.warnings, *whole.warnings)))
    return below._replace(checks=checks, warnings=warnings), reviews


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


def _named(
    only: Sequence[str],
    known: Sequence[Check],
    usual: Sequence[Check],
    reviews: Mapping[Review, str],
    ctx: Context,
) -> set[str]:
    """The names of the checks that are meant: by name, by a glob, or by kind."""
    from fnmatch import fnmatchcase  # for calls that name some

    names: dict[str, tuple[str, ...]] = {one.name: (one.name,) for one in known}
    names |= {shown: (shown, one.name) for one, shown in reviews.items()}
    meant: set[str] = set()
    for word in only:
        fitting = {name for name, words in names.items() if word in words}
        fitting = fitting or {name for name, words in names.items() if any(fnmatchcase(one, word) for one in words)}
        if not fitting and word in KINDS:
            # A kind of which there is nothing here is no mistake in the word.
            fitting = {one.name for one in usual if one.kind == word}
            fitting |= set(reviews.values()) if word == "review" else set()
        elif not fitting:
            raise BadArguments(_unknown(word, list(names), ctx))
        meant |= fitting
    return meant


def _unknown(word: str, names: Sequence[str], ctx: Context) -> str:
    from ferrule.support.near import near  # only a mistake pays for it

    meant = near(word, [*names, *KINDS], most=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    there = ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    return (
        f"{ctx.param('only')}: there is no check {word[:100]!r}.{hint} "
        f"The checks here are: {there or 'none'}; the kinds are: {', '.join(KINDS)}."
    )


def _unreviewed(review: bool | None, ctx: Context) -> str:  # noqa: FBT001 - an argument
    """Why reviews are not done; empty where they are."""
    if review is False:
        return "the call leaves them out"
    if review is None and not ctx.need(Settings).checks.review:
        return "checks.review is off"
    return "" if subagents(ctx).can_run else "this session has no model for subagents"
