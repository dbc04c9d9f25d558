"""Somebody to ask who says what the test has written down, and remembers what was asked."""

from ferrule.permissions import NO, YES, Answer, Question

ALWAYS = Answer(allow=True, always=True)

__all__ = ["ALWAYS", "NO", "YES", "Scripted"]


class Scripted:
    """Answers in the order of the script. A question beyond its end is a fault of the test's subject."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = answers
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        assert len(self.questions) <= len(self._answers), f"Nobody expected to be asked: {question.summary}"
        return self._answers[len(self.questions) - 1]
