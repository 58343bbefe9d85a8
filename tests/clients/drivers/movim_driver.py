"""The stanzas of Movim, as its sources make them, and its way to read the answers.

A feed is a community with posts. A generic node is a Space, whose items are bookmarks of rooms. Movim itself is a web
application in PHP; slixmpp carries the stanzas here.
"""

import asyncio
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

from slixmpp_driver import Driver as SlixmppDriver

from protocol import ATOM, Missing, serve

PS = "http://jabber.org/protocol/pubsub"
RSM = "http://jabber.org/protocol/rsm"
BOOKMARKS = "urn:xmpp:bookmarks:1"
COMMENTS = "urn:xmpp:microblog:0:comments"
AVATAR = "urn:xmpp:avatar:metadata"
PAGE = 12

COMMUNITY = {
    "FORM_TYPE": f"{PS}#node_config",
    "pubsub#persist_items": "true",
    "pubsub#deliver_payloads": "false",
    "pubsub#send_last_published_item": "on_sub",
    "pubsub#access_model": "open",
    "pubsub#max_items": "max",
}
COMMENT_NODE = {
    "FORM_TYPE": f"{PS}#node_config",
    "pubsub#persist_items": "true",
    "pubsub#max_items": "max",
    "pubsub#send_last_published_item": "on_sub",
    "pubsub#deliver_payloads": "false",
    "pubsub#access_model": "open",
    "pubsub#publish_model": "open",
    "pubsub#itemreply": "publisher",
    "pubsub#notify_retract": "true",
}
POST = {
    "FORM_TYPE": f"{PS}#publish-options",
    "pubsub#persist_items": "true",
    "pubsub#max_items": "max",
    "pubsub#itemreply": "publisher",
    "pubsub#notify_sub": "true",
}
SPACE = {
    "pubsub#type": "urn:xmpp:spaces:0",
    "pubsub#notify_retract": "true",
    "pubsub#persist_items": "true",
    "pubsub#purge_offline": "false",
    "pubsub#notify_sub": "true",
    "pubsub#notify_config": "true",
    "pubsub#notify_delete": "true",
    "pubsub#max_items": "max",
    "pubsub#publish_model": "publishers",
    "pubsub#access_model": "authorize",
    "pubsub#deliver_payloads": "true",
}
AVATAR_OPTIONS = {
    "FORM_TYPE": f"{PS}#publish-options",
    "pubsub#persist_items": "true",
    "pubsub#access_model": "presence",
    "pubsub#send_last_published_item": "on_sub_and_presence",
    "pubsub#deliver_payloads": "true",
    "pubsub#max_items": "1",
}


def form(values: dict[str, str]) -> str:
    """A submitted form as Movim writes it: without types of fields."""
    fields = []
    for name, value in values.items():
        hidden = " type='hidden'" if name == "FORM_TYPE" else ""
        fields.append(f"<field{hidden} var={quoteattr(name)}><value>{escape(value)}</value></field>")
    return f"<x xmlns='jabber:x:data' type='submit'>{''.join(fields)}</x>"


def read_items(answer: ET.Element) -> list[dict[str, str]]:
    """Ids and titles. An item of a Space has its title in the name of the conference."""
    items = []
    for item in answer.iter(f"{{{PS}}}item"):
        conference = item.find(f"{{{BOOKMARKS}}}conference")
        title = item.findtext(f"{{{ATOM}}}entry/{{{ATOM}}}title") or ""
        items.append({"id": item.get("id", ""), "title": title if conference is None else conference.get("name", "")})
    return items


class Driver(SlixmppDriver):
    """Calls of the test as stanzas of Movim."""

    async def _send(self, kind: str, body: str) -> ET.Element:
        iq = self.client.Iq(stype=kind, sto=self.service)
        iq.append(ET.fromstring(body))
        answer: ET.Element = (await iq.send()).xml
        return answer

    async def _pubsub(self, kind: str, body: str, owner: bool = False) -> ET.Element:
        return await self._send(kind, f"<pubsub xmlns='{PS}{'#owner' if owner else ''}'>{body}</pubsub>")

    async def create(self, node: str, config: dict[str, str]) -> str:
        values = COMMUNITY if config["max_items"] == "max" else {"FORM_TYPE": f"{PS}#node_config", **SPACE}
        body = f"<create node='{node}'/><configure>{form({**values, 'pubsub#title': config['title']})}</configure>"
        await self._pubsub("set", body)
        return node

    def _entry(self, node: str, item: str, title: str, links: str = "") -> str:
        return (
            f"<entry xmlns='{ATOM}'><id>{item}</id><title>{escape(title)}</title>"
            f"<author><name>Movim</name><uri>xmpp:{self.client.boundjid.bare}</uri></author>"
            f"<link rel='alternate' href='xmpp:{self.service}?;node={node};item={item}'/>{links}"
            f"<content type='text'>Text</content><published>2026-01-02T03:04:05+00:00</published>"
            f"<category term='tag'/><updated>2026-01-02T03:04:05+00:00</updated></entry>"
        )

    async def publish(
        self, node: str, item_id: str, title: str, kind: str, options: dict[str, Any] | None = None
    ) -> str:
        if kind == "atom":
            payload, values = self._entry(node, item_id, title), POST
        else:
            name = quoteattr(title)
            payload = f"<conference xmlns='{BOOKMARKS}' name={name} autojoin='true'><nick>me</nick></conference>"
            values = SPACE
        written = f"<publish-options>{form(values)}</publish-options>" if options else ""
        await self._pubsub("set", f"<publish node='{node}'><item id='{item_id}'>{payload}</item></publish>{written}")
        return item_id

    async def items(self, node: str, max_items: int | None = None) -> list[dict[str, str]]:
        return read_items(await self._pubsub("get", f"<items node='{node}' max_items='{max_items or PAGE}'/>"))

    async def item(self, node: str, item_id: str) -> list[dict[str, str]]:
        return read_items(await self._pubsub("get", f"<items node='{node}'><item id='{item_id}'/></items>"))

    async def walk(self, node: str, size: int, back: bool) -> list[list[str]]:
        """Older pages have the last item of the page before as `before`; newer ones its first as `after`."""
        answer = await self._pubsub("get", f"<items node='{node}' max_items='{size}'/>")
        pages = []
        while items := read_items(answer):
            pages.append([item["id"] for item in items])
            answer_of_oldest = answer
            last = answer.findtext(f".//{{{RSM}}}set/{{{RSM}}}last")
            if last is None:
                raise ValueError("no result set in the answer to max_items")
            position = f"<before>{escape(last)}</before><max>{size}</max>"
            answer = await self._pubsub("get", f"<set xmlns='{RSM}'>{position}</set><items node='{node}'/>")
        if back or not pages:
            return pages
        return await self._newer(node, size, answer_of_oldest, pages)

    async def _newer(self, node: str, size: int, answer: ET.Element, pages: list[list[str]]) -> list[list[str]]:
        """The pages of the button for newer posts, from the oldest page on.

        GetItems exchanges `first` and `last` of an answer to `after`, and the button sends the `first` that it has.
        """
        newer = [pages[-1]]
        end = "first"
        while newer[-1] != pages[0] and (position := answer.findtext(f".//{{{RSM}}}set/{{{RSM}}}{end}")):
            limits = f"<after>{escape(position)}</after><max>{size}</max>"
            answer = await self._pubsub("get", f"<set xmlns='{RSM}'>{limits}</set><items node='{node}'/>")
            end = "last"
            newer.append([item["id"] for item in read_items(answer)])
        return newer

    async def subscribe(self, node: str) -> str:
        answer = await self._pubsub("set", f"<subscribe node='{node}' jid='{self.client.boundjid.bare}'/>")
        subscription = answer.find(f".//{{{PS}}}subscription")
        return "" if subscription is None else subscription.get("subscription", "")

    async def event(self, **wanted: Any) -> dict[str, Any]:
        """Movim requests the items of notifications that have no payload."""
        event = await self.events.wait(**wanted)
        if event["kind"] == "item" and not event["title"]:
            event = event | (await self.item(event["node"], event["id"]))[0]
        return event

    async def subscriptions(self) -> None:
        raise Missing("keeps its subscriptions in the user's own account")

    async def unsubscribe(self, node: str) -> None:
        await self._pubsub("set", f"<unsubscribe node='{node}' jid='{self.client.boundjid.bare}'/>")

    async def retract(self, node: str, item_id: str) -> None:
        await self._pubsub("set", f"<retract node='{node}' notify='true'><item id='{item_id}'/></retract>")

    async def purge(self, **_more: Any) -> None:
        raise Missing("purges no nodes")

    async def delete(self, node: str) -> None:
        await self._pubsub("set", f"<delete node='{node}'/>", owner=True)

    async def config(self, node: str) -> dict[str, Any]:
        answer = await self._pubsub("get", f"<configure node='{node}'/>", owner=True)
        return {one.get("var", ""): one.findtext("{jabber:x:data}value") for one in answer.iter("{jabber:x:data}field")}

    async def configure(self, node: str, values: dict[str, str]) -> None:
        named = {f"pubsub#{name}": value for name, value in values.items()}
        body = form({**named, "FORM_TYPE": f"{PS}#node_config"})
        await self._pubsub("set", f"<configure node='{node}'>{body}</configure>", owner=True)

    async def affiliations(self, node: str) -> dict[str, str]:
        answer = await self._pubsub("get", f"<affiliations node='{node}'/>", owner=True)
        found = answer.iter(f"{{{PS}#owner}}affiliation")
        return {one.get("jid", ""): one.get("affiliation", "") for one in found}

    async def affiliate(self, node: str, jid: str, affiliation: str) -> None:
        body = f"<affiliation jid='{jid}' affiliation='{affiliation}'/>"
        await self._pubsub("set", f"<affiliations node='{node}'>{body}</affiliations>", owner=True)

    async def own_affiliations(self) -> None:
        raise Missing("does not ask for them")

    async def decide(self, **_more: Any) -> None:
        raise Missing("decides requests by affiliations")

    async def subscribers(self, node: str) -> dict[str, str]:
        answer = await self._pubsub("get", f"<subscriptions node='{node}'/>", owner=True)
        found = answer.iter(f"{{{PS}#owner}}subscription")
        return {one.get("jid", ""): one.get("subscription", "") for one in found}

    async def comment(self, node: str, item_id: str, title: str) -> list[dict[str, str]]:
        """A post with a node for its comments, a comment and a like. Returns what the comment node has."""
        comments = f"{COMMENTS}/{item_id}"
        link = f"<link rel='replies' title='comments' href='xmpp:{self.service}?;node={comments}'/>"
        item = f"<item id='{item_id}'>{self._entry(node, item_id, title, link)}</item>"
        options = f"<publish-options>{form(POST)}</publish-options>"
        await self._pubsub("set", f"<create node='{comments}'/><configure>{form(COMMENT_NODE)}</configure>")
        await self._pubsub("set", f"<publish node='{node}'>{item}</publish>{options}")
        for comment, text in (("c1", "A comment"), ("c2", "♥")):
            entry = self._entry(comments, comment, text)
            await self._pubsub("set", f"<publish node='{comments}'><item id='{comment}'>{entry}</item></publish>")
        return await self.items(comments, 500)

    async def avatar(self, node: str) -> list[str]:
        """The avatar of the node, which is an item among the others. Returns the addresses of pictures."""
        info = (
            "<info url='https://example.org/a.jpg' width='350' height='350' type='image/jpeg' id='0beec7b5' bytes='3'/>"
        )
        item = f"<item id='{AVATAR}'><metadata xmlns='{AVATAR}'>{info}</metadata></item>"
        options = f"<publish-options>{form(AVATAR_OPTIONS)}</publish-options>"
        await self._pubsub("set", f"<publish node='{node}'>{item}</publish>{options}")
        answer = await self._pubsub("get", f"<items node='{node}'><item id='{AVATAR}'/></items>")
        return [one.get("url", "") for one in answer.iter(f"{{{AVATAR}}}info")]

    async def probe(self, node: str) -> None:
        """How Movim finds out what the user may do: a node and an item that it deletes again."""
        await self._pubsub("set", f"<create node='{node}-test_node'/><configure>{form(COMMUNITY)}</configure>")
        await self._pubsub("set", f"<delete node='{node}-test_node'/>", owner=True)
        options = form({"FORM_TYPE": f"{PS}#publish-options", "pubsub#persist_items": "true"})
        item = f"<item id='test_post'><entry xmlns='{ATOM}'/></item>"
        body = f"<publish node='{node}'>{item}</publish><publish-options>{options}</publish-options>"
        await self._pubsub("set", body)
        await self.retract(node, "test_post")

    async def gallery(self, node: str) -> None:
        """Makes a community a gallery."""
        await self.configure(node, {"type": "urn:xmpp:pubsub-social-feed:gallery:1"})

    async def pending(self, node: str) -> str:
        """Asks for those who wait for approval: one command with a session id of Movim's own."""
        fields = f"<field var='pubsub#node'><value>{node}</value></field>"
        body = (
            f"<command xmlns='http://jabber.org/protocol/commands' node='{PS}#get-pending' sessionid='from-movim' "
            f"action='execute'><x xmlns='jabber:x:data' type='submit'>{fields}</x></command>"
        )
        answer = await self._send("set", body)
        return answer[0].get("status", "")


if __name__ == "__main__":
    asyncio.run(serve(Driver()))
