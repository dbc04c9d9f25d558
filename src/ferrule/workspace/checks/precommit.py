"""The hooks of pre-commit as one check. They may change files: nothing runs beside them."""

from collections.abc import Iterator

from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.packages import run_as
from ferrule.workspace.checks.row import ALONE, Row


def rows(files: Files) -> Iterator[Row]:
    """The check of the folder; hooks are only ever run from the root of a repository."""
    if not files.shown and (source := files.has(".pre-commit-config.yaml", ".pre-commit-config.yml")):
        called, program = run_as(files, "pre-commit")
        yield Row(
            "pre-commit", "lint", f"{called} run --all-files --color=never", source, program, ALONE, ("pre-commit",)
        )
