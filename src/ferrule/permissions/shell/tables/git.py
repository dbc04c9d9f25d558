"""The rows of git: commands that read, and commands that change a repository.

That git runs what the repository's settings choose is not told by arguments: whoever runs it hardens it
(`git/environment.py`). Flags with which that would not hold are among the dangers.
"""

import re
from collections.abc import Callable, Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form

DANGERS = (
    "-c --config-env= changes settings; --exec-path= takes programs from another folder; -p --paginate= runs a"
    " pager; --git-dir --work-tree --namespace --super-prefix --bare --attr-source= takes another repository;"
    " --output= writes a file; --ext-diff --textconv= runs a program; -O --order-file= loads a file; --no-index="
    " compares any files; --open-files-in-pager= runs a program; --upload-pack --receive-pack --exec -x"
    " --strategy-option= runs a program; --show-signature= runs a program; --contents= reads another file;"
    " --template= loads a file; --separate-git-dir= writes elsewhere; --submodule= runs git in folders that the history"
    " names"
)
LOOK = (
    " -p -u -s -w -b -a -z -R -# -U:n -M? -C? -D -B? -S:x -G:x -l:n -I:x --patch --no-patch --unified:n --raw"
    " --minimal --patience --histogram --diff-algorithm:x --anchored:x --stat? --numstat --shortstat --dirstat?"
    " --summary --compact-summary --name-only --name-status --color? --no-color --color-words?"
    " --word-diff? --word-diff-regex:x --color-moved? --no-renames --rename-empty --check --full-index --binary"
    " --abbrev? --find-renames? --find-copies? --find-copies-harder --diff-filter:x --pickaxe-all --pickaxe-regex"
    " --relative? --no-relative --text --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change"
    " --ignore-all-space --ignore-blank-lines --inter-hunk-context:n --function-context -W --exit-code --quiet"
    " --no-ext-diff --no-textconv --ignore-submodules? --src-prefix:x --dst-prefix:x --no-prefix --default-prefix"
    " --line-prefix:x --cc --combined-all-paths --patch-with-stat --patch-with-raw --merge-base --break-rewrites?"
    " --irreversible-delete"
)
LOG = LOOK + (
    " -c -m -t -i -E -F -P -g -n:n -L:x --max-count:n --skip:n --since:x --after:x --until:x --before:x --author:x"
    " --committer:x --grep:x --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings"
    " --perl-regexp --merges --no-merges --min-parents:n --max-parents:n --first-parent --all --branches? --tags?"
    " --remotes? --glob:x --exclude:x --reflog --cherry-pick --cherry-mark --cherry --left-right --left-only"
    " --right-only --walk-reflogs --boundary --simplify-by-decoration --full-history --dense --sparse"
    " --simplify-merges --ancestry-path? --topo-order --date-order --author-date-order --reverse --no-walk?"
    " --pretty? --format:x --abbrev-commit --no-abbrev-commit --oneline --encoding:x --notes? --no-notes"
    " --relative-date --date:x --parents --children --graph --show-linear-break? --follow --decorate? --no-decorate"
    " --decorate-refs:x --decorate-refs-exclude:x --source --use-mailmap --no-mailmap --mailmap --full-diff"
    " --log-size --root --diff-merges:x --remove-empty --count --clear-decorations"
)
_LIST = (
    " --sort:x --format:x --contains? --no-contains? --merged? --no-merged? --points-at:x --column? --no-column"
    " --color? --no-color --ignore-case -i"
)


def _format(given: CommandArguments) -> ArgumentAnalysis:
    """A format that asks for signatures has git run the program that checks them."""
    texts = [value.text for value in given.values("--format", "--pretty", "--sort") if value.known]
    files = tuple(value.text.rpartition(":")[2] for value in given.values("-L") if ":" in value.text)
    if any(re.search(r"%G|signature", text) for text in texts):
        return ArgumentAnalysis("git runs a program to check signatures for a format")
    return ArgumentAnalysis(reads=files)


def _more(*flags: str) -> Callable[[CommandArguments], ArgumentAnalysis]:
    """With one of these flags it tells more than names: what is in the files, or hashes of it."""

    def check(given: CommandArguments) -> ArgumentAnalysis:
        return ArgumentAnalysis(deep=given.has(*flags))

    return check


def _branch(given: CommandArguments) -> ArgumentAnalysis:
    """It lists only where nothing is named, or where a flag says so."""
    lists = given.has("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
    plain = not given.operands or lists or given.has("--show-current")
    return _format(given)._replace(harmless=plain)


def _tag(given: CommandArguments) -> ArgumentAnalysis:
    lists = given.has("-l", "--list", "-n", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
    return _format(given)._replace(harmless=not given.operands or lists)


def _symbolic(given: CommandArguments) -> ArgumentAnalysis:
    return ArgumentAnalysis(harmless=len(given.operands) == 1)


def _reflog(given: CommandArguments) -> ArgumentAnalysis:
    first = given.operands[0].text if given.operands else ""
    changes = first in {"expire", "delete", "drop", "write"}
    return ArgumentAnalysis("git reflog changes what it keeps with such a word") if changes else _format(given)


_PLAIN = r"user\.(name|email)|core\.(bare|autocrlf|eol|ignorecase)|init\.defaultbranch|branch\.[\w/-]+\.(remote|merge)"
"""Settings that tell nothing."""


def _config(given: CommandArguments) -> ArgumentAnalysis:
    """Settings may hold passwords in the addresses of others; one named setting of these few does not."""
    names = [word.text for word in given.operands]
    reads = given.has("--get", "--get-all") or names[:1] == ["get"]
    if not names or not all(re.fullmatch(_PLAIN, name.lower()) for name in names if name != "get"):
        return ArgumentAnalysis("git config may change settings or tell passwords")
    return (
        ArgumentAnalysis()
        if reads or len(names) == 1
        else ArgumentAnalysis("git config changes settings with such words")
    )


_READS: Mapping[str, Form] = {
    "git": Form(
        "--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --no-lazy-fetch --version -v"
        " -C:d",
        "text*", harmless=True, ends=True, subs=True, dangers=DANGERS,
    ),
    "git version": Form("--build-options", harmless=True),
    "git status": Form(
        "-sbvz -u? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored?"
        " --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames"
        " --find-renames?",
        "rev*", harmless=True, names_only=True, check=_more("-v", "--verbose"), dangers=DANGERS,
    ),
    "git log, git whatchanged": Form(LOG, "rev*", harmless=True, deep=True, check=_format, dangers=DANGERS),
    "git show": Form(LOG, "rev*", harmless=True, deep=True, check=_format, dangers=DANGERS),
    "git diff": Form(
        LOOK + " --cached --staged -1 -2 -3 -0 --base --ours --theirs", "rev*", harmless=True, deep=True,
        dangers=DANGERS,
    ),
    "git diff-tree, git diff-index, git diff-files": Form(
        LOOK + " -r -t -m -c -v --root --no-commit-id --cached --stdin --pretty? --format:x", "rev*",
        harmless=True, deep=True, check=_format, dangers=DANGERS,
    ),
    "git blame, git annotate": Form(
        "-bcefhklnpstw -M? -C? -L:x --porcelain --line-porcelain --incremental --root --show-stats --show-name"
        " --show-number --show-email --date:x --abbrev:n --since:x --color-lines --color-by-age --reverse"
        " --first-parent --ignore-rev:x --no-progress",
        "rev*", harmless=True, dangers=DANGERS + "; --ignore-revs-file -S= loads a file",
    ),
    "git branch": Form(
        (
            "-avrlq -i !-d !-D !-m !-M !-c !-f !-u:x !-t --list --all --remotes --show-current --verbose --abbrev?"
            " --no-abbrev !--delete !--move !--copy !--force !--set-upstream-to:x !--unset-upstream !--track?"
            " !--no-track --quiet"
            + _LIST
        ),
        "rev*", harmless=True, check=_branch, dangers=DANGERS + "; --edit-description= runs an editor",
    ),
    "git tag": Form(
        (
            "-l -n? !-a !-m:x !-f !-d --list !--annotate !--message:x !--force !--delete"
            + _LIST
        ),
        "rev*", harmless=True, check=_tag,
        dangers=DANGERS + (
            "; -s --sign -u --local-user -v --verify= runs a program; -F --file= reads a file; -e --edit= runs an"
            " editor"
        ),
    ),
    "git remote": Form("-v --verbose", "text*", harmless=True, subs=True),
    "git remote get-url": Form("--all --push", "text", harmless=True),
    "git remote show": Form("-n", "text*"),
    "git remote add": Form("-t:x -m:x -f --tags --no-tags", "text url"),
    "git remote remove, git remote rm": Form("", "text"),
    "git remote rename": Form("", "text text"),
    "git remote set-url": Form("--push --add --delete", "text url url?"),
    "git remote prune": Form("-n --dry-run", "text*"),
    "git rev-parse": Form(
        "-q --show-toplevel --show-prefix --show-cdup --abbrev-ref? --short? --verify --quiet --git-dir"
        " --git-common-dir --absolute-git-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository"
        " --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --show-superproject-working-tree"
        " --is-shallow-repository --revs-only --no-revs --flags --no-flags --sq --not --git-path:x --path-format:x"
        " --show-object-format? --local-env-vars --since:x --until:x --default:x",
        "rev*", harmless=True, dangers="--parseopt --sq-quote= prints shell text",
    ),
    "git rev-list": Form(
        LOG + (
            " --objects --objects-edge --disk-usage? --timestamp --unpacked --no-object-names --in-commit-order"
            " --header --bisect --not"
        ),
        "rev*", harmless=True, check=_format, dangers=DANGERS,
    ),
    "git describe": Form(
        "--all --tags --contains --abbrev:n --candidates:n --exact-match --long --match:x --exclude:x --always"
        " --first-parent --dirty? --broken? --debug",
        "rev*", harmless=True,
    ),
    "git ls-files": Form(
        "-cdmorstuvzkif -x:x --cached --deleted --modified --others --ignored --stage --unmerged --killed"
        " --directory --no-empty-directory --eol --deduplicate --exclude:x --exclude-standard --error-unmatch"
        " --full-name --recurse-submodules --abbrev? --debug --format:x --sparse",
        "rev*", harmless=True, names_only=True, check=_more("-s", "--stage", "--format", "--debug"),
        dangers="-X --exclude-from --exclude-per-directory= loads a file; --with-tree= takes another tree",
    ),
    "git ls-tree": Form(
        "-drtlz --name-only --name-status --long --full-name --full-tree --abbrev? --object-only --format:x",
        "rev*", harmless=True,
    ),
    "git cat-file": Form(
        "-epst --batch-check? --batch-all-objects --unordered --buffer", "rev*", harmless=True,
        dangers="--textconv --filters= runs a program",
    ),
    "git shortlog": Form(
        "-nsec -w? --numbered --summary --email --no-merges --merges --since:x --until:x --all --group:x --author:x"
        " --format:x",
        "rev*", harmless=True, check=_format, dangers=DANGERS,
    ),
    "git reflog": Form(LOG, "rev*", harmless=True, check=_reflog, dangers=DANGERS),
    "git grep": Form(
        "-aivwnlLcopqEFPGhHzrWI -e:x -A:n -B:n -C:n -m:n -# --cached !--untracked !--no-exclude-standard"
        " --exclude-standard --text --ignore-case --word-regexp --invert-match --full-name --extended-regexp"
        " --fixed-strings --perl-regexp --line-number --column --files-with-matches --name-only"
        " --files-without-match --count --color? --no-color --break --heading --show-function --function-context"
        " --only-matching --all-match --quiet --and --or --not --max-depth:n --recursive --no-recursive --threads:n"
        " --max-count:n --context:n --after-context:n --before-context:n",
        "text rev*", harmless=True, deep=True, instead="-e",
        dangers=DANGERS + "; -f= loads a file; -O= runs a program",
    ),
    "git worktree": Form("", "text*", subs=True),
    "git worktree list": Form("-vz --porcelain --verbose", harmless=True),
    "git worktree add": Form(
        "-f -q -b:x -B:x --detach --force --quiet --no-checkout --lock", "write rev?", project=True,
    ),
    "git worktree remove": Form("-f --force", "write"),
    "git worktree prune": Form("-nv --dry-run --verbose"),
    "git count-objects": Form("-vH --verbose --human-readable", harmless=True),
    "git merge-base": Form("-a --all --octopus --is-ancestor --independent --fork-point", "rev*", harmless=True),
    "git name-rev": Form("--tags --refs:x --exclude:x --all --name-only --always", "rev*", harmless=True),
    "git for-each-ref": Form(
        (
            "-spi --count:n --shell --perl --python --tcl --include-root-refs --stdin"
            + _LIST
        ),
        "text*", harmless=True, check=_format,
    ),
    "git show-ref": Form(
        "-dqs --head --heads --tags --branches --dereference --hash? --verify --quiet --abbrev? --exists", "text*",
        harmless=True,
    ),
    "git show-branch": Form(
        "-ar --all --remotes --current --topo-order --list --no-name --sha1-name --more:n", "rev*", harmless=True,
    ),
    "git symbolic-ref": Form("-q --short --quiet --no-recurse", "text text?", harmless=True, check=_symbolic),
    "git check-ignore": Form(
        "-qvnz --quiet --verbose --non-matching --no-index", "read*", harmless=True, names_only=True,
    ),
    "git check-attr": Form("-az --all --cached", "text*", harmless=True),
    "git check-ref-format": Form("--branch --normalize --allow-onelevel", "text*", harmless=True),
    "git cherry": Form("-v --abbrev?", "rev*", harmless=True),
    "git range-diff": Form("--no-color --stat? --creation-factor:n --no-patch -s", "rev*", harmless=True, deep=True),
    "git config": Form(
        "-lz --get --get-all --null --global --local --system --includes --show-origin --show-scope --type:x --bool"
        " --int --default:x --name-only",
        "text*", harmless=True, check=_config, dangers=DANGERS,
    ),
    "git var": Form("", "text"),
    "git ls-remote": Form(
        "-tqh --heads --tags --refs --quiet --exit-code --get-url --sort:x --symref --branches", "url? text*",
        dangers=DANGERS,
    ),
    "git fsck, git verify-pack": Form("--full --strict --no-progress --unreachable --lost-found -v", "rev*"),
    "git help": Form("-a --all", "text*"),
}  # fmt: skip


_MERGES = (
    "-qvn -m:x -s:=ort|recursive|resolve|octopus|ours|subtree -X:=ours|theirs|patience|ignore-all-space --ff"
    " --no-ff --ff-only --commit --no-commit --squash --no-squash --stat --no-stat --log? --no-log --no-edit"
    " --quiet --verbose --abort --continue --quit --skip --no-verify --progress --no-progress"
    " --allow-unrelated-histories --autostash --no-autostash --signoff --no-signoff --no-gpg-sign"
)
_FETCHES = (
    " -apntfvq46 -j:n --all --append --depth:n --deepen:n --unshallow --dry-run --force --keep --prune --prune-tags"
    " --no-tags --tags --recurse-submodules? --no-recurse-submodules --jobs:n --quiet --verbose --progress --ipv4"
    " --ipv6 --multiple --set-upstream --atomic --shallow-since:x --refetch"
)
_EDITOR = DANGERS + ("; -e --edit -i --interactive= runs an editor; -S --gpg-sign= runs a program")


def _paths(given: CommandArguments) -> ArgumentAnalysis:
    """The words may name files, which are then replaced."""
    return ArgumentAnalysis(writes=tuple(word.text for word in given.operands if word.known and word.text != "-"))


def _change(flags: str, operands: str = "rev*", *, more: str = "", hooks: bool = True, paths: bool = False) -> Form:
    check = _paths if paths else None
    return Form(flags, operands, project=hooks, unsure=True, dangers=_EDITOR + more, check=check)


_CHANGES: Mapping[str, Form] = {
    "git add, git stage": _change(
        "-nvfuAN --dry-run --verbose --force --update --all --no-all --intent-to-add --refresh --ignore-errors"
        " --ignore-missing --renormalize --chmod:=[+-]x --sparse --ignore-removal --no-ignore-removal",
        "read*", hooks=False,
    ),
    "git commit": _change(
        "-aqvnsoz -m:x -u? --all --quiet --verbose --message:x --amend --no-edit --no-verify --verify --allow-empty"
        " --allow-empty-message --signoff --no-signoff --author:x --date:x --fixup:x --squash:x --only --include"
        " --dry-run --short --branch --porcelain --long --reset-author --no-post-rewrite --cleanup:x --trailer:x"
        " --untracked-files? --no-gpg-sign -C:x --reuse-message:x --null --status --no-status",
        more="; -F --file= reads a file; -t --template= loads a file; -c --reedit-message= runs an editor; -p"
        " --patch= asks for more; --pathspec-from-file= loads a file",
    ),
    "git checkout": _change(
        "-qfltm -b:x -B:x --quiet --force --ours --theirs --track? --no-track --detach --orphan:x --merge"
        " --progress --no-progress --guess --no-guess --overlay --no-overlay --ignore-skip-worktree-bits"
        " --conflict:x",
        paths=True, more="; -p --patch= asks for more; --pathspec-from-file= loads a file",
    ),
    "git switch": _change(
        "-qfdmt -c:x -C:x --create:x --force-create:x --detach --quiet --force --discard-changes --merge --track?"
        " --no-track --orphan:x --guess --no-guess --progress --no-progress --conflict:x",
    ),
    "git restore": _change(
        "-SWqm -s:x --source:x --staged --worktree --quiet --progress --no-progress --ours --theirs --merge"
        " --conflict:x --ignore-unmerged --overlay --no-overlay",
        paths=True, more="; -p --patch= asks for more; --pathspec-from-file= loads a file",
    ),
    "git merge": _change(_MERGES, more="; -F --file= reads a file"),
    "git rebase": _change(
        "-qvfn -m -X:=ours|theirs|patience|ignore-all-space --onto:x --abort --continue --skip --quit --keep-base"
        " --quiet --verbose --stat --no-stat --no-verify --verify --autostash --no-autostash --autosquash"
        " --no-autosquash --rebase-merges? --root --no-ff --force-rebase --fork-point --no-fork-point --update-refs"
        " --no-update-refs --signoff --reset-author-date --committer-date-is-author-date --empty:x --apply --merge"
        " --no-gpg-sign",
        more="; -x --exec= runs a program; -s --strategy= may run a program; --edit-todo= runs an editor",
    ),
    "git reset": _change(
        "-qN --soft --mixed --hard --merge --keep --quiet --no-refresh --intent-to-add", paths=True, hooks=False,
        more="; -p --patch= asks for more",
    ),
    "git revert": _change(
        "-ns -m:n --no-commit --no-edit --mainline:n --signoff --abort --continue --skip --quit --no-gpg-sign"
        " --reference",
    ),
    "git cherry-pick": _change(
        "-nsx -m:n --no-commit --mainline:n --signoff --ff --abort --continue --skip --quit --allow-empty"
        " --keep-redundant-commits --no-gpg-sign --empty:x -X:=ours|theirs|patience|ignore-all-space",
    ),
    "git stash": Form(
        "-uakq -m:x --include-untracked --all --keep-index --no-keep-index --staged --quiet --message:x", "text*",
        subs=True, unsure=True, dangers=_EDITOR,
    ),
    "git stash list": Form(LOG, "rev*", harmless=True, dangers=DANGERS),
    "git stash show": Form(
        LOG + " --include-untracked --only-untracked -u", "rev*", harmless=True, deep=True, dangers=DANGERS,
    ),
    "git stash push, git stash save": _change(
        "-uakqS -m:x --include-untracked --all --keep-index --no-keep-index --staged --quiet --message:x",
        hooks=False, more="; -p --patch= asks for more; --pathspec-from-file= loads a file",
    ),
    "git stash pop, git stash apply": _change("-q --index --quiet", hooks=False),
    "git stash drop, git stash clear": _change("-q --quiet", hooks=False),
    "git stash branch": _change(""),
    "git clone": Form(
        "-qvnls46 -b:x -o:x -j:n --quiet --verbose --progress --depth:n --branch:x --single-branch"
        " --no-single-branch --no-tags --no-checkout --bare --mirror --origin:x --jobs:n --recurse-submodules?"
        " --shallow-submodules --filter:x --sparse --shallow-since:x --local --no-local --no-hardlinks",
        "url write?", unsure=True, project=True,
        dangers=DANGERS + (
            "; -u --upload-pack= runs a program; --config= changes settings; --reference --reference-if-able"
            " --bundle-uri= takes another repository"
        ),
    ),
    "git init": Form("-q -b:x --quiet --initial-branch:x --object-format:x", "write?", unsure=True, dangers=DANGERS),
    "git fetch": Form(_FETCHES, "url? text*", unsure=True, project=True, dangers=DANGERS),
    "git pull": Form(
        _FETCHES + (
            " -r? --rebase? --no-rebase --ff --no-ff --ff-only --commit --no-commit --squash --stat --no-stat"
            " --no-edit --autostash --no-autostash --allow-unrelated-histories --no-verify --signoff"
            " -X:=ours|theirs|patience|ignore-all-space"
        ),
        "url? text*", unsure=True, project=True, dangers=_EDITOR,
    ),
    "git push": Form(
        "-uqvnfd46 --set-upstream --quiet --verbose --dry-run --force --force-with-lease? --no-force-with-lease"
        " --force-if-includes --delete --all --branches --tags --follow-tags --prune --mirror --porcelain"
        " --progress --no-progress --atomic --no-atomic --thin --no-thin --no-verify --verify --ipv4 --ipv6 -o:x"
        " --push-option:x",
        "url? text*", unsure=True, project=True,
        dangers=DANGERS + "; --repo= takes another repository; --signed= runs a program",
    ),
    "git rm": _change(
        "-frnq --force --recursive --dry-run --cached --quiet --ignore-unmatch", "write*", hooks=False,
        more="; --pathspec-from-file= loads a file",
    ),
    "git mv": _change("-fknv --force --dry-run --verbose", "write*", hooks=False),
    "git clean": _change("-ndfqxX -e:x --dry-run --force --quiet --exclude:x", "write*", hooks=False),
    "git apply": _change(
        "-Rv3 -p:n -C:n --check --stat --numstat --summary --reverse --index --cached --3way --verbose"
        " --whitespace:x --recount --reject",
        "read*", hooks=False, more="; --unsafe-paths --directory= writes elsewhere",
    ),
    "git am": _change(
        "-3qs --3way --quiet --signoff --abort --continue --skip --quit --keep-cr --no-gpg-sign", "read*",
    ),
    "git submodule": Form("-q --quiet", "text*", subs=True, harmless=False, unsure=True),
    "git submodule status": Form("--cached --recursive", "rev*", unsure=True),
    "git submodule update": Form(
        "-fN -j:n --init --recursive --remote --force --no-fetch --depth:n --jobs:n --checkout", "rev*",
        project=True, unsure=True,
    ),
    "git submodule init, git submodule sync": Form("--recursive", "rev*", unsure=True),
    "git bisect": Form("", "text*", subs=True, unsure=True),
    "git bisect start, git bisect good, git bisect bad, git bisect skip": _change("", "rev*"),
    "git bisect reset, git bisect log": _change("", "rev*"),
    "git notes": Form("", "text*", subs=True),
    "git notes list, git notes show": Form("", "rev*", harmless=True),
    "git gc, git prune": Form("-qn --quiet --auto --dry-run --prune? --aggressive", "", unsure=True),
    "git archive": Form(
        "-lv --list --format:=tar|zip|tar.gz|tgz --prefix:x --verbose", "rev*",
        dangers=DANGERS + "; -o= writes a file; --remote= takes another repository",
    ),
    "git format-patch": Form(
        "--stdout -n:n -# --no-stat --signoff", "rev*", unsure=True,
        dangers=_EDITOR + "; -o --output-directory= writes elsewhere",
    ),
}  # fmt: skip

ROWS: Mapping[str, Form] = {**_READS, **_CHANGES}
