"""Calls in other families' words: whose they are, what they mean here, and what is said about it."""

import functools

import pytest
from tests.rows import each_row

from ferrule import Call, Engine, tool
from ferrule.core.errors import UnknownTool
from ferrule.dialects import COMING, FAMILIES, load_dialect
from ferrule.registry import Registry
from ferrule.registry.entry import Later
from ferrule.registry.foreign import Family
from ferrule.tools import BUILTIN, load


def registry(name: str) -> Registry:
    dialect = load_dialect(name)
    known = [Later(tool, functools.partial(load, tool)) for tool in BUILTIN]
    families = [load_dialect(other) for other in FAMILIES if other != name]
    return Registry(
        known, dialect.faces, dialect.aliases, lambda: [Family(one.name, one.faces, one.aliases) for one in families]
    )


@each_row("session", FAMILIES)
@each_row("family", FAMILIES)
def test_every_name_of_every_family_is_understood_in_every_session(session, family):
    here = registry(session)
    for face in load_dialect(family).faces:
        if face.tool in COMING:
            with pytest.raises(UnknownTool, match="does not have yet"):
                here.resolve(face.name)
        else:
            assert here.resolve(face.name).tool.name in BUILTIN


@each_row("session", FAMILIES)
@each_row("canonical", sorted(BUILTIN))
def test_a_canonical_name_is_understood_in_every_session_unless_it_means_something_else_there(session, canonical):
    here = registry(session)
    own = {face.name: face.tool for face in load_dialect(session).faces}

    assert here.resolve(canonical).tool.name == own.get(canonical, here.resolve(canonical).tool.name)


@pytest.mark.parametrize(
    ("session", "name", "values", "tool", "spoken", "note"),
    [
        pytest.param(
            "amp",
            "edit_file",
            {"path": "a", "old_str": "x", "new_str": "y"},
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            "",
            id="own-words",
        ),
        pytest.param(
            "amp",
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y"},
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            "Edit was understood as edit_file: file_path as path, old_string as old_str, new_string as new_str.",
            id="an-own-alias-with-another-family-s-parameters",
        ),
        pytest.param(
            "claude",
            "create_file",
            {"path": "a", "content": "x"},
            "write",
            {"path": "a", "content": "x"},
            "create_file was understood as Write: path as file_path.",
            id="another-family-s-name",
        ),
        pytest.param(
            "claude",
            "Read",
            {"path": "a", "read_range": [3, 5]},
            "read",
            {"path": "a", "offset": 3, "limit": 3},
            "Read was given parameters of another dialect: path as file_path.",
            id="rearranged",
        ),
        pytest.param(
            "claude",
            "undo_edit",
            {"path": "a"},
            "undo",
            {"path": "a"},
            "undo_edit is a tool of the amp dialect, and was run as that.",
            id="a-tool-that-this-family-does-not-have",
        ),
        pytest.param(
            "amp",
            "edit_file",
            {"path": "a", "old_string": "x", "newText": "y"},
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            "edit_file was given parameters of another dialect: old_string as old_str, newText as new_str.",
            id="a-mixture",
        ),
        pytest.param(
            "claude",
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            "",
            id="canonical-words",
        ),
    ],
)
def test_a_call_is_heard_in_whichever_words_it_comes(session, name, values, tool, spoken, note):
    heard = registry(session).hear(name, values)

    assert heard.tool.name == tool
    assert heard.spoken.heard(heard.values) == spoken
    assert heard.note == note


def test_the_session_s_own_rules_hold_for_a_call_in_other_words(tmp_path):
    heard = registry("claude").hear("edit_file", {"path": "a", "old_str": "x", "new_str": "y"})

    assert heard.face.completed(heard.spoken.heard(heard.values))["read_first"] is True


def test_a_string_goes_to_whoever_takes_a_string():
    heard = registry("amp").hear("shell", {"command": "ls -l"})

    assert heard.spoken.heard(heard.values)["command"] == "ls -l"


async def test_a_tool_that_the_user_gave_is_never_taken_for_another_family_s(tmp_path):
    @tool
    def replace(text: str, amount: int) -> str:
        """Do something of the user's own."""
        return f"{text} {amount}"

    async with Engine(tmp_path, tools=[replace], ask=lambda question: True) as engine:
        mistaken = {"file_path": "a", "instruction": "", "old_string": "x", "new_string": "y"}
        replies = await engine.run([Call("replace", mistaken), Call("replace", {"text": "a", "amount": 2})])

    assert [reply.status for reply in replies] == ["error", "done"]
    assert "text" in replies[0].text
    assert replies[1].result == "a 2"


def test_names_of_all_families_do_for_a_mode(tmp_path):
    from ferrule import ModeConfig

    engine = Engine(tmp_path, dialect="claude", mode=ModeConfig(include_tools=("edit_file", "Read")))

    assert [definition["name"] for definition in engine.definitions()] == ["Read", "Edit"]
