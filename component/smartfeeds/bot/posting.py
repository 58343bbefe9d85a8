"""The commands that write: post, edit, delete; and replies, corrections and reactions, which do the same.

An item that comes from a message has an id made of the sender and the id of the message. The correction of a message
(XEP-0308) names the id of the first version, so it publishes the same item again, and nothing has to be remembered.
"""

import hashlib

from lxml import etree

from smartfeeds.bot.conversation import Conversation, RefusalError, Reply, UsageError
from smartfeeds.bot.delivery import find_item, parse_message_id
from smartfeeds.bot.grammar import take, view_name
from smartfeeds.bot.reading import pull_newest
from smartfeeds.bot.render import NAME_CHARACTERS, TITLE_CHARACTERS, cut
from smartfeeds.bot.usages import DELETE
from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.model import Item
from smartfeeds.core.text import is_language_tag
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import Entry, read_entry
from smartfeeds.formats.xml import XML_LANG, Element, new_element
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import draft_of

LIKE = "\u2665"  # the title of a like, as Movim publishes it
_LIKES = frozenset("\u2764\u2665\U0001f44d\U0001f499\U0001f49a\U0001f49b\U0001f49c\U0001f9e1")
_VARIANT = "\ufe0f"  # shows a character as a picture; clients send it or not
OWN_ITEMS = 20  # items of the author among which `edit` and `delete` look for the newest


async def post(c: Conversation, rest: str) -> Reply:
    """Publishes a text. If the message corrects another one, the item of that message is replaced."""
    feed, text = take(rest)
    if not text:
        raise UsageError
    item_id = _item_id(c, c.message.replaces or c.message.message_id, "post")
    answer = await _publish(c, feed, item_id, _entry(c, text))
    name = cut(feed, NAME_CHARACTERS)
    done = c.say("Published in {feed}.", feed=name) if answer.created else c.say("Changed in {feed}.", feed=name)
    return Reply(done, (c.offer(DELETE, feed),))


async def edit(c: Conversation, rest: str) -> Reply:
    """Replaces the text of the author's newest item in a feed."""
    feed, text = take(rest)
    if not text:
        raise UsageError
    item = await _newest_own(c, feed)
    await _publish(c, feed, item.id, _entry(c, text, read_entry(item)))
    return Reply(c.say("Changed in {feed}.", feed=cut(feed, NAME_CHARACTERS)))


async def delete(c: Conversation, rest: str) -> Reply:
    """Deletes the author's newest item in a feed."""
    feed, more = take(rest)
    if not feed or more:
        raise UsageError
    item = await _newest_own(c, feed)
    await c.ask(r.Retract(c.actor, c.service, feed, item.id, notify=True), r.EmptyResult)
    title = cut(read_entry(item).title.plain, TITLE_CHARACTERS)
    return Reply(c.say("Deleted from {feed}: {title}", feed=cut(feed, NAME_CHARACTERS), title=title))


async def reply(c: Conversation) -> Reply:
    """Publishes an answer to the item of the message that the user replies to (XEP-0461)."""
    item, feed, comments = await _target(c, c.message.reply_to)
    item_id = _item_id(c, c.message.replaces or c.message.message_id, "reply")
    entry = _entry(c, c.message.text.strip())
    _refer(entry, item)
    await _publish(c, comments or feed, item_id, entry)
    return Reply(c.say("Your answer is published in {feed}.", feed=cut(comments or feed, NAME_CHARACTERS)))


async def react(c: Conversation) -> Reply:
    """Publishes a like of the item of the message, or takes it back (XEP-0444). Other reactions change nothing."""
    item, _, comments = await _target(c, c.message.reacts_to)
    if not comments:
        raise RefusalError(c.say("This feed has no likes."))
    # One like for each person and item, however often the reaction changes.
    item_id = _item_id(c, item.atom_id, "like")
    if any(reaction.removesuffix(_VARIANT) in _LIKES for reaction in c.message.reactions):
        entry = _entry(c, LIKE)
        _refer(entry, item)
        await _publish(c, comments, item_id, entry)
        return Reply("")
    try:
        await c.ask(r.Retract(c.actor, c.service, comments, item_id, notify=True), r.EmptyResult)
    except FeedError as error:
        if error.condition is not Condition.ITEM_NOT_FOUND:
            raise
    return Reply("")


async def _publish(c: Conversation, feed: str, item_id: str | None, entry: Element) -> r.Published:
    return await c.ask(r.Publish(c.actor, c.service, feed, item_id, draft_of(entry), may_create=False), r.Published)


def _item_id(c: Conversation, message_id: str, purpose: str) -> str | None:
    """The item id for a message; None, which lets the service choose, if the message has no id."""
    if not message_id:
        return None
    digest = hashlib.sha256("\0".join((purpose, c.jid, message_id)).encode()).hexdigest()
    return f"chat-{digest[:32]}"


def _entry(c: Conversation, text: str, former: Entry | None = None) -> Element:
    """An entry of a text: its first line is the title, and the whole is the content if there is more.

    `former` is the entry that it replaces, whose id and categories stay.
    """
    entry = new_element(atom.ENTRY, {None: ATOM_NS})
    if is_language_tag(c.message.language):
        entry.set(XML_LANG, c.message.language)
    first = text.split("\n", 1)[0].strip()
    title = cut(first, TITLE_CHARACTERS)
    if former is not None:
        etree.SubElement(entry, atom.ID).text = former.atom_id
    etree.SubElement(entry, atom.TITLE).text = title
    if text != title:
        etree.SubElement(entry, atom.CONTENT, type="text").text = text
    author = etree.SubElement(entry, atom.AUTHOR)
    etree.SubElement(author, f"{{{ATOM_NS}}}name").text = c.actor.local or c.jid
    etree.SubElement(author, f"{{{ATOM_NS}}}uri").text = f"xmpp:{c.jid}"
    for category in former.categories if former is not None else ():
        etree.SubElement(entry, atom.CATEGORY, term=category.term)
    return entry


def _refer(entry: Element, item: Entry) -> None:
    """Makes an entry an answer to another one (RFC 4685)."""
    etree.SubElement(entry, atom.IN_REPLY_TO, nsmap={"thr": atom.THREAD_NS}).set("ref", item.atom_id)


async def _newest_own(c: Conversation, feed: str) -> Item:
    """The author's newest item in a feed. Raises FeedError, RefusalError, UsageError."""
    name = view_name(feed, [f"author={c.jid}"]) if feed else None
    if name is None:
        raise UsageError
    # Others may write any name as their author.
    own = [item for item in await pull_newest(c, name, OWN_ITEMS) if item.publisher == c.jid]
    if not own:
        raise RefusalError(c.say("None of the newest items in {feed} is yours.", feed=cut(feed, NAME_CHARACTERS)))
    return own[-1]


async def _target(c: Conversation, message_id: str) -> tuple[Entry, str, str]:
    """The item of a message of the bot, its feed, and the feed of its comments, which is empty if it has none.

    Raises FeedError, and RefusalError for another message.
    """
    key = parse_message_id(message_id)
    place = await c.tools.service.read(lambda tx, _context: find_item(tx, key), turn=c.jid) if key is not None else None
    if place is None:
        raise RefusalError(c.say("I can only relate that to a message with one item. To publish: post FEED TEXT"))
    node, item_id = place
    # The request checks that the user may read the item.
    shown = await c.ask(r.GetItem(c.actor, c.service, node.name, item_id), r.ItemShown)
    entry = read_entry(shown.item)
    return entry, node.name, _comments_of(entry, c.service)


def _comments_of(entry: Entry, service: str) -> str:
    """The node of the comments of an entry at this service (XEP-0277 section 3), or an empty text."""
    for link in entry.links:
        if link.rel != "replies":
            continue
        try:
            address = parse_address(link.href, smart=False)
        except AddressError:
            continue
        if address.service == service:
            return address.node
    return ""
