"""Which addresses a conversation has come by."""

import pytest

from ferrule.workspace.addresses import Addresses


def strange(addresses: Addresses, url: str) -> bool:
    return bool(addresses.made_up([url], []))


@pytest.mark.parametrize(
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
        ("example.org:8080/x", "http://example.org:8080/x".replace("http:", "https:")),
    ],
)
def test_what_the_user_wrote_is_known(said: str, url: str) -> None:
    addresses = Addresses()
    addresses.hear(said)

    assert not strange(addresses, url)


@pytest.mark.parametrize(
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
    ],
)
def test_what_only_resembles_it_is_made_up(url: str) -> None:
    addresses = Addresses()
    addresses.hear("Read https://docs.example.org/guide and setup.py.")

    assert strange(addresses, url)


def test_a_search_and_a_page_that_the_user_named_show_addresses() -> None:
    addresses = Addresses()
    addresses.hear("Read https://one.example/")
    addresses.found(["https://found.example/a"])
    addresses.read("https://one.example/", "See [b](https://two.example/b?x=1&amp;y=2 'title').")
    addresses.read("https://found.example/a", "See https://three.example/c")

    known = ("https://found.example/a", "https://two.example/b?x=1&y=2", "https://three.example/c")
    assert [strange(addresses, url) for url in known] == [False, False, True]


def test_a_page_does_not_make_its_links_the_user_s() -> None:
    addresses = Addresses()
    addresses.hear("Read https://one.example/")
    addresses.read("https://one.example/", "https://two.example/")
    addresses.read("https://two.example/", "https://three.example/")

    assert strange(addresses, "https://three.example/")


def test_a_host_that_was_agreed_to_is_asked_about_no_more() -> None:
    addresses = Addresses()
    addresses.agree(["one.example"])
    urls = ["https://one.example/x?y", "https://two.example/", "https://two.example/z"]

    assert addresses.made_up(urls, ["one.example", "two.example"]) == ["two.example"]
    assert addresses.made_up([], ["one.example", "two.example"]) == ["two.example"]


@pytest.mark.parametrize("url", ["http://localhost:8000/x", "http://127.0.0.1:8000/", "http://[::1]:8000/"])
def test_this_machine_is_no_way_out(url: str) -> None:
    assert not strange(Addresses(), url)


def test_nobody_is_heard_before_somebody_writes() -> None:
    addresses = Addresses()
    assert not addresses.is_heard

    addresses.hear("")

    assert addresses.is_heard
