"""What tools of servers are called: in allowed characters, never too long, never the same, each with its server."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.sources.mcp import MOST_CHARS, fault, full_names, server_of, short_names

SERVERS = st.lists(st.text("aZ9-", min_size=1, max_size=6), min_size=1, max_size=5).map("_".join)
TOOLS = st.lists(
    st.one_of(st.text(max_size=20), st.text("ab_.- é", max_size=6), st.text("a", min_size=40, max_size=80)),
    unique=True,
    max_size=12,
)


@given(SERVERS, TOOLS)
@pytest.mark.contract("mcp.names")
def test_every_name_is_allowed_and_its_own(server, tools):
    names = full_names(server, tools)

    assert list(names) == tools
    assert len(set(names.values())) == len(tools)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) and len(name) <= MOST_CHARS for name in names.values())
    assert all(name.startswith(f"mcp__{server}__") for name in names.values())
    assert {server_of(name) for name in names.values()} <= {server}


@given(TOOLS, st.randoms())
def test_the_order_of_a_list_changes_no_name(tools, random):
    shuffled = random.sample(tools, len(tools))

    assert full_names("git", tools) == full_names("git", shuffled)
    assert short_names(tools) == short_names(shuffled)


@given(SERVERS, TOOLS)
def test_a_plain_name_stays_whatever_comes_beside_it(server, tools):
    assert full_names(server, [*tools, "read"])["read"] == f"mcp__{server}__read" or "read" in tools


@given(SERVERS, SERVERS)
def test_no_server_is_taken_for_another(one, other):
    prefixes = [name for name in full_names(one, ["x", "_x", "__x"]).values() if name.startswith(f"mcp__{other}__")]

    assert not prefixes or one == other


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        pytest.param(["read"], ["read"], id="plain"),
        pytest.param(["a.b"], ["a_b"], id="cleaned"),
        pytest.param(["a_b", "a.b"], ["a_b", "a_b_3bda6b44"], id="plain-beside-cleaned"),
        pytest.param(["a/b", "a.b"], ["a_b_5bde5c63", "a_b_3bda6b44"], id="both-cleaned"),
        pytest.param(["rеad"], ["r_ad"], id="homoglyph"),
        pytest.param(["x" * 70], ["x" * 55 + "_" + "0" * 8], id="long"),
    ],
)
def test_names_are_stable(tools, names):
    def masked(name):
        return re.sub(r"_[0-9a-f]{8}$", "_HASH", name)

    found = list(short_names(tools).values())

    assert [masked(name) for name in found] == [masked(name) for name in names]
    assert found == list(short_names(tools).values())


def test_a_tool_cannot_take_the_name_that_another_would_be_given():
    hashed = short_names(["a.b", "a/b"])["a.b"]

    names = short_names(["a.b", "a/b", hashed])

    assert names[hashed] == hashed
    assert len(set(names.values())) == 3


@each_row("name", ["", "a b", "a.b", "a__b", "_a", "a_", "gіt", "a" * 41, "a/b", "a\n"])
def test_what_cannot_be_a_server_is_told(name):
    assert fault(name)


@pytest.mark.parametrize("name", ["git", "a_b", "A-1", "a" * 40, "-"])
def test_what_can_be_a_server_is_taken(name):
    assert fault(name) == ""


@pytest.mark.parametrize(
    ("name", "server"),
    [
        pytest.param("mcp__git__log", "git", id="plain"),
        pytest.param("mcp__git__a__b", "git", id="double-underscore-in-the-tool"),
        pytest.param("mcp__git___x", "git", id="underscore-at-the-tools-start"),
        pytest.param("mcp__git", "", id="no-tool"),
        pytest.param("mcp__git__", "", id="empty-tool"),
        pytest.param("mcp____x", "", id="no-server"),
        pytest.param("tb__git__x", "", id="another-source"),
    ],
)
def test_a_name_tells_its_server(name, server):
    assert server_of(name) == server
