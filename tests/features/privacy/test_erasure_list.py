"""Erasures in the list of work, and the status of one, through the whole component (XEP-0133)."""

import asyncio
from functools import partial

import pytest

from smartfeeds.core.person import Person
from smartfeeds.delivery.sweeps import Sweep
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing import SWEEP, begin_erasure
from smartfeeds.features.privacy.erasures import ErasureSettings
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import ReadTx, WriteTx
from support.component import ALICE, BOB, NS, Component, Starter, bare
from support.dialog import ADMIN as ADMIN_NS
from support.dialog import Dialog, condition, notes, table

ADMIN = "root@example.org/desk"


async def wait_for_ever(_sweep: Sweep, _service: FeedService) -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def service(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with two admins, and with a node of Alice. Only the tests do the work that goes on."""
    monkeypatch.setattr("smartfeeds.delivery.changes.LOOK_S", 3_600)
    monkeypatch.setattr(Sweep, "run", wait_for_ever)
    component = await start(pubsub={"admins": [bare(ADMIN), "ann@example.org"]})
    await component.create(ALICE, "tea", title="Tea & cakes")
    return component


async def run(service: Component, user: str, command: str, *steps: dict[str, str]) -> list[str | None]:
    """The notes of a command with these answers to its forms."""
    dialog = Dialog(service, user, command)
    answer = await dialog.begin()
    for values in steps:
        answer = await dialog.go(**values)
    return notes(answer)


async def work_of(service: Component, user: str) -> list[dict[str, str]]:
    answer = await Dialog(service, user, "list-work").begin()
    return [] if answer.find(".//x:item", NS) is None else table(answer)


def _retire(tx: WriteTx, _context: Context, name: str) -> None:
    node = tx.node(name)
    assert node is not None
    tx.retire_node(node.node_no)


async def test_erasure_is_listed_and_its_status_shown(service: Component) -> None:
    """[OPS-070] By its number, also after the end, when the store does not have the JID any more."""
    await service.create(BOB, "milk")
    await service.affiliate(BOB, "milk", ALICE, "publisher")
    await service.publish(ALICE, "milk", "one")
    ask = {"accountjids": bare(ALICE), "nodes": "delete"}

    begun = await run(service, ADMIN, f"{ADMIN_NS}#delete-user", ask, {"confirm": bare(ALICE)})
    (work,) = await work_of(service, ADMIN)
    await SWEEP.sweep(service.app.service)
    status = await run(service, ADMIN, "erasure-status", {"jid": bare(ALICE)})
    ended = [row for row in await work_of(service, ADMIN) if row["number"] == work["number"]]

    assert begun == [f"The data of {bare(ALICE)} is being erased. List work in progress shows it as {work['number']}."]
    assert (work["work"], work["subject"], work["state"]) == ("erasure", bare(ALICE), "nodes")
    assert str(status[0]).startswith(f"The erasure of {bare(ALICE)} is in the phase ")
    assert "items-erased 1" in str(status[0])
    assert [row["state"] for row in ended] != ["nodes"]
    assert await work_of(service, BOB) == []
    assert condition(await Dialog(service, BOB, "erasure-status").begin()) == "forbidden"
    dialog = Dialog(service, ADMIN, "erasure-status")
    await dialog.begin()
    assert condition(await dialog.go(jid=bare(BOB))) == "item-not-found"


async def test_status_names_followers_that_wait(service: Component) -> None:
    """[OPS-070] The subscribers of a feed are a follower: the push has its mark."""
    await service.create(BOB, "milk")
    await service.affiliate(BOB, "milk", ALICE, "publisher")
    await service.subscribe(BOB, "milk")
    await service.publish(ALICE, "milk", "one")
    settings = ErasureSettings("delete")
    await service.app.service.write(lambda tx, context: begin_erasure(tx, context, Person(bare(ALICE)), settings))
    await SWEEP.sweep(service.app.service)
    dialog = Dialog(service, ADMIN, "erasure-status")
    await dialog.begin()

    rows = table(await dialog.go(jid=bare(ALICE)))

    assert ("milk", "push") in {(row["node"], row["follower"]) for row in rows}


async def test_list_of_work_has_a_bound(service: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-070] It fits into one stanza. Work that waits comes before the erasures."""
    monkeypatch.setattr("smartfeeds.service.work.WORK_SHOWN", 2)
    monkeypatch.setattr("smartfeeds.xmpp.resources.PAGE_ROWS", 2)
    settings = ErasureSettings()
    await service.app.service.write(lambda tx, context: begin_erasure(tx, context, Person("x@example.org"), settings))
    for name in ("one", "two", "three"):
        await service.create(BOB, name)
        await service.app.service.write(partial(_retire, name=name))

    assert [row["subject"] for row in await work_of(service, ADMIN)] == ["one", "two"]


async def test_newest_erasures_come_first(service: Component) -> None:
    for name in ("x@example.org", "y@example.org"):
        service.clock.advance(1)
        settings = ErasureSettings()
        await service.app.service.write(
            lambda tx, context, name=name, settings=settings: begin_erasure(tx, context, Person(name), settings)
        )

    def read(tx: ReadTx) -> list[str]:
        return [job.jid for job in privacy_rows.newest_erasures(tx, 1)]

    assert await service.app.service.store.read(read) == ["y@example.org"]
