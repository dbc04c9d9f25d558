"""Which files of a project count as its code, and that a change of any of them ends the trust."""

import pytest

from ferrule.permissions.trust import Trust, code_files, is_any


@pytest.fixture
def project(tmp_path):
    def put(name, text="x", mode=0o644):
        file = tmp_path / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    put("tools/count.py")
    put("tools/sum.lua")
    put("tools/deploy", mode=0o755)
    put("tools/deploy.md")
    put("tools/README.md")
    put("tools/notes.txt")
    put("tools/deeper/inside.py")
    put(".ferrule/tools/own.py")
    put(".agents/tools/run", mode=0o755)
    put(".amp/toolbox/data.json")
    put(".agents/skills/review/SKILL.md")
    put(".agents/skills/review/mcp.json")
    put(".agents/skills/review/toolbox/check", mode=0o755)
    put(".agents/skills/review/notes.md")
    put(".mcp.json", "{}")
    return tmp_path / "work"


def named(project):
    return {file.removeprefix(f"{project}/") for file in code_files(str(project))}


def test_what_would_run_or_start_something_counts(project):
    assert named(project) == {
        ".mcp.json",
        "tools/count.py",
        "tools/sum.lua",
        "tools/deploy",
        "tools/deploy.md",
        ".ferrule/tools/own.py",
        ".agents/tools/run",
        ".amp/toolbox/data.json",
        ".agents/skills/review/SKILL.md",
        ".agents/skills/review/mcp.json",
        ".agents/skills/review/toolbox/check",
    }


def test_an_ordinary_project_has_none(tmp_path):
    (tmp_path / "src").mkdir()

    assert not is_any(str(tmp_path))
    assert code_files(str(tmp_path)) == [str(tmp_path / ".mcp.json")]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda project: (project / "tools/count.py").write_text("y"), id="changed"),
        pytest.param(lambda project: (project / "tools/more.py").write_text("x"), id="added"),
        pytest.param(lambda project: (project / ".mcp.json").unlink(), id="removed"),
        pytest.param(lambda project: (project / "tools/notes.txt").chmod(0o755), id="made-executable"),
    ],
)
def test_any_change_ends_the_trust(project, tmp_path, change):
    trust = Trust(str(tmp_path / "state"), "code")
    trust.grant(str(project), code_files(str(project)))
    assert trust.state(str(project), code_files(str(project))) == "trusted"

    change(project)

    assert trust.state(str(project), code_files(str(project))) == "changed"


def test_trust_in_rules_is_no_trust_in_code(project, tmp_path):
    Trust(str(tmp_path / "state")).grant(str(project), code_files(str(project)))

    assert Trust(str(tmp_path / "state"), "code").state(str(project), code_files(str(project))) == "unknown"


def test_a_folder_of_more_files_than_anybody_looks_through_is_not_trusted(project, tmp_path):
    for number in range(300):
        (project / f"tools/tool{number}.py").write_text("")

    seen = Trust(str(tmp_path / "state"), "code").look(str(project), code_files(str(project)))
    assert "more than 256 files" in seen.obstacle
