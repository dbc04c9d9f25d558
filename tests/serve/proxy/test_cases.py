"""The table of `bench/proxy`: every case, with every client API in front of every upstream API that it is about."""

import contextlib
import warnings
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from bench.proxy.cases import table
from bench.proxy.stage import Case, Ours, ours, play
from bench.proxy.upstream import Upstream

_TABLE = table()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage() -> AsyncIterator[tuple[Upstream, Ours]]:
    """One proxy for all cases of a worker."""
    async with contextlib.AsyncExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the makers' packages warn of is not ours to mend
            upstream, target = await stack.enter_async_context(ours())
            await target.clients("plain")
        yield upstream, target


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", _TABLE, ids=[f"{case.group}: {case.name}" for case in _TABLE])
async def test_every_client_reads_what_was_said_and_every_host_what_was_asked(
    case: Case, stage: tuple[Upstream, Ours]
) -> None:
    upstream, target = stage
    failed = {}
    for combination in case.combinations():
        try:
            await play(case, combination, upstream, target)
        except Exception as error:  # noqa: BLE001 - whatever a package raises is a failure of what it read
            failed[combination] = f"{type(error).__name__}: {str(error)[:500]}"

    assert failed == {}


def test_the_table_is_as_large_as_it_is_said_to_be() -> None:
    names = [(case.group, case.name) for case in _TABLE]

    assert len(set(names)) == len(names) >= 80
    assert all(case.combinations() for case in _TABLE)
