"""The table: every case, by its subject."""

from bench.proxy.cases import answers, bodies, failures, odd_streams, own_tools, pages, turns
from bench.proxy.stage import Case


def table() -> list[Case]:
    """All cases, in the order of their subjects."""
    subjects = (answers, odd_streams, bodies, turns, own_tools, failures, pages)
    return [case for subject in subjects for case in subject.TABLE.cases]
