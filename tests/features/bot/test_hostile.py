"""What the bot never answers, and hostile messages: nothing closes the link, and nobody else waits."""

from xml.sax.saxutils import escape, quoteattr

import pytest
from lxml import etree

from smartfeeds.features.bot.bot import Bot
from support.chat import body_of, deliver, send, write
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, Starter, bare

ATOM = "http://www.w3.org/2005/Atom"
DELAY = "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
MUC_USER = "<x xmlns='http://jabber.org/protocol/muc#user'/>"


@pytest.mark.parametrize(
    ("sender", "inner", "kind"),
    [
        (BOB, "", "error"),
        (BOB, "", "headline"),
        (BOB, DELAY, "chat"),
        ("room@rooms.example.org/Bob", MUC_USER, "chat"),
        ("room@rooms.example.org/Bob", "", "groupchat"),
        ("example.org", "", "chat"),
        (f"other@{DOMAIN}", "", "chat"),
    ],
    ids=["error", "headline", "history", "private", "room", "server", "itself"],
)
async def test_message_without_an_answer(component: Component, sender: str, inner: str, kind: str) -> None:
    assert await send(component, sender, "help", inner, type=kind) == []


async def test_chat_states_and_receipts_are_ignored(component: Component) -> None:
    """Typing notifications (XEP-0085), receipts and markers arrive with every message of a person."""
    for inner in (
        "<composing xmlns='http://jabber.org/protocol/chatstates'/>",
        "<received xmlns='urn:xmpp:receipts' id='x'/>",
        "<displayed xmlns='urn:xmpp:chat-markers:0' id='x'/>",
    ):
        assert await send(component, BOB, "", inner) == []
    assert await send(component, BOB, "  \n ") == []


async def test_requested_receipt_is_sent(component: Component) -> None:
    receipt, answer = await send(component, BOB, "list", "<request xmlns='urn:xmpp:receipts'/>", id="r'1")

    received = receipt.find("{urn:xmpp:receipts}received")
    assert received is not None and received.get("id") == "r'1"
    assert body_of(answer) == "There are no feeds."


async def test_unknown_words_are_answered_a_few_times_only(component: Component) -> None:
    """Two programs that answer each other stop soon."""
    answers = [text for _ in range(20) for text in await write(component, BOB, "I do not understand you")]

    assert len(answers) == 5
    assert answers[0].startswith("I do not know “i”.")


async def test_person_has_a_quota(start: Starter) -> None:
    component = await start(bot={"messages_per_minute": 1})
    for number in range(1_000):
        await deliver(component, BOB, "list", id=f"m{number}")
    assert await write(component, CAROL, "list") == ["There are no feeds."], "others are served"
    assert len(await component.events(BOB)) == 20
    component.clock.advance(60)
    assert await write(component, BOB, "list") == ["There are no feeds."]
    assert await write(component, BOB, "list") == []


HOSTILE = [
    "{0.__class__.__mro__} %s %n {feed}",
    "'\"<>&]]>",
    "\u202e\u2066\u0085\u200b",
    "../../etc/passwd",
    "a" * 100_000,
    "\n" * 50_000 + "x",
    "?order=created&since=1",
    "a=b=c",
    '"',
    "9" * 5_000,
    "²",
    "🔥" * 2_000,
    "news?q=" + "w%20" * 200,
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_arguments_of_each_command(start: Starter, value: str) -> None:
    """[xep-map 246] Every command answers with one short message."""
    component = await start(bot={"messages_per_minute": 10_000})
    await component.create(ALICE, "news", publish_model="open")
    words = ("help", "list", "search", "show", "latest", "subscribe", "unsubscribe", "subscriptions", "edit")
    words += ("delete", "quiet", "digest", "language", "conflicts", "/join", "leave", value)
    for number, word in enumerate(words):
        # The quota of the whole minute is for another test.
        component.clock.advance(1)
        user = f"user{number}@example.org/x"
        for rest in (value, f"news {value}", f"{value} {value}"):
            answers = await write(component, user, f"{word} {rest}")
            assert len(answers) == 1 or word == value
            assert all(0 < len(text) <= 10_000 for text in answers)
    assert await write(component, CAROL, "list") == ["Feeds:\n- news"]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_is_published_or_refused(component: Component, value: str) -> None:
    await component.create(ALICE, "news", publish_model="open")
    await write(component, CAROL, "subscribe news")
    (answer,) = await write(component, BOB, f"post news {value}")
    assert answer in ("Published in news.", "The text is too long for this feed.")
    messages = [body_of(one) for one in await component.events(bare(CAROL))]

    assert len(messages) == (answer == "Published in news.")
    assert all(len(text) < 3_000 for text in messages)


async def test_names_with_markup_and_quotes_arrive_as_text(component: Component) -> None:
    name, title, text = 'o\'news "x"', "<b>T & \" '</b>", "a'<&\" <i>b</i>"
    await component.create(ALICE, name, title=title)
    (answer,) = await write(component, BOB, f"subscribe “{name}”")
    payload = f"<entry xmlns='{ATOM}'><title>{escape(text)}</title></entry>"
    await component.publish(ALICE, name, "one", payload)
    (message,) = await component.events(bare(BOB))

    assert answer.startswith(f"You follow {title} ({name}) now.")
    assert body_of(message).split("\n")[:2] == [text, f"{title} ({name})"]
    assert await write(component, BOB, "list") == [f"Feeds:\n- {title} ({name})"]


async def test_forged_ids_of_messages_show_nothing(component: Component) -> None:
    await component.create(ALICE, "secret", access_model="whitelist")
    await component.publish(ALICE, "secret", "hidden")
    item = await component.app.service.read(lambda tx, _context: tx.items(1, ["hidden"])[0])
    for message_id in (
        f"chat-1-{item.created_us}-{item.item_no}-1",
        "chat-1-1-1-1",
        f"chat-{'9' * 18}-1-1-1",
        "x" * 9_000,
    ):
        reply = f"<reply xmlns='urn:xmpp:reply:0' id='{message_id}'/>"
        reactions = f"<reactions xmlns='urn:xmpp:reactions:0' id='{message_id}'><reaction>👍</reaction></reactions>"
        for text, inner in (("hello", reply), ("", reactions)):
            (answer,) = await write(component, BOB, text, inner)
            assert "hidden" not in answer and "secret" not in answer
    assert await component.item_ids(ALICE, "secret") == ["hidden"]


async def test_forged_errors_change_nothing(component: Component) -> None:
    """Only the recipient's address can return a message. The errors arrive before the answer to the ping."""
    await component.create(ALICE, "news")
    await write(component, BOB, "subscribe news")
    error = "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
    for message_id in ("chat-1-1-1-1", "chat-1-1to2", f"chat-{'9' * 18}-1-1-1", "chat-", "chat-x-1-1-1"):
        await deliver(component, CAROL, "help", error, type="error", id=message_id)
    component.forger = CAROL
    await component.publish(ALICE, "news", "one")
    assert [body_of(one).split("\n")[0] for one in await component.events(bare(BOB))] == ["one"]
    failures = await component.app.service.read(lambda tx, _context: tx.failures())

    assert failures == [] and not component.app.parts.get(Bot).sender.has_failed(bare(BOB))


@pytest.mark.parametrize("kind", ["sent", "received"])
async def test_carbon_copies_are_not_read(component: Component, kind: str) -> None:
    """A forged copy (XEP-0280) would make others say what they did not."""
    message = f"<message xmlns='jabber:client' from='{ALICE}' to='{DOMAIN}' type='chat'><body>list</body></message>"
    copy = f"<{kind} xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>{message}</forwarded></{kind}>"

    assert await send(component, BOB, "", copy) == []
    assert await component.events(ALICE) == await component.events(bare(ALICE)) == []


@pytest.mark.parametrize("message_id", ["", "x" * 9_000, "'\"<>&", "\u202e\u0085", "chat-1-1-1-1"])
async def test_hostile_ids_of_messages(component: Component, message_id: str) -> None:
    """[xep-map 246] An id is stored and repeated only as a digest, or not at all."""
    await component.create(ALICE, "news", publish_model="open")
    texts = []
    for inner in (
        "",
        "<replace xmlns='urn:xmpp:message-correct:0' id={}/>",
        "<replace xmlns='urn:xmpp:message-correct:0'/>",
    ):
        texts += await write(component, BOB, "post news Hello", inner.format(quoteattr(message_id)), id=message_id)

    assert len(texts) == 3 and set(texts) <= {"Published in news.", "Changed in news."}
    assert all(len(item_id) < 64 for item_id in await component.item_ids(BOB, "news"))
    for stanza in await send(component, BOB, "list", "<request xmlns='urn:xmpp:receipts'/>", id=message_id):
        assert len(etree.tostring(stanza)) < 4_000


@pytest.mark.parametrize("control", ["\u202e", "\u2067", "\u200b", "\u0085", "\u009b", "\ufeff"])
async def test_control_characters_are_not_repeated(component: Component, control: str) -> None:
    """They would turn a line of an answer around, or hide a part of it."""
    await component.create(ALICE, "news", title=f"The{control}News")
    await component.publish(ALICE, "news", "one", f"<entry xmlns='{ATOM}'><title>a{control}b</title></entry>")
    texts = await write(component, BOB, f"sub{control}scribe news")
    for command in ("subscribe news", "list", "show news", "latest news", "search news", "subscriptions"):
        texts += await write(component, BOB, command)
    texts += await write(component, BOB, f"unsubscribe {control}news")

    assert len(texts) == 8
    assert [text for text in texts if control in text] == []


async def test_program_that_repeats_each_answer_is_soon_alone(component: Component) -> None:
    """Titles that are commands do not keep it going either."""
    await component.create(ALICE, "news", title="help")
    await component.publish(ALICE, "news", "one", f"<entry xmlns='{ATOM}'><title>latest news 1</title></entry>")
    count, texts = 0, await write(component, BOB, "latest news 1")
    while texts and count < 50:
        count += 1
        texts = await write(component, BOB, texts[0])

    assert count < 10


async def test_bot_can_be_switched_off(start: Starter) -> None:
    component = await start(bot={"enabled": False})

    assert await send(component, BOB, "help") == []
