"""Build the home folder and the temporary folder that commands see.

The rest appears empty. Toolchains can be read. Caches can be read, and what is written there goes into a folder of
the engine's own. This table is what `ferrule doctor` shows.

A session has its own and removes it at its end. The calls of `ferrule call` in one workspace share one, which is
emptied after an hour without a call. A lock says that somebody uses it; what a killed engine left has none.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

TOOLCHAINS = (
    ".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/pipx", ".local/share/pypoetry",
    ".local/share/mise", ".local/share/fnm", ".local/share/pnpm", ".local/share/virtualenvs", ".local/share/hatch",
    ".local/state/nix", ".nix-profile", ".pyenv", ".rye", ".poetry", ".virtualenvs", ".conda", ".condarc",
    "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba",
    ".nvm", ".fnm", ".volta", ".bun", ".deno", ".npm-global", ".npm-packages", ".yarn", ".nodenv", ".n",
    ".asdf", ".tool-versions", ".sdkman", ".jenv", ".rbenv", ".rvm", ".gem", ".phpenv", ".tfenv", ".goenv",
    ".cargo", ".rustup", "go", ".dotnet", ".ghcup", ".cabal", ".stack", ".elan", ".opam", ".juliaup", ".julia",
    ".swiftly", ".linuxbrew", ".krew", ".mix", ".hex", ".kerl", ".luarocks", ".stack", ".proto", ".pub-cache",
)  # fmt: skip
"""Folders of programs and their libraries, read-only."""
CACHES = (
    ".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".m2", ".gradle", ".ivy2", ".nuget", ".bundle/cache",
    ".composer/cache", ".pub-cache", ".yarn/berry/cache", ".local/share/pnpm/store", ".bun/install/cache",
    ".hex/packages", ".conda/pkgs", ".sbt", ".coursier", ".android/cache", ".expo", ".cpan",
    ".terraform.d/plugin-cache",
)  # fmt: skip
"""Folders that programs fill: their contents are seen, and what is written goes elsewhere."""
SETTINGS = (
    ".gitconfig", ".config/git", ".config/pip", ".pip", ".config/uv", ".config/pypoetry", ".config/ruff",
    ".config/black", ".config/matplotlib", ".config/mise", ".config/yarn", ".config/pnpm", ".yarnrc", ".npmrc",
    ".pylintrc", ".config/flake8",
    ".editorconfig", ".python-version", ".node-version", ".ruby-version", ".nvmrc", ".inputrc", ".curlrc", ".wgetrc",
    ".config/nix", ".config/go", ".config/jj", ".gemrc", ".irbrc", ".cargo/config.toml", ".ripgreprc", ".config/fd",
)  # fmt: skip
"""Settings of development programs, read-only; secret ones among them are masked."""
VARIABLES = (
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX", "PYENV_ROOT", "NVM_DIR", "NVM_BIN", "FNM_DIR",
    "VOLTA_HOME", "BUN_INSTALL", "DENO_INSTALL", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "CARGO_HOME",
    "RUSTUP_HOME", "GOROOT",
    "GOPATH", "JAVA_HOME", "SDKMAN_DIR", "RBENV_ROOT", "GEM_HOME", "DOTNET_ROOT", "PNPM_HOME", "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR", "PIPX_HOME", "POETRY_HOME", "HOMEBREW_PREFIX", "PYTHONUSERBASE", "ANDROID_HOME", "NODE_PATH",
)  # fmt: skip
"""Variables that name such folders."""
_NAMING_KEYS = frozenset({"path", "excludesfile", "attributesfile", "template", "hookspath", "templatedir"})
_PROGRAMS = frozenset({"bin", "sbin", "Scripts", "shims", "condabin"})
_SYSTEM = frozenset({os.sep, "/usr", "/usr/local", "/opt", "/home", "/root", "/tmp", "/var", "/var/tmp", "/run"})  # noqa: S108


class HomeView(NamedTuple):
    """What commands see of the home folder."""

    shown: tuple[str, ...]
    caches: tuple[str, ...]


def home_view(home: str, env: Mapping[str, str]) -> HomeView:
    """What exists of the table, with the toolchains that the environment names."""
    shown = [os.path.join(home, name) for name in (*TOOLCHAINS, *SETTINGS)]
    shown += environments(env, home)
    shown += _git_config_paths(home)
    caches = [path for name in CACHES if os.path.isdir(path := os.path.join(home, name)) and not os.path.islink(path)]
    return HomeView(_outermost(path for path in shown if os.path.lexists(path)), tuple(dict.fromkeys(caches)))


def environments(env: Mapping[str, str], home: str) -> list[str]:
    """The whole folders of the virtual environments and toolchains that PATH and other variables lead to."""
    named = [value for name in VARIABLES for value in env.get(name, "").split(os.pathsep) if os.path.isabs(value)]
    folders = [folder for folder in env.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    found = [whole for folder in folders for whole in _whole(os.path.normpath(folder), home)]
    return [path for path in dict.fromkeys((*found, *map(os.path.normpath, named))) if path not in {home, os.sep}]


def _whole(folder: str, home: str) -> list[str]:
    """The environment that a folder of programs belongs to, and the one that it was made from."""
    upper = os.path.dirname(folder)
    if os.path.isfile(os.path.join(upper, "pyvenv.cfg")):
        return [upper, *_base(os.path.join(upper, "pyvenv.cfg"))]
    is_own = os.path.basename(folder) in _PROGRAMS and upper not in _SYSTEM
    if is_own and upper not in {home, os.path.join(home, ".local")}:
        return [upper]
    return [folder]


def _base(path: str) -> Iterable[str]:
    """Where the Python lies that a virtual environment was made from."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = dict(line.split("=", 1) for line in file.read(1 << 16).splitlines() if "=" in line)
    except OSError:
        return
    value = next((value.strip() for name, value in rows.items() if name.strip() == "home"), "")
    upper = os.path.dirname(os.path.normpath(value)) if os.path.isabs(value) else ""
    if upper and upper not in _SYSTEM:
        yield upper


def _git_config_paths(home: str) -> list[str]:
    """Files that the user's own git settings name: ignored patterns, attributes, templates, included settings."""
    found: list[str] = []
    for name in (".gitconfig", ".config/git/config"):
        try:
            with open(os.path.join(home, name), encoding="utf-8", errors="replace") as file:
                lines = file.read(1 << 18).splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition("=")
            if key.strip().lower() in {
                "path",
                "excludesfile",
                "attributesfile",
                "template",
                "hookspath",
                "templatedir",
            }:
                found.append(os.path.join(home, os.path.expanduser(value.strip().strip('"'))))
    return [os.path.normpath(path) for path in found if os.path.normpath(path) != home]


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in another one."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda one: one.count(os.sep)):
        if not any(path == folder or path.startswith(folder + os.sep) for folder in kept):
            kept.append(path)
    return tuple(kept)


def find_hidden_path(output: str, home: str, seen: Sequence[str]) -> str:
    """A path of the home folder that a failed command speaks of and that is hidden from it, though it exists."""
    at = -1
    while (at := output.find(home + os.sep, at + 1)) >= 0:
        end = at
        while end < len(output) and output[end] not in "\n\t '\"`:;,)]}>":
            end += 1
        path = output[at:end].rstrip(".")
        while not os.path.lexists(path) and len(path) > len(home):
            path = os.path.dirname(path)
        if len(path) > len(home) and not any(path == one or path.startswith(one + os.sep) for one in seen):
            return path
    return ""


_SHARED = "call-"
_STALE_SECONDS = 3600.0


class Temporary:
    """One such folder, locked while it is used."""

    def __init__(self, state: str, *, workspace: str = "") -> None:
        """`workspace`: share the folder with all calls there. Raises OSError."""
        os.makedirs(os.path.join(state, "machines"), 0o700, exist_ok=True)
        self.all = os.path.realpath(os.path.join(state, "machines"))
        """Where those of all sessions are."""
        self._sweep()
        name = _SHARED + hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16] if workspace else secrets.token_hex(8)
        self._folder = os.path.join(self.all, name)
        self._is_shared = bool(workspace)
        self._lock = _lock_folder(self._folder, make=True, shared=True)
        self.path = os.path.join(self._folder, "tmp")
        """What commands have as /tmp."""
        self._caches = -1
        self._all_caches = os.path.join(state, "caches")
        os.makedirs(self.path, exist_ok=True)
        os.chmod(self.path, 0o1777)  # noqa: S103 - as every /tmp is; the folder above is closed to others
        os.utime(self._folder)

    def caches(self) -> str:
        """Where caches are written: the user's one such folder, or one of this session where another session has it.

        The kernel lays one folder over another for one user of it at a time.
        """
        if self._caches < 0:
            try:
                self._caches = _lock_folder(self._all_caches, make=True, shared=False)
            except OSError:
                return os.path.join(self._folder, "caches")
        return self._all_caches

    def close(self) -> None:
        """Remove it, unless others may need it."""
        if self._lock < 0:
            return
        if self._caches >= 0:
            os.close(self._caches)
            self._caches = -1
        if self._is_shared:
            with contextlib.suppress(OSError):
                os.utime(self._folder)
        else:
            _remove(self._folder)
        os.close(self._lock)
        self._lock = -1

    def _sweep(self) -> None:
        """Remove what nobody uses: that of engines that are dead, and shared ones without a call for an hour."""
        for name in os.listdir(self.all):
            folder = os.path.join(self.all, name)
            with contextlib.suppress(OSError):
                if name.startswith(_SHARED) and time.time() - os.stat(folder).st_mtime < _STALE_SECONDS:
                    continue
                lock = _lock_folder(folder, make=False, shared=False)
                try:
                    _remove(folder)
                finally:
                    os.close(lock)


def _lock_folder(folder: str, *, make: bool, shared: bool) -> int:
    import fcntl  # not on Windows, which has no such sandbox

    if make:
        os.makedirs(folder, 0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _remove(folder: str) -> None:
    """Remove a folder, also those parts of it that a command has closed to its own user."""

    def open_up(_function: object, path: str, _why: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    shutil.rmtree(folder, onerror=open_up)
