"""Names that a mistyped one may have been meant as."""

import pytest

from ferrule.core.errors import near


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        pytest.param("raed", ["Read", "Grep"], ["Read"], id="swapped-letters"),
        pytest.param("READ", ["Grep", "Read"], ["Read"], id="another-case"),
        pytest.param("zzz", ["Read", "Grep"], [], id="nothing-like-it"),
        pytest.param("", ["Read"], [], id="no-name"),
        pytest.param("Read", [], [], id="nothing-known"),
        pytest.param(
            "reads", ["rea", "reads1", "Read", "readsy2", "area"], ["reads1", "Read", "readsy2"], id="the-nearest-three"
        ),
        pytest.param("raed", ["oracle", "Read", "kraken"], ["Read"], id="what-is-far-behind-is-no-help"),
    ],
)
def test_the_names_most_like_it_come_first(name, known, expected):
    assert near(name, known) == expected


def test_no_more_are_given_than_are_wanted():
    assert near("name", ["name1", "name2", "name"], most=1) == ["name"]
