"""`ferrule completion`: the script with which a shell completes commands, options and their values."""

import click

from ferrule.cli.codes import DONE


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
    from click.shell_completion import get_completion_class  # for whoever completes

    from ferrule.cli.main import cli  # which loads this module

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(cli, {}, "ferrule", "_FERRULE_COMPLETE")
    click.echo(made.source_template % made.source_vars())
    return DONE
