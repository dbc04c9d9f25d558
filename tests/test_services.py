"""The engine's services: one of each, made when it is first asked for, by whichever thread asks."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ferrule.checkpoints.undo import Undo
from ferrule.files.guidance import Guidance
from ferrule.files.jail import Jail
from ferrule.files.journal import Journal
from ferrule.files.transaction import Writer
from ferrule.output.store import Store
from ferrule.services import Services
from ferrule.settings import Settings

ASKED = (Writer, Undo, Journal, Store, Guidance)


@pytest.fixture
async def services(tmp_path):
    (tmp_path / "workspace").mkdir()
    services = Services(Jail(str(tmp_path / "workspace")), Settings(), str(tmp_path / "state"))
    yield services
    await services.close()


async def test_a_service_is_the_same_object_however_it_is_asked_for(services):
    assert services.journal() is services[Journal]
    assert services.store() is services[Store]
    assert services.undo() is services[Undo]


async def test_threads_that_ask_at_once_get_one_object(services):
    together = threading.Barrier(8, timeout=30)

    def ask(number):
        together.wait()
        return [services[kind] for kind in ASKED[number % len(ASKED) :] + ASKED[: number % len(ASKED)]]

    with ThreadPoolExecutor(8) as pool:
        found = {made for asked in pool.map(ask, range(8), timeout=30) for made in asked}

    assert found == {services[kind] for kind in ASKED}


async def test_the_undo_and_the_writer_share_the_journal(services):
    assert services[Undo]._journal is services[Writer]._journal is services.journal()
    assert services[Undo]._writer is services[Writer]


async def test_a_type_that_the_engine_does_not_have_is_refused_by_name(services):
    class Kettle:
        pass

    with pytest.raises(TypeError, match=r"The engine has no .*Kettle"):
        services[Kettle]


async def test_a_name_alone_does_not_make_a_type_ours(services):
    with pytest.raises(TypeError, match=r"The engine has no tests.test_services.*Writer"):
        services[type("Writer", (), {"__module__": __name__})]


async def test_what_cannot_be_closed_keeps_nothing_else_open(tmp_path):
    class Web:
        closed = False

        async def close(self):
            self.closed = True

    class LanguageServers:
        async def close(self):
            raise OSError("It does not go.")

    (tmp_path / "workspace").mkdir()
    jail = Jail(str(tmp_path / "workspace"))
    services, web = Services(jail, Settings(), str(tmp_path / "state")), Web()
    services.put(Web, web)
    services.put(LanguageServers, LanguageServers())

    with pytest.raises(OSError, match="It does not go"):
        await services.close()
    assert web.closed
    assert jail.roots[0]._folder is None
