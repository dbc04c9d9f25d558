"""Results of any back end come in one form: plain text, addresses of the web, wanted domains, nothing twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.system.hosts import Bad, target
from ferrule.tools.web.search_api import (
    MOST_RESULTS,
    Domains,
    Row,
    SearchResult,
    WebQuery,
    address,
    date,
    domain,
    each,
    filter_rows,
    interleave,
    plain,
)
from tests.rows import each_row


def row(url: object, title: object = "Title", snippet: object = "", published: object = "") -> Row:
    return (title, url, snippet, published)


@each_row(
    ("written", "url"),
    [
        pytest.param("https://example.org", "https://example.org/", id="no-path"),
        pytest.param("HTTPS://Example.ORG./A?b=C#d", "https://example.org/A?b=C#d", id="upper-case-and-final-dot"),
        pytest.param("http://example.org:80/", "http://example.org/", id="usual-port"),
        pytest.param("https://example.org:8443/a", "https://example.org:8443/a", id="other-port"),
        pytest.param("https://example.org?q=1", "https://example.org/?q=1", id="query-without-path"),
        pytest.param("https://bücher.example/käse", "https://xn--bcher-kva.example/k%C3%A4se", id="other-letters"),
        pytest.param('https://example.org/a b<c>"d`', "https://example.org/a%20b%3Cc%3E%22d%60", id="odd-characters"),
        pytest.param("https://example.org/a\u202eb", "https://example.org/a%E2%80%AEb", id="direction-of-text"),
        pytest.param("https://example.org/%41%2f(x)", "https://example.org/%41%2f(x)", id="escapes-stay"),
        pytest.param("http://[2001:DB8::1]:81/", "http://[2001:db8::1]:81/", id="six"),
        pytest.param("https://example.org/\ud800", None, id="half-a-character"),
        pytest.param("ftp://example.org/", None, id="ftp"),
        pytest.param("javascript:alert(1)", None, id="script"),
        pytest.param("file:///etc/passwd", None, id="file"),
        pytest.param("//example.org/", None, id="no-scheme"),
        pytest.param("https://user@example.org/", None, id="user"),
        pytest.param("https://example.org:a@evil.example/", None, id="host-as-user"),
        pytest.param("https://example.org\\@evil.example/", None, id="backslash-in-the-host"),
        pytest.param("https://example.org/\\evil", None, id="backslash"),
        pytest.param("https://example.org/\n", None, id="newline"),
        pytest.param("https://exam\tple.org/", None, id="tab-in-the-host"),
        pytest.param("https://example.org/\x00", None, id="nul"),
        pytest.param("https://example.org/\x9b", None, id="high-control"),
        pytest.param("https:///a", None, id="no-host"),
        pytest.param("https://exa mple.org/", None, id="blank-in-the-host"),
        pytest.param("https://0x7f.1/", None, id="address-in-disguise"),
        pytest.param("https://example.org/" + "a" * 2_100, None, id="too-long"),
        pytest.param(17, None, id="no-text"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_an_address_has_one_spelling_or_is_dropped(written, url):
    found = address(written)

    assert (found and found[0]) == url


@each_row(
    ("written", "read"),
    [
        pytest.param("<strong>py</strong>thon", "python", id="inside-a-word"),
        pytest.param("one<br/>two<p class='x'>three</p>", "one two three", id="line-breaks"),
        pytest.param("a &amp; b &#x27;c&#39; &nbsp; d", "a & b 'c' d", id="entities"),
        pytest.param("&lt;b&gt; is a tag", "<b> is a tag", id="a-tag-as-text"),
        pytest.param("1 < 2 and 3 > 2", "1 < 2 and 3 > 2", id="no-tags"),
        pytest.param("a<!-- hidden -->b", "ab", id="comment"),
        pytest.param("a\x00\x1b[31mb\u200b\u202e\U000e0041c\r\n\td", "a[31mbc d", id="what-nobody-sees"),
        pytest.param("&#27;[2J&#8238;x", "[2Jx", id="what-nobody-sees-as-entities"),
        pytest.param("half \ud800", "half", id="half-a-character"),
        pytest.param({"text": "x"}, "", id="no-text"),
        pytest.param(None, "", id="nothing"),
    ],
)
def test_a_text_is_plain(written, read):
    assert plain(written, 500) == read


def test_a_long_text_is_cut():
    assert plain("a" * 600, 500) == "a" * 499 + "…"


@given(st.text())
def test_a_text_has_one_line_of_visible_characters(text):
    shown = plain(text, 50)

    assert shown.isprintable()
    assert len(shown) <= 50


@pytest.mark.parametrize(
    ("written", "day"),
    [
        pytest.param("2026-01-31T08:00:00Z", "2026-01-31", id="moment"),
        pytest.param("2026-01-31", "2026-01-31", id="day"),
        pytest.param("Sat, 31 Jan 2026 08:00:00 GMT", "2026-01-31", id="as-in-mail"),
        pytest.param("3 days ago", "3 days ago", id="words"),
        pytest.param("Sat, 99 Foo", "Sat, 99 Foo", id="almost-as-in-mail"),
        pytest.param(1_700_000_000, "", id="number"),
    ],
)
def test_a_date_is_a_day_where_it_is_understood(written, day):
    assert date(written) == day


@each_row(
    ("written", "host", "inside"),
    [
        pytest.param("example.org", "example.org", True, id="the-host"),
        pytest.param("example.org", "docs.example.org", True, id="below"),
        pytest.param("example.org", "a.b.example.org", True, id="deep-below"),
        pytest.param("example.org", "evilexample.org", False, id="ends-like-it"),
        pytest.param("example.org", "example.org.evil.net", False, id="begins-like-it"),
        pytest.param("docs.example.org", "example.org", False, id="above"),
        pytest.param("*.example.org", "docs.example.org", True, id="star-below"),
        pytest.param("*.example.org", "example.org", False, id="star-is-not-the-host"),
        pytest.param(".example.org", "docs.example.org", True, id="dot"),
        pytest.param("https://Docs.Example.org/guide?x#y", "docs.example.org", True, id="an-address"),
        pytest.param("docs.example.org/guide", "docs.example.org", True, id="a-path"),
        pytest.param("example.org:8080", "example.org", True, id="a-port"),
        pytest.param("bücher.example", "xn--bcher-kva.example", True, id="other-letters"),
        pytest.param("org", "example.org", True, id="top"),
        pytest.param("127.0.0.1", "127.0.0.1", True, id="address"),
        pytest.param("0.0.1", "127.0.0.1", None, id="part-of-an-address"),
        pytest.param("*.0.0.1", "127.0.0.1", None, id="below-an-address"),
        pytest.param("user@example.org", "", None, id="user"),
        pytest.param("ftp://example.org", "", None, id="other-scheme"),
        pytest.param("exa*mple.org", "", None, id="star-inside"),
        pytest.param("example.org\n.evil.net", "", None, id="newline"),
        pytest.param("", "", None, id="empty"),
        pytest.param("*", "", None, id="star"),
        pytest.param("https://", "", None, id="only-a-scheme"),
    ],
)
def test_domains_are_compared_by_labels(written, host, inside):
    if inside is None:
        with pytest.raises(Bad):
            domain(written)
        return
    one = domain(written)

    assert Domains(allowed=(one,)).lets(host) is inside
    assert Domains(blocked=(one,)).lets(host) is not inside


def test_terms_for_domains_stop_where_there_is_no_room():
    many = tuple(each(tuple(f"site-{number}.example.org" for number in range(50))))

    allowed = Domains(allowed=many).add_site_terms("words", 400)
    blocked = Domains(blocked=many).add_site_terms("words", 400)

    assert allowed.startswith("words (site:site-0.example.org OR site:site-1.example.org OR")
    assert blocked.startswith("words -site:site-0.example.org -site:site-1.example.org")
    assert 360 < len(allowed) <= 400
    assert 360 < len(blocked) <= 400
    assert Domains(allowed=many).add_site_terms("w" * 400, 400) == "w" * 400


def test_a_page_comes_once_and_only_pages_come():
    rows = [
        row("https://example.org/a#one", "<i>A</i>"),
        row("https://example.org/a#two"),
        row("https://EXAMPLE.org:443/a"),
        row("ftp://example.org/"),
        row("https://example.org/b", ""),
        row(None),
    ]

    found = filter_rows(rows, WebQuery("x", 10))

    assert found == (
        SearchResult("A", "https://example.org/a#one"),
        SearchResult("https://example.org/b", "https://example.org/b"),
    )


def test_there_are_never_more_than_was_asked_for_and_never_more_than_fifty():
    rows = [row(f"https://example.org/{number}") for number in range(200)]

    assert len(filter_rows(rows, WebQuery("x", 3))) == 3
    assert len(filter_rows(rows, WebQuery("x", 100))) == MOST_RESULTS


def test_lists_are_merged_in_turns():
    def of(*names: str) -> tuple[SearchResult, ...]:
        return tuple(SearchResult(name, f"https://example.org/{name}") for name in names)

    found = interleave([of("a", "b", "c"), of("d"), of("a", "e")], 4)

    assert [result.title for result in found] == ["a", "d", "b", "e"]
    assert interleave([], 4) == ()


LABELS = st.sampled_from(["example", "org", "evil", "docs", "xn--a", "com", "x"])
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)


@given(st.lists(HOSTS, min_size=1, max_size=3), HOSTS, st.booleans())
def test_a_result_is_inside_exactly_where_its_last_labels_are_a_domains(domains, host, block):
    some = tuple(each(tuple(domains)))
    wanted = Domains(blocked=some) if block else Domains(allowed=some)

    inside = any(host == one or host.endswith(f".{one}") for one in domains)

    assert bool(filter_rows([row(f"https://{host}/")], WebQuery("x", 5, wanted))) is (inside is not block)


@given(st.text() | st.from_regex(r"https?://[^/]{0,20}(/.{0,20})?", fullmatch=True))
def test_an_address_that_is_kept_is_read_in_one_way(text):
    found = address(text)

    if found is not None:
        url, host = found
        assert url.isascii()
        assert url.isprintable()
        assert " " not in url
        assert url.split("://")[0] in ("http", "https")
        authority = url.split("/")[2]
        assert target(authority, port=1).host == host
        assert address(url) == found
