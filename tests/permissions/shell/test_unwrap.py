"""Wrappers taken off a command, and the commands that a command runs by itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import each_kept_row

from .bash import every, taken


@each_kept_row
def test_what_only_changes_how_it_runs_is_taken_off(command: str, stripped: str | None) -> None:
    simple = taken(command).commands[0]

    assert " ".join(word.text for word in simple.stripped) == (
        stripped if stripped is not None else " ".join(word.text for word in simple.words)
    )


def test_what_xargs_adds_is_not_known() -> None:
    *_, last = taken("xargs grep x").commands[0].stripped

    assert not last.known
    assert not last.single
    assert last.start == ""


@each_kept_row
def test_the_commands_inside_of_a_command_are_found(command: str, inside: list[str] | None) -> None:
    line = taken(command)
    found = [" ".join(word.text for word in one.words) for one in line.commands[0].inside]

    assert found == inside if inside is not None else "rm x" in found


def test_doubts_about_a_script_are_doubts_about_the_line() -> None:
    assert taken("bash -c 'PATH=a; ls'").doubts
    assert taken("bash -c 'ls \"'").doubts
    assert not taken("bash -c 'ls'").doubts


def test_the_folder_is_followed_into_scripts_and_lost_where_it_changes() -> None:
    script, other = taken("bash -c 'a'; chroot / a").commands

    assert [one.cwd for one in script.inside] == ["/workspace"]
    assert [one.cwd for one in other.inside] == [None]


def test_the_variables_of_env_are_its_commands() -> None:
    inner = taken("env A=1 B=$x rm").commands[0].inside[0]

    assert [(name, value.text, value.known) for name, value in inner.assigns] == [("A", "1", True), ("B", "$x", False)]


WRAPPED = st.lists(
    st.sampled_from(["timeout 5", "nice", "nohup", "env", "sudo", "xargs", "setsid", "time", "env A=b", "nice -n 3"]),
    max_size=14,
)


@settings(deadline=None)
@given(WRAPPED)
def test_a_command_behind_wrappers_is_found_or_there_is_a_doubt(wrappers: list[str]) -> None:
    line = taken(" ".join([*wrappers, "rm x"]))

    assert line.doubts or any(one.split()[:2] == ["rm", "x"] for one in every(line))
