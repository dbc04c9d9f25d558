"""The files that plans are written to: where they lie, what they are called, and reading one as it is now."""

import os
import stat
import time

from ferrule.core.access import within
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail

OWN_FOLDER = os.path.join(".ferrule", "plans")
"""The one folder among the protected ones that plans may be written to."""
MOST_CHARS = 50_000
"""A plan is shown whole to whoever approves it."""
_SLUG_CHARS = 40


class PlanFolder:
    """The folder of plans. Nothing is made before the model writes its plan."""

    def __init__(self, jail: Jail, guard: Guard, folder: str) -> None:
        self._jail = jail
        self._guard = guard
        self._folder = folder

    def path(self) -> str:
        """The folder, real. Raises `ConfigError` where it lies outside, behind a link, or is one that is obeyed."""
        workspace = self._jail.folder
        spelled = os.path.normpath(os.path.join(workspace, os.path.expanduser(self._folder)))
        name = self._folder
        if not self._folder or "\0" in self._folder or not within(spelled, workspace):
            raise ConfigError(f"plan.folder is {name!r}, outside the workspace. Give a folder in the workspace.")
        if os.path.realpath(spelled) != spelled:
            raise ConfigError(f"plan.folder is {name!r}, which leads through a link. Give the folder itself.")
        if os.path.lexists(spelled) and not os.path.isdir(spelled):
            raise ConfigError(f"plan.folder is {name!r}, which is a file. Give a folder in the workspace.")
        example = os.path.join(spelled, "plan.md")
        is_own = within(spelled, os.path.join(workspace, OWN_FOLDER))
        if self._guard.secret(example) or (self._guard.protected(example) and not is_own):
            raise ConfigError(f"plan.folder is {name!r}, where files are secret or obeyed. Give another folder.")
        return spelled

    def fresh(self, about: str = "") -> str:
        """The path of a plan that is to be written: a name by the day and what it is about, that nobody has yet."""
        folder, day = self.path(), time.strftime("%Y-%m-%d")
        slug = _slug(about)
        path = os.path.join(folder, f"{day}-{slug}.md") if slug else ""
        while not path or os.path.lexists(path):
            extra = os.urandom(3).hex()
            path = os.path.join(folder, "-".join(part for part in (day, slug, extra) if part) + ".md")
        return path

    def named(self, file: str) -> str:
        """The real path of a plan in the folder, by its name or path. Raises `ToolFailure` for anything else."""
        folder = self.path()
        tail = os.path.basename(os.path.normpath(file)) if file.strip() else ""
        for spelled in dict.fromkeys((file, os.path.join(folder, file), os.path.join(folder, tail))):
            path = os.path.normpath(os.path.join(self._jail.folder, spelled))
            if os.path.dirname(path) == folder and path.endswith(".md") and "\0" not in path:
                return path
        shown = self._jail.shown(folder)
        raise ToolFailure(f"{file} is no plan: give the name of a `.md` file in {shown}.", code="no-plan")


def read_plan(jail: Jail, path: str) -> str:
    """The text of a plan, through no link. Raises `ToolFailure` where there is none, or more than can be shown."""
    shown = jail.shown(path)
    try:
        place = jail.place(path)
        with place.folder() as folder, open(folder.open(place.name), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ToolFailure(f"{shown} is no regular file. Write the plan to it first.", code="no-plan", path=path)
            raw = file.read(4 * MOST_CHARS + 1)
    except FileNotFoundError:
        why = f"There is no plan yet: write it to {shown}, or give its text as `plan`, then try again."
        raise ToolFailure(why, code="no-plan", path=path) from None
    except OSError as error:
        raise ToolFailure(f"The plan {shown} cannot be read: {error.strerror}.", code="no-plan", path=path) from error
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        long = error.reason == "unexpected end of data" and len(raw) > 4 * MOST_CHARS
        why = "has too much text" if long else "is not UTF-8 text"
        raise ToolFailure(f"The plan {shown} {why}. Write it again.", code="no-plan", path=path) from None
    if not text.strip():
        raise ToolFailure(f"The plan {shown} is empty. Write the plan to it first.", code="no-plan", path=path)
    if len(text) > MOST_CHARS:
        raise ToolFailure(
            f"The plan {shown} has more than {MOST_CHARS:,} characters, too many for somebody to approve. Shorten it.",
            code="plan-too-long",
            path=path,
        )
    return text


def unfit(text: str) -> str:
    """Why a text can be no plan, as the end of a sentence; empty where it can."""
    if not text.strip():
        return "it is empty"
    return f"it has more than {MOST_CHARS:,} characters" if len(text) > MOST_CHARS else ""


def _slug(about: str) -> str:
    """Some letters and digits of a text, for a name: in lower case, with hyphens between words."""
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in about.lower()).split()
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:_SLUG_CHARS]
        if len(longer) > _SLUG_CHARS:
            break
        slug = longer
    return slug
