"""Which addresses are fetched from: a table of addresses, names and chains of redirects, and why each is refused."""

from ipaddress import ip_address
from typing import Any

import pytest

from ferrule.sandbox.web_address import WebError, parse_url
from ferrule.system.hosts import leads_inside
from ferrule.tools.web.client import Got, Redirected
from tests.rows import each_row

from .stubs import PUBLIC, Names, Sites, redirect, stubbed

OWN = ("localhost:8080", "127.0.0.1:8080", "*.intern.example", "[::1]:8080", "10.9.8.7")
"""What the user allows in the rows that say so."""

FETCHED = [
    ("https://public.example/", "https://public.example/"),
    ("https://public.example", "https://public.example/"),
    ("http://public.example/a", "https://public.example/a"),
    ("http://public.example:80/a", "https://public.example/a"),
    ("https://public.example:443/a", "https://public.example/a"),
    ("http://public.example:443/a", "http://public.example:443/a"),
    ("http://public.example:8080/a", "http://public.example:8080/a"),
    ("https://public.example:8443/a", "https://public.example:8443/a"),
    ("HTTPS://Public.EXAMPLE/A", "https://public.example/A"),
    ("https://public.example./a", "https://public.example/a"),
    ("https://public.example/a#b", "https://public.example/a"),
    ("https://public.example?q=1", "https://public.example/?q=1"),
    ("https://public.example/?q=a/../b", "https://public.example/?q=a/../b"),
    ("https://public.example/a/../b/./c", "https://public.example/b/c"),
    ("https://public.example/../../etc", "https://public.example/etc"),
    ("https://public.example/a/%2e%2E/b", "https://public.example/b"),
    ("https://public.example/ä", "https://public.example/%C3%A4"),
    ("https://public.example/100%", "https://public.example/100%25"),
    ('https://public.example/"<x>', "https://public.example/%22%3Cx%3E"),
    ("https://public.example//other.example/", "https://public.example//other.example/"),
    ("https://public.example/@other.example", "https://public.example/@other.example"),
    ("https://public.example/?u=http://10.0.0.1/", "https://public.example/?u=http://10.0.0.1/"),
    ("https://8.8.8.8/", "https://8.8.8.8/"),
    ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
    ("https://[2606:4700:0:0::1111]:8443/x", "https://[2606:4700::1111]:8443/x"),
    ("https://[64:ff9b::808:808]/", "https://[64:ff9b::808:808]/"),
    # Since Python 3.13 the part that is IPv4 is written with dots.
    ("https://[::ffff:8.8.8.8]/", f"https://[{ip_address('::ffff:8.8.8.8')}]/"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
]

UNREADABLE = {
    "empty": "",
    "only-a-name": "public.example",
    "no-slashes": "https:public.example",
    "one-slash": "https:/public.example",
    "three-slashes": "https:///public.example",
    "no-host": "https://",
    "file": "file:///etc/passwd",
    "ftp": "ftp://public.example/",
    "gopher": "gopher://public.example:70/_x",
    "data": "data:text/html,hello",
    "javascript": "javascript:alert(1)",
    "view-source": "view-source:https://public.example/",
    "websocket": "wss://public.example/",
    "jar": "jar:https://public.example!/a",
    "blank-before": " https://public.example/",
    "blank-after": "https://public.example/ ",
    "blank-in-host": "https://public .example/",
    "blank-in-path": "https://public.example/a b",
    "no-break-blank": "https://public.example/a\u00a0b",
    "newline": "https://public.example/\r\nHost: inner.example",
    "newline-in-host": "https://pub\nlic.example/",
    "tab-in-scheme": "ht\ttps://public.example/",
    "nul": "https://public.example\0.inner.example/",
    "nul-in-path": "https://public.example/\0",
    "delete": "https://public.example/\x7f",
    "c1": "https://public.example/\x85",
    "line-separator": "https://public.example/\u2028",
    "turned-around": "https://public.example/\u202etxt",
    "no-width": "https://pub\u200blic.example/",
    "half-a-character": "https://public.example/\ud800",
    "backslash": "https:\\\\public.example\\",
    "backslash-and-host": "https://public.example\\@inner.example/",
    "user": "https://user@public.example/",
    "user-and-password": "https://user:secret@public.example/",
    "user-that-is-a-host": "https://public.example@10.0.0.1/",
    "user-with-colon": "https://public.example:443@10.0.0.1/",
    "two-ats": "https://a@b@public.example/",
    "percent-in-host": "https://public%2eexample/",
    "percent-at": "https://public.example%40inner.example/",
    "empty-port": "https://public.example:/",
    "port-zero": "https://public.example:0/",
    "port-too-large": "https://public.example:65536/",
    "port-no-number": "https://public.example:http/",
    "port-with-sign": "https://public.example:+443/",
    "empty-label": "https://public..example/",
    "begins-with-dot": "https://.example/",
    "label-too-long": "https://" + "a" * 64 + ".example/",
    "name-too-long": "https://" + "a." * 127 + "example/",
    "address-too-long": "https://public.example/" + "a" * 9000,
    "star": "https://*.example/",
    "open-bracket": "https://[::1/",
    "zone": "https://[fe80::1%25eth0]/",
    "bracketed-name": "https://[public.example]/",
    "future-address": "https://[v1.fe80::a]/",
    "two-spellings": "https://straße.example/",
    "two-spellings-greek": "https://βόλος.example/",
    "octal": "http://0177.0.0.1/",
    "octal-one": "http://017700000001/",
    "hex": "http://0x7f.0.0.1/",
    "hex-one": "http://0x7f000001/",
    "decimal": "http://2130706433/",
    "short": "http://127.1/",
    "short-three": "http://10.0.1/",
    "too-many-parts": "http://127.0.0.1.1/",
    "part-too-large": "http://256.0.0.1/",
    "leading-zero": "http://127.0.0.01/",
    "mail-port": "https://public.example:25/",
    "ssh-port": "https://public.example:22/",
    "redis-port": "http://public.example:6379/",
}

INSIDE = {
    "loopback": "127.0.0.1",
    "loopback-end": "127.255.255.254",
    "loopback-with-dot": "127.0.0.1.",
    "wide-digits": "１２７.０.０.１",
    "circled-digits": "①②⑦.⓪.⓪.①",
    "ideographic-dots": "127。0。0。1",
    "any": "0.0.0.0",
    "this-network": "0.1.2.3",
    "ten": "10.0.0.1",
    "twelve": "172.16.0.1",
    "twelve-end": "172.31.255.255",
    "sixteen": "192.168.0.1",
    "carrier": "100.64.0.1",
    "carrier-end": "100.127.255.255",
    "metadata": "169.254.169.254",
    "metadata-of-tasks": "169.254.170.2",
    "metadata-alibaba": "100.100.100.200",
    "metadata-azure": "168.63.129.16",
    "metadata-oracle": "192.0.0.192",
    "protocols": "192.0.0.8",
    "documentation": "192.0.2.1",
    "documentation-2": "198.51.100.1",
    "documentation-3": "203.0.113.1",
    "relay": "192.88.99.1",
    "benchmark": "198.18.0.1",
    "benchmark-end": "198.19.255.255",
    "group": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "six-loopback": "[::1]",
    "six-loopback-long": "[0:0:0:0:0:0:0:1]",
    "six-any": "[::]",
    "six-unique": "[fc00::1]",
    "six-unique-d": "[fd12:3456::1]",
    "six-link": "[fe80::1]",
    "six-site": "[fec0::1]",
    "six-group": "[ff02::1]",
    "six-metadata-amazon": "[fd00:ec2::254]",
    "six-metadata-google": "[fd20:ce::254]",
    "six-metadata-scaleway": "[fd00:42::42]",
    "six-documentation": "[2001:db8::1]",
    "six-documentation-new": "[3fff::1]",
    "six-discard": "[100::1]",
    "six-routing": "[5f00::1]",
    "six-orchid": "[2001:10::1]",
    "six-orchid-2": "[2001:20::1]",
    "six-benchmark": "[2001:2::1]",
    "six-unassigned": "[4000::1]",
    "mapped-loopback": "[::ffff:127.0.0.1]",
    "mapped-hex": "[::ffff:7f00:1]",
    "mapped-metadata": "[::ffff:169.254.169.254]",
    "mapped-private": "[::ffff:10.0.0.1]",
    "compatible-loopback": "[::127.0.0.1]",
    "compatible-public": "[::8.8.8.8]",
    "translated": "[::ffff:0:127.0.0.1]",
    "translated-public": "[::ffff:0:8.8.8.8]",
    "gateway-loopback": "[64:ff9b::7f00:1]",
    "gateway-metadata": "[64:ff9b::a9fe:a9fe]",
    "gateway-private": "[64:ff9b::10.0.0.1]",
    "own-gateway": "[64:ff9b:1::7f00:1]",
    "own-gateway-public": "[64:ff9b:1::808:808]",
    "six-to-four-loopback": "[2002:7f00:1::1]",
    "six-to-four-private": "[2002:a00:1::1]",
    "six-to-four-public": "[2002:808:808::1]",
    "teredo-server": "[2001:0:7f00:1::]",
    "teredo-of-loopback": "[2001:0:808:808:0:0:80ff:fffe]",
    "isatap-loopback": "[2606:4700::5efe:7f00:1]",
    "isatap-private": "[2606:4700::200:5efe:10.0.0.1]",
}

NEVER = {
    "metadata": "169.254.169.254",
    "any": "0.0.0.0",
    "group": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "alibaba": "100.100.100.200",
    "azure": "168.63.129.16",
    "six-any": "[::]",
    "six-link": "[fe80::a9fe:a9fe]",
    "six-amazon": "[fd00:ec2::254]",
    "six-google": "[fd20:ce::254]",
    "six-scaleway": "[fd00:42::42]",
    "mapped": "[::ffff:169.254.169.254]",
    "gateway": "[64:ff9b::a9fe:a9fe]",
    "own-gateway": "[64:ff9b:1::a9fe:a9fe]",
    "own-gateway-in-the-middle": "[64:ff9b:1:a9fe:a9:fe00::]",
    "six-to-four": "[2002:a9fe:a9fe::1]",
    "teredo": "[2001:0:808:808:0:0:5601:5601]",
    "isatap": "[2606:4700::5efe:a9fe:a9fe]",
    "translated": "[::ffff:0:a9fe:a9fe]",
    "compatible": "[::a9fe:a9fe]",
}

ANSWERS: dict[str, tuple[Any, str]] = {
    "public": ((PUBLIC,), ""),
    "public-six": (("2606:4700::1111",), ""),
    "several-public": ((PUBLIC, "8.8.8.8", "2606:4700::1111"), ""),
    "twice-the-same": ((PUBLIC, PUBLIC), ""),
    "private": (("10.0.0.5",), "private-address"),
    "loopback": (("127.0.0.1",), "private-address"),
    "loopback-six": (("::1",), "private-address"),
    "metadata": (("169.254.169.254",), "private-address"),
    "any": (("0.0.0.0",), "private-address"),
    "public-then-private": ((PUBLIC, "10.0.0.5"), "private-address"),
    "private-then-public": (("10.0.0.5", PUBLIC), "private-address"),
    "public-then-loopback-six": ((PUBLIC, "::1"), "private-address"),
    "one-private-of-many": ((*(f"8.8.8.{number}" for number in range(9)), "192.168.0.1"), "private-address"),
    "mapped": (("::ffff:10.0.0.1",), "private-address"),
    "mapped-beside-public": ((PUBLIC, "::ffff:a00:1"), "private-address"),
    "gateway": (("64:ff9b::a00:1",), "private-address"),
    "six-to-four": (("2002:a00:1::1",), "private-address"),
    "link-with-a-card": (("fe80::1%eth0",), "private-address"),
    "public-with-a-card": (("2606:4700::1111%2",), "private-address"),
    "nothing": ((), "no-such-host"),
    "no-address": (("public",), "no-such-host"),
    "a-name": (("other.example",), "no-such-host"),
    "far-too-many": (tuple(f"8.8.{number}.1" for number in range(100)), "no-such-host"),
    "changes-its-mind": ([(PUBLIC,), ("127.0.0.1",)], ""),
}

CHAINS: dict[str, tuple[tuple[str, ...], str]] = {
    "to-the-same-host": (("/b",), "https://public.example/b"),
    "relative": (("b",), "https://public.example/x/b"),
    "relative-up": (("../b",), "https://public.example/b"),
    "only-a-question": (("?b=1",), "https://public.example/x/y?b=1"),
    "without-a-scheme": (("//other.example/b",), "https://other.example/b"),
    "to-www": (("https://www.public.example/",), "https://www.public.example/"),
    "to-another-host": (("https://other.example/b",), "https://other.example/b"),
    "three-hosts": (("https://other.example/b", "https://third.example/c"), "https://third.example/c"),
    "and-back": (("https://other.example/b", "https://public.example/c"), "https://public.example/c"),
    "back-to-http-is-upgraded": (("http://public.example/b",), "https://public.example/b"),
    "to-an-address": (("https://8.8.8.8/b",), "https://8.8.8.8/b"),
    "blanks-in-the-path": (("/a b c",), "https://public.example/a%20b%20c"),
    "raw-letters": (("/ä",), "https://public.example/%C3%A4"),
    "with-a-fragment": (("/b#c",), "https://public.example/b"),
    "to-another-port": (("https://public.example:8443/",), "https://public.example:8443/"),
    "ten": (tuple(f"/{number}" for number in range(10)), "https://public.example/9"),
    "eleven": (tuple(f"/{number}" for number in range(11)), "too-many-redirects"),
    "endless": (tuple(f"/{number}" for number in range(99)), "too-many-redirects"),
    "to-itself": (("/x/y",), "too-many-redirects"),
    "to-nothing": (("",), "too-many-redirects"),
    "to-its-own-fragment": (("#z",), "too-many-redirects"),
    "there-and-back": (("/b", "/x/y"), "too-many-redirects"),
    "through-http-to-itself": (("http://public.example/x/y",), "too-many-redirects"),
    "circle-over-hosts": (("https://other.example/", "https://public.example/x/y"), "too-many-redirects"),
    "down-to-http": (("http://public.example:8080/",), "bad-address"),
    "down-to-http-elsewhere": (("http://other.example:8080/",), "bad-address"),
    "to-loopback": (("https://127.0.0.1/",), "private-address"),
    "to-loopback-over-http": (("http://127.0.0.1/",), "private-address"),
    "to-localhost": (("https://localhost/",), "private-address"),
    "to-a-private-name": (("https://inner.example/",), "private-address"),
    "to-a-private-name-later": (("/a", "https://other.example/", "https://inner.example/"), "private-address"),
    "to-ten": (("https://10.0.0.1/",), "private-address"),
    "to-metadata": (("http://169.254.169.254/latest/meta-data/",), "private-address"),
    "to-metadata-without-a-scheme": (("//169.254.169.254/latest/",), "private-address"),
    "to-metadata-six": (("https://[fd00:ec2::254]/",), "private-address"),
    "to-mapped": (("https://[::ffff:127.0.0.1]/",), "private-address"),
    "to-mapped-hex": (("https://[::ffff:7f00:1]/",), "private-address"),
    "to-six-to-four": (("https://[2002:7f00:1::]/",), "private-address"),
    "to-gateway": (("https://[64:ff9b::a00:1]/",), "private-address"),
    "to-any": (("https://0.0.0.0/",), "private-address"),
    "to-octal": (("https://0177.0.0.1/",), "bad-address"),
    "to-decimal": (("https://2130706433/",), "bad-address"),
    "to-short": (("https://127.1/",), "bad-address"),
    "to-file": (("file:///etc/passwd",), "bad-address"),
    "to-file-in-capitals": (("FILE:///etc/passwd",), "bad-address"),
    "to-data": (("data:text/html,hello",), "bad-address"),
    "to-javascript": (("javascript:alert(1)",), "bad-address"),
    "to-gopher": (("gopher://127.0.0.1:6379/_FLUSHALL",), "bad-address"),
    "to-ftp": (("ftp://public.example/",), "bad-address"),
    "to-a-scheme-alone": (("https:",), "bad-address"),
    "to-a-user": (("https://user:secret@public.example/",), "bad-address"),
    "to-a-user-that-is-a-host": (("https://public.example@127.0.0.1/",), "bad-address"),
    "to-backslashes": (("\\\\127.0.0.1\\x",), "bad-address"),
    "to-slash-backslash": (("/\\127.0.0.1/",), "bad-address"),
    "to-a-blank-in-the-host": (("https://public.example 127.0.0.1/",), "bad-address"),
    "to-a-tab": (("https://127.0.0.1\t.public.example/",), "bad-address"),
    "to-percent": (("https://127.0.0.1%23.public.example/",), "bad-address"),
    "to-the-mail-port": (("https://public.example:25/",), "bad-address"),
    "to-the-redis-port": (("https://other.example:6379/",), "bad-address"),
    "to-no-such-host": (("https://nowhere.example/",), "no-such-host"),
    "far-too-long": (("/" + "a" * 9000,), "bad-address"),
    "to-what-the-user-allows": (("https://one.intern.example/",), "private-address"),
    "to-the-port-that-the-user-allows": (("https://[::1]:8080/",), "private-address"),
}


def judged(sites: Sites) -> None:
    """Nothing was connected to that leads inside."""
    for way in sites.ways:
        assert way.addresses
        assert not any(leads_inside(address, private=way.is_private) for address in way.addresses)
    assert sites.open == 0


async def refused(url: str, sites: Sites, **options: Any) -> WebError:
    with pytest.raises(WebError) as caught:
        await stubbed(sites, **options).get(url)
    assert caught.value.message.endswith(".")
    assert caught.value.message == str(caught.value)
    judged(sites)
    return caught.value


def rows(table: dict[str, Any]) -> list[Any]:
    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), id=name) for name, row in table.items()]


def test_the_table_is_long_enough():
    assert sum(map(len, (FETCHED, UNREADABLE, INSIDE, NEVER, ANSWERS, CHAINS))) >= 150


@each_row(("url", "asked"), FETCHED)
async def test_a_public_page_is_fetched_in_one_spelling(url, asked):
    sites = Sites()
    names = Names({"xn--bcher-kva.example": (PUBLIC,)})

    page = await stubbed(sites, names).get(url)

    assert isinstance(page, Got)
    assert (page.url, page.address, page.body) == (url, asked, b"hello")
    assert sites.urls == [asked]
    judged(sites)


@each_row("url", rows(UNREADABLE))
async def test_an_address_that_can_be_read_in_two_ways_is_refused(url):
    sites = Sites()
    names = Names()

    error = await refused(url, sites, names=names, private_hosts=OWN)

    assert error.code == "bad-address"
    assert (sites.ways, names.asked) == ([], [])
    assert "secret" not in error.message
    assert error.message.isprintable()


@each_row("scheme", ["http", "https"])
@each_row("host", rows(INSIDE))
async def test_an_address_that_leads_inside_is_refused(host, scheme):
    sites = Sites()

    error = await refused(f"{scheme}://{host}/", sites)

    address = parse_url(f"{scheme}://{host}/").target.address
    assert (error.code, sites.ways) == ("private-address", [])
    assert address is not None
    assert (f'add "{address}" to web.private_hosts' in error.message) is not bool(leads_inside(address, private=True))


@each_row("host", rows(NEVER))
async def test_some_addresses_are_refused_even_where_the_user_allows_them(host):
    sites = Sites()

    error = await refused(f"http://{host}:8080/", sites, private_hosts=[f"{host}:8080"])

    assert (error.code, sites.ways) == ("private-address", [])
    assert "web.private_hosts" not in error.message


@each_row(
    ("url", "private", "entry"),
    [
        pytest.param("http://localhost:8000/", ("localhost",), "localhost:8000", id="another-port"),
        pytest.param("http://localhost:8000/", (), "localhost:8000", id="a-port"),
        pytest.param("http://localhost/", (), "localhost", id="the-usual-port"),
        pytest.param("https://localhost/", (), "localhost", id="the-usual-port-of-https"),
        pytest.param("http://[::1]:8000/", (), "[::1]:8000", id="six"),
        pytest.param("http://[::1]/", (), "::1", id="six-at-the-usual-port"),
        pytest.param("http://inner.example:81/", ("*.inner.example",), "inner.example:81", id="a-name"),
        pytest.param("http://metadata.example/", (), "", id="a-name-for-metadata"),
        pytest.param("http://half.example/", (), "", id="a-name-that-is-never-all-allowed"),
    ],
)
async def test_a_refusal_names_the_entry_that_would_help(url, private, entry):
    names = Names({"metadata.example": ("169.254.169.254",), "half.example": ("10.0.0.1", "169.254.169.254")})

    error = await refused(url, Sites(), names=names, private_hosts=private)

    if not entry:
        assert "web.private_hosts" not in error.message
        return
    assert error.message.endswith(f'Where it is meant, the user can add "{entry}" to web.private_hosts.')
    page = await stubbed(Sites(), names, private_hosts=(*private, entry)).get(url)
    assert page.address == url  # type: ignore[union-attr]


@each_row(
    ("url", "said"),
    [
        pytest.param("http://localhost:99999/", "'localhost:99999' has a port that there is not", id="port"),
        pytest.param("http://localhost:123456/", "'localhost:123456' has a port that there is not", id="long-port"),
        pytest.param("http://localhost:0/", "'localhost:0' has a port that there is not: they are 1 to 65535.", id="0"),
        pytest.param("http://exa mple.com", "in or before its host, where none can be; leave it out.", id="blank"),
        pytest.param(" http://example.com", "in or before its host, where none can be; leave it out.", id="before"),
        pytest.param("http://example.com/a b", "in it; write it with a percent sign, as %20.", id="blank-in-path"),
        pytest.param("http://example.com?a b://c", "write it with a percent sign, as %20.", id="blank-in-question"),
        pytest.param("example.com", "http://. Write 'https://example.com' if that is meant.", id="no-scheme"),
        pytest.param("example.com:8443/a?b", "Write 'https://example.com:8443/a?b' if that is meant.", id="port-path"),
        pytest.param("//example.com/a", "Write 'https://example.com/a' if that is meant.", id="slashes"),
        pytest.param("localhost:8000", "Write 'https://localhost:8000' if that is meant.", id="localhost"),
        pytest.param("example", "begins with https:// or http://.", id="a-word"),
        pytest.param("mailto:me@example.com", "begins with https:// or http://.", id="mail"),
        pytest.param("javascript:alert(1)", "begins with https:// or http://.", id="javascript"),
    ],
)
async def test_what_is_wrong_with_an_address_is_said_as_it_is(url, said):
    error = await refused(url, Sites())

    assert error.code == "bad-address"
    assert said in error.message
    assert error.message.endswith(said) or "port" in said


@each_row(
    ("start", "places", "said"),
    [
        pytest.param(
            "http://localhost:8080/meta",
            ("http://169.254.169.254/latest/",),
            "http://localhost:8080/meta redirects to https://169.254.169.254/latest/: 169.254.169.254 is not fetched"
            " from, because 169.254.169.254 is a link-local, metadata or group address.",
            id="metadata",
        ),
        pytest.param(
            "http://localhost:8080/pub",
            ("https://nowhere.example/",),
            "http://localhost:8080/pub redirects to https://nowhere.example/: There is no host nowhere.example, or its"
            " name cannot be looked up from here.",
            id="no-such-host",
        ),
        pytest.param(
            "http://localhost:8080/",
            ("/b", "http://localhost:9090/c"),
            "http://localhost:8080/b redirects to http://localhost:9090/c: localhost:9090 is not fetched from, because"
            " ::1 is a private or reserved address. No command of this session listens there."
            " Where it is meant, the user can"
            ' add "localhost:9090" to'
            " web.private_hosts.",
            id="from-ones-own-to-a-private-one",
        ),
        pytest.param(
            "https://public.example/",
            ("https://inner.example/",),
            "https://public.example/ redirects to https://inner.example/: inner.example is not fetched from, because"
            " 10.0.0.5 is a private or reserved address.",
            id="from-outside-no-setting-helps",
        ),
        pytest.param(
            "https://public.example/",
            ("file:///etc/passwd",),
            "https://public.example/ redirects to an address that is not fetched. 'file:///etc/passwd' is not a page of"
            " the web: only https and http are fetched, not file.",
            id="no-page",
        ),
    ],
)
@each_row("across", [True, False])
async def test_a_failure_behind_a_redirect_says_who_redirected_there(start, places, said, across):
    web = stubbed(Sites(*map(redirect, places)), private_hosts=("localhost:8080",))

    if across:
        with pytest.raises(WebError) as caught:
            await web.get(start)
        assert caught.value.message == said
        return
    found: Any = ""
    try:
        found = await web.get(start, across=False)
    except WebError as error:
        found = error.message
    assert found == said or isinstance(found, Redirected)


async def test_a_long_address_behind_a_redirect_is_cut():
    error = await refused("https://public.example/", Sites(redirect("https://nowhere.example/" + "a" * 5000)))

    assert len(error.message) < 600


@each_row(("found", "code"), rows(ANSWERS))
async def test_every_address_of_a_name_is_judged(found, code):
    sites = Sites(redirect("/again"))
    names = Names({"some.example": found})
    web = stubbed(sites, names)

    if code:
        with pytest.raises(WebError) as caught:
            await web.get("https://some.example/")
        assert (caught.value.code, sites.ways) == (code, [])
    else:
        await web.get("https://some.example/")
        assert len(sites.ways) == 2
    assert names.asked == ["some.example"]
    judged(sites)


@each_row(("places", "end"), rows(CHAINS))
async def test_every_hop_is_judged_like_the_first_one(places, end):
    sites = Sites(*map(redirect, places))
    names = Names({"one.intern.example": ("10.0.0.7",)})
    start = "https://public.example/x/y"

    if end.startswith("https:"):
        page = await stubbed(sites, names).get(start)
        assert isinstance(page, Got)
        assert (page.url, page.address) == (start, end)
        judged(sites)
    else:
        error = await refused(start, sites, names=names, private_hosts=("*.intern.example", "[::1]:8080"))
        assert error.code == end
        assert "secret" not in error.message
    assert len(names.asked) == len(set(names.asked))
    assert not any("cookie" in one.headers or "referer" in one.headers for one in sites.asked)


@each_row(
    ("url", "places", "end"),
    [
        pytest.param("http://localhost:8080/", (), "http://localhost:8080/", id="named-with-its-port"),
        pytest.param("http://127.0.0.1:8080/", (), "http://127.0.0.1:8080/", id="named-as-an-address"),
        pytest.param("http://[::1]:8080/", (), "http://[::1]:8080/", id="named-as-an-address-of-six"),
        pytest.param("http://one.intern.example/", (), "http://one.intern.example/", id="not-upgraded"),
        pytest.param("https://one.intern.example/", (), "https://one.intern.example/", id="https-too"),
        pytest.param("http://10.9.8.7/", (), "http://10.9.8.7/", id="address-at-the-usual-port"),
        pytest.param("http://one.intern.example/", ("/b",), "http://one.intern.example/b", id="redirect-on-the-host"),
        pytest.param(
            "http://one.intern.example/", ("http://localhost:8080/",), "http://localhost:8080/", id="to-another-one"
        ),
        pytest.param(
            "http://one.intern.example/", ("http://public.example/",), "https://public.example/", id="outside"
        ),
        pytest.param(
            "http://one.intern.example/", ("https://one.intern.example/",), "https://one.intern.example/", id="up"
        ),
        pytest.param("https://one.intern.example/", ("http://one.intern.example/",), "bad-address", id="down"),
        pytest.param("http://localhost:8081/", (), "private-address", id="another-port"),
        pytest.param("http://localhost/", (), "private-address", id="the-usual-port"),
        pytest.param("http://127.0.0.2:8080/", (), "private-address", id="another-address"),
        pytest.param("http://intern.example/", (), "private-address", id="not-below-itself"),
        pytest.param("http://evilintern.example/", (), "private-address", id="not-the-end-of-a-text"),
        pytest.param("http://one.intern.example:8080/", (), "private-address", id="below-at-another-port"),
        pytest.param("http://localhost:8080/", ("http://localhost:9090/",), "private-address", id="to-another-port"),
        pytest.param("http://localhost:8080/", ("http://10.0.0.1/",), "private-address", id="to-another-private-one"),
        pytest.param("http://[::ffff:127.0.0.1]:8080/", (), "private-address", id="in-another-writing"),
        pytest.param("http://public.example/", ("http://localhost:8080/x",), "bad-address", id="down-from-outside"),
        pytest.param("http://public.example:81/", ("http://localhost:8080/",), "private-address", id="from-outside"),
    ],
)
async def test_the_users_own_hosts_are_fetched_from_where_they_are_named(url, places, end):
    inner = ("10.0.0.7",)
    names = Names(dict.fromkeys(("one.intern.example", "intern.example", "evilintern.example"), inner))
    sites = Sites(*map(redirect, places))

    if end.startswith("http"):
        page = await stubbed(sites, names, private_hosts=OWN).get(url)
        assert page.address == end  # type: ignore[union-attr]
        judged(sites)
    else:
        error = await refused(url, sites, names=names, private_hosts=OWN)
        assert error.code == end


@each_row(
    ("url", "place", "to"),
    [
        pytest.param("https://public.example/", "/b", "https://public.example/b", id="same-host"),
        pytest.param(
            "https://public.example/", "https://www.public.example/b", "https://www.public.example/b", id="to-www"
        ),
        pytest.param(
            "https://www.public.example/", "https://public.example/b", "https://public.example/b", id="from-www"
        ),
        pytest.param("https://public.example/", "http://public.example:80/b", "https://public.example/b", id="upgrade"),
        pytest.param(
            "http://public.example:443/", "https://public.example/b", "https://public.example/b", id="usual-ports"
        ),
        pytest.param("https://public.example/", "https://other.example/b", "https://other.example/b", id="other-host"),
        pytest.param("https://public.example/", "http://other.example/b", "https://other.example/b", id="upgraded"),
        pytest.param("https://public.example/", "https://a.public.example/", "https://a.public.example/", id="below"),
        pytest.param("https://a.public.example/", "https://public.example/", "https://public.example/", id="above"),
        pytest.param(
            "https://public.example/", "https://public.example.org/", "https://public.example.org/", id="longer"
        ),
        pytest.param(
            "https://public.example/", "https://public.example:8443/", "https://public.example:8443/", id="port"
        ),
        pytest.param("https://public.example/", "https://inner.example/", "https://inner.example/", id="not-looked-up"),
    ],
)
async def test_a_redirect_is_reported_where_it_is_not_to_be_followed(url, place, to):
    sites = Sites(redirect(place, 301))
    names = Names({"a.public.example": (PUBLIC,)})

    found = await stubbed(sites, names).get(url, across=False)

    assert found == Redirected(url, to, 301)
    assert len(sites.ways) == len(names.asked) == 1


@pytest.mark.parametrize("place", ["http://127.0.0.1/", "https://[::ffff:10.0.0.1]/", "file:///etc/passwd", "//a@b/"])
async def test_a_redirect_that_nobody_should_follow_is_not_even_reported(place):
    with pytest.raises(WebError):
        await stubbed(Sites(redirect(place))).get("https://public.example/", across=False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_these_are_redirects(status):
    page = await stubbed(Sites(redirect("/b", status))).get("https://public.example/")

    assert page.address == "https://public.example/b"  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [300, 304, 305, 306, 399])
async def test_other_answers_of_that_kind_are_pages(status):
    page = await stubbed(Sites(redirect("/b", status))).get("https://public.example/")

    assert (page.address, page.status) == ("https://public.example/", status)  # type: ignore[union-attr]
