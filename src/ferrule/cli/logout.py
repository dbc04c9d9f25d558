"""`ferrule logout`: beside `ferrule login`, under a name of its own."""

from ferrule.cli.login import logout as command

__all__ = ["command"]
