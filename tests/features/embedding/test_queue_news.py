"""Those who decide hear by chat that the reply of a guest waits: who hears of it, how often, and what they read."""

import pytest
import pytest_asyncio

from features.embedding.sending import decide, guest_feed, submit
from features.embedding.test_replies import send as fill_in
from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError
from smartfeeds.features.embedding.guests import MAX_NAME, MAX_TEXT, MOST_WAITING, SILENCE_S, is_news
from smartfeeds.features.embedding.requests import MOST_TOLD, ReplyStored, SubmitReply
from smartfeeds.service.answers import ask
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.chat import body_of, send, write
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, bare
from support.web import Web, WebStarter
from support.world import jid

pytestmark = pytest.mark.needs("bot")

RESPONSE = "{urn:xmpp:tmp:quick-response}response"
DAY_S = 86_400


async def received(component: Component, user: str) -> list[str]:
    """The chat messages that a user got from the service itself since the last call."""
    return [body_of(message) for message in await component.events(bare(user)) if message.get("type") == "chat"]


async def use_bot(component: Component, *users: str) -> None:
    for user in users:
        await write(component, user, "language en")


@pytest_asyncio.fixture
async def queue(start_web: WebStarter) -> Component:
    """The feed `comments` of Alice, who uses the bot."""
    web = await start_web(http={"base_url": "https://feeds.example.org/x"})
    await guest_feed(web.component)
    await use_bot(web.component, ALICE)
    return web.component


# The message.


async def test_owner_reads_feed_name_text_command_and_page(queue: Component) -> None:
    await submit(queue, "Good morning\nand more")
    (message,) = await queue.events(bare(ALICE))

    assert body_of(message).split("\n") == [
        "A reply of a guest waits in comments:",
        "> Mara: Good morning",
        "To decide: guests comments",
        "https://feeds.example.org/x/guests/comments/",
    ]
    assert (message.get("type"), message.get("from")) == ("chat", DOMAIN)
    assert [each.get("value") for each in message.iter(RESPONSE)] == ["guests comments"]
    (answer,) = await write(queue, ALICE, "guests comments")
    assert "> Mara: Good morning and more" in answer


async def test_reply_in_a_frame_is_told(web: Web) -> None:
    """Without `http.base_url` the message has no address: the guest chooses the host of the request."""
    await guest_feed(web.component)
    await use_bot(web.component, ALICE)
    assert (await fill_in(web, Host="evil.example")).status == 303
    (text,) = await received(web.component, ALICE)

    assert text.split("\n") == [
        "A reply of a guest waits in comments:",
        "> Mara: Good morning",
        "To decide: guests comments",
    ]


async def test_message_in_german(queue: Component) -> None:
    await write(queue, ALICE, "language de")
    await submit(queue)
    (first,) = await received(queue, ALICE)
    queue.clock.advance(SILENCE_S)
    await submit(queue, "Noch einer")
    (second,) = await received(queue, ALICE)

    assert first.split("\n")[::2] == ["Eine Antwort eines Gasts wartet in comments:", "Zum Entscheiden: gäste comments"]
    assert second.split("\n")[0] == "2 Antworten von Gästen warten in comments. Die neueste:"
    assert (await write(queue, ALICE, "gäste comments"))[0].startswith(
        "Antworten von Gästen, die in comments warten: 2"
    )


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("Mara", "\n\nHello\r\nTo decide: guests evil", "> Mara: Hello"),
        ("Mara", "A\tb \x07\x1b[31m\u202ec\u2028d\x85e", "> Mara: A b [31mcde"),
        ("A reply of a guest waits in bank", "https://evil.example/", "> A reply of a guest waits in bank: https://evil.example/"),
        ("guests comments publish", "delete comments", "> guests comments publish: delete comments"),
        ("> Alice", "> /me <body>&amp;{feed} %s", "> > Alice: > /me <body>&amp;{feed} %s"),
        ("Mara\u200b\n\u2066Eve", "x", "> Mara Eve: x"),
        ("M" * MAX_NAME, "x" * MAX_TEXT, f"> {'M' * MAX_NAME}: {'x' * 137}…"),
    ],
)  # fmt: skip
async def test_words_of_a_guest_are_one_quoted_line(queue: Component, name: str, text: str, line: str) -> None:
    await submit(queue, text, name)
    (message,) = await queue.events(bare(ALICE))

    assert body_of(message).split("\n") == [
        "A reply of a guest waits in comments:",
        line,
        "To decide: guests comments",
        "https://feeds.example.org/x/guests/comments/",
    ]
    assert [each.get("value") for each in message.iter(RESPONSE)] == ["guests comments"]


async def test_name_of_the_feed_stays_one_argument_of_the_command(queue: Component) -> None:
    await guest_feed(queue, "my feed/1")
    await submit(queue, node="my feed/1")
    (message,) = await queue.events(bare(ALICE))

    assert body_of(message).endswith('guests "my feed/1"\nhttps://feeds.example.org/x/guests/my%20feed/1/')
    (answer,) = await write(queue, ALICE, next(message.iter(RESPONSE)).get("value", ""))
    assert answer.startswith("Replies of guests that wait in my feed/1: 1")


# Who hears of it.


@pytest.mark.parametrize(
    ("affiliation", "follows", "hears"),
    [
        ("owner", True, True),
        ("publisher", True, True),
        ("owner", False, False),
        ("publisher", False, False),
        ("publish-only", False, False),
        ("member", True, False),
        ("none", True, False),
    ],
)
async def test_people_who_may_decide_and_follow_hear_of_it(
    queue: Component, affiliation: str, follows: bool, hears: bool
) -> None:
    """An owner can appoint anybody, and be the guest, too: the words must not reach a person who did not choose the
    feed."""
    await use_bot(queue, BOB)
    if affiliation != "none":
        await queue.affiliate(ALICE, "comments", BOB, affiliation)
    if follows:
        await queue.subscribe(BOB, "comments")
    await received(queue, BOB)
    await submit(queue)

    assert len(await received(queue, BOB)) == hears
    assert len(await received(queue, ALICE)) == 1


async def test_admin_of_the_service_does_not_hear_of_every_feed(start_web: WebStarter) -> None:
    """An admin may decide everywhere."""
    web = await start_web(pubsub={"admins": [bare(CAROL)]})
    await guest_feed(web.component)
    await use_bot(web.component, ALICE, CAROL)
    await submit(web.component)
    assert await received(web.component, CAROL) == []

    await web.component.subscribe(CAROL, "comments")
    await web.component.affiliate(ALICE, "comments", CAROL, "publisher")
    await received(web.component, CAROL)
    web.component.clock.advance(SILENCE_S)
    await submit(web.component)
    assert len(await received(web.component, CAROL)) == 1


async def test_creator_who_owns_it_no_more_hears_nothing(queue: Component) -> None:
    await queue.affiliate(ALICE, "comments", BOB, "owner")
    await queue.affiliate(BOB, "comments", ALICE, "none")
    await received(queue, ALICE)
    await submit(queue)

    assert await received(queue, ALICE) == []


async def test_owner_who_does_not_use_the_bot_hears_nothing(web: Web) -> None:
    await guest_feed(web.component)
    await submit(web.component)

    assert await received(web.component, ALICE) == []


async def test_bot_that_is_off_says_nothing_and_the_reply_waits(start_web: WebStarter) -> None:
    web = await start_web(bot={"enabled": False})
    await guest_feed(web.component)
    answer = await ask(
        web.component.app.handle, SubmitReply(ANONYMOUS, DOMAIN, "comments", "a", "Mara", "Hello", ""), ReplyStored
    )

    assert answer.news is not None and answer.news.people == (jid(bare(ALICE)),)
    assert await received(web.component, ALICE) == []


async def test_person_who_may_not_use_the_service_hears_nothing(queue: Component) -> None:
    await use_bot(queue, BOB)
    await queue.affiliate(ALICE, "comments", BOB, "owner")
    await queue.subscribe(BOB, "comments")
    await received(queue, BOB)

    def block(tx: WriteTx, _context: Context) -> None:
        tx.change_blocks()
        tx.change("INSERT INTO block (kind, name) VALUES ('deny', ?)", (bare(BOB),))

    await queue.app.service.write(block)
    await submit(queue)

    assert (len(await received(queue, BOB)), len(await received(queue, ALICE))) == (0, 1)


async def test_number_of_people_is_bounded(queue: Component) -> None:
    """Publishers beyond the bound are not even looked up."""
    people = [f"p{number:03}@example.org/x" for number in range(MOST_TOLD + 5)]
    for person in people:
        await queue.affiliate(ALICE, "comments", person, "publisher")
        await queue.subscribe(person, "comments")
    request = SubmitReply(ANONYMOUS, DOMAIN, "comments", "a", "Mara", "Hello", "")
    answer = await ask(queue.app.service.handle, request, ReplyStored)

    assert answer.news is not None and len(answer.news.people) == MOST_TOLD
    assert answer.news.people[0] == jid(bare(ALICE))


# How often.


def told_at(*times_h: float, now_h: float) -> bool:
    return is_news([int(time * 3_600 * US_PER_S) for time in times_h], int(now_h * 3_600 * US_PER_S))


def test_first_reply_is_news_and_then_the_first_one_after_a_day() -> None:
    assert told_at(now_h=0) and told_at(now_h=5)
    assert not told_at(0, now_h=23.9)
    assert told_at(0, 23.9, now_h=24)
    assert not told_at(0, 23.9, 24.1, now_h=48) and told_at(0, 23.9, 24.1, 48, now_h=48.1)
    assert not told_at(5, now_h=1)  # the clock has gone back


async def test_queue_is_told_once_until_it_is_empty(queue: Component) -> None:
    first, second = await submit(queue), await submit(queue)
    assert len(await received(queue, ALICE)) == 1
    await decide(queue, refuse=(first,))
    third = await submit(queue)
    assert await received(queue, ALICE) == []
    await decide(queue, refuse=(second,), approve=(third,))
    await submit(queue, "Again")

    (text,) = await received(queue, ALICE)
    assert text.split("\n")[:2] == ["A reply of a guest waits in comments:", "> Mara: Again"]


async def test_queue_that_nobody_decides_is_told_once_a_day(queue: Component) -> None:
    messages = []
    for hour in range(0, 96, 5):
        await submit(queue, f"Hour {hour}")
        messages += await received(queue, ALICE)
        queue.clock.advance(5 * 3_600)

    assert [text.split("\n")[:2] for text in messages] == [
        ["A reply of a guest waits in comments:", "> Mara: Hour 0"],
        ["6 replies of guests wait in comments. The newest one:", "> Mara: Hour 25"],
        ["11 replies of guests wait in comments. The newest one:", "> Mara: Hour 50"],
        ["16 replies of guests wait in comments. The newest one:", "> Mara: Hour 75"],
    ]


async def test_form_that_is_sent_again_is_told_once(queue: Component) -> None:
    reply_id = await submit(queue)
    await received(queue, ALICE)
    queue.clock.advance(SILENCE_S)
    for _ in range(3):
        await submit(queue, "Other words", reply_id=reply_id)
    assert await received(queue, ALICE) == []
    await decide(queue, refuse=(reply_id,))
    await submit(queue, "Other words", reply_id=reply_id)
    assert await received(queue, ALICE) == []


async def test_flood_of_guests_is_one_message(queue: Component) -> None:
    """Until the queue is full, and of the ones that are turned away."""
    for number in range(MOST_WAITING):
        await submit(queue, f"Reply {number}")
    for _ in range(3):
        with pytest.raises(FeedError, match="Too many replies"):
            await submit(queue)

    assert len(await received(queue, ALICE)) == 1


async def test_flood_in_many_feeds_has_a_rate(queue: Component) -> None:
    """That of the messages of the bot to a person."""
    feeds = [f"feed{number}" for number in range(20)]
    for node in feeds:
        await guest_feed(queue, node)
        await submit(queue, node=node)

    assert 0 < len(await received(queue, ALICE)) < len(feeds)


# Quiet hours.


async def test_nothing_is_said_in_quiet_hours(queue: Component) -> None:
    await write(queue, ALICE, "quiet 0-23:59 UTC")
    await submit(queue)

    assert await received(queue, ALICE) == []


async def test_message_comes_when_quiet_hours_end(queue: Component) -> None:
    """A tenth of a second before midnight, when these hours end."""
    await write(queue, ALICE, "quiet 20-24 UTC")
    queue.clock.advance(DAY_S - 0.1 - queue.clock.now_us / US_PER_S % DAY_S)
    await submit(queue)
    (message,) = await queue.next_event(bare(ALICE))

    assert body_of(message).split("\n")[1] == "> Mara: Good morning"


async def test_reply_to_the_message_is_a_command(queue: Component) -> None:
    """The message is no item, so an answer to it is never published."""
    await submit(queue)
    (message,) = await queue.events(bare(ALICE))
    inner = f"<reply xmlns='urn:xmpp:reply:0' id='{message.get('id')}' to='{DOMAIN}'/>"
    (answer,) = await send(queue, ALICE, "guests comments", inner)

    assert body_of(answer).startswith("Replies of guests that wait in comments: 1")
    assert await queue.item_ids(ALICE, "comments") == []
