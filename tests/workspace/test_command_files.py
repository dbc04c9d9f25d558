"""Commands from files: names, front matter, trust."""

from ferrule.permissions.trust import code_files
from ferrule.tools.skills.text import command_files, compose


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_a_file_is_a_command_with_what_its_front_matter_says(tmp_path):
    put(tmp_path, "git/fix.md", "---\ndescription: Fix it\nargument-hint: [issue]\nmodel: small\n---\nFix $1.\n")
    put(tmp_path, "bare.md", "# Look around\nplease")
    found = command_files("/none", {}, [str(tmp_path)])
    assert {(one.name, one.description, one.hint, one.model) for one in found.values()} == {
        ("git:fix", "Fix it", "[issue]", "small"),
        ("bare", "Look around", "", ""),
    }


def test_a_project_s_file_counts_with_the_trusted_bytes_only(tmp_path):
    path = put(tmp_path, ".claude/commands/a.md", "changed since")
    assert command_files(str(tmp_path), {}, []) == {}
    assert command_files(str(tmp_path), {path: b"as trusted"}, [])["a"].body == "as trusted"
    assert path in code_files(str(tmp_path))


def test_arguments_of_a_command_count_from_one():
    assert compose("$1 and $2", arguments="a b", first=1).text(()) == "a and b"
    assert compose("$0 and $1", arguments="a b").text(()) == "a and b"
