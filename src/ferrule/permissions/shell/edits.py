"""Which commands are edits: all that they do is to change files of the workspace, and which ones is known."""

import re
import sys
from collections.abc import Iterator, Sequence

from ferrule.permissions.rules.rule import Touched
from ferrule.permissions.shell.cover import Covered, is_common
from ferrule.permissions.shell.form import Form, Reader, is_glob
from ferrule.permissions.shell.line import Redirect, Simple, Word
from ferrule.permissions.shell.part import Part, parts, reads_only
from ferrule.permissions.shell.scene import FEW, Scene, at, found, harmless_redirect
from ferrule.permissions.shell.sed import refusal
from ferrule.permissions.standing import EDIT_PROGRAMS

_SED = Form(
    "-nErsz -i? -e:x --in-place? --quiet --silent --regexp-extended --expression:x --separate --null-data",
    "text read*",
)
_SUFFIX = r"(?:\.?[A-Za-z0-9_]+)?"
"""What sed may be told to keep the old file under: with a star or a slash it would be kept elsewhere."""


def edits_inside(part: Part, covered: Covered, scene: Scene, *, development: bool) -> bool:
    """Is it covered, or does it plainly change files, every one of them inside the workspace?"""
    if not covered.lacks:
        return True
    simple = part.simple
    if not _written_inside(simple, scene):
        return False
    bare = simple._replace(redirects=tuple(filter(harmless_redirect, simple.redirects)))
    if not bare.words:
        return not bare.assigns
    if bare != simple and _passes(bare, scene, development=development):
        return True
    if part.program not in EDIT_PROGRAMS or simple.assigns or simple.inside:
        return False
    finding = part.finding
    if part.program == "sed" and finding.doubt:
        return _edited_in_place(simple, scene)
    sure = finding.known and not finding.doubt and not finding.unsure
    return sure and all(scene.inside(path.real) and not scene.off_limits(path) for path in part.paths)


def _written_inside(simple: Simple, scene: Scene) -> bool:
    """Do its redirections write nothing but files of the workspace that may be written?"""
    return all(_is_written_inside(one, simple.cwd, scene) for one in simple.redirects if not harmless_redirect(one))


def _is_written_inside(redirect: Redirect, cwd: str | None, scene: Scene) -> bool:
    if cwd is None or not redirect.target.known or not redirect.target.text:
        return False
    paths = list(at(cwd, redirect.target.text, write=redirect.writes))
    return all(scene.inside(path.real) and not scene.off_limits(path) for path in paths)


def _passes(bare: Simple, scene: Scene, *, development: bool) -> bool:
    """Would the command need no question, if its output went nowhere?"""
    return all(reads_only(one, scene) or (development and is_common(one, scene)) for one in parts(bare))


def _edited_in_place(simple: Simple, scene: Scene) -> bool:
    """Does `sed -i` change nothing but files of the workspace, with a script that does nothing else?"""
    paths = list(_edited(simple.stripped or simple.words, simple.cwd))
    return bool(paths) and all(scene.inside(path.real) and not scene.off_limits(path) for path in paths)


def _edited(words: Sequence[Word], cwd: str | None) -> Iterator[Touched]:
    """The files that `sed -i` writes; none where these or its script are not certain."""
    given = Reader(_SED, "sed").read(words[1:])
    in_place = given.has("-i", "--in-place")
    # Another sed takes the word behind `-i` for the ending of the old file, and the next one for its script.
    if given.doubt or not in_place or cwd is None or not sys.platform.startswith("linux"):
        return
    scripts = given.values("-e", "--expression")
    files = given.operands if scripts else given.operands[1:]
    scripts = scripts or list(given.operands[:1])
    endings = [value.text for value in given.values("-i", "--in-place")]
    if not all(script.known for script in scripts) or refusal("\n".join(script.text for script in scripts)):
        return
    if not all(re.fullmatch(_SUFFIX, ending) for ending in endings):
        return
    names: list[str] = []
    for file in files:
        matches = found(cwd, file.text, hidden=False) if is_glob(file) else []
        if not file.known and not 0 < len(matches) <= FEW:
            return
        names += [file.text] if file.known else matches
    for name in names:
        for ending in ("", *endings):
            yield from at(cwd, name + ending, write=True)
