"""web_search asks the back end of the settings and answers in each family's words."""

import functools
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.models.certificates import certificate
from tests.models.server import Exchange, Play, Server, serving
from tests.support.web.search.proxying import engines, mojeek
from tests.support.web.search.spoken import (
    ALL,
    BRAVE,
    GUIDE,
    KEY,
    OTHER,
    SEARXNG,
    TAVILY,
    THIRD,
    Spoken,
    query,
    saying,
)

from ferrule import Engine
from ferrule.core.access import Access
from ferrule.core.call import Call
from ferrule.dialects import load_dialect
from ferrule.dialects.shared import link_renderer, render_links
from ferrule.settings import SearchSettings, Settings, WebSettings
from ferrule.tools.web import Link, Searched
from ferrule.tools.web import search as backends

FAMILIES = ("amp", "claude", "gemini")
EACH = [pytest.param(one, id=one.name) for one in ALL]
NUMBERED = """\
1. The Guide & more
   https://docs.example.org/guide?a=1#top
   Published: 2026-01-31
   How it works.

2. Other
   https://other.example.net/
   Another page"""


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    monkeypatch.delenv("DDGS_PROXY", raising=False)
    for one in ALL:
        if one.key_env:
            monkeypatch.setenv(one.key_env, KEY)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


def searching(folder: Any, spoken: Spoken, url: str, dialect: str = "amp", **more: Any) -> Engine:
    ask = more.pop("ask", lambda question: True)
    search = msgspec.convert({"backend": spoken.name, "url": url, **more}, SearchSettings)
    return Engine(folder, dialect=dialect, ask=ask, settings=Settings(web=WebSettings(search=search, seconds=10)))


def by_words(spoken: Spoken, said: dict[str, Any]) -> Play:
    """Rows for each query, or a status."""

    async def play(exchange: Exchange) -> None:
        words = query(exchange).get("q") or exchange.value["query"]
        rows = said[words]
        await (saying(rows, b"") if isinstance(rows, int) else spoken.play(rows))(exchange)

    return play


def page(name: str) -> tuple[str, str, str]:
    return (name, f"https://example.org/{name}", "")


@pytest.mark.contract("permission.web-search")
async def test_a_search_needs_no_approval(tmp_path, server):
    server.play(SEARXNG.play([GUIDE]))
    asked: list[Any] = []

    async with searching(tmp_path, SEARXNG, server.url, ask=asked.append) as engine:
        reply = await engine.call("web_search", objective="the guide")

    assert reply.ok, reply
    assert asked == []


@pytest.mark.parametrize("spoken", EACH)
async def test_every_back_end_gives_the_same(tmp_path, server, spoken: Spoken):
    server.play(spoken.play([GUIDE, OTHER]))

    async with searching(tmp_path, spoken, server.url) as engine:
        reply = await engine.call("web_search", objective="the guide")

    assert reply.text == NUMBERED
    spoken.check(server.asked[0], "the guide", 8, [], [])


async def test_ddgs_is_what_is_asked_without_any_setting(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "search_ddgs", functools.partial(backends.search_ddgs, verify=False))
    _, tls = certificate(tmp_path, *backends.ENGINES.values())
    async with engines(tls) as played:
        played.pages["www.mojeek.com"] = (200, mojeek(GUIDE, OTHER))
        web = WebSettings(proxy=played.url)
        async with Engine(tmp_path, ask=lambda question: True, settings=Settings(web=web)) as engine:
            found = await engine.call("web_search", objective="other guide")
            played.pages.clear()
            nothing = await engine.call("web_search", objective="other guide")

    assert web.search.backend == "ddgs"
    assert "https://docs.example.org/guide?a=1#top" in found.text
    assert nothing.ok
    assert nothing.text.startswith('No results found for "other guide".')
    assert any("may also mean" in note for note in nothing.notes)


@pytest.mark.parametrize("spoken", EACH)
def test_what_is_touched_is_the_host_that_is_asked(tmp_path, spoken: Spoken):
    from ferrule.tools.web.search import hosts

    backend = spoken.at("https://Search.example.org/x")

    assert [Access.host(host) for host in hosts(backend)] == [Access("host", "read", "search.example.org")]


async def test_a_missing_key_is_said_with_what_to_do(tmp_path, server, monkeypatch):
    monkeypatch.delenv("BRAVE_API_KEY")
    async with searching(tmp_path, BRAVE, server.url) as engine:
        reply = await engine.call("web_search", objective="the guide")

    assert reply.error is not None
    assert reply.error.error_code == "no-key"
    assert "BRAVE_API_KEY" in reply.text
    assert 'web.search.backend = "ddgs"' in reply.text


async def test_another_variable_may_have_the_key(tmp_path, server, monkeypatch):
    monkeypatch.delenv("TAVILY_API_KEY")
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    server.play(TAVILY.play([GUIDE]))
    async with searching(tmp_path, TAVILY, server.url, key_env="MY_KEY") as engine:
        reply = await engine.call("web_search", objective="the guide")

    assert reply.ok
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_setting_that_cannot_work_is_said_before_anybody_is_asked(tmp_path):
    asked: list[Any] = []
    async with searching(tmp_path, SEARXNG, "", ask=asked.append) as engine:
        reply = await engine.call("web_search", objective="the guide")

    assert reply.error is not None
    assert reply.error.error_code == "bad-address"
    assert "web.search.url" in reply.text
    assert asked == []


async def test_several_queries_are_one_list(tmp_path, server):
    rows = {"first": [page("a"), page("b"), page("c")], "second": [page("a"), page("d")], "third": []}
    server.play(by_words(SEARXNG, rows))
    async with searching(tmp_path, SEARXNG, server.url) as engine:
        reply = await engine.call(
            "web_search", objective="first", search_queries=["second", " first ", "", "third"], max_results=3
        )

    assert [line for line in reply.text.split("\n") if line[:1].isdigit()] == ["1. a", "2. b", "3. d"]
    assert [query(one)["q"] for one in server.asked] == ["first", "second", "third"]


async def test_the_sixth_query_is_left_out_and_said_so(tmp_path, server):
    names = [f"q{number}" for number in range(7)]
    server.play(by_words(SEARXNG, {name: [page(name)] for name in names}))
    async with searching(tmp_path, SEARXNG, server.url) as engine:
        reply = await engine.call("web_search", objective=names[0], search_queries=names[1:])

    assert len(server.asked) == 5
    assert "Only the first 5 queries were searched for." in reply.notes


async def test_what_was_found_before_a_failure_is_kept(tmp_path, server):
    server.play(by_words(SEARXNG, {"first": [page("a")], "second": 429, "third": [page("b")]}))
    async with searching(tmp_path, SEARXNG, server.url) as engine:
        reply = await engine.call("web_search", objective="first", search_queries=["second", "third"])
        failed = await engine.call("web_search", objective="second", search_queries=["first"])

    assert reply.ok
    assert "1. a" in reply.text
    assert any("Not all of the queries were searched for." in note and "status 429" in note for note in reply.notes)
    assert failed.error is not None
    assert failed.error.error_code == "quota"


async def test_the_number_of_results_is_the_setting_s_or_the_caller_s(tmp_path, server):
    server.play(SEARXNG.play([page(f"p{number}") for number in range(60)]))
    async with searching(tmp_path, SEARXNG, server.url, results=2) as engine:
        usual = await engine.call("web_search", objective="x")
        more = await engine.call("web_search", objective="x", max_results=4)
        most = await engine.call("web_search", objective="x", max_results=1_000)
        none = await engine.call("web_search", objective="x", max_results=0)

    assert [reply.text.count("https://") for reply in (usual, more, most)] == [2, 4, 50]
    assert "A search gives at most 50 results." in most.notes
    assert "max_results: must be at least 1." in none.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"query": "  "}, "query: must say what to search for.", id="blank"),
        pytest.param({"query": "a\x00b"}, "query: has characters that cannot be searched for.", id="nul"),
        pytest.param({"query": "a\u202eb"}, "query: has characters that cannot be searched for.", id="unseen"),
        pytest.param({"query": "x" * 401}, "query: is too long; a query has at most 400 characters.", id="long"),
        pytest.param(
            {"query": "x", "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]},
            "allowed_domains: cannot be used together with blocked_domains; give one of them.",
            id="both-lists",
        ),
        pytest.param({"query": "x", "allowed_domains": [""]}, "allowed_domains: takes names of hosts", id="no-domain"),
        pytest.param({"query": "x", "blocked_domains": ["a@b"]}, "blocked_domains: takes names of hosts", id="user"),
        pytest.param(
            {"query": "x", "blocked_domains": ["a.org"] * 51}, "blocked_domains: at most 50 domains", id="many"
        ),
    ],
)
async def test_arguments_that_cannot_be_meant_are_refused(tmp_path, server, given, said):
    async with searching(tmp_path, SEARXNG, server.url, "claude") as engine:
        (reply,) = await engine.run([Call("WebSearch", given)])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"
    assert said in reply.text
    assert server.asked == []


async def test_domains_are_kept_to(tmp_path, server):
    server.play(SEARXNG.play([GUIDE, OTHER, THIRD]))
    async with searching(tmp_path, SEARXNG, server.url, "claude") as engine:
        only = await engine.call("WebSearch", query="x", allowed_domains=["https://docs.example.org/"])
        without = await engine.call("WebSearch", query="x", blocked_domains=["*.example.org"], allowed_domains=[])
        path = await engine.call("WebSearch", query="x", allowed_domains=["example.net/other"])

    assert (GUIDE[1] in only.text, OTHER[1] in only.text, THIRD[1] in only.text) == (True, False, False)
    assert (GUIDE[1] in without.text, OTHER[1] in without.text, THIRD[1] in without.text) == (False, True, True)
    assert OTHER[1] in path.text
    assert "allowed_domains takes hosts and no paths: all of example.net is meant." in path.notes
    assert only.notes == ()


@pytest.mark.parametrize("session", FAMILIES)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param("web_search", {"objective": "the guide"}, id="amp"),
        pytest.param("web_search", {"query": "the guide"}, id="amp-with-query"),
        pytest.param("WebSearch", {"query": "the guide"}, id="claude"),
        pytest.param("google_web_search", {"query": "the guide"}, id="gemini"),
    ],
)
async def test_a_search_in_any_dialect_is_answered_in_the_session_s(tmp_path, server, session, name, given):
    server.play(SEARXNG.play([GUIDE, OTHER]))
    async with searching(tmp_path, SEARXNG, server.url, session) as engine:
        (reply,) = await engine.run([Call(name, given)])

    said = {
        "amp": NUMBERED,
        "claude": 'Web search results for query: "the guide"\n\n'
        "- [The Guide & more](https://docs.example.org/guide?a=1#top) (2026-01-31): How it works.\n"
        "- [Other](https://other.example.net/): Another page",
        "gemini": f'Web search results for "the guide":\n\n{NUMBERED}',
    }
    assert reply.text == said[session]
    assert query(server.asked[0])["q"] == "the guide"


async def test_amp_may_say_both_what_it_wants_and_a_query(tmp_path, server):
    server.play(by_words(SEARXNG, {"the guide": [page("a")], "guide pdf": [page("b")]}))
    async with searching(tmp_path, SEARXNG, server.url) as engine:
        reply = await engine.call("web_search", query="guide pdf", objective="the guide")
        nothing = await engine.call("web_search", max_results=3)

    assert ("1. a" in reply.text, "2. b" in reply.text) == (True, True)
    assert "objective: must say what to search for." in nothing.text


@pytest.mark.parametrize("family", FAMILIES)
async def test_nothing_found_is_an_answer(tmp_path, server, family):
    server.play(SEARXNG.play([]))
    async with searching(tmp_path, SEARXNG, server.url, family) as engine:
        (reply,) = await engine.run([Call("WebSearch", {"query": "the guide"})])

    said = {
        "amp": 'No results found for "the guide".',
        "claude": 'Web search results for query: "the guide"\n\nNo links found.',
        "gemini": 'No search results found for "the guide".',
    }
    assert reply.ok
    assert reply.text == said[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_canonical_arguments_come_back_from_each_face(family):
    face = next(face for face in load_dialect(family).faces if face.tool == "web_search")
    values: dict[str, Any] = {"query": "x"}
    if family == "amp":
        values |= {"queries": ["y"], "results": 3}
    if family == "claude":
        values |= {"allowed_domains": ["example.org"]}

    assert face.canonical(face.advertised(values)) == values


def test_a_link_cannot_end_early():
    link = Link("a](https://evil.net) [b\\", "https://example.org/x_(y)", "s")

    said = render_links(Searched("q", (link,)))

    assert said.endswith(r"- [a\](https://evil.net) \[b\\](https://example.org/x_%28y%29): s")


def test_words_of_a_query_are_not_read_as_more_than_words():
    assert link_renderer(none="None: {query}")(Searched("{query} {0} {x.y}", ())) == "None: {query} {0} {x.y}"
