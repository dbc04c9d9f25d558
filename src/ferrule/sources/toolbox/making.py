"""New toolbox tools: a template that works, to be changed by its owner."""

import os
import re
from typing import Literal, get_args

from ferrule.core.errors import ConfigError
from ferrule.sources.toolbox.naming import MOST_CHARS, PREFIX

Language = Literal["bash", "zsh", "python", "node"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_NAME = "@NAME@"


def make(name: str, language: Language, folder: str) -> str:
    """Write a tool of that name into the folder, ready to run; its path. Raises ConfigError, and overwrites nothing."""
    room = MOST_CHARS - len(PREFIX)
    if not re.fullmatch(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{room - 1}}}", name):
        raise ConfigError(f"A tool cannot be called {name!r}: use letters, digits, _ and -, {room} at most.")
    with open(os.path.join(os.path.dirname(__file__), "templates", language), encoding="utf-8") as file:
        text = file.read().replace(_NAME, name)
    path = os.path.join(folder, name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(path, flags, 0o755)
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} is there already; choose another name, or remove it first.") from error
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from error
    with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o755)  # whatever new files are otherwise
    return path
