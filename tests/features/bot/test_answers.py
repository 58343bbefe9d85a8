"""Replies, corrections and reactions to delivered items; languages; rights."""

import pytest
from lxml import etree

from smartfeeds.chat.grammar import READ_CHARACTERS
from smartfeeds.core.model import Item
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.reading import pull_newest
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import Publish
from support.chat import body_of, send, write
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, Starter, bare

A = "http://www.w3.org/2005/Atom"
THR = "{http://purl.org/syndication/thread/1.0}in-reply-to"
FALLBACK = "<fallback xmlns='urn:xmpp:fallback:0' for='urn:xmpp:reply:0'><body start='0' end='{}'/></fallback>"


def reply_to(message_id: str) -> str:
    return f"<reply xmlns='urn:xmpp:reply:0' id='{message_id}' to='{DOMAIN}'/>"


def reactions(message_id: str, *texts: str) -> str:
    inner = "".join(f"<reaction>{text}</reaction>" for text in texts)
    return f"<reactions xmlns='urn:xmpp:reactions:0' id='{message_id}'>{inner}</reactions>"


@pytest.fixture
async def blog(component: Component) -> Component:
    """The feed `blog` of Alice, whose posts have comments in `blog-comments`; Bob follows it."""
    await component.create(ALICE, "blog")
    await component.create(ALICE, "blog-comments", publish_model="open")
    await write(component, BOB, "subscribe blog")
    return component


async def published(component: Component, version: int = 1, *, comments: bool = True) -> str:
    """Publishes a post and returns the id of the message by which Bob receives it."""
    link = f"<link rel='replies' href='xmpp:{DOMAIN}?;node=blog-comments'/>" if comments else ""
    payload = f"<entry xmlns='{A}'><id>tag:x,2026:post</id><title>post {version}</title>{link}</entry>"
    await component.publish(ALICE, "blog", "post", payload)
    (message,) = await component.events(bare(BOB))
    return str(message.get("id"))


async def entries(component: Component, node: str) -> list[tuple[str, list[str]]]:
    """The titles in a feed and the ids that each entry answers."""
    answer = await component.get(ALICE, f"<items node='{node}'/>")
    return [
        (str(one.findtext(f"{{{A}}}title")), [str(part.get("ref")) for part in one.iterfind(THR)])
        for one in answer.iter(f"{{{A}}}entry")
    ]


async def test_reply_is_published_as_a_comment_without_its_quotation(blog: Component) -> None:
    message_id = await published(blog)
    quotation = "> post\n"
    inner = reply_to(message_id) + FALLBACK.format(len(quotation))

    assert await write(blog, BOB, f"{quotation}Well said", inner) == ["Your answer is published in blog-comments."]
    assert await entries(blog, "blog-comments") == [("Well said", ["tag:x,2026:post"])]


async def test_corrected_reply_replaces_the_comment(blog: Component) -> None:
    inner = reply_to(await published(blog))
    await write(blog, BOB, "Wel said", inner, id="r1")
    await write(blog, BOB, "Well said", f"{inner}<replace xmlns='urn:xmpp:message-correct:0' id='r1'/>", id="r2")

    assert [title for title, _ in await entries(blog, "blog-comments")] == ["Well said"]


async def test_reply_to_an_item_that_was_edited_since(blog: Component) -> None:
    message_id = await published(blog)
    await published(blog, version=2)

    assert await write(blog, BOB, "Late", reply_to(message_id)) == ["Your answer is published in blog-comments."]


async def test_reply_without_comments_is_an_item_of_the_feed_if_the_person_may_publish(blog: Component) -> None:
    message_id = await published(blog, comments=False)
    refusal = "Only its publishers may answer in blog. Ask its owner: alice@example.org"
    assert await write(blog, BOB, "Hello", reply_to(message_id)) == [refusal]
    await blog.affiliate(ALICE, "blog", BOB, "publisher")
    assert await write(blog, BOB, "Hello", reply_to(message_id)) == ["Your answer is published in blog."]
    assert ("Hello", ["tag:x,2026:post"]) in await entries(blog, "blog")


async def test_reply_to_another_message_is_explained(blog: Component) -> None:
    (answer,) = await write(blog, BOB, "Well said", reply_to("something-else"))

    assert answer.startswith("Reply to a message that shows one item.")


async def test_reply_to_another_message_may_be_a_command(blog: Component) -> None:
    assert await write(blog, BOB, "list", reply_to("something-else")) == ["Feeds:\n- blog\n- blog-comments"]


async def test_like_is_published_once_and_can_be_taken_back(blog: Component) -> None:
    message_id = await published(blog)
    for _ in range(2):
        assert await write(blog, BOB, "", reactions(message_id, "👍", "🎉")) == []
    assert await entries(blog, "blog-comments") == [("♥", ["tag:x,2026:post"])]
    assert await write(blog, BOB, "", reactions(message_id)) == []
    assert await entries(blog, "blog-comments") == []
    assert await write(blog, BOB, "", reactions(message_id)) == []


async def test_feed_without_comments_has_no_likes(blog: Component) -> None:
    message_id = await published(blog, comments=False)

    assert await write(blog, BOB, "", reactions(message_id, "❤️")) == ["This feed has no likes."]


async def test_person_who_lost_access_can_neither_answer_nor_like(blog: Component) -> None:
    message_id = await published(blog)
    await blog.affiliate(ALICE, "blog", BOB, "outcast")
    for text, inner in (("Hello", reply_to(message_id)), ("", reactions(message_id, "👍"))):
        (answer,) = await write(blog, BOB, text, inner)
        assert answer.startswith(("You may not do that.", "There is no such feed or item"))
    assert await entries(blog, "blog-comments") == []


async def test_correction_by_somebody_else_is_an_item_of_its_own(component: Component) -> None:
    await component.create(ALICE, "wall", publish_model="open")
    await write(component, BOB, "post wall Mine", id="m1")
    await write(component, CAROL, "post wall Stolen", "<replace xmlns='urn:xmpp:message-correct:0' id='m1'/>")

    assert {title for title, _ in await entries(component, "wall")} == {"Mine", "Stolen"}


async def test_edit_and_delete_touch_own_items_only(component: Component) -> None:
    await component.create(ALICE, "wall", publish_model="open")
    forged = (
        f"<entry xmlns='{A}'><title>Forged</title><author><name>Bob</name><uri>xmpp:{bare(BOB)}</uri></author></entry>"
    )
    await component.publish(CAROL, "wall", "forged", forged)
    for command in ("edit wall New", "delete wall"):
        (answer,) = await write(component, BOB, command)
        assert answer == "You wrote none of the newest 20 items in wall."
    assert await entries(component, "wall") == [("Forged", [])]


async def test_edit_keeps_everything_but_the_text(component: Component) -> None:
    await component.create(ALICE, "wall")
    rest = (
        f"<id>tag:x,2026:one</id><author><name>alice</name><uri>xmpp:{bare(ALICE)}</uri></author>"
        "<category term='tea' label='Tea'/><published>2026-01-01T00:00:00Z</published>"
        "<thr:in-reply-to xmlns:thr='http://purl.org/syndication/thread/1.0' ref='urn:1'/>"
        "<link rel='replies' href='xmpp:x?;node=c'/><link rel='enclosure' href='https://x.example/a.ogg'/>"
    )
    texts = "<title>Old</title><summary>Old</summary><content>Old</content>"
    await component.publish(ALICE, "wall", "one", f"<entry xmlns='{A}'>{texts}{rest}</entry>")
    (before,) = (await component.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    assert await write(component, ALICE, "edit wall New\nLong") == ["Changed in wall."]
    (after,) = (await component.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")
    text_tags = {f"{{{A}}}{name}" for name in ("title", "summary", "content", "updated")}

    assert after.findtext(f"{{{A}}}title") == "New"
    assert [one.text for one in after if one.tag.endswith(("}summary", "}content"))] == ["Long"]
    kept, stored = (
        {(one.tag, *sorted(one.attrib.values()), "".join(one.itertext())) for one in entry if one.tag not in text_tags}
        for entry in (before, after)
    )
    assert len(kept) == 7 and stored == kept


@pytest.mark.parametrize(("language", "kept"), [("fr", "fr"), ("de-AT", "de-AT"), ("no language", None)])
async def test_item_has_the_language_of_the_message(component: Component, language: str, kept: str | None) -> None:
    """Readers choose a font and a voice by it. A text that names no language is left out."""
    await component.create(ALICE, "wall")
    await write(component, ALICE, "post wall Bonjour", xml_lang=language)
    (entry,) = (await component.get(ALICE, "<items node='wall'/>")).iter(f"{{{A}}}entry")

    assert entry.findtext(f"{{{A}}}title") == "Bonjour"
    assert entry.get("{http://www.w3.org/XML/1998/namespace}lang") == kept


async def test_edit_does_not_overwrite_a_change_that_it_has_not_seen(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    await component.create(ALICE, "wall")
    await write(component, ALICE, "post wall Old")

    async def changed_meanwhile(c: Conversation, name: str | None, count: int) -> list[Item]:
        items = await pull_newest(c, name, count)
        draft = draft_of(etree.fromstring(f"<entry xmlns='{A}'><title>Meanwhile</title></entry>"))
        await component.app.service.handle(Publish(c.actor, DOMAIN, "wall", items[-1].id, draft))
        return items

    monkeypatch.setattr("smartfeeds.features.bot.posting.pull_newest", changed_meanwhile)
    assert await write(component, ALICE, "edit wall New") == ["The item has changed meanwhile. Try again."]
    assert await entries(component, "wall") == [("Meanwhile", [])]


async def test_author_stays_hidden_in_a_feed_that_hides_publishers(component: Component) -> None:
    await component.create(ALICE, "tips", publish_model="open", itemreply="owner")
    await write(component, BOB, "post tips Tea")
    await write(component, BOB, "edit tips Green tea")
    answer = await component.get(ALICE, "<items node='tips'/>")

    assert await entries(component, "tips") == [("Green tea", [])]
    assert b"bob" not in etree.tostring(answer).replace(f'to="{BOB}"'.encode(), b"")


@pytest.mark.parametrize("node", ["private-official", "urn:xmpp:microblog:0:comments/post"])
async def test_author_of_an_item_chooses_no_foreign_feed_for_the_answers(component: Component, node: str) -> None:
    """Only a node for comments by its name is a place that readers expect their answers in."""
    await component.create(ALICE, "wall", publish_model="open")
    await component.create(CAROL, node, publish_model="open")
    await write(component, ALICE, "subscribe wall")
    link = f"<link rel='replies' href='xmpp:{DOMAIN}?;node={node}'/>"
    await component.publish(BOB, "wall", "post", f"<entry xmlns='{A}'><title>Hi</title>{link}</entry>")
    (message,) = await component.events(bare(ALICE))
    message_id = str(message.get("id"))
    place = node if node.startswith("urn:") else "wall"

    assert await write(component, ALICE, "Yes", reply_to(message_id)) == [f"Your answer is published in {place}."]
    likes = await write(component, ALICE, "", reactions(message_id, "❤"))
    assert likes == ([] if place == node else ["This feed has no likes."])


async def test_post_creates_no_feed(start: Starter) -> None:
    component = await start(pubsub={"auto_create": True})
    (answer,) = await write(component, ALICE, "post nowhere Hello")

    assert answer.startswith("There is no such feed or item")


async def test_language_of_the_message_then_the_choice(component: Component) -> None:
    """The choice comes first, because servers and clients state a language that nobody chose."""
    assert await write(component, BOB, "liste", xml_lang="de-AT") == ["Es gibt keine Feeds."]
    assert await write(component, BOB, "language de") == ["Ich schreibe dir jetzt auf Deutsch."]
    assert await write(component, BOB, "list", xml_lang="en") == ["Es gibt keine Feeds."]
    (refused,) = await write(component, BOB, "sprache xx")
    assert refused == "Die Sprachen sind: en (English), de (Deutsch)\nSchreibe: sprache KÜRZEL"


async def test_buttons_are_in_the_language_of_the_person(component: Component) -> None:
    await component.create(ALICE, "news")
    await write(component, BOB, "language de")
    values = []
    for command in ("hilfe", "abonniere news", "ruhe 22-7", "übersicht täglich 8"):
        for message in await send(component, BOB, command):
            values += [one.get("value") for one in message.iter("{urn:xmpp:tmp:quick-response}response")]
    assert values == ["liste", "neueste", "abos", "neueste", "abbestelle news", "ruhe aus", "übersicht aus"]
    texts = [text for value in values for text in await write(component, BOB, str(value))]

    assert len(texts) == len(values) and "Schreibe: " not in "".join(texts)
    assert texts[-2:] == ["Es gibt keine Ruhezeit mehr.", "Neue Einträge kommen, sobald sie veröffentlicht sind."]


async def test_deliveries_use_the_language_of_the_subscription(component: Component) -> None:
    await component.create(ALICE, "news")
    await write(component, BOB, "abonniere news", xml_lang="de")
    for _ in range(2):
        await component.publish(ALICE, "news", "one")
    messages = await component.events(bare(BOB))

    assert "one (geändert)" in body_of(messages[-1])
    assert {message.get("{http://www.w3.org/XML/1998/namespace}lang") for message in messages} == {"de"}


async def test_weekday_in_the_language_of_the_person(component: Component) -> None:
    (answer,) = await write(component, BOB, "übersicht Dienstag 8 Europe/Berlin", xml_lang="de")
    assert answer == "Neue Einträge kommen gesammelt: dienstag um 08:00 Uhr (Europe/Berlin)."
    (refused,) = await write(component, BOB, "digest someday 8")
    assert refused == "Write: digest daily 8:00 [TIMEZONE]"
    (refused,) = await write(component, BOB, "quiet 22-7 Europe/Atlantis")
    assert refused.startswith("I do not know this time zone.")


async def test_search_reads_the_beginning_of_a_long_message(component: Component) -> None:
    """[xep-map 246] Preparing all of it would stall the event loop."""
    await component.create(ALICE, "tea")

    (answer,) = await write(component, BOB, f"search tea {' ' * READ_CHARACTERS} coffee")

    assert answer == "Feeds:\n- tea"


async def test_search_finds_items_of_followed_feeds(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "Tomatoes are red")
    assert (await write(component, BOB, "search tomatoes"))[0].startswith("Nothing found.")
    assert (await write(component, BOB, "show news q=tomatoes"))[0].count("- Tomatoes are red") == 1
    await write(component, BOB, "subscribe news")
    (answer,) = await write(component, BOB, "search TOMATOES")
    assert answer.startswith("Items:\n- Tomatoes are red\n")


async def test_latest_covers_all_followed_feeds_in_order(component: Component) -> None:
    for feed in ("one", "two"):
        await component.create(ALICE, feed)
        await write(component, BOB, f"subscribe {feed}")
    for number, feed in enumerate(("one", "two", "one")):
        component.clock.advance(1)
        await component.publish(ALICE, feed, f"item {number}")
    await component.events(bare(BOB))
    (answer,) = await write(component, BOB, "latest 2")

    assert [line for line in answer.split("\n") if line.startswith("- ")] == ["- item 1", "- item 2"]
    assert await write(component, BOB, "latest 0") == ["Write: latest [FEED] [NUMBER]"]


@pytest.mark.needs("conflicts")
async def test_conflicts_of_a_feed(component: Component) -> None:
    await component.create(ALICE, "plans")
    assert await write(component, ALICE, "conflicts plans") == ["No item of plans has a conflict."]
    assert await write(component, ALICE, "conflicts") == ["Write: conflicts FEED"]


async def test_list_has_pages(component: Component) -> None:
    await component.many_nodes([f"feed-{number:02d}" for number in range(21)])
    (first,) = await write(component, BOB, "list")
    (second,) = await write(component, BOB, "list 2")

    assert first.endswith("- feed-19\nMore: list 2")
    assert second == "Feeds:\n- feed-20"
    assert await write(component, BOB, "list 3") == ["There are no more feeds."]


async def test_message_of_an_item_shows_its_first_line_once(component: Component) -> None:
    await component.create(ALICE, "club", title="The Club")
    await write(component, BOB, "subscribe club")
    await write(component, ALICE, "post club Hello\nLong text")
    (message,) = await component.events(bare(BOB))

    assert body_of(message).split("\n")[:3] == ["Hello", "alice in The Club (club)", "Long text"]
