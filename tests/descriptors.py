"""What this process has open, for tests that nothing stays open."""

import os
from collections import Counter

_HERE = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"


def open_now() -> Counter[str]:
    """What each descriptor leads to. Others may close theirs at any moment, so compare with `open_now() - before`."""
    found: Counter[str] = Counter()
    for name in os.listdir(_HERE):
        try:
            found[os.readlink(os.path.join(_HERE, name))] += 1
        except FileNotFoundError:  # that of the listing itself
            continue
        except OSError:  # a system that does not say where they lead
            found["somewhere"] += 1
    return found
