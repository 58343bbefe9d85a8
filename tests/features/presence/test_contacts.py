"""Presence of the service and of its contacts (RFC 6121 sections 3 and 4)."""

import pytest

from smartfeeds.core.contacts import Contact
from smartfeeds.features.presence import rows as contact_rows
from smartfeeds.features.presence.states import OnlineResource
from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.store.base import WriteTx
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    INFO,
    NODE_CONFIG,
    NS,
    PS,
    Component,
    Refusal,
    Starter,
    bare,
    form,
    ok,
    refusal,
)
from support.contacts import RESTRICTED, befriend, tell, told

NEWS = f"news@{DOMAIN}"
PRESENCE_REQUIRED = Refusal("auth", "not-authorized", "presence-subscription-required")
CLOSED_MODEL = Refusal("modify", "not-acceptable", "unsupported-access-model")


@pytest.mark.parametrize("address", [DOMAIN, NEWS])
async def test_subscribe_is_accepted_and_returned(component: Component, address: str) -> None:
    await tell(component, bare(BOB), "subscribe", address)
    assert await told(component, BOB) == [(address, "subscribed"), (address, ""), (address, "subscribe")]


async def test_repeated_subscribe_does_not_repeat_our_request(component: Component) -> None:
    """Otherwise two services that answer each other would never stop."""
    await befriend(component, BOB)
    await tell(component, bare(BOB), "subscribe")
    assert await told(component, BOB) == [(DOMAIN, "subscribed"), (DOMAIN, "")]


async def test_unsubscribe_ends_both_directions(component: Component) -> None:
    await befriend(component, BOB)
    await tell(component, BOB)
    await tell(component, bare(BOB), "unsubscribe")
    assert [kind for _, kind in await told(component, BOB)] == ["unsubscribed", "unavailable", "unsubscribe"]
    await tell(component, bare(BOB), "unsubscribed")
    await tell(component, BOB)
    await tell(component, bare(BOB), "unsubscribe")
    assert await told(component, BOB) == []
    assert component.app.parts.get(Presences).availability.resources(DOMAIN, bare(BOB)) == {}
    await tell(component, bare(BOB), "probe")
    assert await told(component, BOB) == [(DOMAIN, "unsubscribed")]


async def test_probe_of_a_contact_gets_our_presence(component: Component) -> None:
    await befriend(component, BOB)
    await tell(component, BOB, "probe")
    assert await told(component, BOB) == [(DOMAIN, "")]
    await tell(component, BOB, "probe", NEWS)
    assert await told(component, BOB) == [(NEWS, "unsubscribed")]


async def test_resources_of_contacts_come_and_go(component: Component) -> None:
    await befriend(component, BOB)
    phone = f"{bare(BOB)}/phone"
    await tell(component, BOB, inner="<priority>5</priority>")
    await tell(component, phone, inner="<priority>-1</priority>")
    await component.settle()
    resources = component.app.parts.get(Presences).availability.resources
    assert resources(DOMAIN, bare(BOB)) == {"work": OnlineResource(5), "phone": OnlineResource(-1)}
    await tell(component, phone, "unavailable")
    await component.settle()
    assert resources(DOMAIN, bare(BOB)) == {"work": OnlineResource(5)}
    await tell(component, bare(BOB), "error")
    await component.settle()
    assert resources(DOMAIN, bare(BOB)) == {}


async def test_presence_of_strangers_is_not_stored(component: Component) -> None:
    await befriend(component, BOB)
    await tell(component, ALICE)
    await tell(component, BOB, to=NEWS)
    for kind in ("subscribed", "unsubscribed", "unsubscribe", "unavailable", "error", "nonsense"):
        await tell(component, ALICE, kind)
    assert await told(component, ALICE) == []
    availability = component.app.parts.get(Presences).availability
    assert availability.resources(DOMAIN, bare(ALICE)) == availability.resources(NEWS, bare(BOB)) == {}


async def test_contact_that_refuses_our_request_is_not_asked_again(component: Component) -> None:
    await befriend(component, BOB)
    await tell(component, bare(BOB), "unsubscribed")
    await tell(component, BOB)
    await component.settle()
    assert component.app.parts.get(Presences).availability.resources(DOMAIN, bare(BOB)) == {}
    await component.cut()
    await component.link()
    assert await told(component, BOB) == [(DOMAIN, "")]


async def test_reconnect_greets_and_probes_all_contacts(component: Component) -> None:
    await befriend(component, BOB)
    await tell(component, BOB)
    await tell(component, bare(ALICE), "subscribe", NEWS)
    await told(component, ALICE)
    await component.cut()
    await component.link()
    assert component.app.parts.get(Presences).availability.resources(DOMAIN, bare(BOB)) == {}
    assert await told(component, BOB) == [(DOMAIN, ""), (DOMAIN, "probe")]
    assert await told(component, ALICE) == [(NEWS, ""), (NEWS, "subscribe")]
    await tell(component, BOB)
    await component.settle()
    assert component.app.parts.get(Presences).availability.resources(DOMAIN, bare(BOB)) == {"work": OnlineResource(0)}


async def test_contacts_survive_a_restart(component: Component, start: Starter) -> None:
    await befriend(component, BOB)
    again = await start.again(component)
    assert await told(again, BOB) == [(DOMAIN, ""), (DOMAIN, "probe")]


async def test_stop_sends_unavailable_to_all_contacts(component: Component) -> None:
    await befriend(component, BOB)
    await component.app.parts.get(Presences).leave()
    assert await told(component, BOB) == [(DOMAIN, "unavailable")]


async def test_contacts_are_greeted_in_pieces(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr("smartfeeds.features.presence.xmpp.GREETED", 2)
    monkeypatch.setattr(component.app.parts.get(Presences), "_sleep", sleep)
    users = [f"u{number}@example.org" for number in range(5)]
    for user in users:
        await tell(component, user, "subscribe")
    await component.settle()
    component.presences.clear()
    await component.app.parts.get(Presences).resume()
    for user in users:
        assert await told(component, user) == [(DOMAIN, ""), (DOMAIN, "subscribe")]
    assert pauses == [0.1, 0.1]


async def test_only_those_named_by_the_operator_may_subscribe(start: Starter) -> None:
    component = await start(pubsub={"contacts": ["example.org"]})
    await tell(component, bare(EVE), "subscribe")
    assert await told(component, EVE) == [(DOMAIN, "unsubscribed")]
    await befriend(component, BOB)


async def test_contacts_of_a_jid_and_of_a_domain_are_limited(start: Starter) -> None:
    component = await start(limits={"contacts_per_jid": 2, "contacts_per_domain": 3})
    for address, kind in ((DOMAIN, "subscribed"), (NEWS, "subscribed"), (f"more@{DOMAIN}", "unsubscribed")):
        await tell(component, bare(BOB), "subscribe", address)
        assert (await told(component, BOB))[0] == (address, kind)
    await befriend(component, ALICE)
    await tell(component, "carol@example.org", "subscribe")
    assert await told(component, "carol@example.org") == [(DOMAIN, "unsubscribed")]
    await tell(component, bare(ALICE), "unsubscribe")
    await told(component, ALICE)
    await befriend(component, "carol@example.org")


async def test_flood_of_presence_writes_one_row(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a real change of a contact is written."""
    rows: list[Contact] = []
    put_contact = contact_rows.put

    def put(tx: WriteTx, contact: Contact) -> None:
        rows.append(contact)
        put_contact(tx, contact)

    monkeypatch.setattr(contact_rows, "put", put)
    for _ in range(20):
        await tell(component, bare(BOB), "subscribe")
        await tell(component, BOB)
        await tell(component, BOB, "unavailable")
    await component.settle()
    assert len(rows) == 1


async def test_new_contact_receives_the_events_of_its_earlier_subscription(start: Starter) -> None:
    """Nothing of the node changes when a subscriber becomes a contact, so its audience may not be remembered."""
    component = await start(pubsub=RESTRICTED)
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news")
    await component.configure(ALICE, "news", access_model="presence")
    await component.publish(ALICE, "news", "one")
    assert await component.events(bare(BOB)) == []

    await befriend(component, BOB)
    await component.publish(ALICE, "news", "two")

    (event,) = await component.events(bare(BOB))
    assert [item.get("id") for item in event.iter(f"{{{PS}#event}}item")] == ["two"]


@pytest.mark.parametrize("priority", ["", "x", "128", "-129", "9" * 400, "1 2", "٣"])
async def test_malformed_priorities_count_as_zero(component: Component, priority: str) -> None:
    await befriend(component, BOB)
    await tell(component, BOB, inner=f"<priority>{priority}</priority>")
    await component.settle()
    assert component.app.parts.get(Presences).availability.resources(DOMAIN, bare(BOB)) == {"work": OnlineResource(0)}


async def test_malformed_addresses_close_nothing(component: Component) -> None:
    for sender, to in (("@@", DOMAIN), ("a b@c", DOMAIN), ("", DOMAIN), (bare(BOB), "elsewhere.example")):
        for kind in ("", "subscribe", "probe", "unavailable"):
            await tell(component, sender, kind, to)
    await component.settle()
    assert component.presences == []


async def test_presence_node_admits_contacts_of_the_service(start: Starter) -> None:
    """XEP-0060 sections 4.5, 6.1.3.4 and 6.5.9.3."""
    component = await start(pubsub=RESTRICTED)
    await component.create(ALICE, "diary", access_model="presence")
    await component.publish(ALICE, "diary", "one")
    await befriend(component, CAROL, NEWS)
    subscribe = f"<subscribe node='diary' jid='{bare(BOB)}'/>"
    for user in (BOB, CAROL):
        assert refusal(await component.get(user, "<items node='diary'/>")) == PRESENCE_REQUIRED
    assert refusal(await component.set(BOB, subscribe)) == PRESENCE_REQUIRED
    await befriend(component, BOB)
    assert await component.item_ids(BOB, "diary") == ["one"]
    assert await component.subscribe(BOB, "diary") == "subscribed"
    await component.publish(ALICE, "diary", "two")
    assert len(await component.events(bare(BOB))) == 1


async def test_former_contact_loses_its_subscriptions_to_presence_nodes(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other subscriptions, and those of owners and members, remain."""
    monkeypatch.setattr("smartfeeds.features.presence.requests.STEP", 2)
    component = await start(pubsub=RESTRICTED)
    await befriend(component, BOB)
    models = {"diary": "presence", "news": "open", "members": "presence", "photos": "presence"}
    for node, model in models.items():
        await component.create(ALICE, node, access_model=model)
    await component.affiliate(ALICE, "members", BOB, "member")
    for node in models:
        await component.subscribe(BOB, node)
    await tell(component, bare(BOB), "unsubscribe")
    assert len(await component.events(bare(BOB))) == 2
    for node in models:
        await component.publish(ALICE, node, "one")
    nodes = [each.xpath("string(.//@node)") for each in await component.events(bare(BOB))]
    assert sorted(nodes) == ["members", "news"]


@pytest.mark.parametrize(
    ("contacts", "model", "reason"),
    [
        ("*", "presence", "everybody may subscribe to the presence of this service"),
        ("*", "presence", "ask the operator to restrict the setting pubsub.contacts"),
        ("*", "roster", "cannot read the contact list"),
        ("example.org", "roster", "cannot read the contact list"),
        ("example.org", "x", "open, authorize, whitelist, presence"),
    ],
)
async def test_model_that_cannot_close_a_node_is_refused_with_the_reason(
    start: Starter, contacts: str, model: str, reason: str
) -> None:
    """[xep-map 62]"""
    component = await start(pubsub={"contacts": [contacts]})
    options = form(NODE_CONFIG, access_model=model)
    answer = await component.set(ALICE, f"<create node='diary'/><configure>{options}</configure>")
    assert refusal(answer) == CLOSED_MODEL
    assert reason in "".join(answer[-1].itertext())


async def test_presence_node_stays_closed_when_everybody_may_become_a_contact(start: Starter) -> None:
    component = await start(pubsub=RESTRICTED)
    await component.create(ALICE, "diary", access_model="presence")
    await befriend(component, BOB)
    again = await start.again(component)
    await told(again, BOB)
    await befriend(again, EVE)
    for user in (BOB, EVE):
        assert refusal(await again.get(user, "<items node='diary'/>")) == PRESENCE_REQUIRED
    ok(await again.get(ALICE, "<items node='diary'/>"))


@pytest.mark.parametrize(("contacts", "accepted"), [("example.org", True), ("*", False)])
async def test_access_model_presence_is_offered_where_it_is_accepted(
    start: Starter, contacts: str, accepted: bool
) -> None:
    """[xep-map 232]; XEP-0060 4.5, 8.2.1, 10: in the forms of a node and of a new node, and in the features."""
    component = await start(pubsub={"contacts": [contacts]})
    await component.create(ALICE, "diary", access_model="presence" if accepted else "open")

    forms = [ok(await component.owner_get(ALICE, request)) for request in ("<configure node='diary'/>", "<default/>")]
    info = ok(await component.ask(ALICE, "get", f"<query xmlns='{INFO}'/>"))

    for answer in forms:
        options = answer.xpath(".//x:field[@var='pubsub#access_model']/x:option/x:value/text()", namespaces=NS)
        assert ("presence" in options) is accepted
        assert {"open", "authorize", "whitelist"} <= set(options)
    announced = {feature.get("var") for feature in info.iter("{*}feature")}
    assert (f"{PS}#access-presence" in announced) is accepted
