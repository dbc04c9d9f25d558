"""What is said of each end that is no success, where nothing more is known about it."""

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
