"""Stanzas that the server has sent to another process of the domain: what this process learns from them."""

import pytest
from lxml import etree
from structlog.testing import capture_logs

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.features.bot.bot import Bot
from smartfeeds.features.cluster.letter import EVERY_PROCESS
from smartfeeds.features.cluster.relay import StanzaRelay
from smartfeeds.features.cluster.shared_stanzas import SharedStanzas
from smartfeeds.features.presence import rows as contact_rows
from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.xmpp.turns import StanzaWork
from support.chat import write
from support.component import ALICE, BOB, DOMAIN, STANZAS, Component, bare
from support.contacts import befriend, tell
from support.link import Taken, linked

BOBS = bare(BOB)
CLIENT = "jabber:component:accept"


def stanza(text: str) -> etree._Element:
    return etree.fromstring(f"<stream xmlns='{CLIENT}'>{text}</stream>")[0]


def shared(component: Component) -> SharedStanzas:
    """What the component learns from other processes."""
    link = component.app.group.link
    assert link is not None
    return SharedStanzas(link.router.addresses, link.stanzas, link.router.start)


async def share(component: Component, text: str) -> None:
    """Shows a stanza as another process does, and waits for what follows from it."""
    shared(component).note(stanza(text))
    await component.settle()


async def test_contact_that_another_process_has_added_or_removed(component: Component) -> None:
    """[TOP-013] Otherwise its events would not wait while it is offline."""
    availability, contact = component.app.parts.get(Presences).availability, Contact(DOMAIN, BOBS, ContactState.GRANTED)
    await component.app.service.write(lambda tx, _context: contact_rows.put(tx, contact))
    await share(component, f"<presence type='subscribed' from='{BOBS}' to='{DOMAIN}'/>")
    assert availability.is_available(BOBS) is False
    await share(component, f"<presence from='{BOB}' to='{DOMAIN}'/>")
    assert availability.is_available(BOBS) is True
    await component.app.service.write(lambda tx, _context: contact_rows.remove(tx, contact))
    await share(component, f"<presence type='unsubscribe' from='{BOBS}' to='{DOMAIN}'/>")
    assert availability.is_available(BOBS) is None
    assert component.presences == [], "the other process has answered"


async def test_presence_right_after_the_change_of_a_contact_counts(component: Component) -> None:
    """[TOP-013] The change is still being read from the store."""
    contact = Contact(DOMAIN, BOBS, ContactState.GRANTED)
    await component.app.service.write(lambda tx, _context: contact_rows.put(tx, contact))
    note = shared(component).note
    note(stanza(f"<presence type='subscribe' from='{BOBS}' to='{DOMAIN}'/>"))
    note(stanza(f"<presence type='subscribed' from='{BOBS}' to='{DOMAIN}'/>"))
    note(stanza(f"<presence from='{BOB}' to='{DOMAIN}'/>"))
    note(stanza(f"<presence from='{BOBS}/phone' to='{DOMAIN}'/>"))
    note(stanza(f"<presence type='unavailable' from='{BOBS}/phone' to='{DOMAIN}'/>"))
    await component.settle()
    assert list(component.app.parts.get(Presences).availability.resources_of(BOBS)) == ["work"]


async def test_contact_that_leaves_receives_what_waited(component: Component) -> None:
    """[TOP-013] The process that delivers the feed is not the one that has the stanza."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", presence_based_delivery="true")
    await component.subscribe(BOB, "news")
    await component.publish(ALICE, "news", "one")
    assert await component.events(BOBS) == []
    contact = Contact(DOMAIN, BOBS, ContactState.GRANTED)
    await component.app.service.write(lambda tx, _context: contact_rows.remove(tx, contact))
    await share(component, f"<presence type='unsubscribe' from='{BOBS}' to='{DOMAIN}'/>")
    assert len(await component.events(BOBS)) == 1


async def test_shared_presence_of_a_user_on_the_block_list(component: Component) -> None:
    """[TOP-013] [OPS-061] The user is still a contact."""
    contact = Contact(DOMAIN, BOBS, ContactState.GRANTED)
    await component.app.service.write(lambda tx, _context: contact_rows.put(tx, contact))
    await component.app.service.write(lambda tx, _context: privacy_rows.add_blocks(tx, ListKind.DENY, {BOBS}))
    with capture_logs() as events:
        await share(component, f"<presence type='subscribed' from='{BOBS}' to='{DOMAIN}'/>")
        await share(component, f"<presence from='{BOB}' to='{DOMAIN}'/>")
        await share(component, f"<presence from='{BOBS}/phone' to='{DOMAIN}'/>")
    assert [event["event"] for event in events] == ["presence_refused"] * 2


async def test_newest_item_comes_from_the_process_that_has_the_presence(component: Component) -> None:
    """[TOP-013] A resource does not receive it from each process."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", send_last_published_item="on_sub_and_presence")
    await component.publish(ALICE, "news", "one")
    await component.subscribe(BOB, "news")
    await component.events(BOBS)
    await component.events(BOB)
    await share(component, f"<presence from='{BOB}' to='{DOMAIN}'/>")
    assert [await component.events(BOB), await component.events(BOBS)] == [[], []]
    phone = f"{BOBS}/phone"
    await tell(component, phone)
    assert len(await component.events(phone)) == 1


async def test_strangers_are_not_remembered(component: Component) -> None:
    await share(component, f"<presence from='{BOB}' to='{DOMAIN}'/>")
    assert component.app.parts.get(Presences)._shared == set()


async def test_error_that_reaches_another_process_is_no_delivery(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-005] [TOP-013] The response to the ping arrives here, the error before it at another process."""
    await component.create(ALICE, "news")
    await write(component, BOB, "subscribe news")
    bot = component.app.parts.get(Bot)
    waits: list[float] = []

    async def pass_on(seconds: float) -> None:
        waits.append(seconds)
        (message,) = component._messages[BOBS]
        error = f"<error type='cancel'><service-unavailable xmlns='{STANZAS}'/></error>"
        shared(component).note(
            stanza(f"<message type='error' id='{message.get('id')}' from='{BOBS}' to='{DOMAIN}'>{error}</message>")
        )
        await component.app.router.drain()

    monkeypatch.setattr(component.app.group.letters, "has_others", lambda: True)
    monkeypatch.setattr(bot.sender._others, "_sleep", pass_on)
    await component.publish(ALICE, "news", "one")
    assert len(await component.events(BOBS)) == 1
    assert len(waits) == 1 and bot.sender.has_failed(BOBS)

    # Bob writes to another process: this process makes the next attempt at once.
    monkeypatch.setattr(component.app.group.letters, "has_others", lambda: False)
    await share(component, f"<message type='chat' from='{BOB}' to='{DOMAIN}'><body>help</body></message>")
    assert len(await component.events(BOBS)) == 1
    assert not bot.sender.has_failed(BOBS)


async def test_messages_that_others_must_know_of(component: Component) -> None:
    """[TOP-013]"""
    shares = shared(component).concerns
    assert shares(stanza("<message type='chat'/>"))
    assert shares(stanza("<message type='error' id='chat-1-2-3-4'/>"))
    assert not shares(stanza("<message type='error' id='1.2'/>")), "a bounce is counted once, by any process"
    assert not shares(stanza("<message type='groupchat'/>"))


async def test_stanza_that_was_handed_over_stays_in_a_process_that_stops_too() -> None:
    """[TOP-034] Two processes that stop at the same time would pass it to and fro until both have ended."""
    letters: list[str] = []
    taken = Taken()
    async with linked(taken) as (_, stream):
        stream._relay = StanzaRelay("a", lambda recipient, _data: not letters.append(recipient), lambda: True)
        stream._relay.leave()
        stream.receive_handed(stanza(f"<iq type='get' id='handed' from='{BOB}' to='{DOMAIN}'><x xmlns='x'/></iq>"))
    assert (taken.ids, letters) == (["handed"], [])


def test_change_of_a_contact_is_shared_after_it_is_stored() -> None:
    """[TOP-013] The others read the row, so it must be there."""
    letters: list[str] = []
    relay = StanzaRelay("a", lambda recipient, _data: letters.append(recipient), lambda: True)
    work = StanzaWork()
    relay.share(stanza("<presence type='subscribed'/>"), work)
    assert letters == []
    work.end(0.0)
    assert letters == [EVERY_PROCESS]
