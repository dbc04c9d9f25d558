"""Every dialect: what is shown can be read back, no two faces share a name, and what is not there says so."""

import json

import msgspec
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.catalog import catalog
from tests.golden import Golden
from tests.rows import each_row
from tests.strategies import advertised_arguments, texts

from ferrule import Engine
from ferrule.arguments.schema import Schema
from ferrule.core.errors import BadArguments, ConfigError, ToolFailure
from ferrule.core.services import Subagents
from ferrule.core.tool import Face
from ferrule.dialects import COMING, FAMILIES, Dialect, load_dialect
from ferrule.settings import LibrarianRepository, Settings
from ferrule.tools import BUILTIN, ON_REQUEST, load

DIALECTS = [load_dialect(name) for name in sorted(FAMILIES)]
FACES = [pytest.param(face, id=f"{dialect.name}-{face.name}") for dialect in DIALECTS for face in dialect.faces]
EXAMPLES = 30
"""For each of well over a hundred faces."""
EACH = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@pytest.mark.parametrize("face", FACES)
def test_shown_and_read_back_the_arguments_are_the_same(face: Face):
    schema = Schema(face.schema)

    @settings(max_examples=EXAMPLES)
    @given(advertised_arguments(face))
    def law(values):
        try:
            canonical = face.canonical(values)
        except BadArguments:
            reject()
        shown = face.advertised(canonical)

        assert face.canonical(shown) == canonical
        assert schema.fit(shown) == (shown, ())

    law()


@pytest.mark.parametrize("face", FACES)
def test_what_a_face_makes_of_its_arguments_is_what_its_tool_takes(face: Face):
    if face.tool not in BUILTIN:
        assert face.tool in COMING
        return
    tool = load(face.tool)

    @settings(max_examples=EXAMPLES)
    @given(advertised_arguments(face))
    def law(values):
        try:
            canonical = face.canonical(values)
        except BadArguments:
            reject()

        assert set(canonical) <= set(tool.args.__struct_fields__)
        msgspec.convert(canonical, tool.args, strict=False)

    law()


@each_row("face", FACES)
def test_renaming_never_makes_one_parameter_of_two(face: Face):
    by_canonical: dict[str, set[str]] = {}
    for name in face.schema["properties"]:
        by_canonical.setdefault(face.params.get(name, name), set()).add(name)
    apart = [set(form["required"]) for form in face.schema.get("oneOf", ())]

    for names in by_canonical.values():
        # Two names for one parameter are fine where the schema refuses both at once.
        assert len(names) == 1 or {frozenset({name}) for name in names} == {frozenset(form) for form in apart}


@EACH
def test_no_two_faces_share_a_name(dialect: Dialect):
    names = [name for face in dialect.faces for name in (face.name, *(face.aliases if face.shown else ()))]

    assert len(names) == len(set(names))
    assert set(names).isdisjoint(dialect.aliases)


@each_row("family", FAMILIES)
def test_what_a_model_is_shown_is_reviewed(golden: Golden, family):
    golden.check(f"catalog/{family}.json", json.dumps(catalog(family), indent=2, ensure_ascii=False))


@EACH
def test_a_dialect_is_called_by_its_name(dialect: Dialect):
    assert load_dialect(dialect.name) == dialect


@EACH
def test_no_tool_is_shown_twice(dialect: Dialect):
    tools = [face.tool for face in dialect.faces if face.shown]

    assert len(tools) == len(set(tools))


@EACH
def test_what_is_not_here_yet_is_in_the_table_and_is_not_advertised(dialect: Dialect, tmp_path):
    settings = Settings(repositories={"other": LibrarianRepository(path=str(tmp_path))})
    engine = Engine(tmp_path, dialect=dialect, settings=settings, subagents=Subagents())
    shown = {definition["name"] for definition in engine.definitions()}

    for face in dialect.faces:
        assert (face.tool in BUILTIN) != (face.tool in COMING)
        searched = face.tool == "tool_search" and dialect.deferred
        always = face.shown and (face.tool not in ON_REQUEST or searched) and face.name not in dialect.deferred
        assert (face.name in shown) == (face.tool in BUILTIN and bool(always))


def test_the_table_of_what_is_to_come_names_no_tool_that_is_here():
    assert set(COMING).isdisjoint(BUILTIN)


def test_every_tool_that_is_here_has_a_face_in_some_family():
    assert {face.tool for dialect in DIALECTS for face in dialect.faces} >= set(BUILTIN)


@pytest.mark.parametrize("name", ["klingon", "", "AMP", "amp "])
def test_an_unknown_dialect_is_answered_with_those_that_there_are(name):
    with pytest.raises(ConfigError, match="The dialects are ah, amp") as caught:
        load_dialect(name)

    assert repr(name) in str(caught.value)


def plain(**more) -> Face:
    return Face(tool="t", name="T", schema={"type": "object", "properties": {}}, words="Words.", **more)


@given(st.dictionaries(texts, st.integers(), max_size=4))
def test_a_face_that_renames_nothing_passes_everything(values):
    assert plain().canonical(values) == values == plain().advertised(values)


@given(st.dictionaries(st.sampled_from(["a", "b", "limit"]), st.integers(), max_size=3))
def test_what_the_engine_fills_in_always_wins(values):
    assert plain(fill={"limit": 7}).canonical(values)["limit"] == 7


@given(texts, st.none() | texts, st.integers(0, 10**6))
def test_a_sentence_takes_whatever_a_failure_holds_as_it_is(message, path, count):
    face = plain(errors={"code": "<{message}|{path}|{count}>"})

    assert face.sentence(ToolFailure(message, code="code", path=path, count=count)) == f"<{message}|{path}|{count}>"
    assert face.sentence(ToolFailure(message, code="other")) == message
