"""Grants: rules that the user said "always" to, kept for one folder, outside of it."""

import stat

import pytest

from ferrule.core.errors import ConfigError
from ferrule.permissions.trust import Grants, grants_path

RULE = "Bash(git commit *)"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path):
    return tmp_path.resolve() / "state"


def grants(state, work):
    """As another session would have them."""
    return Grants(str(state), str(work))


def test_a_rule_holds_from_session_to_session(state, work):
    grants(state, work).add(RULE)
    grants(state, work).add("Edit(/src/**)")
    grants(state, work).add(RULE)

    assert grants(state, work).texts() == (RULE, "Edit(/src/**)")


def test_a_rule_is_taken_back(state, work):
    for rule in ("a", RULE, "b"):
        grants(state, work).add(rule)
    grants(state, work).remove(RULE)
    grants(state, work).remove("never said")

    assert grants(state, work).texts() == ("a", "b")


def test_without_rules_nothing_is_written(state, work):
    assert grants(state, work).texts() == ()
    grants(state, work).remove(RULE)

    assert not state.exists()


def test_rules_are_kept_where_the_engine_looks_for_them(state, work):
    grants(state, work).add(RULE)

    path = grants_path(str(state), str(work))
    assert [str(one) for one in state.glob("grants/*.json")] == [path]
    assert stat.S_IMODE((state / "grants" / path.rpartition("/")[2]).stat().st_mode) == 0o600
    assert list(work.iterdir()) == []


def test_another_folder_has_none_of_them(state, work):
    grants(state, work).add(RULE)
    (work / "inner").mkdir()

    assert grants(state, work / "inner").texts() == ()
    assert grants(state, work.parent).texts() == ()


def test_a_folder_that_comes_to_the_same_path_has_none_of_them(state, work):
    grants(state, work).add(RULE)
    other = work.parent / "other"
    other.mkdir()
    work.rename(work.parent / "old")
    other.rename(work)

    assert grants(state, work).texts() == ()
    grants(state, work).add("new")
    assert grants(state, work).texts() == ("new",)


def test_a_link_to_the_folder_is_the_folder(state, work):
    link = work.parent / "link"
    link.symlink_to(work)
    grants(state, link).add(RULE)

    assert grants(state, work).texts() == (RULE,)


@pytest.mark.parametrize("text", ["", " ", " a", "a\n", "a\nb", "a\x1b[0m", "a\u202eb", "x" * 4097, "\ud800"])
def test_what_could_not_be_shown_in_a_line_is_no_rule(state, work, text):
    with pytest.raises(ConfigError, match="one line"):
        grants(state, work).add(text)


def test_there_is_an_end_to_rules(state, work, monkeypatch):
    monkeypatch.setattr("ferrule.permissions.trust._MOST", 2)
    for rule in ("a", "b", "a"):
        grants(state, work).add(rule)

    with pytest.raises(ConfigError, match="already"):
        grants(state, work).add("c")


def test_rules_are_not_kept_inside_of_the_workspace(work):
    inside = grants(work / "state", work)

    with pytest.raises(ConfigError, match="inside"):
        inside.add(RULE)
    assert inside.texts() == ()


@pytest.mark.parametrize("raw", [b"", b"{", b'{"rules": [1]}', b'{"rules": "Bash"}', b"null"])
def test_a_damaged_file_grants_nothing_and_is_moved_aside(state, work, raw):
    grants(state, work).add(RULE)
    [file] = state.glob("grants/*.json")
    file.write_bytes(raw)

    assert grants(state, work).texts() == ()
    [aside] = state.glob("grants/*damaged*")
    assert aside.read_bytes() == raw
    grants(state, work).add("new")
    assert grants(state, work).texts() == ("new",)


def test_a_file_that_others_can_write_grants_nothing(state, work):
    grants(state, work).add(RULE)
    [file] = state.glob("grants/*.json")
    file.chmod(0o622)

    assert grants(state, work).texts() == ()


def test_rules_that_were_smuggled_into_the_file_do_not_count_unless_they_can_be_shown(state, work):
    grants(state, work).add(RULE)
    [file] = state.glob("grants/*.json")
    file.write_text(file.read_text().replace(f'"{RULE}"', f'"{RULE}", "Bash(*)\\u202e"'))

    assert grants(state, work).texts() == (RULE,)


def test_hosts_are_kept_beside_the_rules_and_belong_to_the_same_folder(tmp_path):
    work, state = tmp_path / "work", str(tmp_path / "state")
    work.mkdir()
    grants = Grants(state, str(work))
    grants.add("Bash(git push *)")
    for host in ("pypi.example", "*.example.org", "pypi.example"):
        grants.add_host(host)
    assert Grants(state, str(work)).hosts() == ("pypi.example", "*.example.org")
    assert grants.texts() == ("Bash(git push *)",)

    grants.remove_host("pypi.example")
    assert (grants.hosts(), grants.texts()) == (("*.example.org",), ("Bash(git push *)",))
    work.rename(tmp_path / "other")
    work.mkdir()
    assert (grants.hosts(), grants.texts()) == ((), ())
