"""Hearing under attack: calls that are ambiguous, mixed, wrong or full of what nobody knows."""

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule import Call, Engine
from ferrule.arguments.schema import Schema
from ferrule.core.errors import UnknownTool
from ferrule.core.tool import Face
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.registry import Registry
from ferrule.registry.entry import Later
from ferrule.registry.foreign import Family, ForeignFaces
from ferrule.tools import BUILTIN, load


@functools.cache
def registry(name: str) -> Registry:
    dialect = load_dialect(name)
    known = [Later(tool, functools.partial(load, tool)) for tool in BUILTIN]
    families = [load_dialect(other) for other in FAMILIES if other != name]
    return Registry(
        known, dialect.faces, dialect.aliases, lambda: [Family(one.name, one.faces, one.aliases) for one in families]
    )


def completed(session: str, name: str, values: dict[str, Any]) -> dict[str, Any]:
    """The canonical arguments that the tool would get."""
    heard = registry(session).hear(name, dict(values))
    fitted = Schema(heard.spoken.schema).fit(heard.values)
    return heard.face.completed(heard.spoken.heard(fitted.values))


def given_by(session: str, name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Of those, the ones that the caller said."""
    heard = registry(session).hear(name, dict(values))
    return heard.spoken.heard(Schema(heard.spoken.schema).fit(heard.values).values)


@each_row(
    ("session", "name", "values", "canonical"),
    [
        pytest.param(
            "claude",
            "edit_file",
            {"path": "a", "old_str": "x", "new_str": "y", "why": "z"},
            {"path": "a", "old": "x", "new": "y"},
            id="something-unknown-in-another-family-s-call",
        ),
        pytest.param(
            "claude",
            "run_terminal_command",
            {"cmd": "ls", "why": "z"},
            {"command": "ls"},
            id="something-unknown-where-the-schema-is-open",
        ),
        pytest.param(
            "gemini",
            "read_file",
            {"absolute_path": "a", "offset": 5, "limit": 2},
            {"path": "a", "offset": 5, "limit": 2},
            id="older-names-are-not-mistaken-for-other-numbers",
        ),
        pytest.param(
            "gemini",
            "read_file",
            {"absolute_path": "a", "start_line": 5, "end_line": 6},
            {"path": "a", "offset": 5, "limit": 2},
            id="an-older-name-among-new-ones",
        ),
        pytest.param(
            "amp", "Read", {"file_path": "a", "offset": 5}, {"path": "a", "offset": 5}, id="the-first-family-s-numbers"
        ),
        pytest.param(
            "opencode",
            "bash",
            {"command": "ls", "seconds": 5},
            {"command": "ls", "seconds": 5},
            id="canonical-seconds-stay-seconds",
        ),
        pytest.param(
            "opencode",
            "edit",
            {"path": "a", "old_string": "x", "newText": "y", "replace_all": True},
            {"path": "a", "old": "x", "new": "y", "everywhere": True},
            id="a-mixture-of-four",
        ),
        pytest.param(
            "gemini",
            "replace",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            {"path": "a", "old": "x", "new": "y", "everywhere": True},
            id="an-own-name-with-claude-s-parameters",
        ),
        pytest.param(
            "amp",
            "Bash",
            {"cmd": "ls", "cwd": ".", "timeout": 5000},
            {"command": "ls", "cwd": ".", "seconds": 5.0},
            id="the-unit-of-a-family-that-knows-all-of-it",
        ),
        pytest.param("codex", "shell", {"command": "ls -l"}, {"command": "ls -l"}, id="a-line-where-a-list-is-usual"),
        pytest.param(
            "codex", "shell_command", {"command": ["ls", "-l"]}, {"command": "ls -l"}, id="a-list-where-a-line-is-usual"
        ),
        pytest.param(
            "gemini", "read_many_files", {"include": "a"}, {"include": ["a"]}, id="a-string-that-is-mended-at-home"
        ),
        pytest.param(
            "claude", "Read", {"file_path": "a", "offset": None}, {"path": "a"}, id="nothing-where-nothing-is-needed"
        ),
        pytest.param(
            "pi",
            "grep",
            {"pattern": "x", "-i": True},
            {"pattern": "x", "case_sensitive": False},
            id="an-own-name-mixed",
        ),
    ],
)
def test_a_call_is_understood_as_well_as_it_can_be(session, name, values, canonical):
    assert given_by(session, name, values) == canonical


@pytest.mark.parametrize(
    ("session", "name", "values", "note"),
    [
        pytest.param("amp", "Read", {"path": "a"}, "", id="own-words"),
        pytest.param("pi", "edit", {"path": "a", "oldText": "x", "newText": "y"}, "", id="own-older-words"),
        pytest.param(
            "claude", "read", {"path": "a", "limit": 3}, "read was understood as Read: path as file_path.", id="names"
        ),
        pytest.param(
            "codex",
            "Grep",
            {"pattern": "x", "output_mode": "content"},
            "Grep was understood as grep_files. output_mode has no effect in this session.",
            id="what-this-session-does-not-let-anybody-choose",
        ),
        pytest.param(
            "pi",
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y"},
            "Edit was understood as edit: file_path as path, old_string as oldText, new_string as newText.",
            id="answered-by-an-older-face-under-the-name-that-is-known",
        ),
        pytest.param(
            "claude",
            "run_terminal_command",
            {"cmd": "ls", "why": "z"},
            "run_terminal_command was understood as Bash: cmd as command. why: unknown, and ignored.",
            id="unknown",
        ),
    ],
)
def test_what_was_understood_is_said(session, name, values, note):
    assert registry(session).hear(name, values).note == note


@pytest.mark.parametrize(
    ("session", "name", "values", "message"),
    [
        pytest.param("gemini", "list_directory", {}, "dir_path: required", id="nothing-of-an-own-call"),
        pytest.param("gemini", "write_file", {"file_path": "a"}, "content: required", id="half-of-an-own-call"),
        pytest.param("claude", "edit_file", {"path": "a", "old_str": "x"}, "new_string: required", id="half-of-a-call"),
        pytest.param("amp", "Read", {"path": ["a"]}, "path: ", id="a-wrong-type"),
        pytest.param("claude", "create_file", {"path": {}, "content": "x"}, "path: ", id="a-wrong-type-elsewhere"),
    ],
)
async def test_what_is_missing_or_wrong_is_said_by_its_name(tmp_path, session, name, values, message):
    async with Engine(tmp_path, dialect=session) as engine:
        (reply,) = await engine.run([Call(name, values)])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"
    assert reply.text.startswith(message)


ROWS = {
    "shell": ["flags", "tail_chars", "tail_bytes", "head_chars", "most_seconds", "apart"],
    "read": ["refuse_bytes", "most_bytes", "usual_lines", "most_lines", "line_bytes", "line_chars", "folders"],
    "edit": ["read_first", "may_create"],
    "multi_edit": ["read_first", "in_turn"],
    "write": ["read_first", "final_newline", "name_guidance"],
    "notebook_edit": ["read_first"],
}
"""What families leave to the engine."""


@pytest.mark.parametrize("session", FAMILIES)
@pytest.mark.parametrize("tool", sorted(ROWS))
def test_what_is_the_engine_s_to_say_is_never_a_caller_s(session, tool):
    faces = [face for family in FAMILIES for face in load_dialect(family).faces if face.tool == tool]
    canonical = {"path": "a", "old": "x", "new": "y", "content": "z", "command": "ls", "edits": [], "source": "s"}
    fields = load(tool).args.__struct_fields__
    plain = {name: value for name, value in canonical.items() if name in fields}
    spoken = [plain, *(face.advertised(plain) for face in faces if face.name != "edit_more")]
    for name in {tool, *(face.name for face in faces)}:
        for values in spoken:
            for row in ROWS[tool]:
                heard = registry(session).hear(name, {**values, row: ["-c", "x"]})
                assert row not in heard.spoken.schema["properties"]
                assert row not in heard.values or not OPEN.intersection(heard.spoken.schema)


OPEN = {"oneOf", "anyOf", "allOf", "$ref", "patternProperties"}
"""With these, a schema lets through what it does not know."""


def test_a_name_that_this_family_has_promised_is_not_taken_for_another_s():
    promised = Face(tool="not_here_yet", name="bash", schema={"type": "object", "properties": {}}, words="Words.")
    other = load_dialect("pi")
    known = [Later(tool, functools.partial(load, tool)) for tool in BUILTIN]
    here = Registry(known, [promised], {}, lambda: [Family("pi", other.faces, {})])

    with pytest.raises(UnknownTool, match="bash is a tool that this version does not have yet"):
        here.hear("bash", {"command": "ls"})


def test_the_policy_of_a_session_holds_for_tools_that_it_does_not_know():
    edits = {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}

    assert [completed(session, "edit", edits).get("read_first", False) for session in FAMILIES] == [
        {"amp": False, "claude": True, "wayland": True, "opencode": True}.get(session, False) for session in FAMILIES
    ]


@each_row("session", FAMILIES)
@each_row(
    ("name", "values", "in_turn"),
    [
        pytest.param("edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}, False, id="pi"),
        pytest.param(
            "MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}, True, id="claude"
        ),
    ],
)
def test_edits_are_made_as_the_family_means_them_whose_words_they_are_in(session, name, values, in_turn):
    assert completed(session, name, values)["in_turn"] is in_turn


def test_a_face_is_made_once_for_all_calls_so_that_its_schema_is_compiled_once():
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("pi", "bash", {"command": "x", "timeout": 5, "workdir": "."}),
        ("opencode", "edit", {"path": "a", "edits": []}),
        ("claude", "edit", {"path": "a", "old": "x", "new": "y"}),
        ("claude", "edit", {"path": "a", "old": "x", "new": "y", "why": 1}),
    ]
    for session, name, values in calls:
        first, second = (registry(session).hear(name, dict(values)) for _ in range(2))

        assert first.spoken is second.spoken
        assert first.face is second.face


async def test_no_call_makes_a_face_that_stays(tmp_path):
    async with Engine(tmp_path, dialect="claude") as engine:
        for number in range(20):
            await engine.run([Call("read", {"path": "a", f"junk{number}": number})])
        before = len(engine.registry._hearing._known)
        for number in range(20):
            await engine.run([Call("read", {"path": "a", f"more{number}": number})])

        assert len(engine.registry._hearing._known) == before


@given(
    st.sampled_from(FAMILIES),
    st.sampled_from(sorted({face.name for family in FAMILIES for face in load_dialect(family).faces})),
    st.dictionaries(
        st.sampled_from(["path", "file_path", "old", "oldText", "edits", "command", "timeout", "x", "-i", "offset"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
        max_size=4,
    ),
)
def test_whatever_comes_is_heard_the_same_way_twice_or_refused_with_a_reason(session, name, values):
    if registry(session).canonical(name) not in BUILTIN:
        with pytest.raises(UnknownTool, match="does not have yet"):
            registry(session).hear(name, values)
        return
    first = registry(session).hear(name, dict(values))
    second = registry(session).hear(name, dict(values))

    assert (first.face, first.spoken, first.values, first.note) == (
        second.face,
        second.spoken,
        second.values,
        second.note,
    )
    assert first.tool is second.tool
    assert len(first.values) <= len(values)


def test_without_other_families_a_call_is_heard_all_the_same():
    schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
    face = Face(tool="read", name="Look", schema=schema, words="Words.", params={"file": "path"})
    here = Registry([Later("read", functools.partial(load, "read"))], [face], {})

    for values in ({"file": "a"}, {"path": "a"}, {"file_path": "a"}):
        heard = here.hear("Look", values)

        assert heard.spoken.heard(heard.values) == {"path": "a"}
    assert ForeignFaces(tuple, {"read"}).find_by_name("Look") == []
