"""The batches of a message: the seed's conflict rules, its example, and its algorithm as written."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.access import EVERYTHING, Access, conflicts
from ferrule.schedule.batches import batches


def path(*components):
    return os.sep + os.sep.join(components)


A, B, C = path("a"), path("b"), path("c")


def as_the_seed_writes_it(calls):
    """Its pseudocode line by line, with a pairwise look at the whole batch."""
    out = []
    batch = []
    for call, touched in calls:
        if any(
            touched is None or other is None or conflicts(touched, other)  # pairwise, whatever it costs
            for _, other in batch
        ):
            out.append([name for name, _ in batch])
            batch = []
        batch.append((call, touched))
    if batch:
        out.append([name for name, _ in batch])
    return out


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([], [], id="no-calls"),
        pytest.param(
            [
                ("Read A", [Access.read(A)]),
                ("Read B", [Access.read(B)]),
                ("Edit A", [Access.write(A)]),
                ("Read C", [Access.read(C)]),
            ],
            [["Read A", "Read B"], ["Edit A", "Read C"]],
            id="the-seed's-example-by-its-algorithm",
        ),
        pytest.param([("x", None), ("y", None)], [["x"], ["y"]], id="rule-1-no-profile-conflicts"),
        pytest.param(
            [("x", []), ("y", None), ("z", [])],
            [["x"], ["y"], ["z"]],
            id="rule-1-even-with-those-who-touch-nothing",
        ),
        pytest.param(
            [("x", [EVERYTHING]), ("y", [EVERYTHING]), ("z", [Access.read(A)])],
            [["x"], ["y"], ["z"]],
            id="rule-2-serial-always-conflicts",
        ),
        pytest.param([("x", [Access.read(A)]), ("y", [Access.write(A)])], [["x"], ["y"]], id="rule-3-read-write"),
        pytest.param([("x", [Access.write(A)]), ("y", [Access.write(A)])], [["x"], ["y"]], id="rule-3-write-write"),
        pytest.param([("x", [Access.read(A)]), ("y", [Access.read(A)])], [["x", "y"]], id="rule-4-read-read"),
        pytest.param(
            [("x", [Access.write(A)]), ("y", [Access.write(B)])], [["x", "y"]], id="writes-of-two-files-share"
        ),
        pytest.param(
            [("grep", [Access.read(A)]), ("edit", [Access.write(path("a", "f"))])],
            [["grep"], ["edit"]],
            id="a-file-below-a-folder-conflicts",
        ),
        pytest.param(
            [
                ("x", [Access.write(A)]),
                ("y", [Access.read(A)]),
                ("z", [Access.write(B)]),
                ("w", [Access.write(A)]),
            ],
            [["x"], ["y", "z"], ["w"]],
            id="only-the-current-batch-counts",
        ),
        pytest.param(
            [("x", [Access.read(A), Access.write(path("a", "f"))]), ("y", [])],
            [["x", "y"]],
            id="a-call-never-conflicts-with-itself",
        ),
    ],
)
def test_a_message_is_cut_as_the_seed_says(calls, expected):
    assert batches(calls) == expected


keys = st.sampled_from([os.sep, A, path("a", "b"), path("a", "b", "c"), path("a", "bc"), B])
accesses = st.builds(
    Access, st.sampled_from(["path", "path", "path", "host"]), st.sampled_from(["read", "write"]), keys
)
profiles = st.none() | st.lists(accesses | st.just(EVERYTHING), max_size=2)
reads = st.builds(lambda key: [Access.read(key)], keys)


@given(st.lists(profiles | reads, max_size=12))
def test_batches_are_those_of_the_seed_s_own_algorithm(profiles):
    calls = list(enumerate(profiles))

    assert batches(calls) == as_the_seed_writes_it(calls)


@given(st.lists(profiles | reads, max_size=12))
def test_batches_keep_every_call_in_order(profiles):
    cut = batches(list(enumerate(profiles)))

    assert [call for batch in cut for call in batch] == list(range(len(profiles)))
    assert all(cut)
