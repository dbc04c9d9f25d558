"""The most memory that a process has had, for tests that it does not grow."""

import inspect


def peak_bytes() -> int:
    """Of this process since it began, or since `forget_peak`. What `getrusage` tells counts the parent's memory too."""
    import resource

    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    except FileNotFoundError:  # macOS, which has it in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak() -> None:
    """What is held now is the peak from here on, where the system can forget; an earlier peak would hide a growth."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:  # not Linux, or not allowed
        return


SOURCE = inspect.getsource(peak_bytes)
"""For programs that a test starts."""
