"""The erasure of a person on a real database: nothing of the JID is left, and everybody else keeps what is theirs."""

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from lxml import etree

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.feed_files import FeedFile
from smartfeeds.core.model import Affiliation, Slice
from smartfeeds.core.person import Person
from smartfeeds.core.token import SCOPES, Token
from smartfeeds.core.view import SHARED, Order
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.session import Session
from smartfeeds.features.authoring import rows as file_rows
from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.hub.protocol import HUB_TERMS, HubTerms
from smartfeeds.features.hub.requests import HUB
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import MirrorRow, make_mirror
from smartfeeds.features.presence import rows as contact_rows
from smartfeeds.features.privacy import erasing
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing import SWEEP, begin_erasure, continue_erasure, erasure_status
from smartfeeds.features.privacy.erasures import ERASURE_REPORT, Erasure, ErasurePhase, ErasureSettings, LeftReason
from smartfeeds.features.privacy.personal_export import export_items, export_rows, write_parts
from smartfeeds.features.privacy.scrub import ScrubResult, scrub
from smartfeeds.formats.atom import read_traits
from smartfeeds.service.consumers import add_consumer
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.personal import PersonalData
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from support.world import (
    BOB,
    FEED,
    MODIFIED,
    OWNER,
    SERVICE,
    T0_US,
    World,
    blank_database,
    refusal,
    running_world,
    sqlite_store,
)

JID = "zoe.distinctive@people.example.net"
PERSON = Person(JID)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = sqlite_store(blank_database(tmp_path / "blank.db"), tmp_path)
    async with running_world(store) as running:
        await running.create()
        await running.affiliate(JID, "publisher")
        await running.affiliate(BOB, "publisher")
        yield running


@pytest.fixture
def blank(tmp_path: Path) -> Path:
    """A database without nodes."""
    return blank_database(tmp_path / "blank.db")


@pytest.fixture
def patched_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps for a few items."""
    monkeypatch.setattr(erasing, "ITEM_CHUNK", 2)


def sqlite_reopened(folder: Path) -> SqliteStore:
    """The store in a folder, as the next process opens it."""
    return SqliteStore(folder / "feeds.db", read_traits)


async def erase(service: FeedService, **settings: object) -> Erasure:
    """Erases the person to the end."""
    chosen = ErasureSettings(**{"now": True, **settings})  # type: ignore[arg-type]
    await service.write(lambda tx, context: begin_erasure(tx, context, PERSON, chosen))
    job = await service.write(partial(continue_erasure, jid=JID))
    assert job is not None
    return job


def live_everywhere(tx: WriteTx, node_no: int) -> None:
    """Rows of the person in the tables that the world does not fill."""
    digest = bytes(32)
    account_rows.add_token(tx, Token("a" * 12, digest, JID, SCOPES["read"], "*", f"phone of {JID}", T0_US, None))
    account_rows.put_session(
        tx, Session("b" * 12, digest, JID, SCOPES["read"], "*", "", "browser", T0_US, T0_US, T0_US, T0_US)
    )
    contact_rows.put(tx, Contact(SERVICE, JID, ContactState.GRANTED))
    chat_rows.put(tx, ChatRow(JID))
    file_rows.put(tx, FeedFile(node_no, "f" * 8, "d" * 64, f"{JID}.png", "image/png", 9, JID, T0_US, T0_US))
    tx.put_redirect("old", f"xmpp:{JID}?;node=blog", JID)
    tx.count_request_form(node_no, [f"form {JID}"], T0_US, 0)
    mirror = make_mirror(node=FEED, address="xmpp:other.example?;node=x", owner=JID)
    stored_mirrors.put(tx, MirrorRow(mirror))
    stored_mirrors.put(tx, MirrorRow(make_mirror(node="copy", address=f"xmpp:{JID}?;node=urn%3Axmpp%3Amicroblog%3A0")))


def places_of(folder: Path) -> dict[str, list[bytes]]:
    """The spellings of the JID in the files of the database."""
    encoded = quote(JID, safe="")
    spellings = [JID, encoded, quote(encoded, safe=""), JID.replace("@", "&#64;"), JID.split("@")[0]]
    found = {}
    for path in folder.glob("feeds.db*"):
        data = path.read_bytes().lower()
        found[path.name] = [spelling.encode() for spelling in spellings if spelling.encode() in data]
    return found


async def test_no_byte_of_the_jid_is_left(world: World, tmp_path: Path) -> None:
    """[OPS-021] [OPS-022] [OPS-025] [CAM-035] Plain, percent-encoded once and twice, and escaped."""
    await world.publish("mine", actor=JID)
    await world.publish("mine", actor=JID, title=f"{JID} again")
    await world.publish(f"{JID}-1", actor=JID)
    await world.publish("bobs", actor=BOB)
    await world.publish("bobs", actor=JID)
    await world.publish("bobs", actor=BOB)
    await world.subscribe(JID)
    await world.subscribe(BOB, f"{FEED}?author={quote(JID, safe='')}")
    await world.create("blog", actor=JID)
    await world.publish("post", node="blog", actor=JID)
    node = await world.node()
    await world.service.write(lambda tx, _: live_everywhere(tx, node.node_no))
    await world.settle()

    job = await erase(world.service, nodes="delete", block=True)

    assert job.phase is ErasurePhase.DONE
    assert job.counts["items-erased"] == 2
    assert job.counts["items-edited"] == 1
    assert await world.service.store.read(lambda tx: stored_mirrors.mirrors(tx)) != []
    assert scrub(tmp_path / "feeds.db", served=False) is ScrubResult.CLEAN
    assert set(map(tuple, places_of(tmp_path).values())) == {()}


@pytest.mark.parametrize("mark", ["post_", "post-", "post.", "post+"])
async def test_address_that_is_joined_to_an_id_goes_with_the_items_of_the_person(
    world: World, tmp_path: Path, mark: str
) -> None:
    """[OPS-004] [OPS-022] In the id of an item, in its atom:id, and of an item that the person had deleted before."""
    name = f"{mark}{JID}"
    await world.publish(name, actor=JID)
    await world.publish("plain", actor=JID, inner=f"<id>tag:x.example,2026:{name}</id>")
    await world.publish(f"{name}-old", actor=JID)
    await world.retract(f"{name}-old", actor=JID)
    await world.create("notes", actor=OWNER, kind="generic")
    await world.affiliate(JID, "publisher", node="notes")
    await world.publish(name, node="notes", actor=JID)

    job = await erase(world.service)

    assert job.counts["ids"] == 3
    assert (job.left, job.left_texts) == ({}, {})
    assert scrub(tmp_path / "feeds.db", served=False) is ScrubResult.CLEAN
    assert set(map(tuple, places_of(tmp_path).values())) == {()}


async def test_deletion_is_sent_under_the_joined_id_before_it_is_replaced(world: World) -> None:
    """[OPS-022] A follower learns which item is deleted: the id changes when it has received the deletion."""
    name = f"post_{JID}"
    await world.subscribe(BOB)
    await world.publish(name, actor=JID)
    await world.settle()
    assert await world.told(BOB) == f"+{name}"
    await world.cut()

    assert (await erase(world.service, now=False)).phase is ErasurePhase.FOLLOWERS

    await world.start()
    await world.settle()
    assert await world.told(BOB) == f"-{name}"
    await world.dispatcher.save_marks()
    await SWEEP.sweep(world.service)
    (item,) = await world.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10)))
    assert item.deleted and "zoe" not in item.id


async def test_report_names_what_is_left_and_why(world: World) -> None:
    """[OPS-023] [OPS-027] Items of others stay, with an address that may be that of a namesake, and those that mention
    the person."""
    namesake = f"post_{JID}"
    await world.affiliate(namesake, "publisher")
    await world.publish(namesake, actor=namesake)
    await world.publish("about", actor=BOB, title=f"What {JID} said")
    await world.publish("joined", actor=BOB, title=f"What post-{JID} said")
    await world.publish("gone", actor=namesake)
    await world.publish(f"old_{JID}", actor=BOB)
    await world.retract(f"old_{JID}", actor=BOB)
    await world.publish("malice", actor=BOB, title=f"What m{JID} said")
    await world.create(f"blog_{JID}", actor=BOB)
    await world.subscribe(BOB, f"{FEED}?author={quote(namesake, safe='')}")

    job = await erase(world.service)
    status = await world.service.read(partial(erasure_status, person=PERSON))

    assert status is not None
    assert {(left.node, left.item_id, left.reason) for left in status.left} == {
        (FEED, namesake, LeftReason.JOINED),
        (FEED, "about", LeftReason.MENTION),
        (FEED, "joined", LeftReason.JOINED),
        (FEED, f"old_{JID}", LeftReason.JOINED),
    }
    assert (job.counts["mentions"], job.counts["joined-addresses"]) == (1, 3)
    assert job.left_texts == {"node.name": 1, "subscription.view": 1, "subscription.node_text": 1}
    assert JID not in ERASURE_REPORT.write(job)
    items = {item.id: item for item in await world.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10)))}
    assert items[namesake].publisher == namesake and not items[namesake].deleted


async def test_items_of_others_stay(world: World) -> None:
    """[OPS-023] The content is Bob's."""
    await world.publish("bobs", actor=BOB, title="Bob's")
    await world.publish("mine", actor=JID)
    before = await world.pull(MODIFIED, actor=OWNER, max=500)
    await erase(world.service)

    items = await world.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10)))
    bobs, mine = (next(one for one in items if one.id == name) for name in ("bobs", "mine"))
    assert not bobs.deleted
    assert b"Bob's" in bobs.payload
    assert mine.deleted
    assert mine.publisher == ""
    assert etree.fromstring(mine.payload).findtext("{http://www.w3.org/2005/Atom}title") == ""
    assert mine.modified_us > bobs.modified_us
    # A follower that has everything up to now gets the tombstone.
    assert "mine" in str(await world.pull(MODIFIED, after=str(before.last), actor=OWNER))


async def test_index_forgets_the_person_and_every_view_shows_the_deletion(world: World) -> None:
    """[OPS-012] [OPS-013] Neither the person nor the words of the item are found any more."""
    await world.publish("mine", actor=JID, title="unmistakable")
    await world.publish("bobs", actor=BOB, title="unmistakable, too")
    await world.service.store.index_some(100)
    views = [f"{FEED}?author={quote(name, safe='')}" for name in (JID, BOB)] + [f"{FEED}?q=unmistakable"]

    async def shown() -> list[str]:
        return [(await world.pull(view, actor=OWNER, max=9)).short for view in views]

    def index(tx: ReadTx) -> tuple[set[int], set[str]]:
        """The items that the index has under the person's name, and the words that two items have."""
        tokens = [set(row[0].split()) for row in tx.db.rows("SELECT tokens FROM word ORDER BY rowid")]
        return privacy_rows.published_before(tx, PERSON, 0, 100), tokens[0] & tokens[1]

    assert await shown() == ["+mine", "+bobs", "+mine +bobs"]
    before = await world.service.store.read(index)
    assert before[0] and before[1]

    await erase(world.service)
    await world.service.store.index_some(100)

    assert await shown() == ["-mine", "+bobs -mine", "+bobs -mine"]
    after = await world.service.store.read(index)
    assert after[0] == set() and not before[1] & after[1]


async def test_a_second_erasure_changes_nothing(world: World) -> None:
    """[OPS-029]"""
    await world.publish("mine", actor=JID)
    first = await erase(world.service)
    items = await world.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10)))

    second = await erase(world.service)

    assert second.counts == first.counts
    assert await world.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10))) == items


async def test_sole_owner_needs_a_decision(world: World) -> None:
    """[OPS-024]"""
    await world.create("blog", actor=JID)
    with pytest.raises(FeedError, match="only owner of blog") as error:
        await erase(world.service)
    assert error.value.condition is Condition.CONFLICT

    job = await erase(world.service, nodes=BOB)

    node = await world.node("blog")
    assert node.creator == BOB
    assert job.counts["nodes-transferred"] == 1


@pytest.mark.parametrize("phase", [ErasurePhase.NODES, ErasurePhase.PEOPLE])
async def test_owner_who_leaves_during_the_erasure_does_not_leave_the_node_alone(
    world: World, phase: ErasurePhase
) -> None:
    """[OPS-024] The erasure waits for the choice of the operator, in whatever phase the last other owner leaves."""
    await world.create("blog", actor=JID)
    await world.affiliate(BOB, "owner", node="blog", actor=JID)
    await world.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, ErasureSettings(now=True)))
    while (await world.service.read(lambda tx, _: privacy_rows.open_erasures(tx)))[0].phase is not phase:
        await world.step(partial(continue_erasure, jid=JID))
    await world.affiliate(BOB, "none", node="blog", actor=BOB)

    job = await world.service.write(partial(continue_erasure, jid=JID))

    assert job is not None and job.phase is ErasurePhase.NODES
    with pytest.raises(FeedError, match="only owner of blog"):
        await erase(world.service)
    assert (await erase(world.service, nodes=BOB)).phase is ErasurePhase.DONE
    number = (await world.node("blog")).node_no
    people = await world.service.read(lambda tx, _: tx.affiliations(number))
    assert people == [(BOB, Affiliation.OWNER)]


async def test_subscribers_of_a_deleted_node_are_notified(world: World) -> None:
    """[OPS-024] The erasure waits until they are."""
    await world.create("blog", actor=JID)
    await world.subscribe(BOB, "blog")
    await world.publish("post", node="blog", actor=JID)
    await world.settle()
    assert await world.told(BOB) == "+post"
    await world.cut()

    assert (await erase(world.service, nodes="delete", now=False)).phase is ErasurePhase.FOLLOWERS

    await world.start()
    await world.settle()
    assert [(event.kind, event.node) for event in await world.events(BOB)] == [("delete", "blog")]
    await world.dispatcher.save_marks()
    await SWEEP.sweep(world.service)
    status = await world.service.read(partial(erasure_status, person=PERSON))
    assert status is not None and status.job.phase is ErasurePhase.DONE
    assert status.job.counts["nodes-deleted"] == 1


async def test_the_job_survives_a_stop_after_every_step(world: World) -> None:
    """[OPS-025] Each step is a transaction; the next process continues. Meanwhile the person may do nothing."""
    for number in range(5):
        await world.publish(f"i{number}", actor=JID)
    await world.subscribe(JID)
    await world.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, ErasureSettings(now=True)))
    steps = 0
    while True:
        result = await world.step(partial(continue_erasure, jid=JID))
        steps += 1
        if not isinstance(result, MoreSteps):
            break
        assert await refusal(world.publish("new", actor=JID)) is Condition.FORBIDDEN
        assert await refusal(world.subscribe(JID)) is Condition.FORBIDDEN
        await world.crash()
    assert steps >= 5
    job = await world.service.read(lambda tx, _: privacy_rows.erasure(tx, PERSON))
    assert job is not None
    assert job.counts["items-erased"] == 5
    assert job.jid == ""


class StoppedError(Exception):
    """Stands for the end of the process."""


async def test_a_stop_before_and_after_every_commit(blank: Path, tmp_path: Path, patched_chunks: None) -> None:
    """[OPS-025] [OPS-026] The erasure has many small transactions. A process that ends before or after the commit of
    each of them leaves what one that never ends leaves."""
    ends = {}
    for name in ("never", "before", "after"):
        folder = tmp_path / name
        folder.mkdir()
        store = sqlite_store(blank, folder)
        async with running_world(store) as first:
            await first.create()
            await first.affiliate(JID, "publisher")
            for number in range(5):
                await first.publish(f"{JID}-{number}" if number % 2 else f"i{number}", actor=JID)
            await first.subscribe(JID)
            await first.settle()
            await first.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, ErasureSettings(now=True)))
        is_open, steps = True, 0
        while is_open:
            async with running_world(sqlite_reopened(folder)) as next_process:
                if name == "before":
                    with pytest.raises(StoppedError):
                        await next_process.step(stopped)
                is_open = isinstance(await next_process.step(partial(continue_erasure, jid=JID)), MoreSteps)
                while is_open and name == "never":
                    is_open = isinstance(await next_process.step(partial(continue_erasure, jid=JID)), MoreSteps)
            steps += 1
        async with running_world(sqlite_reopened(folder)) as last:
            job = await last.service.read(lambda tx, _: privacy_rows.erasure(tx, PERSON))
            assert job is not None
            items = await last.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10)))
            ends[name] = (
                job.phase,
                job.counts,
                [(item.id, item.deleted, item.revision, item.publisher) for item in items],
            )
        assert steps == 1 or (name != "never" and steps >= 8)
    assert ends["never"] == ends["before"] == ends["after"]
    assert ends["never"][1]["items-erased"] == 5


def stopped(tx: WriteTx, context: Context) -> None:
    """Does the next step, and ends before the commit."""
    continue_erasure(tx, context, JID)
    tx.settle()
    raise StoppedError


async def test_a_lasting_block_is_a_digest(world: World) -> None:
    """[OPS-028] Without it the person may come back."""
    await erase(world.service)
    await world.subscribe(JID)

    await erase(world.service, block=True)

    assert await refusal(world.subscribe(JID)) is Condition.FORBIDDEN
    (entry,) = await world.service.read(lambda tx, _: privacy_rows.blocks(tx, ListKind.DENY))
    assert JID not in entry


async def test_erasure_that_waits_searches_the_tables_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-025] The sweep looks at a job every few seconds until the last follower has the deletions."""
    await world.subscribe(BOB)
    await world.publish("mine", actor=JID)
    await world.settle()
    await world.service.write(lambda tx, _: tx.put_redirect("old", f"xmpp:{JID}?;node=blog", BOB))
    searches: list[str] = []
    mention_rows = privacy_rows.mention_rows

    def count(tx: WriteTx, data: PersonalData, person: Person) -> object:
        searches.append(person.jid)
        return mention_rows(tx, data, person)

    monkeypatch.setattr(privacy_rows, "mention_rows", count)
    await world.cut()
    job = await erase(world.service, now=False)
    for _ in range(3):
        await SWEEP.sweep(world.service)
    assert (job.phase, searches) == (ErasurePhase.FOLLOWERS, [JID])

    await world.start()
    await world.settle()
    await world.dispatcher.save_marks()
    await SWEEP.sweep(world.service)

    status = await world.service.read(partial(erasure_status, person=PERSON))
    assert status is not None and status.job.phase is ErasurePhase.DONE
    assert await world.service.read(lambda tx, _: tx.redirect("old")) is None


async def test_status_names_followers(world: World) -> None:
    """[OPS-027] The marks of the followers confirm the erasure: all subscribers together, and each callback."""

    async def followers() -> dict[str, bool | None]:
        status = await world.service.read(partial(erasure_status, person=PERSON))
        assert status is not None and {one.node for one in status.confirmations} == {FEED}
        return {one.consumer: one.confirmed for one in status.confirmations}

    await world.subscribe(BOB)
    await world.publish("mine", actor=JID)
    await world.settle()
    callback = Consumer((await world.node()).node_no, "hub:https://reader.example/callback")
    await world.service.write(lambda tx, _: add_consumer(tx, callback, Order.MODIFIED))
    await world.cut()
    await erase(world.service)
    assert await followers() == {"push": False, callback.name: False}

    await world.start()
    await world.settle()
    await world.dispatcher.save_marks()

    assert await followers() == {"push": True, callback.name: False}


async def exported(world: World) -> dict[str, bytes]:
    """The files of an export of a store with few items."""
    items = await world.service.read(partial(export_items, person=PERSON, after_no=0))
    rows = await world.service.read(lambda tx, context: export_rows(tx, context, PERSON))
    files = await world.service.read(lambda _, context: write_parts(context, PERSON, rows, *items[:3]))
    return {name: b"".join(pieces) for name, pieces in files}


async def test_export_has_everything(world: World) -> None:
    """[OPS-020] Items as Atom with sync data, the rest as JSON; no secrets."""
    await world.publish("mine", actor=JID)
    await world.publish("bobs", actor=BOB)
    await world.publish("bobs", actor=JID)
    await world.publish("bobs", actor=BOB)
    await world.subscribe(JID)
    files = await exported(world)

    feed = etree.fromstring(files["items.atom"])
    assert len(feed.findall("{http://www.w3.org/2005/Atom}entry")) == 1
    assert feed.find(".//{http://feedsync.org/2007/feedsync}history") is not None
    assert b'"bobs"' in files["versions.json"]
    assert FEED.encode() in files["subscriptions.json"]
    assert b"publisher" in files["affiliations.json"]


NAMESAKE = f"\u00e9{JID}"
GATEWAY = f"x!{JID}"


async def test_namesakes_keep_what_is_theirs(world: World) -> None:
    """[OPS-004] [OPS-023] Endpoints are percent-encoded: an encoded letter before the JID is no bound."""
    for number, other in enumerate((NAMESAKE, GATEWAY)):
        await world.affiliate(other, "publisher")
        await world.publish(f"i{number}", actor=other, title="a title")
        token = Token(f"{number}" * 12, bytes([number] * 32), other, SCOPES["read"], "*", "", T0_US, None)
        await world.service.write(lambda tx, _, token=token: account_rows.add_token(tx, token))  # type: ignore[misc]
    await world.publish("mine", actor=JID)
    files = await exported(world)

    job = await erase(world.service)

    assert [item["id"] for item in json.loads(files["items.json"])] == ["mine"]
    assert job.counts["items-erased"] == 1
    assert job.counts["token"] == 0
    items = await world.service.read(lambda tx, _: tx.slice(1, Slice(SHARED, 10)))
    live = {item.id: item for item in items if not item.deleted}
    assert [live[name].publisher for name in ("i0", "i1")] == [NAMESAKE, GATEWAY]
    assert b"erased" not in live["i0"].sync + live["i1"].sync


async def test_the_person_is_not_the_next_owner(world: World) -> None:
    """[OPS-024] The node would have no owner."""
    await world.create("blog", actor=JID)
    with pytest.raises(FeedError, match="cannot own nodes") as error:
        await erase(world.service, nodes=JID)
    assert error.value.condition is Condition.NOT_ALLOWED
    assert await world.service.read(lambda tx, _: privacy_rows.erasure(tx, PERSON)) is None


async def test_an_export_has_no_secrets_of_others(world: World) -> None:
    """[OPS-020] A subscription of Bob's to a view by the person has Bob's secret, and an address that only he knows."""
    terms = HUB_TERMS.write(HubTerms("", f"author={quote(JID, safe='')}", secret="a secret of Bob"))
    callback = Callback(
        HUB.name, 1, f"https://bob.example/unguessable?of={JID}", "topic", "bob.example", T0_US, T0_US + 1,
        settings=terms,
    )  # fmt: skip
    await world.service.write(lambda tx, _: callback_rows.put(tx, callback))
    files = await exported(world)

    shown = b"".join(files.values())
    assert b"a secret of Bob" not in shown
    assert b"unguessable" not in shown
    named = {(row["table"], row["column"]): row["spellings"] for row in json.loads(files["other.json"])["rows"]}
    assert named[("callback", "settings")] == [quote(JID, safe="")]
    assert named[("callback", "url")] == [JID]
