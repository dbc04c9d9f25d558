"""The rows of programs about files, text and archives."""

import re
from collections.abc import Mapping, Sequence

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form, parse_flags
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.programs import examine
from ferrule.permissions.shell.scripts import ag, awk, brackets, grep, jq, known_words, plus, printf, rg, sed, yq

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


_FILES: Mapping[str, Form] = {
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


_TAR = (
    "-ctxruvzjJakOphmSd -f:x -C:d --create --list --extract --get --append --update --verbose --gzip --bzip2 --xz"
    " --zstd --auto-compress --file:x --directory:d --exclude:x --strip-components:n --to-stdout --keep-old-files"
    " --no-same-owner --no-same-permissions --preserve-permissions --wildcards --dereference --exclude-vcs --sparse"
    " --one-file-system --totals --no-recursion --sort:x --mtime:x --owner:x --group:x --numeric-owner --diff"
    " --compare"
)


_MODES = {
    **dict.fromkeys(("-t", "--list", "-d", "--diff", "--compare"), "list"),
    **dict.fromkeys(("-x", "--extract", "--get"), "extract"),
    **dict.fromkeys(("-c", "--create", "-r", "--append", "-u", "--update"), "create"),
}


def _old_style(words: Sequence[Word]) -> Sequence[Word]:
    """`tar xzf file` is `tar -x -z -f file`: the letters' values follow in their order."""
    if not words or not words[0].known or not re.fullmatch("[A-Za-z]+", words[0].text):
        return words
    table, rest, made = parse_flags(_TAR, whole=False), list(words[1:]), []
    for letter in words[0].text:
        made.append(Word(f"-{letter}"))
        flag = table.get(f"-{letter}")
        if flag is not None and flag.value and rest:
            made.append(rest.pop(0))
    return [*made, *rest]


def _tar(given: CommandArguments) -> ArgumentAnalysis:
    files = given.values("-f", "--file")
    if any(not file.known or ":" in file.text for file in files):
        return ArgumentAnalysis("tar takes a file with a colon for another host")
    operands = tuple(word.text for word in given.operands if word.known)
    named = tuple(file.text for file in files if file.text != "-")
    meant = {_MODES[name] for name, _ in given.flags if name in _MODES}
    if meant == {"list"}:
        return ArgumentAnalysis(reads=named)
    if meant == {"extract"}:
        shown = given.has("-O", "--to-stdout")
        # What is printed counts by its name too.
        return ArgumentAnalysis(
            harmless=shown, reads=(*named, *(operands if shown else ())), writes=() if shown else (".",)
        )
    if meant == {"create"}:
        return ArgumentAnalysis(harmless=False, reads=operands, writes=named)
    return ArgumentAnalysis("tar is not told one thing to do")


def _gzip(given: CommandArguments) -> ArgumentAnalysis:
    """Files are replaced unless the result is printed."""
    files = tuple(word.text for word in given.operands if word.known and word.text != "-")
    # Of several modes the last one counts in some of these programs: beside another one, a look is none.
    looks = given.has("-l", "--list", "-t", "--test")
    changes = given.has("-d", "--decompress", "--uncompress", "-z", "--compress")
    printed = given.has("-c", "--stdout", "--to-stdout") or (looks and not changes)
    return ArgumentAnalysis(harmless=printed, writes=() if printed or not files else files)


def _folder_first(words: Sequence[Word]) -> Sequence[Word]:
    """Of all flags only `-d` may also stand behind the archive."""
    archive = next((at for at, word in enumerate(words) if not word.text.startswith("-")), len(words))
    at = next((at for at in range(archive, len(words) - 1) if words[at].text == "-d" and words[at].known), None)
    return words if at is None else [*words[at : at + 2], *words[:at], *words[at + 2 :]]


def _dashes(given: CommandArguments) -> str:
    """Behind the archive all is the name of a file, and two dashes turn the next flag round: `-- -l` undoes `-l`."""
    dashed = any(word.text.startswith("-") for word in given.operands)
    return "a flag stands where it counts for none, or is turned round" if dashed else ""


def _zipinfo(given: CommandArguments) -> ArgumentAnalysis:
    return ArgumentAnalysis(_dashes(given))


def _unzip(given: CommandArguments) -> ArgumentAnalysis:
    goes = given.has("-d")
    # `-Z` counts only where it is the first of all flags.
    looks = given.has("-l", "-t", "-p") or (bool(given.flags) and given.flags[0][0] == "-Z")
    printed = tuple(word.text for word in given.operands[1:] if word.known) if given.has("-p") else ()
    return ArgumentAnalysis(_dashes(given), harmless=looks, reads=printed, writes=() if looks or goes else (".",))


# What one of them knows for a look is another thing to the next, or to who stands in for it: `pbzip2 -l` compresses.
_PACKER = "-cdfktqv -# --stdout --decompress --force --keep --test --quiet --verbose"
_GZIP = f"{_PACKER} -lnr --to-stdout --uncompress --list --recursive --fast --best --no-name"
_BZIP2 = f"{_PACKER} -s --small --fast --best"
_XZ = f"{_PACKER} -le -T:n --to-stdout --uncompress --list --extreme --threads:n --fast --best"
_ZSTD = f"{_PACKER} -lr -T:n --uncompress --list --threads:n"

_PACKED = Form(
    operands="read*", harmless=True, check=_gzip, dangers="-S --suffix -o= writes elsewhere; --rm= deletes the file"
)

_ARCHIVES: Mapping[str, Form] = {
    "tar, gtar, bsdtar": Form(
        _TAR, "text*", harmless=True, prepare=_old_style, check=_tar, unsure=False,
        dangers="--to-command --checkpoint-action --use-compress-program -I --rsh-command --rmt-command -F"
        " --info-script --new-volume-script --compress-program= runs a program; -P --absolute-names= leaves its"
        " folder; -T --files-from -X --exclude-from= loads a file; --checkpoint= may run a program; --remove-files="
        " deletes files; --transform --xform= may run a program",
    ),
    "gzip, gunzip": _PACKED._replace(flags=_GZIP),
    "bzip2, bunzip2": _PACKED._replace(flags=_BZIP2),
    "xz, unxz": _PACKED._replace(flags=_XZ),
    "zstd": _PACKED._replace(flags=_ZSTD),
    "zcat, gzcat, bzcat, xzcat": Form("-fqv", "read*", harmless=True),
    "unzip": Form(
        "-lptvZqonjuaCLV1 -d:w", "read text*", harmless=True, ends=True, prepare=_folder_first, check=_unzip,
        dangers="-: = leaves its folder; -P= tells a password",
    ),
    "zipinfo": Form("-1slmvhtzT", "read text*", harmless=True, check=_zipinfo),
    "zip": Form(
        "-rqvjuyXD0123456789 -x:x -i:x --recurse-paths --quiet --exclude:x", "write read*", unsure=True,
        dangers="-T -TT --test --unzip-command= runs a program; -m --move= deletes files; -@= takes its files from"
        " a list; -O --out -b --temp-path= writes elsewhere",
    ),
}  # fmt: skip


_GREP = (
    "-abcEFGHhiIlLnoPqrsTUvVwxyzZ !-R -A:n -B:n -C:n -m:n -e:x -D:x -d:x -# --extended-regexp --fixed-strings"
    " --perl-regexp --basic-regexp --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp"
    " --count --color? --colour? --files-without-match --files-with-matches --max-count:n --only-matching --quiet"
    " --silent --no-messages --byte-offset --with-filename --no-filename --label:x --line-number --initial-tab"
    " --null --after-context:n --before-context:n --context:n --text --binary-files:x --exclude:x --include:x"
    " --exclude-dir:x --recursive !--dereference-recursive --line-buffered --null-data --regexp:x"
    " --group-separator:x --no-group-separator --directories:x --devices:x"
)
_RG = (
    "-acFiHhIlnNopqsSTUuvVwx0P -A:n -B:n -C:n -e:x -g:x -m:n -M:n -t:x -T:x -j:n -d:n -r:x -E:x -. -# !-L !--follow"
    " --after-context:n --before-context:n --context:n --regexp:x --glob:x --iglob:x --max-count:n --max-columns:n"
    " --max-columns-preview --type:x --type-not:x --type-list --threads:n --max-depth:n --replace:x --encoding:x"
    " --hidden --no-hidden --ignore-case --case-sensitive --smart-case --fixed-strings --line-number"
    " --no-line-number --files --files-with-matches --files-without-match --count --count-matches --column"
    " --no-heading --heading --color:x --colors:x --vimgrep --json --stats --only-matching --invert-match"
    " --word-regexp --line-regexp --multiline --multiline-dotall --pcre2 --text --no-messages --no-filename"
    " --with-filename --quiet --sort:x --sortr:x --trim --passthru --no-ignore --no-ignore-vcs --no-ignore-parent"
    " --unrestricted --null --null-data --no-config --crlf --glob-case-insensitive --path-separator:x"
    " --context-separator:x --field-match-separator:x --max-filesize:x --no-mmap --mmap --one-file-system"
    " --engine:x --include-zero --pretty --version --no-pcre2"
)

_TEXT: Mapping[str, Form] = {
    "echo": Form(plain=True, harmless=True, prints=True),
    "printf": Form(
        "", "text*", harmless=True, prints=True, ends=True, check=printf, dangers="-v= changes a variable",
    ),
    "read": Form(
        "-rs -p:x -d:x -n:n -N:n -t:x -u:n", "text*", harmless=True, ends=True, shape=r"[a-z][a-z0-9_]*",
        dangers="-a= evaluates a name; -e -i= waits for a person",
    ),
    "test": Form(plain=True, harmless=True, names_only=True, check=brackets),
    "[": Form(plain=True, harmless=True, names_only=True, check=brackets),
    "head": Form(
        "-qvz -n:n -c:n -# --lines:n --bytes:n --quiet --silent --verbose --zero-terminated", "read*",
        harmless=True, globs=True, tame=True,
    ),
    "tail": Form(
        "-qvzr -n:n -c:n -b:n -# !-f !-F !--follow? !--retry !--pid:n !-s:n --lines:n --bytes:n --quiet --silent"
        " --verbose --zero-terminated",
        "read*", harmless=True, globs=True, tame=True,
    ),
    "wc": Form(
        "-clmwL --bytes --chars --lines --words --max-line-length --total:x", "read*", harmless=True, globs=True,
        tame=True, dangers="--files0-from= takes its files from a file",
    ),
    "grep, egrep, fgrep": Form(
        _GREP, "text read*", harmless=True, globs=True, tame=True, deep=True, instead="-e --regexp", check=grep,
        dangers="-f --file= loads a file; --exclude-from= loads a file",
    ),
    "rg": Form(
        _RG, "text read*", harmless=True, here=True, deep=True, globs=True, check=rg,
        instead="-e --regexp --files --type-list",
        dangers="--pre --hostname-bin= runs a program; -z --search-zip= runs programs; --pre-glob= runs a program;"
        " -f --file --ignore-file= loads a file",
    ),
    "ag, ack": Form(
        "-acFHhiLlnoQqSsvwU -A:n -B:n -C:n -G:x -m:n --hidden --nogroup --nocolor --column --count --ignore-case"
        " --literal --files-with-matches --ignore:x --depth:n",
        "text read*", here=True, deep=True, check=ag,
        dangers="--pager= runs a program; -p --path-to-ignore= loads a file",
    ),
    "sort": Form(
        "-bcCdfghiMnrRsuVmz -k:x -t:x --ignore-leading-blanks --dictionary-order --ignore-case"
        " --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --reverse --random-sort --stable"
        " --unique --version-sort --key:x --field-separator:x --zero-terminated --check? --merge --sort:x"
        " --parallel:n",
        "read*", harmless=True, globs=True,
        dangers="-o --output= writes a file; -T --temporary-directory= writes there; --compress-program= runs a"
        " program; --files0-from= takes its files from a file; --random-source= reads a file",
    ),
    "uniq": Form(
        "-cdDiuz -f:n -s:n -w:n -# --count --repeated --all-repeated? --group? --ignore-case --skip-fields:n"
        " --skip-chars:n --unique --zero-terminated --check-chars:n",
        "read?", harmless=True,
    ),
    "cut": Form(
        "-nsz -b:x -c:x -d:x -f:x --bytes:x --characters:x --delimiter:x --fields:x --complement --only-delimited"
        " --output-delimiter:x --zero-terminated",
        "read*", harmless=True,
    ),
    "tr": Form("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "text text?", harmless=True),
    "paste": Form("-sz -d:x --delimiters:x --serial --zero-terminated", "read*", harmless=True),
    "comm": Form(
        "-123iz --check-order --nocheck-order --output-delimiter:x --total --zero-terminated", "read read",
        harmless=True,
    ),
    "join": Form(
        "-iz -a:n -e:x -j:n -o:x -t:x -v:n -1:n -2:n --ignore-case --header --check-order --nocheck-order",
        "read read", harmless=True,
    ),
    "diff, colordiff": Form(
        "-abBcdeEinNpqrstTuwyZ -I:x -U:n -C:n -W:n -x:x -F:x -L:x -# --brief --report-identical-files --unified?"
        " --context? --side-by-side --width:n --recursive --new-file --ignore-case --ignore-all-space"
        " --ignore-space-change --ignore-blank-lines --ignore-trailing-space --ignore-tab-expansion"
        " --strip-trailing-cr --text --minimal --exclude:x --label:x --color? --suppress-common-lines --left-column"
        " --expand-tabs --show-c-function --no-dereference --normal --ed --speed-large-files --horizon-lines:n"
        " --tabsize:n",
        "read read", harmless=True, deep=True,
        dangers="-l --paginate= runs a program; --from-file --to-file= takes another file; -X --exclude-from= loads"
        " a file",
    ),
    "cmp": Form(
        "-bls -n:n -i:x --print-bytes --verbose --silent --quiet --bytes:n", "read read text? text?",
        harmless=True, shape=r"\d+",
    ),
    "nl": Form(
        "-b:x -f:x -h:x -i:n -l:n -n:x -s:x -v:n -w:n -p --body-numbering:x --number-width:n", "read*",
        harmless=True,
    ),
    "tac": Form("-br -s:x --before --regex --separator:x", "read*", harmless=True),
    "rev": Form("", "read*", harmless=True),
    "fold": Form("-bcs -w:n -# --bytes --spaces --width:n", "read*", harmless=True),
    "fmt": Form("-cstu -w:n -# --width:n --split-only --uniform-spacing", "read*", harmless=True),
    "column": Form(
        "-tenxLdmJ -s:x -c:n -N:x -o:x -R:x -H:x -T:x -W:x --table --separator:x --output-width:n --table-columns:x"
        " --output-separator:x --json",
        "read*", harmless=True,
    ),
    "expand, unexpand": Form("-ia -t:x --initial --tabs:x --all --first-only", "read*", harmless=True),
    "expr": Form(plain=True, harmless=True, check=known_words),
    "bc": Form("-lqs --mathlib --quiet --standard", "", harmless=True),
    "cal, ncal": Form("-13jmsyh", "text*", harmless=True, shape=r"\d{1,4}|[A-Za-z]{3,9}"),
    "seq": Form("-w -s:x -f:x -# --equal-width --separator:x --format:x", "text*", harmless=True, shape=r"-?[\d.]+"),
    "yes": Form("", "text*"),
    "md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum, cksum, sum": Form(
        "-btzrs !-c !--check !--ignore-missing !--quiet !--status !--strict -l:n -a:x --binary --text --tag --zero"
        " --algorithm:x --untagged",
        "read*", harmless=True, globs=True, tame=True,
    ),
    "shasum": Form("-btpqsU0 -a:n --algorithm:n !-c !--check", "read*", harmless=True, globs=True),
    "md5": Form("-pqr -s:x", "read*", harmless=True, globs=True),
    "base64, base32": Form("-dD -w:n -b:n --decode --wrap:n", "read?", harmless=True),
    "xxd": Form(
        "-a -b -e -i -u -E -p -ps -plain -c:n -g:n -l:n -s:x -o:n -n:x", "read?", harmless=True, whole=True,
        ends=True,  # a second file is written, whatever its name looks like
        also=r"-[cglos]\d+", dangers="-r -revert= turns a dump into a file",
    ),
    "od": Form(
        "-abcdfiloxvs -A:x -t:x -j:x -N:x -w? --address-radix:x --format:x --read-bytes:x --skip-bytes:x"
        " --output-duplicates",
        "read*", harmless=True,
    ),
    "hexdump, hd": Form("-bcCdovx -n:n -s:x -e:x", "read*", harmless=True, dangers="-f= loads a file"),
    "strings": Form(
        "-afow -n:n -t:x -e:x -# --all --print-file-name --bytes:n --radix:x --encoding:x", "read*",
        harmless=True, expands=True,
    ),
    "nm": Form(
        "-aACDgnpruS -f:x --demangle? --defined-only --undefined-only --size-sort --dynamic", "read*",
        harmless=True, expands=True,
    ),
    "size": Form("-ABdotx --common --totals", "read*", harmless=True, expands=True),
    "readelf": Form(
        "-ahlSsrdVnWegutI --all --file-header --program-headers --sections --symbols --dynamic --notes --wide", "read*",
        harmless=True, expands=True,
    ),
    "objdump": Form(
        "-afphxdDstTrRCw -j:x -M:x --disassemble? --syms --headers --section:x --demangle? --wide", "read*",
        harmless=True, expands=True, dangers="-S -l -g --source --dwarf= may fetch what belongs to the file",
    ),
    "jq": Form(
        "-acCMeHjnrRsSh --arg:xx --argjson:xx --raw-output --compact-output --null-input --slurp --raw-input"
        " --exit-status --sort-keys --color-output --monochrome-output --ascii-output --join-output --tab"
        " --indent:n --unbuffered --stream --seq --raw-output0 --version",
        "text read*", harmless=True, globs=True, check=jq,
        dangers="-f --from-file= loads a program; -L --library-path= loads programs; --slurpfile --rawfile= reads a"
        " file",
    ),
    "yq": Form(
        "-rPMCNecj --prettyPrint --unwrapScalar --no-colors --colors --no-doc --exit-status --raw-output",
        "text read*", harmless=True, check=yq,
        dangers="-i --inplace --in-place= writes the file; -s --split-exp= writes files; --from-file= loads a"
        " program",
    ),
    "sed, gsed": Form(
        "-nErsuz -e:x --quiet --silent --regexp-extended --expression:x --separate --unbuffered --null-data --posix"
        " --sandbox --debug",
        "text read*", harmless=True, globs=True, instead="-e --expression", check=sed,
        dangers="-i -I --in-place= writes the file; -f --file= loads a script",
    ),
    "awk, gawk, mawk, nawk": Form(
        r"-F:x -v:=[A-Za-z_]\w*=(?s:.*) --field-separator:x --assign:=[A-Za-z_]\w*=(?s:.*)", "text read*",
        harmless=True, ends=True, check=awk,
        dangers="-f --file -i --include -l --load -e --source= loads a program; -o -d -p --dump-variables --profile"
        " --pretty-print= writes a file",
    ),
    "less, more, most": Form(
        "-EFiIMNnRrSsXqQ -# --chop-long-lines --line-numbers --quit-at-eof --quit-if-one-screen --no-init"
        " --RAW-CONTROL-CHARS",
        "read*", check=plus,
        dangers="-o -O --log-file= writes a file; -k --lesskey-file= loads a file; -K= loads a file",
    ),
    "man": Form(
        "-k -f -w -a", "text*",
        dangers="-P --pager -H --html= runs a program; -C --config-file= loads a file; -l --local-file= reads a"
        " file; -K= reads all",
    ),
    "apropos, whatis": Form("-elw", "text*"),
}  # fmt: skip

ROWS: Mapping[str, Form] = {**_FILES, **_ARCHIVES, **_TEXT}
