"""Names: which tool a name means, what is said about a name that means none, and what a definition holds."""

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.arguments.schema import Schema
from ferrule.core.errors import BadArguments, ConfigError, UnknownTool
from ferrule.core.tool import AnyTool, Args, Context, Face, Source, Tool
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.registry import Registry
from ferrule.registry.entry import Later, plain_face
from ferrule.registry.foreign import Family
from ferrule.tools import BUILTIN, load


class Plain(Tool[Args, str]):
    """A tool with nothing but a name."""

    args = Args
    words = "Do nothing."

    def __init__(self, name: str, *, source: Source = "builtin", timed: bool = True) -> None:
        self.name = name
        self.source = source
        self.timed = timed

    async def run(self, args: Args, ctx: Context) -> str:
        return "done"


def face(tool: str, name: str, **more: Any) -> Face:
    return Face(tool=tool, name=name, schema={"type": "object", "properties": {}}, words="Words.", **more)


def amp(*more: AnyTool) -> Registry:
    """What an engine that speaks Amp builds."""
    dialect = load_dialect("amp")
    known = [Later(name, functools.partial(load, name)) for name in BUILTIN]
    return Registry([*known, *more], dialect.faces, dialect.aliases, others)


def others() -> list[Family]:
    families = (load_dialect(name) for name in FAMILIES if name != "amp")
    return [Family(family.name, family.faces, family.aliases) for family in families]


AMP = (
    "Read, edit_file, create_file, Bash, glob, Grep, delete_file, undo_edit, format_file, Check, task_list, Task, "
    "finder, oracle, librarian, kraken, web_search, read_web_page, read_thread, find_thread, get_diagnostics"
)


@pytest.mark.parametrize(
    ("tools", "faces", "aliases", "message"),
    [
        pytest.param(["a", "a"], [], {}, "Two tools are called a.", id="two-tools"),
        pytest.param(
            ["a", "b"], [face("a", "Same"), face("b", "Same")], {}, "Two tools are called Same", id="two-faces"
        ),
        pytest.param(["a"], [face("a", "A"), face("a", "A")], {}, "Two tools are called A", id="one-face-twice"),
        pytest.param(
            ["a", "b"],
            [face("a", "A"), face("b", "B", aliases=("A",))],
            {},
            "A means both A and B",
            id="face-and-alias",
        ),
        pytest.param(
            ["a", "b"],
            [face("a", "A", aliases=("x",)), face("b", "B", aliases=("x",))],
            {},
            "x means both A and B",
            id="two-aliases",
        ),
        pytest.param(
            ["a", "b"], [face("a", "A"), face("b", "B")], {"A": "B"}, "A means both A and B", id="alias-over-a-face"
        ),
        pytest.param(["a", "A"], [face("a", "A")], {}, "Two tools are called A", id="tool-named-like-a-face"),
    ],
)
def test_a_name_that_is_given_twice_is_an_error_at_build(tools, faces, aliases, message):
    with pytest.raises(ConfigError, match=message):
        Registry([Plain(name) for name in tools], faces, aliases)


def test_a_duplicate_is_found_before_any_tool_is_loaded():
    def burst() -> AnyTool:
        raise AssertionError("loaded")

    with pytest.raises(ConfigError, match="Two tools are called a"):
        Registry([Later("a", burst), Later("a", burst)], [], {})


def test_a_tool_is_loaded_when_it_is_first_called_and_only_once():
    loads: list[str] = []

    def make() -> AnyTool:
        loads.append("a")
        return Plain("a")

    registry = Registry([Later("a", make)], [face("a", "A")], {})
    before = list(loads)
    first, second = registry.resolve("A").tool, registry.resolve("a").tool

    assert (before, loads, first is second) == ([], ["a"], True)


@pytest.mark.contract("registry.aliases", "alias.Read", "alias.read", "alias.read_file", "alias.Write", "alias.write")
@pytest.mark.contract("alias.write_file", "alias.Edit", "alias.edit", "alias.run_terminal_command")
@pytest.mark.contract("alias.Delete", "alias.delete")
@each_row(
    ("alias", "name", "tool"),
    [
        pytest.param("Read", "Read", "read", id="Read"),
        pytest.param("read", "Read", "read", id="read"),
        pytest.param("read_file", "Read", "read", id="read_file"),
        pytest.param("Write", "create_file", "write", id="Write"),
        pytest.param("write", "create_file", "write", id="write"),
        pytest.param("write_file", "create_file", "write", id="write_file"),
        pytest.param("Edit", "edit_file", "edit", id="Edit"),
        pytest.param("edit", "edit_file", "edit", id="edit"),
        pytest.param("Delete", "delete_file", "delete", id="Delete"),
        pytest.param("delete", "delete_file", "delete", id="delete"),
        pytest.param("run_terminal_command", "run_terminal_command", "shell", id="run_terminal_command"),
    ],
)
def test_every_alias_of_the_seed_means_what_the_seed_says(alias, name, tool):
    registry = amp()
    found = registry.resolve(alias)

    assert (found.face.name, found.tool.name, registry.canonical(alias)) == (name, tool, tool)


def test_an_alias_of_a_tool_that_is_not_there_says_what_it_means_and_what_there_is():
    registry = Registry([Plain("a")], [face("a", "A")], {"Gone": "gone_tool"})

    with pytest.raises(UnknownTool) as caught:
        registry.resolve("Gone")

    assert caught.value.message == "Gone means gone_tool, which is not among this session's tools: A."
    assert caught.value.code == "unknown-tool"


@each_row("name", sorted(BUILTIN))
def test_a_canonical_name_passes(name):
    assert amp().resolve(name).tool.name == name


def test_a_canonical_name_means_the_face_that_is_advertised():
    assert amp().resolve("shell").face.name == "Bash"


def test_a_word_that_a_family_uses_for_something_else_stays_the_family_s():
    registry = Registry([Plain("read"), Plain("look")], [face("read", "look_at"), face("look", "read")], {})

    assert [registry.resolve(name).tool.name for name in ("read", "look", "look_at")] == ["look", "look", "read"]


@pytest.mark.contract("registry.aliases")
@pytest.mark.parametrize("name", ["command", "cmd"])
def test_an_alias_may_have_another_schema(name):
    found = amp().resolve("run_terminal_command")
    fitted = Schema(found.face.schema).fit({name: "make", "cwd": "/src"})

    assert found.face.canonical(fitted.values) == {
        "command": "make",
        "cwd": "/src",
        "tail_chars": 50_000,
        "tail_bytes": 100_000,
    }


@pytest.mark.parametrize(
    ("given_input", "message"),
    [
        pytest.param({}, "one of command, cmd is required", id="neither"),
        pytest.param({"cmd": "ls", "command": "rm -rf x"}, "exactly one of the forms", id="both"),
    ],
)
def test_the_other_schema_wants_the_command_once(given_input, message):
    with pytest.raises(BadArguments, match=message):
        Schema(amp().resolve("run_terminal_command").face.schema).fit(given_input)


def test_an_alias_with_its_own_schema_is_accepted_but_not_advertised():
    shown = [face.name for face in amp().visible_faces()]

    assert ", ".join(shown) == AMP


@each_row(
    ("name", "hint"),
    [
        pytest.param("raed", "Did you mean Read?", id="swapped"),
        pytest.param("READ", "Did you mean Read?", id="upper-case"),
        pytest.param("editfile", "Did you mean edit_file", id="missing-underscore"),
        pytest.param("bsah", "Did you mean Bash", id="lower-case"),
        pytest.param("shel", "Did you mean Bash?", id="canonical-name-is-near"),
        pytest.param("Globb", "Did you mean glob?", id="one-letter-more"),
        pytest.param("run_terminal_cmd", "Did you mean run_terminal_command?", id="hidden-face"),
        pytest.param("zzz", f"The tools are {AMP}.", id="nothing-near"),
        pytest.param("", f"The tools are {AMP}.", id="empty"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, hint):
    with pytest.raises(UnknownTool) as caught:
        amp().resolve(name)

    assert caught.value.message.startswith(f"There is no tool called {name!r}. {hint}")


def test_a_name_without_end_is_not_said_back_whole():
    with pytest.raises(UnknownTool) as caught:
        amp().resolve("\x1b[2J" + "x" * 1_000_000)

    assert len(caught.value.message) < 400
    assert caught.value.message.isprintable()


@given(st.text(max_size=200))
def test_whatever_is_called_is_found_or_answered_with_a_hint(name):
    registry = amp()
    if registry.canonical(name) in BUILTIN:
        assert registry.resolve(name).tool.name == registry.canonical(name)
        return
    with pytest.raises(UnknownTool) as caught:
        registry.resolve(name)

    assert caught.value.message.endswith((".", "?"))


def test_the_canonical_name_of_something_unknown_is_itself():
    assert amp().canonical("mcp__github__search") == "mcp__github__search"


@pytest.mark.contract("registry.spec", "registry.source")
def test_a_spec_holds_name_description_schema_and_source():
    found = amp().resolve("Read")

    assert found.spec() == {
        "name": "Read",
        "description": found.face.words,
        "inputSchema": found.face.schema,
        "source": "builtin",
    }


@pytest.mark.contract("registry.disable-timeout", "timeout.bash")
def test_the_shell_says_that_it_has_no_time_limit():
    registry = amp()
    untimed = {face.name for face in registry.visible_faces() if "meta" in registry.resolve(face.name).spec()}

    assert registry.resolve("Bash").spec()["meta"] == {"disableTimeout": True}
    assert untimed == {"Bash", "Check", "Task", "finder", "oracle", "librarian", "kraken"}


def test_a_face_s_own_aliases_are_in_its_spec():
    registry = Registry([Plain("a")], [face("a", "A", aliases=("AA", "aaa"))], {})

    assert registry.resolve("aaa").spec()["aliases"] == ["AA", "aaa"]


@pytest.mark.contract("registry.source", "registry.prefix-mcp", "registry.prefix-toolbox")
@pytest.mark.parametrize(
    ("name", "source"),
    [
        pytest.param("mcp__github__search_code", "mcp", id="mcp"),
        pytest.param("tb__custom_script", "toolbox", id="toolbox"),
        pytest.param("count_files", "builtin", id="builtin"),
    ],
)
def test_a_tool_from_elsewhere_keeps_its_name_and_its_source(name, source):
    registry = amp(Plain(name, source=source))
    spec = registry.resolve(name).spec()

    assert (spec["name"], spec["source"]) == (name, source)
    assert registry.visible_faces()[-1].name == name


@pytest.mark.contract("registry.minimal-tool")
def test_a_tool_that_no_family_knows_is_shown_as_it_describes_itself():
    tool = Plain("count_files")

    assert plain_face(tool).definition() == {
        "name": "count_files",
        "description": "Do nothing.",
        "inputSchema": {"type": "object", "properties": {}},
    }


def test_a_face_without_its_tool_is_left_out():
    registry = Registry([Plain("a")], [face("a", "A"), face("gone", "Gone")], {})

    assert [face.name for face in registry.visible_faces()] == ["A"]
    with pytest.raises(UnknownTool):
        registry.resolve("Gone")


@pytest.mark.parametrize("name", ["Read", "read", "read_file", "Write", "write_file", "run_terminal_command"])
def test_a_tool_of_the_user_s_cannot_take_a_name_of_the_family(name):
    with pytest.raises(ConfigError, match=name):
        amp(Plain(name))


def test_changing_a_definition_changes_nothing_but_the_definition():
    registry = amp()
    registry.visible_faces()[0].definition()["inputSchema"]["properties"]["path"]["type"] = "integer"
    registry.resolve("Read").spec()["inputSchema"]["required"].clear()

    assert registry.visible_faces()[0].definition()["inputSchema"]["properties"]["path"]["type"] == "string"
    assert registry.resolve("Read").face.schema["required"] == ["path"]
