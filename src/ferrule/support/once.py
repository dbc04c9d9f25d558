"""What is said once and never again: a mark in the state folder remembers it."""

import os


def is_first(state: str, name: str) -> bool:
    """Is it the first time that somebody asks for this? Where no mark can be left, each time is the first."""
    folder = os.path.join(state, "told")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
