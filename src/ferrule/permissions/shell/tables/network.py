"""Rows of the programs that speak to other hosts: none is harmless, since a name that is looked up tells something."""

import re
from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form

_CURL = (
    "-sSLfiIvgGN#46 -X:x -H:x -d:x -F:x -A:x -e:x -m:n -w:x -u:x -r:x -o:=/dev/null|- --silent --show-error"
    " --location --fail --fail-with-body --include --head --verbose --globoff --get --no-buffer --progress-bar"
    " --ipv4 --ipv6 --request:x --header:x --data:x --data-raw:x --data-urlencode:x --data-binary:x --json:x"
    " --form-string:x --form:x --user-agent:x --referer:x --max-time:n --connect-timeout:n --retry:n"
    " --retry-delay:n --retry-max-time:n --retry-all-errors --retry-connrefused --write-out:x --user:x --range:x"
    " --compressed --http1.1 --http2 --http1.0 --tlsv1.2 --tlsv1.3 --max-redirs:n --limit-rate:x"
    " --no-progress-meter --oauth2-bearer:x --output:=/dev/null|- --url:x --path-as-is --no-keepalive --basic"
    " --digest"
)


def _curl(given: CommandArguments) -> ArgumentAnalysis:
    texts = given.values("-H", "--header", "-d", "--data", "--data-binary", "--json", "-w", "--write-out")
    if any(not text.known and not text.start for text in texts) or any(text.text.startswith("@") for text in texts):
        return ArgumentAnalysis("curl may send or read a file that is named in a flag")
    if any(re.match(r"[\w\[\]-]*@", text.text) for text in given.values("--data-urlencode")):
        return ArgumentAnalysis("curl sends a file with --data-urlencode")
    if any(re.search(r"[@<]", text.text) or not text.known for text in given.values("-F", "--form")):
        return ArgumentAnalysis("curl sends a file with -F")
    if any("%output" in text.text or "%{stderr" in text.text for text in given.values("-w", "--write-out")):
        return ArgumentAnalysis("curl writes a file with -w")
    for word in (*given.operands, *given.values("--url")):
        scheme, mark, _ = word.text.partition("://")
        if not word.known or (mark and scheme.lower() not in {"http", "https"}) or re.match(r"(?i)file:", word.text):
            return ArgumentAnalysis(f"curl may read more than the web at {word.text}")
    return ArgumentAnalysis()


def _wget(given: CommandArguments) -> ArgumentAnalysis:
    printed = given.has("--spider", "-O", "--output-document")  # their values are listed: `-` and /dev/null
    return ArgumentAnalysis("" if printed else "wget writes a file")


def _ssh(given: CommandArguments) -> ArgumentAnalysis:
    if not given.operands or not given.operands[0].known:
        return ArgumentAnalysis("ssh has no host that is certain")
    if given.operands[0].text.startswith("-"):
        return ArgumentAnalysis("ssh could take its host for a flag")
    return ArgumentAnalysis("ssh hands over words that only the shell knows" if not given.certain else "")


def _rsync(given: CommandArguments) -> ArgumentAnalysis:
    """With a slash at its end a folder stands for all that is in it."""
    sources = [word.text for word in given.operands[:-1] if word.known]
    return ArgumentAnalysis(into=tuple(f"{text}." if text.endswith("/") else text for text in sources))


_FILES = (
    "-o -O -J -D --output --remote-name --remote-name-all --output-dir --dump-header --trace --trace-ascii --stderr"
    " --libcurl --etag-save -c --cookie-jar --hsts --alt-svc= writes a file; -K --config -q --netrc -n"
    " --netrc-file= loads settings; -T --upload-file= sends a file; -b --cookie --cacert --cert -E --key= loads a"
    " file; --unix-socket --abstract-unix-socket --proxy -x --preproxy --socks5 --resolve --connect-to --doh-url"
    " --interface --dns-servers= takes another way; -k --insecure= trusts any host; --engine --proxy-key= runs"
    " code; -: --next= begins anew; -Q --quote= changes the other host"
)

ROWS: Mapping[str, Form] = {
    "curl": Form(_CURL, "url*", check=_curl, dangers=_FILES),
    "wget": Form(
        "-qSnv46 -O:=-|/dev/null -T:n -t:n -U:x --spider --quiet --server-response --output-document:=-|/dev/null"
        " --timeout:n --tries:n --header:x --user-agent:x --no-verbose --method:=GET|HEAD --max-redirect:n",
        "url*", check=_wget,
        dangers="-O -P --directory-prefix -o -a --output-file -r -m --mirror -i --input-file -x= writes files;"
        " --post-file --body-file= sends a file; -e --execute --config= changes settings; --use-askpass= runs a"
        " program; --load-cookies= loads a file",
    ),
    "ping, ping6": Form("-nqo46D -c:n -W:n -i:n -s:n -t:n -w:n", "text"),
    "dig": Form("-46 -t:x -x:x -p:n -c:x -q:x", "text*", dangers="-f= takes its names from a file; -k= loads a key"),
    "nslookup, host": Form("-av46 -t:x", "text*", also=r"-(?:type|query|debug|port)(?:=\w+)?"),
    "traceroute, mtr, whois": Form("-n46 -m:n -w:n -q:n", "text*"),
    "ssh": Form(
        "-TqvntNCax46 -p:n -l:x -i:r", "text text*", ends=True, elsewhere=True, check=_ssh,
        dangers="-o= may run a program; -F= loads settings; -E -S= writes a file; -L -R -D -W -w -A -X -Y -J= opens"
        " another way",
    ),
    "scp": Form(
        "-rpqCv346 -P:n -l:n -i:r", "read* write",
        dangers="-o -S -D= may run a program; -F -c= loads settings; -J= opens another way",
    ),
    "rsync": Form(
        "-avzrnhPutlpgoDcxiqHAXLkWsSdm0R --archive --verbose --compress --recursive --dry-run --human-readable"
        " --progress --partial --update --times --links --perms --checksum --itemize-changes --quiet --stats"
        " --exclude:x --include:x --max-size:x --min-size:x --size-only --ignore-existing --existing --inplace"
        " --whole-file --relative --mkpath --info:x --bwlimit:n --timeout:n --no-perms --no-owner --no-group"
        " --copy-links --list-only --one-file-system --prune-empty-dirs --numeric-ids --executability",
        "read* write", unsure=True, check=_rsync,
        dangers="-e --rsh --rsync-path --early-input= runs a program; --delete --delete-after --delete-before"
        " --delete-excluded --delete-during --remove-source-files= deletes files; --files-from --exclude-from"
        " --include-from --password-file -f -F --filter= loads a file; --log-file --write-batch --backup-dir"
        " --temp-dir -T -b --partial-dir= writes elsewhere; --config --daemon --sockopts -M --remote-option="
        " changes how it runs",
    ),
    "gh": Form("--version", "text*", ends=True, subs=True, harmless=True),
    "gh pr, gh issue, gh run, gh repo, gh release, gh workflow, gh search, gh label, gh gist, gh auth": Form(
        "", "text*", subs=True,
    ),
    "gh pr view, gh pr list, gh pr status, gh pr checks, gh pr diff, gh issue view, gh issue list, gh issue status,"
    " gh run list, gh run view, gh repo view, gh repo list, gh release list, gh release view, gh workflow list, gh"
    " workflow view, gh label list, gh search prs, gh search issues, gh search repos, gh search code": Form(
        "-cdv -R:x -L:n -s:x -l:x -a:x -A:x -S:x -q:x -t:x -H:x -B:x -b:x -e:x -u:x -j:x --repo:x --json:x --jq:x"
        " --template:x --limit:n --state:x --label:x --assignee:x --author:x --search:x --comments --log"
        " --log-failed --verbose --job:x --branch:x --status:x --workflow:x --patch --name-only --color:x --watch"
        " --required --base:x --head:x --draft --interval:n --fail-fast --exit-status --owner:x --milestone:x"
        " --user:x --language:x --sort:x --order:x --yaml",
        "text*", dangers="-w --web= runs a browser",
    ),
    "gh run watch": Form("-R:x -i:n --exit-status --interval:n --compact --repo:x", "text?"),
    "gh pr create, gh pr edit, gh pr comment, gh pr review, gh issue create, gh issue edit, gh issue comment": Form(
        "-dafcr -R:x -t:x -b:x -B:x -H:x -l:x -m:x -p:x --repo:x --title:x --body:x --base:x --head:x --draft"
        " --fill --label:x --assignee:x --reviewer:x --milestone:x --approve --comment --add-label:x"
        " --remove-label:x --add-reviewer:x",
        "text*",
        dangers="-F --body-file -T --template --recover= reads a file; -w --web -e --editor= runs a program",
    ),
    "gh pr checkout, gh pr merge, gh pr close, gh pr ready, gh issue close, gh run rerun, gh run cancel": Form(
        "-dmrs -R:x -b:x -c:x --repo:x --merge --squash --rebase --auto --delete-branch --branch:x --detach"
        " --failed",
        "text*", unsure=True, project=True,
    ),
    "gh repo clone": Form("", "url write?", unsure=True, project=True),
    "gh auth status": Form("", ""),
    "gh api": Form(
        "-i -q:x -t:x -H:x -X:=GET --include --jq:x --template:x --header:x --method:=GET --paginate --slurp"
        " --silent --hostname:x --cache:x",
        "text", shape=r"[\w/{}?&=.,%+:-]+",
        dangers="-f -F --raw-field --field --input= changes the other side or sends a file",
    ),
}  # fmt: skip
