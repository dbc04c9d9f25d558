"""Whatever is written as an address or as the place of a redirect: it is refused in a sentence, or leads outside."""

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.sandbox.web_address import WebError, join_url, parse_url
from ferrule.system.hosts import leads_inside

from .stubs import Names, Sites, redirect, stubbed

CODES = {"bad-address", "private-address", "no-such-host", "too-many-redirects", "bad-answer"}

_hosts = st.one_of(
    st.sampled_from(
        ["public.example", "localhost", "inner.example", "127.1", "0x7f.1", "1", "[::]", "①.1.1.1", "a。b"]
    ),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda one: f"[{one}]"),
    st.integers(0, 1 << 33).map(str),
    st.text(max_size=12),
)
_schemes = st.sampled_from(["http://", "https://", "HTTP://", "//", "file://", "http:", "https:/", ""])
_ports = st.sampled_from(["", ":80", ":443", ":8080", ":22", ":", ":99999", "@10.0.0.1", "%00", "\\"])
_paths = st.one_of(st.sampled_from(["", "/", "/../..", "/%2e%2e/", "?x", "#x", "/\r\n"]), st.text(max_size=20))
addresses = st.one_of(st.text(max_size=60), st.builds("{}{}{}{}".format, _schemes, _hosts, _ports, _paths))


def fetched(url: str, sites: Sites) -> None:
    """Raises nothing but a sentence, and connects to nothing inside."""

    async def work() -> None:
        names = Names({"a.b": ("10.0.0.1",)})
        web = stubbed(sites, names, hops=3)
        try:
            await web.get(url)
        except WebError as error:
            caught.append(error)

    caught: list[WebError] = []
    asyncio.run(work())
    for error in caught:
        assert error.code in CODES
        assert error.message.endswith(".")
        assert error.message.isprintable()
    assert [str(one) for way in sites.ways for one in way.addresses if leads_inside(one)] == []
    assert all(way.url.scheme in {"http", "https"} for way in sites.ways)
    assert sites.open == 0


@given(addresses)
@example("http://[::ffff:127.0.0.1]:80/")
@example("https://public.example/\ud800")
def test_any_text_as_an_address_leads_outside_or_nowhere(url):
    fetched(url, Sites())


@given(st.lists(addresses, min_size=1, max_size=3))
@example(["//localhost/"])
@example([""])
def test_any_text_as_a_redirect_leads_outside_or_nowhere(places):
    known = [place.encode("utf-8", "replace").replace(b"\0", b"%00") for place in places]
    fetched("https://public.example/", Sites(*map(redirect, known)))


@given(addresses)
def test_an_address_is_in_one_spelling_after_it_was_read(text):
    try:
        url = parse_url(text)
    except WebError:
        return
    assert parse_url(str(url)) == url
    assert str(url).isascii()
    assert str(url).isprintable()
    assert not set(str(url)) & set(' \\"<>^`{}')
    assert "/../" not in url.path.partition("?")[0]


@given(addresses, addresses)
def test_a_redirect_is_in_one_spelling_after_it_was_read(text, place):
    try:
        url = join_url(parse_url(text), place)
    except WebError:
        return
    assert parse_url(str(url)) == url
