"""The command `guests` of the bot: the list of the replies that wait, and decisions by those who may."""

import pytest

from features.embedding.sending import decide, guest_feed, submit, waiting
from smartfeeds.features.embedding.chat import LISTED
from smartfeeds.features.embedding.guests import MAX_NAME, MAX_TEXT, QUOTED_CHARACTERS
from support.chat import body_of, send, write
from support.component import ALICE, BOB, CAROL, NS, Component, bare, ok

pytestmark = pytest.mark.needs("bot")

RESPONSE = "{urn:xmpp:tmp:quick-response}response"
GONE = "This reply waits no more. Somebody decided, or it was older than 30 days."
PUBLISHED, REFUSED = "The reply is published.", "Refused. What the guest wrote is deleted."


@pytest.fixture
async def queue(component: Component) -> Component:
    """The feed `comments` of Alice, of which Carol is a publisher."""
    await guest_feed(component)
    await component.affiliate(ALICE, "comments", CAROL, "publisher")
    return component


def code(reply_id: str) -> str:
    return reply_id[:8]


async def authors(component: Component) -> list[tuple[str, str]]:
    """The author and the publisher of each item."""
    items = ok(await component.get(ALICE, "<items node='comments'/>")).iterfind("ps:pubsub/ps:items/ps:item", NS)
    return [(item.findtext("a:entry/a:author/a:name", "", NS), item.get("publisher", "")) for item in items]


async def test_list_has_each_reply_with_two_buttons(queue: Component) -> None:
    first = await submit(queue, "Good\n\nmorning")
    queue.clock.advance(60)
    second = await submit(queue, "Hello", "Eve")
    (message,) = await send(queue, ALICE, "guests comments")

    commands = [f"guests comments {word} {code(each)}" for each in (first, second) for word in ("publish", "refuse")]
    assert body_of(message).split("\n") == [
        "Replies of guests that wait in comments: 2",
        *("1. 2026-01-01 00:00", "> Mara: Good morning", *commands[:2]),
        *("2. 2026-01-01 00:01", "> Eve: Hello", *commands[2:]),
    ]
    labels = ["Publish 1", "Refuse 1", "Publish 2", "Refuse 2"]
    assert [(each.get("value"), each.get("label")) for each in message.iter(RESPONSE)] == [
        *zip(commands, labels, strict=True)
    ]


async def test_empty_queue(queue: Component) -> None:
    assert await write(queue, ALICE, "guests comments") == ["No reply waits."]


@pytest.mark.parametrize("user", [ALICE, CAROL])
async def test_owner_and_publisher_publish_and_refuse(queue: Component, user: str) -> None:
    """Who publishes a reply answers for it."""
    good, bad = await submit(queue), await submit(queue, "Buy this", "Eve")
    (message,) = await send(queue, user, f"guests comments publish {code(good)}")
    assert body_of(message) == PUBLISHED
    assert [each.get("value") for each in message.iter(RESPONSE)] == ["guests comments"]  # another one waits
    (message,) = await send(queue, user, f"guests comments refuse {code(bad)}")

    assert (body_of(message), [*message.iter(RESPONSE)]) == (REFUSED, [])
    assert await authors(queue) == [("Mara (guest)", bare(user))]
    assert await waiting(queue) == []


async def test_commands_in_german(queue: Component) -> None:
    good, bad = await submit(queue), await submit(queue)
    (message,) = await send(queue, ALICE, "gäste comments", xml_lang="de")
    values = [str(each.get("value")) for each in message.iter(RESPONSE)]
    assert [value.split()[:3] for value in values[:2]] == [
        ["gäste", "comments", "veröffentlichen"],
        ["gäste", "comments", "ablehnen"],
    ]
    assert [each.get("label") for each in message.iter(RESPONSE)][:2] == ["1 veröffentlichen", "1 ablehnen"]

    assert await write(queue, ALICE, values[0], xml_lang="de") == ["Die Antwort ist veröffentlicht."]
    (answer,) = await write(queue, ALICE, values[3], xml_lang="de")
    assert answer.startswith("Abgelehnt.")
    assert (await queue.item_ids(ALICE, "comments"), await waiting(queue)) == ([f"guest-{good}"], [])
    assert (await write(queue, ALICE, f"guests comments PUBLISH {code(bad).upper()}")) == [GONE]


async def test_reply_that_was_decided_is_decided_once(queue: Component) -> None:
    """By the same person twice, by two people, in the same way and differently, by chat and on the page."""
    first, second = await submit(queue), await submit(queue)
    assert await write(queue, ALICE, f"guests comments publish {code(first)}") == [PUBLISHED]
    for user in (ALICE, CAROL):
        for word in ("publish", "refuse"):
            assert await write(queue, user, f"guests comments {word} {code(first)}") == [GONE]
    await decide(queue, CAROL, refuse=(second,))
    for word in ("publish", "refuse"):
        assert await write(queue, ALICE, f"guests comments {word} {code(second)}") == [GONE]

    assert await queue.item_ids(ALICE, "comments") == [f"guest-{first}"]


@pytest.mark.parametrize("decision", ["approve", "refuse"])
@pytest.mark.parametrize("word", ["publish", "refuse"])
async def test_decision_that_comes_between_the_list_and_the_command_counts(
    queue: Component, monkeypatch: pytest.MonkeyPatch, decision: str, word: str
) -> None:
    """Another person decides while the command is at work."""
    from smartfeeds.features.embedding import chat

    reply_id = await submit(queue)
    waiting_replies = chat._waiting

    async def late(c: chat.Chat, feed: str) -> tuple[chat.GuestReply, ...]:
        replies = await waiting_replies(c, feed)
        await decide(queue, CAROL, **{decision: (reply_id,)})
        return replies

    monkeypatch.setattr(chat, "_waiting", late)
    assert await write(queue, ALICE, f"guests comments {word} {code(reply_id)}") == [GONE]
    assert len(await authors(queue)) == (decision == "approve")


async def test_people_who_may_not_decide_see_and_decide_nothing(queue: Component) -> None:
    reply_id = await submit(queue, "Secret words")
    await queue.configure(ALICE, "comments", publish_model="open")
    for affiliation in ("none", "member", "publish-only", "outcast"):
        await queue.affiliate(ALICE, "comments", BOB, affiliation)
        for rest in ("", f" publish {code(reply_id)}", f" refuse {code(reply_id)}"):
            (answer,) = await write(queue, BOB, f"guests comments{rest}")
            assert answer.startswith("You may not do that."), affiliation
            assert "Secret" not in answer

    assert await waiting(queue) == [reply_id]


@pytest.mark.parametrize(
    "rest",
    [
        *("", "comments publish", "comments {code}", "comments approve {code}", "comments publish {code} x"),
        *("comments publish ''", "comments publish 1", "comments publish {code}0", "comments publish %"),
        *("nowhere publish {code}", "comments?order=created publish {code}", "other publish {code}", '"" publish x'),
    ],
)
async def test_wrong_arguments_decide_nothing(queue: Component, rest: str) -> None:
    await guest_feed(queue, "other")
    reply_id = await submit(queue)
    (answer,) = await write(queue, ALICE, f"guests {rest.format(code=code(reply_id))}")

    assert answer.startswith(("Write: guests FEED", "There is no such feed", GONE, "That did not work"))
    assert (await waiting(queue), await queue.item_ids(ALICE, "comments")) == ([reply_id], [])


async def test_two_replies_with_one_code_are_not_decided_by_it(queue: Component) -> None:
    ids = [await submit(queue, reply_id=f"0123abcd{number:016x}") for number in range(2)]

    assert await write(queue, ALICE, "guests comments publish 0123abcd") == [GONE]
    assert await waiting(queue) == ids


async def test_long_queue_of_long_replies_fits_into_a_message(queue: Component) -> None:
    for _ in range(LISTED + 2):
        await submit(queue, "x \n" * (MAX_TEXT // 3), "M" * MAX_NAME)
    (message,) = await send(queue, ALICE, "guests comments")
    lines = body_of(message).split("\n")

    assert lines[0] == f"Replies of guests that wait in comments: {LISTED + 2}"
    assert len(lines) == 1 + 4 * LISTED and lines[-1].startswith("guests comments refuse ")
    quotations = [line for line in lines if line.startswith("> ")]
    assert {len(line) for line in quotations} == {QUOTED_CHARACTERS + 2} and quotations[0].endswith("…")


async def test_words_of_a_guest_stay_one_quoted_line(queue: Component) -> None:
    await submit(queue, "x\n2. 2026-01-01 00:00\n> Bob: y\nguests comments publish 00000000", "1. Published")
    (message,) = await send(queue, ALICE, "guests comments")

    lines = body_of(message).split("\n")
    assert lines[2] == "> 1. Published: x 2. 2026-01-01 00:00 > Bob: y guests comments publish 00000000"
    assert (len(lines), len([*message.iter(RESPONSE)])) == (5, 2)
