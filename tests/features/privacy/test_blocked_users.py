"""Users who may not use the service: every entrance is closed to them, and nothing is sent to them (OPS-061)."""

import asyncio
import json
from urllib.parse import urlencode

import pytest

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.blocking import add_entries
from support.bearer import bearer
from support.browsing import sign_in
from support.callbacks import running_subscribers
from support.chat import write
from support.component import ALICE, BOB, DOMAIN, Component, bare
from support.waiting import until, wait_for
from support.web import Web, WebStarter

EVE = "eve@spam.example/phone"
SITE = "https://feeds.example"
FORM = "application/x-www-form-urlencoded"
ATOM = "application/atom+xml"
ENTRY = b"<entry xmlns='http://www.w3.org/2005/Atom'><title>one</title></entry>"


async def block(component: Component, *names: str, kind: ListKind = ListKind.DENY) -> None:
    """Puts names on a list."""
    await component.app.service.write(lambda tx, context: add_entries(tx, context, kind, names))


async def unblock(component: Component, *names: str, kind: ListKind = ListKind.DENY) -> None:
    """Removes names from a list."""
    await component.app.service.write(lambda tx, _: privacy_rows.remove_blocks(tx, kind, names))


@pytest.fixture
async def notes(start_web: WebStarter) -> Web:
    """The feed notes of Alice, which Bob and Eve may read."""
    web = await start_web(http={"base_url": SITE}, webhooks={"allowed_networks": ["127.0.0.0/8"]})
    await web.component.create(ALICE, "notes", access_model="whitelist")
    for user in (BOB, EVE):
        await web.component.affiliate(ALICE, "notes", user, "publisher")
    return web


@pytest.mark.parametrize("name", [bare(EVE), "spam.example"])
@pytest.mark.parametrize(
    "request_of",
    [
        "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>",
        "<pubsub xmlns='http://jabber.org/protocol/pubsub'><create node='spam'/></pubsub>",
        f"<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='{EVE}'/></pubsub>",
    ],
)
async def test_stanzas_are_refused(component: Component, name: str, request_of: str) -> None:
    """[OPS-061] By the JID and by the domain."""
    await component.create(ALICE, "notes")
    await block(component, name)
    kind = "get" if "<items" in request_of else "set"

    answer = await component.ask(EVE, kind, request_of)

    error = answer.find("{*}error")
    assert error is not None and error.find("{urn:ietf:params:xml:ns:xmpp-stanzas}forbidden") is not None


@pytest.mark.parametrize(
    ("name", "sender"),
    [("b\u00fccher.example", "eve@xn--bcher-kva.example"), ("eve@xn--bcher-kva.example", "eve@b\u00fccher.example")],
)
async def test_a_domain_is_blocked_in_both_spellings(component: Component, name: str, sender: str) -> None:
    """[OPS-061] A server may call itself by letters or in ASCII, and can prove both."""
    await component.create(ALICE, "notes")
    await block(component, name)

    answer = await component.ask(
        sender, "get", "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>"
    )

    assert answer.find("{*}error/{urn:ietf:params:xml:ns:xmpp-stanzas}forbidden") is not None


@pytest.mark.needs("bot", "presence")
async def test_chat_and_presence_get_no_answer(component: Component) -> None:
    """[OPS-061] A blocked person learns nothing from the bot, and does not become a contact."""
    await component.create(ALICE, "notes")
    assert await write(component, EVE, "list") != []
    await block(component, bare(EVE))

    assert await write(component, EVE, "list") == []
    await component.send(f"<presence from='{bare(EVE)}' to='{DOMAIN}' type='subscribe'/>")
    await component.settle()

    assert await component.app.service.store.read(lambda tx: tx.contact(DOMAIN, bare(EVE))) is None


async def test_blocked_domain_receives_no_notifications(component: Component) -> None:
    """[OPS-061] [OPS-014] The recipients in memory end with the change of the list. The subscription waits."""
    await component.create(ALICE, "notes")
    await component.subscribe(EVE, "notes")
    await component.subscribe(BOB, "notes")
    await component.publish(ALICE, "notes", "a")
    assert len(await component.events(bare(EVE))) == 1
    await block(component, "spam.example")
    await component.publish(ALICE, "notes", "b")
    assert await component.events(bare(EVE)) == []
    await unblock(component, "spam.example")
    await component.publish(ALICE, "notes", "c")

    assert len(await component.events(bare(EVE))) == 1
    assert len(await component.events(bare(BOB))) == 3


async def test_only_allowed_users_are_served(component: Component) -> None:
    """[OPS-061] With a list of admitted domains, all others receive nothing."""
    await component.create(ALICE, "notes")
    await component.subscribe(EVE, "notes")
    await block(component, "example.org", kind=ListKind.ALLOW)

    await component.publish(ALICE, "notes", "a")

    assert await component.events(bare(EVE)) == []
    assert await component.item_ids(BOB, "notes") == ["a"]


async def test_tokens_and_sessions_are_refused(web: Web) -> None:
    """[OPS-061] A token reads, publishes and signs in no more, and a session that exists has no rights."""
    notes = web
    await notes.component.create(ALICE, "notes", access_model="whitelist")
    await notes.component.affiliate(ALICE, "notes", EVE, "publisher")
    token = await bearer(notes, EVE, TokenScope.PUBLISH)
    browser = await sign_in(notes, EVE)
    await notes.component.publish(ALICE, "notes", "first")
    assert (await notes.get("/feeds/notes/", Authorization=token)).status == 200
    assert (await browser.get("/feeds/notes/")).status == 200
    await block(notes.component, "spam.example")

    assert (await notes.get("/feeds/notes/", Authorization=token)).status == 401
    put = await notes.ask("PUT", "/feeds/notes/items/a", ENTRY, Authorization=token, Content_Type=ATOM)
    assert put.status == 401
    assert (await browser.get("/feeds/notes/")).status == 404
    with pytest.raises(FeedError) as error:
        await sign_in(notes, EVE)
    assert error.value.condition is Condition.FORBIDDEN
    assert await notes.component.item_ids(ALICE, "notes") == ["first"]


async def test_held_pull_and_stream_end(notes: Web) -> None:
    """[OPS-061] Readers that wait get the reason and no item."""
    token = await bearer(notes, EVE, TokenScope.READ)
    held = asyncio.create_task(notes.get("/feeds/notes/?since=cursor:0_0_0&timeout=120", Authorization=token))
    await notes.holding(1)
    headers = {"Authorization": token, "Accept": "text/event-stream"}
    async with notes.session.get(f"{notes.origin}/feeds/notes/", headers=headers) as stream:
        await notes.holding(2)
        await block(notes.component, "spam.example")
        await notes.component.publish(ALICE, "notes", "secret")

        assert (await held).status == 403
        text = (await wait_for(stream.content.read(), "the end of the stream")).decode()
    assert "event: error" in text
    assert json.loads(text.partition("event: error\ndata: ")[2].splitlines()[0])
    assert "secret" not in text


async def test_callback_of_a_blocked_reader_ends(notes: Web) -> None:
    """[OPS-061] The hub sends it no item, and tells it that the subscription has ended."""
    token = await bearer(notes, EVE, TokenScope.READ)
    async with running_subscribers() as subscribers:
        fields = {"mode": "subscribe", "callback": subscribers.url("eve"), "topic": f"{SITE}/feeds/notes/"}
        body = urlencode({f"hub.{name}": text for name, text in (*fields.items(), ("verify", "sync"))}).encode()
        got = await notes.ask("POST", "/hub", body, Authorization=token, Content_Type=FORM)
        assert got.status == 204, got.text
        await block(notes.component, "spam.example")
        await notes.component.publish(ALICE, "notes", "a")

        await until(lambda: subscribers.checks["eve"][-1]["hub.mode"] == "denied", "the denial")

        assert subscribers.pushes["eve"] == []
