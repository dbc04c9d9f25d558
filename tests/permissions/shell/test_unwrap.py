"""Wrappers taken off a command, and the commands that a command runs by itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .bash import every, taken


@pytest.mark.parametrize(
    ("command", "stripped"),
    [
        ("timeout 5 rm x", "rm x"),
        ("timeout -k 5 -s KILL --foreground 1.5m rm x", "rm x"),
        ("timeout --signal=TERM 5 rm x", "rm x"),
        ("timeout --unknown 5 rm x", None),
        ("timeout $x rm x", None),
        ("timeout rm x", None),
        ("time rm x", "rm x"),
        ("time -p rm x", "rm x"),
        ("time -o f rm x", None),
        ("nice rm x", "rm x"),
        ("nice -n 5 rm x", "rm x"),
        ("nice -n5 rm x", "rm x"),
        ("nice -10 rm x", "rm x"),
        ("nohup rm x", "rm x"),
        ("stdbuf -oL -e 0 rm x", "rm x"),
        ("stdbuf --output=L rm x", "rm x"),
        ("command rm x", "rm x"),
        ("command -v rm", None),
        ("command -V rm", None),
        ("command -p rm x", None),
        ("builtin echo x", "echo x"),
        ("noglob rm x", "rm x"),
        ("xargs rm", "rm …"),
        ("xargs -n 1 rm", "rm …"),
        ("xargs -0 -P4 rm", "rm …"),
        ("xargs -I {} rm x {}", "rm x …"),
        ("xargs -a list rm", None),
        ("xargs -I% rm %", None),
        ("xargs", None),
        ("timeout 5 nice nohup time -p command stdbuf -o0 rm x", "rm x"),
        ("nice timeout 5 xargs rm x", "rm x …"),
        ("env rm x", None),
        ("'timeout' 5 \"rm\" x", "rm x"),
        ("timeout 5 $x", None),
        ("timeout 5 -x rm", None),
    ],
)
def test_what_only_changes_how_it_runs_is_taken_off(command: str, stripped: str | None) -> None:
    simple = taken(command).commands[0]

    assert " ".join(word.text for word in simple.stripped) == (
        stripped if stripped is not None else " ".join(word.text for word in simple.words)
    )


def test_what_xargs_adds_is_not_known() -> None:
    *_, last = taken("xargs grep x").commands[0].stripped

    assert not last.known
    assert not last.single
    assert last.start == ""


INSIDE = [
    ("env rm x", ["rm x"]),
    ("env -i A=b rm x", ["rm x"]),
    ("env -u C A=b rm x", ["rm x"]),
    ("env -S 'rm x'", ["rm x"]),
    ("sudo -u bob rm x", ["rm x"]),
    ("sudo -E A=b rm x", ["rm x"]),
    ("doas rm x", ["rm x"]),
    ("/usr/bin/sudo rm x", ["rm x"]),
    ("xargs -n 1 -I {} rm {}", ["rm {}"]),
    ("sh -c 'rm x'", ["rm x"]),
    ("bash -ec 'a; rm x'", ["a", "rm x"]),
    ("bash -c -e 'rm x'", ["rm x"]),
    ("bash --norc -o pipefail -c 'rm x' name", ["rm x"]),
    ("bash -c \"bash -c 'rm x'\"", ["bash -c rm x", "rm x"]),
    ("bash <<< 'rm x'", ["rm x"]),
    ("sh <<'E'\nrm x\nE", ["rm x"]),
    ("bash -s <<'E'\nrm x\nE", ["rm x"]),
    ("eval rm x", ["rm x"]),
    ("eval 'rm x; a'", ["rm x", "a"]),
    ("trap 'rm x' EXIT", ["rm x"]),
    ("find . -exec rm {} \\;", ["rm {}"]),
    ("find . -name a -execdir a {} + -ok rm {} ';'", ["a {}", "rm {}"]),
    ("watch -n 1 rm x", None),
    ("watch rm x", ["rm x"]),
    ("setsid rm x", ["rm x"]),
    ("ionice -c 3 rm x", ["rm x"]),
    ("flock f rm x", ["rm x"]),
    ("flock f -c 'rm x'", None),
    ("parallel rm ::: a b", ["rm"]),
    ("npx -p y rm x", ["rm x"]),
    ("pnpm dlx rm x", ["rm x"]),
    ("yarn dlx rm x", ["rm x"]),
    ("npm exec -- rm x", ["rm x"]),
    ("uvx --from a rm x", ["rm x"]),
    ("uv run rm x", ["rm x"]),
    ("docker exec -it -u root box rm x", ["rm x"]),
    ("kubectl exec -n a box -- rm x", ["rm x"]),
    ("strace -f -o f rm x", ["rm x"]),
    ("busybox rm x", ["rm x"]),
    ("chroot /x rm x", ["rm x"]),
    ("unshare -r rm x", ["rm x"]),
    ("nsenter -t 1 -m rm x", ["rm x"]),
    ("script -c 'rm x'", ["rm x"]),
    ("exec rm x", ["rm x"]),
    ("coproc rm x", ["rm x"]),
    ("fd -e py -x rm x", ["rm x"]),
    ("rg --pre rm a", ["rm"]),
    ("rg --pre=rm a", ["rm"]),
    ("tar xf a --to-command='rm x'", ["rm x"]),
    ("tar cf a --checkpoint-action=exec='rm x' b", ["rm x"]),
    ("git rebase -x 'rm x' a", ["rm x"]),
    ("git rebase --exec='rm x' a", ["rm x"]),
    ("git bisect run rm x", ["rm x"]),
    ("git submodule foreach rm x", ["rm x"]),
    ("su -c 'rm x' bob", ["rm x"]),
    ("timeout --unknown 5 rm x", ["rm x"]),
    ("timeout 5 rm x", ["rm x"]),
    ("sudo env nice rm x", ["env nice rm x", "nice rm x", "rm x"]),
    ("command -v rm", []),
    ("ssh host rm x", []),
    ("git commit -x -mfix.", []),
    ("python -c 'rm x'", []),
]


@pytest.mark.parametrize(("command", "inside"), INSIDE)
def test_the_commands_inside_of_a_command_are_found(command: str, inside: list[str] | None) -> None:
    line = taken(command)
    found = [" ".join(word.text for word in one.words) for one in line.commands[0].inside]

    assert found == inside if inside is not None else "rm x" in found


def test_doubts_about_a_script_are_doubts_about_the_line() -> None:
    assert taken("bash -c 'PATH=a; ls'").doubts
    assert taken("bash -c 'ls \"'").doubts
    assert not taken("bash -c 'ls'").doubts


def test_the_folder_is_followed_into_scripts_and_lost_where_it_changes() -> None:
    script, other = taken("bash -c 'a'; chroot / a").commands

    assert [one.cwd for one in script.inside] == ["/workspace"]
    assert [one.cwd for one in other.inside] == [None]


def test_the_variables_of_env_are_its_commands() -> None:
    inner = taken("env A=1 B=$x rm").commands[0].inside[0]

    assert [(name, value.text, value.known) for name, value in inner.assigns] == [("A", "1", True), ("B", "$x", False)]


WRAPPED = st.lists(
    st.sampled_from(["timeout 5", "nice", "nohup", "env", "sudo", "xargs", "setsid", "time", "env A=b", "nice -n 3"]),
    max_size=14,
)


@settings(deadline=None)
@given(WRAPPED)
def test_a_command_behind_wrappers_is_found_or_there_is_a_doubt(wrappers: list[str]) -> None:
    line = taken(" ".join([*wrappers, "rm x"]))

    assert line.doubts or any(one.split()[:2] == ["rm", "x"] for one in every(line))
