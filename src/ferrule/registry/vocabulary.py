"""The words of tool search: which say nothing, which mean much the same, and which words together are one.

Everyday verbs and nouns, of no server in particular. A word may be in several rows of a table; what shares a row is
near, and nothing follows from two rows.
"""

import functools
import itertools
from collections.abc import Iterable, Mapping

from ferrule.workspace.identifiers import stem

_SAYS_NOTHING = (
    "a about actually am an and any anybody anyone anything are as at be been being but by can could did do does "
    "doing done each everything for from give gives had has have having he help her here him his how i if in into "
    "is it its just kind let like may me might mine must my need needed needs no not now of on one only onto or "
    "other our ours out over please rather really shall she should so some something sort still such take takes "
    "than that the their theirs them then there these they thing things this those to too tool tools us use used "
    "uses using very via want wanted wants was way we were what when where whether which while who whom whose why "
    "will with within would yet you your yours s t m re ve ll d"
)

_ACTIONS = (
    "create add new make open insert register generate begin start",
    "create write compose draft",
    "create submit file raise report log",
    "create build generate",
    "create publish release",
    "add append attach insert put",
    "add invite join enroll",
    "list show view see display enumerate browse all every which",
    "list get",
    "get fetch read retrieve show view see load open look tell check",
    "search find query look lookup locate filter seek",
    "update edit change modify set alter adjust revise amend",
    "update rename",
    "set configure define put assign",
    "delete remove drop purge destroy erase clear wipe trash discard flush prune empty",
    "delete archive",
    "remove kick expel evict exclude",
    "stop cancel end abort terminate halt kill close quit interrupt",
    "start run launch trigger execute begin spawn initiate",
    "run execute invoke call perform",
    "restart reboot",
    "retry rerun again redo repeat",
    "undo revert rollback restore recover",
    "close resolve complete finish solve fix mark",
    "merge combine join unite",
    "copy duplicate clone fork replicate",
    "move transfer migrate transition",
    "download fetch get pull save export",
    "upload put push store save send",
    "send post publish deliver notify tell submit write compose",
    "tell notify inform message",
    "forward redirect relay",
    "answer reply respond response",
    "react reaction emoji",
    "assign delegate reassign hand escalate transfer",
    "approve accept allow confirm authorize",
    "reject decline deny refuse",
    "block ban forbid suspend deny",
    "lock disable deactivate suspend",
    "enable activate allow",
    "disable deactivate pause",
    "mute silence snooze ignore suppress",
    "schedule plan book reserve arrange create",
    "share grant permission access",
    "revoke unshare withdraw remove",
    "explain describe detail inspect analyze diagnose",
    "verify validate check confirm",
    "count total number many",
    "pay charge bill",
    "buy purchase order",
    "ship deliver fulfill dispatch",
    "scale resize replica",
    "deploy release rollout",
    "watch follow subscribe monitor",
    "tag label",
    "translate convert turn",
    "draw render plot",
    "increase raise grow",
    "decrease lower reduce",
    "compare diff difference",
    "connect link join",
    "import load",
    "convert transform",
    "renew refresh rotate reset",
    "install setup",
    "debug diagnose inspect",
    "warn alert notify",
    "summarize summary overview",
    "record capture log",
    "track trace follow",
    "unlock unblock reset",
    "rate review",
    "try test",
)
"""What is done: verbs, and what means the same."""

_THINGS = (
    "message text post chat",
    "sms text message",
    "email mail message inbox mailbox",
    "phone call telephone dial",
    "phone sms mobile",
    "call ring dial",
    "meeting event appointment calendar",
    "invitation invite",
    "free available availability",
    "busy availability",
    "reminder alarm",
    "vacation holiday leave absence off pto",
    "refund reimburse repay return chargeback",
    "expense reimburse cost spending receipt",
    "bill invoice",
    "payment pay charge money transaction",
    "balance left remaining",
    "subscription plan membership",
    "customer client buyer",
    "discount coupon voucher promotion",
    "product item article goods",
    "stock inventory",
    "shop store webshop commerce",
    "order purchase",
    "parcel shipment tracking shipping",
    "error exception crash bug failure",
    "issue bug ticket defect problem task",
    "ticket request case support",
    "incident outage",
    "slow performance latency plan",
    "kubernetes kube k8s cluster",
    "aws s3 cloud",
    "repository repo",
    "pr pull_request merge_request",
    "database db sql postgres mysql",
    "column field schema",
    "row record entry",
    "file document doc object attachment",
    "folder directory dir",
    "page document doc wiki note",
    "line row text block paragraph",
    "picture image photo",
    "spreadsheet sheet excel cell",
    "user member account login",
    "everybody everyone people attendee member",
    "person people somebody someone user responder",
    "colleague employee staff worker coworker",
    "team group",
    "lead contact prospect",
    "sale deal revenue",
    "alert alarm notification",
    "oncall responder pager",
    "page alert notify",
    "log output console",
    "metric graph chart statistic",
    "usage statistic consumption",
    "ci build pipeline job workflow",
    "domain dns zone hostname",
    "website site web domain",
    "ip address host",
    "certificate tls ssl https",
    "password login credential",
    "login signin session",
    "mfa factor 2fa authenticator",
    "route direction navigate path",
    "weather rain snow sun temperature",
    "forecast tomorrow prediction",
    "distance travel drive far",
    "near nearby close around",
    "place location",
    "time duration hour",
    "current now today",
    "recent latest newest last history",
    "secret credential token key",
    "comment remark note",
    "permission access right role privilege",
    "link url",
    "size large big space storage",
    "version revision history",
    "backup dump snapshot",
    "salary payslip wage pay",
    "hire recruit applicant candidate",
    "job position opening vacancy",
    "setting configuration config option preference",
    "environment env variable",
    "report summary overview",
    "price cost amount fee",
    "company organization firm business",
    "server machine host instance vm",
    "disk volume storage",
    "change commit diff",
    "function lambda",
    "queue topic",
    "vulnerability security cve",
    "survey form questionnaire",
    "newsletter campaign",
    "favorite star like",
    "song track music",
    "video movie film",
    "flight plane",
    "hotel accommodation",
    "news headline",
    "trip travel journey",
    "goal target",
    "deadline due",
)
"""What it is done to, and with."""

_TOGETHER = {
    "money back": "refund",
    "pay back": "refund",
    "on call": "oncall",
    "right now": "current",
    "at the moment": "current",
    "stack trace": "stacktrace",
    "pull request": "pull_request",
    "merge request": "merge_request",
    "text message": "sms",
    "e mail": "email",
    "out of office": "vacation",
    "time off": "vacation",
    "day off": "vacation",
    "sick leave": "vacation",
    "log in": "login",
    "sign in": "login",
    "log out": "logout",
    "sign out": "logout",
    "log on": "login",
    "get rid of": "delete",
    "set up": "create",
    "shut down": "stop",
    "turn off": "disable",
    "switch off": "disable",
    "turn on": "enable",
    "switch on": "enable",
    "look up": "search",
    "look for": "search",
    "roll back": "rollback",
    "how many": "count",
    "how long": "duration",
    "thumbs up": "emoji",
    "to do": "task",
    "two factor": "mfa",
    "second factor": "mfa",
}
"""Words that mean something else together than each by itself."""


@functools.cache
def says_nothing() -> frozenset[str]:
    """Words that every question has, as they are written."""
    return frozenset(_SAYS_NOTHING.split())


@functools.cache
def same() -> Mapping[str, tuple[str, ...]]:
    """A stem → the stems that may stand for it."""
    found: dict[str, dict[str, None]] = {}
    for row in (*_ACTIONS, *_THINGS):
        stems = [stem(word) for word in row.split()]
        for one in stems:
            found.setdefault(one, {}).update((other, None) for other in stems if other != one)
    return {one: tuple(others) for one, others in found.items()}


@functools.cache
def actions() -> frozenset[str]:
    """The stems of what can be done."""
    return frozenset(stem(word) for row in _ACTIONS for word in row.split())


@functools.cache
def _together() -> Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]:
    """The first word of several, as a stem → all of them, and what they are together; the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for words, one in _TOGETHER.items():
        stems = tuple(map(stem, words.split()))
        found.setdefault(stems[0], []).append((stems, one if "_" in one else stem(one)))
    return {first: tuple(sorted(some, key=lambda pair: -len(pair[0]))) for first, some in found.items()}


@functools.cache
def _pairs() -> frozenset[tuple[str, ...]]:
    """How words begin that are one together: mostly there are none, and that is seen at once."""
    return frozenset(words[:2] for some in _together().values() for words, _ in some)


def joined(stems: Iterable[str]) -> list[str]:
    """The stems, with those that are one word together as that word."""
    left = list(stems)
    if _pairs().isdisjoint(itertools.pairwise(left)):
        return left
    out, known, at = [], _together(), 0
    while at < len(left):
        for words, one in known.get(left[at], ()):
            if tuple(left[at : at + len(words)]) == words:
                out.append(one)
                at += len(words)
                break
        else:
            out.append(left[at])
            at += 1
    return out
