"""Rows of git's sub-commands that change a repository: never without a rule, and most of them run hooks."""

from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form
from ferrule.permissions.shell.tables.git import DANGERS, LOG

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


ROWS: Mapping[str, Form] = {
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
