"""What a site's robots.txt closes to programs, read as RFC 9309 says.

The longest rule that fits decides, and of two as long the one that allows. A site that has no such file (any 4xx), or
leads to it by redirects that are not followed, closes nothing. One that fails to say (any 5xx, or not in time) closes
everything for a short while, as the RFC has it. Where the site cannot be reached at all, that is what is said: the page
would fail in the same way.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import quote

from ferrule.sandbox.web_address import CutOff, Url, Way, WebError
from ferrule.tools.web.connect import Sharing
from ferrule.tools.web.content import aside

AGENT = "ferrule"
ROBOTS_BYTES = 512 << 10
HOPS = 5
SECONDS = 10.0
_KEPT_SECONDS = 3600.0
_KEPT_FAILURE_SECONDS = 60.0
_MOST_SITES = 200
_MOST_CHARACTERS = 4_000_000
_MUCH = 50_000
"""Characters, or as much of rules."""
_PASSED_OVER = {"bad-answer", "bad-address", "private-address", "too-many-redirects", "too-large"}
"""What goes wrong on the way to the file without saying that the site cannot be reached."""

Fetch = Callable[[Way], Awaitable[tuple[int, bytes]]]
"""The status and the beginning of a file at a site. Raises WebError."""


class RobotsRule(NamedTuple):
    """A line of the file that is for us."""

    pattern: str
    allows: bool


class Rules(NamedTuple):
    """All that a site says to us."""

    rules: tuple[RobotsRule, ...] = ()
    failed: str = ""
    """Why nothing is known, so that nothing is allowed."""

    def allow(self, path: str) -> bool:
        """May we have this page?"""
        wanted = _normal(path)
        if wanted == "/robots.txt":
            return True
        best = RobotsRule("", allows=True)
        for rule in self.rules:
            better = len(rule.pattern) > len(best.pattern) or (
                len(rule.pattern) == len(best.pattern) and rule.allows and not best.allows
            )
            if better and _fits(rule.pattern, wanted):
                best = rule
        return best.allows


class Robots:
    """What sites have said, for a while."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sites: OrderedDict[str, tuple[float, Rules]] = OrderedDict()
        self._characters = 0
        self._asking: Sharing[Rules] = Sharing()

    async def check(self, way: Way, fetch: Fetch) -> None:
        """Raises WebError where the site does not want this page to be fetched by programs."""
        site = way.url.origin
        rules = self._get_cached(site)
        if rules is None:
            # Several pages of one site at once ask for its rules once.
            rules = await self._asking.run(site, lambda: self._fetch_rules(site, way, fetch))
        if rules.failed:
            raise WebError(
                f"{site} does not say which pages programs may fetch: {rules.failed}. The user can leave "
                "robots.txt out of it with the setting web.robots = false.",
                "robots",
            )
        if not await aside(lambda: rules.allow(way.url.path), size=_size(rules), much=_MUCH):
            raise WebError(
                f"{way.url} is closed to programs by {site}/robots.txt. The user can leave it out of it with the "
                "setting web.robots = false.",
                "robots",
            )

    async def _fetch_rules(self, site: str, way: Way, fetch: Fetch) -> Rules:
        rules = await _ask(way, fetch)
        self._keep(site, rules)
        return rules

    def _get_cached(self, site: str) -> Rules | None:
        until, rules = self._sites.get(site, (0.0, None))
        return rules if rules is not None and self._clock() < until else None

    def _keep(self, site: str, rules: Rules) -> None:
        self._drop(site)
        self._sites[site] = (self._clock() + (_KEPT_FAILURE_SECONDS if rules.failed else _KEPT_SECONDS), rules)
        self._characters += _size(rules)
        while len(self._sites) > _MOST_SITES or (self._characters > _MOST_CHARACTERS and len(self._sites) > 1):
            self._drop(next(iter(self._sites)))

    def _drop(self, site: str) -> None:
        found = self._sites.pop(site, None)
        if found is not None:
            self._characters -= _size(found[1])


async def _ask(way: Way, fetch: Fetch) -> Rules:
    try:
        async with asyncio.timeout(SECONDS):
            status, text = await fetch(way._replace(url=_file(way.url)))
    except TimeoutError:
        return Rules(failed=f"its robots.txt did not come within {SECONDS:g} s")
    except CutOff:
        return Rules(failed="its robots.txt broke off")
    except WebError as error:
        if error.code in _PASSED_OVER:
            return Rules()
        raise
    if status >= 500:
        return Rules(failed=f"its robots.txt answers {status}")
    if not 200 <= status < 300:
        return Rules()
    return await aside(lambda: parse_robots(text.decode("utf-8", "replace")), size=len(text), much=_MUCH)


def parse_robots(text: str) -> Rules:
    """The rules for us: those of the groups with our name, or else of the groups for everybody."""
    groups: dict[str, list[RobotsRule]] = {}
    ours: set[str] = set()
    is_naming = False
    for line in re.split(r"[\r\n]+", text.removeprefix("\ufeff")):
        name, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = name.lower()
        if not colon or name not in {"user-agent", "allow", "disallow"}:
            continue
        if name == "user-agent":
            ours = ours if is_naming else set()
            is_naming = True
            if (agent := _agent(value)) in {AGENT, "*"}:
                ours.add(agent)
                groups.setdefault(agent, [])
            continue
        is_naming = False
        if ours and value.startswith(("/", "*", "$")):
            rule = RobotsRule(_normal(value), name == "allow")
            for each in ours:
                groups[each].append(rule)
    return Rules(tuple(groups.get(AGENT, groups.get("*", ()))))


def _agent(value: str) -> str:
    found = re.match(r"[A-Za-z_-]+", value)
    return found[0].lower() if found else value[:1]


def _file(url: Url) -> Url:
    return url._replace(path="/robots.txt")


def _fits(pattern: str, path: str) -> bool:
    """Without going back: the first place where a part fits is as good as any later one."""
    is_whole = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    if not parts:
        return not is_whole or at == len(path)
    last = parts.pop() if is_whole else ""
    for part in parts:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return not is_whole or (path.endswith(last) and len(path) - len(last) >= at)


def _normal(text: str) -> str:
    """In one spelling: letters and the like plain, everything else with a percent sign and capitals."""

    def spelled(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        is_plain = character.isascii() and (character.isalnum() or character in "-._~")
        return character if is_plain else found[0].upper()

    if re.fullmatch(r"[\w/.*$?=&-]*", text, re.ASCII):
        return text  # as nearly all are: a file may have tens of thousands
    return re.sub(r"%([0-9A-Fa-f]{2})", spelled, quote(text, safe="/%:@!$&'()*+,;=~-._[]|?", errors="replace"))


def _size(rules: Rules) -> int:
    return sum(len(rule.pattern) + 50 for rule in rules.rules) + 100
