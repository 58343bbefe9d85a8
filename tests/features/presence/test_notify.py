"""Notifications for resources that request them by `NODE+notify` (XEP-0060 section 9.2, XEP-0115)."""

from xml.sax.saxutils import quoteattr

import pytest
from lxml import etree

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.xmpp.caps import Caps, DiscoInfo, Identity
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    INFO,
    NS,
    Component,
    Element,
    Starter,
    bare,
    headers,
    ok,
)
from support.contacts import RESTRICTED, befriend, tell, told

BOBS = bare(BOB)
PHONE = f"{BOBS}/phone"
CLIENT = "https://client.example"
CLIENT_IDENTITY = "<identity category='client' type='pc' name='Client'/>"
NEWS = f"news@{DOMAIN}"


def info_of(*nodes: str) -> tuple[str, str]:
    """The information of a client that requests these nodes, as XML, and its hash."""
    names = (INFO, *(f"{node}+notify" for node in nodes))
    ver = DiscoInfo((Identity("client", "pc", "", "Client"),), names).verification("sha-1")
    assert ver is not None
    return CLIENT_IDENTITY + "".join(f"<feature var={quoteattr(name)}/>" for name in names), ver


def caps(ver: str, function: str = "sha-1", node: str = CLIENT) -> str:
    return f"<c xmlns='http://jabber.org/protocol/caps' hash='{function}' node='{node}' ver='{ver}'/>"


async def come(component: Component, *nodes: str, user: str = BOB, to: str = DOMAIN) -> None:
    """A resource comes online with a client that requests these nodes."""
    component.clock.advance(1)  # what was published before is older than the presence
    component.infos[user], ver = info_of(*nodes)
    await tell(component, user, to=to, inner=caps(ver))
    await component.settle()


def ids(messages: list[Element]) -> list[tuple[str, str]]:
    """The node and the id of each item or retraction."""
    return [
        (str(items.get("node")), str(each.get("id")))
        for message in messages
        for items in message.iterfind("ev:event/ev:items", NS)
        for each in items
    ]


async def received(component: Component, address: str = BOB) -> list[str]:
    return [item_id for _, item_id in ids(await component.events(address))]


@pytest.fixture
async def news(component: Component) -> Component:
    """Bob is a contact, and there is a node without subscribers."""
    await befriend(component, BOB)
    await component.create(ALICE, "news")
    return component


async def test_resource_receives_what_it_requests(news: Component) -> None:
    """Without a subscription, at the full JID; what was published before is not sent."""
    await news.publish(ALICE, "news", "zero")
    await come(news, "news", "missing")
    await news.publish(ALICE, "news", "one")
    await news.publish(ALICE, "news", "two")
    messages = await news.events(BOB)
    assert ids(messages) == [("news", "one"), ("news", "two")]
    assert {message.get("from") for message in messages} == {DOMAIN}
    assert headers(messages[1])["PreviousCursor"] == headers(messages[0])["LastCursor"]
    await news.retract(ALICE, "news", "one")
    assert await received(news) == ["one"]
    assert await received(news, BOBS) == []
    ok(await news.owner_set(ALICE, "<delete node='news'/>"))
    (message,) = await news.events(BOB)
    assert message.find("ev:event/ev:delete", NS) is not None


async def test_each_resource_receives_what_it_requests_itself(news: Component) -> None:
    await news.create(ALICE, "mood")
    await come(news, "news")
    await come(news, "mood", "news", user=PHONE)
    for node in ("news", "mood"):
        await news.publish(ALICE, node, node)
    assert (await received(news), sorted(await received(news, PHONE))) == (["news"], ["mood", "news"])
    await tell(news, PHONE, "unavailable")
    await news.publish(ALICE, "news", "two")
    assert (await received(news), await received(news, PHONE)) == (["two"], [])


async def test_node_that_is_created_later_counts(news: Component) -> None:
    await come(news, "later")
    await news.create(ALICE, "later", kind="generic")
    await news.publish(ALICE, "later", "one")
    assert await received(news) == ["one"]
    await news.publish(ALICE, "news", "one")
    assert await received(news) == []


async def test_marks_of_requested_nodes_are_stored(news: Component, start: Starter) -> None:
    """Otherwise a restart would repeat everything."""
    await come(news, "news")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]
    again = await start.again(news)
    await told(again, BOB)
    await come(again, "news")
    assert await received(again) == []
    await again.publish(ALICE, "news", "two")
    assert await received(again) == ["two"]


async def test_subscriber_receives_nothing_twice(news: Component) -> None:
    await come(news, "news")
    await news.subscribe(BOB, "news")
    await news.publish(ALICE, "news", "one")
    assert (await received(news), await received(news, BOBS)) == ([], ["one"])
    ok(await news.set(BOB, f"<unsubscribe node='news' jid='{BOBS}'/>"))
    await news.subscribe(BOB, "news?order=modified")
    await news.publish(ALICE, "news", "two")
    assert (await received(news), await received(news, BOBS)) == (["two"], ["two"])


@pytest.mark.parametrize("model", ["whitelist", "authorize", "presence"])
async def test_only_readers_receive(start: Starter, model: str) -> None:
    component = await start(pubsub=RESTRICTED)
    for user, address in ((BOB, DOMAIN), (CAROL, NEWS)):
        await befriend(component, user, address)
    await component.create(ALICE, "news", access_model=model)
    await come(component, "news")
    await come(component, "news", user=CAROL, to=NEWS)
    await component.publish(ALICE, "news", "one")
    contact_reads = ["one"] if model == "presence" else []
    assert (await received(component), await received(component, CAROL)) == (contact_reads, [])
    for user in (BOB, CAROL):
        await component.affiliate(ALICE, "news", user, "member")
    await component.publish(ALICE, "news", "two")
    assert (await received(component), await received(component, CAROL)) == (["two"], ["two"])
    await component.affiliate(ALICE, "news", BOB, "outcast")
    await component.publish(ALICE, "news", "three")
    assert (await received(component), await received(component, CAROL)) == ([], ["three"])


async def test_notifications_come_from_the_address_of_the_contact(news: Component) -> None:
    await befriend(news, CAROL, NEWS)
    await come(news, "news", user=CAROL, to=NEWS)
    await news.publish(ALICE, "news", "one")
    (message,) = await news.events(CAROL)
    assert message.get("from") == NEWS


async def test_strangers_are_not_asked(news: Component) -> None:
    await come(news, "news", user=CAROL)
    await news.publish(ALICE, "news", "one")
    assert (await received(news, CAROL), news.asked) == ([], [])


@pytest.mark.parametrize("kind", ["unsubscribe", "unsubscribed"])
async def test_end_of_the_contact_ends_notifications(news: Component, kind: str) -> None:
    await come(news, "news")
    await tell(news, BOBS, kind)
    await news.settle()
    await news.publish(ALICE, "news", "one")
    assert await received(news) == []


async def test_equal_capabilities_are_requested_once(news: Component) -> None:
    """XEP-0115 section 5.4: once verified, they hold for everybody."""
    await befriend(news, CAROL)
    await come(news, "news")
    _, ver = info_of("news")
    await tell(news, BOB, inner=f"<show>away</show>{caps(ver)}")
    for user in (PHONE, CAROL):
        await tell(news, user, inner=caps(ver, node="https://other.example"))
    await news.settle()
    assert news.asked == [(BOB, f"{CLIENT}#{ver}")]
    await news.publish(ALICE, "news", "one")
    for user in (BOB, PHONE, CAROL):
        assert await received(news, user) == ["one"]
    await news.cut()
    await news.link()
    await tell(news, PHONE, inner=caps(ver))
    await news.publish(ALICE, "news", "two")
    assert (await received(news, PHONE), await received(news)) == (["two"], [])
    assert len(news.asked) == 1


async def test_presence_without_capabilities_keeps_the_former_ones(news: Component) -> None:
    """XEP-0115 section 8.4; other capabilities replace them."""
    await come(news, "news")
    await tell(news, BOB, inner="<show>dnd</show>")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]
    await come(news)
    await news.publish(ALICE, "news", "two")
    assert await received(news) == []


async def test_forged_information_is_discarded_and_the_next_client_is_asked(news: Component) -> None:
    """XEP-0115 section 5.4."""
    await befriend(news, CAROL)
    _, ver = info_of("news")
    news.infos[BOB], _ = info_of("news", "more")
    await tell(news, BOB, inner=caps(ver))
    await news.settle()
    await news.publish(ALICE, "news", "one")
    assert await received(news) == []
    await come(news, "news", user=CAROL)
    assert [to for to, _ in news.asked] == [BOB, CAROL]
    await news.publish(ALICE, "news", "two")
    assert await received(news, CAROL) == ["two"]


@pytest.mark.parametrize(
    "info",
    [
        "",
        "<identity/><identity/>",
        "<feature/><feature/>",
        "<feature var='news+notify'/>" * 2,
        "".join(f"<feature var='n{number}+notify'/>" for number in range(2_500)),
        "<x xmlns='jabber:x:data'><field var='FORM_TYPE' type='hidden'/></x>",
        "<x xmlns='jabber:x:data'><field/><field var='a'><value/></field></x>" * 2,
        "<feature var='&lt;'/>",
    ],
)
async def test_hostile_information_gives_no_notifications(news: Component, info: str) -> None:
    news.infos[BOB] = info
    await tell(news, BOB, inner=caps(info_of("news")[1]))
    await news.settle()
    await news.publish(ALICE, "news", "one")
    assert await received(news) == []


@pytest.mark.parametrize(
    "element",
    [
        caps("x" * 1_001),
        caps("", "sha-1"),
        caps("x", ""),
        caps("x", node=""),
        "<c xmlns='http://jabber.org/protocol/caps'/>",
        "<c xmlns='http://jabber.org/protocol/caps' node='a' ver='0.9' ext='b c'/>",
    ],
)
async def test_hostile_capabilities_are_not_requested(news: Component, element: str) -> None:
    await tell(news, BOB, inner=element)
    await news.settle()
    assert news.asked == []


async def test_unknown_hash_function_gives_no_notifications(news: Component) -> None:
    news.infos[BOB], ver = info_of("news")
    await tell(news, BOB, inner=caps(ver, "crc-32"))
    await news.settle()
    await news.publish(ALICE, "news", "one")
    assert await received(news) == []


async def test_requests_to_one_user_are_limited(news: Component) -> None:
    """A client that invents capabilities causes 20 requests in ten minutes, over all its resources."""
    for number in range(60):
        await tell(news, (BOB, PHONE)[number % 2], inner=caps(f"invented-{number}"))
        await news.settle()
    assert len(news.asked) == 20
    news.clock.advance(601)
    await come(news, "news")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]


async def test_client_that_does_not_answer_holds_nobody_up(news: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    capabilities = news.app.parts.get(Presences).capabilities
    call = capabilities._call

    async def answer(kind: str, to: str, payload: bytes, timeout_s: float) -> Element:
        if to == BOB:
            raise TimeoutError
        return await call(kind, to, payload, timeout_s)

    monkeypatch.setattr(capabilities, "_call", answer)
    await come(news, "news")
    await come(news, "news", user=PHONE)
    await news.publish(ALICE, "news", "one")
    assert (await received(news), await received(news, PHONE)) == ([], ["one"])


async def test_lost_link_ends_requests(news: Component) -> None:
    news.silent.add(BOB)
    await tell(news, BOB, inner=caps(info_of("news")[1]))
    await news._round_trip()
    await news.app.router.drain()
    assert len(news.asked) == 1
    await news.deaf()
    await news.server.stop_listening()
    await news.session.end()
    await news.app.stream.wait_closed()
    await news.app.parts.get(Presences).idle()
    await news.link()
    news.silent.clear()
    await come(news, "news")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]


async def test_last_item_is_sent_with_the_first_presence(news: Component) -> None:
    """Only by nodes with `on_sub_and_presence`, and not again for an equal presence."""
    await news.create(ALICE, "mood", send_last_published_item="on_sub_and_presence")
    await news.create(ALICE, "secret", send_last_published_item="on_sub_and_presence", access_model="whitelist")
    for node in ("news", "mood", "secret"):
        await news.publish(ALICE, node, node)
    await come(news, "news", "mood", "secret", "missing")
    (message,) = await news.events(BOB)
    assert ids([message]) == [("mood", "mood")] and message.find("delay:delay", NS) is not None
    await come(news, "news", "mood", "secret", "missing")
    assert await received(news) == []
    await news.publish(ALICE, "mood", "next")
    assert await received(news) == ["next"]


async def test_subscriber_receives_the_last_item_once(news: Component) -> None:
    await news.create(ALICE, "mood", send_last_published_item="on_sub_and_presence")
    await news.subscribe(BOB, "mood")
    await news.publish(ALICE, "mood", "one")
    await news.events(BOBS)
    await come(news, "mood")
    assert await received(news) == ["one"]


async def test_many_resources_are_read_in_parts(news: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartfeeds.push.sender.PAGE", 2)
    users = [f"{BOBS}/r{number}" for number in range(7)]
    for user in users:
        await come(news, "news", user=user)
    for item_id in ("one", "two"):
        await news.publish(ALICE, "news", item_id)
    for user in users:
        assert await received(news, user) == ["one", "two"]


async def test_presence_of_the_domain_names_our_capabilities(component: Component) -> None:
    """XEP-0115 section 6.2. The information of other addresses changes with their node, so they name none."""
    await befriend(component, CAROL, NEWS)
    for address, named in ((DOMAIN, True), (NEWS, False)):
        await tell(component, bare(BOB), "subscribe", address)
        await component.settle()
        (available,) = [each for each in component.presences if each.get("from") == address and not each.get("type")]
        element = available.find("{http://jabber.org/protocol/caps}c")
        assert (element is not None) is named
        component.presences.clear()
        if element is None:
            continue
        node = f"{element.get('node')}#{element.get('ver')}"
        answer = ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='{node}'/>"))
        assert answer[0].get("node") == node
        assert {each.get("var") for each in answer[0]} >= {INFO, "http://jabber.org/protocol/caps"}


@pytest.mark.parametrize("is_cached", [True, False])
async def test_former_contact_of_the_domain_reads_no_presence_node(start: Starter, is_cached: bool) -> None:
    """Also while the user remains a contact of another address."""
    component = await start(pubsub=RESTRICTED)
    for address in (DOMAIN, NEWS):
        await befriend(component, BOB, address)
    await component.create(ALICE, "news", access_model="presence")
    await come(component, "news")
    await tell(component, BOB, to=NEWS)
    if is_cached:
        await component.publish(ALICE, "news", "one")
        assert await received(component) == ["one"]
    await tell(component, BOBS, "unsubscribe")
    await component.settle()
    await component.publish(ALICE, "news", "secret")
    assert await received(component) == []
    reply = await component.get(BOB, "<items node='news'/>")
    assert reply.get("type") == "error"


async def test_request_ends_with_the_contact_of_its_address(news: Component) -> None:
    """The resource is still available at another address, so notifications come from there."""
    await befriend(news, BOB, NEWS)
    await come(news, "news")
    await tell(news, BOB, to=NEWS)
    await tell(news, BOBS, "unsubscribe")
    await news.settle()
    await news.publish(ALICE, "news", "one")
    (message,) = await news.events(BOB)
    assert (ids([message]), message.get("from")) == ([("news", "one")], NEWS)
    await tell(news, BOBS, "unsubscribe", NEWS)
    await news.settle()
    await news.publish(ALICE, "news", "two")
    assert await received(news) == []


async def test_unknown_capabilities_end_the_former_requests(news: Component) -> None:
    await come(news, "news")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]
    news.infos.pop(BOB)
    await tell(news, BOB, inner=caps("AAAAAAAAAAAAAAAAAAAAAAAAAAA="))
    await news.settle()
    await news.publish(ALICE, "news", "two")
    assert await received(news) == []


async def test_forged_information_with_the_right_hash_is_discarded(news: Component) -> None:
    """XEP-0115 section 7: its sender would end the notifications of all users of the client."""
    await befriend(news, CAROL)
    _, ver = info_of("news")
    news.infos[CAROL] = f"<identity category='client' type='pc' name='Client&lt;{INFO}&lt;news+notify'/>"
    await tell(news, CAROL, inner=caps(ver))
    await news.settle()
    await come(news, "news")
    await news.publish(ALICE, "news", "one")
    assert await received(news) == ["one"]


async def test_alternating_capabilities_repeat_no_item(news: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """They also cause one task, not one for each presence."""
    names = [f"n{number}" for number in range(5)]
    for name in names:
        await news.create(ALICE, name, send_last_published_item="on_sub_and_presence")
        await news.publish(ALICE, name, name)
    await come(news, *names)
    await come(news, "other")
    assert sorted(await received(news)) == names
    versions = [info_of(*names)[1], info_of("other")[1]]
    presences, peak = news.app.parts.get(Presences), 0
    note = presences.capabilities.note

    def count(sender: Jid, address: str, capabilities: Caps) -> None:
        nonlocal peak
        note(sender, address, capabilities)
        peak = max(peak, len(presences._tasks))

    monkeypatch.setattr(presences.capabilities, "note", count)
    await news.send("".join(f"<presence from='{BOB}' to='{DOMAIN}'>{caps(ver)}</presence>" for ver in versions * 100))
    assert (await received(news), peak) == ([], 1)
    news.clock.advance(60)
    await tell(news, BOB, inner=caps(versions[0]))
    assert sorted(await received(news)) == names


async def test_waiting_request_keeps_the_nodes_of_the_former_one(news: Component) -> None:
    """Two changes of capabilities at once: the item of the first node is not lost."""
    for name in ("mood", "tune"):
        await news.create(ALICE, name, send_last_published_item="on_sub_and_presence")
        await news.publish(ALICE, name, name)
    await befriend(news, CAROL)
    for nodes in (("mood",), ("mood", "tune")):
        await come(news, *nodes, user=CAROL)
    first, second = (info_of(*nodes)[1] for nodes in (("mood",), ("mood", "tune")))
    await news.send("".join(f"<presence from='{BOB}' to='{DOMAIN}'>{caps(ver)}</presence>" for ver in (first, second)))
    assert sorted(await received(news)) == ["mood", "tune"]


async def test_newest_item_comes_once_from_several_processes(component: Component) -> None:
    """[TOP-013] The process that has the presence sends it. The others only note what the resource requests."""
    await befriend(component, BOB)
    await component.create(ALICE, "news", send_last_published_item="on_sub_and_presence")
    await component.publish(ALICE, "news", "one")
    component.clock.advance(1)  # what was published before is older than the presence
    component.infos[BOB], ver = info_of("news")
    presence = f"<presence xmlns='jabber:component:accept' from='{BOB}' to='{DOMAIN}'>{caps(ver)}</presence>"
    bob = parse_jid(BOB)
    assert bob is not None
    component.app.parts.get(Presences).note_shared(etree.fromstring(presence), bob, DOMAIN)
    await component.settle()
    assert await received(component) == []
    await component.publish(ALICE, "news", "two")
    assert await received(component) == ["two"]
