"""Find the commands that another command runs: `env`, `sudo`, `xargs`, `sh -c`, `find -exec` and the like.

This serves rules that deny, so it reads generously: a command that is found here but never run costs a question;
one that is run but not found here is still subject to the rule for the outer command.

Programs such as `uv run`, `npx` and `.venv/bin/…` lead to a program of the project's own environment. That
program has the standing of the same program on the PATH if it is one of the development commands, which run the
project's code anyway, and no standing otherwise.

The module also expands the words of a `for` loop if they are known before it runs, and checks whether `xargs`
hands its command only files of the workspace and prints nothing secret about them.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.permissions.shell.line import WRAPPERS, LineVariables, Redirect, Simple, Word, word_of
from ferrule.permissions.shell.programs import examine
from ferrule.permissions.shell.scene import Scene

if TYPE_CHECKING:
    from tree_sitter import Node

    from ferrule.permissions.shell.cover import CommandPart


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
    yield from _flag_scripts(name, rest)
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
        yield from _join_script(rest[2:])
    elif texts[:2] == ["bisect", "run"] and rest[2:]:
        yield Argv(rest[2:])
    for name in {"rebase", "difftool"} & set(texts):
        yield from _flag_scripts(f"git {name}", rest)
    flags = [index for index, text in enumerate(texts) if text.startswith("-c")]
    settings = dict.fromkeys(texts[index][2:] or "".join(texts[index + 1 : index + 2]) for index in flags)
    for name, _, value in (setting.partition("=") for setting in settings):
        # A setting may be a command line, or as an alias the rest of one of git's own.
        yield Script(
            f"git {value}" if name.startswith("alias.") and value[:1] != "!" else value.lstrip("!"), sure=False
        )


def _join_script(words: Sequence[Word]) -> Iterator[Script]:
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


def _find_commands(rest: Sequence[Word]) -> Iterator[Argv]:
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


def _flag_scripts(name: str, rest: Sequence[Word]) -> Iterator[Script]:
    flags = _SCRIPT_FLAGS.get(name, ())
    if name == "rg":
        rest = _drop_patterns(rest)
    for index, word in enumerate(rest):
        for flag in flags:
            joint = "=" if flag.startswith("--") else ""
            clustered = len(flag) == 2 and re.fullmatch(f"-[A-Za-z]*{flag[1]}", word.text)
            if (word.text == flag or clustered) and index + 1 < len(rest) and rest[index + 1].known:
                yield Script(rest[index + 1].text, sure=False)
            elif word.known and word.text.startswith(flag + joint) and word.text != flag:
                yield Script(word.text[len(flag + joint) :], sure=False)


def _drop_patterns(rest: Sequence[Word]) -> list[Word]:
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


def _trap_script(rest: tuple[Word, ...]) -> Iterator[Script]:
    return _join_script(rest[:1])


def _fd_commands(rest: tuple[Word, ...]) -> Iterator[Argv]:
    return _after(rest, {"-x", "-X", "--exec", "--exec-batch"})


_READERS: dict[str, Callable[[tuple[Word, ...]], Iterator[Argv | Script]]] = {
    "eval": _join_script,
    "watch": _join_script,
    "trap": _trap_script,
    "git": _git,
    "find": _find_commands,
    "fd": _fd_commands,
    "fdfind": _fd_commands,
}


_FLAGS = {
    (
        "uv",
        "run",
    ): r"-q|-v|--quiet|--verbose|--frozen|--locked|--no-sync|--offline|--all-extras|--all-groups|--no-dev|--dev",
    ("poetry", "run"): r"",
    ("pdm", "run"): r"",
    ("pipenv", "run"): r"",
    ("npx",): r"--no-install|--no|--offline",
    ("bundle", "exec"): r"",
    ("pnpm", "exec"): r"",
    ("yarn", "run"): r"",
    ("yarn", "exec"): r"",
    ("yarn",): r"",
    ("pnpm",): r"",
}
"""What leads to a program of the environment, and its flags that change nothing about which program that is."""
_LOCAL = frozenset({"npx", "pnpm", "yarn"})
"""These take a program from elsewhere where the project has none of that name."""
_BINS = os.path.join("node_modules", ".bin")


class EnvironmentCommand(NamedTuple):
    """The program that is meant, with its words."""

    words: tuple[str, ...]
    leader: str
    """What has to be found outside of the workspace; empty where the program itself is named by its path."""


def find_environment_command(words: Sequence[str], cwd: str, scene: Scene) -> EnvironmentCommand | None:
    """The command of the project's environment that the words lead to, if they lead to one."""
    if "/" in words[0]:
        name = _of_environment(words[0], cwd, scene)
        return EnvironmentCommand((name, *words[1:]), "") if name else None
    for lead, flags in _FLAGS.items():
        if tuple(words[: len(lead)]) != lead:
            continue
        at = len(lead)
        while at < len(words) and flags and re.fullmatch(flags, words[at]):
            at += 1
        rest = tuple(words[at:])
        if not rest or "/" in rest[0] or rest[0].startswith("-"):
            return None
        if lead[0] in _LOCAL and not _is_local(rest[0], cwd, scene):
            return None
        return EnvironmentCommand(rest, lead[0])
    return None


_ACTIVATION = r"\s*((?:source|\.)\s+([\w./-]+/bin/activate))\s*(?:&&|;|\n)\s*(?=\S)"


class Activation(NamedTuple):
    """A line that begins with the activation of an environment of the project."""

    source: str
    """The command that activates it."""
    folder: str
    """Where its programs lie."""
    rest: str
    """The line behind it."""


def activation(command: str, cwd: str, scene: Scene) -> Activation | None:
    """What a line activates first, if that is an environment of the project: then its programs come before others."""
    found = re.match(_ACTIVATION, command)
    if found is None or not _of_environment(found[2], cwd, scene, runs=False):
        return None
    folder = os.path.dirname(os.path.normpath(os.path.join(cwd, found[2])))
    return Activation(found[1], folder, command[found.end() :])


def within_environment(simple: Simple, folder: str) -> Simple:
    """The command with its program by its path, where the environment has it."""
    words = simple.stripped or simple.words
    if not words or not words[0].known or "/" in words[0].text:
        return simple
    path = os.path.join(folder, words[0].text)
    if not os.path.lexists(path):
        return simple
    named = words[0]._replace(text=path)
    return simple._replace(
        words=tuple(named if word is words[0] else word for word in simple.words), stripped=(named, *words[1:])
    )


def _of_environment(program: str, cwd: str, scene: Scene, *, runs: bool = True) -> str:
    """The plain name of a program that is named by its path in an environment of the project; empty for any other."""
    path = os.path.normpath(os.path.join(cwd, program))
    folder, name = os.path.split(path)
    straight = os.path.normpath(os.path.join(os.path.realpath(cwd), os.path.dirname(program)))
    if ".." in program.split("/") or os.path.realpath(folder) != straight or not scene.inside(straight):
        return ""
    if not (_is_program(path) if runs else os.path.isfile(path) and scene.inside(os.path.realpath(path))):
        return ""
    above, last = os.path.split(folder)
    virtual = last == "bin" and os.path.isfile(os.path.join(above, "pyvenv.cfg"))
    installed = last == "bin" and os.path.isfile(os.path.join(above, "autoload.php"))
    return name if virtual or installed or folder.endswith(os.sep + _BINS) else ""


def _is_local(name: str, cwd: str, scene: Scene) -> bool:
    """Is there a program of that name among those of the nearest project, so that none is fetched?"""
    folder = os.path.realpath(cwd)
    while scene.inside(folder):
        if any(os.path.lexists(os.path.join(folder, one)) for one in ("package.json", "node_modules")):
            bins = os.path.join(folder, _BINS)
            return scene.inside(os.path.realpath(bins)) and _is_program(os.path.join(bins, name))
        folder = os.path.dirname(folder)
    return False


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


MOST = 100
"""So many rounds are looked at one by one, those of loops in loops together."""
_NUMBERS = rb"\$\(seq(?: (\d{1,6}))?(?: (\d{1,6}))? (\d{1,6})\)"
_RANGE = rb"\{(0|[1-9]\d{0,5})\.\.(0|[1-9]\d{0,5})\}"


def loop_values(node: "Node", source: bytes, variables: LineVariables, rounds: int) -> list[Word]:
    """One word for each round; none where they are not all known, are too many, or the variable may change between."""
    name = node.child_by_field_name("variable")
    values = node.children_by_field_name("value")
    if node.type != "for_statement" or name is None or not values:
        return []
    named = source[name.start_byte : name.end_byte]
    # Wherever else the bare name stands, it could be set: by an assignment, `read`, another loop, a calculation.
    if len(re.findall(rb"(?<![\w$\{])" + named + rb"(?!\w)", source)) != 1:
        return []
    found: list[Word] = []
    for value in values:
        each = list(_each(value, source, variables))
        found += each
        if not each or len(found) * rounds > MOST:
            return []
    return found


def _each(node: "Node", source: bytes, variables: LineVariables) -> "Iterator[Word]":
    raw = source[node.start_byte : node.end_byte]
    one = word_of(node, source, variables=variables)
    if one.known:
        yield one
    elif one.glob:
        # What is outside of the folder is not for everybody to see.
        yield one._replace(told=re.search(r"^[/~]|\.\.", one.text) is None)
    elif numbers := re.fullmatch(_NUMBERS, raw) or re.fullmatch(_RANGE, raw):
        yield from _expand_range(*(int(number) for number in numbers.groups() if number))


def _expand_range(*numbers: int) -> "Iterator[Word]":
    """As `seq` counts: to a number, from one to another, or in steps. Backwards only braces count."""
    first, *middle, last = numbers if len(numbers) > 1 else (1, *numbers)
    step = middle[0] if middle else 1
    ends = (min(first, last), max(first, last))
    if step:
        for number in range(ends[0], ends[1] + 1, step):
            yield Word(str(number), single=True)
            if (number - ends[0]) // step > MOST:
                return


_FILTERS = {
    "grep": frozenset(["-v", "-i", "-E", "-F", "-w", "-e", "-vE", "-iE", "-Ev", "-vi", "-iv"]),
    "sort": frozenset(["-u", "-r"]),
    "uniq": frozenset[str](),
    "head": frozenset(["-n"]),
    "tail": frozenset(["-n"]),
}
"""Programs that leave out some of the lines that they are given, and change none; with these flags."""
_NAMES = {
    "rg": (
        r"-[iwFS]*l[iwFS]*|--files(-with-matches|-without-match)?",
        r"-[ilwFSue]+|-[gt].*|--files.*|--hidden|--ignore-case|--fixed-strings|--word-regexp|--type=.*|--glob=.*",
    ),
    "grep": (
        r"-[riwEFInsP]*[lL][riwEFInsP]*|--files-(with-matches|without-match)",
        r"-[rlLiwEFInsPe]+|--files-.*|--include=.*|--exclude(-dir)?=.*|--recursive|--ignore-case",
    ),
}
"""With a flag like the first they print names of files and nothing else; only flags like the second may be there."""
_COUNTS = frozenset({"wc", "ls", "stat", "du", "md5sum", "sha1sum", "sha256sum", "cksum"})
"""Programs that tell nothing of a file but what can be counted."""


def hands_files(part: "CommandPart", scene: Scene) -> bool:
    """Does a search of files in the workspace come before it, and can no name that it finds mean another file?"""
    if not part.simple.fed or not all(_is_filter(simple) for simple in part.simple.fed[1:]):
        return False
    first, cwd = part.simple.fed[0], part.simple.cwd
    words = [word.text for word in first.words]
    finding = examine(first.words, cwd=cwd)
    if cwd is None or not finding.harmless or not all(word.known for word in first.words) or first.redirects:
        return False
    counts = part.program in _COUNTS
    if not _prints_names(words, counts=counts):
        return False
    searched = (".",) if words[0] == "git" else finding.reads or (".",)
    folders = [os.path.realpath(os.path.join(cwd, one)) for one in searched]
    apart = {"-0", "--null"} & {word.text for word in part.simple.words} and {"-print0", "-z", "-0"} & set(words)
    return all(
        scene.inside(folder)
        and (counts or not scene.buries_secret(folder, hidden=True, only=_name_pattern(words), opens=True))
        and (apart or not scene.has_odd_names(folder))
        for folder in folders
    )


def _prints_names(words: list[str], *, counts: bool) -> bool:
    """Does it print names of files that are there, from where it runs? Git may also know of files that are not."""
    name = words[0]
    if name in _NAMES:
        wanted, allowed = _NAMES[name]
        flags = [word for word in words[1:] if word.startswith("-")]
        return any(re.fullmatch(wanted, flag) for flag in flags) and all(re.fullmatch(allowed, flag) for flag in flags)
    if name == "find":
        return not {"-printf", "-ls", "-L", "-follow"} & set(words) and not any("-exec" in word for word in words)
    return counts and words[:2] == ["git", "ls-files"] and not any(re.match("-(?!z$)", word) for word in words[2:])


def _name_pattern(words: list[str]) -> tuple[str, ...]:
    """The name that all files have that `find` prints."""
    if words[0] != "find" or {"!", "-not", "-o", "-or", ",", "("} & set(words) or "-name" not in words[:-1]:
        return ()
    return (words[words.index("-name") + 1],)


def _is_filter(simple: Simple) -> bool:
    words = [word.text for word in simple.words]
    if not words or words[0] not in _FILTERS or simple.redirects or not all(word.known for word in simple.words):
        return False
    flags = {word for word in words[1:] if word.startswith("-") and not word[1:].isdigit()}
    most = 1 if words[0] == "grep" or "-n" in flags else 0
    return flags <= _FILTERS[words[0]] and len([word for word in words[1:] if not word.startswith("-")]) <= most
