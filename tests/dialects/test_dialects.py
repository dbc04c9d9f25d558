"""Every dialect: what is shown can be read back, no two faces share a name, and what is not there says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import advertised_arguments, canonical_arguments, texts

from ferrule.arguments.schema import Schema
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.face import Face
from ferrule.dialects.dialect import FAMILIES, Dialect, load_dialect
from ferrule.tools import BUILTIN

DIALECTS = [load_dialect(name) for name in sorted(FAMILIES)]
FACES = [pytest.param(face, id=f"{dialect.name}-{face.name}") for dialect in DIALECTS for face in dialect.faces]
EACH = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@pytest.mark.parametrize("face", FACES)
def test_shown_and_read_back_the_arguments_are_the_same(face: Face):
    @given(canonical_arguments(face))
    def law(values):
        assert face.canonical(face.advertised(values)) == values

    law()


@pytest.mark.parametrize("face", FACES)
def test_read_and_shown_again_the_arguments_are_the_same(face: Face):
    @given(advertised_arguments(face))
    def law(values):
        again = face.advertised(face.canonical(values))

        assert face.canonical(again) == face.canonical(values)
        assert {face.params.get(name, name) for name in again} == {face.params.get(name, name) for name in values}

    law()


@pytest.mark.parametrize("face", [param for param in FACES if param.values[0].shown])  # type: ignore[union-attr]
def test_what_is_shown_fits_the_schema_that_is_shown(face: Face):
    schema = Schema(face.schema)

    @given(advertised_arguments(face))
    def law(values):
        assert schema.fit(face.advertised(face.canonical(values))) == (values, ())

    law()


@pytest.mark.parametrize("face", FACES)
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
    names = [name for face in dialect.faces for name in (face.name, *face.aliases)]

    assert len(names) == len(set(names))
    assert set(names).isdisjoint(dialect.aliases)


@EACH
def test_a_dialect_is_called_by_its_name(dialect: Dialect):
    assert load_dialect(dialect.name) == dialect


@EACH
def test_every_tool_is_shown_once(dialect: Dialect):
    assert sorted(face.tool for face in dialect.faces if face.shown) == sorted(BUILTIN)


@pytest.mark.parametrize("name", ["klingon", "", "AMP", "amp "])
def test_an_unknown_dialect_is_answered_with_those_that_there_are(name):
    with pytest.raises(ConfigError, match="The dialects are amp") as caught:
        load_dialect(name)

    assert repr(name) in str(caught.value)


def test_a_family_that_breaks_while_it_loads_is_not_called_unknown(monkeypatch):
    def broken() -> Dialect:
        raise KeyError("inside")

    monkeypatch.setattr("ferrule.dialects.dialect.FAMILIES", {"broken": broken})

    with pytest.raises(KeyError, match="inside"):
        load_dialect("broken")


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
