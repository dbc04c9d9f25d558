"""The rows of programs about the machine, the network and containers."""

import re
from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form
from ferrule.permissions.shell.line import OPEN


def _kill(given: CommandArguments) -> ArgumentAnalysis:
    """A second number with a dash is no signal but a group, and -1 is every process."""
    signals = [name for name, _ in given.flags]
    if len(signals) > 1 or "-1" in signals:
        return ArgumentAnalysis("kill -1 ends every process")
    return ArgumentAnalysis(harmless=signals in (["-0"], ["-l"], ["-L"]))  # the signal 0 only asks whether it is there


def _printenv(given: CommandArguments) -> ArgumentAnalysis:
    """Some variables anybody may see."""
    return ArgumentAnalysis(harmless=bool(given.operands) and all(word.text in OPEN for word in given.operands))


def _set(given: CommandArguments) -> ArgumentAnalysis:
    """Without a flag it tells every variable."""
    return ArgumentAnalysis("" if given.flags else "set tells every variable")


def _shell(given: CommandArguments) -> ArgumentAnalysis:
    if not given.operands or given.operands[0].text == "-":
        return ArgumentAnalysis("a shell runs whatever it reads")
    if given.operands[0].text.startswith(("+", "-")):
        return ArgumentAnalysis("a shell may take its script for a flag")
    return ArgumentAnalysis()


_CHOOSING = ("-p", "-u", "-U", "-C", "-t", "-s", "-g", "-G", "--pid", "--ppid", "--user")
_PLAIN = frozenset({"-A", "-a", "-d", "-e", "-f", "-F", "-j", "-l", "-w"})


def _ps(given: CommandArguments) -> ArgumentAnalysis:
    """Words that do not go together are read once more as BSD's, where an `e` tells environments."""
    letters = {name for name, _ in given.flags if len(name) == 2 and name not in {"-o", "-O", *_CHOOSING}}
    chosen = [value.text for value in given.values(*_CHOOSING)]
    alone = not given.operands and len(letters - _PLAIN) < 2 and letters - _PLAIN <= {"-H", "-L", "-T", "-c"}
    if "-e" in letters and not (alone and all(re.fullmatch(r"[\d, ]+", text) for text in chosen)):
        return ArgumentAnalysis("ps may take its e for the one that tells environments")
    if any(re.fullmatch("(?=.*e)[A-Zacefghj-x]+", text) for text in chosen):
        return ArgumentAnalysis("ps may take such a word for letters, one of which tells environments")
    return ArgumentAnalysis()


_SIGNAL = r"-(?:\d{1,2}|(?:SIG)?[A-Z]{2,7}\d?)"

_SYSTEM: Mapping[str, Form] = {
    "whoami, arch, tty, logname": Form(harmless=True),
    "id": Form("-ugGnrzZ --user --group --groups --name --real", "text?", harmless=True),
    "groups": Form("", "text?", harmless=True),
    "uname": Form("-asnrvmpio --all --kernel-name --kernel-release --machine --operating-system", harmless=True),
    "hostname": Form("-s !-f !-i !-I !-d --short", harmless=True),
    "nproc": Form("--all --ignore:n", harmless=True),
    "uptime": Form("-ps --pretty --since", harmless=True),
    "free": Form("-bkmghtlwv --bytes --kilo --mega --giga --human --total --si", harmless=True),
    "sw_vers": Form("-productName -productVersion -buildVersion", harmless=True, whole=True),
    "getconf": Form("", "text*", harmless=True),
    "locale": Form("-am", harmless=True),
    "tput": Form("", "text*", harmless=True, shape="cols|lines|colors"),
    "ps": Form(
        r"-AaedfFjlLMmTwxHNcyr -p:x -u:x -U:x -o:=(?!.*env)\S+ -C:x -t:x -s:x -g:x -G:x -O:=(?!.*env)\S+ --forest"
        r" --sort:x --no-headers --headers --pid:x --ppid:x --user:x --format:=(?!.*env)\S+ --cols:n"
        " --columns:n --width:n",
        "text*", harmless=True, shape=r"[acfjlruxvwTmhkNS]+|\d+(,\d+)*", check=_ps,
    ),
    "pgrep": Form(
        "-lafnoxvci -d:x -u:x -U:x -P:x -g:x -t:x --list-name --list-full --full --count --newest --oldest --exact"
        " --ignore-case",
        "text?", harmless=True,
    ),
    "pstree": Form("-paAclhnpsuU", "text?", harmless=True),
    "top, htop": Form("-bHcislS -n:n -p:x -u:x -o:x -d:n -l:n -w?", ""),
    "lsof": Form("-nPtalOURw -i? -p:x -u:x -c:x -d:x -s?", "read*"),
    "ss": Form("-antulpeisxH46 !-r --listening --tcp --udp --numeric --all --processes --no-header", "", harmless=True),
    "netstat": Form("-antulpreisx46", harmless=True),
    "vmstat, iostat": Form("-astdx", "text*"),
    "env": Form("-0 --null", ""),
    "printenv": Form("-0 --null", "text*", harmless=True, check=_printenv),
    "set": Form("-eu -o:=pipefail|errexit|nounset", "", harmless=True, check=_set, dangers="-x= tells variables"),
    "lscpu": Form("-abcepyJ", "", harmless=True),
    "clear": Form(harmless=True),
    "sleep": Form("", "text*", harmless=True, shape=r"\d*\.?\d+[smh]?"),
    "wait": Form("-n", "text*", harmless=True, shape=r"\d+|%\d+"),
    "jobs": Form("-lpnrs", "text*", harmless=True, shape=r"%?\d+"),
    "exit, return, break, continue": Form("", "text?", harmless=True, shape=r"\d{1,3}"),
    "kill": Form("-s:x -l -L", "text*", harmless=True, also=_SIGNAL, shape=r"\d+|%\d+", check=_kill),
    "pkill, killall": Form(
        "-fxno -u:x -P:x -9 -e --full --exact --newest --oldest --signal:x", "text*", also=_SIGNAL,
    ),
    "bash, sh, zsh, dash, ksh": Form(
        "-euxv", "read text*", ends=True, project=True, unsure=True, check=_shell,
        dangers="-c= runs the text of commands that it is given; -i -l --login --rcfile --init-file -s -o -O="
        " changes how it runs",
    ),
    "systemctl, journalctl, service, launchctl": Form(
        "--no-pager -n:n -u:x --since:x --user", "text*", shape=r"status|is-active|list-units|[\w@.-]+",
    ),
    "brew, apt, apt-get, dnf, yum, apk": Form(
        "", "text*", shape="list|show|info|search|--installed|[a-z0-9.+@/-]+", unsure=True,
    ),
}  # fmt: skip


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

_NETWORK: Mapping[str, Form] = {
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


_ELSEWHERE = (
    "-H --host -c --context --config --tlscacert= takes another machine; -v --volume --mount --privileged --device"
    " --cap-add --security-opt --pid --ipc --userns --network --net --env-file --volumes-from --entrypoint= opens"
    " the machine"
)


_SQL = (
    r"(?is)writefile|load_extension|readfile|edit\s*\(|attach|pragma|insert|replace\s+into|update|delete|drop|;.*\S|\n\s*\."
    r"|fts3_tokenizer|fsdir|lsdir|zipfile"
)
"""What makes a statement do more than read, wherever it stands in it."""


def _compose(*subs: str) -> str:
    """Both names of the program, with each of these sub-commands."""
    return ", ".join(f"{name} {sub}" for name in ("docker compose", "docker-compose") for sub in subs)


def _terraform(*subs: str) -> str:
    return ", ".join(f"{name} {sub}" for name in ("terraform", "tofu") for sub in subs)


def _cluster(given: CommandArguments) -> ArgumentAnalysis:
    words = " ".join(word.text for word in given.operands)
    tells = re.search(r"(?i)\bsecrets?\b|(?:^| )all(?: |$)|,", words)
    return ArgumentAnalysis("kubectl tells secrets with such a word" if tells else "")


def _sqlite(given: CommandArguments) -> ArgumentAnalysis:
    statements = given.operands[1:]
    if any(word.text.startswith("file:") for word in given.operands[:1]):
        return ArgumentAnalysis("sqlite3 takes such a name for an address, which leads anywhere")
    if not statements:
        return ArgumentAnalysis("sqlite3 runs whatever it reads")
    if any(not word.known for word in statements):
        return ArgumentAnalysis("sqlite3's statement is not certain")
    plain = all(re.fullmatch(r"(?is)\s*(select|explain|with|\.schema|\.tables)\b.*", word.text) for word in statements)
    odd = any(re.search(_SQL, word.text) for word in statements)
    # Otherwise it may write a journal, or a new file where there is none.
    return ArgumentAnalysis(
        "" if plain and not odd else "sqlite3 may write, load or run with such a statement",
        harmless=given.has("-readonly"),
    )


def _psql(given: CommandArguments) -> ArgumentAnalysis:
    return ArgumentAnalysis("psql runs whatever it reads" if not given.has("-l", "--list", "-V", "--version") else "")


_COMPOSE = " -f:r --file:r -p:x --project-name:x --profile:x"
_KUBE = (
    "-A -n:x -l:x -o:=json|yaml|wide|name|jsonpath=.*|custom-columns=.* -w -L:x --namespace:x --all-namespaces"
    " --selector:x --output:=json|yaml|wide|name|jsonpath=.*|custom-columns=.* --show-labels --no-headers"
    " --sort-by:x --field-selector:x --watch --context:x --ignore-not-found --label-columns:x"
)
_KUBE_DANGERS = (
    "--kubeconfig= loads settings that run programs; --server -s --token --as --certificate-authority"
    " --insecure-skip-tls-verify --raw --cluster --user= takes another way; --template= may load a file; -k"
    " --kustomize= takes a folder or an address; --cache-dir --profile-output= writes a file"
)

_CONTAINERS: Mapping[str, Form] = {
    "docker, podman": Form("-v --version", "text*", subs=True, ends=True, dangers=_ELSEWHERE),
    "docker ps, docker images, docker stats, docker version, docker info, docker top, docker port, docker history,"
    " docker diff, docker search, podman ps, podman images": Form(
        "-a -q -s -l -n:n -f:x --all --quiet --no-trunc --size --filter:x --format:x --latest --last:n --no-stream"
        " --digests --tree",
        "text*", dangers=_ELSEWHERE,
    ),
    "docker logs, podman logs": Form(
        "-ft -n:x --follow --tail:x --timestamps --since:x --until:x --details", "text",
    ),
    "docker inspect, podman inspect": Form("-s -f:x --format:x --size --type:x", "text*"),
    "docker exec, podman exec": Form(
        "-it -d -w:x -e:x --interactive --tty --workdir:x --env:x --detach", "text text*", ends=True, unsure=True,
        elsewhere=True, dangers=_ELSEWHERE + "; -u --user= becomes another user",
    ),
    "docker run, podman run": Form(
        "-itd -p:x -e:x -w:x --rm --interactive --tty --detach --name:x --publish:x --env:x --workdir:x --init"
        " --platform:x --pull:x --read-only --memory:x -m:x --cpus:x",
        "text text*", ends=True, unsure=True, dangers=_ELSEWHERE,
    ),
    "docker build, podman build": Form(
        "-q -t:x -f:r --tag:x --file:r --quiet --no-cache --target:x --build-arg:x --platform:x --progress:x --pull"
        " --load",
        "read", project=True, unsure=True,
        dangers=_ELSEWHERE + (
            "; -o --output --iidfile --metadata-file= writes a file; --secret --ssh= reads secrets"
        ),
    ),
    "docker start, docker stop, docker restart, docker kill, docker rm, docker rmi, docker pull, docker tag, docker"
    " wait, docker pause, docker unpause": Form(
        "-fvq -t:n -s:x --force --volumes --time:n --quiet --signal:x --platform:x", "text*", dangers=_ELSEWHERE,
    ),
    "docker compose, docker-compose": Form(
        _COMPOSE + " --version", "text*", subs=True, ends=True,
        dangers=_ELSEWHERE + "; --env-file --project-directory= loads settings",
    ),
    _compose("ps", "logs", "images", "top", "ls", "version", "port"): Form(
        "-aqft -n:x --all --quiet --services --follow --tail:x --timestamps --since:x --format:x --no-color"
        " --no-log-prefix --status:x",
        "text*", unsure=True,
    ),
    _compose("up", "down", "start", "stop", "restart", "build", "pull", "rm", "create"): Form(
        "-dvfs -t:n --detach --build --no-build --force-recreate --no-recreate --remove-orphans --volumes --wait"
        " --no-deps --quiet-pull --pull:x --no-cache --force --stop --timeout:n --rmi:x",
        "text*", project=True, unsure=True,
    ),
    _compose("exec", "run"): Form(
        "-Td -e:x -w:x --rm --no-deps --detach --env:x --workdir:x --index:n --no-TTY", "text text*", ends=True,
        project=True, unsure=True, elsewhere=True, dangers=_ELSEWHERE,
    ),
    "docker network, docker volume, docker image, docker container, docker system, docker context, docker buildx": Form(
        "", "text*", subs=True,
    ),
    "docker network ls, docker network inspect, docker volume ls, docker volume inspect, docker image ls, docker"
    " image inspect, docker container ls, docker container inspect, docker system df, docker context ls, docker"
    " buildx ls": Form("-aqv -f:x --all --quiet --filter:x --format:x --no-trunc --verbose", "text*"),
    "kubectl, oc": Form(
        "-n:x --namespace:x --context:x --version", "text*", subs=True, ends=True, dangers=_KUBE_DANGERS,
    ),
    "kubectl get, kubectl describe, kubectl top, kubectl explain, kubectl api-resources, kubectl version, kubectl"
    " cluster-info, kubectl events": Form(
        _KUBE + " --recursive --client --api-group:x --verbs:x --namespaced:x --containers", "text*",
        check=_cluster, dangers=_KUBE_DANGERS,
    ),
    "kubectl logs": Form(
        "-f -p -c:x -n:x -l:x --follow --previous --container:x --namespace:x --selector:x --tail:x --since:x"
        " --timestamps --all-containers --prefix --context:x --max-log-requests:n",
        "text*", dangers=_KUBE_DANGERS,
    ),
    "kubectl config": Form("", "text*", subs=True),
    "kubectl config current-context, kubectl config get-contexts": Form("-o:=name --no-headers", "text*"),
    "kubectl rollout": Form("", "text*", subs=True),
    "kubectl rollout status, kubectl rollout history, kubectl rollout restart, kubectl rollout undo": Form(
        "-n:x --namespace:x --timeout:x --watch:x --context:x", "text*", dangers=_KUBE_DANGERS,
    ),
    "kubectl apply, kubectl delete, kubectl create, kubectl diff": Form(
        "-R -n:x -f:r -l:x --namespace:x --filename:r --dry-run:x --context:x --recursive --wait:x --timeout:x"
        " --ignore-not-found --now --server-side --selector:x",
        "text*", unsure=True, dangers=_KUBE_DANGERS,
    ),
    "kubectl scale": Form("-n:x --namespace:x --replicas:n --context:x", "text*", dangers=_KUBE_DANGERS),
    "kubectl exec": Form(
        "-itq -n:x -c:x --namespace:x --container:x --stdin --tty --context:x", "text text*", unsure=True,
        elsewhere=True, dangers=_KUBE_DANGERS,
    ),
    "helm": Form("", "text*", subs=True),
    "helm list, helm status, helm history, helm version, helm lint": Form(
        "-Aaq -n:x -o:x --namespace:x --all-namespaces --output:x --all --short", "text*", unsure=True,
    ),
    "terraform, tofu": Form(
        "-version --version", "text*", subs=True, ends=True, whole=True, dangers="-chdir= takes another project",
    ),
    _terraform("plan", "validate", "show", "output", "init", "graph", "providers", "version", "refresh"): Form(
        "-no-color -json -input:x -lock:x -refresh:x -detailed-exitcode -compact-warnings -upgrade -backend:x"
        " -destroy -target:x -var:x -var-file:r -parallelism:n -reconfigure -raw",
        "text*", whole=True, project=True, unsure=True,
        dangers="-out -generate-config-out -state -state-out= writes a file; -plugin-dir -backend-config"
        " -from-module= loads settings",
    ),
    "terraform fmt, tofu fmt": Form("-check -diff -recursive -list:x -write:x -no-color", "write*", whole=True),
    "terraform apply, terraform destroy, tofu apply, tofu destroy": Form(
        "-no-color -input:x -auto-approve -target:x -var:x -var-file:r -lock:x -parallelism:n -compact-warnings",
        "read?", whole=True, project=True, unsure=True,
    ),
    "terraform state, terraform workspace": Form("", "text*", subs=True),
    "terraform state list, terraform state show, terraform workspace list, terraform workspace show": Form(
        "-no-color -id:x", "text*", whole=True, project=True,
    ),
    "psql": Form(
        "-lwAtqXV -h:x -p:n -U:x -d:x --list --host:x --port:n --username:x --dbname:x --version", "text? text?",
        check=_psql,
        dangers="-c --command= may run a program; -f --file= runs a script; -o --output -L --log-file= writes a"
        " file; -v --set --variable= changes how it runs",
    ),
    "sqlite3": Form(
        "-header -csv -json -column -line -list -table -markdown -box -batch -readonly -safe -noheader -version"
        " -separator:x -nullvalue:x",
        "read text*", whole=True, harmless=True, check=_sqlite,
        dangers="-cmd= may run a program; -init= runs a script; -A -archive= writes files; -unsafe-testing= opens"
        " more",
    ),
    "mysql, redis-cli, mongosh": Form("--version -V", ""),
    "aws, gcloud, az": Form("--version", "text*", subs=True),
}  # fmt: skip

ROWS: Mapping[str, Form] = {**_SYSTEM, **_NETWORK, **_CONTAINERS}
