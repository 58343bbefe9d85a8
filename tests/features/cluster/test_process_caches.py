"""The caches of a process, while another process on the database changes what is cached.

No process reads the store by itself here (`changes.LOOK_S`), so a cache is right only if each use checks it, or if a
notice or a letter of the other process ends it. `tests/unit/test_process_state.py` names the tests of each cache.
"""

import asyncio

import pytest

from features.cluster.processes import joined, owner_first, shared
from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import RIVER
from smartfeeds.delivery import changes
from smartfeeds.features.accounts.tokens import revoke_token
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.http.feed_list import CACHE_US
from smartfeeds.store.base import WriteTx
from support.bearer import bearer
from support.component import ALICE, BOB, CAROL, NODE_CONFIG, Component, Element, bare, entry, form, ok
from support.form_client import FormClient
from support.waiting import until
from support.web import Web, WebStarter

pytestmark = [
    pytest.mark.needs("administration", "embedding", "pages"),
    pytest.mark.parametrize("engine", ["postgres"], indirect=True),
]
JSON, HTML = "application/json", "text/html"
PAGES = [
    ("/feeds/news/?since=time:0", JSON),
    ("/feeds/news/?since=time:0&sync=true", "application/atom+xml"),
    ("/feeds/news/", HTML),
    ("/embed/news/", HTML),
    ("/feeds/news.atom", ""),
    ("/feeds/news.rss", ""),
    ("/feeds/news.json", ""),
    (RIVER, HTML),
]
# Of a form client that knows only the node tea.
COMMANDS = [f"urn:smartfeeds:0#{name}" for name in ("configure-node", "list-affiliations", "purge-node")]


@pytest.fixture
async def pair(start_web: WebStarter, monkeypatch: pytest.MonkeyPatch) -> list[Web]:
    """Two processes with the feed news, which has one entry. The second one has made them."""
    monkeypatch.setattr(changes, "LOOK_S", 3_600.0)
    first, second = await start_web(), await start_web()
    await second.component.create(ALICE, "news")
    await second.component.publish(ALICE, "news", "one")
    await joined(first.component, second.component)
    return [first, second]


async def test_page_shows_what_another_process_has_published(pair: list[Web]) -> None:
    """[TOP-013] Kept pages and their parts are compared with the version of the node at each use."""
    first, second = pair

    async def read() -> dict[str, str]:
        pages = {f"{path} {accept}": await first.get(path, accept) for path, accept in PAGES}
        assert {got.status for got in pages.values()} == {200}, pages
        return {name: got.text for name, got in pages.items()}

    assert all("one" in text for text in (await read()).values())
    assert all("second title" not in text for text in (await read()).values()), "these come from the caches"
    await second.component.publish(ALICE, "news", "two", entry("second title"))
    assert {name for name, text in (await read()).items() if "second title" not in text} == set()
    await second.component.publish(ALICE, "news", "two", entry("third title"))
    assert {name for name, text in (await read()).items() if "third title" not in text} == set()


async def test_entry_shows_the_version_of_another_process(pair: list[Web]) -> None:
    """[TOP-013]"""
    first, second = pair
    for accept in (HTML, JSON):
        for _ in range(2):
            assert (await first.get("/entries/news/one", accept)).status == 200
    await second.component.publish(ALICE, "news", "one", entry("new title"))
    for accept in (HTML, JSON):
        assert "new title" in (await first.get("/entries/news/one", accept)).text


async def test_page_is_closed_when_another_process_closes_the_feed(pair: list[Web]) -> None:
    """[TOP-013] Also pages that are kept."""
    first, second = pair
    paths = ["/feeds/news/?since=time:0", "/feeds/news.atom", "/entries/news/one"]
    for path in paths * 2:
        assert (await first.get(path)).status == 200
    await second.component.configure(ALICE, "news", access_model="whitelist")
    for path in paths:
        assert (await first.get(path)).status in (401, 404)


async def test_whole_list_is_kept_for_ten_seconds(pair: list[Web]) -> None:
    """[TOP-013] The bound is the same with one process."""
    first, second = pair
    before = (await first.get("/feeds.opml")).text
    await second.component.create(ALICE, "later")
    assert (await first.get("/feeds.opml")).text == before
    first.component.clock.advance(CACHE_US / 1_000_000)
    assert "later" in (await first.get("/feeds.opml")).text
    assert CACHE_US == 10_000_000


async def test_count_of_a_view_includes_what_another_process_has_published(pair: list[Web]) -> None:
    """[TOP-013] `Counts` compares the moment of the feed at each use."""
    first, second = pair
    path = "/feeds/news/?since=time:0&kind=new&max=1"
    for number in range(2, 5):
        assert (await first.get(path, JSON)).json["totalItems"] == number - 1
        await second.component.publish(ALICE, "news", f"i{number}")
    assert (await first.get(path, JSON)).json["totalItems"] == 4


async def recipients(components: list[Component], publisher: Component, item_id: str, *users: str) -> list[str]:
    """Those of the users who are notified of a new item. Carol is one of them."""
    owner, *_ = components

    def has_item(user: str) -> bool:
        messages = owner._messages.get(bare(user), [])
        return any(item.get("id") == item_id for message in messages for item in message.iter("{*}item"))

    await publisher.publish(ALICE, "news", item_id)
    await until(lambda: has_item(CAROL), "the notification of Carol")
    await owner.settle()
    return [user for user in users if has_item(user)]


async def test_audience_follows_what_another_process_changes(pair: list[Web]) -> None:
    """[TOP-013] `AudienceCache` compares the number of the audience and that of the block lists with each batch."""
    components = [web.component for web in pair]
    await shared(*components)
    owner, other = components = await owner_first("news", *components)
    users = (BOB, CAROL)
    await owner.subscribe(CAROL, "news")
    assert await recipients(components, owner, "a", *users) == [CAROL]
    await other.subscribe(BOB, "news")
    assert await recipients(components, other, "b", *users) == [BOB, CAROL]
    ok(await other.set(BOB, f"<unsubscribe node='news' jid='{bare(BOB)}'/>"))
    assert await recipients(components, other, "c", *users) == [CAROL]
    await other.subscribe(BOB, "news")
    await other.affiliate(ALICE, "news", BOB, "outcast")
    assert await recipients(components, other, "d", *users) == [CAROL]
    await other.affiliate(ALICE, "news", BOB, "none")
    await other.subscribe(BOB, "news")
    assert await recipients(components, other, "e", *users) == [BOB, CAROL]

    def block(tx: WriteTx, _context: object) -> None:
        privacy_rows.add_blocks(tx, ListKind.DENY, [bare(BOB)])

    await other.app.service.write(block)
    assert await recipients(components, other, "f", *users) == [CAROL]


async def test_configuration_that_another_process_changes_is_used_at_once(pair: list[Web]) -> None:
    """[TOP-013] Parsed options are kept by their text, never by their node."""
    owner, other = (web.component for web in pair)
    assert (await owner.config(ALICE, "news"))["title"] in ([], [""])
    ok(await other.owner_set(ALICE, f"<configure node='news'>{form(NODE_CONFIG, title='Tea')}</configure>"))
    assert (await owner.config(ALICE, "news"))["title"] == ["Tea"]


async def test_command_goes_on_at_another_process(pair: list[Web]) -> None:
    """[TOP-013] Each step reaches the other process. Any process can check the id of a session."""
    components = [web.component for web in pair]
    steps = []

    async def send(kind: str, payload: str) -> Element:
        steps.append(payload)
        return await components[len(steps) % 2].ask(ALICE, kind, payload)

    await components[0].create(ALICE, "tea")  # the node that the client chooses
    outcomes = {node: await FormClient(send).walk(node) for node in COMMANDS}
    assert set(outcomes.values()) == {"completed"}, outcomes
    assert sum("sessionid" in payload for payload in steps) > len(COMMANDS), "some have three steps"


async def test_token_that_another_process_revokes_is_refused_at_once(pair: list[Web]) -> None:
    """[TOP-013] Tokens are read with each request."""
    first, second = pair
    await second.component.configure(ALICE, "news", access_model="whitelist")
    token = await bearer(second, ALICE, TokenScope.READ)

    async def status() -> int:
        return (await first.get("/feeds/news/?since=time:0", JSON, Authorization=token)).status

    assert await status() == 200
    token_id = token.removeprefix("Bearer ").split("_")[1]
    await second.component.app.service.write(lambda tx, context: revoke_token(tx, context, token_id))
    assert await status() == 401


async def test_held_pull_ends_with_the_notice_of_another_process(pair: list[Web]) -> None:
    """[TOP-013] [PG-079] [PG-064]"""
    first, second = pair
    newest = (await first.get("/feeds/news/?since=time:0", JSON)).json["last_cursor"]
    pull = asyncio.create_task(first.get(f"/feeds/news/?since=cursor:{newest}&timeout=120", JSON))
    await first.holding(1)
    await second.component.publish(ALICE, "news", "two")
    assert [item["id"] for item in (await pull).json["items"]] == ["two"]
