"""What Libervia 0.9 sends, as its plugins and wokkel write it: forms, comments, attachments of a blog, archives."""

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.service.context import Context
from smartfeeds.service.nodes import add_node
from smartfeeds.store.base import ReadTx
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    NODE_CONFIG,
    NS,
    Component,
    Refusal,
    Starter,
    bare,
    ok,
    refusal,
    submit,
)
from support.pulls import pull
from support.world import jid

SCHEMA = (
    "<x xmlns='jabber:x:data' type='form'><title>Ticket</title>"
    "<field type='text-single' var='title'/><field type='text-multi' var='body'/></x>"
)
TICKET = "<x xmlns='jabber:x:data' type='submit'><field var='title'><value>It is broken</value></field></x>"


def configure(**options: str) -> str:
    """A configuration as wokkel writes it."""
    fields = {"FORM_TYPE": [NODE_CONFIG], **{f"pubsub#{name}": [value] for name, value in options.items()}}
    return f"<configure>{submit(fields)}</configure>"


@pytest.mark.parametrize("options", [{}, {"publish_model": "open", "access_model": "open"}])
async def test_schema_is_set_read_and_filled_in(component: Component, options: dict[str, str]) -> None:
    """XEP-0346: setSchema, getSchema, sendDataFormItem on a default service."""
    template = configure(
        access_model="open",
        persist_items="1",
        max_items="1",
        deliver_payloads="1",
        send_item_subscribe="1",
        publish_model="publishers",
    )
    ok(await component.set(ALICE, f"<create node='fdp/template/tickets'/>{template}"))
    for _ in range(2):
        item = f"<item id='current'>{SCHEMA}</item>"
        ok(await component.set(ALICE, f"<publish node='fdp/template/tickets'>{item}</publish>"))
    ok(await component.set(ALICE, f"<create node='fdp/submitted/tickets'/>{configure(**options) if options else ''}"))
    ok(await component.set(ALICE, f"<publish node='fdp/submitted/tickets'><item>{TICKET}</item></publish>"))

    page = await pull(component, "fdp/template/tickets", max_items=1)
    (submitted,) = (await pull(component, "fdp/submitted/tickets", user=ALICE)).items

    assert page.ids == ["current"]
    assert page.items[0].find("x:x[@type='form']/x:field[@var='body']", NS) is not None
    assert submitted.get("publisher") == bare(ALICE)
    assert submitted.findtext("x:x/x:field/x:value", None, NS) == "It is broken"


async def test_everybody_submits_a_form_and_the_owner_reads_it(component: Component) -> None:
    """XEP-0346 3.3, 4: also with the empty id of its example. A configuration may open the submitted forms."""
    for name, options in (("fdp/submitted/closed", {}), ("fdp/submitted/open", {"access_model": "open"})):
        await component.create(ALICE, name, **options)
        submission = f"<publish node='{name}'><item id=''>{TICKET}</item></publish>"
        answer = ok(await component.set(BOB, submission))
        (item_id,) = answer.xpath(".//ps:item/@id", namespaces=NS)
        assert await component.item_ids(ALICE, name) == [item_id] and item_id

    closed = await component.get(CAROL, "<items node='fdp/submitted/closed'/>")
    assert refusal(closed) == Refusal("cancel", "not-allowed", "closed-node")
    assert len(await component.item_ids(CAROL, "fdp/submitted/open")) == 1


@pytest.mark.parametrize("prefix", ["fdp/template/", "fdp/submitted/"])
async def test_every_way_to_create_a_form_node_makes_a_generic_node(start: Starter, prefix: str) -> None:
    """By a request, by the publish of an Atom entry, and by the operator."""
    component = await start(pubsub={"auto_create": True})
    await component.create(ALICE, f"{prefix}a")
    await component.create(ALICE, f"{prefix}b", title="T")
    await component.publish(ALICE, f"{prefix}c", "x")
    await component.app.service.write(
        lambda tx, context: add_node(tx, context, jid(ALICE), f"{prefix}d", None, trusted=True)
    )

    def kinds(tx: ReadTx, _context: Context) -> list[NodeKind]:
        return [node.kind for node in tx.nodes("", 10)]

    assert await component.app.service.read(kinds) == [NodeKind.GENERIC] * 4


async def test_form_node_may_be_a_feed_on_request(component: Component) -> None:
    await component.create(ALICE, "fdp/submitted/notes", kind="feed")
    await component.publish(ALICE, "fdp/submitted/notes", "one")

    assert await component.item_ids(BOB, "fdp/submitted/notes?order=modified") == ["one"]


@pytest.mark.needs("attachments")
async def test_blog_with_comments_and_attachments(component: Component) -> None:
    """XEP-0277, XEP-0470: sendMicroblog makes the node of the comments, and tries to make that of the attachments."""
    blog, comments = "urn:xmpp:microblog:0", "urn:xmpp:microblog:0_comments_one"
    options = {
        "access_model": "open",
        "max_items": "max",
        "persist_items": "1",
        "deliver_payloads": "1",
        "send_item_subscribe": "1",
        "publish_model": "open",
    }
    ok(await component.set(ALICE, f"<create node='{comments}'/>{configure(**options)}"))
    ok(await component.set(ALICE, f"<create node='{blog}'/>{configure(access_model='open')}"))
    uri = f"xmpp:{DOMAIN}?;node={comments.replace(':', '%3A')}"
    link = f"<link rel='replies' title='comments' href='{uri}'/>"
    post = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>Hello</title>{link}</entry>"
    ok(await component.set(ALICE, f"<publish node='{blog}'><item id='one'>{post}</item></publish>"))
    attachments = f"urn:xmpp:pubsub-attachments:1/xmpp:{DOMAIN}?;node={blog};item=one"
    refused = await component.set(ALICE, f"<create node='{attachments}'/>{configure(publish_model='open')}")
    await component.publish(BOB, comments, "comment")
    payload = "<attachments xmlns='urn:xmpp:pubsub-attachments:1'><noticed/></attachments>"
    ok(await component.set(CAROL, f"<publish node='{attachments}'><item id='{bare(CAROL)}'>{payload}</item></publish>"))

    assert refused.get("type") == "error"  # Libervia logs the error and continues
    (item,) = (await pull(component, blog)).items
    assert item.xpath("string(.//a:link[@rel='replies']/@href)", namespaces=NS) == uri
    assert (await pull(component, comments, user=CAROL)).ids == ["comment"]
    assert (await pull(component, attachments, ids=[bare(CAROL)])).ids == [bare(CAROL)]


@pytest.mark.needs("archive")
async def test_archive_is_searched_with_the_order_of_an_old_version(component: Component) -> None:
    """XEP-0313: MAMRequest with extra fields, RSM and `urn:xmpp:order-by:0`, which is ignored."""
    await component.create(ALICE, "notes")
    for item_id in ("one", "two", "three"):
        await component.publish(ALICE, "notes", item_id)
    fields = {"FORM_TYPE": ["urn:xmpp:mam:2"], "{urn:xmpp:fulltext:0}fulltext": ["two"]}
    page = "<set xmlns='http://jabber.org/protocol/rsm'><max>10</max><before/></set>"
    order = "<order xmlns='urn:xmpp:order-by:0' by='creation'/>"
    query = f"<query xmlns='urn:xmpp:mam:2' node='notes' queryid='q'>{submit(fields)}{page}{order}</query>"

    answer = ok(await component.ask(BOB, "set", query))

    (message,) = await component.events(BOB)
    assert message.get("from") == DOMAIN
    assert message.xpath("string(.//ev:item/@id)", namespaces=NS) == "two"
    assert answer.find(".//rsm:set/rsm:count", NS) is not None
