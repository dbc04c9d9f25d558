"""robots.txt: what is for us, which rule decides, what a site that does not say closes, and how often it is asked."""

import asyncio
import threading

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox import web_address
from ferrule.sandbox.web_address import CutOff, Way, WebError
from ferrule.tools.web import robots
from ferrule.tools.web.robots import Robots, parse_robots
from tests.rows import each_row

from .stubs import Names, Sites, page, redirect, stubbed

URL = "https://public.example/a/b"


@each_row(
    ("text", "path", "is_allowed"),
    [
        pytest.param("", "/a", True, id="empty"),
        pytest.param("nonsense\n\0\n:::\n<html>", "/a", True, id="nonsense"),
        pytest.param("User-agent: *\nDisallow:", "/a", True, id="nothing-closed"),
        pytest.param("User-agent: *\nDisallow: /", "/a", False, id="all-closed"),
        pytest.param("User-agent: *\nDisallow: /", "/robots.txt", True, id="but-the-file-itself"),
        pytest.param("user-AGENT : *\r\n dissallow: /x\r\n DISALLOW : /a # why", "/a/b", False, id="spelling"),
        pytest.param("\ufeffUser-agent: *\rDisallow: /a", "/a", False, id="mark-and-old-line-ends"),
        pytest.param("Disallow: /a", "/a", True, id="no-group"),
        pytest.param("User-agent: other\nDisallow: /", "/a", True, id="for-somebody-else"),
        pytest.param("User-agent: other\nUser-agent: Ferrule\nDisallow: /", "/a", False, id="for-two"),
        pytest.param("User-agent: ferrule\nAllow: /\n\nUser-agent: *\nDisallow: /", "/a", True, id="ours-comes-first"),
        pytest.param("User-agent: *\nDisallow: /\n\nUser-agent: FERRULE/1.0\nAllow: /", "/a", True, id="ours-after"),
        pytest.param("User-agent: ferrule\n\nUser-agent: *\nDisallow: /", "/a", False, id="named-together"),
        pytest.param("User-agent: ferrule\nDisallow:\n\nUser-agent: *\nDisallow: /", "/a", True, id="ours-is-empty"),
        pytest.param("User-agent: ferrules\nDisallow: /", "/a", True, id="a-longer-name"),
        pytest.param("User-agent: *\nDisallow: /a\nSitemap: /s\nDisallow: /b", "/b", False, id="one-group-goes-on"),
        pytest.param(
            "User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", False, id="two-groups-are-one"
        ),
        pytest.param("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True, id="the-longer-one-allows"),
        pytest.param("User-agent: *\nAllow: /a\nDisallow: /a/b", "/a/b/c", False, id="the-longer-one-closes"),
        pytest.param("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True, id="as-long-allows"),
        pytest.param("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", False, id="end"),
        pytest.param("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?z", True, id="not-the-end"),
        pytest.param("User-agent: *\nDisallow: /*.gif", "/x/y.gif?z", False, id="star"),
        pytest.param("User-agent: *\nDisallow: /a*b*c$", "/abXbYcZc", False, id="stars"),
        pytest.param("User-agent: *\nDisallow: /a*b*c$", "/acb", True, id="stars-in-order"),
        pytest.param("User-agent: *\nDisallow: /a*ab$", "/ab", True, id="no-overlap"),
        pytest.param("User-agent: *\nDisallow: /$", "/", False, id="only-the-front-page"),
        pytest.param("User-agent: *\nDisallow: /$", "/a", True, id="not-the-front-page"),
        pytest.param("User-agent: *\nDisallow: *x", "/a/x", False, id="begins-with-a-star"),
        pytest.param("User-agent: *\nDisallow: /a?b=", "/a?b=c", False, id="question"),
        pytest.param("User-agent: *\nDisallow: /ä", "/%c3%a4", False, id="letters"),
        pytest.param("User-agent: *\nDisallow: /%7Ea", "/~a", False, id="needless-percent"),
        pytest.param("User-agent: *\nDisallow: /a%2Fb", "/a/b", True, id="needed-percent"),
        pytest.param("User-agent: *\nDisallow: /A", "/a", True, id="case-matters"),
        pytest.param("User-agent: *\nDisallow: nowhere", "/nowhere", True, id="no-path"),
    ],
)
def test_the_longest_rule_for_us_decides(text, path, is_allowed):
    assert parse_robots(text).allow(path) is is_allowed


def test_a_file_of_stars_is_read_quickly():
    text = "User-agent: *\n" + "Disallow: /" + "*a" * 200_000 + "$\n"

    assert parse_robots(text).allow("/" + "a" * 8000)


def test_a_file_of_names_is_read_quickly():
    text = "User-agent: a\n" * 150_000 + "Disallow: /\n" * 150_000 + "User-agent: b\n" * 150_000
    text += "User-agent: *\nDisallow: /x\n"

    assert [parse_robots(text).allow(path) for path in ("/a", "/x")] == [True, False]


async def test_a_large_file_is_not_read_on_the_event_loop(monkeypatch):
    def read(text: str) -> robots.Rules:
        threads.append(threading.get_ident())
        return parse_robots(text)

    threads: list[int] = []
    monkeypatch.setattr(robots, "parse_robots", read)
    for text in ("User-agent: *\n", "User-agent: *\nDisallow: /no\n" * 5_000):
        await stubbed(Sites(page(text), page()), robots=True).get("https://public.example/a")

    assert [thread == threading.get_ident() for thread in threads] == [True, False]


@given(st.text(), st.text())
def test_any_file_is_read(text, path):
    assert parse_robots("User-agent: *\n" + text).allow("/" + path) in {True, False}
    assert parse_robots(text).allow(path) in {True, False}


def site(robots_file: httpx2.Response):
    def answer(question: httpx2.Request) -> httpx2.Response:
        return robots_file if question.url.path == "/robots.txt" else page("the page")

    return answer


CLOSED = "User-agent: *\nDisallow: /a"


async def test_a_page_that_is_closed_is_not_asked_for():
    sites = Sites(site(page(CLOSED)))
    web = stubbed(sites, robots=True)

    with pytest.raises(WebError) as caught:
        await web.get(URL)
    other = await web.get("https://public.example/other")

    assert caught.value.code == "robots"
    assert "web.robots = false" in caught.value.message
    assert other.body == b"the page"  # type: ignore[union-attr]
    assert sites.urls == ["https://public.example/robots.txt", "https://public.example/other"]


async def test_the_user_may_leave_it_out():
    sites = Sites(site(page(CLOSED)))

    await stubbed(sites, robots=False).get(URL)

    assert sites.urls == [URL]


async def test_the_users_own_hosts_are_not_asked():
    sites = Sites(site(page(CLOSED)))

    await stubbed(sites, robots=True, private_hosts=("inner.example",)).get("http://inner.example/a")

    assert sites.urls == ["http://inner.example/a"]


async def test_a_name_is_looked_up_once_for_the_file_and_the_page():
    names = Names({"public.example": [("8.8.8.8",), ("127.0.0.1",)]})

    await stubbed(Sites(), names, robots=True).get(URL)

    assert names.asked == ["public.example"]


@each_row(
    ("answer", "is_allowed"),
    [
        pytest.param(httpx2.Response(404, text=CLOSED), True, id="missing"),
        pytest.param(httpx2.Response(403), True, id="forbidden"),
        pytest.param(httpx2.Response(429), True, id="too-often"),
        pytest.param(httpx2.Response(500), False, id="broken"),
        pytest.param(httpx2.Response(503), False, id="busy"),
        pytest.param(httpx2.Response(304), True, id="not-changed"),
        pytest.param(page("<html>welcome</html>", "text/html"), True, id="a-page"),
        pytest.param(page("#" * 600_000 + "\n" + CLOSED), True, id="behind-the-end-of-what-is-read"),
        pytest.param(page(CLOSED + "\n" + "#" * 600_000), False, id="before-it"),
        pytest.param(redirect("http://127.0.0.1/robots.txt"), True, id="redirect-inside"),
        pytest.param(redirect("file:///etc/passwd"), True, id="redirect-to-a-file"),
        pytest.param(redirect("/robots.txt"), True, id="redirect-to-itself"),
        pytest.param(httpx2.Response(200, headers={"content-encoding": "br"}), True, id="unreadable"),
    ],
)
async def test_a_site_that_does_not_say_closes_nothing_unless_it_fails(answer, is_allowed):
    web = stubbed(Sites(site(answer)), robots=True)

    if is_allowed:
        assert (await web.get(URL)).body == b"the page"  # type: ignore[union-attr]
    else:
        with pytest.raises(WebError) as caught:
            await web.get(URL)
        assert caught.value.code == "robots"


async def test_a_file_behind_redirects_is_read():
    def answer(question: httpx2.Request) -> httpx2.Response:
        if question.url.host == "other.example":
            return page(CLOSED)
        return redirect("https://other.example/robots.txt") if question.url.path == "/robots.txt" else page()

    sites = Sites(answer)
    with pytest.raises(WebError) as caught:
        await stubbed(sites, robots=True).get(URL)

    assert caught.value.code == "robots"
    assert len(sites.ways) == 2


async def test_a_site_that_cannot_be_reached_is_said_to_be_so():
    def answer(question: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no")

    with pytest.raises(WebError) as caught:
        await stubbed(Sites(answer), robots=True).get(URL)

    assert caught.value.code == "unreachable"


async def test_a_file_that_breaks_off_says_nothing_that_can_be_relied_on():
    def answer(question: httpx2.Request) -> httpx2.Response:
        raise CutOff("It broke off.")

    with pytest.raises(WebError) as caught:
        await stubbed(Sites(answer), robots=True).get(URL)

    assert caught.value.code == "robots"


async def test_every_host_on_the_way_is_asked():
    def answer(question: httpx2.Request) -> httpx2.Response:
        if question.url.path == "/robots.txt":
            return page(CLOSED if question.url.host == "other.example" else "")
        return redirect("https://other.example/a")

    sites = Sites(answer)
    with pytest.raises(WebError) as caught:
        await stubbed(sites, robots=True).get("https://public.example/")

    assert (caught.value.code, "other.example" in caught.value.message) == ("robots", True)
    assert sites.urls[-1] == "https://other.example/robots.txt"


async def test_a_site_is_asked_once_for_many_pages_and_again_after_a_while():
    now = [0.0]
    sites = Sites(site(page("")))
    web = stubbed(sites, robots=True, clock=lambda: now[0])

    await asyncio.gather(*(web.get(f"{URL}{number}") for number in range(10)))
    now[0] += 3599
    await web.get(f"{URL}/later")
    asked = sites.urls.count("https://public.example/robots.txt")
    now[0] += 2
    await web.get(f"{URL}/much-later")

    assert (asked, sites.urls.count("https://public.example/robots.txt")) == (1, 2)
    assert web._robots._asking._running == {}


@pytest.mark.parametrize("leaving", [pytest.param(0, id="who-asked"), pytest.param(1, id="who-waits")])
async def test_a_site_is_asked_once_also_where_somebody_gives_up(leaving):
    asked: list[str] = []
    gate = asyncio.Event()

    async def fetch(file: Way) -> tuple[int, bytes]:
        asked.append(str(file.url))
        await gate.wait()
        return 200, b""

    sites, way = Robots(lambda: 0.0), Way(web_address.parse_url(URL), (), is_private=False)
    async with asyncio.timeout(30):
        tasks = [asyncio.create_task(sites.check(way, fetch)) for _ in range(2)]
        while not asked:
            await asyncio.sleep(0)
        tasks[leaving].cancel()
        await asyncio.wait([tasks[leaving]])
        late = asyncio.create_task(sites.check(way, fetch))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(tasks[1 - leaving], late)

    assert asked == ["https://public.example/robots.txt"]


async def test_a_failure_is_believed_for_a_short_while_only():
    now = [0.0]
    answers = [httpx2.Response(500), page("")]
    sites = Sites(lambda question: answers[0] if question.url.path == "/robots.txt" else page())
    web = stubbed(sites, robots=True, clock=lambda: now[0])

    with pytest.raises(WebError):
        await web.get(URL)
    del answers[0]
    with pytest.raises(WebError):
        await web.get(URL)
    now[0] += 61
    await web.get(URL)

    assert sites.urls.count("https://public.example/robots.txt") == 2


async def test_what_sites_say_is_kept_within_bounds():
    many = "User-agent: *\n" + "Disallow: /xy\n" * 30_000
    names = Names({f"s{number}.example": ("8.8.8.8",) for number in range(5)})
    web = stubbed(Sites(site(page(many))), names, robots=True)

    for number in range(5):
        await web.get(f"https://s{number}.example/")

    assert web._robots._characters <= robots._MOST_CHARACTERS
    assert 0 < len(web._robots._sites) < 5
