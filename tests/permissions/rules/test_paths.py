"""Rules about files: every anchor and wildcard as a row with its twin, links, and the tricks that have fooled others.

The rules here stand in the settings of /proj; the session works in /proj/app; home is /home/ann.
"""

import os
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import PathAccess
from tests.rows import each_kept_row, each_row

from .written import CWD, HOME, ROOT, command, files, rule, subject, touched

GROUPS = [
    ("Read", "read", ["read", "grep", "glob", "list_dir", "read_many", "view_image", "lsp", "diagnostics"]),
    ("Edit", "write", ["edit", "write", "multi_edit", "patch", "notebook_edit", "delete", "undo", "format"]),
]


@each_kept_row
@each_row(("name", "mode"), [("Read", "read"), ("Edit", "write")])
@each_row("action", ["allow", "deny"])
def test_a_pattern_covers_this(action, name, mode, pattern, path, expected):
    tool = "read" if mode == "read" else "write"

    assert rule(action, f"{name}({pattern})").matches(files(tool, mode, path)) is expected


@each_kept_row
def test_a_rule_that_denies_or_asks_is_read_more_widely_than_one_that_allows(pattern, path):
    assert rule("deny", f"Edit({pattern})").matches(files("write", "write", path))
    assert rule("ask", f"Edit({pattern})").matches(files("write", "write", path))
    with suppress(ConfigError):
        assert not rule("allow", f"Edit({pattern})").matches(files("write", "write", path))


@pytest.mark.parametrize(("name", "mode", "tools"), GROUPS)
def test_a_rule_covers_every_tool_that_does_the_same(name, mode, tools):
    for tool in tools:
        for action in ("allow", "ask", "deny"):
            assert rule(action, f"{name}(docs/**)").matches(files(tool, mode, "/proj/app/docs/x"))
            assert rule(action, name).matches(files(tool, mode, "/anywhere"))


def test_what_may_not_be_read_may_not_be_written():
    assert rule("deny", "Read(.env)").matches(files("edit", "write", "/proj/app/.env"))
    assert rule("deny", "Read").matches(files("edit", "write", "/proj/app/.env"))
    assert not rule("deny", "Edit(.env)").matches(files("read", "read", "/proj/app/.env"))


def test_who_may_read_may_not_write():
    assert not rule("allow", "Read(docs/**)").matches(files("edit", "write", "/proj/app/docs/x"))
    assert not rule("allow", "Read").matches(files("edit", "write", "/proj/app/docs/x"))
    both = subject("read", paths=(*touched("read", ["/proj/app/docs/x"]), *touched("write", ["/proj/app/y"])))
    assert not rule("allow", "Read(docs/**)").matches(both)


def test_who_may_edit_a_folders_content_may_read_the_folder_but_not_remove_it():
    assert rule("allow", "Read(docs/**)").matches(files("list_dir", "read", "/proj/app/docs"))
    assert not rule("allow", "Edit(docs/**)").matches(files("delete", "write", "/proj/app/docs"))


def test_all_paths_have_to_be_allowed_and_one_is_enough_to_deny():
    two = files("patch", "write", "/proj/app/docs/x", "/proj/app/src/y")

    assert not rule("allow", "Edit(docs/**)").matches(two)
    assert rule("deny", "Edit(docs/**)").matches(two)


def test_a_rule_that_allows_needs_a_path():
    assert not rule("allow", "Edit(docs/**)").matches(subject("edit"))
    assert not rule("allow", "Read(//**)").matches(subject("read"))


@each_row(
    ("spelled", "real", "allowed", "denied"),
    [
        pytest.param("/proj/app/docs/x", "/proj/app/docs/x", True, True, id="no-link"),
        pytest.param("/proj/app/docs/link", "/etc/passwd", False, True, id="a-link-out"),
        pytest.param("/tmp/link", "/proj/app/docs/x", False, True, id="a-link-in"),
        pytest.param("/proj/app/docs/link", "/proj/app/docs/x", True, True, id="a-link-inside"),
        pytest.param("/proj/app/docs/../src/x", "/proj/app/src/x", False, False, id="out-by-dots"),
        pytest.param("/proj/app/src/../docs/x", "/proj/app/docs/x", True, True, id="in-by-dots"),
        pytest.param("/proj/app/docs/../../../etc/x", "/etc/x", False, False, id="far-out-by-dots"),
        pytest.param("//proj/app/docs/x", "/proj/app/docs/x", True, True, id="two-slashes"),
        pytest.param("/proj/app/docs/x", "/proj/app/docs/../src/x", False, True, id="real-that-is-not"),
    ],
)
def test_to_allow_takes_link_and_target_and_to_deny_takes_either(spelled, real, allowed, denied):
    case = files("edit", "write", (spelled, real))

    assert rule("allow", "Edit(docs/**)").matches(case) is allowed
    assert rule("deny", "Edit(docs/**)").matches(case) is denied


def test_a_link_in_the_rules_own_path_is_followed_to_deny_and_not_to_allow(tmp_path):
    place = os.path.realpath(tmp_path)
    os.mkdir(f"{place}/vault")
    os.symlink("vault", f"{place}/keys")
    case = files("edit", "write", f"{place}/vault/x")

    assert rule("deny", "Edit(keys/**)", cwd=place).matches(case)
    assert rule("deny", "Edit(/keys/x)", root=place).matches(case)
    assert rule("deny", f"Edit(/{place}/keys)").matches(case)
    assert rule("deny", "Edit(keys)", cwd=place).matches(case)
    assert not rule("allow", "Edit(keys/**)", cwd=place).matches(case)


def test_a_working_folder_behind_a_link_is_the_same_folder(tmp_path):
    place = os.path.realpath(tmp_path)
    os.mkdir(f"{place}/real")
    os.symlink("real", f"{place}/link")
    case = files("edit", "write", (f"{place}/link/src/x", f"{place}/real/src/x"))

    assert rule("allow", "Edit(src/**)", cwd=f"{place}/link").matches(case)
    assert rule("deny", "Edit(src/**)", cwd=f"{place}/link").matches(case)


@pytest.mark.parametrize(
    ("kind", "start"),
    [("project", ROOT), ("managed", ROOT), ("local", CWD), ("session", CWD), ("user", f"{HOME}/.claude")],
)
def test_one_slash_starts_where_the_rules_file_counts_from(kind, start):
    for action in ("allow", "deny"):
        assert rule(action, "Edit(/x/y)", kind=kind).matches(files("edit", "write", f"{start}/x/y"))
        assert not rule(action, "Edit(/x/y)", kind=kind).matches(files("edit", "write", "/x/y"))


def test_a_file_of_a_command_can_be_denied_by_a_rule_about_files_but_not_allowed():
    cat = command("cat .env", paths=tuple(touched("read", ["/proj/app/.env"])))
    write = command("echo x", paths=tuple(touched("write", ["/proj/app/docs/x"])))

    assert rule("deny", "Read(.env)").matches(cat)
    assert rule("ask", "Edit(docs/**)").matches(write)
    assert rule("deny", "Edit").matches(write)
    assert not rule("allow", "Read(**)").matches(cat)
    assert not rule("allow", "Edit(docs/**)").matches(write)
    assert not rule("allow", "Edit").matches(write)


@each_row(
    ("pattern", "folder", "expected"),
    [
        ("docs/locked.md", "/proj/app/docs", True),
        ("docs/locked.md", "/proj", True),
        ("/keys/**", "/", True),
        (".env", "/proj/app", True),
        (".env", "/proj/app/src", False),
        ("docs/locked.md", "/proj/app/doc", False),
        ("docs/locked.md", "/proj/app/src", False),
        ("DOCS/locked.md", "/proj/app/docs", True),
    ],
)
def test_who_removes_a_folder_touches_the_files_that_rules_name_in_it(pattern, folder, expected):
    deep = subject("delete", paths=(PathAccess("write", folder, folder, deep=True),))

    assert rule("deny", f"Edit({pattern})").matches(deep) is expected
    assert not rule("allow", f"Edit({pattern})").matches(deep)
    assert not rule("deny", f"Edit({pattern})").matches(files("write", "write", folder))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("docs/**", True), ("docs", True), ("docs/x", True), ("docs/*", False), ("docs/**/*.md", False), ("*", True)],
)
def test_to_allow_a_whole_folder_takes_a_rule_for_all_that_can_be_in_it(pattern, expected):
    deep = subject("delete", paths=(PathAccess("write", "/proj/app/docs/x", "/proj/app/docs/x", deep=True),))

    assert rule("allow", f"Edit({pattern})").matches(deep) is expected


@each_row(
    ("pattern", "why"),
    [
        pytest.param("!docs/**", "take back", id="negation"),
        pytest.param("docs/../x", "beginning only", id="dots-inside"),
        pytest.param("~bob/x", "own home", id="another-home"),
        pytest.param("$HOME/x", "write `~/`", id="variable"),
        pytest.param("a\0b", "control character", id="nul"),
        pytest.param("a\nb", "control character", id="newline"),
        pytest.param("a\ud800b", "control character", id="half-a-character"),
        pytest.param("[[:alpha:]]x", "named classes", id="named-class"),
        pytest.param("x" * 5000, "characters", id="long"),
    ],
)
@each_row("action", ["allow", "ask", "deny"])
def test_a_pattern_that_cannot_be_read_says_why(action, pattern, why):
    with pytest.raises(ConfigError, match=why):
        rule(action, f"Edit({pattern})")


def test_the_name_of_another_family_is_as_good():
    for name in ("edit_file", "replace", "smart_edit"):
        assert rule("allow", f"{name}(docs/**)").matches(files("write", "write", "/proj/app/docs/x"))
        assert rule("deny", f"{name}(docs/**)").matches(files("write", "write", "/proj/app/docs/x"))
    assert rule("deny", "read_file(docs/**)").matches(files("grep", "read", "/proj/app/docs/x"))


def test_to_allow_one_of_the_tools_allows_no_other():
    created = rule("allow", "create_file(docs/**)")

    assert created.matches(files("write", "write", "/proj/app/docs/x"))
    assert not created.matches(files("delete", "write", "/proj/app/docs/x"))
    assert rule("deny", "create_file(docs/**)").matches(files("delete", "write", "/proj/app/docs/x"))


segments = st.text("ab.", min_size=1, max_size=2).filter(lambda name: name not in {".", ".."})
paths = st.lists(segments, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
pattern_segments = st.one_of(segments, st.sampled_from(["*", "**", "?", "a*", "[ab]"]))
patterns = st.builds(
    lambda anchor, names, end: anchor + "/".join(names) + end,
    st.sampled_from(["", "./", "/", "//", "~/"]),
    st.lists(pattern_segments, min_size=1, max_size=3),
    st.sampled_from(["", "/", "/**"]),
)
PLACES = {"root": "/a", "cwd": "/a/b", "home": "/b"}


@given(patterns, paths)
def test_what_a_rule_allows_its_twin_denies(pattern, path):
    case = files("write", "write", path)

    if rule("allow", f"Edit({pattern})", **PLACES).matches(case):
        assert rule("deny", f"Edit({pattern})", **PLACES).matches(case)


@given(st.lists(pattern_segments, min_size=1, max_size=4), paths)
def test_an_absolute_pattern_agrees_with_a_plain_reference(names, path):
    allowed = rule("allow", f"Edit(//{'/'.join(names)})").matches(files("write", "write", path))

    assert allowed is _reference(names, path[1:].split("/"))


def _reference(names: list[str], parts: list[str]) -> bool:
    if not names:
        return True
    head, *rest = names
    if head == "**":
        return bool(parts) and (not rest or any(_reference(rest, parts[at:]) for at in range(len(parts))))
    if not parts or not _same(head, parts[0]):
        return False
    return _reference(rest, parts[1:]) if rest else len(parts) == 1 or not set(head) & set("*?[")


def _same(name: str, part: str) -> bool:
    known = {"*": True, "?": len(part) == 1, "a*": part.startswith("a"), "[ab]": part in {"a", "b"}}
    return known.get(name, name == part)


@given(st.text(st.characters(exclude_categories=()), max_size=10))
def test_no_text_breaks_the_reader(text):
    for action in ("allow", "deny"):
        with suppress(ConfigError):
            assert rule(action, f"Edit({text})").matches(files("write", "write", "/proj/app/x")) in {True, False}


def test_a_pattern_made_to_be_slow_is_not():
    slow = rule("deny", "Edit(//" + "**/a*a*a*a*b/" * 20 + "x)")

    assert not slow.matches(files("write", "write", "/" + "a" * 200 + "/a" * 500))
