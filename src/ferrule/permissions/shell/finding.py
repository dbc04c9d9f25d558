"""What the tables say of one simple command."""

from typing import NamedTuple


class Finding(NamedTuple):
    """What one simple command would do, as far as the tables know."""

    known: bool
    """Is there a row for the program and its sub-command?"""
    harmless: bool
    """Does it only read, with listed flags and nothing unknowable? Where its paths lead is another question."""
    doubt: str
    """Why a pattern of the user's does not cover it; empty where one would."""
    reads: tuple[str, ...] = ()
    """Files and folders that it reads, as written."""
    writes: tuple[str, ...] = ()
    """Files and folders that it writes, creates or deletes, as written."""
    unsure: bool = False
    """May it read or write what is in neither list?"""
    runs_project_code: bool = False
    """Does it run code that the repository chooses: build files, tests, hooks?"""
    program: str = ""
    globs: tuple[str, ...] = ()
    """Patterns among what it reads, as written; no match of theirs can be a flag."""
    deep: bool = False
    """Does it read the contents of every file below the folders that it reads?"""
    covers_inside: bool = False
    """Does it also speak for the command among its words, as for that of `npx` or `docker exec`?"""
    folder: str = ""
    """The folder that it goes to first, as with `git -C`; its paths are already written from outside of it."""
    into: tuple[str, ...] = ()
    """What it copies or moves into its last write, where that is a folder; with `/.` at the end, all that is in it."""
    unhides: tuple[str, ...] = ()
    """Globs of hidden files that it looks into all the same."""
    searches: tuple[str, ...] = ()
    """Globs of the files that it is told to look into."""
    only: tuple[str, ...] = ()
    """Globs of file names, one of which everything has that it reads below its folders; none where it reads all."""
    names_only: bool = False
    """Does it tell nothing of what is in the files that it reads?"""
    handed: bool = False
    """Does `xargs` hand it the names of files? Whether these are harmless is another question."""
    unlisted: str = ""
    """The sub-command without a row, with its program, or the program that is named by a path."""
