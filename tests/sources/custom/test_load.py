"""Where custom tools come from, which overrides which, and that a project's run only as they were trusted."""

import hashlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sources.custom.conftest import Calls

from ferrule.core.tool import Raw
from ferrule.settings import Settings, Tools
from ferrule.sources import SourceTools
from ferrule.sources.custom import load, user_folders


def lua(name: str, says: str) -> str:
    return (
        f"return {{name = '{name}', description = '{says}', system_prompt = 'g', input_schema = {{type = 'object'}},"
        f" execute = function(input) if input.bad then return 'bad', true end return '{says}', false end}}"
    )


def python(name: str, says: str) -> str:
    return (
        f"TOOL = dict(name='{name}', description='{says}', system_prompt='g', input_schema={{'type': 'object'}},\n"
        f"    execute=lambda input: ('bad', True) if input.get('bad') else '{says}')\n"
    )


def program(path: Path, says: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


async def brought(
    *folders: Path, project: tuple[Path, ...] = (), contents: dict[str, bytes] | None = None
) -> SourceTools:
    return await load(
        packages=False, folders=[str(one) for one in folders], project=[str(one) for one in project], contents=contents
    )


def held(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def test_load_custom_tools_empty_dir(tmp_path: Path):
    assert await brought(tmp_path) == SourceTools(())


async def test_load_custom_tools_nonexistent(tmp_path: Path):
    assert await brought(tmp_path / "none") == SourceTools(())


async def test_load_cli_tools_that_is_a_file(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    assert await brought(tmp_path / "file") == SourceTools(())


async def test_project_tools_no_dir(tmp_path: Path):
    assert await brought(project=(tmp_path / "tools",), contents={}) == SourceTools(())


@pytest.mark.contract("custom.broken")
async def test_invalid_tool_skipped(tmp_path: Path):
    (tmp_path / "bad.lua").write_text("return {name = 'bad'}")
    (tmp_path / "worse.lua").write_text("return (")
    (tmp_path / "good.lua").write_text(lua("good", "fine"))
    said = await brought(tmp_path)
    assert [one.name for one in said.tools] == ["good"]
    assert [warning.split(":")[0] for warning in said.warnings] == [
        f"invalid tool format in {tmp_path}/bad.lua",
        f"failed to load {tmp_path}/worse.lua",
    ]


@pytest.mark.contract("custom.override")
async def test_custom_tool_override(tmp_path: Path):
    for number, name in enumerate(("user", "more", "project", "inner")):
        (tmp_path / name).mkdir()
        for other in ("user", "more", "project", "inner")[number:]:
            (tmp_path / name / f"{other}.lua").write_text(lua(other, name))
    folders = [tmp_path / name for name in ("user", "more", "project", "inner")]
    said = await brought(*folders[:2], project=tuple(folders[2:]), contents=held(folders[2]) | held(folders[3]))
    assert {one.name: one.words for one in said.tools} == {name: name for name in ("user", "more", "project", "inner")}


async def test_within_a_folder_executables_override_modules(tmp_path: Path):
    (tmp_path / "a.py").write_text(python("same", "python"))
    (tmp_path / "b.lua").write_text(lua("same", "lua"))
    program(tmp_path / "same", "program")
    said = await brought(tmp_path)
    assert [(one.name, one.words) for one in said.tools] == [("same", "program")]
    assert said.warnings == (f"{tmp_path}/b.lua replaces the tool same of {tmp_path}/a.py.",)


async def test_only_what_is_a_tool_counts(tmp_path: Path):
    (tmp_path / "_helper.py").write_text("raise SystemExit")
    (tmp_path / ".hidden.lua").write_text("error('x')")
    (tmp_path / "notes.txt").write_text("not executable")
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "README.md").chmod(0o755)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.lua").mkdir()
    program(tmp_path / "old~", "backup")
    os.mkfifo(tmp_path / "pipe.lua")
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "executable.lua").write_text(lua("module", "a module"))
    (tmp_path / "executable.lua").chmod(0o755)
    said = await brought(tmp_path)
    assert [one.name for one in said.tools] == ["module"]
    assert said.warnings == ()


async def test_a_script_that_is_no_tool_is_not_run(tmp_path: Path):
    ran = tmp_path / "ran"
    (tmp_path / "release.py").write_text(f"import os\nglobal_tool = 'x'\nopen({str(ran)!r}, 'w').close()\n")
    assert await brought(project=(tmp_path,), contents=held(tmp_path)) == SourceTools(())
    (warning,) = (await brought(tmp_path)).warnings
    assert warning.startswith(f"invalid tool format in {tmp_path}/release.py: it has no TOOL")
    assert not ran.exists()


async def test_executable_in_project_tools(tmp_path: Path, calls: Calls):
    program(tmp_path / "hello.sh", "hi")
    (made,) = (await brought(project=(tmp_path,), contents=held(tmp_path))).tools
    assert made.name == "hello_sh"
    assert await calls.text(made) == ("hi\n", False)


@pytest.mark.contract("custom.trust")
async def test_what_was_not_trusted_is_not_even_looked_at(tmp_path: Path):
    ran = tmp_path / "ran"
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "a.py").write_text(f"open({str(ran)!r}, 'w')")
    program(folder / "b", f"$(touch {ran})")
    (folder / "c.lua").write_text(lua("c", "c"))
    assert await brought(project=(folder,)) == SourceTools(())
    said = await brought(project=(folder,), contents={str(folder / "c.lua"): (folder / "c.lua").read_bytes()})
    assert [one.name for one in said.tools] == ["c"]
    assert not ran.exists()


async def test_what_runs_is_what_was_hashed(tmp_path: Path, calls: Calls):
    (tmp_path / "a.py").write_text(python("one", "trusted"))
    (tmp_path / "b.lua").write_text(lua("two", "trusted"))
    program(tmp_path / "three", "trusted")
    (tmp_path / "three.md").write_text("trusted")
    contents = held(tmp_path)
    (tmp_path / "a.py").write_text(python("one", "evil"))
    (tmp_path / "b.lua").write_text(lua("two", "evil"))
    (tmp_path / "three.md").write_text("evil")
    said = await brought(project=(tmp_path,), contents=contents)
    assert {one.name: one.words for one in said.tools} == dict.fromkeys(("one", "two", "three"), "trusted")
    tools = {one.name: one for one in said.tools}
    assert [(await calls.text(tools[name]))[0] for name in ("one", "two", "three")] == [
        "trusted",
        "trusted",
        "trusted\n",
    ]
    program(tmp_path / "three", "evil")
    text, is_error = await calls.text(tools["three"])
    assert is_error
    assert "not what was trusted" in text


@pytest.mark.parametrize("kind", ["python", "lua"])
async def test_both_kinds_of_modules_behave_the_same(tmp_path: Path, calls: Calls, kind: str):
    source = {"python": python, "lua": lua}[kind]("t", "fine")
    (tmp_path / f"t.{ {'python': 'py', 'lua': 'lua'}[kind] }").write_text(source)
    (made,) = (await brought(tmp_path)).tools
    assert (made.name, made.words, made.guidance, made.args, made.source) == ("t", "fine", "g", Raw, "custom")
    assert made.schema == {"type": "object", "properties": {}}
    assert await calls.text(made) == ("fine", False)
    assert await calls.text(made, bad=True) == ("bad", True)


async def test_a_file_that_is_too_large_is_a_warning(tmp_path: Path):
    (tmp_path / "a.lua").write_text("-" * (1 << 20) + "-\n")
    assert "larger than" in (await brought(tmp_path)).warnings[0]


async def test_a_folder_of_the_user_inside_of_the_workspace_is_refused(tmp_path: Path):
    tools = tmp_path / "workspace" / "tools"
    tools.mkdir(parents=True)
    (tools / "a.lua").write_text(lua("a", "a"))
    (tmp_path / "link").symlink_to(tools)
    roots = [str(tmp_path / "workspace")]
    for folder in (tools, tmp_path / "link"):
        said = await load(packages=False, folders=[str(folder)], roots=roots)
        assert said.tools == ()
        assert said.warnings == (
            f"the tools in {folder} are not used: they are inside of the workspace and not trusted.",
        )
    said = await load(packages=False, project=[str(tools)], contents=held(tools), roots=roots)
    assert [one.name for one in said.tools] == ["a"]


def test_the_folders_of_the_user_begin_beside_the_settings():
    beside = os.path.dirname(os.environ["FERRULE_SETTINGS"])
    settings = Settings(tools=Tools(folders=("/absolute/tools", "relative", "~/mine")))
    assert user_folders(settings) == (
        os.path.join(beside, "tools"),
        "/absolute/tools",
        os.path.join(beside, "relative"),
        os.path.expanduser("~/mine"),
    )


PACKAGE = """
from ferrule.sources import tool
@tool
def packed(x: int) -> int:
    "From a package."
    return x
print("loud")
def many():
    return [packed, dict(name="second", description="d", input_schema={}, execute=print)]
empty = []
number = 3
def broken():
    raise SystemExit(1)
"""


async def test_installed_packages_bring_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    name = f"brings_{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]}"
    (tmp_path / f"{name}.py").write_text(PACKAGE)
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{entry} = {name}:{entry}" for entry in ("packed", "many", "empty", "number", "broken", "missing")]
    (info / "entry_points.txt").write_text("[ferrule.tools]\n" + "\n".join(lines) + "\n")
    assert "packed" not in {one.name for one in (await load()).tools}
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    try:
        said = await load()
        alone = await load(packages=False)
        (tmp_path / "tools").mkdir()
        (tmp_path / "tools" / "x.lua").write_text(lua("second", "overrides"))
        over = await load(folders=[str(tmp_path / "tools")])
    finally:
        sys.modules.pop(name, None)
    assert {one.name: one.source for one in said.tools} == {"packed": "custom", "second": "custom"}
    assert [warning.split(":")[0] for warning in said.warnings] == [
        f"failed to load {name}",
        f"invalid tool format in {name}",
        f"failed to load {name}",
        f"invalid tool format in {name}",
    ]
    assert alone == SourceTools(())
    assert {one.name: one.words for one in over.tools}["second"] == "overrides"
    assert "loud" not in capsys.readouterr().out


def test_without_such_packages_nobody_pays_for_looking_into_all_of_them():
    """Also where the path names a zip of the standard library that is not there, as every Python's does."""
    program = (
        "import sys\n"
        "from ferrule.sources.custom import load_packages\n"
        "load_packages()\n"
        "print('importlib.metadata' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "False\n"
