"""The conversation at a terminal: what is shown, what is typed, and what is asked."""
