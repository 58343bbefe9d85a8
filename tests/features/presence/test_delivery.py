"""Delivery that depends on presence (XEP-0060 sections 12.5 and 12.6), and the newest item on arrival."""

import pytest

from smartfeeds.core.blocklist import ListKind
from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.features.privacy import rows as privacy_rows
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    NS,
    SUBSCRIBE_OPTIONS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    fields,
    form,
    headers,
    ok,
    refusal,
)
from support.contacts import befriend, tell, told

BOBS = bare(BOB)
PHONE = f"{BOBS}/phone"
INVALID_OPTIONS = Refusal("modify", "bad-request", "invalid-options")
PRESENCE_REQUIRED = Refusal("auth", "not-authorized", "presence-subscription-required")


def ids(messages: list[Element]) -> list[str]:
    """The ids of items; `-x` for retractions, `end` for the end of a subscription."""
    texts = []
    for message in messages:
        items = message.iterfind("ev:event/ev:items/*", NS)
        texts += [("-" if each.tag.endswith("retract") else "") + str(each.get("id")) for each in items]
        if message.find("ev:event/ev:subscription[@subscription='none']", NS) is not None:
            texts.append("end")
    return texts


async def online(component: Component, user: str = BOB, show: str = "") -> None:
    await tell(component, user, inner=f"<show>{show}</show>" if show else "")


async def offline(component: Component, user: str = BOB) -> None:
    await tell(component, user, "unavailable")


async def received(component: Component, address: str = BOBS) -> list[str]:
    return ids(await component.events(address))


async def held(component: Component) -> list[str]:
    """The consumers whose events are held."""
    await component.settle()
    await component.app.dispatcher.save_marks()
    rows = await component.app.service.read(lambda tx, _: tx.consumers((0, "", ""), 100))
    return [row.consumer.name for row in rows if row.consumer.kind == "held"]


@pytest.fixture
async def news(component: Component) -> Component:
    """A node whose events wait, to which Bob is subscribed; he is a contact and offline."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", presence_based_delivery="true")
    await component.subscribe(BOB, "news")
    return component


async def test_events_wait_until_the_subscriber_is_online(news: Component) -> None:
    """[xep-map 2.1] Each item arrives once and in order, and PreviousCursor proves that none is missing."""
    for item_id in ("one", "two"):
        await news.publish(ALICE, "news", item_id)
    assert await received(news) == []
    await online(news)
    messages = await news.events(BOBS)
    assert ids(messages) == ["one", "two"]
    await news.publish(ALICE, "news", "three")
    messages += await news.events(BOBS)
    assert ids(messages) == ["one", "two", "three"]
    cursors = [(headers(each).get("PreviousCursor"), headers(each)["LastCursor"]) for each in messages]
    assert [previous for previous, _ in cursors[1:]] == [last for _, last in cursors[:-1]]
    assert await held(news) == []


async def test_events_wait_again_after_each_departure(news: Component) -> None:
    await online(news)
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]
    await offline(news)
    await news.publish(ALICE, "news", "two")
    await news.retract(ALICE, "news", "one")
    assert await received(news) == []
    await online(news, PHONE)
    assert await received(news) == ["two", "-one"]
    await offline(news, PHONE)
    await news.publish(ALICE, "news", "three")
    assert await received(news) == []
    await online(news)
    assert await received(news) == ["three"]


async def test_other_subscribers_do_not_wait(news: Component) -> None:
    """The presence of Carol, who is no contact, is unknown."""
    await news.subscribe(CAROL, "news")
    await news.publish(ALICE, "news", "one")
    assert await received(news, bare(CAROL)) == ["one"]
    assert await received(news) == []


async def test_full_jid_waits_for_its_own_resource(news: Component) -> None:
    """XEP-0060 section 12.6: presence is that of the subscribed JID."""
    await news.subscribe(BOB, "news", PHONE)
    await online(news)
    await news.publish(ALICE, "news", "one")
    assert (await received(news), await received(news, PHONE)) == (["one"], [])
    await online(news, PHONE)
    assert (await received(news), await received(news, PHONE)) == ([], ["one"])


async def test_resource_that_accepts_no_messages_does_not_count(news: Component) -> None:
    await tell(news, BOB, inner="<priority>-1</priority>")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == []
    await tell(news, BOB, inner="<priority>1</priority>")
    assert await received(news) == ["one"]


async def test_held_events_survive_a_restart_and_a_lost_link(news: Component, start: Starter) -> None:
    await news.publish(ALICE, "news", "one")
    again = await start.again(news)
    await told(again, BOB)
    await again.publish(ALICE, "news", "two")
    await again.cut()
    await again.publish_unseen("news", "three")
    await again.link()
    assert await received(again) == []
    await online(again)
    assert await received(again) == ["one", "two", "three"]


async def test_held_events_of_every_order_arrive(component: Component) -> None:
    await befriend(component, BOB)
    await component.create(ALICE, "news", presence_based_delivery="true")
    for view in ("news?order=created", "news?order=modified", "news?category=red"):
        await component.subscribe(BOB, view)
    red = "<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><category term='red'/></entry>"
    for item_id in ("one", "two"):
        await component.publish(ALICE, "news", item_id, red)
    await component.publish(ALICE, "news", "one")
    assert len(await held(component)) == 3
    await online(component)
    nodes: dict[str, list[str]] = {}
    for message in await component.events(BOBS):
        nodes.setdefault(message.xpath("string(.//@node)"), []).extend(ids([message]))
    assert nodes == {
        "news?order=created": ["one", "two"],
        "news?order=modified": ["two", "one"],
        "news?category=red": ["two", "one"],
    }


async def test_subscription_that_ends_forgets_what_is_held(news: Component) -> None:
    await news.publish(ALICE, "news", "one")
    assert len(await held(news)) == 1
    ok(await news.set(BOB, f"<unsubscribe node='news' jid='{BOBS}'/>"))
    assert await held(news) == []


async def test_option_that_is_switched_off_sends_what_is_held(news: Component) -> None:
    """Each item arrives once and in order, also if the option is switched on again."""
    await news.publish(ALICE, "news", "one")
    await news.configure(ALICE, "news", presence_based_delivery="false")
    assert (await received(news), await held(news)) == (["one"], [])
    await news.publish(ALICE, "news", "two")
    assert await received(news) == ["two"]
    await news.configure(ALICE, "news", presence_based_delivery="true")
    await news.publish(ALICE, "news", "three")
    assert await received(news) == []
    await online(news)
    assert (await received(news), await held(news)) == (["three"], [])


@pytest.mark.parametrize("shows", [["chat", "dnd"], ["away", "chat", "dnd", "online", "xa"], []])
async def test_change_of_show_values_releases_what_is_held(component: Component, shows: list[str]) -> None:
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    options = form(SUBSCRIBE_OPTIONS, **{"show-values": ["chat"]})
    ok(await component.set(BOB, f"<subscribe node='news' jid='{BOBS}'/><options>{options}</options>"))
    await online(component, show="dnd")
    await component.publish(ALICE, "news", "one")
    assert await received(component) == []
    options = form(SUBSCRIBE_OPTIONS, **{"show-values": shows})
    ok(await component.set(BOB, f"<options node='news' jid='{BOBS}'>{options}</options>"))
    assert await received(component) == ["one"]
    await component.publish(ALICE, "news", "two")
    assert (await received(component), await held(component)) == (["two"], [])


async def test_show_values_that_exclude_the_present_state_keep_what_is_held(component: Component) -> None:
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    options = form(SUBSCRIBE_OPTIONS, **{"show-values": ["chat"]})
    ok(await component.set(BOB, f"<subscribe node='news' jid='{BOBS}'/><options>{options}</options>"))
    await online(component, show="dnd")
    await component.publish(ALICE, "news", "one")
    options = form(SUBSCRIBE_OPTIONS, **{"show-values": ["away"]})
    ok(await component.set(BOB, f"<options node='news' jid='{BOBS}'>{options}</options>"))
    assert (await received(component), len(await held(component))) == ([], 1)
    await online(component, show="away")
    assert (await received(component), await held(component)) == (["one"], [])


@pytest.mark.parametrize("view", ["news", "news?order=modified", "news?order=modified&amp;sync=true"])
@pytest.mark.parametrize("restarts", [False, True])
async def test_purge_while_offline_can_be_noticed(
    component: Component, start: Starter, view: str, *, restarts: bool
) -> None:
    """Smart views receive the tombstones. On a bare view, PreviousCursor shows the gap."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", presence_based_delivery="true")
    await component.subscribe(BOB, view)
    await online(component)
    await component.publish(ALICE, "news", "one")
    (first,) = await component.events(BOBS)
    await offline(component)
    ok(await component.owner_set(ALICE, "<purge node='news'/>"))
    await component.settle()
    if restarts:
        component = await start.again(component)
        await told(component, BOB)
    await online(component)
    missed = await component.events(BOBS)
    await component.publish(ALICE, "news", "two")
    (after,) = await component.events(BOBS)
    assert ids([after]) == ["two"]
    last = headers((missed or [first])[-1])["LastCursor"]
    assert (len(missed), headers(after).get("PreviousCursor") == last) == ((0, False) if view == "news" else (1, True))


async def test_items_held_before_a_purge_do_not_stop_later_ones(news: Component) -> None:
    await online(news)
    await news.publish(ALICE, "news", "old")
    (first,) = await news.events(BOBS)
    await offline(news)
    await news.publish(ALICE, "news", "one")
    ok(await news.owner_set(ALICE, "<purge node='news'/>"))
    # Bob must still be offline when the purge is delivered; otherwise he receives its event.
    await news.settle()
    await online(news)
    assert await received(news) == []
    await news.publish(ALICE, "news", "two")
    (after,) = await news.events(BOBS)
    assert headers(after).get("PreviousCursor") != headers(first)["LastCursor"]


async def test_retraction_of_a_generic_node_waits(component: Component) -> None:
    await befriend(component, BOB)
    await component.create(ALICE, "gen", kind="generic", presence_based_delivery="true")
    await component.subscribe(BOB, "gen")
    await online(component)
    ok(await component.set(ALICE, "<publish node='gen'><item id='one'><x xmlns='urn:x'/></item></publish>"))
    assert await received(component) == ["one"]
    await offline(component)
    ok(await component.set(ALICE, "<retract node='gen' notify='true'><item id='one'/></retract>"))
    assert await received(component) == []
    await online(component)
    assert await received(component) == ["-one"]


async def test_events_older_than_a_month_are_not_sent(news: Component) -> None:
    """The next PreviousCursor shows the gap."""
    await news.publish(ALICE, "news", "one")
    await news.settle()  # it waits for Bob now, and is not about to be sent
    news.clock.advance(31 * 86_400)
    await news.publish(ALICE, "news", "two")
    await online(news)
    (message,) = await news.events(BOBS)
    assert ids([message]) == ["two"]
    assert "PreviousCursor" in headers(message)


async def test_former_reader_receives_nothing_that_was_held(news: Component) -> None:
    await news.publish(ALICE, "news", "one")
    await news.settle()  # it waits for Bob now, and is not about to be sent
    await news.affiliate(ALICE, "news", BOB, "outcast")
    await online(news)
    assert "one" not in await received(news)


@pytest.mark.parametrize("kind", ["unsubscribe", "unsubscribed"])
async def test_nothing_waits_for_presence_that_is_unknown(news: Component, kind: str) -> None:
    """Former contacts receive what was held, and all later events at once."""
    await news.subscribe(BOB, "news", PHONE)
    await news.publish(ALICE, "news", "one")
    assert len(await held(news)) == 2
    await tell(news, BOBS, kind)
    assert (await received(news), await received(news, PHONE)) == (["one"], ["one"])
    await news.publish(ALICE, "news", "two")
    assert (await received(news), await received(news, PHONE)) == (["two"], ["two"])


async def test_deletion_is_announced_to_those_who_are_offline_too(news: Component) -> None:
    ok(await news.owner_set(ALICE, "<delete node='news'/>"))
    (message,) = await news.events(BOBS)
    assert message.find("ev:event/ev:delete", NS) is not None


async def test_show_values_choose_the_states_in_which_events_are_sent(component: Component) -> None:
    """XEP-0060 section 16.4.2. Without presence, as for Carol, events are sent always."""
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    shows = form(SUBSCRIBE_OPTIONS, **{"show-values": ["online", "chat"]})
    for user in (BOB, CAROL):
        options = f"<options>{shows}</options>"
        ok(await component.set(user, f"<subscribe node='news' jid='{bare(user)}'/>{options}"))
    await online(component, show="dnd")
    await component.publish(ALICE, "news", "one")
    assert (await received(component), await received(component, bare(CAROL))) == ([], ["one"])
    await online(component, show="chat")
    assert await received(component) == ["one"]
    await online(component, show="<nonsense/>")
    await component.publish(ALICE, "news", "two")
    assert await received(component) == ["two"]


async def test_last_item_is_sent_to_each_resource_that_comes_online(component: Component) -> None:
    """[xep-map 116]; XEP-0060 section 12.2."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", send_last_published_item="on_sub_and_presence")
    await component.create(ALICE, "plans", send_last_published_item="on_sub")
    for node in ("news", "plans"):
        await component.subscribe(BOB, node)
        await component.publish(ALICE, node, "one")
    await component.events(BOBS)
    await online(component)
    (message,) = await component.events(BOB)
    assert ids([message]) == ["one"] and message.find("delay:delay", NS) is not None
    await online(component, show="away")
    await online(component, PHONE)
    assert (await received(component, BOB), await received(component, PHONE)) == ([], ["one"])
    component.clock.advance(60)
    await offline(component, PHONE)
    await online(component, PHONE)
    assert (await received(component, PHONE), await received(component)) == (["one"], [])


async def test_last_item_is_for_readers_who_want_events(component: Component) -> None:
    await befriend(component, BOB)
    await befriend(component, CAROL)
    await component.create(ALICE, "news", send_last_published_item="on_sub_and_presence")
    await component.publish(ALICE, "news", "one")
    await component.subscribe(BOB, "news", deliver="false")
    await component.subscribe(CAROL, "news")
    await component.configure(ALICE, "news", access_model="whitelist")
    for user in (BOB, CAROL):
        await online(component, user)
        assert await received(component, user) == []


async def expiring(component: Component, jid: str = BOBS) -> Element:
    options = f"<options>{form(SUBSCRIBE_OPTIONS, expire='presence')}</options>"
    return await component.set(BOB, f"<subscribe node='news' jid='{jid}'/>{options}")


async def subscriptions(component: Component) -> list[str]:
    await component.settle()
    answer = ok(await component.get(BOB, "<subscriptions/>"))
    return [str(each.get("jid")) for each in answer.iterfind(".//ps:subscription", NS)]


async def test_subscription_ends_when_the_subscriber_goes_offline(component: Component) -> None:
    """XEP-0060 section 12.5: a bare JID with its last resource, a full JID with its own."""
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    for user in (BOB, PHONE):
        await online(component, user)
    for jid in (BOBS, BOB):
        assert fields(ok(await expiring(component, jid)))["expire"] == ["presence"]
    await offline(component, PHONE)
    assert await subscriptions(component) == [BOBS, BOB]
    await online(component, PHONE)
    await offline(component)
    assert await subscriptions(component) == [BOBS]
    await tell(component, BOBS, "error")
    assert await subscriptions(component) == []
    assert (await received(component), await received(component, BOB)) == (["end"], ["end"])


async def test_end_by_presence_is_for_contacts(component: Component) -> None:
    """XEP-0060 section 6.3.5: otherwise nothing would end the subscription."""
    await component.create(ALICE, "news")
    assert refusal(await expiring(component)) == INVALID_OPTIONS
    await tell(component, BOBS, "subscribe")
    assert refusal(await expiring(component)) == INVALID_OPTIONS
    await component.subscribe(BOB, "news")
    options = form(SUBSCRIBE_OPTIONS, expire="presence")
    answer = await component.set(BOB, f"<options node='news' jid='{BOBS}'>{options}</options>")
    assert refusal(answer) == INVALID_OPTIONS
    assert await subscriptions(component) == [BOBS]


async def test_node_can_make_all_subscriptions_end_by_presence(component: Component) -> None:
    """XEP-0060 section 12.5, `pubsub#tempsub`."""
    await component.create(ALICE, "news", tempsub="true")
    request = f"<subscribe node='news' jid='{BOBS}'/>"
    assert refusal(await component.set(BOB, request)) == PRESENCE_REQUIRED
    entry = f"<subscriptions node='news'><subscription jid='{bare(ALICE)}' subscription='subscribed'/></subscriptions>"
    assert refusal(await component.owner_set(ALICE, entry)).condition == "not-acceptable"
    await befriend(component, BOB)
    await online(component)
    ok(await component.set(BOB, request))
    clear = form(SUBSCRIBE_OPTIONS, expire="")
    ok(await component.set(BOB, f"<options node='news' jid='{BOBS}'>{clear}</options>"))
    await offline(component)
    assert await subscriptions(component) == []


@pytest.mark.parametrize("kind", ["unsubscribe", "unsubscribed"])
async def test_subscription_ends_when_presence_is_seen_no_more(component: Component, kind: str) -> None:
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    await online(component)
    ok(await expiring(component))
    await tell(component, BOBS, kind)
    await component.settle()
    assert await subscriptions(component) == []


async def test_departure_while_the_link_was_down_ends_the_subscription(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute after the connection those who have not answered the probe count as offline."""
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    for user in (BOB, PHONE):
        await online(component, user)
        ok(await expiring(component, user))
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    await component.cut()
    await component.link()
    await online(component, PHONE)
    await component.settle()
    monkeypatch.setattr(component.app.parts.get(Presences), "_sleep", sleep)
    await component.app.parts.get(Presences).end_temporary()
    assert (pauses, await subscriptions(component)) == ([60.0], [PHONE])


async def test_departure_of_a_user_of_a_blocked_domain(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-061] The subscription ends, and so do those of other users that are read after it."""

    async def sleep(_pause_s: float) -> None:
        return

    eve, options = "eve@blocked.example", f"<options>{form(SUBSCRIBE_OPTIONS, expire='presence')}</options>"
    await component.create(ALICE, "news")
    for user in (f"{eve}/work", BOB):
        await befriend(component, user)
        await online(component, user)
        ok(await component.set(user, f"<subscribe node='news' jid='{bare(user)}'/>{options}"))
    await component.app.service.write(
        lambda tx, _context: privacy_rows.add_blocks(tx, ListKind.DENY, {"blocked.example"})
    )
    await component.cut()
    await component.link()
    monkeypatch.setattr(component.app.parts.get(Presences), "_sleep", sleep)
    await component.app.parts.get(Presences).end_temporary()
    rows = await component.app.service.read(lambda tx, _context: tx.temporary_subscriptions(0, 10))
    assert rows == []


@pytest.mark.parametrize("value", ["", "Presence", "presence ", "online", "1", "9" * 10_000])
async def test_unusual_ends_of_subscriptions(component: Component, value: str) -> None:
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news")
    options = form(SUBSCRIBE_OPTIONS, expire=value)
    answer = await component.set(BOB, f"<options node='news' jid='{BOBS}'>{options}</options>")
    assert answer.get("type") == "result" if not value else refusal(answer) == INVALID_OPTIONS


async def test_many_who_are_offline_are_held_in_small_transactions(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smartfeeds.push.audience.HELD_AT_ONCE", 2)
    await component.create(ALICE, "news", presence_based_delivery="true")
    users = [f"u{number}@example.org" for number in range(5)]
    for user in users:
        await befriend(component, user)
        await component.subscribe(user, "news")
    for item_id in ("one", "two"):
        await component.publish(ALICE, "news", item_id)
    assert len(await held(component)) == 5
    for user in users:
        await online(component, f"{user}/x")
        assert await received(component, user) == ["one", "two"]


async def test_alternating_presence_repeats_no_last_item(component: Component) -> None:
    """Otherwise a contact would receive a hundred times the bytes that it sends. A newer item is sent at once."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", send_last_published_item="on_sub_and_presence")
    await component.publish(ALICE, "news", "one")
    await component.subscribe(BOB, "news")
    away = f"<presence type='unavailable' from='{BOB}' to='{DOMAIN}'/>"
    await component.send(f"<presence from='{BOB}' to='{DOMAIN}'/>{away}" * 50)
    assert await received(component, BOB) == ["one"]
    await component.publish(ALICE, "news", "two")
    await online(component)
    assert await received(component, BOB) == ["two"]


@pytest.mark.parametrize("jid", [BOBS, BOB])
async def test_subscription_of_a_user_who_is_offline_ends_by_unavailable_presence(
    component: Component, jid: str
) -> None:
    """The server of the contact may answer the probe with it (RFC 6121 section 4.3.2)."""
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    ok(await expiring(component, jid))
    await offline(component, CAROL)
    await offline(component, PHONE if jid == BOB else BOB)
    assert await subscriptions(component) == ([BOB] if jid == BOB else [])
    await offline(component)
    assert await subscriptions(component) == []
