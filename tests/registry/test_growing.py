"""A registry that grows: what replaces what, what keeps its name, and that nothing is half done."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.registry.brought import Brought, mcp, names, session
from tests.rows import each_row

from ferrule.core.errors import ConfigError, ToolFailure, UnknownTool
from ferrule.dialects import FAMILIES
from ferrule.registry.foreign import FamilyNames
from ferrule.tools import BUILTIN


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_what_is_brought_is_shown_behind_the_family_s_own():
    registry = session("amp")
    before = names(registry)

    assert registry.bring("custom", [Brought("count")]) == []
    assert names(registry) == [*before, "count"]
    assert registry.resolve("count").tool.source == "custom"
    assert registry.canonical("count") == "count"


def test_a_source_that_brings_again_replaces_what_it_brought():
    registry = session("amp")
    registry.bring("custom", [Brought("one"), Brought("two")])
    registry.bring("custom", [Brought("two"), Brought("three")])

    assert names(registry)[-2:] == ["two", "three"]
    assert not registry.knows("one")


def test_dropping_a_source_gives_everything_back():
    registry = session("claude")
    before, built_in = names(registry), registry.resolve("Bash").tool
    registry.bring("custom", [Brought("Bash"), Brought("count")])
    registry.drop("custom")
    registry.drop("never")

    assert names(registry) == before
    assert registry.resolve("Bash").tool is built_in
    assert not registry.knows("count")


def test_one_of_the_user_s_own_stands_in_a_built_in_tool_s_place():
    registry = session("claude")
    before = names(registry)
    registry.bring("custom", [Brought("Bash", "My own.")])
    found = registry.resolve("Bash")

    assert names(registry) == before
    assert (found.tool.source, found.face.words) == ("custom", "My own.")


@pytest.mark.parametrize(
    ("family", "name", "others"),
    [
        pytest.param("claude", "Bash", ["shell", "bash", "run_shell_command", "shell_command"], id="other-families"),
        pytest.param("amp", "edit_file", ["Edit", "edit", "replace"], id="own-aliases"),
        pytest.param("ah", "read", ["Read", "read_file"], id="its-canonical-name"),
        pytest.param("pi", "edit", ["multi_edit", "MultiEdit", "Edit", "edit_text"], id="older-arrangements"),
        pytest.param("claude", "Bash", ["exec_command", "shell_session"], id="another-family-s-tool-for-the-same"),
        pytest.param("claude", "undo", ["undo_edit"], id="one-that-the-family-has-no-face-for"),
    ],
)
def test_no_name_leads_around_what_took_a_built_in_tool_s_place(family, name, others):
    registry = session(family)
    registry.bring("custom", [Brought(name)])

    for other in (name, *others):
        assert registry.resolve(other).tool.source == "custom", other
        heard = registry.hear(other, {"command": "ls", "path": "a", "text": "x", "oldText": "y", "newText": "z"})
        assert heard.tool.source == "custom", other


@each_row("family", FAMILIES)
def test_rules_about_the_built_in_tool_bind_what_took_its_place(family):
    registry = session(family)
    face = next(face for face in registry.visible_faces() if face.tool in {"edit", "multi_edit", "patch"})
    registry.bring("custom", [Brought(face.name)])

    assert registry.canonical(face.name) == face.tool


def test_a_rule_binds_also_a_tool_that_bears_another_family_s_name():
    registry = session("gemini")
    registry.bring("custom", [Brought("Edit"), Brought("count")])
    known = FamilyNames(registry._families, registry.canonical)

    assert (known.kin("Edit"), known.kin("count"), known.kin("edit")) == ("edit", None, None)
    assert known.kin("mcp__github__search") is None


def test_a_later_custom_tool_overrides_an_earlier_one_in_place():
    registry = session("ah")
    registry.bring("user", [Brought("bash", "First."), Brought("count", "First."), Brought("last")])
    registry.bring("project", [Brought("count", "Second.")])

    assert names(registry) == ["read", "write", "edit", "bash", "count", "last"]
    assert registry.resolve("count").face.words == "Second."


@each_row(
    ("tool", "why"),
    [
        pytest.param(Brought("mcp__github__search"), "belong to servers", id="a-custom-one-under-a-server-s-name"),
        pytest.param(Brought("tb__x"), "belong to servers", id="a-custom-one-under-a-toolbox-s-name"),
        pytest.param(Brought("shell"), "can be called shell", id="the-name-that-the-sandbox-goes-by"),
        pytest.param(Brought("two words"), "without blanks", id="blanks"),
        pytest.param(Brought(""), "needs a name", id="nothing"),
        pytest.param(Brought("a\u202eb"), "printable", id="what-turns-letters-round"),
        pytest.param(Brought("mcp__a__\x1b[2J", source="mcp"), "printable", id="what-steers-a-screen"),
        pytest.param(Brought("x" * 129), "128", id="endless"),
        pytest.param(Brought("a", "\ud800"), "as JSON", id="half-a-character"),
        pytest.param(Brought("a", schema={"x": object()}), "as JSON", id="what-is-no-json"),
        pytest.param(Brought("a", schema={1j: 2}), "as JSON", id="names-that-are-no-texts"),  # type: ignore[dict-item]
        pytest.param(Brought("a", schema=[]), "an object", id="no-schema"),  # type: ignore[arg-type]
        pytest.param(Brought("a", schema=nested(5_000)), "as JSON", id="a-schema-without-end"),
        pytest.param(Brought("Read", source="mcp"), "begin with mcp__", id="a-server-s-under-a-built-in-name"),
        pytest.param(Brought("Read", source="toolbox"), "begin with tb__", id="a-toolbox-s-under-a-built-in-name"),
    ],
)
def test_what_cannot_be_taken_is_left_out_with_a_sentence(tool, why):
    registry = session("claude")
    before = names(registry)
    (warning,) = registry.bring("x", [tool])

    assert why in warning
    assert warning.endswith(".")
    assert names(registry) == before


def test_of_two_with_one_whole_name_the_first_stays_and_the_other_is_told_of():
    registry = session("claude")
    registry.bring("one", [mcp("git", "log", "First.")])
    (warning,) = registry.bring("two", [mcp("git", "log", "Second."), mcp("git", "show")])

    assert "mcp__git__log" in warning
    assert registry.resolve("mcp__git__log").face.words == "First."
    assert registry.knows("mcp__git__show")
    assert registry.bring("three", [Brought("count")]) == []
    assert registry.bring("two", [mcp("git", "log")]) == [warning]


def test_a_tool_of_the_program_s_own_is_not_replaced():
    from ferrule.registry import Registry

    registry = Registry([Brought("mine", "The program's.")], [], {})
    (warning,) = registry.bring("custom", [Brought("mine", "Another's.")])

    assert "the program that runs this session" in warning
    assert registry.resolve("mine").face.words == "The program's."


def test_nothing_is_half_done_where_something_is_no_tool():
    registry = session("claude")
    registry.bring("custom", [Brought("one")])
    before = names(registry)

    with pytest.raises(ConfigError, match="brings tools"):
        registry.bring("custom", [Brought("two"), "three"])  # type: ignore[list-item]

    assert names(registry) == before
    assert registry.knows("one")


def test_an_unchanged_tool_keeps_its_face_so_that_its_schema_is_compiled_once():
    registry = session("claude")
    registry.bring("git", [mcp("git", "log")])
    first = registry.resolve("mcp__git__log").face
    registry.bring("git", [mcp("git", "log"), mcp("git", "show")])
    second = registry.resolve("mcp__git__log").face
    registry.bring("git", [mcp("git", "log", "Other words.")])

    assert first is second
    assert registry.resolve("mcp__git__log").face is not first


def test_whoever_listens_is_told_only_when_something_changed():
    registry = session("claude")
    told: list[int] = []
    registry.on_changed = lambda: told.append(len(registry.visible_faces()))
    registry.bring("git", [mcp("git", "log")])
    registry.bring("git", [mcp("git", "log")])
    registry.offer("skill", True)
    registry.offer("skill", True)
    registry.drop("git")
    registry.drop("git")

    assert told == [21, 22, 21]


@each_row(
    ("shorts", "shown"),
    [
        pytest.param([("github", "search")], ["search"], id="alone"),
        pytest.param([("github", "search"), ("jira", "list")], ["search", "list"], id="two-names"),
        pytest.param(
            [("github", "search"), ("jira", "search")],
            ["mcp__github__search", "mcp__jira__search"],
            id="both-of-two-that-share-one",
        ),
        pytest.param([("files", "Read")], ["mcp__files__Read"], id="a-built-in-name"),
        pytest.param([("files", "read")], ["mcp__files__read"], id="a-canonical-name"),
        pytest.param([("files", "undo")], ["mcp__files__undo"], id="a-canonical-name-that-is-not-shown"),
        pytest.param([("x", "EnterPlanMode")], ["mcp__x__EnterPlanMode"], id="one-of-the-family-s"),
        pytest.param([("x", "run_shell_command")], ["mcp__x__run_shell_command"], id="another-family-s"),
        pytest.param([("x", "mcp__git__log")], ["mcp__x__mcp__git__log"], id="one-that-looks-like-a-whole-name"),
        pytest.param([("x", "count")], ["mcp__x__count"], id="the-user-s-own"),
    ],
)
def test_a_server_s_tool_has_its_short_name_only_as_long_as_nothing_else_has_it(shorts, shown):
    registry = session("wayland", defers=False)
    registry.bring("custom", [Brought("count")])
    for server, tool in shorts:
        registry.bring(server, [mcp(server, tool)])

    every = names(registry)
    assert every[every.index("count") + 1 :] == shown
    for server, tool in shorts:
        assert registry.resolve(f"mcp__{server}__{tool}").tool.name == f"mcp__{server}__{tool}"
    assert all(registry.canonical(name).startswith("mcp__") for name in shown)


def test_a_short_name_that_two_share_is_answered_with_both():
    registry = session("wayland", defers=False)
    registry.bring("github", [mcp("github", "search")])
    registry.resolve("search")
    registry.bring("jira", [mcp("jira", "search")])

    with pytest.raises(UnknownTool, match="mcp__github__search or mcp__jira__search"):
        registry.resolve("search")
    registry.drop("jira")
    assert registry.resolve("search").tool.name == "mcp__github__search"


def test_where_whole_names_are_usual_a_short_one_is_answered_with_the_whole_one():
    registry = session("claude")
    registry.bring("github", [mcp("github", "search_code")])

    with pytest.raises(UnknownTool, match="search_code is called mcp__github__search_code here"):
        registry.resolve("search_code")


def test_a_server_s_tool_never_takes_what_another_family_calls_a_built_in_one():
    registry = session("claude")
    registry.bring("files", [mcp("files", "read_file")])

    assert registry.resolve("read_file").tool.name == "read"


@each_row(
    ("disable", "gone", "there"),
    [
        pytest.param(["Bash"], ["Bash", "shell", "run_shell_command", "exec_command"], ["Read"], id="by-its-name"),
        pytest.param(["run_shell_command"], ["Bash", "shell"], ["Read"], id="by-another-family-s-name"),
        pytest.param(["builtin:Read"], ["Read", "read", "read_file"], ["Write"], id="only-the-built-in-one"),
        pytest.param(["mcp__git__*"], ["mcp__git__log"], ["Bash", "count"], id="a-server"),
        pytest.param(["log"], ["mcp__git__log"], ["Bash"], id="a-short-name"),
        pytest.param(["count"], ["count"], ["mcp__git__log"], id="the-user-s-own"),
        pytest.param(["builtin:count"], [], ["count"], id="not-the-user-s-own"),
        pytest.param(["*"], ["Bash", "Read", "count", "mcp__git__log"], [], id="everything"),
    ],
)
def test_what_the_settings_switch_off_is_not_there_under_any_name(disable, gone, there):
    registry = session("claude", disable=disable)
    registry.bring("custom", [Brought("count")])
    registry.bring("git", [mcp("git", "log")])

    assert [name for name in gone if registry.knows(name)] == []
    assert [name for name in there if not registry.knows(name)] == []
    for name in gone:
        with pytest.raises(UnknownTool):
            registry.resolve(name)


def test_what_is_switched_off_says_so():
    with pytest.raises(UnknownTool, match=r"Bash is switched off in this session by the setting tools\.disable"):
        session("claude", disable=["Bash"]).resolve("Bash")
    with pytest.raises(UnknownTool, match="run_shell_command is switched off"):
        session("claude", disable=["Bash"]).resolve("run_shell_command")


def test_a_glob_without_end_is_a_mistake_in_the_settings():
    with pytest.raises(ConfigError, match="is no glob"):
        session("claude", disable=["{a,b}" * 40])


def test_with_the_built_in_one_switched_off_the_user_s_own_has_the_name():
    registry = session("claude", disable=["builtin:Bash"])
    registry.bring("custom", [Brought("Bash")])

    assert registry.resolve("Bash").tool.source == "custom"
    assert FamilyNames(registry._families, registry.canonical).kin("Bash") == "shell"


steps = st.lists(
    st.tuples(
        st.sampled_from(["custom", "git", "jira", "box"]),
        st.lists(st.sampled_from(["Bash", "search", "count", "read"]), max_size=3, unique=True),
    ),
    max_size=6,
)


@given(steps, st.sampled_from(["wayland", "claude"]))
def test_however_sources_come_and_go_every_name_means_one_tool_and_the_order_does_not_matter(steps, family):
    registry, again = session(family), session(family)
    for source, tools in steps:
        registry.bring(source, [made(source, tool) for tool in tools])
    last = dict(steps)
    for source in sorted(last, reverse=True):
        again.bring(source, [made(source, tool) for tool in last[source]])

    assert sorted(names(registry)) == sorted(names(again))
    assert len(names(registry)) == len(set(names(registry)))
    for source, tools in last.items():
        for tool in tools:
            name = made(source, tool).name
            try:
                assert registry.resolve(name).tool.source == made(source, tool).source
            except ToolFailure as failure:
                assert failure.code == "not-loaded"  # noqa: PT017 - either is right
                assert registry.resolve(name).tool.name == name
    for name in BUILTIN:
        assert registry.knows(name)
    for source in last:
        registry.drop(source)
    assert names(registry) == names(session(family))


def made(source: str, tool: str) -> Brought:
    if source == "custom":
        return Brought(tool)
    return Brought(f"tb__{tool}", source="toolbox") if source == "box" else mcp(source, tool)
