"""Settings files as they are changed: one value, or all of it in an editor. What is not understood is never written."""

import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import click

from ferrule.core.errors import ConfigError
from ferrule.layered import File, Name, described, layered, project_path
from ferrule.settings import Settings, read_settings, settings_path


class SettingsFile:
    """The settings file of the user or of a project."""

    def __init__(self, workspace: str, *, of_project: bool) -> None:
        """Raises: ConfigError if a project's file is a link out of the project."""
        folder = os.path.realpath(workspace)
        self.layer: Name = "project" if of_project else "user"
        named = project_path(folder) if of_project else settings_path()
        # The user's file may be a link, as those who keep their settings in git have it.
        self.path = os.path.realpath(named)
        if of_project and self.path != named:
            raise ConfigError(f"{named} is a link to {self.path}, so it is not written.")

    def read(self) -> str:
        """The text; empty if there is no file. Raises: ConfigError."""
        raw = read_settings(self.path) or b""
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path} is not UTF-8 text (byte {error.start + 1}).") from error

    def settings(self, text: str) -> Settings:
        """What the text says. Raises ConfigError if these are no settings that this file may hold."""
        whole = layered([File(self.layer, self.path, text.encode())])
        if whole.warnings:
            raise ConfigError(whole.warnings[0])
        return whole.settings

    def write(self, text: str) -> None:
        """Write the whole file or nothing. Raises: ConfigError if it is wrong, OSError."""
        self.settings(text)
        folder = os.path.dirname(self.path)
        os.makedirs(folder, exist_ok=True)
        try:
            mode = os.stat(self.path).st_mode & 0o777
        except FileNotFoundError:
            mode = 0o600
        descriptor, new = tempfile.mkstemp(prefix=".settings-", dir=folder)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            os.chmod(new, mode)
            os.replace(new, self.path)
        except BaseException:
            os.unlink(new)
            raise


def key_path(key: str) -> list[str] | None:
    """The parts of a setting's name, None if there is no such setting. A part with a dot stands in quotes."""
    try:
        held: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return None
    parts = []
    while isinstance(held, dict) and len(held) == 1:
        ((part, held),) = held.items()
        parts.append(part)
    name = ".".join(parts)
    is_known = any(
        name == known or (isinstance(default, dict) and name.startswith(f"{known}.")) for known, default in described()
    )
    return parts if held == 0 and is_known else None


def with_value(file: SettingsFile, parts: Sequence[str], value: str) -> str:
    """The text of the file with one value changed, and all else as it was. Raises: ConfigError.

    A value is written as in TOML; what is none, or does not fit, is taken as a string.
    """
    before = file.read()
    if before:
        file.settings(before)
    first: ConfigError | None = None
    for candidate in _candidates(value):
        after = _changed(before, parts, candidate)
        try:
            held = file.settings(after)
        except ConfigError as error:
            first = first or error
        else:
            check_meaning(held, ".".join(parts))
            return after
    assert first is not None
    raise _plain(first, ".".join(parts), value)


def without(file: SettingsFile, parts: Sequence[str]) -> str:
    """The text of the file without one value, and all else as it was. Raises: ConfigError."""
    import tomlkit  # slow to load, and only for who changes something

    document: Any = tomlkit.parse(file.read())
    at = document
    for part in parts[:-1]:
        at = at.get(part, {})
    if not isinstance(at, dict) or parts[-1] not in at:
        raise ConfigError(f"{'.'.join(parts)} is not set in {file.path}: there is nothing to take away.")
    del at[parts[-1]]
    return tomlkit.dumps(document)


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": """a list, as '["one", "two"]'""",
    "object": "a table, which `ferrule config edit` can write",
    "null": "nothing",
}


def _plain(error: ConfigError, key: str, value: str) -> ConfigError:
    """The error in words, if it says what kind of value was expected."""
    found = re.search(r"Expected `([\w| ]+)`( [<>]=? [\d.]+)?", str(error))
    kinds = [_KINDS.get(kind) for kind in found[1].split(" | ")] if found is not None else [None]
    if found is None or None in kinds:
        return error
    named = " or ".join(kind for kind in kinds if kind and kind != "nothing")
    away = f" `ferrule config unset {key}` takes the value away." if value.lower() in {"none", "null"} else ""
    return ConfigError(f"{key} takes {named}{found[2] or ''}, and {value!r} is none.{away}")


def check_meaning(settings: Settings, key: str = "") -> None:
    """Raises ConfigError if the value of one setting, or of any, is the name of something that there is not."""
    from ferrule.dialects.dialect import load_dialect  # for who changes something
    from ferrule.models.names import named
    from ferrule.permissions import standing

    checks: dict[str, Callable[[], object]] = {
        "dialect": lambda: load_dialect(settings.dialect),
        "permissions.mode": lambda: standing.named(settings.permissions.mode),
        "models.default": lambda: settings.models.default and named(settings.models.default, settings.models),
        "models.small": lambda: settings.models.small and named(settings.models.small, settings.models),
    }
    for name, check in checks.items():
        if key in {name, ""}:
            check()


def _candidates(value: str) -> list[Any]:
    try:
        held = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return [value]
    return [held["value"], value] if set(held) == {"value"} else [value]


def _changed(text: str, parts: Sequence[str], value: Any) -> str:
    import tomlkit  # slow to load, and only for who changes something

    document = tomlkit.parse(text)
    wanted: Any = tomllib.loads(text)
    at: Any = document
    inside = wanted
    for part in parts[:-1]:
        if part not in at:
            at[part] = tomlkit.table()
        at, inside = at[part], inside.setdefault(part, {})
        if not isinstance(inside, dict):
            raise ConfigError(f"{part} is no table in the file: use `ferrule config edit`.")
    at[parts[-1]] = value
    inside[parts[-1]] = value
    after = tomlkit.dumps(document)
    try:
        is_right = tomllib.loads(after) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise ConfigError("The file is written in a way that one value cannot be put into: use `ferrule config edit`.")
    return after


def edit(file: SettingsFile, *, may_ask: bool) -> bool:
    """Have the user edit a copy, until it is right or the user gives up. False if nothing was changed.

    Raises: ConfigError.
    """
    before = text = file.read()
    while True:
        # An editor for terminals would wait for ever without one.
        if not (may_ask or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
            raise ConfigError("There is no terminal for an editor: use `ferrule config set`, or set EDITOR.")
        edited = click.edit(text, extension=".toml", require_save=False)
        if edited is None or edited == before:
            return False
        try:
            check_meaning(file.settings(edited))
            file.write(edited)
        except ConfigError as error:
            click.echo(f"ferrule: {error}", err=True)
            if not (may_ask and click.confirm("Edit it again?", default=True, err=True)):
                raise ConfigError(f"{file.path} is as it was.") from error
            text = edited
        else:
            return True
