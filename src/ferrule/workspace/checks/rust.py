"""The checks of a Rust project. They build into one folder, and cargo lets one of them in at a time."""

from collections.abc import Iterator

from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.row import Row

CARGO = "Cargo.toml"


def rows(files: Files) -> Iterator[Row]:
    """The checks of the folder."""
    if not files.has(CARGO):
        return
    yield Row(
        "cargo check", "types", "cargo check --workspace --all-targets", CARGO, "cargo", "cargo", ("cargo check",)
    )
    if clippy := _clippy(files):
        # Warnings are only errors where the project says so itself.
        strict = " -- -D warnings" if files.says("-D warnings", "-Dwarnings") else ""
        command = f"cargo clippy --workspace --all-targets{strict}"
        yield Row("cargo clippy", "lint", command, clippy, "cargo-clippy", "cargo", ("cargo clippy",))
    yield Row("cargo fmt", "format", "cargo fmt --all --check", CARGO, "cargo-fmt", "", ("cargo fmt",))
    does = ("cargo test", "cargo nextest")
    yield Row("cargo test", "tests", "cargo test --workspace", CARGO, "cargo", "cargo", does)


def covers(files: Files) -> bool:
    """A workspace has its packages below it; any other package stands for itself."""
    return isinstance(files.at(CARGO, "workspace"), dict)


def _clippy(files: Files) -> str:
    """The file that speaks for clippy: it has opinions that not every project shares."""
    if file := files.has("clippy.toml", ".clippy.toml"):
        return file
    tables = (files.at(CARGO, "lints", "clippy"), files.at(CARGO, "workspace", "lints", "clippy"))
    return CARGO if any(table is not None for table in tables) or files.says("cargo clippy", "clippy") else ""
