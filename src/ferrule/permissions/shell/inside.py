"""The commands that a command runs by itself: of `env`, `sudo`, `xargs`, `sh -c`, `find -exec` and their like.

This is for rules that deny, and it reads generously: a command that is found here without being run costs a question,
one that is run and not found here is still held by the rule for the outer one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Redirect, Word
from ferrule.permissions.shell.unwrap import WRAPPERS

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash"})
Assigns = tuple[tuple[str, Word], ...]


class Argv(NamedTuple):
    """A command given as words."""

    words: tuple[Word, ...]
    assigns: Assigns = ()
    moves: bool = False
    """May it run in another folder?"""


class Script(NamedTuple):
    """A command given as one text."""

    text: str
    moves: bool = False
    sure: bool = True
    """Is it certainly run as a command line? Otherwise what is doubtful in it says nothing about the line."""


class _Shape(NamedTuple):
    valued: str = ""
    """The flags whose value is the next word, between blanks."""
    operands: int = 0
    """How many words stand between the flags and the command."""
    moves: bool = False


_CONTAINER = "-e --env -u --user -w --workdir --name -v --volume -p --publish -n --namespace -c --container --network"
_SHAPES = {
    "env": _Shape("-u --unset -C --chdir -a --argv0 -S --split-string"),
    "sudo": _Shape("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot"),
    "doas": _Shape("-u -C"),
    "xargs": _Shape("-I -L -n -P -s -d -E -a --max-args --max-procs --delimiter --arg-file --replace --max-lines"),
    "setsid": _Shape(),
    "ionice": _Shape("-c -n -p --class --classdata"),
    "flock": _Shape("-w -E --timeout --wait --conflict-exit-code", 1),
    "chroot": _Shape("", 1, moves=True),
    "unshare": _Shape("-S -G -R -w --root --wd --setuid --setgid", 0, moves=True),
    "nsenter": _Shape("-t -S -G --target", 0, moves=True),
    "strace": _Shape("-e -o -p -s -u -E -P -a -I -O -S -X -b"),
    "ltrace": _Shape("-e -o -p -s -u"),
    "busybox": _Shape(),
    "toybox": _Shape(),
    "npx": _Shape("-p --package -w --workspace"),
    "bunx": _Shape("-p --package"),
    "uvx": _Shape("--from --with -p --python"),
    "parallel": _Shape("-j --jobs -a --arg-file -I -N -n -S --sshlogin --joblog --results"),
    "exec": _Shape("-a"),
    "coproc": _Shape(),
    "caffeinate": _Shape("-t -w"),
    "chrt": _Shape("", 1),
    "taskset": _Shape("", 1),
    "firejail": _Shape(),
    "proxychains": _Shape("-f"),
    "systemd-run": _Shape("-p -u --unit --property"),
    "runuser": _Shape("-u -g"),
    "setarch": _Shape("", 1),
    "timeout": _Shape("-k -s --kill-after --signal", 1),
    "nice": _Shape("-n --adjustment"),
    "stdbuf": _Shape("-i -o -e"),
    "time": _Shape("-f -o --format --output"),
    "nohup": _Shape(),
    "command": _Shape(),
    "builtin": _Shape(),
    "noglob": _Shape(),
    "script": _Shape("-c -E -I -O -B -T -m -o", 1),
    "docker exec": _Shape(_CONTAINER, 1, moves=True),
    "docker run": _Shape(_CONTAINER, 1, moves=True),
    "podman exec": _Shape(_CONTAINER, 1, moves=True),
    "podman run": _Shape(_CONTAINER, 1, moves=True),
    "kubectl exec": _Shape(_CONTAINER, 1, moves=True),
    "npm exec": _Shape("-p --package -w --workspace"),
    "pnpm dlx": _Shape("--package"),
    "pnpm exec": _Shape(),
    "yarn dlx": _Shape("-p --package"),
    "yarn exec": _Shape(),
    "uv run": _Shape("--with -p --python --from --project --directory --extra --group", 0),
    "poetry run": _Shape(),
    "pipenv run": _Shape(),
    "pdm run": _Shape(),
    "pipx run": _Shape("--spec --python"),
    "bundle exec": _Shape(),
    "hatch run": _Shape(),
    "conda run": _Shape("-n -p --name --prefix --cwd"),
    "tox exec": _Shape("-e"),
    "perf stat": _Shape("-e -o -p -r"),
    "perf record": _Shape("-e -o -p -F"),
    "direnv exec": _Shape("", 1),
    "aws-vault exec": _Shape("-d --duration", 1),
    **dict.fromkeys(("mise exec", "asdf exec", "rbenv exec", "pyenv exec", "op run", "doppler run"), _Shape()),
    **dict.fromkeys(("docker-compose exec", "docker-compose run"), _Shape(_CONTAINER, 1, moves=True)),
    **dict.fromkeys(("faketime", "gosu", "su-exec"), _Shape("", 1)),
    **dict.fromkeys(
        ("linux32", "linux64", "arch", "torsocks", "torify", "catchsegv", "eatmydata", "fakeroot"), _Shape()
    ),
    **dict.fromkeys(("setpriv", "dbus-run-session", "prlimit", "xvfb-run", "tini", "dumb-init", "entr"), _Shape()),
    **dict.fromkeys(("valgrind", "numactl", "chpst", "daemonize", "dotenv", "with-contenv"), _Shape()),
    "cgexec": _Shape("-g"),
    "choom": _Shape("-n -p"),
    "screen": _Shape("-S -t -L"),
}
_SCRIPT_FLAGS = {
    "su": ("-c", "--command"),
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "runuser": ("-c", "--command"),
    "npx": ("-c", "--call"),
    "env": ("-S", "--split-string"),
    "rg": ("--pre",),
    "tar": ("-I", "-F", "--to-command", "--use-compress-program", "--checkpoint-action=exec"),
    "git rebase": ("-x", "--exec"),
    "git difftool": ("-x", "--extcmd"),
    "sort": ("--compress-program",),
    "man": ("-P", "--pager"),
    "nix-shell": ("--run", "--command"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
}
_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def inside(words: Sequence[Word], redirects: Sequence[Redirect] = ()) -> Iterator[Argv | Script]:
    """What the command runs, where it can be read off its words."""
    if not words or not words[0].known:
        return
    name = words[0].text.rsplit("/", 1)[-1]
    rest = tuple(words[1:])
    if name in SHELLS:
        yield from _shell(rest, redirects)
        return
    if name == "command" and rest and rest[0].text in {"-v", "-V"}:
        return
    if name in _READERS:
        yield from _READERS[name](rest)
    yield from _flagged(name, rest)
    if name == "docker" and rest and rest[0].text == "compose":
        name, rest = "docker-compose", rest[1:]
    elif name.startswith("ld") and ".so" in name:  # the loader runs the file that it is given
        yield from _behind(rest, _Shape())
    pair = f"{name} {rest[0].text}" if rest and rest[0].known else ""
    if pair in _SHAPES:
        yield from _behind(rest[1:], _SHAPES[pair])
    elif name in _SHAPES:
        yield from _behind(rest, _SHAPES[name])


def runs_another(name: str, following: str = "") -> bool:
    """Does a program of this name run what its words say?"""
    name = name.rsplit("/", 1)[-1]
    return name in SHELLS or name in _SHAPES or f"{name} {following}" in _SHAPES or name in WRAPPERS


def _git(rest: tuple[Word, ...]) -> Iterator[Argv | Script]:
    texts = [word.text for word in rest]
    if texts[:2] == ["submodule", "foreach"]:
        yield from _joined(rest[2:])
    elif texts[:2] == ["bisect", "run"] and rest[2:]:
        yield Argv(rest[2:])
    for name in {"rebase", "difftool"} & set(texts):
        yield from _flagged(f"git {name}", rest)
    flags = [index for index, text in enumerate(texts) if text.startswith("-c")]
    settings = dict.fromkeys(texts[index][2:] or "".join(texts[index + 1 : index + 2]) for index in flags)
    for name, _, value in (setting.partition("=") for setting in settings):
        # A setting may be a command line, or as an alias the rest of one of git's own.
        yield Script(
            f"git {value}" if name.startswith("alias.") and value[:1] != "!" else value.lstrip("!"), sure=False
        )


def _joined(words: Sequence[Word]) -> Iterator[Script]:
    parts = [word.text for word in words]
    # The seconds of `watch -n 2` stand between the flags and the command.
    while parts and (parts[0].startswith("-") or parts[0].replace(".", "").isdigit()):
        parts.pop(0)
    if parts and all(word.known for word in words):
        yield Script(" ".join(parts))


def _shell(rest: tuple[Word, ...], redirects: Sequence[Redirect]) -> Iterator[Argv | Script]:
    takes = False
    plain = True
    for index, word in enumerate(rest):
        if takes and not (word.known and word.text[:1] in {"-", "+"}):
            if word.known:
                yield Script(word.text)
            return
        if not word.known:
            return
        if word.text[:1] in {"-", "+"} and word.text not in {"-", "--"}:
            takes |= not word.text.startswith("--") and "c" in word.text[1:]
        elif index and rest[index - 1].text in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}:
            continue
        elif word.text not in {"-", "--"}:
            plain = False
            break
    for redirect in redirects:
        if plain and redirect.operator in {"<<", "<<<"}:
            yield Script(redirect.target.text)


def _found(rest: Sequence[Word]) -> Iterator[Argv]:
    at = 0
    while at < len(rest):
        if rest[at].text not in _ACTIONS:
            at += 1
            continue
        end = next((index for index in range(at + 1, len(rest)) if rest[index].text in {";", "+", "\\;"}), len(rest))
        if end > at + 1:
            yield Argv(tuple(rest[at + 1 : end]), moves=rest[at].text in {"-execdir", "-okdir"})
        at = end + 1


def _after(rest: tuple[Word, ...], flags: set[str]) -> Iterator[Argv]:
    for index, word in enumerate(rest):
        flag, equals, value = word.text.partition("=")
        if flag in flags and (index + 1 < len(rest) or equals):
            yield Argv(((Word(value, word.known),) if equals else ()) + rest[index + 1 :])
            return


def _flagged(name: str, rest: Sequence[Word]) -> Iterator[Script]:
    flags = _SCRIPT_FLAGS.get(name, ())
    if name == "rg":
        rest = _searching(rest)
    for index, word in enumerate(rest):
        for flag in flags:
            joint = "=" if flag.startswith("--") else ""
            clustered = len(flag) == 2 and re.fullmatch(f"-[A-Za-z]*{flag[1]}", word.text)
            if (word.text == flag or clustered) and index + 1 < len(rest) and rest[index + 1].known:
                yield Script(rest[index + 1].text, sure=False)
            elif word.known and word.text.startswith(flag + joint) and word.text != flag:
                yield Script(word.text[len(flag + joint) :], sure=False)


def _searching(rest: Sequence[Word]) -> list[Word]:
    """The words of ripgrep without those that are patterns or files whatever they look like."""
    texts = [word.text for word in rest]
    end = texts.index("--") if "--" in texts else len(texts)
    return [word for at, word in enumerate(rest[:end]) if not at or texts[at - 1] not in {"-e", "--regexp"}]


def _behind(rest: Sequence[Word], shape: _Shape) -> Iterator[Argv]:
    valued = frozenset(shape.valued.split())
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        flag = rest[at].text
        at += 2 if flag in valued else 1
        if flag == "--":
            break
    assigns: list[tuple[str, Word]] = []
    while at < len(rest) and (found := re.match(r"([A-Za-z_]\w*)=", rest[at].text)):
        value = rest[at]
        assigns.append((found[1], Word(value.text[found.end() :], value.known, single=value.single)))
        at += 1
    at += shape.operands
    while at < len(rest) and rest[at].text == "--":
        at += 1
    end = next((index for index in range(at, len(rest)) if rest[index].text in {":::", "::::"}), len(rest))
    if at < end:
        moves = shape.moves or any(word.text.startswith(("-C", "--chdir", "-D", "--directory")) for word in rest[:at])
        yield Argv(tuple(rest[at:end]), tuple(assigns), moves)


def _trapped(rest: tuple[Word, ...]) -> Iterator[Script]:
    return _joined(rest[:1])


def _batched(rest: tuple[Word, ...]) -> Iterator[Argv]:
    return _after(rest, {"-x", "-X", "--exec", "--exec-batch"})


_READERS: dict[str, Callable[[tuple[Word, ...]], Iterator[Argv | Script]]] = {
    "eval": _joined,
    "watch": _joined,
    "trap": _trapped,
    "git": _git,
    "find": _found,
    "fd": _batched,
    "fdfind": _batched,
}
