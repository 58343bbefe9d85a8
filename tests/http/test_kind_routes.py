"""Every way by which a request decides the kind of a node, with hostile combinations (docs/xmpp.md 2.1)."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import FeedError
from smartfeeds.service.importing import import_document
from support.bearer import bearer
from support.component import (
    ALICE,
    BOB,
    NODE_CONFIG,
    NS,
    PUBLISH_OPTIONS,
    Element,
    bare,
    entry,
    ok,
    submit,
)
from support.web import Web
from support.world import jid

pytestmark = pytest.mark.shared

NODE = "box"
KIND = "{urn:smartfeeds:0}kind"
NOTE = "<n xmlns='urn:example:n'/>"
JSON = "application/json"
HINT = "create a node for it whose configuration has persist_items false"
ATOM = b"<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:f</id><title>F</title></feed>"


class Wish(NamedTuple):
    """The fields of a form, and the kind that a new node of this configuration has; "" if it is refused."""

    fields: dict[str, str | list[str]]
    kind: str

    @property
    def asks_for_kind(self) -> bool:
        return bool(self.fields.get(KIND))


def wish(kind: str, own: str | list[str] | None = None, **options: str | list[str]) -> Wish:
    fields = {f"pubsub#{name}": value for name, value in options.items()}
    return Wish(fields if own is None else {KIND: own, **fields}, kind)


WISHES = {
    "nothing": wish("feed"),
    "generic": wish("generic", "generic"),
    "feed": wish("feed", "feed"),
    "empty kind": wish("feed", ""),
    "empty kind and a limit": wish("generic", "", max_items="5"),
    "kind in capitals": wish("", "GENERIC"),
    "unknown kind": wish("", "leaf"),
    "long kind": wish("", "generic" * 1_000),
    "two kinds": wish("", ["generic", "feed"]),
    "feed with a limit": wish("", "feed", max_items="5"),
    "feed whose items expire": wish("", "feed", item_expire="60"),
    "feed without items": wish("", "feed", persist_items="0"),
    "feed of another type": wish("feed", "feed", type="urn:xmpp:spaces:0"),
    "generic of Atom": wish("generic", "generic", type="http://www.w3.org/2005/Atom", max_items="max"),
    "limit": wish("generic", max_items="1"),
    "limit 0": wish("", max_items="0"),
    "negative limit": wish("", max_items="-1"),
    "limit that is no number": wish("", max_items="5 items"),
    "two limits": wish("", max_items=["5", "6"]),
    "limit at the ceiling": wish("feed", max_items="10000"),
    "huge limit": wish("", max_items="9" * 30),
    "limit in other digits": wish("", max_items="\u0665"),
    "expiry": wish("generic", item_expire="1"),
    "expiry never": wish("feed", item_expire="max"),
    "negative expiry": wish("", item_expire="-60"),
    "expiry and a bad limit": wish("", item_expire="60", max_items="none"),
    "no items": wish("generic", persist_items="false"),
    "no items, perhaps": wish("", persist_items="maybe"),
    "another type": wish("generic", type="urn:xmpp:spaces:0"),
    "type that begins as a social feed": wish("feed", type="urn:xmpp:pubsub-social-feed:9"),
    "type with a space before it": wish("generic", type=" http://www.w3.org/2005/Atom"),
    "long type": wish("", type="x" * 100_000),
    "bad access model beside a limit": wish("", max_items="5", access_model="nobody"),
}


def form(form_type: str, fields: dict[str, str | list[str]]) -> str:
    values = {name: [value] if isinstance(value, str) else value for name, value in fields.items()}
    return submit({"FORM_TYPE": [form_type], **values})


async def kind_of(web: Web) -> str:
    """The kind of the node as stored, "" without a node."""
    node = await web.component.app.service.store.read(lambda tx: tx.node(NODE))
    return "" if node is None else node.kind.value


def refused(answer: Element) -> str | None:
    """The text of an error, None for a result."""
    return None if answer.get("type") == "result" else str(answer.xpath("string(c:error/st:text)", namespaces=NS))


@pytest.fixture(autouse=True)
def _created_by_publishing(web: Web) -> None:
    service = web.component.app.service
    service.policy = replace(service.policy, auto_create=True)


Route = Callable[[Web, Wish], Awaitable[str | None]]


async def create(web: Web, wanted: Wish) -> str | None:
    configure = f"<configure>{form(NODE_CONFIG, wanted.fields)}</configure>"
    return refused(await web.component.set(ALICE, f"<create node='{NODE}'/>{configure}"))


async def configure(web: Web, wanted: Wish) -> str | None:
    await web.component.create(ALICE, NODE)
    request = f"<configure node='{NODE}'>{form(NODE_CONFIG, wanted.fields)}</configure>"
    return refused(await web.component.owner_set(ALICE, request))


async def publish(web: Web, wanted: Wish, payload: str = "", user: str = ALICE) -> str | None:
    options = f"<publish-options>{form(PUBLISH_OPTIONS, wanted.fields)}</publish-options>"
    item = f"<item id='x'>{payload or entry('x')}</item>"
    return refused(await web.component.set(user, f"<publish node='{NODE}'>{item}</publish>{options}"))


async def publish_note(web: Web, wanted: Wish) -> str | None:
    return await publish(web, wanted, NOTE)


async def publish_on_empty_feed(web: Web, wanted: Wish) -> str | None:
    await web.component.create(ALICE, NODE)
    return await publish(web, wanted)


async def publish_as_stranger(web: Web, wanted: Wish) -> str | None:
    await web.component.create(ALICE, NODE, publish_model="open")
    return await publish(web, wanted, NOTE, BOB)


async def put(web: Web, wanted: Wish) -> str | None:
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    names = {("kind" if name == KIND else name.removeprefix("pubsub#")): value for name, value in wanted.fields.items()}
    # In JSON a boolean option is true or false.
    names |= {
        name: value in ("1", "true") for name, value in names.items() if name == "persist_items" and value != "maybe"
    }
    got = await web.ask("PUT", f"/feeds/{NODE}/", json.dumps(names).encode(), Authorization=token, Content_Type=JSON)
    return None if got.status == 201 else str(got.json["detail"])


@pytest.mark.parametrize("name", WISHES)
@pytest.mark.parametrize("route", [create, configure, publish, publish_note, publish_on_empty_feed, put])
async def test_kind_of_a_node_that_never_had_an_item(web: Web, route: Route, name: str) -> None:
    """[xep-map 135]: what is refused neither creates a node nor changes the kind of one."""
    wanted = WISHES[name]
    existed = route in (configure, publish_on_empty_feed)

    error = await route(web, wanted)
    expected = wanted.kind
    if route is publish_note and expected == "feed":
        # An explicit kind decides, also against the payload.
        expected = "" if wanted.asks_for_kind else "generic"
    if route is put and expected == "generic" and not wanted.asks_for_kind:
        # HTTP has no stock clients: a node is a feed unless the request says generic. Feeds of any type exist.
        expected = "feed" if "pubsub#type" in wanted.fields else ""
    if route is put and wanted.fields.get(KIND) == "":
        expected = ""

    assert await kind_of(web) == (expected or ("feed" if existed else ""))
    if route is not publish_on_empty_feed or expected != "feed":
        assert (error is None) == bool(expected)
    if not expected and wanted.kind:
        assert error is not None and (HINT in error or error == "kind: one of feed, generic")


@pytest.mark.parametrize("name", WISHES)
async def test_kind_of_a_node_with_items_never_changes(web: Web, name: str) -> None:
    """[SF-012]: neither that of a feed, nor that of a generic node, nor for a stranger's first item."""
    wanted = WISHES[name]
    for kind in ("feed", "generic"):
        await web.component.create(ALICE, NODE, kind=kind)
        await web.component.publish(ALICE, NODE, "first")
        request = f"<configure node='{NODE}'>{form(NODE_CONFIG, wanted.fields)}</configure>"
        error = refused(await web.component.owner_set(ALICE, request))
        await publish(web, wanted, NOTE)

        assert await kind_of(web) == kind
        if kind == "feed" and wanted.kind == "generic" and "pubsub#type" not in wanted.fields:
            assert error is not None and (HINT in error or "stays a feed" in error)
        ok(await web.component.owner_set(ALICE, f"<delete node='{NODE}'/>"))
    await publish_as_stranger(web, wanted)
    assert await kind_of(web) == "feed"


@pytest.mark.parametrize("kind", ["feed", "generic"])
async def test_import_makes_feeds_and_leaves_generic_nodes_alone(web: Web, kind: str) -> None:
    """Mirrors and the bot publish into existing feeds by the same functions."""
    document = read_document(ATOM, "")
    service = web.component.app.service
    await import_document(service, NODE, document, jid(bare(ALICE)))
    assert await kind_of(web) == "feed"
    ok(await web.component.owner_set(ALICE, f"<delete node='{NODE}'/>"))
    await web.component.create(ALICE, NODE, kind=kind)

    if kind == "generic":
        with pytest.raises(FeedError, match="this node is a generic one"):
            await import_document(service, NODE, document, jid(bare(ALICE)))
    else:
        await import_document(service, NODE, document, jid(bare(ALICE)))
    assert await kind_of(web) == kind


async def test_first_item_over_http_decides_the_kind_if_the_token_may(web: Web) -> None:
    """A token for publishing changes no kind; the error says how to create a generic node."""
    await web.component.create(ALICE, NODE)
    path, note = f"/entries/{NODE}/x", NOTE.encode()
    for scope, status, kind in ((TokenScope.PUBLISH, 400, "feed"), (TokenScope.ADMIN, 201, "generic")):
        token = await bearer(web, ALICE, scope)
        got = await web.ask("PUT", path, note, Authorization=token, Content_Type="application/atom+xml")
        assert (got.status, await kind_of(web)) == (status, kind)
        if status == 400:
            assert HINT in got.json["detail"]
