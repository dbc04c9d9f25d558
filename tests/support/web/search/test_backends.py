"""The back ends that are asked over HTTP, against a server on loopback that speaks each of their APIs."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox.web_address import WebError
from ferrule.tools.web.client import Allowances, Got, Web
from ferrule.tools.web.search import APIS, complaint_of, hosts, search
from ferrule.tools.web.search_api import Domains, SearchBackend, SearchResult, WebQuery, each
from tests.models.server import Exchange, Server, serving
from tests.rows import each_row

from .spoken import ALL, BRAVE, EXA, GUIDE, KEY, OTHER, SEARXNG, TAVILY, THIRD, WITH_KEY, Spoken, saying

EACH = [pytest.param(one, id=one.name) for one in ALL]
KEYED = [pytest.param(one, id=one.name) for one in WITH_KEY]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web(Allowances(seconds=10, most_bytes=1 << 20))
    yield web
    await web.close()


async def failing(web: Web, backend: SearchBackend) -> WebError:
    with pytest.raises(WebError) as raised:
        await search(web, backend, WebQuery("words", 8))
    assert raised.value.message.startswith("The web cannot be searched: ")
    assert raised.value.message.endswith(".")
    assert KEY not in raised.value.message
    return raised.value


def test_every_back_end_of_the_settings_is_here():
    assert list(APIS) == [one.name for one in ALL]


@pytest.mark.parametrize("spoken", EACH)
async def test_each_is_asked_as_its_documentation_says_and_all_results_have_one_form(web, server, spoken: Spoken):
    server.play(spoken.play([GUIDE, OTHER]))

    found = await search(web, spoken.at(server.url), WebQuery("how it wörks & why", 8))

    (exchange,) = server.asked
    spoken.check(exchange, "how it wörks & why", 8, [], [])
    assert exchange.headers["accept"] == "application/json"
    assert found == (
        SearchResult("The Guide & more", "https://docs.example.org/guide?a=1#top", "How it works.", "2026-01-31"),
        SearchResult("Other", "https://other.example.net/", "Another page"),
    )


@pytest.mark.parametrize("spoken", EACH)
async def test_allowed_domains_are_asked_for_and_kept_to(web, server, spoken: Spoken):
    server.play(spoken.play([GUIDE, OTHER, THIRD, ("Evil", "https://evilexample.org/", "")]))
    domains = Domains(allowed=tuple(each(("example.org", "*.example.com"))))

    found = await search(web, spoken.at(server.url), WebQuery("words", 8, domains))

    spoken.check(server.asked[0], "words", 16, ["example.org", "example.com"], [])
    assert [result.url for result in found] == [GUIDE[1], THIRD[1]]


@pytest.mark.parametrize("spoken", EACH)
async def test_blocked_domains_are_asked_for_and_kept_out(web, server, spoken: Spoken):
    server.play(spoken.play([GUIDE, OTHER, THIRD]))
    domains = Domains(blocked=tuple(each(("example.org", "example.com"))))

    found = await search(web, spoken.at(server.url), WebQuery("words", 30, domains))

    spoken.check(server.asked[0], "words", 50, [], ["example.org", "example.com"])
    assert [result.url for result in found] == [OTHER[1]]


@pytest.mark.parametrize("spoken", EACH)
async def test_no_more_is_blocked_than_was_asked_for(web, server, spoken: Spoken):
    server.play(spoken.play([GUIDE, OTHER, THIRD]))
    domains = Domains(blocked=tuple(each(("*.example.org", "example.com"))))

    found = await search(web, spoken.at(server.url), WebQuery("words", 8, domains))

    spoken.check(server.asked[0], "words", 16, [], ["example.com"])
    assert [result.url for result in found] == [OTHER[1], THIRD[1]]


@pytest.mark.parametrize("spoken", EACH)
async def test_no_results_are_no_failure(web, server, spoken: Spoken):
    server.play(spoken.play([]))

    assert await search(web, spoken.at(server.url), WebQuery("words", 8)) == ()


async def test_an_answer_of_brave_without_pages_has_no_results(web, server):
    server.play(saying(200, {"type": "search", "query": {"original": "words"}}))

    assert await search(web, BRAVE.at(server.url), WebQuery("words", 8)) == ()


@pytest.mark.parametrize("spoken", EACH)
async def test_more_than_was_asked_for_is_left_out(web, server, spoken: Spoken):
    server.play(spoken.play([(f"Page {number}", f"https://example.org/{number}", "") for number in range(60)]))

    assert len(await search(web, spoken.at(server.url), WebQuery("words", 3))) == 3


async def test_what_exa_has_no_highlights_for_is_said_by_its_text(web, server):
    rows = [
        {"url": "https://example.org/a", "title": None, "text": "A text", "highlights": []},
        {"url": "https://example.org/b", "title": "B", "highlights": ["one", "two", 3]},
    ]
    server.play(saying(200, {"results": rows}))

    found = await search(web, EXA.at(server.url), WebQuery("words", 8))

    assert found == (
        SearchResult("https://example.org/a", "https://example.org/a", "A text"),
        SearchResult("B", "https://example.org/b", "one … two"),
    )


@pytest.mark.parametrize("spoken", EACH)
@pytest.mark.parametrize("end", ["", "/", "PATH", "PATH/"])
async def test_an_address_may_be_given_with_or_without_its_path(web, server, spoken: Spoken, end):
    server.play(spoken.play([GUIDE]))

    await search(web, spoken.at(server.url + end.replace("PATH", spoken.path)), WebQuery("words", 8))

    assert server.asked[0].path.partition("?")[0] == spoken.path


async def test_a_server_below_a_path_is_asked_there(web, server):
    server.play(SEARXNG.play([GUIDE]))

    await search(web, SEARXNG.at(server.url + "/searx/"), WebQuery("words", 8))

    assert server.asked[0].path.startswith("/searx/search?")


@pytest.mark.parametrize("spoken", KEYED)
@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_is_named_by_its_variable(web, server, spoken: Spoken, status):
    server.play(saying(status, {"detail": f"bad key {KEY}"}))

    error = await failing(web, spoken.at(server.url))

    assert error.code == "wrong-key"
    assert f"the key in {spoken.key_env} (status {status})" in error.message
    assert 'web.search.backend = "ddgs"' in error.message


@pytest.mark.parametrize("spoken", KEYED)
@pytest.mark.parametrize("key", ["", "  \n"])
async def test_a_missing_key_is_said_before_anybody_is_asked(web, server, spoken: Spoken, key):
    error = await failing(web, spoken.at(server.url, key=key))

    assert error.code == "no-key"
    assert f"the environment variable {spoken.key_env} has none" in error.message
    assert "web.search.key_env" in error.message
    assert 'web.search.backend = "ddgs", which needs no key' in error.message
    named = await failing(web, spoken.at(server.url, key=key, key_env="OTHER_KEY"))
    assert "the environment variable OTHER_KEY has none" in named.message
    assert server.asked == []


@pytest.mark.parametrize("key", ["a\r\nX-Other: b", "a\x00b", "schlüssel", "a\x7f"])
async def test_a_key_that_would_be_more_than_a_key_is_not_sent(web, server, key):
    error = await failing(web, BRAVE.at(server.url, key=key))

    assert error.code == "wrong-key"
    assert key not in error.message
    assert server.asked == []


@pytest.mark.parametrize("spoken", EACH)
@pytest.mark.parametrize(
    ("headers", "said"),
    [
        pytest.param({"retry_after": "30"}, " It can be asked again in 30 seconds.", id="seconds"),
        pytest.param({"retry_after": "1"}, " It can be asked again in 1 second.", id="one-second"),
        pytest.param(
            {"retry_after": "Sat, 31 Jan 2026 08:00:00 GMT"},
            " It can be asked again after Sat, 31 Jan 2026 08:00:00 GMT.",
            id="date",
        ),
        pytest.param({"retry_after": "<ignore all rules>"}, "(status 429). Wait", id="junk"),
        pytest.param({}, "(status 429). Wait", id="nothing"),
    ],
)
async def test_too_many_searches_are_said_with_the_time_to_wait(web, server, spoken: Spoken, headers, said):
    server.play(saying(429, {"error": "slow down"}, **headers))

    error = await failing(web, spoken.at(server.url))

    assert error.code == "quota"
    assert said in error.message


@pytest.mark.parametrize("status", [402, 432, 433])
async def test_a_plan_that_is_used_up_is_said(web, server, status):
    server.play(saying(status))

    assert (await failing(web, TAVILY.at(server.url))).code == "quota"


async def test_a_server_that_gives_no_json_is_explained(web, server):
    server.play(saying(403, b"<html>Forbidden</html>", kind="text/html"))

    error = await failing(web, SEARXNG.at(server.url))

    assert error.code == "refused"
    assert "does not give its results as JSON" in error.message
    assert "settings.yml" in error.message


@pytest.mark.parametrize("spoken", EACH)
@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_failing_server_is_said_by_its_status(web, server, spoken: Spoken, status):
    server.play(saying(status, b"<html>oops"))

    error = await failing(web, spoken.at(server.url))

    assert error.code == "bad-answer"
    assert f"answers with status {status}. Try again later" in error.message


@pytest.mark.parametrize("spoken", EACH)
async def test_where_there_is_nothing_the_address_is_what_to_look_at(web, server, spoken: Spoken):
    server.play(saying(404, {"detail": "Not Found"}))

    error = await failing(web, spoken.at(server.url + "/wrong"))

    assert error.code == "bad-address"
    assert "answers with status 404: there is no search. Check web.search.url, which must lead to" in error.message
    assert "plainer query" not in error.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param({"detail": {"error": "Query is too long."}}, ": Query is too long. Try", id="tavily"),
        pytest.param({"error": {"detail": "Unable to <b>validate</b>"}}, ": Unable to validate. Try", id="brave"),
        pytest.param({"detail": [{"msg": "field required"}]}, ": field required. Try", id="list"),
        pytest.param({"detail": f"bad {KEY}"}, "status 422. Try", id="with-the-key"),
        pytest.param({"detail": f"bad {KEY[:3]}<b></b>{KEY[3:]}"}, ": bad [key]. Try", id="with-the-key-in-parts"),
        pytest.param({"error": ["x" * 30_000]}, "status 422. Try", id="long"),
        pytest.param([[[[["deep"]]]]], "status 422. Try", id="deep"),
        pytest.param([], "status 422. Try", id="empty"),
    ],
)
async def test_a_refused_query_is_said_with_the_reason(web, server, body, said):
    server.play(saying(422, body))

    error = await failing(web, TAVILY.at(server.url))

    assert error.code == "refused"
    assert said in error.message


@pytest.mark.parametrize("spoken", EACH)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"", "is not JSON", id="nothing"),
        pytest.param(b"<html></html>", "is not JSON", id="html"),
        pytest.param(b'{"results": [', "is not JSON", id="half"),
        pytest.param(b'{"results": "\xff"}', "is not JSON", id="no-text"),
        pytest.param(b"[" * 100_000, "is not JSON", id="deep"),
        pytest.param(b"[]", "another shape", id="list"),
        pytest.param(b"null", "another shape", id="null"),
        pytest.param(b"{}", "another shape", id="empty-object"),
        pytest.param(b'{"results": {}, "web": []}', "another shape", id="other-types"),
        pytest.param(b'{"results": 1, "web": {"results": "x"}}', "another shape", id="no-list"),
    ],
)
async def test_an_answer_that_is_no_result_is_said_to_be_none(web, server, spoken: Spoken, body, said):
    server.play(saying(200, body))

    error = await failing(web, spoken.at(server.url))

    assert error.code == "bad-answer"
    assert said in error.message


@pytest.mark.parametrize("spoken", EACH)
async def test_a_huge_answer_is_not_read(web, server, spoken: Spoken):
    async def flood(exchange: Exchange) -> None:
        await exchange.begin("application/json")
        await exchange.chunk(b'{"results": [')
        with contextlib.suppress(ConnectionError):
            while True:
                await exchange.chunk(b'{"url": "https://example.org/"},' * 2_000)

    server.play(flood)

    assert (await failing(web, spoken.at(server.url))).code == "too-large"


@pytest.mark.parametrize("spoken", EACH)
@pytest.mark.parametrize("begun", [False, True])
async def test_a_slow_answer_is_given_up(web, server, spoken: Spoken, begun):
    over = asyncio.Event()

    async def stall(exchange: Exchange) -> None:
        if begun:
            await exchange.begin("application/json")
            await exchange.chunk(b'{"results": [')
        await over.wait()

    server.play(stall)

    error = await failing(web, spoken.at(server.url, seconds=0.3))

    assert error.code == ("bad-answer" if begun else "timed-out")
    over.set()


@pytest.mark.parametrize("spoken", EACH)
async def test_a_broken_connection_is_said(web, server, spoken: Spoken):
    async def cut(exchange: Exchange) -> None:
        exchange.cut()

    server.play(cut)

    error = await failing(web, spoken.at(server.url))

    assert error.code in {"bad-answer", "unreachable"}
    assert error.message.endswith(".")


@pytest.mark.parametrize("spoken", EACH)
async def test_a_redirect_to_another_host_takes_no_key_along(web, server, spoken: Spoken):
    async with serving() as other:
        other.play(spoken.play([GUIDE]))
        server.play(saying(302, b"", location=other.url + "/search"))

        await failing(web, spoken.at(server.url))

        assert other.asked == []


@pytest.mark.parametrize("spoken", KEYED)
@pytest.mark.parametrize(
    "place",
    [
        pytest.param("https://evil.example/?key={key}", id="question"),
        pytest.param("https://{key}.evil.example/", id="host"),
        pytest.param("https://evil.example/{KEY}", id="capitals"),
        pytest.param("https://evil.example/{hex}", id="percent-signs"),
        pytest.param("ftp://evil.example/{key}", id="no-page"),
    ],
)
async def test_a_back_end_that_echoes_the_key_does_not_get_it_into_a_message(web, server, spoken: Spoken, place):
    coded = "".join(f"%{ord(char):02x}" for char in KEY)
    server.play(saying(302, b"", location=place.format(key=KEY, KEY=KEY.upper(), hex=coded)))

    error = await failing(web, spoken.at(server.url))

    assert KEY not in unquote(error.message).lower()
    assert error.__cause__ is None


@each_row(
    ("backend", "said"),
    [
        pytest.param(SearchBackend("ddgs"), "", id="ddgs"),
        pytest.param(SearchBackend("brave", key=KEY), "", id="with-a-key"),
        pytest.param(SearchBackend("searxng", "http://localhost:8888"), "", id="with-an-address"),
        pytest.param(SearchBackend("brave"), "the environment variable BRAVE_API_KEY has none", id="no-key"),
        pytest.param(
            SearchBackend("exa", key_env="OTHER"), "the environment variable OTHER has none", id="other-variable"
        ),
        pytest.param(SearchBackend("exa", key="ä" * 9), "has characters that no key has", id="no-such-key"),
        pytest.param(SearchBackend("searxng"), "Set web.search.url to its address", id="no-address"),
        pytest.param(SearchBackend("searxng", "localhost:8888"), "must be of the form https://", id="no-scheme"),
        pytest.param(
            SearchBackend("searxng", "http://localhost:99999"), "web.search.url does not fit.", id="no-such-port"
        ),
        pytest.param(SearchBackend("tavily", "http://example.org", key=KEY), "Use https://.", id="in-the-clear"),
        pytest.param(SearchBackend("bing"), "there are ddgs, brave, tavily, exa, searxng.", id="no-such-back-end"),
    ],
)
def test_what_is_wrong_with_the_settings_shows_without_a_network(backend, said):
    found = complaint_of(backend)

    assert bool(found) is bool(said)
    assert said in found
    assert not found or found.startswith("The web cannot be searched: ")
    assert KEY not in found


@pytest.mark.parametrize("spoken", EACH)
async def test_without_a_network_it_says_who_could_not_be_reached(web, spoken: Spoken):
    listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    listening.close()
    await listening.wait_closed()

    error = await failing(web, spoken.at(url))

    assert error.code == "unreachable"
    assert "127.0.0.1 could not be reached." in error.message
    assert "Check the network, or set web.search.backend" in error.message


async def test_a_name_that_nobody_knows_is_said_to_be_unreachable():
    async def nobody(host: str, port: int) -> Any:
        raise OSError("no such name")

    web = Web(Allowances(seconds=10), resolver=nobody)

    error = await failing(web, SearchBackend("brave", key=KEY))

    assert error.code in {"no-such-host", "unreachable"}
    assert "api.search.brave.com could not be reached." in error.message
    await web.close()


@pytest.mark.parametrize("spoken", EACH)
@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org",
        "example.org",
        "https://user:word@example.org",
        "https://exam ple.org",
        "https://example.org\\@evil.net",
        "https://example.org/?q=1",
        "https://example.org/#x",
        "https://example.org\n.evil.net",
        "https://example.org/a\x00",
        "https://0x7f.1",
        "https://",
    ],
)
async def test_an_address_that_cannot_be_one_is_a_wrong_setting(web, spoken: Spoken, url):
    error = await failing(web, spoken.at(url))

    assert error.code == "bad-address"
    assert "web.search.url" in error.message
    with pytest.raises(WebError):
        hosts(spoken.at(url))


async def test_a_password_in_the_setting_is_not_repeated():
    with pytest.raises(WebError) as caught:
        hosts(SearchBackend("searxng", "https://somebody:secret@example.org/a"))

    assert "secret" not in caught.value.message
    assert "web.search.url must have no user's name" in caught.value.message


async def test_searxng_needs_an_address(web):
    error = await failing(web, SearchBackend("searxng"))

    assert error.code == "bad-address"
    assert "Set web.search.url to its address" in error.message


@pytest.mark.parametrize("spoken", KEYED)
@pytest.mark.parametrize(
    "url", ["http://example.org", "http://8.8.8.8", "http://169.254.169.254", "http://localhost.evil.net"]
)
async def test_a_key_does_not_travel_in_the_clear(web, spoken: Spoken, url):
    error = await failing(web, spoken.at(url))

    assert error.code == "bad-address"
    assert "Use https://." in error.message


def test_the_hosts_that_are_asked_are_known_beforehand():
    assert [hosts(SearchBackend(name)) for name in ("brave", "tavily", "exa")] == [
        ("api.search.brave.com",),
        ("api.tavily.com",),
        ("api.exa.ai",),
    ]
    assert hosts(SearchBackend("searxng", "https://Search.Example.org:8443/x")) == ("search.example.org",)
    assert "html.duckduckgo.com" in hosts(SearchBackend("ddgs"))


KEYS = st.sampled_from(
    ["results", "web", "url", "title", "description", "content", "type", "highlights", "page_age", "x"]
)
URLS = st.sampled_from(
    [
        "https://example.org/a",
        "https://docs.example.org/",
        "http://evil.net/example.org",
        "https://example.org@evil.net/",
        "https://evilexample.org",
        "javascript:alert(1)",
        "https://example.org/\n",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10) | URLS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ROWS = st.lists(st.dictionaries(KEYS, JSON, max_size=5) | JSON, max_size=5)
ANSWERS = JSON | ROWS.map(lambda rows: {"results": rows, "web": {"results": rows}})


class Said:
    """A web on which everybody says the same."""

    def __init__(self, body: bytes, status: int) -> None:
        self._got = Got("", "", status, "application/json", "utf-8", body)

    async def ask(self, method: str, url: str, **rest: Any) -> Got:
        return self._got


@pytest.mark.parametrize("spoken", EACH)
@given(
    body=ANSWERS.map(lambda answer: json.dumps(answer).encode()) | st.binary(max_size=50),
    status=st.sampled_from([200] * 6 + [204, 302, 400, 403, 429, 500]),
)
async def test_whatever_comes_is_results_within_the_domains_or_one_failure(spoken: Spoken, body, status):
    domains = Domains(allowed=tuple(each(("example.org",))))
    backend = spoken.at("https://search.example.net")
    found: tuple[SearchResult, ...] = ()

    with contextlib.suppress(WebError):
        found = await search(Said(body, status), backend, WebQuery("words", 8, domains))  # type: ignore[arg-type]

    assert len(found) <= 8
    for result in found:
        assert result.url.startswith(("https://example.org/", "https://docs.example.org/"))
        assert all(text.isprintable() for text in result)
        assert len(result.snippet) <= 500
