"""The nouns that everything else speaks in, without any I/O; and the version."""

__version__ = "0.1.0"
