"""Which addresses a conversation has come by."""

import pytest
from tests.rows import each_row

from ferrule.tools.web import Addresses


def strange(addresses: Addresses, url: str) -> bool:
    return bool(addresses.find_made_up([url], []))


@each_row(
    ("said", "url"),
    [
        ("Read https://docs.example.org/guide.", "https://docs.example.org/guide"),
        ("(see https://docs.example.org/guide?a=1&b=2)", "https://docs.example.org/guide?a=1&b=2"),
        ("[it](https://example.org/a_(b)), please", "https://example.org/a_(b)"),
        ("<https://example.org/a>", "https://example.org/a"),
        ("`https://example.org/a`", "https://example.org/a"),
        ("http://example.org/a", "https://example.org/a"),
        ("HTTPS://Example.ORG/a", "https://example.org/a"),
        ("https://example.org", "https://example.org/"),
        ("https://example.org/a#part", "https://example.org/a#other"),
        ("Look at example.org/docs/x, then go on.", "https://example.org/docs/x"),
        ("What is on www.example.museum?", "https://www.example.museum/"),
        ("What is on example.org?", "https://example.org"),
        ("example.org:8080/x", "https://example.org:8080/x"),
        ("example.org:8080/x", "http://example.org:8080/x"),
        ("http://[2606:4700::1111]/a", "http://[2606:4700::1111]/a"),
        ("https://me:word@example.org/a", "https://example.org/a"),
    ],
)
def test_what_the_user_wrote_is_known(said: str, url: str) -> None:
    addresses = Addresses()
    addresses.hear(said)

    assert not strange(addresses, url)


@each_row(
    "url",
    [
        "https://docs.example.org/guide?key=abc",
        "https://docs.example.org/guide/",
        "https://docs.example.org/Guide",
        "https://docs.example.org/",
        "https://docs.example.org:8443/guide",
        "https://example.org/guide",
        "https://docs.example.org.evil.example/guide",
        "https://evil.example/https://docs.example.org/guide",
        "https://setup.py/",
        "https://docs.example.org/guide?",
        "https://docs.example.org//guide",
        "https://docs.example.org/%67uide",
        "https://docs.example.org/guide%20",
        "http://docs.example.org:443/guide",
        "https://secret@docs.example.org/guide",
        "file://docs.example.org/guide",
        "data:text/html,https://docs.example.org/guide",
    ],
)
def test_what_only_resembles_it_is_made_up(url: str) -> None:
    addresses = Addresses()
    addresses.hear("Read https://docs.example.org/guide and setup.py.")

    assert strange(addresses, url)


AROUND = (
    *("“{}”", "‘{}’", "«{}»", "‹{}›", "„{}“", "{}…", "{}—", "{} —", "{}–", "{}。", "{}，", "{}、", "（{}）", "【{}】"),
    *(
        "「{}」",
        "{}；",
        "{}！",
        "{}？",
        "{}的",
        "请看{}，然后",
        "「{}」です",
        "<{}>",
        "[text]({})",
        "[text]({}).",
        "({}).",
        "({}),",
    ),
    *("[text]({}):then", "[a]({})[b](c)", "[a]({} 'title')", "**{}**", "_{}_", "'{}'", "'{}',", "'{}','x'", "({})(x)"),
    *("`{}`", '"{}"', "{}?", "{}!", "{}.", "{}...", "{}:", "{};", "{})", "|{}|", "\\url{{{}}}"),
)


@each_row("around", AROUND)
@each_row(
    "url", ["https://example.org/a", "https://example.org", "https://example.org/a_(b)", "https://example.org/a?b=c"]
)
def test_what_stands_around_an_address_is_no_part_of_it(around: str, url: str) -> None:
    addresses = Addresses()
    addresses.hear(f"Read {around.format(url)} please.")

    assert [strange(addresses, one) for one in (url, f"{url}x")] == [False, True]


@each_row("around", ["（{}）", "“{}”", "{}。", "{}，", "«{}»", "[text]({})", "<{}>", "{}…", "{}—"])
def test_what_stands_around_an_address_without_its_scheme_is_no_part_of_it(around: str) -> None:
    addresses = Addresses()
    addresses.hear(f"Read {around.format('example.org/a')} please.")

    assert not strange(addresses, "https://example.org/a")


@pytest.mark.parametrize(
    "spellings",
    [
        ("https://de.example/wiki/Zürich", "https://de.example/wiki/Z%C3%BCrich"),
        ("https://de.example/?q=Zürich&r=東京", "https://de.example/?q=Z%C3%BCrich&r=%E6%9D%B1%E4%BA%AC"),
        (
            "https://zh.example/wiki/你好，李焕英",
            "https://zh.example/wiki/%E4%BD%A0%E5%A5%BD%EF%BC%8C%E6%9D%8E%E7%84%95%E8%8B%B1",
        ),
        ("https://en.example/wiki/Hobson's_choice", "https://EN.example/wiki/Hobson's_choice"),
        ("https://zürich.example/a", "https://xn--zrich-kva.example/a", "https://ZÜRICH.example/a", "zürich.example/a"),
        ("https://example.org", "https://example.org/", "https://example.org:443", "https://EXAMPLE.org.:443/#top"),
        ("http://example.org/a", "http://example.org:80/a", "https://example.org:443/a", "HTTP://Example.Org/a"),
    ],
)
def test_one_address_in_two_spellings_is_one(spellings: tuple[str, ...]) -> None:
    for said in spellings:
        addresses = Addresses()
        addresses.hear(f"Read {said} please.")

        assert [url for url in spellings if "://" in url and strange(addresses, url)] == []


@pytest.mark.parametrize(
    "url",
    [
        "https://de.example/wiki/Z%c3%bcrich",
        "https://de.example/wiki/Zu\u0308rich",
        "https://de.example/wiki/Zurich",
        "https://de.example/wiki/Z",
        "https://de.example/wiki/z%C3%BCrich",
        "https://de.example/wiki/Z%25C3%25BCrich",
        "https://de.example/%77iki/Z%C3%BCrich",
    ],
)
def test_another_spelling_of_a_path_could_carry_something(url: str) -> None:
    addresses = Addresses()
    addresses.hear("Read https://de.example/wiki/Zürich please.")

    assert strange(addresses, url)


def test_several_addresses_without_a_blank_between_them_are_known() -> None:
    addresses = Addresses()
    addresses.hear("['https://one.example/a','https://two.example/b'];https://three.example/c,https://four.example/d")
    urls = [f"https://{host}.example/{path}" for host, path in zip(("one", "two", "four"), "abd", strict=True)]

    assert [url for url in urls if strange(addresses, url)] == []


@pytest.mark.parametrize(
    "text", [")" * 300_000, "”" * 300_000, "https://" * 100_000, "(" * 300_000 + "https://b.example/" * 9]
)
def test_a_page_of_nothing_but_marks_takes_no_time(text: str) -> None:
    addresses = Addresses()
    addresses.hear("Read https://one.example/")
    addresses.read("https://one.example/", f"https://two.example/{text}", is_private=False)

    assert len(addresses._shown) < 100


def test_a_search_and_a_page_that_the_user_named_show_addresses() -> None:
    addresses = Addresses()
    addresses.hear("Read https://one.example/")
    addresses.add_found(["https://found.example/a"])
    addresses.read("https://one.example/", "See [b](https://two.example/b?x=1&amp;y=2 'title').", is_private=False)
    addresses.read("https://found.example/a", "See https://three.example/c", is_private=False)

    known = ("https://found.example/a", "https://two.example/b?x=1&y=2", "https://three.example/c")
    assert [strange(addresses, url) for url in known] == [False, False, True]


def test_a_page_does_not_make_its_links_the_user_s() -> None:
    addresses = Addresses()
    addresses.hear("Read https://one.example/")
    addresses.read("https://one.example/", "https://two.example/", is_private=False)
    addresses.read("https://two.example/", "https://three.example/", is_private=False)

    assert strange(addresses, "https://three.example/")


HERE = ("http://localhost:3000/", "http://127.0.0.1:3000/", "http://[::1]:3000/", "http://app.localhost:3000/")


@each_row("is_private", [True, False])
@each_row("url", HERE)
def test_a_page_of_this_machine_shows_nothing_though_the_user_named_it(url: str, is_private: bool) -> None:
    addresses = Addresses()
    addresses.hear(f"Check that {url} renders.")
    addresses.read(url, "https://evil.example/c?d=SECRET", is_private=is_private)

    assert strange(addresses, "https://evil.example/c?d=SECRET")


def test_a_page_of_the_user_s_own_network_shows_nothing_though_the_user_named_it() -> None:
    addresses = Addresses()
    addresses.hear("Read https://wiki.intern.example/")
    addresses.read("https://wiki.intern.example/", "https://evil.example/c?d=SECRET", is_private=True)

    assert strange(addresses, "https://evil.example/c?d=SECRET")


def test_a_host_that_was_agreed_to_is_asked_about_no_more() -> None:
    addresses = Addresses()
    addresses.agree(["one.example"])
    urls = ["https://one.example/x?y", "https://two.example/", "https://two.example/z"]

    assert addresses.find_made_up(urls, ["one.example", "two.example"]) == ["two.example"]
    assert addresses.find_made_up([], ["one.example", "two.example"]) == ["two.example"]


@pytest.mark.parametrize("url", ["http://localhost:8000/x", "http://127.0.0.1:8000/", "http://[::1]:8000/"])
def test_this_machine_is_no_way_out(url: str) -> None:
    assert not strange(Addresses(), url)


def test_nobody_is_heard_before_somebody_writes() -> None:
    addresses = Addresses()
    assert not addresses.is_heard

    addresses.hear("")

    assert addresses.is_heard
