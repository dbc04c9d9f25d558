"""Rows of the programs that show, find, make, move and remove files."""

import re
from collections.abc import Mapping, Sequence

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form
from ferrule.permissions.shell.line import Word

_FIND_DANGERS = (
    "-exec -execdir -ok -okdir= runs a program; -delete= deletes files; -fprint -fprint0 -fprintf -fls= writes a"
    " file; -files0-from= takes its folders from a file"
)
READING = "-exec-reading"
"""Stands for an `-exec` of a program that only reads; `find` itself knows no such flag. With `-named` behind it, a
`-name` before it holds for all that is read; with `-names`, nothing is told of what is in the files."""
_RUNS = "find -exec runs a program"
_EITHER = frozenset({"!", "-not", "-o", "-or", ",", "("})
"""With one of these, a name that is looked for need not be the name of what is found."""
_DEEP = r"-[A-Za-z]*[rRd]|--(?:dereference-)?recursive|--directories"
_MODE = "0?[0-7]{3}|[ugoa]*[+=-][rwxX]+(,[ugoa]*[+=-][rwxX]+)*"


def _cd(given: CommandArguments) -> ArgumentAnalysis:
    plain = len(given.operands) == 1 and given.operands[0].text not in {"-", ""}
    return ArgumentAnalysis(doubt="" if plain else "cd leads to a folder that is not named")


def _command(given: CommandArguments) -> ArgumentAnalysis:
    return ArgumentAnalysis(doubt="" if given.has("-v", "-V") else "command runs another command")


def _dd(given: CommandArguments) -> ArgumentAnalysis:
    parts = [word.text.partition("=") for word in given.operands]
    listed = {"if", "of", "bs", "count", "skip", "seek", "status", "conv", "ibs", "obs"}
    if any(name not in listed or not value for name, _, value in parts):
        return ArgumentAnalysis("dd is not known with such a word")
    reads = tuple(value for name, _, value in parts if name == "if")
    return ArgumentAnalysis(reads=reads, writes=tuple(value for name, _, value in parts if name == "of"))


def check_copy(given: CommandArguments) -> ArgumentAnalysis:
    """What is copied into a folder keeps its name there."""
    spread = given.has("-T", "--no-target-directory")
    sources = [word.text for word in given.operands[:-1] if word.known]
    into = tuple(f"{text}/." if spread else text for text in sources)
    return ArgumentAnalysis(writes=(".",) if len(given.operands) == 1 else (), into=into)


def _ln(given: CommandArguments) -> ArgumentAnalysis:
    """With one operand the link is made in the folder where it runs."""
    return ArgumentAnalysis(writes=(".",) if len(given.operands) == 1 else ())


def _without_reading(words: Sequence[Word]) -> list[Word]:
    """The words of `find` with one flag of our own in the place of each `-exec` of a program that only reads.

    What it is given are paths that begin as the folders do that are searched, never with a dash.
    """
    from ferrule.permissions.shell.programs import examine  # the tables are its own

    kept: list[Word] = []
    rest = list(words)
    while rest:
        end = next((at for at, word in enumerate(rest) if word.known and word.text in {";", "+"}), 0)
        command = rest[1:end]
        if rest[0].text == "-exec" and rest[0].known and command and all(word.known for word in command):
            finding = examine(command, cwd="/")
            deep = finding.deep and (
                not finding.program.endswith("grep") or any(re.match(_DEEP, word.text) for word in command)
            )
            if finding.harmless and not finding.unsure and not deep:
                before = [word.text for word in kept]
                named = "-name" in before and not _EITHER & set(before) and not finding.names_only
                kind = "-named" if named else "-names" if finding.names_only else ""
                kept.append(Word(READING + kind, single=True))
                rest = rest[end + 1 :]
                continue
        kept.append(rest.pop(0))
    return kept


def _find(given: CommandArguments) -> ArgumentAnalysis:
    """Who reads what it finds reads the files that have the name that it looks for."""
    if not given.has(READING, f"{READING}-named"):
        return ArgumentAnalysis(unruled=_RUNS if given.has(f"{READING}-names") else "")
    names = [word.text if word.known else "*" for word in given.values("-name")]
    return ArgumentAnalysis(deep=True, only=() if given.has(READING) else tuple(names[:1]), unruled=_RUNS)


def _fd(given: CommandArguments) -> ArgumentAnalysis:
    """The first operand is a pattern, the others are folders."""
    return ArgumentAnalysis(reads=tuple(word.text for word in given.operands[1:] if word.known) or (".",))


def _date(given: CommandArguments) -> ArgumentAnalysis:
    plain = all(re.fullmatch(r"\+(?s:.*)", word.text) for word in given.operands)
    return ArgumentAnalysis("" if plain else "date sets the clock with such a word")


ROWS: Mapping[str, Form] = {
    "ls": Form(
        "-aAlhHtrSRFdCxgonpqsuvcfiBGkLNQTUXZmbD1 -w:n --all --almost-all --human-readable --reverse --recursive"
        " --size --inode --directory --classify? --color? --sort:x --time:x --time-style:x"
        " --group-directories-first --full-time --numeric-uid-gid --ignore:x --hide:x --format:x --si --no-group"
        " --file-type --literal --quote-name --width:n --zero --dereference --author --escape --hide-control-chars"
        " --show-control-chars",
        "read*", harmless=True, here=True, globs=True, tame=True, names_only=True,
    ),
    "cat": Form(
        "-nbsAETvetu --number --number-nonblank --squeeze-blank --show-all --show-ends --show-tabs"
        " --show-nonprinting",
        "read*", harmless=True, globs=True, tame=True,
    ),
    "pwd": Form("-LP", harmless=True),
    "cd": Form("-LP", "read?", harmless=True, check=_cd),
    "pushd": Form("", "read", harmless=True, check=_cd),
    "popd, dirs": Form("", "", harmless=True),
    "true, false, :": Form(plain=True, harmless=True),
    "which": Form("-as --all", "text*", harmless=True),
    "type": Form("-atpPf", "text*", harmless=True),
    "help": Form("-dms", "text*", harmless=True),
    "whereis": Form("-bms", "text*", harmless=True, shape=r"[\w.+-]+"),
    "command": Form("-vVp", "text*", harmless=True, ends=True, check=_command),
    "basename": Form("-az -s:x --multiple --suffix:x --zero", "text*", harmless=True),
    "dirname": Form("-z --zero", "text*", harmless=True),
    "realpath": Form(
        "-emsqLPz --canonicalize-existing --canonicalize-missing --strip --no-symlinks --logical --physical --quiet"
        " --zero --relative-to:r --relative-base:r",
        "read*", harmless=True, names_only=True,
    ),
    "readlink": Form(
        "-femnqsvz --canonicalize --no-newline --verbose --zero", "read*", harmless=True, names_only=True,
    ),
    "stat": Form(
        "-LftxlnqFsr -c:x --dereference --format:x --printf:x --terse --file-system", "read*", harmless=True,
        globs=True, tame=True, names_only=True,
    ),
    "file": Form(
        "-bikLhNnr0 -e:x -F:x --brief --mime --mime-type --mime-encoding --keep-going --dereference"
        " --no-dereference --extension --separator:x",
        "read*", harmless=True, globs=True,
        dangers="-p --preserve-date= sets the dates of the file; -m --magic-file= loads a file; -C --compile= writes"
        " a file; -f --files-from= takes its files from a file",
    ),
    "du": Form(
        "-sahkmcbxlLDHPS0g -d:n -t:x -B:x --max-depth:n --summarize --human-readable --all --total --apparent-size"
        " --si --one-file-system --exclude:x --threshold:x --block-size:x --bytes --time? --separate-dirs --null",
        "read*", harmless=True, here=True, globs=True, tame=True, names_only=True,
    ),
    "df": Form(
        "-hHkmTialPg -t:x -x:x -B:x --human-readable --print-type --inodes --total --local --output? --si"
        " --portability --type:x --exclude-type:x",
        "text*", harmless=True,
    ),
    "tree": Form(
        "-adfisphugDFqNQCnlxcvrtUAJSX -L:n -I:x -P:x --dirsfirst --noreport --du --prune --gitignore --si --inodes"
        " --device --filelimit:n --filesfirst --matchdirs --ignore-case --sort:x --charset:x --timefmt:x"
        " --metafirst",
        "read*", harmless=True, here=True, names_only=True,
        dangers="-o= writes a file; -H -T -R= writes pages; --fromfile --gitfile --infofile= takes names from a"
        " file",
    ),
    "find": Form(
        "-H -P !-L -E -x -X -s -d -name:x -iname:x -path:x -ipath:x -wholename:x -iwholename:x -regex:x -iregex:x"
        " -regextype:x -type:x -xtype:x -size:x -empty -mtime:x -mmin:x -atime:x -amin:x -ctime:x -cmin:x -newer:r"
        " -anewer:r -cnewer:r -newermt:x -perm:x -user:x -group:x -uid:x -gid:x -nouser -nogroup -links:x -inum:x"
        " -samefile:r -lname:x -ilname:x -maxdepth:n -mindepth:n -depth -mount -xdev -daystart !-follow -noleaf"
        " -print -print0 -printf:x -ls -prune -quit -true -false -readable -writable -executable -used:x -fstype:x"
        " -a -o -and -or -not -ignore_readdir_race -warn -nowarn --version "
        f"{READING} {READING}-named {READING}-names",
        "read*", harmless=True, here=True, whole=True, skipped="( ) ! ,", names_only=True, check=_find,
        prepare=_without_reading, dangers=_FIND_DANGERS,
    ),
    "fd, fdfind": Form(
        "-HIusgFapi01 -t:x -e:x -d:n -E:x -S:x -c:x -j:n --hidden --no-ignore --no-ignore-vcs --type:x"
        " --extension:x --max-depth:n --min-depth:n --exact-depth:n --exclude:x --glob --fixed-strings"
        " --absolute-path --full-path --ignore-case --case-sensitive --size:x --color:x --print0 --max-results:n"
        " --quiet --and:x --changed-within:x --changed-before:x --strip-cwd-prefix --unrestricted --regex"
        " --threads:n --show-errors --one-file-system --prune --owner:x",
        "text? read*", harmless=True, check=_fd,
        dangers="-x -X --exec --exec-batch= runs a program; --ignore-file --base-directory --search-path= takes a"
        " path",
    ),
    "locate, plocate, mlocate": Form("-ibcl0wr -n:n --limit:n --ignore-case --basename --count", "text*"),
    "date": Form(
        "-uRjn -d:x -I? -r:r -v:x --date:x --utc --universal --iso-8601? --rfc-3339:x --rfc-email --reference:r"
        " --debug",
        "text*", harmless=True, check=_date,
        dangers="-s --set= sets the clock; -f --file= takes its dates from a file",
    ),
    "cp": Form(
        "-rRapfnvuiLPHdxTcX --recursive --archive --preserve? --force --no-clobber --verbose --update?"
        " --interactive --dereference --no-dereference --no-target-directory --parents --one-file-system --reflink?"
        " --sparse:x",
        "read* write", check=check_copy, dangers="-t --target-directory= turns the order of its words round",
    ),
    "mv": Form(
        "-fnvuiT --force --no-clobber --verbose --update? --interactive --no-target-directory", "write*",
        check=check_copy, dangers="-t --target-directory= turns the order of its words round",
    ),
    "rm": Form("-rRfviId --recursive --force --verbose --dir --interactive? --one-file-system", "write*"),
    "rmdir": Form("-pv --parents --verbose --ignore-fail-on-non-empty", "write*"),
    "unlink": Form("", "write"),
    "mkdir": Form("-pv -m:x --parents --verbose --mode:x", "write*"),
    "mktemp": Form("-dqut --directory --quiet --dry-run --suffix:x", "write?", unsure=True),
    "touch": Form("-acmhf -d:x -t:x -r:r --date:x --no-create --reference:r --time:x --no-dereference", "write*"),
    "ln": Form(
        "-sfvniTrLP --symbolic --force --verbose --no-dereference --relative --interactive", "read* write",
        check=_ln,
    ),
    "chmod": Form("-Rvcf --recursive --verbose --changes --silent --quiet", "text write*", shape=_MODE),
    "chown, chgrp": Form("-Rvcfh --recursive --verbose --changes --no-dereference", "text write*"),
    "tee": Form("-aip --append --ignore-interrupts --output-error?", "write*"),
    "truncate": Form("-co -s:x -r:r --size:x --reference:r --no-create", "write*"),
    "install": Form(
        "-dvpDC -m:x --mode:x --directory --verbose", "read* write", check=check_copy,
        dangers="--strip-program= runs a program; -t --target-directory= turns the order of its words round",
    ),
    "dd": Form("", "text*", check=_dd),
    "split": Form(
        "-dxve -l:n -b:n -n:x -a:n -C:n --lines:n --bytes:n --number:x --suffix-length:n --numeric-suffixes?"
        " --additional-suffix:x --verbose",
        "read? write?", unsure=True, dangers="--filter= runs a program",
    ),
    "csplit": Form(
        "-ksz -f:w -n:n -b:x --prefix:w --digits:n --silent --quiet --keep-files", "read text*", unsure=True,
    ),
    "patch": Form(
        "-sNEtbu -p:n --dry-run --strip:n --silent --forward", "write? read?", unsure=True,
        dangers="-o --output -r --reject-file= writes a file; -d --directory= goes to another folder; -e --ed= runs"
        " ed; -g --get= runs a program; -i --input= loads a file",
    ),
    "shred": Form("-uvz -n:n --remove? --zero --verbose --iterations:n", "write*"),
}  # fmt: skip
