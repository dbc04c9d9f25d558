"""Rules about hosts: whole labels, every way to write a name, and the tricks that have fooled others."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.access import Access
from ferrule.core.errors import ConfigError
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions import Case
from ferrule.permissions.policy import Policy
from ferrule.permissions.rules import Layer, Rule, RuleSet, amp
from ferrule.permissions.rules.hosts import BadHost, hosts, spellings
from tests.rows import each_kept_row, each_row

from .written import command, fetch, rule, subject

TABLE = [
    pytest.param("example.com", "example.com", True, id="the-host"),
    pytest.param("example.com", "EXAMPLE.com", True, id="any-case"),
    pytest.param("Example.COM", "example.com", True, id="any-case-in-the-rule"),
    pytest.param("example.com", "example.com.", True, id="trailing-dot"),
    pytest.param("example.com.", "example.com", True, id="trailing-dot-in-the-rule"),
    pytest.param("example.com", "example.com:8443", True, id="a-port-is-no-other-host"),
    pytest.param("example.com", "www.example.com", False, id="not-below"),
    pytest.param("example.com", "example.com.evil.net", False, id="begins-like-it"),
    pytest.param("example.com", "evilexample.com", False, id="ends-like-it"),
    pytest.param("example.com", "example.co", False, id="shorter"),
    pytest.param("example.com", "examplexcom", False, id="a-dot-is-a-dot"),
    pytest.param("*.example.com", "a.example.com", True, id="below"),
    pytest.param("*.example.com", "a.b.example.com", True, id="deep-below"),
    pytest.param("*.example.com", "example.com", False, id="below-is-not-the-host-itself"),
    pytest.param("*.example.com", "evilexample.com", False, id="below-at-a-dot"),
    pytest.param("*.example.com", "example.com.evil.net", False, id="below-fixes-the-end"),
    pytest.param("*.example.com", "a.example.com.evil.net", False, id="below-fixes-the-end-too"),
    pytest.param("api-*.example.com", "api-eu.example.com", True, id="star-in-a-label"),
    pytest.param("api-*.example.com", "api-eu.x.example.com", False, id="star-stays-in-its-label"),
    pytest.param("api.*.example.com", "api.eu.example.com", True, id="star-for-a-label"),
    pytest.param("api.*.example.com", "api.a.b.example.com", False, id="star-for-one-label-only"),
    pytest.param("example.*", "example.org", True, id="star-at-the-end"),
    pytest.param("example.*", "example.org.evil.net", False, id="star-at-the-end-is-one-label"),
    pytest.param("*.*.example.com", "a.b.example.com", True, id="below-some-label"),
    pytest.param("*.*.example.com", "b.example.com", False, id="below-some-label-needs-both"),
    pytest.param("bücher.de", "xn--bcher-kva.de", True, id="idna-in-the-rule"),
    pytest.param("xn--bcher-kva.de", "BÜCHER.de", True, id="idna-in-the-call"),
    pytest.param("example.com", "еxample.com", False, id="cyrillic-letter"),
    pytest.param("example.com", "ｅxample.com", True, id="full-width-letter-is-the-letter"),
    pytest.param("example.com", "example。com", True, id="ideographic-dot-is-a-dot"),
    pytest.param("127.0.0.1", "2130706433", True, id="address-as-one-number"),
    pytest.param("127.0.0.1", "0x7f.1", True, id="address-in-hex"),
    pytest.param("127.0.0.1", "0177.0.0.1", True, id="address-in-octal"),
    pytest.param("127.0.0.1", "[::ffff:7f00:1]", True, id="address-in-six"),
    pytest.param("::1", "[0:0:0:0:0:0:0:1]:80", True, id="six"),
    pytest.param("::1", "::2", False, id="six-other"),
    pytest.param("*.0.0.1", "10.0.0.1", False, id="nothing-is-below-an-address"),
    pytest.param("10.0.0.*", "10.0.0.7", True, id="star-in-an-address"),
    pytest.param("10.0.0.*", "10.0.0.7.evil.net", False, id="address-in-a-name"),
    pytest.param("localhost", "localhost", True, id="one-label"),
]


@each_row(("pattern", "host", "expected"), TABLE)
def test_a_rule_that_allows_covers_just_these(pattern, host, expected):
    assert rule("allow", f"WebFetch(domain:{pattern})").matches(fetch(host)) is expected


@each_row(("pattern", "host", "expected"), TABLE)
def test_a_rule_that_denies_covers_the_same(pattern, host, expected):
    assert rule("deny", f"WebFetch(domain:{pattern})").matches(fetch(host)) is expected


@each_kept_row
@each_row("pattern", ["example.com", "*.example.com", "*", "evil.net"])
def test_what_is_no_host_is_never_allowed_and_always_denied(pattern, host):
    assert not rule("allow", f"WebFetch(domain:{pattern})").matches(fetch(host))
    assert rule("deny", f"WebFetch(domain:{pattern})").matches(fetch(host))


def test_a_star_alone_allows_one_label_and_denies_everything():
    allowed, denied = rule("allow", "WebFetch(domain:*)"), rule("deny", "WebFetch(domain:*)")

    assert [host for host in ("localhost", "example.com", "::1") if allowed.matches(fetch(host))] == ["localhost"]
    assert all(denied.matches(fetch(host)) for host in ("localhost", "example.com", "::1"))


def test_a_name_that_two_standards_spell_differently_is_judged_by_both():
    sharp, plain = spellings("faß.de")

    assert (sharp, plain) == ("fass.de", "xn--fa-hia.de")
    assert not rule("allow", f"WebFetch(domain:{sharp})").matches(fetch("faß.de"))
    assert rule("deny", f"WebFetch(domain:{sharp})").matches(fetch("faß.de"))
    assert rule("deny", f"WebFetch(domain:{plain})").matches(fetch("faß.de"))


@pytest.mark.parametrize("pattern", ["faß.de", "a b", "ex\\ample.com", "u@h", "", "ü*.de", "a..b"])
def test_a_rule_about_no_host_cannot_be_read(pattern):
    with pytest.raises(BadHost):
        hosts(pattern, wide=True)


def test_all_hosts_have_to_be_allowed_and_one_is_enough_to_deny():
    two = fetch("example.com", "evil.net")

    assert not rule("allow", "WebFetch(domain:example.com)").matches(two)
    assert rule("deny", "WebFetch(domain:evil.net)").matches(two)


def test_a_fetch_from_nobody_knows_where_is_denied_and_not_allowed():
    assert rule("deny", "WebFetch(domain:example.com)").matches(fetch())
    assert not rule("allow", "WebFetch(domain:example.com)").matches(fetch())


def test_a_command_that_goes_to_a_host_can_be_denied_by_it_but_not_allowed():
    curl = command("curl https://example.com", hosts=("example.com",))

    assert rule("deny", "WebFetch(domain:example.com)").matches(curl)
    assert not rule("allow", "WebFetch(domain:example.com)").matches(curl)
    assert not rule("deny", "WebFetch(domain:example.com)").matches(command("ls"))


def test_every_familys_name_for_fetching_will_do():
    for name in ("WebFetch", "webfetch", "web_fetch"):
        assert rule("allow", f"{name}(domain:example.com)").matches(fetch("example.com"))


@pytest.mark.parametrize("action", ["allow", "ask", "deny"])
@pytest.mark.parametrize("written", ["https://evil.example/*", "HTTP://evil.example"])
def test_an_address_is_no_specifier_and_is_not_passed_over(action, written):
    with pytest.raises(ConfigError, match=r"domain:example\.org"):
        rule(action, f"WebFetch({written})")


def test_a_search_of_the_web_has_no_specifier():
    assert rule("allow", "WebSearch").matches(subject("web_search"))
    assert rule("deny", "WebSearch").matches(subject("web_search"))


labels = st.text("abx-1", min_size=1, max_size=3)
names = st.lists(labels, min_size=1, max_size=4).map(".".join).filter(lambda name: not name[-1].isdigit())


@given(names, names)
def test_a_plain_rule_allows_one_name_and_no_other(pattern, host):
    assert hosts(pattern).covers(host) is (pattern == host)


@given(names, names)
def test_below_means_at_a_dot(pattern, host):
    assert hosts(f"*.{pattern}").covers(host) is host.endswith(f".{pattern}")


@given(st.text(st.characters(exclude_categories=()), max_size=12), names)
def test_what_a_rule_allows_its_twin_denies(host, pattern):
    assert not hosts(pattern).covers(host) or hosts(pattern, wide=True).touches(host)


def fetched(
    tmp_path: Path, *sets: RuleSet, hosts: tuple[str, ...], trusted: bool = True, tool: str = "web_fetch"
) -> str:
    policy = Policy(Jail(str(tmp_path)), Guard(), sets, trusted=trusted)
    touches = tuple(Access.host(host) for host in hosts)
    case = Case("1", "WebFetch" if tool == "web_fetch" else tool, tool, touches, input={"url": f"https://{hosts[0]}/"})
    return policy.decide(case).verdict


def ruled(*rules: Rule, layer: Layer = "user") -> RuleSet:
    return RuleSet(rules, ordered=False, source="test", layer=layer)


EVERY = ("WebFetch", "WebFetch(*)", "WebFetch(domain:*)")
NAMED = "docs.example"


@each_row("every", EVERY)
@each_kept_row
def test_a_rule_that_names_a_host_lifts_one_that_asks_about_all(
    tmp_path: Path, every: str, host: str, expected: str
) -> None:
    rules = ruled(
        rule("ask", every),
        rule("allow", f"WebFetch(domain:{NAMED})"),
        rule("allow", "WebFetch(domain:bücher.example)"),
        rule("allow", "WebFetch(domain:*.below.example)"),
        rule("deny", "WebFetch(domain:denied.below.example)"),
        rule("ask", "WebFetch(domain:asked.below.example)"),
    )

    assert fetched(tmp_path, rules, hosts=(host,)) == expected


@pytest.mark.parametrize("every", EVERY)
def test_all_hosts_of_a_call_have_to_be_named(tmp_path: Path, every: str) -> None:
    rules = ruled(
        rule("ask", every), rule("allow", "WebFetch(domain:a.example)"), rule("allow", "WebFetch(domain:b.example)")
    )

    assert fetched(tmp_path, rules, hosts=("a.example", "b.example")) == "allow"
    assert fetched(tmp_path, rules, hosts=("a.example", "c.example")) == "ask"


@pytest.mark.parametrize("every", ["*", "Web*"])
def test_a_rule_about_more_than_fetches_is_not_lifted(tmp_path: Path, every: str) -> None:
    rules = ruled(rule("ask", every), rule("allow", f"WebFetch(domain:{NAMED})"))

    assert fetched(tmp_path, rules, hosts=(NAMED,)) == "ask"


@pytest.mark.parametrize("allowing", ["WebFetch", "WebFetch(domain:*.*)"])
def test_what_allows_all_hosts_lifts_nothing(tmp_path: Path, allowing: str) -> None:
    rules = ruled(rule("ask", "WebFetch"), rule("allow", allowing))

    assert fetched(tmp_path, rules, hosts=(NAMED,)) == "ask"


@each_row(
    ("asks", "allows", "expected"),
    [
        ("managed", "managed", "allow"),
        ("managed", "user", "ask"),
        ("managed", "session", "ask"),
        ("user", "managed", "allow"),
        ("user", "user", "allow"),
        ("user", "session", "allow"),
        ("user", "project", "ask"),
        ("project", "user", "allow"),
        ("project", "project", "allow"),
    ],
)
def test_a_file_lifts_only_what_counts_no_more_than_it(
    tmp_path: Path, asks: Layer, allows: Layer, expected: str
) -> None:
    sets = (
        ruled(rule("ask", "WebFetch"), layer=asks),
        ruled(rule("allow", f"WebFetch(domain:{NAMED})"), layer=allows),
    )

    assert fetched(tmp_path, *sets, hosts=(NAMED,)) == expected


def test_a_project_that_nobody_trusts_lifts_nothing(tmp_path: Path) -> None:
    rules = ruled(rule("ask", "WebFetch"), rule("allow", f"WebFetch(domain:{NAMED})"), layer="project")

    assert fetched(tmp_path, rules, hosts=(NAMED,), trusted=False) == "ask"


def test_ordered_rules_are_not_lifted(tmp_path: Path) -> None:
    ordered = amp.read("ask web_fetch", source="test", layer="user", home="/home/somebody")

    assert fetched(tmp_path, ordered, ruled(rule("allow", f"WebFetch(domain:{NAMED})")), hosts=(NAMED,)) == "ask"
