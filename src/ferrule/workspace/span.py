"""Where two contents differ, so that the journal keeps what changed and not the whole files."""


def changed_span(before: bytes, after: bytes) -> tuple[int, int, int]:
    """Where two contents differ: start, length in `before`, length in `after`."""
    start = _common(before, after)
    tail = _common_end(before, after, min(len(before), len(after)) - start)
    return start, len(before) - start - tail, len(after) - start - tail


def _common(one: bytes, other: bytes) -> int:
    """The length of the common beginning, by halving: comparing slices is memcmp, comparing bytes is Python."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _common_end(one: bytes, other: bytes, most: int) -> int:
    low, high = 0, most
    if most == 0 or one[-most:] == other[-most:]:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle
    return low
