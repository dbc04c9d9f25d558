"""Provides the programs that the tests need beside Python, or says what cannot be tested in full without them.

`make test` runs it before everything else. It always exits 0: a missing program makes a proof smaller, not false.
"""

import os
import sys

NEEDED = {
    "strace": ("strace", "kill -9 and errors at every system call (the same at every call of Python's is tested)"),
    "git": ("git", "diffs against git's own, and repositories"),
    "bwrap": ("bubblewrap", "the sandbox of commands"),
}
"""Program → its Debian package, and what its absence leaves untested."""
_LIMIT_SECONDS = 300


def main() -> None:
    """Look, fetch what is missing where that is possible, and look again."""
    absent = missing()
    if absent and os.name == "posix" and os.geteuid() == 0 and there("apt-get"):
        install([NEEDED[program][0] for program in absent])
        absent = missing()
    for program in absent:
        package, lost = NEEDED[program]
        print(
            f"{program} is not there (Debian: apt-get install {package}); not tested in full: {lost}.", file=sys.stderr
        )


def missing() -> list[str]:
    return [program for program in NEEDED if not there(program)]


def there(program: str) -> bool:
    """Is the program on PATH? `shutil.which` would do; importing it takes longer than looking."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    suffixes = ("", ".exe") if os.name == "nt" else ("",)
    return any(os.access(os.path.join(folder, program + end), os.X_OK) for folder in folders for end in suffixes)


def install(packages: list[str]) -> None:
    """Quietly; what goes wrong shows in what is still missing afterwards."""
    import subprocess

    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    update = ["apt-get", "update"]
    fetch = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    for argv in (update, fetch):
        try:
            subprocess.run(argv, env=environment, capture_output=True, timeout=_LIMIT_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{argv[0]} {argv[1]}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
