"""Requests about subscriptions, and the elements that respond to them (XEP-0060 5.6, 6.1, 6.2)."""

from support.component import BOB, NS, PS, Component, Element, Tree, bare, ok, tree

BOBS = bare(BOB)


def subscription(jid: str = BOBS, node: str = "comments", state: str = "subscribed") -> str:
    """The element that tells of a subscription."""
    return f"<subscription node='{node}' jid='{jid}' subscription='{state}'/>"


def pubsub(inner: str) -> Tree:
    """The `pubsub` element of an answer."""
    return tree(f"<pubsub xmlns='{PS}'>{inner}</pubsub>")


async def request(component: Component, jid: str = BOBS, node: str = "comments", user: str = BOB) -> Element:
    """The answer to a request to subscribe."""
    return await component.set(user, f"<subscribe node='{node}' jid='{jid}'/>")


async def listed(component: Component, user: str = BOB, node: str = "") -> list[tuple[str, str, str]]:
    """The subscriptions that an entity is told: node, jid, state."""
    attribute = f" node='{node}'" if node else ""
    answer = ok(await component.get(user, f"<subscriptions{attribute}/>"))
    rows = answer.findall("ps:pubsub/ps:subscriptions/ps:subscription", NS)
    assert all(set(each.attrib) == {"node", "jid", "subscription"} for each in rows)
    return [(str(e.get("node")), str(e.get("jid")), str(e.get("subscription"))) for e in rows]
