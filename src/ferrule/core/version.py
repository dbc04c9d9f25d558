"""Which version of Ferrule this is."""

__version__ = "0.1.0"
