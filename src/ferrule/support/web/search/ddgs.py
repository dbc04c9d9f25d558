"""The library ddgs, which reads the result pages of search engines and needs no key.

It is foreign code with its own HTTP: it runs on a thread that nobody waits for longer than the time limit.
"""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

from ferrule.support.web.apart import apart
from ferrule.support.web.errors import Code, WebError
from ferrule.support.web.search.api import Backend
from ferrule.support.web.search.failing import failed
from ferrule.support.web.search.result import MOST_RESULTS, Query, Result, Row, plain, tidied

T = TypeVar("T")

ENGINES = {
    "duckduckgo": "html.duckduckgo.com",
    "brave": "search.brave.com",
    "mojeek": "www.mojeek.com",
    "startpage": "www.startpage.com",
    "yahoo": "search.yahoo.com",
    "wikipedia": "en.wikipedia.org",
}
"""The engines that it is let loose on, and where they are: it knows more, and asks them all unless it is told."""
_EACH_SECONDS = 5.0
"""The longest that one engine may take: the end of the program waits for it."""
_ENGINES_IN_TURN = 3
_QUERY_CHARS = 400
_NONE = "No results found."
_OTHERS = "set web.search.backend to one of brave, tavily, exa and searxng"


async def searched(backend: Backend, query: Query, *, verify: bool | str = True) -> tuple[Result, ...]:
    """The results of one query. `verify` names a file of certificates to trust instead of the usual ones."""
    words = query.domains.worded(query.text, _QUERY_CHARS)
    most = min(MOST_RESULTS, query.results * 2 if query.domains else query.results)
    work = functools.partial(_guarded, functools.partial(_text, words, most, backend, verify))
    try:
        rows = await asyncio.wait_for(apart(work, "ferrule-search"), backend.seconds)
    except TimeoutError as error:
        raise _failed(f"no search engine has answered within {backend.seconds:g} seconds.", "timed-out") from error
    return tidied(rows, query)


def _text(words: str, most: int, backend: Backend, verify: bool | str) -> Sequence[Row]:  # noqa: FBT001 - as it is given
    try:
        import ddgs  # only who searches without a key pays for it, on a thread
        from ddgs import exceptions
    except ImportError as error:
        raise _missing() from error
    each = max(0.1, min(_EACH_SECONDS, backend.seconds / _ENGINES_IN_TURN))
    library = ddgs.DDGS(proxy=backend.proxy or None, timeout=each, verify=verify)  # type: ignore[arg-type]  # a fraction does
    # Without one it takes that of a variable of its own, which no user of this program knows of.
    library._proxy = backend.proxy or None  # noqa: SLF001 - there is no other way to say none
    try:
        found = library.text(words, max_results=most, backend=",".join(ENGINES))
    except exceptions.TimeoutException as error:
        raise _failed("the search engines have not answered in time.", "timed-out") from error
    except exceptions.RatelimitException as error:
        raise _failed("the search engines take no more searches for now.", "quota") from error
    except exceptions.DDGSException as error:
        if str(error) == _NONE:
            return ()
        inner = error.args[0] if error.args else None
        if isinstance(inner, Exception) and not isinstance(inner, exceptions.DDGSException):
            said = f"the page of a search engine was not understood ({type(inner).__name__})."
            raise _failed(said, "bad-answer") from error
        # What follows the kind of error has the whole address in it, with the query.
        kind = plain(str(error).partition(":")[0], 40)
        through = " through the proxy of the setting web.proxy" * bool(backend.proxy)
        raise _failed(f"the search engines could not be reached{through} ({kind}).", "unreachable") from error
    return [(row["title"], row["href"], row["body"], "") for row in found]


def complaint() -> str:
    """Why it cannot be used; empty where it can. Nothing of it is loaded."""
    from importlib.util import find_spec  # for whoever looks at the settings

    return "" if find_spec("ddgs") is not None else _missing().message


def _missing() -> WebError:
    said = f"the package ddgs is not installed. Install it with `pip install 'ferrule[web]'`, or {_OTHERS}."
    return failed(said, "no-package")


def _guarded(work: Callable[[], T]) -> T:
    try:
        return work()
    except WebError:
        raise
    except BaseException as error:  # foreign code, whose panics are not even exceptions
        said = f"the package ddgs failed ({type(error).__name__}: {plain(str(error), 200)})."
        raise _failed(said, "bad-answer") from error


def _failed(said: str, code: Code) -> WebError:
    return failed(f"{said} Check the network and try again later, or {_OTHERS}.", code)
