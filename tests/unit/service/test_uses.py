"""The five uses that the Smart Feeds document names, each as one story."""

from smartfeeds.errors import Condition
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, World, jid, refusal


async def test_use_comment_widget_shows_all_comments_and_stays_up_to_date(feed: World) -> None:
    """[SF-017] [SF-018] [SF-047] [SF-048] A page with comments in the order they were written, that never reloads."""
    node = f"{FEED}?order=created"
    await feed.configure(publish_model="open")
    await feed.publish("hello", actor=ALICE)
    await feed.publish("hi", actor=BOB, reply_to="hello")

    await feed.subscribe("visitor@example.org/tab", node)
    page = await feed.pull(node, actor="visitor@example.org/tab", before="", max=20)
    assert page.ids == "hello hi"

    await feed.publish("bye", actor=ALICE)
    await feed.publish("hello", actor=ALICE, title="hello, corrected")
    (event,) = await feed.events("visitor@example.org/tab")
    assert (event.short, f"cursor:{event.previous}", event.total) == ("+bye", page.last, 3)
    assert await refusal(feed.retract("hello", actor=BOB)) is Condition.FORBIDDEN


async def test_use_profile_page_shows_what_one_user_did_anywhere_in_the_feed(feed: World) -> None:
    """[SF-014] [SF-015] The latest activities of Alice, newest first, one page at a time."""
    await feed.configure(publish_model="open")
    for number in range(6):
        await feed.publish(f"a{number}", actor=ALICE)
        await feed.publish(f"b{number}", actor=BOB)

    node = f"{FEED}?author={ALICE}&order=created"
    page = await feed.pull(node, order_by="creation desc", max=4)
    assert (page.ids, page.count) == ("a5 a4 a3 a2", 6)
    page = await feed.pull(node, order_by="creation desc", max=4, after=page.last or "")
    assert page.ids == "a1 a0"


async def test_use_notifications_tell_a_user_only_what_concerns_her(feed: World) -> None:
    """[SF-003] [SF-038] Replies to Alice's post, as they come, and none of what she missed is lost."""
    await feed.configure(publish_model="open")
    await feed.publish("post", actor=ALICE)
    node = f"{FEED}?in-reply-to=post&kind=new"
    await feed.subscribe(ALICE, node)

    await feed.publish("r1", actor=BOB, reply_to="post")
    await feed.publish("other", actor=BOB)
    await feed.publish("r2", actor=OWNER, reply_to="post")
    first, second = await feed.events(ALICE)
    assert (first.short, second.short, second.previous) == ("+r1", "+r2", first.last)

    await feed.publish("r3", actor=BOB, reply_to="post")
    await feed.events()  # lost on the way
    await feed.publish("r4", actor=BOB, reply_to="post")
    (event,) = await feed.events(ALICE)
    assert event.previous != second.last
    assert (await feed.pull(node, after=f"cursor:{second.last}")).ids == "r3 r4"


async def test_use_synchronising_to_a_database_needs_one_cursor_and_no_memory_here(feed: World) -> None:
    """[SF-002] [SF-005] [SF-007] [SF-045] A job that wakes now and then and brings a table up to date."""
    table: dict[str, bool] = {}
    cursor = ""

    async def job() -> int:
        nonlocal cursor
        rows = 0
        page = await feed.pull(MODIFIED, after=cursor, max=3)
        while page.items:
            table.update({item.id: item.deleted for item in page.items})
            rows, cursor = rows + len(page.items), page.last or ""
            page = await feed.pull(MODIFIED, after=cursor, max=3)
        return rows

    await feed.publish_all("a b c d e f g")
    assert await job() == 7
    await feed.publish("b", title="edited")
    await feed.retract("f")
    await feed.crash()
    await feed.start()
    await feed.publish("h")
    assert await job() == 3
    assert await job() == 0
    assert table == {**dict.fromkeys("abcdegh", False), "f": True}


async def test_use_searching_finds_what_is_there_and_tells_what_comes(feed: World) -> None:
    """[SF-015] [SF-024] A search is a feed like any other: paged, counted, subscribed to."""
    for number in range(5):
        await feed.publish(f"i{number}", title=f"number {number}", content="ships" if number % 2 else "boats")
    node = f"{FEED}?q=SHIPS"
    page = await feed.pull(node, max=1)
    assert (page.ids, page.count) == ("i1", 2)
    assert (await feed.pull(node, max=9, after=page.last or "")).ids == "i3"

    await feed.subscribe(BOB, node)
    await feed.publish("i0", content="boats and ships")
    await feed.publish("i5", content="boats")
    (event,) = await feed.events(BOB)
    assert (event.short, event.total, event.node) == ("+i0", 3, node)
    assert jid(event.to) == jid(BOB)
