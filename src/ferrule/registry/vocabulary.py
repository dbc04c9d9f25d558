"""The words of tool search: which say nothing, which mean much the same, and which words together are one.

Everyday verbs and nouns, of no server in particular. A word may be in several rows of a table; what shares a row is
near, and nothing follows from two rows.
"""

import functools
import itertools
from collections.abc import Container, Iterable, Mapping

_SAYS_NOTHING = (
    "a about actually am an and any anybody anyone anything are as at be been being but by can could did do does "
    "doing done each for from give gives had has have having he help her here him his how i if in into is it its "
    "just kind let like may me might mine must my need needed needs no not now of on one only onto or our ours "
    "please rather really shall she should so some something sort still such take takes than that the their theirs "
    "them then there these they thing things this those to too tool tools us use used uses using very via want "
    "wanted wants was way we were what whether which while why will with within would yet you your yours s t m re "
    "ve ll d"
)

_SAYS_LITTLE = (
    "away day evening everything first good home hour id last later minute month morning name next old other out over"
    " second time today tomorrow tonight week weekend when where whole year yesterday"
)
"""Words that are beside the point mostly."""

_SHORT_FOR = {
    "admin": "administrator",
    "app": "application",
    "auth": "authentication",
    "config": "configuration",
    "db": "database",
    "dir": "directory",
    "doc": "document",
    "docs": "document",
    "env": "environment",
    "img": "image",
    "info": "information",
    "k8s": "kubernetes",
    "kube": "kubernetes",
    "mail": "email",
    "msg": "message",
    "org": "organization",
    "param": "parameter",
    "pic": "picture",
    "prod": "production",
    "repo": "repository",
    "spec": "specification",
    "temp": "temporary",
    "var": "variable",
}
"""Words that are written short as often as not."""

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
    "get fetch read retrieve show view see load open look check",
    "search find query look lookup locate filter seek",
    "update edit change modify set alter adjust revise amend",
    "update rename",
    "reschedule postpone delay move update",
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
    "create declare trigger",
    "hide ignore mute silence",
    "swap exchange replace override substitute",
    "advance move promote progress",
    "insert put write",
    "expire timeout ttl",
    "leave exit quit",
    "unsubscribe subscription newsletter",
    "keep retain store save",
    "collect gather",
    "split divide",
    "attach upload",
    "detach remove",
    "bookmark save star pin",
    "comment reply annotate",
    "clear reset empty",
    "evaluate assess score",
    "warm preload",
    "sync synchronize refresh",
    "encrypt secure protect",
    "limit throttle restrict quota",
    "test probe ping",
    "sign approve",
    "vote poll",
    "refuse decline reject",
    "withdraw cancel",
    "charge debit bill",
    "withhold hold",
    "escalate raise",
    "lock block wait",
    "comment add",
    "log add",
    "logout end",
)
"""What is done: verbs, and what means the same."""

_THINGS = (
    "message text post chat",
    "dm direct_message",
    "sms text message",
    "email message inbox mailbox",
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
    "kubernetes cluster",
    "aws s3 cloud",
    "pr pull_request merge_request",
    "database sql postgres mysql",
    "column field schema",
    "row record entry",
    "file document object attachment",
    "folder directory",
    "page document wiki note",
    "line row text block paragraph",
    "picture image photo",
    "spreadsheet sheet excel cell",
    "user member account login",
    "everybody everyone people attendee member",
    "person people somebody someone user responder",
    "colleague employee staff coworker teammate member",
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
    "current now",
    "recent latest newest last new",
    "history past lately recent",
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
    "setting configuration option preference",
    "environment variable",
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
    "query select statement sql",
    "production environment deployment",
    "review opinion feedback rating",
    "amount total balance sum",
    "money balance fund cash",
    "permission who access",
    "who person people user",
    "when date time schedule",
    "where location place address",
    "away absent out vacation",
    "shift duty rota schedule",
    "newsletter mailing subscription",
    "card payment",
    "proof evidence",
    "screenshot image attachment",
    "content contents body",
    "folder collection",
    "note memo",
    "client customer",
    "supplier vendor",
    "contract agreement",
    "application program software",
    "package library dependency module",
    "bot agent assistant",
    "model version",
    "label category",
    "status state",
    "progress status",
    "priority urgency severity",
    "owner assignee",
    "author creator",
    "tutorial guide help documentation article",
    "faq help knowledge",
    "cpu memory usage",
    "bandwidth traffic",
    "firewall security",
    "latency response",
    "trace span",
    "region zone",
    "bucket storage",
    "topic subject title",
    "headline title",
    "attendee participant guest",
    "room space",
    "building office",
    "department team",
    "boss manager supervisor",
    "resume cv applicant",
    "training course lesson",
    "grade mark score",
    "wage salary payroll",
    "tax vat",
    "ticket case inquiry",
    "complaint ticket",
    "basket cart checkout",
    "delivery shipment shipping",
    "address street",
    "map geography coordinate",
    "car vehicle drive",
    "bus train transit",
    "restaurant cafe food",
    "temperature weather climate",
    "photo picture image",
    "audio sound voice recording",
    "speech voice",
    "language locale",
    "currency exchange",
    "loan credit",
    "bank account",
    "wallet account",
    "portfolio investment",
    "game match",
    "friend follower contact",
    "spam junk",
    "attack ddos threat",
    "private internal confidential",
    "size largest biggest",
    "slow slowest",
    "public external open",
    "duplicate same",
    "device session",
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
    "how much": "amount",
    "look through": "search",
    "go through": "search",
    "close to": "near",
    "next to": "near",
    "in charge": "owner",
    "used up": "usage",
    "up to date": "current",
    "how long": "duration",
    "thumbs up": "emoji",
    "to do": "task",
    "two factor": "mfa",
    "second factor": "mfa",
    "direct message": "direct_message",
    "single sign on": "login",
    "throw away": "delete",
    "throw out": "delete",
    "take away": "revoke",
    "take back": "undo",
    "bring back": "restore",
    "get back": "restore",
    "put back": "restore",
    "send back": "return",
    "tell me": "show",
    "tell us": "show",
    "let me know": "notify",
    "give me": "show",
    "back up": "backup",
    "pass on": "forward",
    "hand over": "assign",
    "take over": "acknowledge",
    "call off": "cancel",
    "put off": "postpone",
    "push back": "postpone",
    "hang up": "end",
    "clean up": "prune",
    "sign up": "register",
    "kick out": "remove",
    "throw off": "remove",
    "lock out": "disable",
    "find out": "get",
    "write down": "note",
}
"""Words that mean something else together than each by itself."""

_PARTICLES = frozenset(["away", "back", "off", "on", "out", "over", "up", "down"])
_APART = 4
"""So many words may stand between a verb and what belongs to it, as in `throw the old file away`."""

_ENDINGS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", ""))
_FORMS = ("ing", "ed", "ment")
_SHORT = 3
"""What is left of a word has at least this many letters."""


@functools.cache
def says_nothing() -> frozenset[str]:
    """Words that every question has, as they are written."""
    return frozenset(_SAYS_NOTHING.split())


@functools.cache
def says_little() -> frozenset[str]:
    """The stems of words that are beside the point mostly."""
    return frozenset(map(stem, _SAYS_LITTLE.split()))


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


def join_stems(stems: Iterable[str], known: Container[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """The stems, those that are one word together as that word, each with what it is made of.

    `known` are words that may be written apart: `post mortem` is `postmortem` where that is one of them.
    """
    left = list(stems)
    pairs = set(itertools.pairwise(left))
    if _pairs().isdisjoint(pairs) and _PARTICLES.isdisjoint(left) and not any(_whole(*pair, known) for pair in pairs):
        return [(one, (one,)) for one in left]
    out: list[tuple[str, tuple[str, ...]]] = []
    while left:
        one, words, left = _first(left, known)
        out.append((one, words))
    return out


def _whole(one: str, other: str, known: Container[str]) -> str:
    """Two stems as the one word that they are to some tool: `time zone` is `timezone`, with the ending of `time`."""
    wholes = (f"{one}{other}", f"{one}e{other}" if one not in actions() else "")
    return next((whole for whole in wholes if whole and whole in known), "")


def _first(stems: list[str], known: Container[str]) -> tuple[str, tuple[str, ...], list[str]]:
    """The word that begins the stems, what it is made of, and what is left behind it."""
    for words, one in _together().get(stems[0], ()):
        if tuple(stems[: len(words)]) == words:
            return one, words, stems[len(words) :]
        if len(words) == 2 and words[1] in _PARTICLES and words[1] in stems[1 : 2 + _APART]:
            to = stems.index(words[1], 1)
            return one, words, [*stems[1:to], *stems[to + 1 :]]
    if len(stems) > 1 and (whole := _whole(stems[0], stems[1], known)):
        return whole, (stems[0], stems[1]), stems[2:]
    return stems[0], (stems[0],), stems[1:]


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word in small letters without the ending of its form: `branches` and `branch`, `posted` and `posting`.

    Words that are made of others keep their endings: a customer is not custom, and a worker is no work.
    """
    if len(word) <= _SHORT:
        return stem(_SHORT_FOR[word]) if word in _SHORT_FOR else word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and not word.endswith(("ss", "us", "is")) and len(word) - len(ending) >= _SHORT - 1:
            word = word[: -len(ending)] + instead
            break
    for ending in _FORMS:
        rest = word[: -len(ending)]
        is_whole = len(rest) >= (6 if ending == "ment" else _SHORT) and any(vowel in rest for vowel in "aeiouy")
        if word.endswith(ending) and is_whole:
            word = rest
            if word[-1] == word[-2] and word[-1] not in "aeiousl":
                word = word[:-1]
            break
    if len(word) > _SHORT + 2 and word.endswith("ll"):
        return word[:-1]  # some write cancelled, others canceled
    if word in _SHORT_FOR:
        return stem(_SHORT_FOR[word])
    return word[:-1] if len(word) > _SHORT and word.endswith("e") else word
