"""The access model: which two accesses may not overlap in time."""

import os
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.access import EVERYTHING, Access, Mode, conflict, conflicts, within


def path(*components: str) -> str:
    return os.sep + os.sep.join(components)


components = st.text(st.sampled_from("ab."), min_size=1, max_size=3).filter(lambda name: name not in {".", ".."})
paths = st.lists(components, max_size=4).map(lambda names: path(*names))
modes = st.sampled_from(["read", "write"])
named = st.builds(Access, st.sampled_from(["path", "process", "host"]), modes, paths)
accesses = named | st.just(EVERYTHING)
touched = st.lists(accesses, max_size=3)


@each_row(
    ("one", "other", "expected"),
    [
        pytest.param(Access.read(path("a")), Access.read(path("a")), False, id="read-read-on-one-key"),
        pytest.param(Access.read(path("a")), Access.write(path("a")), True, id="read-write-on-one-key"),
        pytest.param(Access.write(path("a")), Access.write(path("a")), True, id="write-write-on-one-key"),
        pytest.param(Access.write(path("a")), Access.write(path("b")), False, id="writes-of-two-keys"),
        pytest.param(Access.read(path("src")), Access.write(path("src", "a.py")), True, id="write-under-a-read"),
        pytest.param(Access.write(path("src")), Access.read(path("src", "a.py")), True, id="read-under-a-write"),
        pytest.param(Access.read(path("src")), Access.read(path("src", "a.py")), False, id="read-under-a-read"),
        pytest.param(Access.write(path("a", "b")), Access.write(path("a", "bc")), False, id="longer-name"),
        pytest.param(Access.write(path("a", "b")), Access.write(path("a", "b.c")), False, id="name-with-suffix"),
        pytest.param(Access.read(os.sep), Access.write(path("a", "b")), True, id="root-read"),
        pytest.param(Access.write(os.sep), Access.read(os.sep), True, id="root-and-root"),
        pytest.param(Access.host("a.org"), Access.host("a.org"), False, id="host-read-read"),
        pytest.param(Access.host("a.org"), Access.host("a.org", mode="write"), True, id="host-read-write"),
        pytest.param(Access.host("A.org", mode="write"), Access.host("a.ORG"), True, id="host-in-any-case"),
        pytest.param(Access.host("a.org", mode="write"), Access.host("b.a.org"), False, id="a-subdomain-is-another"),
        pytest.param(Access.process("1"), Access.process("1"), True, id="one-process"),
        pytest.param(Access.process("1"), Access.process("2"), False, id="two-processes"),
        pytest.param(Access.process(path("a")), Access.write(path("a")), False, id="one-key-two-kinds"),
        pytest.param(EVERYTHING, Access.read(path("a")), True, id="everything-and-a-read"),
        pytest.param(EVERYTHING, EVERYTHING, True, id="everything-and-everything"),
        pytest.param(EVERYTHING, Access("everything", "read", ""), True, id="everything-read"),
    ],
)
def test_two_accesses_conflict_as_the_table_says(one: Access, other: Access, expected: bool) -> None:
    assert (conflict(one, other), conflict(other, one)) == (expected, expected)


@given(accesses, accesses)
def test_conflict_is_symmetric(one: Access, other: Access) -> None:
    assert conflict(one, other) == conflict(other, one)


@given(touched, touched)
def test_conflict_of_calls_is_symmetric(ones: list[Access], others: list[Access]) -> None:
    assert conflicts(ones, others) == conflicts(others, ones)


@given(named, named)
def test_a_read_never_conflicts_with_a_read(one: Access, other: Access) -> None:
    assert not conflict(one._replace(mode="read"), other._replace(mode="read"))


@given(paths, st.lists(components, max_size=3), modes)
def test_a_write_conflicts_with_all_that_is_at_or_below_its_path(folder: str, names: list[str], mode: Mode) -> None:
    below = os.path.join(folder, *names)

    assert conflict(Access.write(folder), Access("path", mode, below))
    assert conflict(Access("path", mode, folder), Access.write(below))


@given(paths, components, components, st.lists(components, max_size=2), st.lists(components, max_size=2))
def test_what_lies_in_two_folders_never_conflicts(
    folder: str, one: str, tail: str, below_one: list[str], below_other: list[str]
) -> None:
    # The names share a prefix on purpose: only whole components count.
    left = os.path.join(folder, one, *below_one)
    right = os.path.join(folder, one + tail, *below_other)

    assert not conflict(Access.write(left), Access.write(right))


@given(paths, modes)
def test_the_root_holds_every_path(below: str, mode: Mode) -> None:
    assert within(below, os.sep)
    assert conflict(Access.write(os.sep), Access("path", mode, below))


@given(paths, paths, paths)
def test_within_is_an_order(inner: str, middle: str, outer: str) -> None:
    assert within(inner, inner)
    assert not (within(inner, middle) and within(middle, inner)) or inner == middle
    assert not (within(inner, middle) and within(middle, outer)) or within(inner, outer)


@given(named, named)
def test_accesses_of_two_kinds_never_conflict(one: Access, other: Access) -> None:
    assert one.kind == other.kind or not conflict(one, other)


@given(accesses)
def test_everything_conflicts_with_every_access_but_a_word_to_a_process(access: Access) -> None:
    assert conflict(EVERYTHING, access) is (access.kind != "process")


@given(accesses)
def test_a_command_that_only_reads_conflicts_with_what_writes(access: Access) -> None:
    reading = Access.command("ls", "/")._replace(mode="read")
    writes = access.mode != "read" or access.kind == "everything"
    assert conflict(reading, access) is (writes and access.kind != "process")


@given(touched)
def test_a_call_that_touches_nothing_conflicts_with_no_call(others: list[Access]) -> None:
    assert not conflicts((), others)
    assert not conflicts((), (EVERYTHING, *others))


@given(touched, touched)
def test_calls_conflict_if_any_of_their_accesses_do(ones: list[Access], others: list[Access]) -> None:
    expected = any(conflict(one, other) for one in ones for other in others)

    assert conflicts(iter(ones), iter(others)) == expected


def test_accesses_are_made_from_strings_and_path_objects() -> None:
    made = (
        Access.read(PurePath(path("a"))),
        Access.write(path("a")),
        Access.host("Example.ORG"),
        Access.process("7"),
    )

    assert made == (
        Access("path", "read", path("a")),
        Access("path", "write", path("a")),
        Access("host", "read", "example.org"),
        Access("process", "write", "7"),
    )
