"""Pulls over the wire as protocol tests need them: requests put together, answers taken apart and checked for form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from smartfeeds.core.model import Item
from smartfeeds.formats.payload import complete_entry
from smartfeeds.store.base import WriteTx
from support.component import ALICE, BOB, DOMAIN, NS, PS, RSM, Component, Element, bare, entry, ok, text_of

ORDER_BY = "urn:xmpp:order-by:1"
Value = str | int | None  # of an element of a result set; None: the element is absent
_SET = "{http://jabber.org/protocol/rsm}"


@dataclass(frozen=True, slots=True)
class Shown:
    """A page as it came. What the result set lacks is None."""

    ids: list[str]
    has_result_set: bool
    first: str | None
    last: str | None
    index: int | None
    count: int | None
    items: list[Element]

    @property
    def set(self) -> tuple[str | None, str | None, int | None, int | None]:
        """First, last, index, count."""
        return self.first, self.last, self.index, self.count


def result_set(**values: Value) -> str:
    """A `<set/>`; an empty text makes an empty element, None makes none."""
    inner = "".join(
        f"<{name}>{escape(str(value))}</{name}>" if value != "" else f"<{name}/>"
        for name, value in values.items()
        if value is not None
    )
    return f"<set xmlns='{RSM}'>{inner}</set>"


def order_by(by: str, desc: str = "") -> str:
    """An `<order/>` of XEP-0413."""
    return f"<order xmlns='{ORDER_BY}' by={quoteattr(by)}{f' desc={quoteattr(desc)}' if desc else ''}/>"


async def request(
    component: Component,
    node: str,
    *,
    user: str = BOB,
    to: str = DOMAIN,
    ids: Iterable[str] = (),
    max_items: str | int | None = None,
    beside: str = "",
    max: Value = None,  # noqa: A002 - the name it has on the wire
    after: Value = None,
    before: Value = None,
    index: Value = None,
) -> Element:
    """Asks for items; the answer, whatever it is. Where nothing of a result set is given there is none."""
    limit = f" max_items='{max_items}'" if max_items is not None else ""
    items = "".join(f"<item id={quoteattr(item_id)}/>" for item_id in ids)
    values = {"max": max, "after": after, "before": before, "index": index}
    page = result_set(**values) if any(value is not None for value in values.values()) else ""
    return await component.get(user, f"<items node={quoteattr(node)}{limit}>{items}</items>{page}{beside}", to)


async def pull(
    component: Component,
    node: str,
    *,
    user: str = BOB,
    to: str = DOMAIN,
    ids: Iterable[str] = (),
    max_items: str | int | None = None,
    beside: str = "",
    max: Value = None,  # noqa: A002 - the name it has on the wire
    after: Value = None,
    before: Value = None,
    index: Value = None,
) -> Shown:
    """A page, which has to be a result of the form that XEP-0060 and XEP-0059 have."""
    answer = await request(
        component,
        node,
        user=user,
        to=to,
        ids=ids,
        max_items=max_items,
        beside=beside,
        max=max,
        after=after,
        before=before,
        index=index,
    )
    return shown(answer, node)


def shown(answer: Element, node: str) -> Shown:
    """Takes a page apart; fails for anything in it that does not belong there [xep-map 208]."""
    (pubsub,) = ok(answer)
    assert pubsub.tag == f"{{{PS}}}pubsub", text_of(answer)
    items, *rest = pubsub
    assert (items.tag, items.attrib.items()) == (f"{{{PS}}}items", [("node", node)]), text_of(answer)
    assert {child.tag for child in items} <= {f"{{{PS}}}item"}, text_of(answer)
    ids = [str(child.get("id")) for child in items]
    if not rest:
        return Shown(ids, False, None, None, None, None, list(items))
    (page,) = rest
    assert page.tag == f"{_SET}set", text_of(answer)
    names = [str(child.tag).removeprefix(_SET) for child in page]
    assert names == (["first", "last", "count"] if ids else ["count"]), text_of(answer)
    index = page.find("rsm:first[@index]", NS)
    return Shown(
        ids,
        True,
        page.findtext("rsm:first", None, NS),
        page.findtext("rsm:last", None, NS),
        None if index is None else int(index.get("index", "")),
        int(page.findtext("rsm:count", "", NS)),
        list(items),
    )


async def publish_all(component: Component, node: str, ids: str, user: str = ALICE) -> None:
    """Publishes items with these ids, a second apart."""
    for item_id in ids.split():
        await component.publish(user, node, item_id)
        component.clock.advance(1)


async def put(component: Component, node: str, rows: Sequence[tuple[str, int]], publisher: str = bare(ALICE)) -> None:
    """Puts entries (id, key in microseconds of both orders) into the store as they are, ties and all.

    So the data of another store looks that was moved in; nothing of it is pushed.
    """

    def work(tx: WriteTx) -> None:
        made = tx.lock(node)
        assert made is not None
        for item_id, key_us in rows:
            component.versions[node, item_id] += 1
            payload = complete_entry(entry(item_id).replace("'", '"').encode(), item_id, key_us)
            existing = tx.item(made.node_no, item_id)
            number = existing.item_no if existing else 0
            created_us = existing.created_us if existing else key_us
            revision = existing.revision + 1 if existing else 1
            tx.put_item(made.node_no, Item(number, item_id, created_us, key_us, payload, publisher, False, revision))
        keys = [key_us for _, key_us in rows]
        tx.set_keys(made.node_no, max(made.last_modified_us, *keys), max(made.last_created_us, *keys))

    await component.app.service.store.write(work)


def payload_of(item: Element) -> Element:
    """The one payload of an item."""
    (payload,) = item
    return payload


def infoset(element: Element) -> tuple[object, ...]:
    """The parts that two equal payloads share: names, attributes, every character, children (xep-map 144)."""
    attributes = sorted((str(name), str(value)) for name, value in element.attrib.items())
    inner = [(infoset(child), child.tail or "") for child in element]
    return (str(element.tag), attributes, element.text or "", inner)


def parsed(text: str) -> Element:
    """A payload as written by a test."""
    return etree.fromstring(text)
