"""Determine the effects of a simple command from tables of the programs that developers use most.

The tables tell which commands only read and need no rule, and which flags a pattern of the user's covers.
Anything that is not listed is a doubt. Git, build tools and test runners are marked separately, because they also
run code that the repository chooses: their arguments prove nothing about that.
"""

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ferrule.permissions.shell.form import (
    ArgumentAnalysis,
    ArgumentReader,
    CommandArguments,
    Form,
    is_glob,
    is_single,
    what,
)
from ferrule.permissions.shell.line import GIVEN, Word
from ferrule.permissions.shell.scripts import secrets_named
from ferrule.permissions.shell.tables import NEVER, rows


class CommandFinding(NamedTuple):
    """What one simple command would do, as far as the tables know."""

    known: bool
    """Is there a row for the program and its sub-command?"""
    harmless: bool
    """Does it only read, with listed flags and nothing unknowable? Where its paths lead is another question."""
    doubt: str
    """Why a pattern of the user's does not cover it; empty where one would."""
    reads: tuple[str, ...] = ()
    """Files and folders that it reads, as written."""
    writes: tuple[str, ...] = ()
    """Files and folders that it writes, creates or deletes, as written."""
    unsure: bool = False
    """May it read or write what is in neither list?"""
    runs_project_code: bool = False
    """Does it run code that the repository chooses: build files, tests, hooks?"""
    program: str = ""
    globs: tuple[str, ...] = ()
    """Patterns among what it reads, as written; no match of theirs can be a flag."""
    deep: bool = False
    """Does it read the contents of every file below the folders that it reads?"""
    covers_inside: bool = False
    """Does it also speak for the command among its words, as for that of `npx` or `docker exec`?"""
    folder: str = ""
    """The folder that it goes to first, as with `git -C`; its paths are already written from outside of it."""
    into: tuple[str, ...] = ()
    """What it copies or moves into its last write, where that is a folder; with `/.` at the end, all that is in it."""
    unhides: tuple[str, ...] = ()
    """Globs of hidden files that it looks into all the same."""
    searches: tuple[str, ...] = ()
    """Globs of the files that it is told to look into."""
    only: tuple[str, ...] = ()
    """Globs of file names, one of which everything has that it reads below its folders; none where it reads all."""
    names_only: bool = False
    """Does it tell nothing of what is in the files that it reads?"""
    handed: bool = False
    """Does `xargs` hand it the names of files? Whether these are harmless is another question."""
    unlisted: str = ""
    """The sub-command without a row, with its program, or the program that is named by a path."""


_SYSTEM = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/")
"""Folders of programs that only the machine's owner writes."""


def program(text: str) -> tuple[str, str]:
    """The program's plain name, and why it may be another program of that name."""
    if "/" not in text:
        return text, "" if text else "there is no program of that name"
    folder, name = posixpath.split(text)
    if f"{folder}/" in _SYSTEM:
        return name, ""
    return name, f"{text} is a file that could be any program"


def operand_paths(kind: str, text: str) -> tuple[str, ...]:
    """The paths that an operand of this kind may name."""
    if text in {"", "-"} or kind in {"text", "url"}:
        return ()
    if kind != "rev":
        return (text,)
    if re.match(r":(?:[!^]|\([^)]*\bexclude\b)", text):
        return ()  # what git leaves out
    # git takes `rev`, `rev:path`, `:path`, `from..to`, `:(magic)path` and plain paths; each part may be a file.
    bare = re.sub(r"^:(?:\([^)]*\)|[!^/]+)", "", text)
    parts = [bare, *re.split(r"\.\.\.?", bare)] if not bare.startswith(("..", "./", "/")) else [bare]
    parts += [part.partition(":")[2] for part in parts]
    return tuple(dict.fromkeys(part for part in parts if part))


def patterns(text: str) -> tuple[str, ...]:
    """The patterns of paths that such an operand of git's may be."""
    return tuple(part for part in operand_paths("rev", text) if re.search(r"[*?\[]", part) and ".." not in part)


def odd_address(text: str) -> str:
    """Why an address leads to more than a host of the network; empty where it does not."""
    if "::" in text and "[" not in text:
        return f"{text} names a program that fetches"
    scheme, mark, _ = text.partition("://")
    if mark and scheme.lower() not in {"http", "https", "ssh", "git", "git+ssh", "rsync"}:
        return f"{text} is no address of the network"
    return f"{text} could become a flag" if text.startswith("-") or "@-" in text or "://-" in text else ""


def below(folder: str, path: str) -> str:
    """The path as it is from outside of the folder that the program goes to."""
    return posixpath.join(folder, path) if folder else path


_PYTHONS = ("python", "python3")
_MODULES = frozenset({"pytest", "mypy", "ruff", "black", "isort", "flake8", "pip", "tox", "pyright", "coverage"})
"""Programs that Python also runs as modules."""
_SAY_VERSION = (
    " git python python3 node npm gcc g++ clang cc ruff black mypy docker kubectl make cmake ninja curl wget tar rsync"
    " jq rg grep sed find bash uv pip pip3 gh javac sqlite3 psql terraform ls cat head tail wc sort uniq"
    " cut diff du df tree stat file date cp mv rm mkdir touch ln chmod fd awk gawk xargs tee gzip xz zstd bzip2 unzip"
    " zip ps java php ruby perl lua ssh nm objdump readelf "
)
"""Programs that say their version and their flags without a look at the project."""
_SAYS = frozenset({"--version", "--help"})
_SAY_OTHERWISE = frozenset(
    {
        *(
            ("java", "-version"),
            ("terraform", "-version"),
            ("javac", "-version"),
            ("sqlite3", "-version"),
            ("ruby", "-v"),
            ("php", "-v"),
        ),
        *(
            ("perl", "-v"),
            ("lua", "-v"),
            ("npm", "-v"),
            ("node", "-v"),
            ("make", "-v"),
            ("docker", "-v"),
            ("ssh", "-V"),
        ),
        *(("python", "-V"), ("python3", "-V")),
    }
)


@cache
def table() -> Mapping[str, Form]:
    """Every row; read at the first use, because the start of the program does not need them."""
    return rows()


def examine(words: Sequence[Word], *, cwd: str | None) -> CommandFinding:
    """What the command does; `words` are the program and its arguments, without what only changes how it runs."""
    if not words:
        return CommandFinding(known=False, harmless=False, doubt="")
    if not words[0].known:
        return _unknown(f"{what(words[0])} stands in the place of the program", "")
    name, doubt = program(words[0].text)
    if doubt or " " in name:  # the rows of sub-commands have names with blanks
        found = _unknown(doubt or f"there is no program by the name of {name}", name)
        return found._replace(unlisted=words[0].text if doubt else "")
    rest = words[1:]
    if name in table():
        if len(rest) == 1 and rest[0].known and _is_told(name, rest[0].text):
            return CommandFinding(known=True, harmless=True, doubt="", program=name)
        ran = _module(name, rest, cwd) if name in _PYTHONS else None
        return ran or _examine_row(name, rest, cwd)._replace(program=name)

    if name in NEVER:
        return _unknown(f"{name} {NEVER[name]}", name)
    return _unknown(_loose(rest, name), name)


def _is_told(name: str, flag: str) -> bool:
    """Does it only tell its version or its flags?"""
    return (flag in _SAYS and f" {name} " in _SAY_VERSION) or (name, flag) in _SAY_OTHERWISE


def _loose(words: Sequence[Word], name: str) -> str:
    """The doubt about the words of a program without a row."""
    loose = next((word for word in words if not word.known and (not is_single(word) or not word.start)), None)
    return f"{what(loose)} could become a flag of {name}" if loose else ""


def _unknown(doubt: str, name: str) -> CommandFinding:
    return CommandFinding(known=False, harmless=False, doubt=doubt, unsure=True, program=name)


def _examine_row(name: str, words: Sequence[Word], cwd: str | None, folder: str = "") -> CommandFinding:
    """The finding for a row, or for the row of the sub-command that the words name."""
    form = table()[name]
    given = ArgumentReader(form, name).read(form.prepare(words) if form.prepare else words)
    goes = [value.text for kind, value in given.touched if kind == "folder"]
    for step in goes:
        folder = below(folder, step)
    if given.doubt or not given.operands or not (form.subs or form.leads):
        return _leaf(name, form, given, cwd, folder)
    if form.leads:
        inner = examine(given.operands, cwd=cwd)
        return inner._replace(known=True, harmless=False, unsure=True, runs_project_code=True, covers_inside=True)
    sub = given.operands[0]
    key = f"{name} {sub.text}"
    if not sub.known or key not in table():
        plain = sub.known and not given.mild and all(word.known for word in given.operands)
        found = _unknown(f"the tables know nothing of {key}", name)
        return found._replace(unlisted=key if plain else "")
    found = _examine_row(key, given.operands[1:], cwd, folder)
    # What stands before the sub-command counts as well.
    before = [(kind, value.text) for kind, value in given.touched if kind != "folder"]
    return found._replace(
        harmless=found.harmless and not given.mild,
        reads=(*(text for kind, text in before if kind == "read"), *found.reads),
        writes=(*found.writes, *(text for kind, text in before if kind == "write")),
        folder=found.folder or folder,
    )


def _leaf(name: str, form: Form, given: CommandArguments, cwd: str | None, folder: str) -> CommandFinding:
    reads = [value.text for kind, value in given.touched if kind == "read"]
    writes = [value.text for kind, value in given.touched if kind == "write"]
    placed = _assign_kinds(form, given)
    doubt = given.doubt or ("" if placed is not None else f"{name} takes no more words than it is known for")
    here = form.here and not any(kind == "read" for kind, _, _ in placed or ())
    for kind, word, repeated in placed or ():
        if word.known:
            (writes if kind == "write" else reads).extend(operand_paths(kind, word.text))
        doubt = doubt or _uncertain(name, form, kind, word, repeated=repeated)
    # Bash hands a glob over as it is where it finds nothing.
    globs = [word.text for _, word, _ in placed or () if is_glob(word)]
    reads += globs
    if form.deep:
        # A pattern of git's for paths names what it fits.
        reads += secrets_named(one for kind, word, _ in placed or () if kind == "rev" for one in patterns(word.text))
    handed = GIVEN in given.operands and not form.prints
    judged = form.check(given) if form.check and not doubt else ArgumentAnalysis(harmless=not doubt)
    doubt = doubt or judged.doubt
    reads += judged.reads
    writes += judged.writes
    if here and "." not in judged.reads:
        reads.append(".")
    if cwd is None and not doubt and any(not os.path.isabs(path) for path in (*reads, *writes)):
        doubt = f"the folder in which {name} runs is not certain"
    if folder:
        reads, writes = [below(folder, path) for path in (*reads, ".")], [below(folder, path) for path in writes]
    unknown = [word for word in given.operands if not (word.known or word.stream or word == GIVEN or is_glob(word))]
    certain = given.certain or (
        bool(globs or handed) and not unknown and all(v is None or v.known for _, v in given.flags)
    )
    return CommandFinding(
        known=True,
        harmless=form.harmless and judged.harmless and certain and not given.mild and not doubt,
        # What `xargs` adds is never certain: no rule that names a pattern covers it.
        doubt=doubt or judged.unruled or (f"{what(GIVEN)} could become a flag of {name}" if handed else ""),
        reads=tuple(reads),
        writes=tuple(writes),
        unsure=bool(doubt) or form.unsure or form.project or not certain or cwd is None,
        runs_project_code=form.project,
        program=name,
        globs=tuple(globs),
        deep=(form.deep and not judged.names_only) or judged.deep,
        covers_inside=form.elsewhere,
        folder=folder,
        into=tuple(below(folder, path) for path in judged.into),
        unhides=judged.unhides,
        searches=judged.searches,
        only=judged.only,
        names_only=(form.names_only or judged.names_only) and not judged.deep,
        handed=handed,
    )


def _uncertain(name: str, form: Form, kind: str, word: Word, *, repeated: bool) -> str:
    """The doubt about one operand."""
    if word.known:
        return _misshapen(name, form, kind, word)
    files = kind == "read" and repeated and ((is_glob(word) and form.globs) or word == GIVEN)
    # The commands that a stream comes from are decided on by themselves.
    stream = kind == "read" and word.stream and form.harmless
    text = kind == "text" and (is_single(word) or (form.prints and (is_glob(word) or word.told)))
    if files or stream or text:
        return ""
    return f"{what(word)} among the words of {name} is not certain"


def _assign_kinds(form: Form, given: CommandArguments) -> list[tuple[str, Word, bool]] | None:
    """Each operand with its kind and whether more of that kind may follow; None where there are too many."""
    if form.plain:
        return []
    kinds = form.operands.split()
    if form.instead and given.has(*form.instead.split()):
        kinds = kinds[1:]
    words = list(given.operands)
    star = next((index for index, kind in enumerate(kinds) if kind.endswith("*")), len(kinds))
    head, tail = kinds[:star], kinds[star + 1 :]
    behind = words[len(words) - len(tail) :] if tail and len(words) >= len(head) + len(tail) else []
    front, middle = words[: len(head)], words[len(head) : len(words) - len(behind)]
    if middle and star == len(kinds):
        return None
    repeated = kinds[star][:-1] if star < len(kinds) else ""
    return [
        *((kind.rstrip("?"), word, False) for kind, word in zip(head, front, strict=False)),
        *((repeated, word, True) for word in middle),
        *((kind.rstrip("?"), word, False) for kind, word in zip(tail, behind, strict=False)),
    ]


def _misshapen(name: str, form: Form, kind: str, word: Word) -> str:
    if kind == "text" and form.shape and not re.fullmatch(form.shape, word.text):
        return f"{name} is not known to be plain with the word {word.text}"
    if name.startswith("git ") and re.match("-.", word.text):
        return f"{name} may take the word {word.text} for a flag, also behind --"
    if (kind in {"read", "write"} and word.text.startswith("@")) or (kind == "write" and word.text.startswith("-")):
        return f"{name} may take the word {word.text} for more than a file"
    return odd_address(word.text) if kind == "url" else ""


def _module(name: str, words: Sequence[Word], cwd: str | None) -> CommandFinding | None:
    """The finding for `python -m module`: the module's own row, where it has one. The folder is on its path."""
    for index, word in enumerate(words):
        if not word.known or not word.text.startswith("-") or word.text in {"-", "--"}:
            return None
        if word.text == "-m":
            rest = words[index + 1 :]
            before = ArgumentReader(table()[name], name).read(words[:index])
            if before.doubt or not rest or not rest[0].known:
                return None
            module = rest[0].text
            key = module if module in _MODULES else f"python -m {module}"
            found = _examine_row(key, rest[1:], cwd) if key in table() else _unknown(_loose(rest[1:], key), name)
            return found._replace(harmless=False, unsure=True, runs_project_code=True, program=name)
    return None
