"""The words for the model: every tool and every parameter is described, in whole sentences."""

from typing import Any

import pytest

from ferrule.core.tool import Face
from ferrule.dialects import COMING, FAMILIES, load_dialect, schemas, words
from ferrule.tools import BUILTIN, load
from tests.rows import each_row

from .project import PACKAGE

FACES = [pytest.param(face, id=f"{family}-{face.name}") for family in FAMILIES for face in load_dialect(family).faces]
FILES = [
    pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in sorted((PACKAGE / "dialects").glob("*/*.md"))
]


def parameters(face: Face) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = face.schema["properties"]
    return found


@each_row("face", FACES)
def test_a_description_is_prose_that_ends_in_a_full_stop(face):
    assert face.words.endswith(".")
    assert face.words.splitlines()[0].endswith(".")
    assert face.words == face.words.strip()


@each_row("path", FILES)
def test_a_description_stands_in_a_file_that_ends_in_a_newline(path):
    text = path.read_text(encoding="utf-8")

    assert text.endswith(".\n")


@pytest.mark.contract("schema.described")
@each_row("face", FACES)
def test_every_parameter_is_described_in_a_sentence(face):
    silent = [name for name, about in parameters(face).items() if not about.get("description", "").endswith(".")]

    assert silent == []


@pytest.mark.contract("schema.required-first")
@each_row("face", FACES)
def test_required_parameters_come_first(face):
    required = face.schema.get("required", [])

    assert list(parameters(face))[: len(required)] == required


@each_row("face", FACES)
def test_a_face_belongs_to_a_tool_that_there_is_or_will_be(face):
    assert face.tool in BUILTIN or face.tool in COMING


@each_row("name", sorted(BUILTIN))
def test_every_tool_says_in_a_sentence_what_it_is(name):
    assert (type(load(name)).__doc__ or "").endswith(".")


@each_row("name", sorted(BUILTIN))
def test_the_list_of_tools_has_them_under_their_own_names(name):
    assert load(name).name == name


@each_row("family", sorted(FAMILIES))
def test_every_word_and_every_schema_belongs_to_a_face(family):
    folder = str(PACKAGE / "dialects" / family)
    faces = load_dialect(family).faces

    assert set(words(folder)) <= {face.name for face in faces}
    assert set(words(folder).values()) == {face.words for face in faces}
    assert set(schemas(folder)) == {face.name for face in faces}
