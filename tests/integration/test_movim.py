"""The stanzas of Movim, replayed on a default service (https://github.com/movim/movim, src/Moxl/Stanza).

Movim answers a conflict by publishing without options, so a service that meets its options gets each post once.
"""

from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha1
from pathlib import Path

import pytest
from lxml import etree

from support.client import Client, ClientFactory
from support.component import NS, OWNER, PS, form, headers
from support.servers import TestServer
from support.service import running, write_config

CONFIG, OPTIONS = f"{PS}#node_config", f"{PS}#publish-options"
POST_OPTIONS = {"persist_items": "true", "max_items": "max", "itemreply": "publisher", "notify_sub": "true"}
SPACE = {
    "type": "urn:xmpp:spaces:0",
    "notify_retract": "true",
    "persist_items": "true",
    "purge_offline": "false",
    "notify_sub": "true",
    "notify_config": "true",
    "notify_delete": "true",
    "max_items": "max",
    "publish_model": "publishers",
    "access_model": "authorize",
    "deliver_payloads": "true",
}
AVATAR_OPTIONS = {
    "persist_items": "true",
    "access_model": "presence",
    "send_last_published_item": "on_sub_and_presence",
    "deliver_payloads": "true",
    "max_items": "1",
}
PICTURE = b"a picture"


class Movim:
    """A user of Movim at one pubsub service. Every request that is no `set` of options must succeed."""

    def __init__(self, client: Client, service: str) -> None:
        self.client = client
        self.service = service

    async def set(self, inner: str, namespace: str = PS) -> etree._Element:
        return await self.client.set(self.service, f"<pubsub xmlns='{namespace}'>{inner}</pubsub>")

    async def done(self, inner: str, namespace: str = PS) -> None:
        answer = await self.set(inner, namespace)
        assert answer.get("type") == "result", etree.tostring(answer)

    async def create(self, node: str, **options: str) -> None:
        await self.done(f"<create node='{node}'/><configure>{form(CONFIG, **options)}</configure>")

    async def community(self, node: str) -> None:
        """Pubsub::create, the same for lists and galleries."""
        await self.create(
            node,
            persist_items="true",
            deliver_payloads="false",
            send_last_published_item="on_sub",
            access_model="open",
            max_items="max",
            title="A community",
        )

    async def publish(self, node: str, item_id: str, payload: str, options: dict[str, str] | None = None) -> None:
        beside = f"<publish-options>{form(OPTIONS, '', **options)}</publish-options>" if options is not None else ""
        await self.done(f"<publish node='{node}'><item id='{item_id}'>{payload}</item></publish>{beside}")

    def entry(self, node: str, item_id: str, inner: str = "") -> str:
        """PubsubAtom::getDom: the id of the item as atom:id, dates with an offset."""
        return (
            f"<entry xmlns='http://www.w3.org/2005/Atom'><id>{item_id}</id><title>A post</title>"
            f"<author><name>Alice</name><uri>xmpp:{self.client.bare}</uri></author>"
            f"<link rel='alternate' href='xmpp:{self.service}?;node={node};item={item_id}'/>{inner}"
            "<content type='text'>text</content><published>2026-01-01T00:00:00+00:00</published>"
            "<category term='tag'/><updated>2026-01-01T00:00:00+00:00</updated></entry>"
        )

    async def items(self, node: str, inner: str = "", max_items: str = " max_items='12'") -> list[str | None]:
        answer = await self.client.get(
            self.service, f"<pubsub xmlns='{PS}'><items node='{node}'{max_items}>{inner}</items></pubsub>"
        )
        assert answer.get("type") == "result", etree.tostring(answer)
        return [item.get("id") for item in answer.iterfind("ps:pubsub/ps:items/ps:item", NS)]

    async def subscribe(self, node: str) -> None:
        await self.done(f"<subscribe node='{node}' jid='{self.client.bare}'/>")


@pytest.fixture
async def service(server: TestServer, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a service with default settings."""
    name = server.take_name()
    async with running(write_config(tmp_path, server, name)):
        yield name


async def test_probe_creates_publishes_retracts_and_deletes(
    service: str, server: TestServer, client: ClientFactory
) -> None:
    """Pubsub::testPostPublish: an empty entry; then the post is retracted and the node deleted."""
    alice = Movim(await client(server, "alice"), service)

    await alice.community("test_node")
    empty = "<entry xmlns='http://www.w3.org/2005/Atom'/>"
    await alice.publish("test_node", "test_post", empty, {"persist_items": "true"})
    await alice.done("<retract node='test_node' notify='true'><item id='test_post'/></retract>")
    await alice.done("<delete node='test_node'/>", OWNER)
    await alice.community("test_node")


async def test_post_comment_and_like_reach_subscribers_with_one_request_each(
    service: str, server: TestServer, client: ClientFactory
) -> None:
    alice, bob = Movim(await client(server, "alice"), service), Movim(await client(server, "bob"), service)
    await alice.community("blog")
    await bob.subscribe("blog")
    comments = "urn:xmpp:microblog:0:comments/post-1"
    link = f"<link rel='replies' title='comments' href='xmpp:{service}?;node={comments}'/>"

    await alice.publish("blog", "post-1", alice.entry("blog", "post-1", link), POST_OPTIONS)
    message = await bob.client.next_message()
    await alice.create(
        comments,
        persist_items="true",
        max_items="max",
        send_last_published_item="on_sub",
        deliver_payloads="false",
        access_model="open",
        publish_model="open",
        itemreply="publisher",
        notify_retract="true",
    )
    await alice.subscribe(comments)
    await bob.publish(comments, "comment-1", bob.entry(comments, "comment-1"))
    await bob.publish(comments, "like-1", bob.entry(comments, "like-1").replace("A post", "♥"))

    (item,) = message.iterfind("ev:event/ev:items[@node='blog']/ev:item", NS)
    assert (item.get("id"), item.get("publisher"), len(item)) == ("post-1", alice.client.bare, 0)
    assert headers(message)["TotalItems"] == "1"
    told = [await alice.client.next_message() for _ in range(2)]
    assert [i.get("id") for m in told for i in m.iterfind(".//ev:item", NS)] == ["comment-1", "like-1"]
    assert await alice.items(comments, max_items=" max_items='500'") == ["comment-1", "like-1"]
    assert await bob.items("blog", "<item id='post-1'/>", "") == ["post-1"]


async def test_gallery_accepts_pictures(service: str, server: TestServer, client: ClientFactory) -> None:
    """CommunityConfig sets the type of a community that exists; a gallery stays a feed."""
    alice = Movim(await client(server, "alice"), service)
    await alice.community("gallery")
    changed = form(CONFIG, type="urn:xmpp:pubsub-social-feed:gallery:1", title="Pictures", publish_model="publishers")
    await alice.done(f"<configure node='gallery'>{changed}</configure>", OWNER)

    enclosure = "<link rel='enclosure' href='https://example.org/a.jpg' type='image/jpeg'/>"
    await alice.publish("gallery", "picture-1", alice.entry("gallery", "picture-1", enclosure), POST_OPTIONS)

    assert await alice.items("gallery") == ["picture-1"]


async def test_space_holds_rooms(service: str, server: TestServer, client: ClientFactory) -> None:
    """Space::create and AddRoom, whose publish-options have no FORM_TYPE; bookmarks are no Atom entries."""
    alice = Movim(await client(server, "alice"), service)
    await alice.create("space", title="A space", **SPACE)
    options = form(OPTIONS, "", **SPACE).replace(f'<field var="FORM_TYPE"><value>{OPTIONS}</value></field>', "")
    assert "FORM_TYPE" not in options

    for room in ("one@rooms.example", "two@rooms.example"):
        bookmark = (
            "<conference xmlns='urn:xmpp:bookmarks:1' name='A room' autojoin='true'><nick>alice</nick></conference>"
        )
        item = f"<publish node='space'><item id='{room}'>{bookmark}</item></publish>"
        await alice.done(f"{item}<publish-options>{options}</publish-options>")
    await alice.done("<retract node='space' notify='true'><item id='two@rooms.example'/></retract>")

    assert await alice.items("space") == ["one@rooms.example"]


@pytest.mark.parametrize("first", [True, False])
async def test_picture_of_a_community_beside_its_posts(
    service: str, server: TestServer, client: ClientFactory, first: bool
) -> None:
    """Avatar::setMetadata. Its options describe the avatar node of a user. They are no conditions, and the community is
    still what it was."""
    alice, bob = Movim(await client(server, "alice"), service), Movim(await client(server, "bob"), service)
    await alice.community("blog")
    if not first:
        await alice.publish("blog", "post-1", alice.entry("blog", "post-1"), POST_OPTIONS)
    digest = sha1(PICTURE).hexdigest()
    metadata = (
        "<metadata xmlns='urn:xmpp:avatar:metadata'><info url='https://example.org/a.jpg' width='350' height='350'"
        f" type='image/jpeg' id='{digest}' bytes='{len(PICTURE)}'/></metadata>"
    )
    avatar = f"<publish node='blog'><item id='urn:xmpp:avatar:metadata'>{metadata}</item></publish>"

    await alice.done(f"{avatar}<publish-options>{form(OPTIONS, '', **AVATAR_OPTIONS)}</publish-options>")
    if first:
        await alice.publish("blog", "post-1", alice.entry("blog", "post-1"), POST_OPTIONS)

    assert sorted(await bob.items("blog", max_items="")) == ["post-1", "urn:xmpp:avatar:metadata"]
    assert await bob.items("blog", "<item id='urn:xmpp:avatar:metadata'/>", "") == ["urn:xmpp:avatar:metadata"]
    await bob.done(f"<subscribe node='blog?order=modified' jid='{bob.client.bare}'/>")


async def test_avatar_nodes_of_a_pubsub_service(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """Avatar::set on a service that creates nodes: one request makes a node with one item of another format."""
    name = server.take_name()
    async with running(write_config(tmp_path, server, name, pubsub={"creators": ["localhost"], "auto_create": True})):
        alice = Movim(await client(server, "alice"), name)
        options = AVATAR_OPTIONS | {"access_model": "open", "send_last_published_item": "on_sub"}
        for picture in (b"old", PICTURE):
            data = f"<data xmlns='urn:xmpp:avatar:data'>{b64encode(picture).decode()}</data>"
            await alice.publish("urn:xmpp:avatar:data", sha1(picture).hexdigest(), data, options)

        assert await alice.items("urn:xmpp:avatar:data") == [sha1(PICTURE).hexdigest()]
