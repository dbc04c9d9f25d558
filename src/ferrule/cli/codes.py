"""Define the exit codes of the command line, and a default sentence for each failure."""

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


WHY = {
    "undone": "Nothing was done: the model said what it would do, or wrote a call that could not be read.",
    "length": "The answer was cut off: it was too long. Say `continue` with --continue.",
    "refused": "The model refused to answer.",
    "turns": "Stopped: the limit of turns was met. Go on with --continue.",
    "tokens": "Stopped: the limit of tokens was met. Go on with --continue.",
    "cost": "Stopped: the limit of cost was met. Go on with --continue.",
    "time": "Stopped: the limit of time was met. Go on with --continue.",
    "loop": "Stopped: the model made the same call again and again.",
    "stopped": "A hook has ended the work.",
    "hook": "A hook did not let the task through.",
    "interrupted": "Interrupted. Go on with --continue.",
}
UNFORMED = "The model gave no answer in the form that was asked for."
