"""The library ddgs, the real one, behind a proxy on loopback that plays its engines."""

import asyncio
import builtins
import contextlib
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.sandbox.web_address import WebError
from ferrule.tools.web import search
from ferrule.tools.web.search_api import Domains, SearchBackend, SearchResult, WebQuery, each
from tests.models.certificates import certificate

from .proxying import Engines, duckduckgo, engines, mojeek

ROWS = (
    ("The Guide & more", "https://docs.example.org/guide", "How it <strong>works</strong> &amp; why."),
    ("A picture", "ftp://files.example.org/x", "no page"),
    ("Other", "https://example.net/other", "Another <b>guide</b>"),
)


@pytest.fixture
async def played(tmp_path, monkeypatch):
    monkeypatch.delenv("DDGS_PROXY", raising=False)
    _, tls = certificate(tmp_path, *search.ENGINES.values())
    async with engines(tls) as played:
        yield played


async def found(played: Engines, query: WebQuery, *, verify: bool | str = False, seconds: float = 20) -> Any:
    return await search.search_ddgs(SearchBackend("ddgs", proxy=played.url, seconds=seconds), query, verify=verify)


def test_the_engines_are_those_of_the_installed_version():
    from ddgs.engines import ENGINES

    assert search.ENGINES.keys() <= ENGINES["text"].keys()
    for name, host in search.ENGINES.items():
        assert host.partition(".")[2] in ENGINES["text"][name].search_url


@pytest.mark.parametrize(
    ("host", "page"),
    [
        pytest.param("www.mojeek.com", mojeek, id="mojeek"),
        pytest.param("html.duckduckgo.com", duckduckgo, id="duckduckgo"),
    ],
)
async def test_results_are_read_from_the_page_of_an_engine(played, host, page):
    played.pages[host] = (200, page(*ROWS))

    results = await found(played, WebQuery("guide", 8))

    assert results == (
        SearchResult("The Guide & more", "https://docs.example.org/guide", "How it works & why."),
        SearchResult("Other", "https://example.net/other", "Another guide"),
    )
    assert {asked for asked, _ in played.asked} <= set(search.ENGINES.values())


async def test_domains_are_asked_for_and_filtered(played):
    played.pages["www.mojeek.com"] = (200, mojeek(*ROWS))

    results = await found(played, WebQuery("guide", 8, Domains(allowed=tuple(each(("example.net",))))))

    assert [result.url for result in results] == ["https://example.net/other"]
    assert any("site%3Aexample.net" in line for _, line in played.asked)


async def test_no_results_are_no_failure(played):
    played.pages["www.mojeek.com"] = (200, "<html><body>Nothing.</body></html>")

    assert await found(played, WebQuery("guide", 8)) == ()


async def test_a_page_that_is_no_page_of_results_is_said_to_be_one(played):
    played.pages["www.startpage.com"] = (200, "")

    with pytest.raises(WebError, match="was not understood") as raised:
        await found(played, WebQuery("guide", 8))

    assert raised.value.code == "bad-answer"


async def test_a_certificate_that_nobody_signed_is_not_believed(played):
    played.pages["www.mojeek.com"] = (200, mojeek(*ROWS))

    with pytest.raises(WebError, match="could not be reached") as raised:
        await found(played, WebQuery("guide", 8), verify=True)

    assert raised.value.code == "unreachable"
    assert all(line == "" or "guide" not in line for _, line in played.asked)


async def test_without_a_network_it_says_so(played):
    with pytest.raises(WebError) as raised:
        await search.search_ddgs(
            SearchBackend("ddgs", proxy="http://127.0.0.1:1", seconds=20), WebQuery("secret words", 8)
        )

    assert raised.value.code == "unreachable"
    assert raised.value.message.startswith("The web cannot be searched: the search engines could not be reached")
    assert "Check the network" in raised.value.message
    assert "web.search.backend" in raised.value.message
    assert "secret" not in raised.value.message


async def test_the_library_s_own_variable_for_a_proxy_is_nobody_s_business(played, monkeypatch):
    monkeypatch.setenv("DDGS_PROXY", played.url)

    with contextlib.suppress(WebError):
        await search.search_ddgs(SearchBackend("ddgs", seconds=5), WebQuery("guide", 8), verify=False)

    assert played.asked == []


@pytest.mark.parametrize("name", ["DDGS_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
async def test_the_proxy_of_the_settings_goes_before_that_of_the_environment(played, monkeypatch, name):
    played.pages["www.mojeek.com"] = (200, mojeek(*ROWS))
    monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert len(await found(played, WebQuery("guide", 8))) == 2


def test_a_package_that_is_missing_shows_beforehand(monkeypatch):
    assert search.complaint() == ""
    monkeypatch.setattr("ferrule.tools.web.search.find_spec", lambda name: None)
    assert "pip install 'ferrule[web]'" in search.complaint()


async def test_engines_that_say_nothing_are_given_up(played):
    played.stall = asyncio.Event()

    with pytest.raises(WebError) as raised:
        await found(played, WebQuery("guide", 8), seconds=0.6)

    assert raised.value.code == "timed-out"
    played.stall.set()


async def test_cancelling_does_not_wait_for_the_thread(played):
    played.stall = asyncio.Event()
    task = asyncio.create_task(found(played, WebQuery("guide", 8)))
    await asyncio.wait_for(played.reached.wait(), 20)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert any(thread.daemon for thread in threading.enumerate() if thread.name == "ferrule-search")
    played.stall.set()


async def test_a_missing_package_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "ddgs":
            raise ImportError("No module named 'ddgs'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)

    with pytest.raises(WebError) as raised:
        await search.search_ddgs(SearchBackend("ddgs", seconds=20), WebQuery("guide", 8))

    assert raised.value.code == "no-package"
    assert "pip install 'ferrule[web]'" in raised.value.message


class Panic(BaseException):
    """What a library in another language raises when it breaks."""


@pytest.mark.parametrize("error", [KeyError("href"), Panic("index out of bounds"), SystemExit(3), RecursionError()])
async def test_whatever_it_raises_is_a_failure_of_the_search(monkeypatch, error):
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise error

    monkeypatch.setattr("ddgs.ddgs.DDGS.text", broken)

    with pytest.raises(WebError) as raised:
        await search.search_ddgs(SearchBackend("ddgs", seconds=20), WebQuery("guide", 8))

    assert raised.value.code == "bad-answer"
    assert type(error).__name__ in raised.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["title", "href", "body"]), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(JSON)
async def test_whatever_it_gives_is_a_result_or_a_failure(monkeypatch, given):
    with monkeypatch.context() as patched:
        patched.setattr("ddgs.ddgs.DDGS.text", lambda *args, **kwargs: given)
        results: tuple[SearchResult, ...] = ()
        with contextlib.suppress(WebError):
            results = await search.search_ddgs(SearchBackend("ddgs", seconds=20), WebQuery("guide", 8))
    assert all(result.url.startswith(("https://", "http://")) for result in results)


PROGRAM = """
import asyncio, sys
from ferrule.tools.web import search as ddgs
from ferrule.tools.web.search_api import SearchBackend
from ferrule.tools.web.search_api import WebQuery

async def main():
    backend = SearchBackend("ddgs", proxy=sys.argv[1], seconds=1.5)
    task = asyncio.create_task(ddgs.search_ddgs(backend, WebQuery("x", 8)))
    await asyncio.to_thread(sys.stdin.readline)
    task.cancel()
    print("ended")

asyncio.run(main())
"""


async def test_the_end_of_the_program_waits_no_longer_than_for_one_engine(played):
    played.stall = asyncio.Event()

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, played.url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    await asyncio.wait_for(played.reached.wait(), 20)
    out, errors = await asyncio.wait_for(process.communicate(b"\n"), 20)

    assert (out, errors, process.returncode) == (b"ended\n", b"", 0)
    played.stall.set()
