"""Rows of the programs that read text and print it in another form."""

from collections.abc import Mapping

from ferrule.permissions.shell.form import Form
from ferrule.permissions.shell.scripts import ag, awk, brackets, grep, jq, known_words, plus, printf, rg, sed, yq

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

ROWS: Mapping[str, Form] = {
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
