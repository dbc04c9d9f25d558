"""Whoever wants to hear what a command says while it runs, and how often that is told."""

from collections.abc import Callable

SAY_SECONDS = 0.1
_SAY_CHARS = 8192


class Listener:
    """Collects the newest text and passes it on with pauses in between."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say_at = 0.0
        """Not before this moment of the loop's clock is it told more."""
        self.waiting = False
        """Is there something to be told?"""
        self.recent = ""
        """The end of all that is certain, told or not."""
        self._say = say
        self._unsaid = self._told = ""

    def hear(self, certain: str) -> None:
        """Something has come: this, or a change of the line that is being written."""
        self.recent = (self.recent + certain[-_SAY_CHARS:])[-_SAY_CHARS:]
        self._unsaid = (self._unsaid + certain[-_SAY_CHARS:])[-_SAY_CHARS:]
        self.waiting = True

    def speak(self, line: str, now: float) -> None:
        """Tell it what has come since, with the line that is being written as it looks now."""
        line = line[-_SAY_CHARS:]
        text = (self._unsaid + line).removeprefix(self._told)[-_SAY_CHARS:]
        self._unsaid, self._told, self.waiting = "", line, False
        if text:
            self.say_at = now + SAY_SECONDS
            self._say(text)
