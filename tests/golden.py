"""Golden files: words that are reviewed as a diff. `pytest --golden=write` rewrites them."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


class Golden:
    """Compares texts with the files of `tests/golden`, or writes them there."""

    def __init__(self, *, write: bool, folder: Path = FOLDER) -> None:
        self._write = write
        self._folder = folder

    def check(self, name: str, text: str) -> None:
        """Is the text what the file holds? Both end in one newline."""
        path = self._folder / name
        text = text.rstrip("\n") + "\n"
        if self._write:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Tests run in parallel: a reader sees the old words or the new ones, never half of them.
            draft = path.with_name(f"{path.name}.{os.getpid()}")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
            return
        assert path.is_file(), f"There is no golden file {name}: run `pytest --golden=write` and review it."
        assert text == path.read_text(encoding="utf-8"), (
            f"{name} differs: run `pytest --golden=write`, review the diff."
        )
