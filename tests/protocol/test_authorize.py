"""Requests to subscribe that an owner decides, through the whole component (XEP-0060 8.6, 8.7)."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest
import pytest_asyncio
from lxml import etree
from structlog.testing import capture_logs

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.service import authorization
from smartfeeds.service.authorization import ResendPending
from smartfeeds.service.requests import Subscribe
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DATA,
    DOMAIN,
    EVE,
    NS,
    PS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    body,
    fields,
    ok,
    refusal,
    submit,
)
from support.subscribing import BOBS, listed, pubsub, request, subscription

pytestmark = pytest.mark.shared

TYPE = f"{PS}#subscribe_authorization"
CMD = "http://jabber.org/protocol/commands"
HINTS = "urn:xmpp:hints"
FORBIDDEN = Refusal("auth", "forbidden")


async def asked(component: Component, owner: str = ALICE) -> list[dict[str, list[str]]]:
    """The forms that an owner received since the last look."""
    messages = await component.events(bare(owner))
    return [fields(message) for message in messages if message.find("x:x", NS) is not None]


async def states(component: Component, address: str = BOBS) -> list[str | None]:
    """The states of which an address was notified since the last look."""
    found = [message.find("ev:event/ev:subscription", NS) for message in await component.events(address)]
    return [each.get("subscription") for each in found if each is not None]


def answer(user: str = ALICE, *, kind: str = "submit", type_: str = "", to: str = DOMAIN, **values: str) -> str:
    """A message with the form that an owner fills in."""
    given = {"node": "comments", "subscriber_jid": BOBS, "allow": "true"} | values
    form = {"FORM_TYPE": [TYPE]} | {f"pubsub#{name}": [value] for name, value in given.items()}
    attribute = f" type='{type_}'" if type_ else ""
    return f"<message from='{user}' to='{to}' id='a1'{attribute}>{submit(form, kind)}</message>"


async def reasons(component: Component, *stanzas: str) -> list[str]:
    """Sends messages; why they were ignored."""
    with capture_logs() as logs:
        for stanza in stanzas:
            await component.send(stanza)
        await component.settle()
    return [entry["reason"] for entry in logs if entry["event"] == "message_ignored"]


@pytest_asyncio.fixture(loop_scope="module")
async def waiting(component: Component) -> Component:
    """Bob waits for Alice."""
    await component.create(ALICE, "comments", access_model="authorize")
    ok(await request(component))
    return component


async def test_every_owner_gets_one_form(component: Component) -> None:
    """[xep-map 105]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.affiliate(ALICE, "comments", CAROL, "owner")
    await component.affiliate(ALICE, "comments", EVE, "publisher")

    ok(await request(component))

    (message,) = await component.events(bare(ALICE))
    form = message.find("x:x", NS)
    assert form is not None and form.get("type") == "form"
    kinds = {field.get("var"): field.get("type") for field in form.iterfind("x:field", NS)}
    assert kinds == {
        "FORM_TYPE": "hidden",
        "pubsub#subid": "hidden",
        "pubsub#node": "text-single",
        "pubsub#subscriber_jid": "jid-single",
        "pubsub#allow": "boolean",
    }
    values = fields(message)
    assert values.pop("subid") != [""]
    assert values == {"FORM_TYPE": [TYPE], "node": ["comments"], "subscriber_jid": [BOBS], "allow": ["false"]}
    assert (message.get("type"), message.get("from")) == ("normal", DOMAIN)
    assert message.find("c:body", NS) is None
    assert form.findtext("x:instructions", namespaces=NS) == (
        f"{BOBS} asks to subscribe to comments. The request waits until an owner decides."
    )
    assert message.find(f"{{{HINTS}}}store") is not None
    assert [form["subscriber_jid"] for form in await asked(component, CAROL)] == [[BOBS]]
    assert await component.events(bare(EVE)) == []
    assert refusal(await request(component)) == Refusal("auth", "not-authorized", "pending-subscription")
    assert await asked(component) == []


@pytest.mark.parametrize("node", ["a b", 'it\'s <b> & "c"', "100%", "é\U0001f600", "comments?a=b", "n" * 1_023])
async def test_request_for_a_node_of_any_name_is_answered(component: Component, node: str) -> None:
    """[xep-map 105] [xep-map 106]"""
    jid = f"{BOBS}/my 'phone' & <more>"
    await component.create(ALICE, node, access_model="authorize", kind="generic")
    answered = await component.subscribe(BOB, node, jid)

    (form,) = await asked(component)

    assert (answered, form["node"], form["subscriber_jid"]) == ("pending", [node], [jid])
    assert await reasons(component, answer(node=node, subscriber_jid=jid, subid=form["subid"][0])) == []
    assert await states(component, jid) == ["subscribed"]


async def test_request_reaches_owners_after_a_lost_link_and_a_restart(start: Starter) -> None:
    """[xep-map 105]: the request is durable before the subscriber has its answer."""
    component = await start()
    await component.create(ALICE, "comments", access_model="authorize")
    await component.cut()
    subscriber = parse_jid(BOB)
    assert subscriber is not None
    await component.app.service.handle(Subscribe(subscriber, DOMAIN, "comments", BOBS))

    component = await start.again(component)

    assert [fields(message)["subscriber_jid"] for message in await component.next_event(bare(ALICE))] == [[BOBS]]
    assert await asked(component) == []


@pytest.mark.parametrize("allow", ["true", "1"])
@pytest.mark.parametrize("with_subid", [True, False])
async def test_owner_approves(waiting: Component, allow: str, with_subid: bool) -> None:
    """[xep-map 106]"""
    (form,) = await asked(waiting)
    subid = {"subid": form["subid"][0]} if with_subid else {}

    assert await reasons(waiting, answer(allow=allow, **subid)) == []

    assert await states(waiting) == ["subscribed"]
    assert await listed(waiting) == [("comments", BOBS, "subscribed")]
    await waiting.publish(ALICE, "comments", "one")
    assert len(await waiting.events(BOBS)) == 1


@pytest.mark.parametrize("allow", ["false", "0"])
async def test_owner_denies_and_the_user_may_ask_again(waiting: Component, allow: str) -> None:
    """[xep-map 106]"""
    (form,) = await asked(waiting)

    assert await reasons(waiting, answer(allow=allow)) == []

    assert await states(waiting) == ["none"]
    assert await listed(waiting) == []
    assert body(ok(await request(waiting))) == [pubsub(subscription(state="pending"))]
    (second,) = await asked(waiting)
    assert second["subid"] != form["subid"]
    late = await reasons(waiting, answer(subid=form["subid"][0]))
    assert late == ["there is no pending request of this address; it was answered or withdrawn"]
    assert await listed(waiting) == [("comments", BOBS, "pending")]
    assert await reasons(waiting, answer(subid=second["subid"][0])) == []
    assert await states(waiting) == ["subscribed"]


async def test_first_answer_of_the_owners_counts(waiting: Component) -> None:
    """[xep-map 107] XEP-0060 12.13."""
    await waiting.affiliate(ALICE, "comments", CAROL, "owner")

    ignored = await reasons(waiting, answer(CAROL), answer(allow="false"), answer(allow="true"))

    assert ignored == ["there is no pending request of this address; it was answered or withdrawn"] * 2
    assert await states(waiting) == ["subscribed"]


async def test_cancelled_form_leaves_the_request_pending(waiting: Component) -> None:
    """[xep-map 106]"""
    assert await reasons(waiting, answer(kind="cancel")) == ["the form is cancelled"]
    assert await listed(waiting) == [("comments", BOBS, "pending")]
    assert await states(waiting) == []


@pytest.mark.parametrize("affiliation", ["none", "member", "publisher", "publish-only", "outcast"])
async def test_answer_of_a_user_who_is_no_owner_is_ignored(waiting: Component, affiliation: str) -> None:
    """[xep-map 107]"""
    await waiting.affiliate(ALICE, "comments", CAROL, affiliation)

    assert await reasons(waiting, answer(CAROL), answer(BOB)) == ["forbidden"] * 2
    assert await listed(waiting) == [("comments", BOBS, "pending")]
    assert await states(waiting) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"allow": "maybe"}, "the field pubsub#allow must be true or false"),
        ({"allow": ""}, "the field pubsub#allow must be true or false"),
        ({"node": ""}, "the name of the node is missing"),
        ({"node": "missing"}, "no such node, or it is closed to you"),
        ({"node": "x" * 100_000}, "no such node, or it is closed to you"),
        (
            {"node": "comments?order=modified"},
            "there is no pending request of this address; it was answered or withdrawn",
        ),
        ({"node": "comments?colour=red"}, "this feed has no such parameter or value"),
        ({"subscriber_jid": ""}, "the field pubsub#subscriber_jid must have an address"),
        ({"subscriber_jid": "a@b@c"}, "the field pubsub#subscriber_jid must have an address"),
        ({"subscriber_jid": bare(CAROL)}, "there is no pending request of this address; it was answered or withdrawn"),
        ({"subscriber_jid": BOB}, "there is no pending request of this address; it was answered or withdrawn"),
        ({"subid": "x"}, "there is no pending request of this address; it was answered or withdrawn"),
        ({"subid": "9" * 10_000}, "there is no pending request of this address; it was answered or withdrawn"),
        ({"subid": "-1"}, "there is no pending request of this address; it was answered or withdrawn"),
    ],
)
async def test_hostile_answers_change_nothing(waiting: Component, values: dict[str, str], reason: str) -> None:
    """[xep-map 107] [xep-map 21]"""
    assert await reasons(waiting, answer(**values)) == [reason]
    assert await listed(waiting) == [("comments", BOBS, "pending")]
    assert await states(waiting) == []


@pytest.mark.parametrize(
    "form",
    [
        f"<x xmlns='{DATA}'/>",
        f"<x xmlns='{DATA}' type='form'><field var='FORM_TYPE'><value>{TYPE}</value></field></x>",
        f"<x xmlns='{DATA}' type='submit'><field var='FORM_TYPE'><value>{TYPE}</value></field></x>",
        f"<x xmlns='{DATA}' type='submit'><field var='FORM_TYPE'/></x>",
        submit({"FORM_TYPE": ["urn:other"], "pubsub#node": ["comments"], "pubsub#allow": ["true"]}),
        submit({"FORM_TYPE": [TYPE, "urn:other"], "pubsub#node": ["comments"], "pubsub#allow": ["true"]}),
        submit({"FORM_TYPE": [TYPE], "pubsub#node": ["comments"], "pubsub#allow": ["true", "false"]}),
    ],
    ids=["empty", "form", "no fields", "no type", "other type", "two types", "two values"],
)
async def test_other_forms_in_messages_change_nothing(waiting: Component, form: str) -> None:
    """[xep-map 107]: no form in a message is answered, and none ends the link."""
    await waiting.send(f"<message from='{ALICE}' to='{DOMAIN}'>{form}</message>")
    await waiting.send(f"<message from='{ALICE}' to='{DOMAIN}'>{form}{form}</message>")

    assert await listed(waiting) == [("comments", BOBS, "pending")]
    assert await waiting.events(ALICE) == []


@pytest.mark.parametrize("type_", ["error", "groupchat", "headline", "chat"])
async def test_answers_are_messages_of_type_normal(waiting: Component, type_: str) -> None:
    """[xep-map 107] [xep-map 14]: the bounce of a form is no answer."""
    await waiting.send(answer(type_=type_))

    assert await listed(waiting) == [("comments", BOBS, "pending")]


async def test_bounced_form_leaves_the_request_pending(waiting: Component) -> None:
    """[xep-map 107] [xep-map 241]: an owner may be offline at a server that stores no messages."""
    (message,) = await waiting.events(bare(ALICE))
    form = etree.tostring(message[1], encoding="unicode")
    error = "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"

    await waiting.send(
        f"<message from='{bare(ALICE)}' to='{DOMAIN}' id='{message.get('id')}' type='error'>{form}{error}</message>"
    )

    assert await listed(waiting) == [("comments", BOBS, "pending")]
    assert await waiting.events(bare(ALICE)) == await states(waiting) == []


async def test_request_for_a_view_names_the_view(component: Component) -> None:
    """[xep-map 105] [xep-map 114]: at another address of the service, too."""
    await component.create(ALICE, "comments", access_model="authorize")
    view = "comments?order=created"
    to = f"feed@{DOMAIN}"
    await request(component)
    ok(await component.set(BOB, f"<subscribe node='{view}' jid='{BOB}'/>", to))

    (first, message) = await component.events(bare(ALICE))
    values = fields(message)
    assert (values["node"], values["subscriber_jid"], message.get("from")) == ([view], [BOB], to)
    assert fields(first)["node"] == ["comments"]
    assert await reasons(component, answer(node=view, subscriber_jid=BOB, to=to)) == []

    assert await listed(component) == [("comments", BOBS, "pending"), (view, BOB, "subscribed")]
    assert await states(component, BOB) == ["subscribed"]


@pytest.mark.parametrize(
    ("affiliation", "state"), [("member", "subscribed"), ("owner", "subscribed"), ("outcast", "none")]
)
async def test_affiliation_decides_a_request(waiting: Component, affiliation: str, state: str) -> None:
    """[xep-map 109] [xep-map 92]; XEP-0060 8.7.4."""
    await waiting.affiliate(ALICE, "comments", BOB, affiliation)

    assert await states(waiting) == [state]
    assert await listed(waiting) == ([("comments", BOBS, state)] if state == "subscribed" else [])


def _jid(text: str) -> Jid:
    jid = parse_jid(text)
    assert jid is not None
    return jid


async def repeat(component: Component, user: str, times: int) -> int:
    """Requests and withdraws so often, with the last request left; the number of forms that Alice received."""
    for number in range(times):
        if number:
            ok(await component.set(user, f"<unsubscribe node='comments' jid='{bare(user)}'/>"))
        ok(await request(component, bare(user), user=user))
    return len(await asked(component))


async def test_repeated_request_sends_three_forms_an_hour(component: Component) -> None:
    """The loop of one person reaches the owners three times; the request itself is exact [xep-map 105]."""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.create(ALICE, "other", access_model="authorize")

    assert await repeat(component, BOB, 10) == 3
    assert await listed(component) == [("comments", BOBS, "pending")]
    assert nodes(ok(await command(component, ALICE))) == ["comments"]
    ok(await request(component, node="other"))
    ok(await request(component, bare(CAROL), user=CAROL))
    # The forms are of two nodes, whose order is not fixed.
    assert sorted(form["subscriber_jid"] for form in await asked(component)) == [[BOBS], [bare(CAROL)]]
    component.clock.advance(3_599)
    assert await repeat(component, EVE, 1) == 1
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))
    assert await repeat(component, BOB, 1) == 0
    component.clock.advance(1)
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))
    assert await repeat(component, BOB, 1) == 1


async def test_users_of_one_domain_send_thirty_forms_an_hour(component: Component) -> None:
    """Somebody who creates JIDs is bounded too; owners get the others by the command [xep-map 105]."""
    await component.create(ALICE, "comments", access_model="authorize")
    users = [f"u{number}@elsewhere.example/x" for number in range(40)]

    assert sum([await repeat(component, user, 1) for user in users]) == 30
    assert await repeat(component, BOB, 1) == 1

    session = ok(await command(component, ALICE))[0].get("sessionid", "")
    last = ok(await command(component, ALICE, session, submit({"FORM_TYPE": [TYPE], "pubsub#node": ["comments"]})))
    assert notes(last) == ["41 requests sent to you as messages."]
    assert len(await asked(component)) == 41


async def test_forms_of_one_node_do_not_hold_back_another(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms are events of their node, which takes turns with other nodes, so 300 of them do not go first."""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.create(CAROL, "tea")
    ok(await request(component, node="tea"))
    for number in range(100):
        ok(await request(component, f"u@d{number}.example", user=f"u@d{number}.example/x"))
    await component.settle()
    written: list[bytes] = []
    published = asyncio.Event()
    outbox = component.app.stream.outbox
    notify = outbox.notify

    async def write(stanzas: Iterable[bytes]) -> int:
        await published.wait()
        written.extend(stanzas)
        return await notify(stanzas)

    monkeypatch.setattr(outbox, "notify", write)
    resend = ResendPending(_jid(ALICE), DOMAIN, "comments")
    await asyncio.gather(*(component.app.service.handle(resend) for _ in range(3)))
    await component.publish_unseen("tea", "one", CAROL)
    published.set()
    await component.settle()

    places = [b"<event" in stanza for stanza in written]
    assert (len(places), places.index(True) < 150) == (301, True)


# The command


async def command(component: Component, user: str, session: str = "", form: str = "", action: str = "") -> Element:
    """The answer to a step of get-pending."""
    texts = {"sessionid": session, "action": action}
    attributes = "".join(f" {name}='{text}'" for name, text in texts.items() if text)
    inner = f"<command xmlns='{CMD}' node='{PS}#get-pending'{attributes}>{form}</command>"
    return await component.ask(user, "set", inner)


def nodes(reply: Element) -> list[str | None]:
    """The nodes to choose from."""
    options = reply.iterfind(".//x:field[@var='pubsub#node']/x:option/x:value", NS)
    return [option.text for option in options]


def notes(reply: Element) -> list[str | None]:
    """The notes of a reply."""
    return [note.text for note in reply[0].iterfind(f"{{{CMD}}}note")]


async def test_command_sends_the_requests_of_a_node_again(waiting: Component) -> None:
    """[xep-map 105] [OPS-067] XEP-0060 8.7: the form has the node alone, as in the examples."""
    await waiting.create(ALICE, "open")
    await waiting.create(CAROL, "other", access_model="authorize")
    await request(waiting, node="other")
    await request(waiting, bare(CAROL), "comments", CAROL)
    assert len(await asked(waiting)) == 2

    first = ok(await command(waiting, ALICE))
    session = first[0].get("sessionid", "")
    only_node = f"<x xmlns='{DATA}' type='submit'><field var='pubsub#node'><value>comments</value></field></x>"
    last = ok(await command(waiting, ALICE, session, only_node))

    assert fields(first).keys() == {"FORM_TYPE", "node"}
    assert (fields(first)["FORM_TYPE"], nodes(first)) == ([TYPE], ["comments"])
    assert (last[0].get("status"), notes(last)) == ("completed", ["2 requests sent to you as messages."])
    forms = await asked(waiting)
    assert [form["subscriber_jid"] for form in forms] == [[BOBS], [bare(CAROL)]]
    assert await reasons(waiting, answer(subid=forms[0]["subid"][0])) == []
    assert await states(waiting) == ["subscribed"]


@pytest.mark.parametrize("session", ["7d1f4f7e-1b6c-4f1c-9d3e-5a2b8c9d0e1f", "", "x" * 100_000], ids=len)
async def test_command_accepts_the_form_in_the_first_request(waiting: Component, session: str) -> None:
    """XEP-0060 8.7: Movim sends one request with a session id of its own, and without FORM_TYPE."""
    assert len(await asked(waiting)) == 1
    form = f"<x xmlns='{DATA}' type='submit'><field var='pubsub#node'><value>comments</value></field></x>"

    reply = ok(await command(waiting, ALICE, session, form, action="execute"))

    assert (reply[0].get("status"), notes(reply)) == ("completed", ["1 request sent to you as messages."])
    assert len(reply[0].get("sessionid", "")) < 100
    assert [form["subscriber_jid"] for form in await asked(waiting)] == [[BOBS]]


async def test_command_with_a_foreign_session_has_the_rights_of_its_sender(waiting: Component) -> None:
    """[xep-map 239] XEP-0060 8.7.3: the session id of another user grants nothing."""
    session = ok(await command(waiting, ALICE))[0].get("sessionid", "")
    await waiting.create(CAROL, "mine", access_model="authorize")
    form = submit({"FORM_TYPE": [TYPE], "pubsub#node": ["comments"]})

    assert refusal(await command(waiting, CAROL, session, form)) == FORBIDDEN
    assert refusal(await command(waiting, CAROL, "own", form, action="execute")) == FORBIDDEN


async def test_command_repeated_after_its_end_is_refused(waiting: Component) -> None:
    """XEP-0050 4.4: session-expired, also though the command accepts foreign session ids."""
    form = submit({"FORM_TYPE": [TYPE], "pubsub#node": ["comments"]})
    session = ok(await command(waiting, ALICE))[0].get("sessionid", "")
    ok(await command(waiting, ALICE, session, form))

    reply = await command(waiting, ALICE, session, form)

    assert [child.tag for child in reply[-1]][2:] == [f"{{{CMD}}}session-expired"]


async def test_command_with_an_unknown_session_and_no_form_begins(waiting: Component) -> None:
    """XEP-0060 8.7.1: the service asks for the node. Other actions need a session."""
    first = ok(await command(waiting, ALICE, "own", action="execute"))
    later = await command(waiting, ALICE, "own", action="complete")

    assert (first[0].get("status"), nodes(first)) == ("executing", ["comments"])
    assert [child.tag for child in later[-1]][2:] == [f"{{{CMD}}}bad-sessionid"]


@pytest.mark.parametrize("bound", ["nodes", "bytes"])
async def test_command_shows_that_there_are_more_nodes(
    component: Component, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """XEP-0060 8.7.2: a form with some of the nodes has a hint, and the rest follows after the answers."""
    names = [f"{'n' * 1000}{number}" for number in range(3)]
    for name in names:
        await component.create(ALICE, name, access_model="authorize")
        ok(await request(component, node=name))
    if bound == "nodes":
        monkeypatch.setattr(authorization, "NODES", 2)
    else:
        policy = replace(component.app.service.policy, page_bytes=3_000)
        monkeypatch.setattr(component.app.service, "policy", policy)

    first = ok(await command(component, ALICE))
    ok(await component.owner_set(ALICE, f"<delete node='{names[0]}'/>"))
    second = ok(await command(component, ALICE))

    assert (nodes(first), nodes(second)) == (names[:2], names[1:])
    hints = [reply[0].findtext("x:x/x:instructions", namespaces=NS) for reply in (first, second)]
    expected = "More nodes have pending requests. Answer those of these nodes, then run the command again."
    assert hints == [expected, None]


async def test_command_without_requests_says_so(waiting: Component) -> None:
    """XEP-0060 8.7."""
    assert await reasons(waiting, answer()) == []

    reply = ok(await command(waiting, ALICE))

    assert (reply[0].get("status"), notes(reply)) == ("completed", ["No subscription requests are pending."])


async def test_command_is_for_owners(waiting: Component) -> None:
    """[xep-map 239]; XEP-0060 8.7.3."""
    await waiting.affiliate(ALICE, "comments", CAROL, "publisher")

    assert refusal(await command(waiting, CAROL)) == FORBIDDEN


@pytest.mark.parametrize(
    ("node", "expected"), [("comments", FORBIDDEN), ("missing", Refusal("cancel", "item-not-found"))]
)
async def test_command_sends_requests_of_own_nodes_only(waiting: Component, node: str, expected: Refusal) -> None:
    """[xep-map 239]; XEP-0060 8.7.3: the right is checked at each step."""
    await waiting.create(CAROL, "mine", access_model="authorize")
    await request(waiting, node="mine")
    assert len(await asked(waiting, CAROL)) == 1
    session = ok(await command(waiting, CAROL))[0].get("sessionid", "")

    reply = await command(waiting, CAROL, session, submit({"FORM_TYPE": [TYPE], "pubsub#node": [node]}))

    assert refusal(reply) == expected
    assert await asked(waiting, CAROL) == []


@pytest.mark.parametrize("node", ["", "x" * 2_000])
async def test_command_with_a_hostile_node_is_refused(waiting: Component, node: str) -> None:
    """XEP-0050 4.4: bad-payload."""
    session = ok(await command(waiting, ALICE))[0].get("sessionid", "")

    reply = await command(waiting, ALICE, session, submit({"FORM_TYPE": [TYPE], "pubsub#node": [node]}))

    assert [child.tag for child in reply[-1]][2:] == [f"{{{CMD}}}bad-payload"]


async def test_admin_sees_the_requests_of_every_node(start: Starter) -> None:
    """[xep-map 105]; XEP-0060 8.7: admins own every node."""
    component = await start(pubsub={"admins": [bare(EVE)]})
    await component.create(ALICE, "comments", access_model="authorize")
    await component.create(ALICE, "open")
    await request(component)

    first = ok(await command(component, EVE))
    form = submit({"FORM_TYPE": [TYPE], "pubsub#node": ["comments"]})
    ok(await command(component, EVE, first[0].get("sessionid", ""), form))

    assert nodes(first) == ["comments"]
    assert len(await asked(component, EVE)) == 1
