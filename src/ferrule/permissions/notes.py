"""Which files in its folder of notes are the agent's own: those that no program obeys by itself."""

import os

_ENDINGS = frozenset({"", ".md", ".txt", ".log", ".csv", ".json", ".jsonl"})
_OBEYED = frozenset(
    {"package", "project", "tsconfig", "jsconfig", "deno", "nx", "turbo", "lerna", "composer", "build", "workspace"}
    | {"makefile", "gnumakefile", "dockerfile", "justfile", "rakefile", "sconstruct", "sconscript", "wscript", "buck"}
)
"""Names that build programs look for in every folder."""


def is_note(path: str) -> bool:
    """Is it a note by its name? Code and settings are not: a test run may pick them up."""
    stem, ending = os.path.splitext(os.path.basename(path).lower())
    return ending in _ENDINGS and not stem.startswith(".") and stem not in _OBEYED
