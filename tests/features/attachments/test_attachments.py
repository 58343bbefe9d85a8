"""Attachments to items and their summaries (XEP-0470)."""

from functools import partial
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pytest
from lxml import etree

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.attachments import requests as attachments
from smartfeeds.service import expiry, item_writes, nodes
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import Configure, CreateNode, DeleteNode, FeedPage, Publish, Pull, PullFeed
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import WriteTx
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    INFO,
    ITEMS,
    NS,
    Component,
    Element,
    Refusal,
    bare,
    entry,
    ok,
    refusal,
    submit,
    tree,
)
from support.pulls import pull
from support.world import jid

SPACE = "urn:xmpp:pubsub-attachments:1"
SUMMARY = "urn:xmpp:pubsub-attachments:summary:1"
BLOG = "urn:xmpp:microblog:0"
ALL = f"{SUMMARY}/{BLOG}"
NOT_FOUND = Refusal("cancel", "item-not-found")
NOT_ALLOWED = Refusal("cancel", "not-allowed")
BAD_REQUEST = Refusal("modify", "bad-request")
CLOSED = Refusal("cancel", "not-allowed", "closed-node")
FORBIDDEN = Refusal("auth", "forbidden")
NOTICED = "<noticed timestamp='2022-07-11T12:07:24Z'/>"


def node_of(item_id: str = "one", node: str = BLOG, service: str = DOMAIN) -> str:
    """The name of the attachment node of an item."""
    return f"{SPACE}/xmpp:{service}?;node={quote(node, safe='')};item={quote(item_id, safe='')}"


def reactions(*texts: str) -> str:
    """An element with reactions."""
    return f"<reactions>{''.join(f'<reaction>{text}</reaction>' for text in texts)}</reactions>"


async def attach(
    component: Component, user: str, inner: str, node: str = "", item_id: str = "", space: str = SPACE
) -> Element:
    """The answer to a publish of attachments."""
    payload = f"<attachments xmlns='{space}'>{inner}</attachments>"
    item = f"<item id={quoteattr(item_id or bare(user))}>{payload}</item>"
    return await component.set(user, f"<publish node={quoteattr(node or node_of())}>{item}</publish>")


async def summary(component: Component, item_id: str = "one", user: str = ALICE) -> list[tuple[str, str | None]]:
    """The summary of an item: `noticed` and each reaction with its count."""
    (item,) = (await pull(component, ALL, ids=[item_id], user=user)).items
    (root,) = item
    assert root.tag == f"{{{SUMMARY}}}summary"
    leaves = [leaf for leaf in root.iter() if not len(leaf) and leaf is not root]
    return [(leaf.text or leaf.tag.rpartition("}")[2], leaf.get("count")) for leaf in leaves]


@pytest.fixture
async def blog(component: Component) -> Component:
    """A blog with one post."""
    await component.create(ALICE, BLOG)
    await component.publish(ALICE, BLOG, "one")
    return component


async def test_attachments_are_stored_and_summarised(blog: Component) -> None:
    """XEP-0470 4.4, 4.5, 5.1, 5.2: the nodes come with the first attachment; each user counts once."""
    ok(await attach(blog, BOB, NOTICED + reactions("👍", "👍", "🎉")))
    ok(await attach(blog, CAROL, NOTICED + reactions("👍")))
    ok(await attach(blog, EVE, NOTICED))

    assert await summary(blog) == [("noticed", "3"), ("👍", "2"), ("🎉", None)]
    page = await pull(blog, node_of(), user=EVE)
    assert page.ids == [bare(BOB), bare(CAROL), bare(EVE)]
    assert [item.get("publisher") for item in page.items] == page.ids


async def test_damaged_attachment_counts_as_none(blog: Component) -> None:
    """The summary is written anew with the next attachment, also if it is damaged itself."""
    ok(await attach(blog, BOB, reactions("👍")))
    for item_id in (bare(BOB), "one"):
        spoil = partial(_spoil, item_id=item_id)
        await blog.app.service.store.write(spoil)
    ok(await attach(blog, BOB, reactions("🎉")))
    assert await summary(blog) == [("🎉", None)]


def _spoil(tx: WriteTx, item_id: str) -> None:
    """Damages what is stored under this id in the nodes of attachments."""
    tx.db.run("UPDATE item SET payload = ? WHERE id = ? AND node_no > 1", (b"<", item_id))


async def test_summary_follows_every_change_of_an_attachment(blog: Component) -> None:
    """XEP-0470 4.2, 4.3: a new version replaces the old one, a retraction removes it."""
    ok(await attach(blog, BOB, NOTICED + reactions("👍", "🎉")))
    ok(await attach(blog, CAROL, reactions("👍")))
    ok(await attach(blog, BOB, reactions("🎉")))
    assert await summary(blog) == [("👍", None), ("🎉", None)]
    ok(await attach(blog, BOB, reactions("🎉")))
    assert await summary(blog) == [("👍", None), ("🎉", None)]

    await blog.retract(BOB, node_of(), bare(BOB))
    assert await summary(blog) == [("👍", None)]
    await blog.retract(CAROL, node_of(), bare(CAROL))
    assert await summary(blog) == []


async def test_purge_and_deletion_of_attachments_remove_the_summary(blog: Component) -> None:
    """The owner of the blog owns its attachments too."""
    for request in (f"<purge node={quoteattr(node_of())}/>", f"<delete node={quoteattr(node_of())}/>"):
        ok(await attach(blog, BOB, NOTICED))
        assert refusal(await blog.owner_set(BOB, request)) == FORBIDDEN
        ok(await blog.owner_set(ALICE, request))
        assert (await pull(blog, ALL, ids=["one"])).ids == []
    ok(await attach(blog, BOB, NOTICED))
    assert await summary(blog) == [("noticed", "1")]


async def test_subscribers_of_the_summary_node_are_notified(blog: Component) -> None:
    """XEP-0470 4.5: as of any other node."""
    ok(await attach(blog, BOB, NOTICED))
    await blog.subscribe(CAROL, ALL)
    ok(await attach(blog, EVE, NOTICED))

    (message,) = await blog.events(bare(CAROL))
    (item,) = message.findall(".//ev:item", NS)
    assert item.get("id") == "one"
    assert tree(item[0]) == tree(f"<summary xmlns='{SUMMARY}'><noticed count='2'/></summary>")


@pytest.mark.parametrize(
    ("name", "service"),
    [
        (node_of(), DOMAIN),
        (f"{SPACE}/xmpp:{DOMAIN}?;node={BLOG};item=one", DOMAIN),
        (node_of(service=f"someone@{DOMAIN}"), DOMAIN),
        (node_of(service=DOMAIN.upper()), DOMAIN),
    ],
)
async def test_every_spelling_of_the_address_is_the_same_node(blog: Component, name: str, service: str) -> None:
    """XEP-0060 12.22: escaped or not, at any address of the service; answers repeat the name as written."""
    ok(await attach(blog, CAROL, NOTICED))
    answer = ok(await attach(blog, BOB, NOTICED, name))

    assert answer.xpath("string(.//ps:publish/@node)", namespaces=NS) == name
    assert (await pull(blog, name)).ids == [bare(CAROL), bare(BOB)]
    assert await summary(blog) == [("noticed", "2")]


async def test_attachment_must_be_that_of_its_publisher(blog: Component) -> None:
    """XEP-0470 4.4: the id is the bare address, the payload an attachments element, the item exists."""
    assert refusal(await attach(blog, BOB, NOTICED, item_id=bare(CAROL))) == BAD_REQUEST
    assert refusal(await attach(blog, BOB, NOTICED, item_id=BOB)) == BAD_REQUEST
    assert refusal(await attach(blog, BOB, NOTICED, space="urn:other")) == BAD_REQUEST
    assert refusal(await blog.set(BOB, f"<publish node={quoteattr(node_of())}/>"))[:2] == BAD_REQUEST[:2]
    empty = f"<publish node={quoteattr(node_of())}><item id='{bare(BOB)}'/></publish>"
    assert refusal(await blog.set(BOB, empty))[:2] == BAD_REQUEST[:2]
    assert refusal(await attach(blog, BOB, NOTICED, node_of("missing"))) == NOT_FOUND
    assert refusal(await attach(blog, BOB, NOTICED, node_of(node="missing"))) == NOT_FOUND
    await blog.retract(ALICE, BLOG, "one")
    assert refusal(await attach(blog, BOB, NOTICED)) == NOT_FOUND
    assert refusal(await blog.get(BOB, f"<items node={quoteattr(ALL)}/>")) == NOT_FOUND


async def test_nobody_creates_or_configures_the_nodes_or_writes_summaries(blog: Component) -> None:
    """XEP-0470 4.4, 4.5."""
    ok(await attach(blog, BOB, NOTICED))
    for name in (node_of("two"), node_of(), ALL, f"{SUMMARY}/none"):
        for user in (ALICE, BOB):
            assert refusal(await blog.set(user, f"<create node={quoteattr(name)}/>")) == NOT_ALLOWED
    for name in (node_of(), ALL):
        form = "<x xmlns='jabber:x:data' type='submit'/>"
        assert (
            refusal(await blog.owner_set(ALICE, f"<configure node={quoteattr(name)}>{form}</configure>")) == NOT_ALLOWED
        )
    item = f"<item id='one'><summary xmlns='{SUMMARY}'/></item>"
    assert refusal(await blog.set(ALICE, f"<publish node={quoteattr(ALL)}>{item}</publish>")) == FORBIDDEN
    retraction = f"<retract node={quoteattr(ALL)}><item id='one'/></retract>"
    assert refusal(await blog.set(ALICE, retraction)) == FORBIDDEN
    assert refusal(await blog.set(CAROL, f"<retract node={quoteattr(node_of())}><item id='{bare(BOB)}'/></retract>"))
    assert await summary(blog) == [("noticed", "1")]


async def test_summaries_are_neither_purged_nor_deleted_by_themselves(blog: Component) -> None:
    """A summary that begins anew would lack the attachments before it."""
    ok(await attach(blog, BOB, NOTICED))
    for action in ("purge", "delete"):
        assert refusal(await blog.owner_set(ALICE, f"<{action} node={quoteattr(ALL)}/>")) == FORBIDDEN
    assert await summary(blog) == [("noticed", "1")]


@pytest.mark.parametrize("name", [node_of(), ALL])
async def test_affiliations_are_those_of_the_target(blog: Component, name: str) -> None:
    """The owner reads them at the attachments too, and changes them at the target."""
    ok(await attach(blog, BOB, NOTICED))
    await blog.affiliate(ALICE, BLOG, CAROL, "publisher")
    entries = (
        f"<affiliations node={quoteattr(name)}><affiliation jid='{bare(EVE)}' affiliation='outcast'/></affiliations>"
    )

    assert refusal(await blog.owner_set(ALICE, entries)) == NOT_ALLOWED

    answer = ok(await blog.owner_get(ALICE, f"<affiliations node={quoteattr(name)}/>"))
    affiliations = {(each.get("jid"), each.get("affiliation")) for each in answer.iterfind(".//own:affiliation", NS)}
    assert affiliations == {(bare(ALICE), "owner"), (bare(CAROL), "publisher")}
    own = ok(await blog.get(CAROL, f"<affiliations node={quoteattr(name)}/>"))
    assert own.xpath("string(.//ps:affiliation/@affiliation)", namespaces=NS) == "publisher"
    info = ok(await blog.ask(EVE, "get", f"<query xmlns='{INFO}' node={quoteattr(name)}/>"))
    owner = info.xpath("string(.//x:field[@var='pubsub#owner']/x:value)", namespaces=NS)
    assert owner == bare(ALICE)


async def test_owners_are_notified_of_subscribers_of_the_attachments(blog: Component) -> None:
    """As of subscribers of the node, if it is configured so."""
    ok(await attach(blog, BOB, NOTICED))
    await blog.configure(ALICE, BLOG, notify_sub="true")

    await blog.subscribe(CAROL, ALL)

    (message,) = await blog.events(bare(ALICE))
    notice = message.find("ev:event/ev:subscription", NS)
    assert notice is not None and (notice.get("node"), notice.get("jid")) == (ALL, bare(CAROL))


async def test_models_and_people_are_those_of_the_target(blog: Component) -> None:
    """XEP-0470 4.4: also after they change."""
    await blog.publish(ALICE, BLOG, "two")
    for item_id in ("one", "two"):
        ok(await attach(blog, BOB, NOTICED, node_of(item_id)))

    async def models() -> set[tuple[str, str]]:
        configs = [await blog.config(ALICE, name) for name in (BLOG, ALL, node_of("one"), node_of("two"))]
        return {(config["access_model"][0], config["publish_model"][0]) for config in configs}

    assert await models() == {("open", "publishers")}
    await blog.configure(ALICE, BLOG, access_model="whitelist", publish_model="open")
    assert await models() == {("whitelist", "open")}
    for name in (ALL, node_of("one"), node_of("two")):
        page = await blog.app.service.handle(PullFeed(jid(ALICE), DOMAIN, name))
        assert isinstance(page, FeedPage) and not page.public  # caches of other readers must not store it
        assert refusal(await blog.get(CAROL, f"<items node={quoteattr(name)}/>")) == CLOSED
    assert refusal(await attach(blog, CAROL, NOTICED)) == CLOSED
    await blog.affiliate(ALICE, BLOG, CAROL, "member")
    ok(await attach(blog, CAROL, NOTICED))
    assert (await pull(blog, node_of(), user=CAROL)).ids == [bare(BOB), bare(CAROL)]
    await blog.affiliate(ALICE, BLOG, CAROL, "outcast")
    assert refusal(await attach(blog, CAROL, NOTICED)) == Refusal("auth", "forbidden")


DELETED = "<entry xmlns='{a}'><sync xmlns='http://feedsync.org/2007/feedsync' deleted='true'/></entry>".format(**NS)
LATER = f"<publish node='{BLOG}'><item id='two'>{entry('two')}</item></publish>"
# How an item is removed, with the options of its node.
REMOVALS = {
    "retracted": ({}, f"<retract node='{BLOG}'><item id='one'/></retract>"),
    "published as deleted": ({}, f"<publish node='{BLOG}'><item id='one'>{DELETED}</item></publish>"),
    "purged": ({}, f"<purge node='{BLOG}'/>"),
    "retracted from a generic node": ({"max_items": "5"}, f"<retract node='{BLOG}'><item id='one'/></retract>"),
    "purged from a generic node": ({"max_items": "5"}, f"<purge node='{BLOG}'/>"),
    "pushed out": ({"max_items": "1"}, LATER),
    "expired": ({"item_expire": "60"}, ""),
    "above a lower max_items": (
        {"max_items": "5"},
        f"<configure node='{BLOG}'>{submit({'pubsub#max_items': '1'})}</configure>",
    ),
}


@pytest.mark.parametrize("removal", REMOVALS)
async def test_attachments_go_with_their_item(component: Component, removal: str) -> None:
    """Whatever removes the item: the attachment node is deleted with an event, and the summary is retracted."""
    options, request = REMOVALS[removal]
    await component.create(ALICE, BLOG, **options)
    await component.publish(ALICE, BLOG, "one")
    ok(await attach(component, BOB, NOTICED))
    for node in (node_of(), ALL):
        await component.subscribe(CAROL, node)
    if removal == "above a lower max_items":
        ok(await component.set(ALICE, LATER))
    await component.events(bare(CAROL))

    component.clock.advance(61)
    ask = component.owner_set if request.startswith(("<purge", "<configure")) else component.set
    if request:
        ok(await ask(ALICE, request))

    assert refusal(await component.get(CAROL, f"<items node={quoteattr(node_of())}/>")) == NOT_FOUND
    assert await component.item_ids(CAROL, ALL) == []
    assert sorted([event_of(message) for message in await component.events(bare(CAROL))]) == ["delete", "retract one"]
    await component.publish(ALICE, BLOG, "one")
    ok(await attach(component, EVE, NOTICED))
    assert await summary(component) == [("noticed", "1")]


def event_of(message: Element) -> str:
    """The deletion of a node, or the retraction of an item."""
    retract = message.find("ev:event/ev:items/ev:retract", NS)
    if retract is not None:
        return f"retract {retract.get('id')}"
    return "delete" if message.find("ev:event/ev:delete", NS) is not None else "another event"


async def test_attachment_nodes_are_found_by_name_and_not_in_lists(blog: Component) -> None:
    """[xep-map 38]: XEP-0470 is silent; they are as many as items, and clients know their names."""
    ok(await attach(blog, BOB, NOTICED))

    for user in (BOB, ALICE):
        listed = ok(await blog.ask(user, "get", f"<query xmlns='{ITEMS}'><set xmlns='{NS['rsm']}'/></query>"))
        assert [item.get("node") for item in listed.iterfind("items:query/items:item", NS)] == [BLOG]
        assert listed.findtext(".//rsm:count", None, NS) == "1"
    for name in (node_of(), ALL):
        answer = ok(await blog.ask(BOB, "get", f"<query xmlns='{INFO}' node={quoteattr(name)}/>"))
        assert answer.find("info:query/info:identity", NS) is not None
    await blog.configure(ALICE, BLOG, access_model="whitelist")
    await blog.configure(ALICE, BLOG, access_model="open")
    listed = ok(await blog.ask(BOB, "get", f"<query xmlns='{ITEMS}'/>"))
    assert [item.get("node") for item in listed.iterfind("items:query/items:item", NS)] == [BLOG]


async def test_attachments_go_with_their_node(blog: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new node of the same name begins without them, and in the end the store has none of their nodes."""
    monkeypatch.setattr(item_writes, "CHUNK", 2)
    monkeypatch.setattr(item_writes, "REAPED", 1)
    for number in range(5):
        await blog.publish(ALICE, BLOG, f"item {number}")
        ok(await attach(blog, BOB, NOTICED, node_of(f"item {number}")))

    ok(await blog.owner_set(ALICE, f"<delete node='{BLOG}'/>"))

    await blog.create(ALICE, BLOG)
    for name in (ALL, *(node_of(f"item {number}") for number in range(5))):
        assert refusal(await blog.get(ALICE, f"<items node={quoteattr(name)}/>")) == NOT_FOUND
    await blog.settle()
    assert await stored_nodes(blog) == [BLOG]


async def stored_nodes(component: Component) -> list[str]:
    """The names of the live nodes in the store, those included that no request finds."""
    return await component.app.service.read(lambda tx, _context: [node.name for node in tx.nodes("", 100)])


async def test_attachments_of_a_deleted_node_are_closed_before_they_are_removed(blog: Component) -> None:
    """The process ends after the first transaction of the deletion, and the next owner of the name begins before the
    rest is removed. The attachments to the items of the new node stay, those to the items of the former node go."""
    await blog.configure(ALICE, BLOG, access_model="whitelist")
    await blog.affiliate(ALICE, BLOG, CAROL, "member")
    await blog.publish(ALICE, BLOG, "two")
    for item_id in ("one", "two"):
        ok(await attach(blog, CAROL, NOTICED, node_of(item_id)))
    await blog.cut()  # rows are removed when the notifications of the deletion are sent
    handle = blog.app.service.handle
    alice, bob = jid(ALICE), jid(BOB)
    request = DeleteNode(alice, DOMAIN, BLOG)
    # In a list the service does not look for more steps.
    await blog.app.service.write(lambda tx, context: [attachments.delete(tx, context, request)])
    await handle(CreateNode(bob, DOMAIN, BLOG, None))
    for name in (node_of(), node_of("two"), ALL):
        for actor in (bob, jid(CAROL)):
            with pytest.raises(FeedError) as caught:
                await handle(Pull(actor, DOMAIN, name))
            assert caught.value.condition is Condition.ITEM_NOT_FOUND
    await handle(Publish(bob, DOMAIN, BLOG, "one", draft_of(etree.fromstring(entry("one")))))
    payload = draft_of(etree.fromstring(f"<attachments xmlns='{SPACE}'>{NOTICED}</attachments>"))
    await handle(Publish(bob, DOMAIN, node_of(), bare(BOB), payload))

    await blog.link()
    await blog.settle()

    assert await stored_nodes(blog) == sorted([BLOG, node_of(), ALL])
    assert (await pull(blog, node_of(), user=CAROL)).ids == [bare(BOB)]
    assert await summary(blog, user=CAROL) == [("noticed", "1")]


async def test_new_models_and_a_lower_max_items_apply_together(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items above max_items are removed in steps, and no step is needed to close the attachments."""
    monkeypatch.setattr(expiry, "CHUNK", 2)
    await component.create(ALICE, BLOG, max_items="20")
    for number in range(9):
        await component.publish(ALICE, BLOG, f"i{number}")
        ok(await attach(component, BOB, NOTICED, node_of(f"i{number}")))

    form = {"pubsub#max_items": ("3",), "pubsub#access_model": ("whitelist",)}
    request = Configure(jid(ALICE), DOMAIN, BLOG, form)
    # The first step alone: in a list the service does not look for others.
    (more,) = await component.app.service.write(lambda tx, context: [nodes.configure(tx, context, request)])

    assert isinstance(more, MoreSteps)
    for name in (BLOG, node_of("i8"), ALL):
        assert refusal(await component.get(CAROL, f"<items node={quoteattr(name)}/>")) == CLOSED
    await component.app.service.write(more.step)
    assert await component.item_ids(ALICE, BLOG) == await component.item_ids(ALICE, ALL) == ["i6", "i7", "i8"]


async def test_redirect_is_sent_to_the_subscribers_of_the_node_alone(blog: Component) -> None:
    """Attachments are not at the new address."""
    ok(await attach(blog, BOB, NOTICED))
    for name in (node_of(), ALL):
        await blog.subscribe(CAROL, name)
    await blog.subscribe(EVE, BLOG)
    await blog.events(bare(CAROL))
    await blog.events(bare(EVE))

    redirect = f"<delete node='{BLOG}'><redirect uri='xmpp:{DOMAIN}?;node=other'/></delete>"
    ok(await blog.owner_set(ALICE, redirect))
    await blog.settle()

    (message,) = await blog.events(bare(EVE))
    assert message.find("ev:event/ev:delete/ev:redirect", NS) is not None
    deletions = [message.find("ev:event/ev:delete", NS) for message in await blog.events(bare(CAROL))]
    # Each node has its own place in the turns of notifications.
    assert {(each.get("node"), len(each)) for each in deletions if each is not None} == {(ALL, 0), (node_of(), 0)}
    assert len(deletions) == 2


async def test_attachments_have_no_attachments(blog: Component) -> None:
    """Otherwise nobody would answer for them: neither the rights nor the deletion of the blog would reach them."""
    ok(await attach(blog, BOB, NOTICED))
    for nested in (
        node_of(bare(BOB), node_of()),
        node_of("one", ALL),
        node_of(bare(BOB), node_of(bare(BOB), node_of())),
    ):
        assert refusal(await attach(blog, BOB, NOTICED, nested)) == NOT_ALLOWED
    assert await stored_nodes(blog) == sorted([BLOG, node_of(), ALL])


async def test_hostile_reactions_are_stored_and_not_counted(blog: Component) -> None:
    """The summary has a bounded size: at most 32 reactions of a user, 500 in all, and no other texts than emojis."""
    ok(await attach(blog, BOB, reactions("", " ", "text", "👍" * 17, "<b xmlns='urn:x'/>", "1", "👍🏽", "❤️", "👨‍👩‍👧")))
    assert {text for text, _ in await summary(blog)} == {"1", "👍🏽", "❤️", "👨‍👩‍👧"}
    many = [chr(0x1F300 + number) for number in range(600)]
    for number in range(0, 600, 32):
        ok(await attach(blog, f"user{number}@example.org/x", reactions(*many[number : number + 40])))

    entries = await summary(blog)
    assert len(entries) == 500 and {count for _, count in entries} == {None}


async def test_reactions_are_counted_while_the_summary_is_full(blog: Component) -> None:
    """Taking back a reaction that had no room in the summary changes no other count."""
    many = [chr(0x1F300 + number) for number in range(512)]
    for number in range(0, 512, 32):
        ok(await attach(blog, f"user{number}@example.org/x", reactions(*many[number : number + 32])))
    ok(await attach(blog, CAROL, reactions("❤️")))
    assert "❤️" not in dict(await summary(blog))

    ok(await attach(blog, "user0@example.org/x", NOTICED))
    ok(await attach(blog, BOB, reactions("❤️")))
    assert dict(await summary(blog))["❤️"] == "2"
    ok(await attach(blog, CAROL, NOTICED))

    assert dict(await summary(blog))["❤️"] is None
    assert dict(await summary(blog))["noticed"] == "2"


async def test_attachment_with_more_reactions_than_are_counted_is_refused(
    blog: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reaction that is not counted could not be taken back. Known reactions, and fewer of them, are accepted."""
    monkeypatch.setattr(attachments, "MAX_COUNTS", 3)
    ok(await attach(blog, BOB, reactions("👍", "🎉", "❤️")))

    refused = await attach(blog, CAROL, reactions("👍", "🙈"))

    assert refusal(refused).condition == "policy-violation"
    ok(await attach(blog, CAROL, reactions("👍")))
    await blog.retract(BOB, node_of(), bare(BOB))
    ok(await attach(blog, CAROL, reactions("👍", "🙈")))
    assert await summary(blog) == [("👍", None), ("🙈", None)]


async def test_names_of_attachments_of_other_services_are_ordinary_names(blog: Component) -> None:
    """[xep-map 48]: as those that have no address of an item."""
    for name in (
        node_of(service="juliet@capulet.lit"),
        f"{SPACE}/xmpp:{DOMAIN}",
        f"{SPACE}/x",
        f"{SPACE}/xmpp:@?;node=a;item=b",
    ):
        await blog.create(ALICE, name)
        await blog.publish(ALICE, name, "any id")
        assert await blog.item_ids(BOB, name) == ["any id"]


async def test_attachments_are_announced(blog: Component) -> None:
    """XEP-0470 6."""
    info = ok(await blog.ask(BOB, "get", f"<query xmlns='{INFO}'/>"))

    assert SPACE in info.xpath(".//info:feature/@var", namespaces=NS)


async def test_attachment_node_is_described_and_subscribed_to_by_its_name(blog: Component) -> None:
    """[xep-map 48]: the query-like text in the name is part of the name in every request."""
    ok(await attach(blog, BOB, NOTICED))

    info = ok(await blog.ask(CAROL, "get", f"<query xmlns='{INFO}' node={quoteattr(node_of())}/>"))
    assert info.xpath("string(.//info:identity/@type)", namespaces=NS) == "leaf"
    await blog.subscribe(CAROL, node_of())
    ok(await attach(blog, EVE, NOTICED))
    (message,) = await blog.events(bare(CAROL))
    assert message.xpath("string(.//ev:items/@node)", namespaces=NS) == node_of()
    assert message.xpath("string(.//ev:item/@id)", namespaces=NS) == bare(EVE)


@pytest.mark.parametrize("name", [node_of(), ALL])
async def test_outcast_of_the_target_receives_no_more_attachments(blog: Component, name: str) -> None:
    """[xep-map 181]: although the attachment node itself has not changed."""
    ok(await attach(blog, CAROL, NOTICED))
    await blog.subscribe(BOB, name)
    await blog.subscribe(CAROL, name)
    ok(await attach(blog, CAROL, reactions("👍")))
    assert len(await blog.events(bare(BOB))) == len(await blog.events(bare(CAROL))) == 1

    await blog.affiliate(ALICE, BLOG, BOB, "outcast")
    ok(await attach(blog, CAROL, reactions("🎉")))

    assert await blog.events(bare(BOB)) == []
    assert len(await blog.events(bare(CAROL))) == 1


async def test_subscriber_of_a_target_with_authorization_reads_its_attachments(component: Component) -> None:
    """XEP-0470 4.4: the same access as to the target."""
    await component.create(ALICE, BLOG, access_model="authorize")
    await component.publish(ALICE, BLOG, "one")
    assert await component.subscribe(BOB, BLOG) == "pending"
    assert refusal(await attach(component, BOB, NOTICED)) == Refusal("auth", "not-authorized", "not-subscribed")
    state = f"<subscription jid='{bare(BOB)}' subscription='subscribed'/>"
    ok(await component.owner_set(ALICE, f"<subscriptions node='{BLOG}'>{state}</subscriptions>"))

    ok(await attach(component, BOB, NOTICED))

    assert (await pull(component, node_of(), user=BOB)).ids == [bare(BOB)]
    assert await summary(component, user=BOB) == [("noticed", "1")]
    closed = await component.get(CAROL, f"<items node={quoteattr(node_of())}/>")
    assert refusal(closed) == Refusal("auth", "not-authorized", "not-subscribed")


async def test_approved_subscriber_of_the_target_follows_its_attachments(component: Component) -> None:
    """XEP-0470 4.4: without another approval, and as long as the subscription to the target lasts. Others are not
    subscribed, and no owner is asked: an approval for the attachments alone would admit to nothing."""
    await component.create(ALICE, BLOG, access_model="authorize")
    await component.publish(ALICE, BLOG, "one")
    await component.subscribe(BOB, BLOG)
    await component.events(bare(ALICE))
    for state, messages in (("subscribed", 1), ("none", 0)):
        entries = f"<subscription jid='{bare(BOB)}' subscription='{state}'/>"
        ok(await component.owner_set(ALICE, f"<subscriptions node='{BLOG}'>{entries}</subscriptions>"))
        await component.events(bare(BOB))
        if messages:
            ok(await attach(component, BOB, NOTICED))
            assert [await component.subscribe(BOB, name) for name in (node_of(), ALL)] == ["subscribed", "subscribed"]

        ok(await attach(component, ALICE, reactions("👍" if messages else "🎉")))

        nodes_of = [each.find("ev:event/ev:items", NS) for each in await component.events(bare(BOB))]
        # Each node has its own place in the turns of notifications.
        names = sorted([each.get("node", "") for each in nodes_of if each is not None])
        assert names == [node_of(), ALL][: 2 * messages]
    for name in (node_of(), ALL):
        stranger = await component.set(CAROL, f"<subscribe node={quoteattr(name)} jid='{bare(CAROL)}'/>")
        assert refusal(stranger) == Refusal("auth", "not-authorized", "not-subscribed")
    assert await component.events(bare(ALICE)) == []
