"""`ferrule completion`: the script with which a shell completes commands, options and their values."""

import click
from click.shell_completion import get_completion_class

from ferrule.cli.main import cli
from ferrule.cli.show import DONE

_BASH_COLONS = r"""
# Readline ends a word at a colon; a model is named HOST:MODEL.
_ferrule_whole() {
    local -a whole=()
    local at word is_open= cword=0
    for at in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[at]}
        if [[ ${#whole[@]} -gt 0 && ( $word == :* || ( $is_open && $word != -* ) ) ]]; then
            whole[-1]+=$word
        else
            whole+=("$word")
        fi
        [[ $word == *: ]] && is_open=1 || is_open=
        ((at <= COMP_CWORD)) && cword=$((${#whole[@]} - 1))
    done
    local -a COMP_WORDS=("${whole[@]}")
    local COMP_CWORD=$cword
    local begun=${whole[cword]}
    _ferrule_completion "$1"
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]] && compopt -o nospace
    [[ $begun == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${begun%"${begun##*:}"}"}")
    return 0
}
complete -o nosort -F _ferrule_whole ferrule
"""
_ZSH_ADDS = "        compadd -U -V unsorted -a completions\n"
_ZSH_ADDS_APART = """\
        local -a hosts=(${(M)completions:#*:})
        completions=(${completions:#*:})
        (( ! $#hosts )) || compadd -U -V unsorted -S '' -a hosts
        (( ! $#completions )) || compadd -U -V unsorted -a completions
"""
"""Behind a host and its colon comes a model, and no blank."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the script that completes `ferrule` in a shell: commands, options, models, tools, threads and hosts.

    \b
    Examples:
      eval "$(ferrule completion bash)"      # in ~/.bashrc
      eval "$(ferrule completion zsh)"       # in ~/.zshrc
      ferrule completion fish > ~/.config/fish/completions/ferrule.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(cli, {}, "ferrule", "_FERRULE_COMPLETE")
    script = made.source_template % made.source_vars()
    click.echo(script.replace(_ZSH_ADDS, _ZSH_ADDS_APART) + (_BASH_COLONS if shell == "bash" else ""))
    return DONE
