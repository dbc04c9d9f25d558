"""What a mistyped name may have been meant as."""

from collections.abc import Iterable


def near(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The known names that are much like this one, in upper or lower case; the nearest first."""
    from difflib import get_close_matches  # only a mistake pays for it

    by_lower = {one.lower(): one for one in known}
    return [by_lower[match] for match in get_close_matches(name.lower(), by_lower, n=most)]
