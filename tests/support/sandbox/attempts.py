"""What a confined command must not be able to do, as attempts that succeed where nothing confines them.

A table for every back end: `WORLD` says what lies around, an attempt is a script for bash, and `happened` says from
outside whether it came through. Each is also run unconfined, where it must come through: a test that can fail.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.sandbox import Profile, Sandbox

if TYPE_CHECKING:
    from ferrule.sandbox.tripwire import Tripwire

SECRET = "hunter2-and-more"
LIMIT_SECONDS = 60


class Heard(list[str]):
    """What came in at the sockets, with a way to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._news = threading.Condition()

    def append(self, text: str) -> None:
        with self._news:
            super().append(text)
            self._news.notify_all()

    def wait_for(self, text: str) -> None:
        with self._news:
            assert self._news.wait_for(lambda: text in self, LIMIT_SECONDS)


class World(NamedTuple):
    """A workspace, what lies outside of it, and who listens there."""

    workspace: Path
    outside: Path
    """Holds `secret`, `vault/key` and `plain`; can be seen by a confined command and not be written."""
    tcp: int
    udp: int
    unix: Path
    abstract: str
    heard: Heard

    def profile(self, **changes: Any) -> Profile:
        ours = self.workspace
        whole = Profile(
            writable=(str(ours),),
            kept=tuple(
                str(ours / name)
                for name in (
                    ".git/hooks",
                    ".git/config",
                    "sub/.git/hooks",
                    ".mcp.json",
                    ".claude/settings.json",
                    "sub/.vscode/tasks.json",
                )
            ),
            masked=tuple(
                str(one)
                for one in (
                    ours / ".env",
                    ours / "sub/.env",
                    ours / "app/deep/.env",
                    ours / "keys",
                    self.outside / "secret",
                    self.outside / "vault",
                )
            ),
        )
        return whole._replace(**changes)

    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.workspace),
            "LC_ALL": "C.UTF-8",
            "WS": str(self.workspace),
            "OUT": str(self.outside),
            "TCP": str(self.tcp),
            "UDP": str(self.udp),
            "UNIX": str(self.unix),
            "ABSTRACT": self.abstract,
            "PY": python(),
            "ENGINE": str(os.getpid()),
            "GIT_CONFIG_NOSYSTEM": "1",
        }


class Ran(NamedTuple):
    """What came of a script."""

    code: int
    output: str


class Attempt(NamedTuple):
    """One thing that must be denied."""

    name: str
    script: str
    happened: Callable[[World, Ran], bool]
    needs_mounts: bool = False
    """Is it out of reach for Landlock alone, which cannot take a file out of a folder that may be written?"""
    needs_tripwire: bool = False
    """Is it undone after the command, by who compares protected paths, and not kept from it?"""
    unconfined: bool = True
    """Does it come through where nothing confines it, for this user?"""


def python() -> str:
    """A Python that every user can start."""
    return next((one for one in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(one)), sys.executable)


@contextlib.contextmanager
def world(folder: Path) -> Iterator[World]:
    """Make one. The outside lies where a private /tmp does not hide it, where the user has such a place."""
    ours = folder / "workspace"
    for one in (".git/hooks", "sub/.git/hooks", "sub/.vscode", "keys", "src", "app/deep"):
        (ours / one).mkdir(parents=True)
    (ours / ".git/config").write_text("[core]\n\tbare = false\n")
    (ours / ".git/hooks/pre-push").write_text("#!/bin/sh\n")
    (ours / ".env").write_text(SECRET)
    (ours / "sub/.env").write_text(SECRET)
    (ours / "app/deep/.env").write_text(SECRET)
    (ours / "keys/id").write_text(SECRET)
    (ours / "src/a.txt").write_text("a\n")
    heard = Heard()
    with contextlib.ExitStack() as stack:
        outside = Path(stack.enter_context(_outside(folder)))
        (outside / "vault").mkdir()
        (outside / "secret").write_text(SECRET)
        (outside / "vault/key").write_text(SECRET)
        (outside / "plain").write_text("plain\n")
        unix, abstract = outside / "socket", f"ferrule-{os.getpid()}-{folder.name}"
        listening = [
            _listen(stack, heard, "tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            _listen(stack, heard, "udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            _listen(stack, heard, "unix", socket.AF_UNIX, socket.SOCK_STREAM, str(unix)),
            _listen(stack, heard, "datagram", socket.AF_UNIX, socket.SOCK_DGRAM, str(unix) + "-datagram"),
            _listen(stack, heard, "abstract", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract),
        ]
        tcp, udp = (int(one.getsockname()[1]) for one in listening[:2])
        yield World(ours, outside, tcp, udp, unix, abstract, heard)


@contextlib.contextmanager
def _outside(folder: Path) -> Iterator[str]:
    for place in (os.path.expanduser("~"), os.getcwd(), str(folder)):
        with contextlib.suppress(OSError):
            made = tempfile.mkdtemp(prefix=".ferrule-outside-", dir=place)
            break
    else:
        raise AssertionError("There is no folder to write in.")
    try:
        yield os.path.realpath(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _listen(
    stack: contextlib.ExitStack, heard: Heard, name: str, family: int, kind: int, address: Any
) -> socket.socket:
    listener = stack.enter_context(socket.socket(family, kind))
    listener.bind(address)
    if kind == socket.SOCK_STREAM:
        listener.listen(64)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                if kind == socket.SOCK_STREAM:
                    other, _ = listener.accept()
                    with other:
                        other.settimeout(LIMIT_SECONDS)
                        data = other.recv(100)
                        heard.append(f"{name} {data.decode()}")
                        other.sendall(b"heard\n")
                else:
                    data = listener.recv(100)
                    if data == b"over":
                        return
                    heard.append(f"{name} {data.decode()}")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def stop() -> None:
        with contextlib.suppress(OSError):
            if kind == socket.SOCK_DGRAM:
                with socket.socket(family, kind) as last:
                    last.sendto(b"over", listener.getsockname())
            else:
                listener.shutdown(socket.SHUT_RDWR)
        thread.join(LIMIT_SECONDS)

    stack.callback(stop)
    return listener


def unconfined(there: World, script: str) -> Ran:
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=there.workspace,
        env=there.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=LIMIT_SECONDS,
        check=False,
        start_new_session=True,
    )
    return Ran(done.returncode, done.stdout)


def confined(
    sandbox: Sandbox, there: World, script: str, profile: Profile | None = None, *, watched: bool = True
) -> Ran:
    """Run a script as the sandbox would have it; what it must not bring into being is set aside, as in a session."""
    wire = tripwire(there, profile) if watched else None
    wrapped = sandbox.wrap(
        [shutil.which("bash") or "/bin/bash", "-c", script], profile or there.profile(), cwd=str(there.workspace)
    )
    env = {**there.env(), **wrapped.env}
    with tempfile.TemporaryFile() as output, open(os.devnull, "rb") as nothing:
        if wrapped.starter is None:
            try:
                process = subprocess.Popen(
                    wrapped.argv,
                    cwd=there.workspace,
                    env=env,
                    stdin=nothing,
                    stdout=output,
                    stderr=output,
                    pass_fds=wrapped.descriptors,
                    start_new_session=True,
                )
            finally:
                for descriptor in wrapped.descriptors:
                    os.close(descriptor)
            code = process.wait(LIMIT_SECONDS)
        else:
            started = wrapped.starter.start(  # type: ignore[attr-defined]
                wrapped.argv,
                cwd=str(there.workspace),
                env=env,
                stdin=nothing.fileno(),
                stdout=output.fileno(),
                stderr=output.fileno(),
            )
            code = started.wait(LIMIT_SECONDS)
        wrapped.done()
        if wire is not None:
            wire.end(())
        output.seek(0)
        return Ran(code, output.read().decode(errors="replace"))


def tripwire(there: World, profile: Profile | None = None) -> "Tripwire":
    """What compares protected paths before and after a command."""
    from ferrule.files.guard import Guard  # not where only the sandbox itself was copied to
    from ferrule.sandbox.tripwire import Tripwire

    wire = Tripwire(Guard(), str(there.outside.parent / f"{there.outside.name}-aside"))
    seen = profile or there.profile()
    wire.begin(seen.writable, seen.kept, ())
    return wire


def _says(text: str) -> Callable[[World, Ran], bool]:
    return lambda there, ran: text in ran.output


def _exists(name: str, *, outside: bool = False) -> Callable[[World, Ran], bool]:
    """Is there something with contents at a path that was to stay empty? An empty folder holds its place only."""

    def look(there: World, ran: Ran) -> bool:
        path = (there.outside if outside else there.workspace) / name
        if path.is_dir():
            return any(path.iterdir())
        return path.exists() or path.is_symlink()

    return look


def _changed(name: str, was: str, *, outside: bool = False) -> Callable[[World, Ran], bool]:
    def look(there: World, ran: Ran) -> bool:
        path = (there.outside if outside else there.workspace) / name
        return not path.is_file() or path.read_text() != was

    return look


def _heard(name: str) -> Callable[[World, Ran], bool]:
    """Did something come in? Asked after a word of our own, before which everything else has been heard."""

    def look(there: World, ran: Ran) -> bool:
        ways: dict[str, tuple[Any, int, int]] = {
            "tcp": (("127.0.0.1", there.tcp), socket.AF_INET, socket.SOCK_STREAM),
            "udp": (("127.0.0.1", there.udp), socket.AF_INET, socket.SOCK_DGRAM),
            "unix": (str(there.unix), socket.AF_UNIX, socket.SOCK_STREAM),
            "datagram": (f"{there.unix}-datagram", socket.AF_UNIX, socket.SOCK_DGRAM),
            "abstract": ("\0" + there.abstract, socket.AF_UNIX, socket.SOCK_STREAM),
        }
        address, family, kind = ways[name]
        with socket.socket(family, kind) as last:
            last.connect(address)
            last.send(b"our own")
            there.heard.wait_for(f"{name} our own")
        return any(one.startswith(name + " ") and one != f"{name} our own" for one in there.heard)

    return look


def _connect(family: str, kind: str, address: str, *, pair: bool = False) -> str:
    make = (
        f"socket.socketpair(socket.AF_UNIX, socket.{kind})[0]"
        if pair
        else f"socket.socket(socket.{family}, socket.{kind})"
    )
    return (
        "$PY -c 'import os, socket; E = os.environ; "
        f's = {make}; s.settimeout(20); s.connect({address}); s.send(b"hello"); '
        + ("print(s.recv(10))" if kind == "SOCK_STREAM" else "print(1)")
        + "'"
    )


_CONFIG = "[core]\n\tbare = false\n"
_SYSCALL = (
    "$PY -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); r = {}; "
    'print("came", "through") if r >= 0 else None\''
)

ATTEMPTS: tuple[Attempt, ...] = (
    Attempt("write-outside", "echo x > $OUT/new", _exists("new", outside=True)),
    Attempt("change-outside", "echo x >> $OUT/plain", _changed("plain", "plain\n", outside=True)),
    Attempt("remove-outside", "rm -f $OUT/plain", _changed("plain", "plain\n", outside=True)),
    Attempt("rename-outside", "mv $OUT/plain $OUT/other", _exists("other", outside=True)),
    Attempt("move-out", "mv src/a.txt $OUT/", _exists("a.txt", outside=True)),
    Attempt("write-through-symlink", "ln -s $OUT link && echo x > link/new", _exists("new", outside=True)),
    Attempt(
        "write-through-hard-link", "ln $OUT/plain mine && echo x >> mine", _changed("plain", "plain\n", outside=True)
    ),
    Attempt("write-through-proc-root", "echo x > /proc/self/root$OUT/new", _exists("new", outside=True)),
    Attempt("write-through-engine-root", "echo x > /proc/$ENGINE/root$OUT/new", _exists("new", outside=True)),
    Attempt(
        "write-through-engine-cwd", "cat /proc/$ENGINE/environ > /dev/null && echo came through", _says("came through")
    ),
    Attempt("read-secret", "cat $OUT/secret", _says(SECRET)),
    Attempt("read-secret-in-folder", "cat $OUT/vault/key", _says(SECRET)),
    Attempt("read-secret-by-symlink", "ln -s $OUT/secret s && cat s", _says(SECRET)),
    Attempt("read-secret-by-hard-link", "ln $OUT/secret s && cat s", _says(SECRET)),
    Attempt("read-secret-by-proc-root", "cat /proc/self/root$OUT/secret", _says(SECRET)),
    Attempt(
        "read-secret-by-any-root",
        "for p in /proc/[0-9]*/root; do cat $p$OUT/secret; done 2> /dev/null",
        _says(SECRET),
    ),
    Attempt(
        "read-secret-in-workspace-by-any-folder",
        "for p in /proc/[0-9]*/cwd; do cat $p/.env; done 2> /dev/null",
        _says(SECRET),
        needs_mounts=True,
    ),
    Attempt("read-secret-in-workspace", "cat .env", _says(SECRET), needs_mounts=True),
    Attempt("read-secret-folder-in-workspace", "cat keys/id", _says(SECRET), needs_mounts=True),
    Attempt("read-secret-in-workspace-by-hard-link", "ln .env x && cat x", _says(SECRET), needs_mounts=True),
    Attempt("read-secret-in-workspace-by-rename", "mv .env x && cat x", _says(SECRET), needs_mounts=True),
    Attempt(
        "read-secret-in-workspace-by-parent", "mv sub sub2; cat sub2/.env sub/.env", _says(SECRET), needs_mounts=True
    ),
    Attempt("read-secret-in-workspace-by-descriptor", "cat /proc/self/cwd/.env", _says(SECRET), needs_mounts=True),
    Attempt("tcp", _connect("AF_INET", "SOCK_STREAM", '("127.0.0.1", int(E["TCP"]))'), _heard("tcp")),
    Attempt("tcp-by-bash", "echo hello > /dev/tcp/127.0.0.1/$TCP", _heard("tcp")),
    Attempt("udp", _connect("AF_INET", "SOCK_DGRAM", '("127.0.0.1", int(E["UDP"]))'), _heard("udp")),
    Attempt("unix-socket", _connect("AF_UNIX", "SOCK_STREAM", 'E["UNIX"]'), _heard("unix")),
    Attempt("abstract-socket", _connect("AF_UNIX", "SOCK_STREAM", '"\\0" + E["ABSTRACT"]'), _heard("abstract")),
    Attempt("datagram-of-a-pair", _connect("", "SOCK_DGRAM", 'E["UNIX"] + "-datagram"', pair=True), _heard("datagram")),
    Attempt(
        "change-hook",
        "echo x >> .git/hooks/pre-push",
        _changed(".git/hooks/pre-push", "#!/bin/sh\n"),
        needs_mounts=True,
    ),
    Attempt("new-hook", "echo x > .git/hooks/pre-commit", _exists(".git/hooks/pre-commit"), needs_mounts=True),
    Attempt("change-config", "echo x >> .git/config", _changed(".git/config", _CONFIG), needs_mounts=True),
    Attempt("replace-config", "echo x > c && mv -f c .git/config", _changed(".git/config", _CONFIG), needs_mounts=True),
    Attempt("remove-config", "rm -f .git/config", _changed(".git/config", _CONFIG), needs_mounts=True),
    Attempt("remove-hooks", "rm -rf .git/hooks", _changed(".git/hooks/pre-push", "#!/bin/sh\n"), needs_mounts=True),
    Attempt(
        "replace-hooks",
        "mv .git/hooks old; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        _exists(".git/hooks/pre-commit"),
        needs_mounts=True,
    ),
    Attempt(
        "hooks-by-symlink",
        "mkdir h; echo x > h/pre-commit; rm -rf .git/hooks; ln -s ../h .git/hooks",
        _exists(".git/hooks/pre-commit"),
        needs_mounts=True,
    ),
    Attempt(
        "rename-git",
        "mv .git git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        _exists(".git/hooks/pre-commit"),
        needs_mounts=True,
    ),
    Attempt(
        "rename-ancestor",
        "mv sub sub2; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit",
        _exists("sub/.git/hooks/pre-commit"),
        needs_mounts=True,
    ),
    Attempt(
        "exchange-ancestor",
        "mkdir -p other/.git/hooks; echo x > other/.git/hooks/pre-commit; "
        '$PY -c \'import ctypes; ctypes.CDLL(None).renameat2(-100, b"other", -100, b"sub", 2)\'',
        _exists("sub/.git/hooks/pre-commit"),
        needs_mounts=True,
    ),
    Attempt("create-absent", "echo x > .mcp.json", _exists(".mcp.json"), needs_tripwire=True),
    Attempt("create-absent-by-rename", "echo x > m; mv -T m .mcp.json", _exists(".mcp.json"), needs_tripwire=True),
    Attempt("create-absent-by-link", "ln -sT src/a.txt .mcp.json", _exists(".mcp.json"), needs_tripwire=True),
    Attempt("create-absent-by-hard-link", "echo x > m; ln -T m .mcp.json", _exists(".mcp.json"), needs_tripwire=True),
    Attempt(
        "create-absent-after-removal",
        "rm -rf .mcp.json; rmdir .mcp.json; mv .mcp.json away; echo x > .mcp.json",
        _exists(".mcp.json"),
        needs_tripwire=True,
    ),
    Attempt(
        "create-in-absent",
        "mkdir -p .claude; echo x > .claude/settings.json",
        _exists(".claude/settings.json"),
        needs_tripwire=True,
    ),
    Attempt(
        "create-in-absent-by-rename",
        "mkdir c; echo x > c/settings.json; mv -T c .claude",
        _exists(".claude/settings.json"),
        needs_tripwire=True,
    ),
    Attempt(
        "create-absent-below", "echo x > sub/.vscode/tasks.json", _exists("sub/.vscode/tasks.json"), needs_tripwire=True
    ),
    Attempt(
        "create-absent-below-renamed",
        "mv sub/.vscode v; mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json",
        _exists("sub/.vscode/tasks.json"),
        needs_tripwire=True,
    ),
    Attempt(
        "move-folder-above-secret",  # for the next command, to which nobody says that it is secret there
        "mkdir -p target; mv app target/app",
        lambda there, _: (there.workspace / "target/app/deep/.env").exists(),
        needs_mounts=True,
    ),
    Attempt(
        "move-inner-folder-above-secret",
        '$PY -c \'import os; os.rename("app/deep", "app/moved")\' || mv app/deep moved',
        lambda there, _: not (there.workspace / "app/deep/.env").exists(),
        needs_mounts=True,
    ),
    Attempt(
        "exchange-folder-above-secret",
        "mkdir -p other; " + _SYSCALL.format('c.renameat2(-100, b"app", -100, b"other", 2)'),
        lambda there, _: (there.workspace / "other/deep/.env").exists(),
        needs_mounts=True,
    ),
    Attempt(
        "mount",
        "mkdir -p m; mount -t tmpfs none m && echo came through; umount m",
        _says("came through"),
        unconfined=os.getuid() == 0,
    ),
    Attempt(
        "unmount",
        "for p in .env .git/hooks; do umount $WS/$p || umount -l $WS/$p; done; cat .env",
        _says(SECRET),
        needs_mounts=True,
    ),
    Attempt("namespaces", "unshare -Ur true && echo came through", _says("came through")),
    Attempt(
        "namespaces-with-mounts",
        "unshare -Urm bash -c 'umount -l .env; cat .env; echo came through'",
        _says("came through"),
    ),
    Attempt("ptrace", _SYSCALL.format("c.ptrace(0, 0, 0, 0)"), _says("came through")),
    Attempt("user-ring", _SYSCALL.format("c.syscall(425, 4, ctypes.create_string_buffer(120))"), _says("came through")),
    Attempt("signal-to-engine", "kill -0 $ENGINE && echo came through", _says("came through")),
    Attempt(
        "kernel-settings",
        "exec 3>> /proc/sys/kernel/core_pattern && echo came through",
        _says("came through"),
        unconfined=os.getuid() == 0,
    ),
    Attempt(
        "control-groups",
        "mkdir /sys/fs/cgroup/ferrule-$$ && rmdir /sys/fs/cgroup/ferrule-$$ && echo came through",
        _says("came through"),
        unconfined=os.access("/sys/fs/cgroup", os.W_OK),
    ),
)


class Chore(NamedTuple):
    """Something that must still work, and what it then says."""

    name: str
    script: str
    output: str
    needs_mounts: bool = False
    """Is it denied by Landlock alone?"""


CHORES: tuple[Chore, ...] = (
    Chore("python", "$PY -c 'print(6 * 7)'", "42\n"),
    Chore("node", "if command -v node > /dev/null; then node -e 'console.log(6 * 7)'; else echo 42; fi", "42\n"),
    Chore(
        "git",
        "git -c init.defaultBranch=main init -q project && cd project && echo x > a && git add a && "
        "git -c user.name=n -c user.email=n@example.org commit -q -m first && echo y > b && "
        "git log --format=%s && git status --short",
        "first\n?? b\n",
    ),
    Chore("pipes", "seq 1000 | sort -rn | head -n 1", "1000\n"),
    Chore("background", "{ echo late; } & wait; echo over", "late\nover\n"),
    Chore("substitution", "cat <(echo inside)", "inside\n"),
    Chore("here-document", "cat <<end\ntext\nend", "text\n"),
    Chore("write", "mkdir -p d/e && echo x > d/e/a && mv d/e/a src/b && ln src/b c && cat src/b c", "x\nx\n"),
    Chore("temporary", "f=$(mktemp) && echo x > $f && cat $f && rm $f", "x\n"),
    Chore("thousand-files", "for i in $(seq 1000); do : > src/f$i; done; ls src | grep -c f", "1000\n"),
    Chore("devices", "echo x > /dev/null; head -c 4 /dev/urandom | wc -c; head -c 4 /dev/zero | wc -c", "4\n4\n"),
    Chore("terminals", "$PY -c 'import os; os.openpty(); print(1)'", "1\n", needs_mounts=True),
    Chore("sockets", "$PY -c 'import socket; a, b = socket.socketpair(); a.send(b\"1\"); print(b.recv(1))'", "b'1'\n"),
    Chore("threads", "$PY -c 'import threading as t; one = t.Timer(0, print, [1]); one.start(); one.join()'", "1\n"),
    Chore("read-outside", "cat $OUT/plain", "plain\n"),
    Chore("read-kept", "head -n 1 .git/config; ls .git/hooks", "[core]\npre-push\n"),
    Chore("same-user", "test $(id -u) = $($PY -c 'import os; print(os.stat(\"src\").st_uid)') && echo same", "same\n"),
    Chore("where", "pwd", "{workspace}\n"),
    Chore("errors", "echo to >&2", "to\n"),
)
"""What people do all day."""


def came_through(sandbox: Sandbox, attempts: Iterable[Attempt], folder: Path) -> list[str]:
    """The names of those attempts that a sandbox does not stop."""
    names: list[str] = []
    for count, attempt in enumerate(attempts):
        (folder / str(count)).mkdir()
        with world(folder / str(count)) as there:
            if attempt.happened(there, confined(sandbox, there, attempt.script, watched=attempt.needs_tripwire)):
                names.append(attempt.name)
    return names
