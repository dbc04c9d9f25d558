"""Searching deferred tools: by a part of their words, by rank, and that a thousand of them are no burden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.registry.brought import Brought, mcp, names, session

from ferrule.core.services import How
from ferrule.registry.search import _parse_query

TOOLS = [
    mcp("github", "search_code", "Search the code of all repositories."),
    mcp("github", "createIssue", "Open an issue in a repository."),
    mcp("github", "list_issues", "List the issues of a repository.", schema={"properties": {"milestone": {}}}),
    mcp("slack", "post", "Send a message to a channel."),
]


def prepared(family: str = "wayland", tools=TOOLS):
    registry = session(family, defers=True)
    registry.bring("all", tools)
    return registry


async def found(query: str, how: How, limit: int | None = None, family: str = "wayland") -> list[str]:
    return [one.name for one in await prepared(family).catalog.search(query, how=how, limit=limit)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("issue", ["list_issues", "createIssue"], id="names-and-descriptions"),
        pytest.param("OPEN AN ISSUE", ["createIssue"], id="whatever-the-case"),
        pytest.param("a repository", ["list_issues", "createIssue"], id="with-blanks"),
        pytest.param("sea", ["search_code"], id="a-part-of-a-word"),
        pytest.param("slack", ["post"], id="a-server"),
        pytest.param("milestone", ["list_issues"], id="parameters-where-nothing-holds-it"),
        pytest.param("write to the chat", ["post", "createIssue"], id="other-words-for-the-same"),
        pytest.param("the", [], id="a-word-that-says-nothing"),
        pytest.param(".*", [], id="no-pattern"),
    ],
)
@pytest.mark.contract("search.substring")
async def test_a_part_of_a_tool_s_words_finds_it(query, expected):
    assert await found(query, "substring") == expected


@pytest.mark.parametrize("letters", ["e", "iss", "issue", "co", "rep", "a repository"])
async def test_all_that_hold_the_letters_come_before_what_only_fits(letters):
    every = await found(letters, "substring")
    holding = {tool.short for tool in TOOLS if letters in f"{tool.name} {tool.words}".lower()}

    assert set(every[: len(holding)]) == holding


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("create issue", ["createIssue", "list_issues"], id="parts-of-a-name"),
        pytest.param("issues list", ["list_issues", "createIssue"], id="in-any-order-and-number"),
        pytest.param("how do I open an issue", ["createIssue", "list_issues"], id="how-to-do-it-is-no-question"),
        pytest.param("can you open an issue", ["createIssue", "list_issues"], id="nor-is-a-wish"),
        pytest.param("milestone", ["list_issues"], id="parameters"),
        pytest.param("send something to a channel", ["post"], id="a-sentence"),
        pytest.param("raise a ticket", ["createIssue", "list_issues"], id="other-words"),
        pytest.param("the chanel", ["post"], id="a-letter-too-few"),
        pytest.param("serach code", ["search_code"], id="two-letters-swapped"),
        pytest.param("+list issue", ["list_issues"], id="a-word-that-the-name-needs"),
        pytest.param("+slack issue", ["post"], id="a-server-that-the-name-needs"),
        pytest.param("+weather issue", [], id="a-word-that-no-name-has"),
        pytest.param("chann", ["post"], id="a-part-of-a-word-where-no-whole-one-fits"),
        pytest.param("weather", [], id="nothing"),
        pytest.param("?!", [], id="no-words"),
        pytest.param("a", [], id="a-word-that-says-nothing"),
        pytest.param("the one of them", [], id="only-such-words"),
    ],
)
async def test_the_best_fit_comes_first(query, expected):
    assert await found(query, "ranked") == expected


async def test_two_words_are_the_one_that_a_tool_has_for_them():
    registry = prepared(tools=[mcp("maps", "timezone", "For coordinates."), mcp("dns", "zone_times", "All zones.")])

    assert [one.name for one in await registry.catalog.search("time zone of a place", how="ranked")][:1] == ["timezone"]


async def test_ties_are_in_the_order_of_names_and_eight_are_enough():
    registry = prepared("codex", [mcp("x", f"same_{letter}", "Alike.") for letter in "jihgfedcba"])
    every = [one.name for one in await registry.catalog.search("same", how="ranked")]

    assert every == [f"mcp__x__same_{letter}" for letter in "abcdefgh"]


@pytest.mark.parametrize("how", ["substring", "ranked"])
async def test_no_more_are_loaded_than_were_asked_for(how):
    registry = prepared()
    before = names(registry)
    (one,) = await registry.catalog.search("issue", how=how, limit=1)

    assert names(registry) == [*before, one.name]
    assert registry.resolve(one.name).face.schema == one.schema


async def test_what_was_found_before_is_found_again():
    registry = prepared()
    first, second = [await registry.catalog.search("issue", how="substring") for _ in range(2)]

    assert first == second != []


async def test_servers_that_were_never_listed_are_asked_first():
    registry = session("wayland")

    async def bring() -> None:
        registry.bring("late", [mcp("late", "forecast", "Tell the weather.")])

    registry.before_search = bring

    assert [one.name for one in await registry.catalog.search("weather", how="ranked")] == ["forecast"]


async def test_what_the_session_may_not_use_is_not_found():
    registry = prepared()
    registry.permits = lambda face: "list" not in face.name
    (one,) = await registry.catalog.search("issue", how="substring")

    assert one.name == "createIssue"
    assert "list_issues" not in names(registry)


async def test_only_deferred_tools_are_found():
    registry = prepared()
    registry.bring("custom", [Brought("issue_counter"), Brought("hidden_issues", exposure="hidden")])

    assert "issue_counter" not in [one.name for one in await registry.catalog.search("issue", how="substring")]
    assert "hidden_issues" not in [one.name for one in await registry.catalog.search("hidden", how="ranked")]


async def test_the_words_are_gathered_again_only_after_a_change():
    registry = prepared()
    await registry.catalog.search("issue", how="ranked")
    index = registry.catalog._kept.index(registry.deferred)
    await registry.catalog.search("code", how="ranked")
    same = registry.catalog._kept.index(registry.deferred)
    registry.bring("more", [mcp("more", "tool")])
    await registry.catalog.search("code", how="ranked")

    assert index is same
    assert registry.catalog._kept.index(registry.deferred) is not index


async def test_changing_what_was_found_changes_no_tool():
    registry = prepared()
    (one,) = await registry.catalog.search("search_code", how="substring")
    one.schema["properties"].clear()

    assert registry.resolve("search_code").face.schema["properties"]


@given(st.text(max_size=60), st.sampled_from(["substring", "ranked"]))
async def test_whatever_is_looked_for_the_answer_is_some_of_the_tools(query, how):
    every = {one.name for one in await prepared().catalog.search(query, how=how)}

    assert every <= {"search_code", "createIssue", "list_issues", "post"}
    if how == "substring" and _parse_query(query):
        assert every >= {t.short for t in TOOLS if query and query.lower() in f"{t.name}\n{t.words}".lower()}
