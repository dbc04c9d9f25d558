"""Rows of the programs that tell about the machine and its processes, and of shells."""

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

ROWS: Mapping[str, Form] = {
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
