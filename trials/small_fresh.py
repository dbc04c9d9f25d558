"""Twenty small bugs that nothing was tuned on, mended by the same small model as those of `small`."""

from functools import partial

from trials.small import SETS, rows
from trials.trial import Trial

TRIAL = Trial(
    "small_fresh",
    "Twenty more bugs of the same kind, for the same model. They were fixed before any model was asked about them, and "
    "nothing was tuned on them.",
    partial(rows, file=SETS[1]),
)
