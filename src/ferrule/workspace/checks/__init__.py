"""The checks of a project: which ones its own files speak of, what their output says, and reviews."""
