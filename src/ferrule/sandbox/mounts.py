"""What a command in a mount namespace of its own sees of the files: first for all commands, then for each one.

The first part is done once: everything read-only, and private places for what is temporary. The second part is done
for each command anew, since files come and go between commands, and a mount goes when its place is removed.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from ferrule.sandbox.kernel import MAY_HAVE_DEVICES, MAY_WRITE, Kernel
from ferrule.sandbox.view import Branch, SandboxView

HOST = b"/run/.host"
"""Where the machine's own files lie, as they are, until a command's view is complete."""
_BLANK, _VOID, _RESOLVER = b"/run/.blank", b"/run/.void", b"/run/.resolver"
RESOLVER = b"nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
"""What programs find in /etc/resolv.conf where they have no network but the session's own."""
_DEVICES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
_LINKS = ((b"fd", b"/proc/self/fd"), (b"stdin", b"fd/0"), (b"stdout", b"fd/1"), (b"stderr", b"fd/2"))
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
_HERE = -100
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)


class MountRaceError(OSError):
    """A place went away while it was being protected; the next try finds another state."""


def settle(kernel: Kernel, *, network: bool) -> None:
    """Make this process's mounts what every command starts from. It is alone in new namespaces, with their rights."""
    kernel.private()
    with _open_path(b"/", _LOOK) as root:
        host = kernel.copy_mount(root)
    resolver = os.path.realpath(b"/etc/resolv.conf")
    kernel.protect(_HERE, b"/")
    _devices(kernel)
    for place in (b"/tmp", b"/var/tmp"):
        if os.path.isdir(place) and not os.path.islink(place):
            kernel.mount(b"tmpfs", place, b"mode=1777")
    if os.path.isdir(b"/var/run") and not os.path.islink(b"/var/run"):
        kernel.mount(b"tmpfs", b"/var/run", b"mode=755", allowed=0)
    kernel.mount(b"tmpfs", b"/run", b"mode=755")
    os.mkdir(HOST)
    with _open_path(HOST, _LOOK) as hook:
        kernel.attach(host, hook)
    os.close(host)
    os.close(os.open(_BLANK, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
    os.mkdir(_VOID, 0)
    if not network:
        _resolver(kernel, resolver)
    # Programs that a whole system runs from, and the names of hosts; both are read only, as in every mount here.
    for shown in (b"/run/current-system", b"/run/wrappers", *([resolver] if network else [])):
        if shown.startswith(b"/run/") and os.path.exists(HOST + shown):
            _show(kernel, HOST + shown, shown, protect=True)


def _resolver(kernel: Kernel, path: bytes) -> None:
    """Have names asked for at a resolver in the session's own network, which hears them and answers none."""
    if path.startswith(b"/run/"):
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        source = path
    else:
        source = _RESOLVER
    with open(source, "wb", buffering=0) as file:
        file.write(RESOLVER)
    os.chmod(source, 0o644)
    if source != path and os.path.isfile(path):
        _cover(kernel, path, source)


def _devices(kernel: Kernel) -> None:
    """A /dev of harmless devices. They are copies of the machine's, since a new one cannot be made."""
    places = [(name, os.open(b"/dev/" + name, _LOOK)) for name in _DEVICES if os.path.exists(b"/dev/" + name)]
    trees = [(name, kernel.copy_mount(place)) for name, place in places]
    kernel.mount(b"tmpfs", b"/dev", b"mode=755", allowed=MAY_WRITE)
    for name, tree in trees:
        os.close(os.open(b"/dev/" + name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        with _open_path(b"/dev/" + name, _LOOK) as place:
            kernel.attach(tree, place)
    for descriptor in [one for _, one in places + trees]:
        os.close(descriptor)
    for name, target in _LINKS:
        os.symlink(target, b"/dev/" + name)
    os.mkdir(b"/dev/shm")
    kernel.mount(b"tmpfs", b"/dev/shm", b"mode=1777", allowed=MAY_WRITE)
    os.mkdir(b"/dev/pts")
    with contextlib.suppress(OSError):  # refused in some containers: no terminals can be made there
        kernel.mount(
            b"devpts", b"/dev/pts", b"newinstance,ptmxmode=0666,mode=620", allowed=MAY_WRITE | MAY_HAVE_DEVICES
        )
    os.symlink(b"pts/ptmx", b"/dev/ptmx")
    kernel.protect(_HERE, b"/dev", whole=False)


def prepare(kernel: Kernel, view: SandboxView) -> None:
    """Make what all commands of a session have alike: a home of their own, their /tmp, caches, toolchains."""
    for path in view.hidden:
        with contextlib.suppress(FileNotFoundError):
            kernel.mount(b"tmpfs", path, b"mode=755")
    for path, source in view.layers:
        _show(kernel, HOST + source, path, protect=False)
    for path in view.shown:
        if os.path.exists(HOST + path):
            _show(kernel, HOST + path, path, protect=True)
    for path, folder in view.caches:
        _cache(kernel, path, HOST + folder)


def _cache(kernel: Kernel, path: bytes, folder: bytes) -> None:
    """Show a folder whose changes go elsewhere; where the kernel does not do that, it cannot be written."""
    if not os.path.isdir(HOST + path):
        return
    os.close(_place(path, is_folder=True))
    options = b"userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (
        _escape(HOST + path),
        *2 * [_escape(folder)],
    )
    try:
        kernel.mount(b"overlay", path, options)
    except OSError:
        _show(kernel, HOST + path, path, protect=True)


def _escape(path: bytes) -> bytes:
    return path.replace(b"\\", b"\\\\").replace(b",", b"\\,").replace(b":", b"\\:")


def arrange(kernel: Kernel, view: SandboxView, *, proc: bool) -> None:
    """Make this process's mounts those of one command; it is the first one in a new set of process ids."""
    prepare(kernel, view)
    for root in view.writable:
        _show(kernel, HOST + root, root, protect=False)
    for root, branch in view.kept:
        with _open_path(root, _LOOK) as folder:
            _keep(kernel, folder, branch)
    for path, closed in (*((path, False) for path in view.held), *((path, True) for path in view.closed)):
        _hold(kernel, path, closed=closed)
    for path, source in view.replaced:
        _replace(kernel, path, HOST + source)
    for path in view.masked:
        _mask(kernel, path)
    for path in view.sealed:
        with contextlib.suppress(FileNotFoundError):
            kernel.protect(_HERE, path, whole=False)
    if proc:
        kernel.mount(b"proc", b"/proc", allowed=0)
    # Covered, not unmounted, which would wait for every processor: nobody in here can take a mount away again.
    _cover(kernel, HOST, _VOID)
    kernel.protect(_HERE, b"/run", whole=False)


def _mask(kernel: Kernel, path: bytes) -> None:
    try:
        place = os.open(path, _LOOK)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return  # hidden already, or not for this user: the command has no more rights than this
    is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
    tree = kernel.copy_mount(_HERE, _VOID if is_folder else _BLANK, whole=False)
    kernel.protect(tree, whole=False)
    kernel.attach(tree, place)
    os.close(tree)
    os.close(place)


def _replace(kernel: Kernel, path: bytes, source: bytes) -> None:
    """Have another file in the place of one. A file that went away needs none in its place."""
    try:
        place = os.open(path, _LOOK)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return
    tree = kernel.copy_mount(_HERE, source, whole=False)
    kernel.protect(tree, whole=False)
    kernel.attach(tree, place)
    os.close(tree)
    os.close(place)


def _hold(kernel: Kernel, path: bytes, *, closed: bool) -> None:
    """Make a folder a mount, which cannot be renamed, nor with it what is masked below. It may be gone by now."""
    try:
        place = os.open(path, _LOOK | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return
    tree = kernel.copy_mount(place)
    if closed:
        kernel.protect(tree)
    kernel.attach(tree, place)
    os.close(tree)
    os.close(place)


def _cover(kernel: Kernel, path: bytes, source: bytes) -> None:
    with _open_path(path, _LOOK) as place:
        tree = kernel.copy_mount(_HERE, source, whole=False)
        kernel.protect(tree, whole=False)
        kernel.attach(tree, place)
        os.close(tree)


def _keep(kernel: Kernel, folder: int, branch: Branch) -> None:
    """Make what hangs on a branch read-only, and every folder on the way a mount: those cannot be renamed.

    What does not exist is left out: whoever gave the order looks whether it came into being.
    """
    for name, below in branch.items():
        try:
            place = os.open(name, _LOOK, dir_fd=folder)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            continue
        is_way = below is not None and stat.S_ISDIR(os.fstat(place).st_mode)
        tree = kernel.copy_mount(place)
        if not is_way:
            kernel.protect(tree)
        try:
            kernel.attach(tree, place)
        except FileNotFoundError as error:
            raise MountRaceError(errno.EAGAIN, "A file went away.") from error
        finally:
            os.close(tree)
            os.close(place)
        if is_way and below is not None:
            with _open_path(name, _LOOK, folder) as inner:
                _keep(kernel, inner, below)


def _show(kernel: Kernel, source: bytes, path: bytes, *, protect: bool) -> None:
    tree = kernel.copy_mount(_HERE, source)
    if protect:
        kernel.protect(tree)
    place = _place(path, is_folder=os.path.isdir(source))
    kernel.attach(tree, place)
    os.close(place)
    os.close(tree)


def _place(path: bytes, *, is_folder: bool) -> int:
    """Where something is to be shown, made where that is below one of the private places.

    No link is followed: in a real path there is none, and one that a command has left in /tmp leads anywhere.
    """
    *uppers, last = path.strip(b"/").split(b"/")
    folder = os.open(b"/", _LOOK)
    for name in uppers if not is_folder else (*uppers, last):
        try:
            inner = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=folder)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # another command of the same /tmp was faster
                os.mkdir(name, 0o755, dir_fd=folder)
            inner = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = inner
    if is_folder:
        return folder
    with contextlib.suppress(FileExistsError):
        os.close(os.open(last, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
    try:
        return os.open(last, _LOOK, dir_fd=folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _open_path(path: bytes, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
