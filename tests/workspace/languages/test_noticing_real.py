"""New errors after edits, by real servers: ty in every way, the other kinds where an edit breaks another file."""

import pytest
from tests.workspace.languages.noticed import Edited, path_with_servers

from ferrule.settings import LanguageServer, LspSettings

LIBRARY = "def twice(number: int) -> int:\n    return 2 * number\n"
USER = "from library import twice\n\nprint(twice(3))\n"
WRONG = "\n\nprint(nowhere)\n"


@pytest.fixture
async def edited(request, tmp_path, monkeypatch):
    """Files that `ty`, or another server by a test's wish, looks at: slow machines have their time."""
    monkeypatch.setenv("PATH", path_with_servers())
    (tmp_path / "work").mkdir()
    servers = {getattr(request, "param", "ty"): LanguageServer()}
    here = Edited(tmp_path / "work", LspSettings(after_seconds=60.0, servers=servers))
    yield here
    await here.close()


async def test_an_error_that_an_edit_makes_is_told_once(edited):
    edited.write(library_py=LIBRARY)
    await edited.open("library.py")

    notes = await edited.edit(library_py=LIBRARY.replace("2 * number", "2 * numbre"))

    assert notes == {
        "library.py": "New errors after the edit (ty):\n"
        "  2:16: Name `numbre` used when not defined [unresolved-reference]"
    }
    assert await edited.edit(library_py=LIBRARY.replace("2 * number", "3 * numbre")) == {}


async def test_a_call_in_another_open_file_that_an_edit_breaks_is_told_with_the_edit(edited):
    edited.write(library_py=LIBRARY, user_py=USER)
    await edited.open("user.py")

    notes = await edited.edit(library_py=LIBRARY.replace("number: int", "number: str"))

    assert list(notes) == ["library.py"]
    assert "New errors after the edit (ty):\n  2:12: " in notes["library.py"]
    assert "New errors in other files after the edit (ty):\n  user.py:3:13: " in notes["library.py"]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_an_error_that_only_moves_is_not_told(edited, end):
    old = (LIBRARY + WRONG).replace("\n", end)
    edited.write(library_py=old)
    await edited.open("library.py")

    assert await edited.edit(library_py=f'"""Numbers."""{end}{end}{old}') == {}


async def test_of_one_that_is_fixed_and_one_that_is_made_the_second_is_told(edited):
    edited.write(library_py=LIBRARY + WRONG)
    await edited.open("library.py")

    notes = await edited.edit(library_py=LIBRARY + "\n\nprint(elsewhere)\n")

    assert list(notes) == ["library.py"]
    assert "elsewhere" in notes["library.py"]
    assert "nowhere" not in notes["library.py"]


async def test_a_new_file_is_looked_at(edited):
    edited.write(library_py=LIBRARY)
    await edited.open("library.py")

    notes = await edited.edit(user_py=USER + WRONG)

    assert list(notes) == ["user.py"]
    assert notes["user.py"].count("\n") == 1


async def test_a_file_that_goes_breaks_those_that_need_it(edited):
    edited.write(library_py=LIBRARY, user_py=USER)
    await edited.open("library.py", "user.py")

    notes = await edited.edit(library_py=None)

    assert list(notes) == ["library.py"]
    assert "user.py:1:6: " in notes["library.py"]


async def test_a_definition_and_its_uses_may_change_together(edited):
    edited.write(library_py=LIBRARY, user_py=USER)
    await edited.open("library.py", "user.py")

    assert (
        await edited.edit(library_py=LIBRARY.replace("twice", "double"), user_py=USER.replace("twice", "double")) == {}
    )


@pytest.mark.parametrize("edited", ["typescript"], indirect=True)
async def test_typescript_tells_what_breaks_elsewhere(edited):
    edited.write(
        tsconfig_json='{"compilerOptions": {"strict": true}, "include": ["*.ts"]}',
        library_ts="export function twice(number: number): number {\n  return 2 * number;\n}\n",
        user_ts='import { twice } from "./library";\n\nconsole.log(twice(3));\n',
    )
    await edited.open("library.ts", "user.ts")

    notes = await edited.edit(library_ts="export function double(number: number): number {\n  return 2 * nubmer;\n}\n")

    assert list(notes) == ["library.ts"]
    assert "New errors after the edit (typescript):\n  2:14: " in notes["library.ts"]
    assert "[2305]" in notes["library.ts"].partition("New errors in other files after the edit (typescript):")[2]


@pytest.mark.parametrize("edited", ["basedpyright"], indirect=True)
async def test_basedpyright_tells_what_breaks_elsewhere(edited):
    edited.write(library_py=LIBRARY, user_py=USER)
    await edited.open("library.py", "user.py")

    notes = await edited.edit(library_py=LIBRARY.replace("twice", "double") + WRONG)

    assert list(notes) == ["library.py"]
    assert "[reportUndefinedVariable]" in notes["library.py"]
    assert "user.py:1:21: " in notes["library.py"]
