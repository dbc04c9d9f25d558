"""What a mistyped name may have been meant as."""

from collections.abc import Iterable

_LEEWAY = 0.14


def near(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The known names that are much like this one, in upper or lower case; the nearest first."""
    from difflib import SequenceMatcher, get_close_matches  # only a mistake pays for it

    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower, n=most)
    likeness = [SequenceMatcher(None, match, name.lower()).ratio() for match in found]
    # Next to one that is almost the same, what shares some letters is no help.
    return [by_lower[match] for match, like in zip(found, likeness, strict=True) if like > likeness[0] - _LEEWAY]
