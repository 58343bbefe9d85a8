"""Hostile values in every field of node configurations, publish-options, subscription options and archive queries.

The fields come from the forms that the service offers, so a new option is tested too. Every request gets a result or an
error that is not an internal one, no value above the bound is stored, and the link stays up.
"""

from collections.abc import Awaitable, Callable, Collection
from xml.sax.saxutils import quoteattr

import pytest

from support.component import (
    ALICE,
    BOB,
    NODE_CONFIG,
    NS,
    OWNER,
    PS,
    PUBLISH_OPTIONS,
    SUBSCRIBE_OPTIONS,
    Component,
    Element,
    bare,
    entry,
    ok,
    submit,
)

pytestmark = pytest.mark.shared

MAM = "urn:xmpp:mam:2"
VALUES: dict[str, tuple[str, ...]] = {
    "missing": (),
    "empty": ("",),
    "too long": ("x" * 20_000,),
    "control characters": ("a\tb\nc\u0085d\u202ee\ufffd",),
    "of another type": ("1e9 <&>'\" NaN -1 @@",),
    "negative": ("-1",),
    "huge": ("9" * 5_000,),
    "digits of another script": ("\u0663",),
    "date": ("9999-12-31T23:59:60Z",),
    "date before all dates": ("-0001-01-01T00:00:00Z",),
    "markup": ("<x xmlns='jabber:x:data' type='submit'/>",),
    "percent": ("%00%zz?order=modified&q=",),
    "twice": ("true", "true"),
    "many": tuple(f"u{number}@example.org" for number in range(2_000)),
}
# No form that is stored may contain these.
REFUSED = {"too long", "many"}
# The types of fields that have no value in common with these.
WRONG = {"of another type", "markup", "control characters", "percent"}
CHOICES = {"list-single", "boolean", "jid-single"}


def types(answer: Element) -> dict[str, str]:
    """The types of the fields of a form by their full names."""
    return {
        str(each.get("var")): str(each.get("type", "text-single"))
        for each in ok(answer).iterfind(".//x:field[@var]", NS)
        if each.get("var") != "FORM_TYPE"
    }


def form(form_type: str, var: str, values: tuple[str, ...]) -> str:
    return submit({"FORM_TYPE": [form_type], var: list(values)})


async def judge(
    form_type: str, kinds: dict[str, str], send: Callable[[str], Awaitable[Element]], refused: Collection[str] = REFUSED
) -> list[str]:
    """What is wrong with the responses to forms with one hostile field each."""
    wrong = []
    for var, kind in kinds.items():
        for name, values in VALUES.items():
            accepted = (await send(form(form_type, var, values))).get("type") == "result"
            if accepted and (name in refused or (name in WRONG and kind in CHOICES)):
                wrong.append(f"{var} ({kind}): {name} is accepted")
    return wrong


@pytest.mark.parametrize("kind", ["feed", "generic"])
async def test_hostile_values_in_a_configuration(component: Component, kind: str) -> None:
    await component.create(ALICE, "news", kind=kind)
    kinds = types(await component.owner_get(ALICE, "<configure node='news'/>"))
    assert "pubsub#item_expire" in kinds

    async def configure(form_: str) -> Element:
        return await component.owner_set(ALICE, f"<configure node='news'>{form_}</configure>")

    async def create(form_: str) -> Element:
        answer = await component.set(ALICE, f"<create node='new'/><configure>{form_}</configure>")
        if answer.get("type") == "result":
            ok(await component.owner_set(ALICE, "<delete node='new'/>"))
        return answer

    assert await judge(NODE_CONFIG, kinds, configure) == []
    assert await judge(NODE_CONFIG, kinds, create) == []
    # The owner can still read and submit the whole form.
    assert types(await component.owner_get(ALICE, "<configure node='news'/>")) == kinds
    ok(
        await component.owner_set(
            ALICE, f"<configure node='news'>{form(NODE_CONFIG, 'pubsub#title', ('News',))}</configure>"
        )
    )


async def test_hostile_values_in_publish_options(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "first")
    kinds = types(await component.owner_get(ALICE, "<configure node='news'/>"))

    async def publish(form_: str) -> Element:
        item = f"<publish node='news'><item id='one'>{entry('one')}</item></publish>"
        return await component.set(ALICE, f"{item}<publish-options>{form_}</publish-options>")

    assert await judge(PUBLISH_OPTIONS, kinds, publish) == []
    assert set(await component.item_ids(BOB, "news")) <= {"first", "one"}


async def test_hostile_values_in_subscription_options(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news")
    node = f"<options node='news' jid={quoteattr(bare(BOB))}"
    kinds = types(await component.get(BOB, f"{node}/>"))
    assert "pubsub#expire" in kinds

    async def change(form_: str) -> Element:
        return await component.set(BOB, f"{node}>{form_}</options>")

    async def subscribe(form_: str) -> Element:
        request = f"<subscribe node='news' jid={quoteattr(BOB)}/><options>{form_}</options>"
        return await component.set(BOB, request)

    assert await judge(SUBSCRIBE_OPTIONS, kinds, change) == []
    assert await judge(SUBSCRIBE_OPTIONS, kinds, subscribe) == []
    assert types(await component.get(BOB, f"{node}/>")) == kinds


@pytest.mark.needs("archive")
async def test_hostile_values_in_a_query_of_an_archive(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "one")
    kinds = types(await component.ask(BOB, "get", f"<query xmlns='{MAM}' node='news'/>"))
    assert "start" in kinds

    async def query(form_: str) -> Element:
        return await component.ask(BOB, "set", f"<query xmlns='{MAM}' node='news'>{form_}</query>")

    assert await judge(MAM, kinds, query, refused=()) == []


@pytest.mark.parametrize(
    "name",
    [
        "urn:xmpp:pubsub-attachments:1",
        "urn:xmpp:pubsub-attachments:1/",
        "urn:xmpp:pubsub-attachments:1/xmpp:",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=news;item=",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=;item=one",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=news;item=%",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=news;item=%ff%00",
        "urn:xmpp:pubsub-attachments:1/xmpp:@/?;node=news;item=one",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=missing;item=one",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=news;item=missing",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=urn%3Axmpp%3Apubsub-attachments%3A1;item=x",
        "urn:xmpp:pubsub-attachments:1/xmpp:feeds.example.org?;node=news;item=" + "%41" * 330,
        "urn:xmpp:pubsub-attachments:summary:1",
        "urn:xmpp:pubsub-attachments:summary:1/",
        "urn:xmpp:pubsub-attachments:summary:1/missing",
        "urn:xmpp:pubsub-attachments:summary:1/urn:xmpp:pubsub-attachments:summary:1/news",
        "urn:xmpp:pubsub-attachments:9/news",
    ],
)
async def test_hostile_names_of_attachment_nodes(component: Component, name: str) -> None:
    """Nobody creates or writes a node of the service by such a name, in any request."""
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "one")
    node = f"node={quoteattr(name)}"
    attachments = "<attachments xmlns='urn:xmpp:pubsub-attachments:1'><noticed/></attachments>"
    requests = [
        ("set", PS, f"<publish {node}><item id='{bare(BOB)}'>{attachments}</item></publish>"),
        ("set", PS, f"<publish {node}><item>{entry('x')}</item></publish>"),
        ("set", PS, f"<retract {node}><item id='{bare(BOB)}'/></retract>"),
        ("set", PS, f"<subscribe {node} jid='{bare(BOB)}'/>"),
        ("get", PS, f"<items {node}/>"),
        ("set", OWNER, f"<configure {node}>{form(NODE_CONFIG, 'pubsub#title', ('x',))}</configure>"),
        ("set", OWNER, f"<purge {node}/>"),
        ("set", OWNER, f"<delete {node}/>"),
    ]
    for kind, namespace, body in requests:
        answer = await component.ask(BOB, kind, f"<pubsub xmlns='{namespace}'>{body}</pubsub>")
        assert answer.get("type") == "error", body

    assert await component.item_ids(BOB, "news") == ["one"]
