"""Turn web pages into readable content: HTML as Markdown, PDFs as text, text, data and pictures.

Untrusted formats are decoded in child processes: HTML in a warm child that stays for the next page, because the
libraries take long to load, and PDFs and pictures in that of `decoder`. A page that breaks its child is read by
the plain reader, which needs no library and takes no longer than the length of the page.

The warm child runs as the same user, with limits on memory, time and output, and closes itself in as `decoder`
says. It ends with its pipes, so that nothing is left of it after the engine, however the engine ends.

Work that may take a moment runs on a thread of the event loop; work that may take forever runs on a thread of
its own.
"""

import asyncio
import contextlib
import functools
import html
import json
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from ferrule import documents
from ferrule.system.proc import signal_group
from ferrule.tools.web.body import Kind, decode_text, detect_kind

PACKAGES = ("html_to_markdown", "trafilatura")
LIMITS = documents.DecoderLimits(seconds=10, output_bytes=20 << 20)
TURN_SECONDS = 25.0
"""So long a page waits for those before it: many pages that all take their time are not read so."""
START_SECONDS = 20.0
IDLE_SECONDS = 300.0
_GONE_SECONDS = 2.0
_HERE = os.path.dirname(os.path.abspath(__file__))
_PROGRAM = os.path.join(_HERE, "markdown_worker.py")
_WALLS = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "documents", "worker.py")
_SHARED = ("site-packages", "dist-packages")
_LINE_BYTES = 65_536


class Failed(Exception):  # noqa: N818 - the state
    """The page was not turned: the child has ended, or it took too long, or it said something else."""


class PageText(NamedTuple):
    """A page as text."""

    text: str
    is_cut: bool
    """Was some of it too deep to be reached?"""


class Warm:
    """One child for all pages of a session; a new one where it has ended. Its pages wait for each other."""

    def __init__(self, *, limits: documents.DecoderLimits = LIMITS, idle_seconds: float = IDLE_SECONDS) -> None:
        self._limits = limits
        self._idle_seconds = idle_seconds
        self._turn = asyncio.Lock()
        self._child: _DecoderProcess | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The child's, while it runs."""
        return None if self._child is None or self._child.is_over else self._child.pid

    def begin(self) -> None:
        """Start the child now, and not when the page is there."""
        if self._closed or self._starting is not None or self._turn.locked() or self.pid is not None:
            return
        self._starting = asyncio.create_task(self._start_early())
        self._starting.add_done_callback(lambda _: setattr(self, "_starting", None))

    async def turn(self, page: str, *, address: str, form: str) -> PageText:
        """The page as Markdown or text. Raises: Failed, with the child ended."""
        async with self._place():
            self._rest()
            try:
                child = await self._ready()
                async with asyncio.timeout(self._limits.seconds):
                    return await child.turn(page, address, form)
            except TimeoutError as error:
                await self._end()
                raise Failed(f"it took longer than {self._limits.seconds} seconds") from error
            except Failed:
                await self._end()
                raise
            except asyncio.CancelledError:
                await self._end()  # its answer would be taken for that to the next page
                raise
            finally:
                self._rest(after=self._idle_seconds)

    async def close(self) -> None:
        """End the child. No other is started."""
        self._closed = True
        self._rest()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._end()

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turn.acquire()
        except TimeoutError as error:
            raise Failed("the pages before it took too long") from error
        try:
            yield
        finally:
            self._turn.release()

    async def _start_early(self) -> None:
        async with self._turn:
            with contextlib.suppress(Failed, TimeoutError):
                await self._ready()
            self._rest(after=self._idle_seconds)

    async def _ready(self) -> "_DecoderProcess":
        if self._child is not None and (self._child.is_over or self._child.has_more):
            await self._end()
        if self._child is None:
            if self._closed:
                raise Failed("the session is over")
            self._child = await _DecoderProcess.start(self._limits)
            if self._closed:  # while it was started; whoever wanted it ends it
                raise Failed("the session is over")
            try:
                async with asyncio.timeout(START_SECONDS):
                    await self._child.ready()
            except BaseException:
                await self._end()
                raise
        return self._child

    def _rest(self, *, after: float | None = None) -> None:
        """End the child after so many seconds without a page."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if after is not None and self._child is not None and not self._closed:
            self._idle = asyncio.get_running_loop().call_later(after, self._child.kill)

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GONE_SECONDS):
                    await child.over.wait()


class _DecoderProcess(asyncio.SubprocessProtocol):
    """The process: what it has said so far and nobody has read, and whether it is gone."""

    def __init__(self, limits: documents.DecoderLimits) -> None:
        self.over = asyncio.Event()
        self.pid = 0
        self._limits = limits
        self._heard = bytearray()
        self._more = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(cls, limits: documents.DecoderLimits) -> "_DecoderProcess":
        where = folders()
        if where is None:
            raise Failed("its packages are not installed")
        order = {
            "decoding": _WALLS,
            "folders": where,
            "readable": _readable(where),
            "seconds": limits.seconds,
            "memory_bytes": limits.memory_bytes,
            "rules": documents.rules().hex(),
        }
        apart: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        try:
            transport, child = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(limits),
                *(sys.executable, "-I", "-S", _PROGRAM, json.dumps(order)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                env=documents.environment(),
                **apart,
            )
        except OSError as error:
            raise Failed(f"it does not start ({error.strerror})") from error
        child.pid = transport.get_pid()
        return child

    @property
    def is_over(self) -> bool:
        return self.over.is_set() or self._transport is None or self._transport.get_returncode() is not None

    @property
    def has_more(self) -> bool:
        """Has it said something that nobody asked for? Then a page has taken it over."""
        return bool(self._heard)

    async def ready(self) -> None:
        said = await self._line()
        if said.get("ready") is not True:
            raise Failed("it does not say that it is ready")

    async def turn(self, page: str, address: str, form: str) -> PageText:
        raw = page.encode("utf-8", "replace")
        # Only the process of this page knows it: what one of an earlier page says is no answer.
        secret = secrets.token_hex(16)
        order = {"id": secret, "address": address, "form": form, "length": len(raw)}
        assert self._transport is not None
        feed = self._transport.get_pipe_transport(0)
        if not isinstance(feed, asyncio.WriteTransport):
            raise Failed("it has ended")
        feed.write(json.dumps(order).encode() + b"\n")
        feed.write(raw)
        said = await self._line()
        if said.get("id") != secret or said.get("wrong") or not isinstance(length := said.get("length"), int):
            raise Failed("the page breaks it")
        text = await self._bytes(length)
        return PageText(text.decode("utf-8", "replace"), said.get("is_cut") is True)

    def kill(self) -> None:
        """End it and whatever it has started."""
        if self._transport is None:
            return
        if sys.platform != "win32" and self._transport.get_returncode() is None:
            signal_group(self.pid, signal.SIGKILL)
            # Closing all of it would also look whether it is gone, and take its end from whoever waits for that.
            for pipe in filter(None, map(self._transport.get_pipe_transport, (0, 1))):
                pipe.close()
        else:
            self._transport.close()

    async def _line(self) -> dict[str, Any]:
        while b"\n" not in self._heard:
            if len(self._heard) > _LINE_BYTES:
                raise Failed("its answer has no form")
            await self._wait()
        line, _, rest = self._heard.partition(b"\n")
        self._heard = rest
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Failed("its answer has no form") from error
        if not isinstance(said, dict):
            raise Failed("its answer has no form")
        return said

    async def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= self._limits.output_bytes:
            raise Failed("its answer is too long")
        while len(self._heard) < count:
            await self._wait()
        found = bytes(self._heard[:count])
        del self._heard[:count]
        return found

    async def _wait(self) -> None:
        if self.is_over:
            raise Failed("it has ended")
        self._more.clear()
        await self._more.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - only standard output is a pipe to read
        if len(self._heard) <= self._limits.output_bytes + _LINE_BYTES:
            self._heard += data
        else:
            self.kill()
        self._more.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - it is over however that was
        self._more.set()

    def process_exited(self) -> None:
        self._more.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above
        if self._transport is not None:
            self._transport.close()
        self.over.set()
        self._more.set()


@functools.cache
def folders() -> list[str] | None:
    """Where the packages are; None where the one that converts is not installed."""
    return documents.folders(PACKAGES) or documents.folders(PACKAGES[:1])


def _readable(where: list[str]) -> list[str]:
    """What the child may still open of them: all of a folder of packages, and nothing beside them elsewhere."""
    shared = [folder for folder in where if os.path.basename(folder) in _SHARED]
    others = [os.path.join(folder, name) for folder in where if folder not in shared for name in PACKAGES]
    return [*shared, *others]


T = TypeVar("T")


async def aside(work: Callable[[], T], *, size: int, much: int) -> T:
    """What `work` gives, which ends by itself: at once where there is little of what it works on."""
    return work() if size < much else await asyncio.to_thread(work)


async def apart(work: Callable[[], T], name: str) -> T:
    """What `work` gives or raises, however long it takes: it cannot be stopped. Who is cancelled leaves it behind.

    Neither others that need a thread nor the end of the program wait for it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(found: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)  # type: ignore[arg-type]  # there is one where there is no error

    def run() -> None:
        found: T | None = None
        broken: BaseException | None = None
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            broken = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, found, broken)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future


MOST_CHARS = 2_000_000
"""Of a page that is looked at."""
_TITLE_CHARS = 400
_HEAD_CHARS = 200_000
_SILENT = frozenset(
    {
        "script",
        "style",
        "title",
        "noscript",
        "template",
        "svg",
        "head",
        "nav",
        "footer",
        "iframe",
        "object",
        "select",
        "math",
    }
)
"""What stands in these is no text of the page."""
_COMMENT_END = "-->"
_UNREAD = frozenset({"script", "style", _COMMENT_END})
_ALOUD = ("body", "main", "article", "h1")
"""Whatever was not closed before these begin is over."""
_LINES = frozenset(
    {
        *("address", "article", "aside", "body", "br", "center", "dd", "details", "dialog", "div", "dt", "fieldset"),
        *("figcaption", "figure", "form", "header", "hr", "html", "legend", "main", "option", "section", "summary"),
        *("tbody", "thead", "tfoot", "tr"),
    }
)
_PARAGRAPHS = frozenset({"p", "pre", "ul", "ol", "table", "blockquote", "dl"})


def text_of(page: str) -> str:
    """The words, a line for each block; headings and items of lists are marked as Markdown does."""
    return _tidy_lines("".join(_pieces(page[:MOST_CHARS])))


def title_of(page: str) -> str:
    """What a page calls itself; empty where it does not."""
    head = page[:_HEAD_CHARS]
    for pattern in _titles():
        if found := pattern.search(head):
            text = " ".join(html.unescape(_tag().sub(" ", found[1])).split())
            if text:
                return text[:_TITLE_CHARS]
    return ""


def _pieces(page: str) -> Iterator[str]:
    at, silent, is_code = 0, "", False
    for found in _tag().finditer(page):
        if not silent:
            yield _words(page[at : found.start()], is_code=is_code)
        at = found.end()
        name = found["name"].lower() if found["name"] else ""
        closes = found["slash"] == "/"
        if silent:
            # In a script only its own end is a tag; elsewhere a page's own text ends what was left open.
            is_over = name in _ALOUD and silent not in _UNREAD
            if is_over or found[0] == silent or (closes and name == silent):
                silent = ""
            continue
        if found[0] == "<!--" or (name in _SILENT and not closes and not found[0].endswith("/>")):
            silent = name or _COMMENT_END
            yield "\n"
        elif name == "pre":
            is_code = not closes
            yield "\n```\n"
        elif name:
            yield _mark(name, closes=closes)
    if not silent:
        yield _words(page[at:], is_code=is_code)


def _mark(name: str, *, closes: bool) -> str:
    if name[0] == "h" and name[1:] in {"1", "2", "3", "4", "5", "6"}:
        return "\n\n" if closes else f"\n\n{'#' * int(name[1:])} "
    if name == "li":
        return "\n" if closes else "\n- "
    if name in {"td", "th"}:
        return " | " if closes else ""
    if name in _PARAGRAPHS:
        return "\n\n"
    return "\n" if name in _LINES else ""


def _words(text: str, *, is_code: bool) -> str:
    said = html.unescape(text)
    return said if is_code else _blank().sub(" ", said)


def _tidy_lines(text: str) -> str:
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if line == "```":
            is_code = not is_code
        kept = line.rstrip() if is_code else line.strip()
        if kept.startswith("- ") and lines[-2:-1] and lines[-2].startswith("- ") and not lines[-1]:
            lines.pop()
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).strip() + "\n"


@functools.cache
def _tag() -> re.Pattern[str]:
    # Nothing that was read is given back: each character is looked at once.
    return re.compile(r"<!--|-->|<(?P<slash>/?)(?P<name>[A-Za-z][A-Za-z0-9]*+)[^<>]*+>|<[!?](?!--)[^<>]*+>")


@functools.cache
def _blank() -> re.Pattern[str]:
    return re.compile(r"\s+")


@functools.cache
def _titles() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"(?i)<title[^<>]{0,500}>([^<]{1,2000})"),
        re.compile(r"""(?i)<meta\s[^<>]{0,200}?og:title["'][^<>]{0,200}?content\s{0,9}=\s{0,9}["']([^<>"']{1,2000})"""),
        re.compile(r"(?i)<h1[^<>]{0,500}>((?:[^<]|<(?!/h1)){1,2000})"),
    )


Form = Literal["markdown", "text", "html"]
INSTALL = "pip install 'ferrule[web]'"
"""How a user gets the libraries that convert pages."""
PRETTY_BYTES = 100_000
"""JSON of at most so many bytes, all on one line, is set out on several."""
MOST_PAGES = 100
"""Of a PDF; a longer one is given so far."""
_AT_ONCE_PAGES = documents.MOST_PAGES
_MUCH_BYTES = 100_000
"""More than this is decoded away from the event loop; of so many bytes a page can be made that takes long to read."""


class UnreadablePage(ValueError):  # noqa: N818 - the state of the page, as a tool reports it
    """The page cannot be shown. The message is a whole sentence."""

    def __init__(self, message: str, *, code: str = "unreadable") -> None:
        super().__init__(message)
        self.code = code


class Content(NamedTuple):
    """What a page holds."""

    kind: Kind
    text: str = ""
    title: str = ""
    media_type: str = ""
    data: bytes = b""
    """Of a picture."""
    why_partial: str = ""
    """Why this is not all of it, as a sentence."""
    notes: tuple[str, ...] = ()


class Converter:
    """The session's one. It must be closed."""

    def __init__(self, warm: Warm | None = None) -> None:
        self._warm = warm or Warm()

    def begin(self) -> None:
        """A page is on its way: be ready for it."""
        if folders() is not None:
            self._warm.begin()

    async def convert(
        self, raw: bytes, *, address: str, media_type: str = "", charset: str = "", form: Form = "markdown"
    ) -> Content:
        """What the bytes of the page at `address` hold. Raises: Unreadable."""
        kind = detect_kind(raw, media_type)
        if kind == "binary":
            raise _binary(address, media_type, len(raw))
        if kind == "picture":
            return await _picture(raw)
        if kind == "document":
            return await _document(raw)
        text = await aside(lambda: decode_text(raw, charset, kind), size=len(raw), much=_MUCH_BYTES)
        if kind == "page":
            return await self._page(text, address, media_type, form)
        if kind == "data":
            return Content(kind, _set_out(text), media_type=media_type or "application/json")
        return Content(kind, text, media_type=media_type or "text/plain")

    async def close(self) -> None:
        await self._warm.close()

    async def _page(self, page: str, address: str, media_type: str, form: Form) -> Content:
        given = Content("page", title=title_of(page), media_type=media_type or "text/html")
        if form == "html":
            return given._replace(text=page)
        if folders() is None:
            note = f"The page is given as plain text: the libraries that make Markdown of it are missing ({INSTALL})."
            return await _plain(given, page, note)
        try:
            turned = await self._warm.turn(page, address=address, form=form)
        except Failed as error:
            note = f"The page is given as plain text: it could not be turned into Markdown ({error})."
            return await _plain(given, page, note)
        if turned.is_cut:
            note = "The page is given as plain text: its parts lie too deep in each other for Markdown."
            return await _plain(given, page, note)
        return given._replace(text=turned.text)


def _binary(address: str, media_type: str, size: int) -> UnreadablePage:
    if media_type.startswith("text/"):
        what = f"{address} is said to be {media_type}, but its {size:,} bytes are no text, no picture and no PDF."
    else:
        kind = f"of the type {media_type}" if media_type else "of a type that the server does not tell"
        what = f"{address} is not a text, a picture or a PDF but {size:,} bytes {kind}."
    return UnreadablePage(
        f"{what} If it is needed, ask the user for it, or download it with a command where commands may use the "
        "network."
    )


async def _plain(given: Content, page: str, note: str) -> Content:
    text = await aside(lambda: text_of(page), size=len(page), much=_MUCH_BYTES)
    why = ""
    if len(page) > MOST_CHARS:
        why = f"Only the first {MOST_CHARS:,} of the page's {len(page):,} characters were looked at."
    return given._replace(text=text, notes=(note,), why_partial=why)


async def _picture(raw: bytes) -> Content:
    try:
        fitted = await documents.fit(raw)
    except documents.BadPicture as error:
        raise UnreadablePage(str(error), code=error.code) from error
    return Content(
        "picture", media_type=fitted.media_type, data=fitted.data, notes=(fitted.note,) if fitted.note else ()
    )


async def _document(raw: bytes) -> Content:
    """The text of its pages, so many at once as are decoded in one go."""
    leaves: list[documents.Leaf] = []
    total = 1
    while len(leaves) < min(total, MOST_PAGES):
        first = len(leaves) + 1
        try:
            found = await documents.pages(raw, f"{first}-{first + _AT_ONCE_PAGES - 1}")
        except (documents.BadDocument, documents.BadPages) as error:
            if leaves:  # one page in the middle is damaged
                return _join_leaves(leaves, total, str(error))
            raise UnreadablePage(str(error), code=getattr(error, "code", "bad-document")) from error
        leaves += found.pages
        total = found.total
    why = f"These are the first {len(leaves)} of its {total} pages." if total > len(leaves) else ""
    return _join_leaves(leaves, total, why)


def _join_leaves(leaves: list[documents.Leaf], total: int, why: str) -> Content:
    text = "\n\n".join(f"Page {leaf.number} of {total}\n{leaf.text}".rstrip() for leaf in leaves)
    drawn = [str(leaf.number) for leaf in leaves if not leaf.text.strip()]
    notes = (f"There is no text on page {', '.join(drawn[:20])}: what is on it is a picture.",) if drawn else ()
    return Content("document", text, media_type="application/pdf", why_partial=why, notes=notes)


def _set_out(text: str) -> str:
    """JSON that was written for programs as people write it, where it is short."""
    if len(text) > PRETTY_BYTES or re.search(r"\n\s*[^\s]", text.strip()):
        return text

    try:
        return msgspec.json.format(text.encode("utf-8", "replace"), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        return text
