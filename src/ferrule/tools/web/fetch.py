"""Fetch web pages, shorten them to fit, and optionally answer a question from them.

A page that is cut is kept whole in the store of outputs, so nothing that was fetched is lost.

A question is answered by a model that reads the pages, so that only its answer takes room in the conversation.
That model has no tools: whatever the pages tell it, it can do nothing but answer.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from http import HTTPStatus

from ferrule.core.access import Access
from ferrule.core.content import Picture
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import Job, Subagent, Subagents, Verdict, hosts_allowed, subagents
from ferrule.core.tool import READS_OUTSIDE, Args, Context, Tool
from ferrule.sandbox.web_address import Url, WebError, parse_url, same_site, upgrade_url
from ferrule.settings import Settings
from ferrule.system import Threads
from ferrule.tools.web import Addresses, CrossHostRedirect, Fetched, Missed, PageKind, WebPage, WebPicture
from ferrule.tools.web.body import decode_text, detect_kind
from ferrule.tools.web.client import Got, Redirected, Web
from ferrule.tools.web.content import Content, Converter, Form, UnreadablePage, text_of

MOST_BYTES = 262_144
"""Of the text of all pages of one call, where a model reads them."""
GIVEN_BYTES = 40_000
"""The same where they go into the conversation: about 10,000 tokens."""

Found = WebPage | WebPicture | CrossHostRedirect | Missed


def truncate_pages(found: Sequence[Found], most_bytes: int) -> tuple[Found, ...]:
    """The pages with as much of their text as there is room for."""
    room = _room([page.total_bytes if isinstance(page, WebPage) else 0 for page in found], most_bytes)
    return tuple(_cut(page, room) if isinstance(page, WebPage) else page for page in found)


async def fit_pages(found: Sequence[Found], ctx: Context, most_bytes: int) -> tuple[Found, ...]:
    """The same; the whole of what is cut goes into the store of outputs, and the reply names what reads it there."""
    cut = truncate_pages(found, most_bytes)
    if cut == tuple(found):
        return cut
    whole = "\n\n".join(_add_heading(page, len(found)) for page in found if isinstance(page, WebPage)).encode(
        "utf-8", "replace"
    )
    path = ctx.new_log()
    if path is not None:
        try:
            await ctx.need(Threads).finish(_write, path, whole)
        except OSError as error:  # the disk is full, say: what was fetched is given all the same
            ctx.note(f"The whole text is not kept: {error.strerror or error}.")
        else:
            ctx.keep_log(len(whole))
    return cut


def _room(sizes: Sequence[int], most_bytes: int) -> int:
    """The bytes that each page may have: what short ones leave is shared by the others."""
    left, waiting = most_bytes, sorted(size for size in sizes if size)
    while waiting and waiting[0] <= left // len(waiting):
        left -= waiting.pop(0)
    return left // len(waiting) if waiting else most_bytes


def _cut(page: WebPage, room: int) -> WebPage:
    if page.total_bytes <= room:
        return page
    raw = page.text.encode("utf-8", "replace")[:room]
    newline = raw.rfind(b"\n", len(raw) // 2)
    text = (raw[: newline + 1] if newline >= 0 else raw).decode("utf-8", "ignore")
    kept = len(text.encode("utf-8", "replace"))
    why = f"The page has {page.total_bytes:,} bytes of text; these are the first {kept:,}."
    return page._replace(text=text, why_partial=f"{page.why_partial} {why}".strip())


def _add_heading(page: WebPage, count: int) -> str:
    return page.text if count == 1 else f"{page.address}\n\n{page.text}"


def _write(path: str, whole: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(whole)


_KIND = "web_fetch"
_PROMPT = os.path.join(os.path.dirname(__file__), "reader.md")


async def answer_prompt(fetched: Fetched, ctx: Context) -> Fetched:
    """The same with an answer to its prompt, where there is one, pages to read, and somebody to read them."""
    pages = tuple(page for page in fetched.pages if isinstance(page, WebPage))
    if not fetched.prompt or not pages:
        return fetched
    settings, runs = ctx.need(Settings), subagents(ctx)
    model, asked = _model(settings), _build_prompt(fetched.prompt, pages)
    agent = Subagent(name="reader", model=model, tools=(), system=_system(), role=_KIND, max_turns=1, mode="plan")
    if why := _why_not(settings, runs, agent, asked):
        ctx.note(f"This is the page itself and not an answer to the {ctx.param('prompt')}: {why}")
        return fetched
    ctx.progress("Reading the page")
    try:
        done = await runs.work(Job(agent, asked, description=f"Read {pages[0].address}"), ctx)
    except ToolFailure as failure:
        return _note_no_answer(fetched, failure.message, ctx)
    if done.status != "completed" or not done.text.strip():
        return _note_no_answer(fetched, done.why or f"it was {done.status} and said nothing.", ctx)
    if done.reason != "end":
        ctx.note(f"The answer is not complete: {done.why or done.reason}")
    return fetched._replace(answer=done.text.strip(), model=done.model or model)


def _why_not(settings: Settings, runs: Subagents, agent: Subagent, prompt: str) -> str:
    """Why nobody reads the page, as a sentence; empty where somebody does."""
    if not settings.web.answers:
        return "answers are switched off (setting web.answers)."
    if not runs.can_run:
        return "no model can be asked here."
    # A recording says what every model of its session said: where it says nothing about pages, none was asked.
    if not agent.model and not runs.expects(agent, prompt):
        return "the recording that is played has none."
    return ""


def _model(settings: Settings) -> str:
    """The one that reads pages; empty where the session's own does."""
    roles = settings.models.roles
    return roles.get(_KIND, "") or roles.get("reader", "") or settings.models.small


def _note_no_answer(fetched: Fetched, why: str, ctx: Context) -> Fetched:
    ctx.note(f"This is the page itself: the model gave no answer to the {ctx.param('prompt')}. {why}")
    return fetched


def _build_prompt(prompt: str, pages: tuple[WebPage, ...]) -> str:
    shown = "\n\n".join(page.page_element for page in pages)
    return f"{shown}\n\nAnswer this from the {'page' if len(pages) == 1 else 'pages'} above:\n\n{prompt}"


def _system() -> str:
    with open(_PROMPT, encoding="utf-8") as file:
        return file.read().strip()


MOST_PAGES = 20
MOST_SECONDS = 120.0
_SAID_CHARS = 500
"""Of what a page says that is an error."""
_FAILED = 400
_KINDS: dict[str, PageKind] = {"page": "page", "text": "text", "data": "data", "document": "document"}


class WebFetchArgs(Args, frozen=True, kw_only=True):
    url: str
    more: tuple[str, ...] = ()
    """Further addresses."""
    prompt: str = ""
    """What is to be found out from the pages."""
    form: Form = "markdown"
    across: bool = False
    """Are redirects to other hosts followed, as far as the rules let them?"""
    fresh: bool = False
    """Is the page fetched even where it was a short while ago?"""
    seconds: float | None = None


class WebFetch(Tool[WebFetchArgs, Fetched]):
    """What addresses lead to: pages as Markdown, text, data, PDFs as text, pictures; or an answer from them."""

    name = "web_fetch"
    args = WebFetchArgs
    title = "Read a page of the web"
    hints = READS_OUTSIDE

    def access(self, args: WebFetchArgs, ctx: Context) -> tuple[Access, ...]:
        return tuple(dict.fromkeys(Access.host(_parse_url(url).target.host) for url in _addresses(args, ctx)))

    async def run(self, args: WebFetchArgs, ctx: Context) -> Fetched:
        if args.seconds is not None and args.seconds <= 0:
            raise BadArguments(f"{ctx.param('seconds')}: must be more than 0.")
        addresses = _addresses(args, ctx)
        ctx.need(Converter).begin()  # while the pages are on their way
        found = await asyncio.gather(*(_each(url, args, ctx, alone=len(addresses) == 1) for url in addresses))
        if all(isinstance(page, Missed) for page in found):
            whys = "\n".join(f"{page.url}: {page.why}" for page in found if isinstance(page, Missed))
            raise ToolFailure(f"None of the {len(found)} addresses could be read.\n{whys}", code="unreadable")
        for page in found:
            if isinstance(page, WebPage):
                ctx.need(Addresses).read(page.url, page.text, is_private=page.is_private)
        fetched = await answer_prompt(Fetched(truncate_pages(found, MOST_BYTES), prompt=args.prompt.strip()), ctx)
        pages = await fit_pages(found, ctx, MOST_BYTES if fetched.answer else GIVEN_BYTES)
        return fetched._replace(pages=pages)


def _addresses(args: WebFetchArgs, ctx: Context) -> tuple[str, ...]:
    """Each once. Raises `ToolFailure` where one cannot be fetched at all: nobody is asked about it."""
    every = tuple(dict.fromkeys(url.strip() for url in (args.url, *args.more)))
    if "" in every:
        raise BadArguments(f"{ctx.param('url')}: there is no address in it; write one whole, with https://.")
    if len(every) > MOST_PAGES:
        raise BadArguments(f"{ctx.param('url')}: {len(every)} addresses are too many; {MOST_PAGES} is the most.")
    return every


def _parse_url(url: str) -> Url:
    try:
        return parse_url(url)
    except WebError as error:
        raise ToolFailure(error.message, code=error.code) from error


async def _each(
    url: str, args: WebFetchArgs, ctx: Context, *, alone: bool
) -> WebPage | WebPicture | CrossHostRedirect | Missed:
    """What one address leads to. One of several that fails does not keep the others back."""
    try:
        return await _one(url, args, ctx)
    except ToolFailure as failure:
        if alone:
            raise
        return Missed(url, failure.message)


async def _one(url: str, args: WebFetchArgs, ctx: Context) -> WebPage | WebPicture | CrossHostRedirect:
    began = time.perf_counter()
    try:
        got = await _follow_redirects(url, args, ctx)
        if isinstance(got, Redirected):
            return CrossHostRedirect(url, got.to, got.status)
        if got.status >= _FAILED:
            raise ToolFailure(_complaint(url, got), code="http-error")
        content = await ctx.need(Converter).convert(
            got.body, address=got.address, media_type=got.media_type, charset=got.charset, form=args.form
        )
    except WebError as error:
        raise ToolFailure(error.message, code=error.code) from error
    except UnreadablePage as error:
        raise ToolFailure(str(error), code=error.code) from error
    for note in content.notes:
        ctx.note(note)
    return _build_page(url, got, content, time.perf_counter() - began)


def _build_page(url: str, got: Got, content: Content, seconds: float) -> WebPage | WebPicture:
    if content.kind == "picture":
        return WebPicture(url, got.address, Picture(got.address, content.media_type, content.data))
    return WebPage(
        url=url,
        address=got.address,
        kind=_KINDS[content.kind],
        text=content.text,
        title=content.title,
        media_type=content.media_type,
        status=got.status,
        total_bytes=len(content.text.encode("utf-8", "replace")),
        is_cached=got.is_cached,
        why_partial=" ".join(filter(None, (got.why_partial, content.why_partial))),
        seconds=seconds,
        is_private=got.is_private,
    )


async def _follow_redirects(url: str, args: WebFetchArgs, ctx: Context) -> Got | Redirected:
    """The page, after redirects, each of which is judged like an address that was asked for."""
    web, settings = ctx.need(Web), ctx.need(Settings).web
    limit_seconds = min(args.seconds or settings.seconds, max(MOST_SECONDS, settings.seconds))
    limit_said = _limit_said(args, limit_seconds, ctx)
    until = time.monotonic() + limit_seconds
    here, seen = url, {str(_parse_url(url))}
    before: Redirected | None = None
    is_private = False
    while True:
        ctx.progress(f"Fetching {here}")
        left = max(0.001, until - time.monotonic())
        try:
            got = await web.get(
                here, across=False, fresh=args.fresh, seconds=left, limit_said=limit_said, tell=ctx.progress
            )
        except WebError as error:
            if before is None:
                raise
            raise error.after(before.url, here, is_own=before.is_private) from error
        if isinstance(got, Got):
            return got._replace(is_private=got.is_private or is_private)
        is_private = is_private or got.is_private
        # With `www.` or without is one site to whoever was asked; a rule may still be about one of its names or pages.
        is_site = same_site(_parse_url(here), _parse_url(got.to))
        if not is_site and not args.across:
            return got._replace(url=url)
        if _verdict(got.to, url, ctx, is_asked_for=is_site or not got.is_private) != "allow":
            return got._replace(url=url)
        if got.to in seen or len(seen) > settings.hops:
            raise WebError(f"{url} redirects in a circle, or more than {settings.hops} times.", "too-many-redirects")
        seen.add(got.to)
        here, before = got.to, got


def _limit_said(args: WebFetchArgs, limit_seconds: float, ctx: Context) -> str:
    """The limit, and whose it is."""
    if args.seconds is None:
        return f"{limit_seconds:g} s (setting web.seconds)"
    name = ctx.param("seconds")
    return f"{limit_seconds:g} s ({name}{', at the most' * (args.seconds > limit_seconds)})"


def _verdict(address: str, url: str, ctx: Context, *, is_asked_for: bool = True) -> Verdict:
    """What holds for where a fetch of `url` has come to. Raises `ToolFailure` where a rule denies that.

    A site that the call names was judged with it: what was said then holds, but a rule may be about other addresses
    there. Not `is_asked_for` is where a program of this machine sends it, which may be a command of the session: it
    could put into the address what it has read.
    """
    there = _parse_url(address)
    host = there.target.host
    words = hosts_allowed(ctx)
    word = words.word("web_fetch", host, str(there))
    if word.verdict == "deny":
        raise ToolFailure(
            f"{url} redirects to {host}, which is not fetched from: {word.why or 'a rule denies it.'}",
            code="denied-by-rule",
        )
    asked = _parse_url(url)
    is_named = same_site(asked, there) or any(access.kind == "host" and access.key == host for access in ctx.touches)
    if word.verdict == "allow" or not (is_asked_for and is_named):
        return word.verdict
    if not word.rule:
        # No rule is about it: whether the model made the address up was asked of the one that the call names.
        return "allow"
    # The question that this rule asks has been answered for the call, unless it is about this address and not that one.
    first = words.word("web_fetch", asked.target.host, str(asked))
    return "allow" if (first.verdict, first.rule) == (word.verdict, word.rule) else word.verdict


def _complaint(url: str, got: Got) -> str:
    """What is said of a page that is an error: its status, and the first that it says itself."""
    names = {status.value: status.phrase for status in HTTPStatus}
    named = f" {names[got.status]}" if got.status in names else ""
    asked = _parse_url(url)
    came = "" if got.address in {str(asked), str(upgrade_url(asked))} else f"{url} redirects to "
    head = f"{came}{got.address}{', which' * bool(came)} answers with the status {got.status}{named}."
    kind = detect_kind(got.body, got.media_type)
    if kind in {"binary", "picture", "document"} or not got.body:
        return head
    text = decode_text(got.body[: 16 * _SAID_CHARS], got.charset, kind)
    said = " ".join((text_of(text) if kind == "page" else text).split())[:_SAID_CHARS]
    return f"{head} It says: {said}" if said else head
