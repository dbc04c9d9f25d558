"""All nine operations on real servers and small real projects: ty, basedpyright and typescript."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from tests.tools.code.asking import PROJECTS, Asking, lay_out, one_server, path_with_servers, rows, spot

from ferrule.dialects.outcome_words import code
from ferrule.tools.lsp import Hovered, Outline

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Names(NamedTuple):
    """The files of a project, and lines of code in them."""

    forms: str
    sums: str
    labels: str
    windows: str
    circle: str
    area: str
    """The line of every `area`."""
    total: str
    usual: str
    sum_up: str
    """Where `usual` calls `total`,"""
    sum_nothing: str
    """and where `nothing` does."""
    bring_total: str
    tell: str
    """Where `label` calls `usual`."""


PYTHON = Names(
    forms="geometry/forms.py",
    sums="geometry/sums.py",
    labels="geometry/labels.py",
    windows="geometry/windows.py",
    circle="class Circle(Form):",
    area="def area(self) -> float:",
    total="def total(forms: Iterable[Form]) -> float:",
    usual="def usual() -> float:",
    sum_up="return total([Circle(1.0), Square(2.0)])",
    sum_nothing="return total([])",
    bring_total="from .sums import total",
    tell='return "🎈 cafe\u0301 " + str(usual())',
)
SCRIPT = Names(
    forms="src/forms.ts",
    sums="src/sums.ts",
    labels="src/labels.ts",
    windows="src/windows.ts",
    circle="export class Circle implements Form {",
    area="area(): number {",
    total="export function total(forms: Form[]): number {",
    usual="export function usual(): number {",
    sum_up="return total([new Circle(1), new Square(2)]);",
    sum_nothing="return total([]);",
    bring_total='import { total } from "./sums.js";',
    tell='return "🎈 cafe\u0301 " + String(usual());',
)
NAMES = {"ty": PYTHON, "basedpyright": PYTHON, "typescript": SCRIPT}
SERVERS = tuple(NAMES)


class Session(NamedTuple):
    """A warm server on a project."""

    ask: Asking
    folder: Path
    names: Names
    server: str

    async def __call__(self, operation: str, path: str, text: str, number: int = 1, **more: Any) -> Any:
        """Ask about the place where a text stands in a file."""
        return await self.ask(operation, path, *spot(self.folder / path, text, number), **more)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SERVERS)
async def session(request, tmp_path_factory):
    folder = lay_out(PROJECTS[request.param], tmp_path_factory.mktemp("code") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_with_servers())
        ask = Asking(folder, one_server(request.param), state=tmp_path_factory.mktemp("state"))
        yield Session(ask, folder, NAMES[request.param], request.param)
        await ask.close()


async def test_a_definition_in_the_same_file_is_found(session):
    names = session.names
    sums = names.sums

    found = await session("goToDefinition", sums, "total([")

    assert rows(found) == [(sums, names.total)]
    assert found.asked.server == session.server
    assert found.asked.name == "total"
    line, character = spot(session.folder / sums, "total(")
    assert [(place.line, place.character) for place in found.places] == [(line, character)]


async def test_a_definition_in_another_file_is_found(session):
    names = session.names

    found = await session("goToDefinition", names.sums, "Circle(1")

    assert (names.forms, names.circle) in rows(found)


async def test_references_are_found_with_the_definition_first(session):
    names = session.names

    found = await session("findReferences", names.sums, "total(")

    assert rows(found) == [
        (names.sums, names.total),
        (names.sums, names.sum_up),
        (names.windows, names.bring_total),
        (names.windows, names.sum_nothing),
    ]
    assert [place.is_definition for place in found.places] == [True, False, False, False]


async def test_a_hover_says_the_type_and_the_documentation(session):
    found = await session("hover", session.names.sums, "total([")

    assert isinstance(found, Hovered)
    assert "total" in found.text
    assert "All areas together." in found.text


async def test_the_symbols_of_a_file_are_an_outline(session):
    found = await session.ask("documentSymbol", session.names.forms)

    assert isinstance(found, Outline)
    shown = [(row.depth, row.kind, row.name) for row in found.rows]
    assert (0, "class", "Circle") in shown
    assert (0, "class", "Square") in shown
    assert (1, "method", "area") in shown
    first, _ = spot(session.folder / session.names.forms, session.names.circle)
    assert next(row.first for row in found.rows if row.name == "Circle") == first
    assert f"  method area {first + 4 if session.names is PYTHON else first + 3}" in code(found)


@pytest.mark.parametrize("how", ["query", "position"])
async def test_symbols_of_the_workspace_are_found_by_name(session, how):
    names = session.names

    if how == "query":
        found = await session.ask("workspaceSymbol", names.windows, query="Circle")
    else:
        found = await session("workspaceSymbol", names.sums, "Circle(1")

    assert rows(found)[0] == (names.forms, names.circle)
    assert (found.places[0].kind, found.places[0].name) == ("class", "Circle")


async def test_implementations_of_an_abstract_method_are_found(session):
    names = session.names

    found = await session("goToImplementation", names.forms, "area(")

    concrete = (2, 3) if names is PYTHON else (1, 2)
    lines = [spot(session.folder / names.forms, names.area, number)[0] for number in concrete]
    assert set(lines) <= {place.line for place in found.places}
    assert {place.path for place in found.places} == {names.forms.replace("/", os.sep)}


async def test_a_function_is_prepared_for_its_calls(session):
    names = session.names

    found = await session("prepareCallHierarchy", names.sums, "usual(")

    assert rows(found) == [(names.sums, names.usual)]
    assert (found.places[0].kind, found.places[0].name) == ("function", "usual")


async def test_callers_are_found_with_the_places_of_their_calls(session):
    names = session.names

    found = await session("incomingCalls", names.sums, "total(")

    assert found.about.name == "total"
    callers = {place.name: place for place in found.places}
    assert {"usual", "nothing"} <= set(callers)
    assert [site.text for site in callers["usual"].sites] == [names.sum_up]
    assert [(site.path.replace(os.sep, "/"), site.text) for site in callers["nothing"].sites] == [
        (names.windows, names.sum_nothing)
    ]


async def test_called_functions_are_found_with_the_places_of_the_calls(session):
    names = session.names

    found = await session("outgoingCalls", names.sums, "usual(")

    called = {place.name: place for place in found.places}
    assert "total" in called
    assert called["total"].path == names.sums.replace("/", os.sep)
    assert [site.text for site in called["total"].sites] == [names.sum_up]


async def test_characters_are_counted_as_people_do_behind_an_emoji_and_a_combining_character(session):
    names = session.names

    found = await session("goToDefinition", names.labels, "usual())")
    back = await session("findReferences", names.sums, "usual(")

    assert rows(found) == [(names.sums, names.usual)]
    line, character = spot(session.folder / names.labels, "usual())")
    assert (names.labels.replace("/", os.sep), line, character) in [place[:3] for place in back.places]
    assert (names.labels, names.tell) in rows(back)


async def test_line_ends_of_another_system_change_no_position(session):
    names = session.names

    found = await session("goToDefinition", names.windows, "total([])")

    assert rows(found) == [(names.sums, names.total)]


async def test_code_outside_the_workspace_is_named_and_not_shown(session):
    names = session.names
    text = "float:" if names is PYTHON else "String(usual"
    file = names.sums if names is PYTHON else names.labels

    found = await session("goToDefinition", file, text)

    assert found.places
    for place in found.places:
        assert place.is_outside
        # What a confined server keeps for itself nobody else can open: a path would lead nowhere.
        assert os.path.isabs(place.path) is not bool(place.owner)
        assert place.line > 0
        assert (place.character, place.text) == (0, "")
    assert f"({place.owner}'s own copy)" if place.owner else "(outside the workspace)" in code(found)


async def test_an_edit_on_disk_is_seen_by_the_next_question(session):
    names = session.names
    path = session.folder / names.windows
    before = path.read_bytes()
    try:
        path.write_bytes(b"\r\n\r\n" + before)
        found = await session("goToDefinition", names.windows, "total([])")
    finally:
        path.write_bytes(before)

    assert rows(found) == [(names.sums, names.total)]


async def test_a_place_without_a_name_is_answered_for_the_nearest_with_a_note(session):
    names = session.names
    line, character = spot(session.folder / names.sums, "total([")

    found = await session.ask("goToDefinition", names.sums, line, 1)

    shown = names.sums.replace("/", os.sep)
    assert session.ask.notes == [f"There is no name at {shown}:{line}:1; `total` at character {character} was taken."]
    assert rows(found) == [(names.sums, names.total)]


async def test_where_nothing_is_found_that_is_said(session):
    names = session.names
    line, character = spot(session.folder / names.sums, "areas together")

    found = await session.ask("goToDefinition", names.sums, line, character)

    shown = names.sums.replace("/", os.sep)
    assert code(found) == f"No definition was found for `areas` at {shown}:{line}:{character}."
