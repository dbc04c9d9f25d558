"""Later."""
from trials.trial import Trial
TRIAL = Trial("environments", "", lambda place: iter(()))
