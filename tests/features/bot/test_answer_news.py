"""Answers in chats: what a message answers, who may answer, and the news for authors."""

from collections.abc import Sequence

import pytest
from lxml import etree

from smartfeeds.core.times import format_t
from smartfeeds.features.bot import news, notices
from smartfeeds.features.bot.posting import LIKE
from support.chat import body_of, send, write
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, bare

A = "http://www.w3.org/2005/Atom"
THR = "{http://purl.org/syndication/thread/1.0}in-reply-to"
REPLY = "{urn:xmpp:reply:0}reply"
FALLBACK = "{urn:xmpp:fallback:0}fallback"


def reply_to(message_id: str) -> str:
    return f"<reply xmlns='urn:xmpp:reply:0' id='{message_id}' to='{DOMAIN}'/>"


def entry(title: str, answered: str = "", href: str = "") -> str:
    address = f" href='{href}'" if href else ""
    reference = (
        f"<thr:in-reply-to xmlns:thr='http://purl.org/syndication/thread/1.0' ref='{answered}'{address}/>"
        if answered
        else ""
    )
    return f"<entry xmlns='{A}'><title>{title}</title>{reference}</entry>"


@pytest.fixture
async def wall(component: Component) -> Component:
    """The open feed `wall` of Carol, which Bob follows by chat. Alice has written in it by chat."""
    await component.create(CAROL, "wall", publish_model="open")
    await write(component, BOB, "subscribe wall")
    await write(component, ALICE, "post wall What now?", id="q1")
    return component


async def question(wall: Component) -> str:
    """The id of the message by which Bob received the entry of Alice."""
    (message,) = await wall.events(bare(BOB))
    return str(message.get("id"))


# Messages.


async def test_message_names_the_message_that_it_answers(wall: Component) -> None:
    """[XEP-0461 3; XEP-0428] Clients show the answered message; others show the quotation in the body."""
    answered = await question(wall)
    (first,) = (await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    await wall.publish(CAROL, "wall", "a", entry("This", str(first.findtext(f"{{{A}}}id"))))
    (message,) = await wall.events(bare(BOB))
    body = body_of(message)
    reply, fallback = message.find(REPLY), message.find(FALLBACK)
    assert reply is not None and fallback is not None
    assert (reply.get("id"), reply.get("to")) == (answered, DOMAIN)
    assert fallback.get("for") == "urn:xmpp:reply:0"
    part = fallback.find("{urn:xmpp:fallback:0}body")
    assert part is not None
    start, end = int(part.get("start", "")), int(part.get("end", ""))
    assert (body[start:end], body[end:].split("\n")[0]) == ("> What now?\n", "This")


async def test_answer_to_a_message_that_was_not_sent_has_a_quotation_only(wall: Component) -> None:
    """An author is not sent own entries, and who follows a feed since today was not sent those of yesterday."""
    await question(wall)
    await write(wall, ALICE, "subscribe wall")
    (first,) = (await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    await wall.publish(CAROL, "wall", "a", entry("This", str(first.findtext(f"{{{A}}}id"))))
    (message,) = await wall.events(bare(ALICE))
    assert (body_of(message).split("\n")[0], message.find(REPLY)) == ("> What now?", None)


@pytest.mark.parametrize("case", ["list", "filter", "later edit", "single"])
async def test_answer_names_only_messages_that_were_sent(wall: Component, case: str) -> None:
    """[XEP-0461 3] An item of a list has no message of its own, and a filter leaves items out."""
    await question(wall)
    if case == "filter":
        await write(wall, BOB, "unsubscribe wall")
        await write(wall, BOB, "subscribe wall author=carol")
        await write(wall, ALICE, "post wall Asked", id="q2")
    elif case == "list":
        await write(wall, BOB, "digest daily 8:00")
        for number in range(4):
            await write(wall, ALICE, f"post wall Asked {number}", id=f"q{number}")
        await write(wall, BOB, "digest off")
        (text,) = await received(wall, BOB)
        assert "- Asked 0" in text
    else:
        await write(wall, ALICE, "post wall Asked", id="q2")
        assert len(await received(wall, BOB)) == 1
    asked = (await wall.item_ids(ALICE, "wall"))[-1]
    if case == "later edit":
        await write(wall, BOB, "quiet 0-23:59 UTC")
    author = f"<author><name>carol</name><uri>xmpp:{bare(CAROL)}</uri></author>"
    answer = entry("This", "urn:x", f"xmpp:{DOMAIN}?;node=wall;item={asked}")
    await wall.publish(CAROL, "wall", "a", answer.replace("</entry>", f"{author}</entry>"))
    if case == "later edit":
        await write(wall, ALICE, "edit wall Asked again")
        await write(wall, BOB, "quiet off")
    message = (await wall.events(bare(BOB)))[0]
    assert body_of(message).startswith("> Asked")
    reply = message.find(REPLY)
    assert (reply is not None) == (case == "single")


async def test_message_shows_nothing_of_a_closed_feed(wall: Component) -> None:
    await question(wall)
    await wall.create(CAROL, "secret", access_model="whitelist")
    await wall.publish(CAROL, "secret", "s", entry("The secret title"))
    await wall.publish(CAROL, "wall", "a", entry("This", "urn:x", f"xmpp:{DOMAIN}?;node=secret;item=s"))
    (message,) = await wall.events(bare(BOB))
    assert (body_of(message).split("\n")[0], "secret title" in body_of(message)) == ("This", False)
    await wall.affiliate(CAROL, "secret", BOB, "member")
    await wall.publish(CAROL, "wall", "b", entry("That", "urn:x", f"xmpp:{DOMAIN}?;node=secret;item=s"))
    (message,) = await wall.events(bare(BOB))
    assert body_of(message).split("\n")[:2] == ["> The secret title", "That"]
    assert message.find(REPLY) is None  # of another feed, which Bob does not follow


async def test_lists_say_what_an_item_answers(wall: Component) -> None:
    await question(wall)
    (first,) = (await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    await wall.publish(CAROL, "wall", "a", entry("This", str(first.findtext(f"{{{A}}}id"))))
    (latest,) = await write(wall, CAROL, "latest wall 1")
    assert latest.split("\n")[:2] == ["> What now?", "This"]
    (listed,) = await write(wall, CAROL, "latest wall")
    assert [line for line in listed.split("\n") if line.startswith("- ")] == [
        "- What now?",
        "- This (answers “What now?”)",
    ]


async def test_message_with_many_items_says_what_they_answer(wall: Component) -> None:
    await question(wall)
    await write(wall, BOB, "digest daily 8:00")
    for number in range(5):
        await wall.publish(CAROL, "wall", f"a{number}", entry(f"Answer {number}", "a0"))
    await write(wall, BOB, "digest off")
    (text,) = await received(wall, BOB)
    assert "- Answer 0\n" in text and "- Answer 1 (answers “Answer 0”)\n" in text


@pytest.mark.parametrize("change", ["deleted", "cycle"])
async def test_answer_to_nothing_that_can_be_shown(wall: Component, change: str) -> None:
    await question(wall)
    await wall.publish(CAROL, "wall", "q", entry("Gone", "a" if change == "cycle" else ""))
    await wall.events(bare(BOB))
    if change == "deleted":
        await wall.retract(CAROL, "wall", "q")
    await wall.publish(CAROL, "wall", "a", entry("This", "q"))
    (message,) = await wall.events(bare(BOB))
    lines = body_of(message).split("\n")
    assert lines[0] == ("This" if change == "deleted" else "> Gone")


# Answering.


async def test_answer_has_the_address_of_its_entry(wall: Component) -> None:
    """[RFC 4685 3] So other feeds and services find it too."""
    await write(wall, BOB, "This", reply_to(await question(wall)), id="a1")
    entries = list((await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry"))
    (reference,) = entries[-1].iter(THR)
    assert reference.get("ref") == entries[0].findtext(f"{{{A}}}id")
    assert str(reference.get("href")).startswith(f"xmpp:{DOMAIN}?;node=wall;item=")


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("publishers", "Only its publishers may answer in wall. Ask its owner: carol@example.org"),
        ("subscribers", "Only subscribers may answer in wall. Write: subscribe wall"),
    ],
)
async def test_who_may_not_answer_learns_who_may(wall: Component, model: str, answer: str) -> None:
    message_id = await question(wall)
    await write(wall, BOB, "unsubscribe wall")
    await wall.configure(CAROL, "wall", publish_model=model)
    assert await write(wall, BOB, "This", reply_to(message_id)) == [answer]
    assert len(list((await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry"))) == 1


# News for authors.


async def received(component: Component, user: str) -> list[str]:
    return [body_of(message) for message in await component.events(bare(user))]


async def test_author_hears_of_an_answer_and_can_answer_it(wall: Component) -> None:
    await write(wall, BOB, "This", reply_to(await question(wall)), id="a1")
    (message,) = await wall.events(bare(ALICE))
    lines = body_of(message).split("\n")
    assert lines[:3] == ["An answer to your entry “What now?”:", "This", "bob in wall"]
    assert lines[-1] == "To hear of no more answers, write: answers off"
    done = await write(wall, ALICE, "Really?", reply_to(str(message.get("id"))), id="q2")
    assert done == ["Your answer is published in wall."]
    titles = [
        one.findtext(f"{{{A}}}title") for one in (await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    ]
    assert titles == ["What now?", "This", "Really?"]


async def test_corrected_answer_is_no_second_one(wall: Component) -> None:
    inner = reply_to(await question(wall))
    await write(wall, BOB, "Thsi", inner, id="a1")
    assert len(await received(wall, ALICE)) == 1
    await write(wall, BOB, "This", f"{inner}<replace xmlns='urn:xmpp:message-correct:0' id='a1'/>", id="a2")
    assert await received(wall, ALICE) == []


async def test_author_who_does_not_want_them_gets_no_news(wall: Component) -> None:
    message_id = await question(wall)
    assert await write(wall, ALICE, "answers off") == ["I do not tell you of answers to your entries any more."]
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    assert await received(wall, ALICE) == []
    assert await write(wall, ALICE, "antworten an") == ["I tell you when somebody answers an entry of yours."]
    await write(wall, BOB, "That", reply_to(message_id), id="a2")
    assert len(await received(wall, ALICE)) == 1
    (usage,) = await write(wall, ALICE, "answers perhaps")
    assert usage == "Write: answers on"


async def test_author_who_follows_the_feed_hears_of_an_answer_once(wall: Component) -> None:
    message_id = await question(wall)
    await write(wall, ALICE, "subscribe wall")
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    (text,) = await received(wall, ALICE)
    assert text.startswith("> What now?\nThis")


async def test_subscription_of_a_client_does_not_hide_an_answer(wall: Component) -> None:
    """Chat clients show no events of feeds, and the program that subscribed may have ended long ago."""
    message_id = await question(wall)
    await wall.subscribe(ALICE, "wall", bare(ALICE))
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    messages: Sequence[etree._Element] = await wall.events(bare(ALICE))
    assert len([message for message in messages if "An answer to" in body_of(message)]) == 1


async def test_feed_that_is_followed_but_not_sent_does_not_hide_an_answer(wall: Component) -> None:
    """Who follows for the pages only, or a part of a feed that may lack the answer, is told of it."""
    message_id = await question(wall)
    await wall.subscribe(ALICE, "wall", bare(ALICE), deliver="false")
    await write(wall, ALICE, "subscribe wall author=carol")
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    (text,) = await received(wall, ALICE)
    assert text.startswith("An answer to your entry")


async def test_nobody_who_never_wrote_to_the_bot_gets_news(wall: Component) -> None:
    """An author who published with a client has not invited the bot."""
    await question(wall)
    await wall.publish(CAROL, "wall", "c", entry("By a client"))
    await write(wall, BOB, "This", reply_to(await question(wall)), id="a1")
    assert await received(wall, CAROL) == []


async def test_author_hears_of_answers_by_clients(wall: Component) -> None:
    """A client publishes an entry with a reference: the atom:id of what it answers, its item id, or its address. A
    repetition, a change and a like are no new answers, and neither is a reference in a text."""
    await question(wall)
    (item_id,) = await wall.item_ids(ALICE, "wall")
    (first,) = (await wall.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    address = f"xmpp:{DOMAIN}?;node=wall;item={item_id}"
    references = [(str(first.findtext(f"{{{A}}}id")), ""), (item_id, ""), ("tag:elsewhere.example:1", address)]
    for number, (ref, href) in enumerate(references):
        for title in ("This", "This", "That"):
            await wall.publish(BOB, "wall", f"a{number}", entry(title, ref, href))
        (text,) = await received(wall, ALICE)
        assert text.split("\n")[0] == "An answer to your entry “What now?”:"
    await wall.publish(BOB, "wall", "like", entry(LIKE, item_id))
    await wall.publish(BOB, "wall", "text", entry("thr:in-reply-to"))
    await wall.publish(BOB, "wall", "nothing", entry("This", "tag:elsewhere.example:2"))
    old = f"<published>{format_t(wall.clock.now_us - (news.NEWS_S + 1) * 1_000_000)}</published></entry>"
    await wall.publish(BOB, "wall", "old", entry("This", item_id).replace("</entry>", old))
    assert await received(wall, ALICE) == []


async def test_answer_to_several_entries_is_one_message_for_each_author(wall: Component) -> None:
    await write(wall, ALICE, "post wall And this?", id="q2")
    await write(wall, CAROL, "post wall And that?", id="q3")
    ids = await wall.item_ids(ALICE, "wall")
    references = "".join(entry("", each).partition("</title>")[2].removesuffix("</entry>") for each in ids)
    await wall.publish(BOB, "wall", "a", entry("All right").replace("</entry>", f"{references}</entry>"))
    assert [len(await received(wall, user)) for user in (ALICE, CAROL)] == [1, 1]


async def test_answer_in_a_feed_of_somebody_else_is_no_news(wall: Component) -> None:
    """Otherwise anybody could write to any author, by a feed of their own. In the feed for the comments of the entry it
    is news."""
    await question(wall)
    (item_id,) = await wall.item_ids(ALICE, "wall")
    address = f"xmpp:{DOMAIN}?;node=wall;item={item_id}"
    link = f"<link xmlns='{A}' rel='replies' href='xmpp:{DOMAIN}?;node=comments'/>"
    for node, links in (("bobs", ""), ("comments", link)):
        await wall.create(BOB, node)
        await wall.publish(ALICE, "wall", item_id, entry("What now?").replace("</entry>", f"{links}</entry>"))
        await wall.publish(BOB, node, "x", entry("Buy this", "urn:x", address))
        assert len(await received(wall, ALICE)) == bool(links)


async def test_flood_of_answers_is_not_looked_at(wall: Component) -> None:
    """Beyond their rate nothing is read for the answers of a person; those of others are told."""
    await question(wall)
    (item_id,) = await wall.item_ids(ALICE, "wall")
    for number in range(news.ACTOR_RATE.burst + 3):
        await wall.publish(BOB, "wall", f"b{number}", entry("This", "tag:elsewhere.example:1"))
    await wall.publish(BOB, "wall", "b", entry("This", item_id))
    assert await received(wall, ALICE) == []
    await wall.publish(CAROL, "wall", "c", entry("That", item_id))
    assert len(await received(wall, ALICE)) == 1


async def test_author_is_not_told_of_own_answers(wall: Component) -> None:
    message_id = await question(wall)
    done = await write(wall, ALICE, "And now?", reply_to(message_id), id="a1")
    assert done == ["Your answer is published in wall."]
    assert await received(wall, ALICE) == []
    await write(wall, BOB, "That", reply_to(message_id), id="b1")
    assert len(await received(wall, ALICE)) == 1  # of the same entry, by somebody else


async def test_author_who_lost_access_gets_no_news(wall: Component) -> None:
    message_id = await question(wall)
    await wall.affiliate(CAROL, "wall", ALICE, "outcast")
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    assert await received(wall, ALICE) == []


async def test_news_have_a_rate(wall: Component) -> None:
    """A flood of answers is one message a minute for the author."""
    message_id = await question(wall)
    for number in range(notices.RATE.burst + 5):
        await send(wall, BOB, f"Answer {number}", reply_to(message_id), id=f"a{number}")
    assert len(await received(wall, ALICE)) == notices.RATE.burst


async def test_news_wait_for_the_end_of_quiet_hours(wall: Component) -> None:
    """A tenth of a second before midnight, when these hours end."""
    message_id = await question(wall)
    await write(wall, ALICE, "quiet 20-24 UTC")
    wall.clock.advance(86_399.9 - wall.clock.now_us / 1_000_000 % 86_400)
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    (message,) = await wall.next_event(bare(ALICE))
    assert body_of(message).split("\n")[1] == "This"


async def test_nothing_is_said_in_quiet_hours(wall: Component) -> None:
    message_id = await question(wall)
    await write(wall, ALICE, "quiet 0-23:59 UTC")
    await write(wall, BOB, "This", reply_to(message_id), id="a1")
    assert await received(wall, ALICE) == []
