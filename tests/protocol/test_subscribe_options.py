"""Options of subscriptions through the whole component (xep-map G; XEP-0060 6.3, 6.4)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    CAROL,
    EVE,
    NS,
    PS,
    SUBSCRIBE_OPTIONS,
    Component,
    Element,
    Refusal,
    bare,
    body,
    fields,
    form,
    headers,
    ok,
    refusal,
    submit,
)
from support.subscribing import BOBS, listed

pytestmark = pytest.mark.shared

BAD_REQUEST = Refusal("modify", "bad-request")
NO_JID = Refusal("modify", "bad-request", "jid-required")
NO_NODEID = Refusal("modify", "bad-request", "nodeid-required")
INVALID_OPTIONS = Refusal("modify", "bad-request", "invalid-options")
NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")


def items(messages: list[Element]) -> list[tuple[str, str]]:
    """Node and item id of events."""
    found = [message.find("ev:event/ev:items", NS) for message in messages]
    return [(str(each.get("node")), str(each[0].get("id"))) for each in found if each is not None]


async def test_subscribe_with_options_applies_and_tells_them(component: Component) -> None:
    """[xep-map 117]"""
    await component.create(ALICE, "comments")
    options = f"<options>{form(SUBSCRIBE_OPTIONS, deliver='0', include_body='1')}</options>"

    answer = ok(await component.set(BOB, f"<subscribe node='comments' jid='{BOBS}'/>{options}"))
    await component.publish(ALICE, "comments", "one")

    told = answer.find("ps:pubsub/ps:options/x:x[@type='result']", NS)
    assert told is not None
    wanted = {
        "FORM_TYPE": [SUBSCRIBE_OPTIONS],
        "deliver": ["false"],
        "include_body": ["true"],
        "expire": [],
        "show-values": SHOWS,
    }
    assert fields(told) == wanted
    shown = ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>"))
    assert fields(shown) == wanted
    assert await component.events(BOBS) == []


EVERY = {"deliver", "expire", "show-values"}
SHOWS = ["away", "chat", "dnd", "online", "xa"]
OPTIONS = f"<options>{form(SUBSCRIBE_OPTIONS, deliver='0')}</options>"


@pytest.mark.parametrize(
    "inner",
    [
        f"{OPTIONS}<subscribe node='comments' jid='{BOBS}'/>",
        f"<subscribe node='comments' jid='{BOBS}'/>{OPTIONS.replace('<options>', '<options node=$>')}",
        f"<subscribe node='comments' jid='{BOBS}'/>{OPTIONS.replace('<options>', '<options jid=%>')}",
        f"<subscribe node='comments' jid='{BOBS}'/>{OPTIONS}{OPTIONS}",
        f"<subscribe node='comments' jid='{BOBS}'/><options/>",
        f"<subscribe node='comments' jid='{BOBS}'/><options>{form(f'{PS}#node_config', deliver='0')}</options>",
    ],
    ids=["before", "with node", "with jid", "twice", "without form", "of another type"],
)
async def test_misplaced_options_are_refused_and_subscribe_nobody(component: Component, inner: str) -> None:
    """[xep-map 118]"""
    await component.create(ALICE, "comments")
    inner = inner.replace("$", "'comments'").replace("%", f"'{BOBS}'")

    assert refusal(await component.set(BOB, inner)) == BAD_REQUEST
    assert await listed(component) == []


async def test_invalid_options_beside_subscribe_subscribe_nobody(component: Component) -> None:
    """[xep-map 118] [xep-map 127]"""
    await component.create(ALICE, "comments")
    options = OPTIONS.replace("<value>0<", "<value>maybe<")

    answer = await component.set(BOB, f"<subscribe node='comments' jid='{BOBS}'/>{options}")

    assert refusal(answer) == INVALID_OPTIONS
    assert await listed(component) == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [("feed", {"include_body", *EVERY}), ("generic", EVERY)],
)
async def test_options_form_has_the_fields_of_the_node_kind(component: Component, kind: str, names: set[str]) -> None:
    """[xep-map 125]"""
    await component.create(ALICE, "box", kind=kind)
    await component.subscribe(BOB, "box")

    answer = ok(await component.get(BOB, f"<options node='box' jid='{BOBS}'/>"))

    shown = answer.find("ps:pubsub/ps:options", NS)
    assert shown is not None and dict(shown.attrib) == {"node": "box", "jid": BOBS}
    assert shown[0].get("type") == "form"
    assert fields(answer).keys() == {"FORM_TYPE", *names}
    assert fields(answer)["deliver"] == ["true"]


async def test_options_with_a_form_in_a_get_are_only_read(component: Component) -> None:
    """[xep-map 125]; xep-map 6.2: slixmpp sends a submit in an IQ of type get, which changes nothing."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    sent = form(SUBSCRIBE_OPTIONS, deliver="false")

    answer = ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'>{sent}</options>"))

    assert fields(answer)["deliver"] == ["true"]


@pytest.mark.parametrize("kind", ["get", "set"])
async def test_options_are_those_of_ones_own_subscription(component: Component, kind: str) -> None:
    """[xep-map 126]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    ask = component.get if kind == "get" else component.set
    sent = form(SUBSCRIBE_OPTIONS, deliver="false") if kind == "set" else ""

    async def refused(user: str, attributes: str) -> Refusal:
        return refusal(await ask(user, f"<options {attributes}>{sent}</options>"))

    assert await refused(CAROL, f"node='comments' jid='{BOBS}'") == FORBIDDEN
    none = Refusal("modify", "unexpected-request", "not-subscribed")
    assert await refused(CAROL, f"node='comments' jid='{bare(CAROL)}'") == none
    assert await refused(BOB, f"node='comments' jid='{BOB}'") == none
    assert await refused(BOB, f"node='comments?order=created' jid='{BOBS}'") == none
    assert await refused(BOB, "node='comments'") == NO_JID
    assert await refused(BOB, f"jid='{BOBS}'") == NO_NODEID
    assert await refused(BOB, f"node='missing' jid='{BOBS}'") == NOT_FOUND
    shown = ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>"))
    assert fields(shown)["deliver"] == ["true"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deliver", "maybe"),
        ("deliver", ""),
        ("include_body", "yes"),
        ("digest", "true"),
        ("digest_frequency", "1000"),
        ("expire", "presence"),
        ("expire", "tomorrow"),
        ("expire", "2026-01-01T00:00:00Z"),
        ("expire", "2025-12-31T23:59:59Z"),
        ("expire", "2030-01-01T00:00:00"),
        ("expire", "10000-01-01T00:00:00Z"),
        ("expire", "9" * 10_000),
        ("show-values", "asleep"),
        ("subscription_type", "nodes"),
        ("subscription_depth", "all"),
    ],
)
async def test_invalid_options_are_refused_and_change_nothing(component: Component, name: str, value: str) -> None:
    """[xep-map 127]; xep-map 2.2: what is not served is refused, never silently ignored."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments", include_body="true")
    before = fields(ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>")))
    first = "include_body" if name == "deliver" else "deliver"
    sent = submit(
        {"FORM_TYPE": [SUBSCRIBE_OPTIONS], f"pubsub#{first}": ["false"], f"pubsub#{name}": [value]},
    )

    answer = await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{sent}</options>")

    assert refusal(answer) == INVALID_OPTIONS
    assert fields(ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>"))) == before


async def test_show_values_are_stored(component: Component) -> None:
    """[xep-map 127]: as in XEP-0060 6.3."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    sent = form(SUBSCRIBE_OPTIONS, **{"show-values": ["chat", "online", "away"], "deliver": "false"})

    ok(await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{sent}</options>"))

    shown = fields(ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>")))
    assert (shown["deliver"], shown["show-values"]) == (["false"], ["away", "chat", "online"])


async def test_options_of_a_wrong_form_are_refused(component: Component) -> None:
    """[xep-map 70] [xep-map 127]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    for inner in ("", form(f"{PS}#node_config", deliver="false"), submit({}, kind="result")):
        answer = await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{inner}</options>")
        assert refusal(answer) == BAD_REQUEST


async def test_cancelled_options_change_nothing(component: Component) -> None:
    """[xep-map 69]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    sent = submit({"FORM_TYPE": [SUBSCRIBE_OPTIONS], "pubsub#deliver": ["false"]}, kind="cancel")

    answer = ok(await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{sent}</options>"))

    assert body(answer) == []
    assert fields(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>"))["deliver"] == ["true"]


async def test_deliver_stops_and_resumes_events(component: Component) -> None:
    """[xep-map 128]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    async def deliver(value: str) -> None:
        sent = form(SUBSCRIBE_OPTIONS, deliver=value)
        assert body(ok(await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{sent}</options>"))) == []

    await deliver("false")
    await component.publish(ALICE, "comments", "one")
    assert await component.events(BOBS) == []
    assert await listed(component) == [("comments", BOBS, "subscribed")]
    await deliver("true")
    await component.publish(ALICE, "comments", "two")

    (message,) = await component.events(BOBS)
    assert items([message]) == [("comments", "two")]
    assert headers(message)["TotalItems"] == "2"


@pytest.mark.parametrize(("node", "names"), [("", {"deliver", "include_body"}), ("box", {"deliver"})])
async def test_default_options_are_told_as_a_result_form(component: Component, node: str, names: set[str]) -> None:
    """[xep-map 129]"""
    await component.create(ALICE, "box", kind="generic")

    answer = ok(await component.get(EVE, f"<default node='{node}'/>" if node else "<default/>"))

    shown = answer.find("ps:pubsub/ps:default", NS)
    assert shown is not None and dict(shown.attrib) == ({"node": node} if node else {})
    assert shown[0].get("type") == "result"
    assert fields(answer) == {
        "FORM_TYPE": [SUBSCRIBE_OPTIONS],
        "expire": [],
        "show-values": SHOWS,
        **{name: [{"deliver": "true", "include_body": "false"}[name]] for name in names},
    }


async def test_default_options_of_a_missing_node_are_not_found(component: Component) -> None:
    """[xep-map 129]; XEP-0060 6.4.3."""
    assert refusal(await component.get(BOB, "<default node='missing'/>")) == NOT_FOUND
