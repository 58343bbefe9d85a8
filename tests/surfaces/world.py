"""A service with a little of everything, whose clock, ids and addresses are fixed, for snapshots of what it sends."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from smartfeeds.core.times import US_PER_S
from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token
from smartfeeds.features.mirrors.mirrors import Mirrors
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import paused
from smartfeeds.features.polling.source import new_source
from smartfeeds.store.base import WriteTx
from support.browsing import SignedIn, sign_in
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, Element, Starter, bare, ok
from support.dialog import Dialog, notes
from support.prose import PROSE, author, html_entry, note, tags
from support.pulls import put
from support.versions import B1, C1, sse_version, version
from support.web import Web, starting_web

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "pubsub": {"admins": [bare(ALICE)], "creators": ["example.org"]},
    "site": {"name": "Riverside"},
    "http": {"base_url": f"https://{DOMAIN}"},
    "contact": {"admin": ["mailto:admin@example.org"]},
    "run": {"restarts": True},
}
_FEEDS: Final = {
    "town": ("Town news", "What happens between the mill and the harbour."),
    "bakery": ("The bakery", "Bread, and how it is made."),
    "plans": ("Plans for the summer", "Edited at several places."),
    "blogs": ("Blogs of the town", ""),
    "cursors": ("Items that share keys", ""),
}
_FILES: Final = (
    "<link rel='enclosure' href='https://files.example/talk.ogg' type='audio/ogg' length='4200000'/>"
    "<link rel='enclosure' href='https://files.example/recipe.pdf' type='application/pdf' length='120000'/>"
    "<link rel='replies' type='text/html' href='https://bakery.example/bread#comments' title='3 comments'/>"
)
_SECRET: Final = "s" * 43
_TOKEN: Final = Token("0123456789ab", digest_of(_SECRET), bare(ALICE), TokenScope.ADMIN, ALL_FEEDS, "", 0)
AUTHORIZATION: Final = f"Bearer {write_token(_TOKEN.token_id, _SECRET)}"
# Items of the feed `cursors` and their keys: one alone, three that share a key, a fraction, a time before 1970.
KEYS: Final = (
    ("old", -1_500_000),
    ("a", 1_304_942_400 * US_PER_S),
    ("x", 1_304_942_401 * US_PER_S),
    ("y", 1_304_942_401 * US_PER_S),
    ("ü_&", 1_304_942_401 * US_PER_S),
    ("part", 1_304_942_402 * US_PER_S + 120_000),
)


@dataclass(frozen=True, slots=True, repr=False)
class World:
    """The service, the browser of an admin, and the response and the notification of one change."""

    web: Web
    alice: SignedIn
    published: Element
    event: Element

    @property
    def component(self) -> Component:
        """The service as XMPP servers see it."""
        return self.web.component


@asynccontextmanager
async def running_world(start: Starter) -> AsyncIterator[World]:
    """Starts and fills the service."""

    async def look() -> None:
        """The mirror is not started: it would send requests to its address."""

    with pytest.MonkeyPatch.context() as patch:
        # Secrets and random ids are constants. So they do not depend on which snapshots are taken.
        patch.setattr(secrets, "token_hex", lambda size=32: "ab" * size)
        patch.setattr(secrets, "token_urlsafe", lambda size=32: "A" * -(-4 * size // 3))
        async with starting_web(start) as start_web:
            web = await start_web(**SETTINGS)
            patch.setattr(web.component.app.parts.get(Mirrors), "look", look)
            yield await _filled(web)


async def _filled(web: Web) -> World:
    component = web.component
    for name, (title, description) in _FEEDS.items():
        await component.create(ALICE, name, title=title, description=description)
    await component.create(ALICE, "board", title="Board of the club", access_model="authorize")
    await component.create(ALICE, "things", kind="generic")
    for item_id, payload in PROSE.items():
        component.clock.advance(3_000)
        await component.publish(ALICE, "town", item_id, payload)
    await component.publish(ALICE, "town", "mistake")
    await component.retract(ALICE, "town", "mistake")
    await component.publish(ALICE, "town", "bread", PROSE["bread"].replace("Three", "Four"))
    more = author("Alice", "https://alice.example/") + author("Ben") + tags("baking", "flour") + _FILES
    for hours in ("three", "four"):
        component.clock.advance(4_000)
        await component.publish(ALICE, "bakery", "bread", html_entry(f"Bread in {hours} hours", "<p>Flour.</p>", more))
    await component.publish(ALICE, "bakery", "note", note("We are open."))
    await component.publish(ALICE, "things", "one", "<thing xmlns='urn:example:things'>1</thing>")
    await _fill_shared(web)
    await put(component, "cursors", KEYS)
    await _fill_administration(component)
    payload = html_entry("Market day", "<p>On the square.</p>", author("Carol") + tags("town"))
    published = ok(await component.set(CAROL, f"<publish node='town'><item id='market'>{payload}</item></publish>"))
    (event,) = await component.events(bare(BOB))
    await component.index()
    # What was sent is marked behind the sending.
    while any(row["waiting"] for row in (await web.get("/consumers/", Authorization=AUTHORIZATION)).json["items"]):
        pass
    return World(web, await sign_in(web, ALICE), published, event)


async def _fill_shared(web: Web) -> None:
    """Items that other services changed as well: in the feed `plans` with FeedSync, in `trips` with SSE."""
    await web.component.app.service.write(lambda tx, context: add_token(tx, context, _TOKEN, None))
    for item_id in ("boat", "cake"):
        await web.component.publish(ALICE, "plans", item_id, html_entry(f"Who brings the {item_id}?", "<p>I do.</p>"))
    headers = {"Authorization": AUTHORIZATION, "Content_Type": "application/atom+xml"}
    await web.component.create(ALICE, "trips", title="Trips", sync_dialect="sse")
    await web.component.publish(ALICE, "trips", "mill", note("To the mill."))
    for place, payload in (
        ("plans/boat", version(B1, title="Boat on Sunday", sync_id="boat", content="At &lt;b&gt;ten&lt;/b&gt;.")),
        ("plans/boat", version(C1, title="Boat trip", sync_id="boat", content="By train.")),
        ("plans/cake", version(B1, B1, sync_id="cake", deleted=True)),
        ("plans/tent", sse_version(C1, B1, title="Tent", sync_id="tent")),
        ("trips/lake", sse_version(C1, B1, title="To the lake", sync_id="lake")),
        ("trips/mill", sse_version(B1, title="To the windmill", sync_id="mill")),
    ):
        got = await web.ask("PUT", f"/entries/{place}", payload.encode(), **headers)
        assert got.status in (200, 201), got.text


async def _fill_administration(component: Component) -> None:
    """Something to list and to choose in each command: a member, a subscriber, a request, a source, a mirror."""

    def add_source(tx: WriteTx) -> None:
        source_rows.add(tx, paused(new_source("blogs", "https://blog.example/feed", 0), "the operator", 0))

    await component.app.service.store.write(add_source)
    await component.affiliate(ALICE, "town", CAROL, "publisher")
    await component.subscribe(BOB, "town")
    await component.subscribe(CAROL, "board")
    dialog = Dialog(component, ALICE, "add-mirror")
    await dialog.begin()
    assert notes(await dialog.go(address="xmpp:far.example?;node=plans", node="plans", name="far", every="600"))
    for user in (ALICE, BOB, CAROL):
        await component.events(bare(user))
