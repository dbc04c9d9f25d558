"""Rows of the programs that pack and unpack files."""

import re
from collections.abc import Mapping, Sequence

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form, parse_flags
from ferrule.permissions.shell.line import Word

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

ROWS: Mapping[str, Form] = {
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
