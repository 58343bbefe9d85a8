"""An erasure reaches the copies at other services: over XMPP, over HTTP, and as a FeedSync document (OPS-046)."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from features.mirrors.test_mirror_http import FILE, SMART, Web, again
from smartfeeds.core.person import Person
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing import Confirmation, begin_erasure, continue_erasure, erasure_status
from smartfeeds.features.privacy.erasures import Erasure, ErasurePhase, ErasureSettings
from support.mesh import NODE, OWNER, Net, Site
from support.sqlite_memory import SqliteMemoryStore
from support.world import BOB

ZOE = "zoe@people.example.net"
PERSON = Person(ZOE)


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    made = Net()
    made.fetch = Web(made)
    yield made
    await made.close()


async def site(net: Net, letter: str) -> Site:
    """A service on SQLite."""
    return await net.add(letter, SqliteMemoryStore())


async def write(a: Site, item_id: str, *actors: str) -> None:
    """An item and its edits by people of this service."""
    for number, actor in enumerate(actors):
        payload = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{number} of {actor}</title></entry>"
        await a.service.handle(a.publish_request(item_id, payload, actor))
        a.clock.move(1)


async def source(net: Net, *publishers: str) -> Site:
    """A service with an item of the person, and one that Bob has written last."""
    a = await site(net, "a")
    await a.create(ZOE, BOB, *publishers)
    await write(a, "mine", ZOE, OWNER, ZOE)
    await write(a, "bobs", BOB, ZOE, BOB)
    return a


async def erase(a: Site, *, now: bool) -> Erasure:
    """Begins the erasure, or continues it as far as it goes."""
    if await a.service.read(lambda tx, _: privacy_rows.erasure(tx, PERSON)) is None:
        await a.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, ErasureSettings(now=now)))
    job = await a.service.write(partial(continue_erasure, jid=ZOE))
    assert job is not None
    return job


async def confirmations(a: Site) -> tuple[Confirmation, ...]:
    """What `gdpr status` shows of the followers, without the XMPP subscribers."""
    await a.dispatcher.save_marks()
    status = await a.service.read(partial(erasure_status, person=PERSON))
    assert status is not None
    return tuple(each for each in status.confirmations if each.consumer != "push")


async def named(b: Site) -> list[str]:
    """The items that name the person in their content or their history."""
    return [item.id for item in await b.items() if PERSON.is_in(item.payload) or PERSON.is_in(item.sync or b"")]


async def check_erased(b: Site) -> None:
    """The item of the person is a deletion without a name, and that of Bob is there."""
    assert await named(b) == []
    deleted = {item.id: item.deleted for item in await b.items()}
    assert deleted == {"mine": True, "bobs": False}
    assert await b.titles() == {"bobs": f"2 of {BOB}"}


async def test_mirror_over_xmpp_confirms_when_its_peer_is_back(net: Net) -> None:
    """[OPS-046] [OPS-027] [OPS-021] The peer is away during the erasure; an edit is made there meanwhile."""
    b = await site(net, "b")
    a = await source(net, b.domain)
    await b.create(a.domain, BOB)
    mirror = await a.mirror(b, "both")
    await net.settle_all()
    assert set(await named(b)) == {"mine", "bobs"}
    net.part(a, b)

    job = await erase(a, now=False)
    await write(b, "mine", BOB)
    await net.settle_all()

    assert job.phase is ErasurePhase.DONE
    assert [(each.consumer, each.confirmed) for each in await confirmations(a)] == [(f"mirror:{mirror.address}", False)]
    net.heal()
    await net.settle_all()
    assert [each.confirmed for each in await confirmations(a)] == [True]
    await check_erased(b)
    assert await b.shown() == await a.shown()


async def test_ids_wait_for_the_peer(net: Net) -> None:
    """[OPS-022] [OPS-046] An id that names the person is replaced after the peer has received its deletion."""
    b = await site(net, "b")
    a = await source(net, b.domain)
    await write(a, f"{ZOE}-1", ZOE)
    await b.create(a.domain)
    await a.mirror(b, "out")
    await net.settle_all()
    net.part(a, b)

    assert (await erase(a, now=False)).phase is ErasurePhase.FOLLOWERS
    await net.settle_all()
    assert (await erase(a, now=False)).phase is ErasurePhase.FOLLOWERS
    net.heal()
    await net.settle_all()
    await a.dispatcher.save_marks()

    assert (await erase(a, now=False)).phase is ErasurePhase.DONE
    assert not [item.id for item in await a.items() if PERSON.is_in(item.id)]
    # The peer received the deletion under the id that it knows. This id stays there until it erases the person, too.
    (copy,) = [item for item in await b.items() if item.id == f"{ZOE}-1"]
    assert copy.deleted
    assert not PERSON.is_in((copy.payload + (copy.sync or b"")).replace(copy.id.encode(), b""))


async def test_mirror_over_http_follows(net: Net) -> None:
    """[OPS-046] The reader continues from its cursor, and finds the deletion."""
    a, b = await source(net), await site(net, "b")
    await b.mirror(f"{SMART}?order=modified&sync=true")
    await net.settle_all()
    assert set(await named(b)) == {"mine", "bobs"}

    await erase(a, now=False)
    await again(net, b)

    await check_erased(b)


async def test_feedsync_document_follows(net: Net) -> None:
    """[OPS-046] A file is read whole each time. The old file, from a cache, does not bring the content back."""
    a, b = await source(net), await site(net, "b")
    web: Web = net.fetch
    url = f"{SMART}?order=modified&sync=true"
    old = (await web.feed(a, url)).body
    web.pages[FILE] = old
    await b.mirror(FILE)
    await net.settle_all()
    assert set(await named(b)) == {"mine", "bobs"}

    await erase(a, now=False)
    for page in ((await web.feed(a, url)).body, old + b"\n", (await web.feed(a, url)).body + b"\n"):
        web.pages[FILE] = page
        await again(net, b)
        await check_erased(b)


async def test_peer_that_only_reads_cannot_be_told(net: Net) -> None:
    """[OPS-027] The source of a mirror receives nothing from here, so its operator must be asked."""
    b = await site(net, "b")
    await b.create()
    a = await source(net)
    await a.mirror(b, "in")
    await net.settle_all()

    await erase(a, now=False)

    (peer,) = await confirmations(a)
    assert (peer.node, peer.consumer, peer.confirmed) == (NODE, f"xmpp:{b.domain}?;node={NODE}", None)
