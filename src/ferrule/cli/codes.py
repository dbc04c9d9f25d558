"""The exit codes of the command line."""

DONE = 0
FAILED = 1
"""A tool failed, or a check of `doctor` did."""
USAGE = 2
REFUSED = 3
"""The user or the policy said no."""
LIMIT = 4
"""Of turns, tokens, cost or time; or an answer that was too long."""
BUG = 70
"""What BSD calls an internal software error."""
INTERRUPTED = 130
"""As shells count: 128 and the number of the signal."""
