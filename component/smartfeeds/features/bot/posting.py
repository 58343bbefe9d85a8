"""The commands that write: post, edit, delete; and replies, corrections and reactions, which do the same.

An item that comes from a message has an id made of the sender and the id of the message. The correction of a message
(XEP-0308) names the id of the first version, so it publishes the same item again, and nothing has to be remembered.
"""

import hashlib
from functools import partial

from lxml import etree

from smartfeeds.chat.commands import (
    LINK_CHARACTERS,
    NAME_CHARACTERS,
    TITLE_CHARACTERS,
    ChatReply,
    RefusalError,
    UsageError,
)
from smartfeeds.chat.grammar import take, view_name
from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import PublishModel
from smartfeeds.core.text import cut, is_language_tag
from smartfeeds.core.web_address import is_web
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.delivery import find_item, parse_message_id
from smartfeeds.features.bot.reading import pull_newest
from smartfeeds.features.bot.usages import DELETE, SUBSCRIBE
from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import Entry, EntryLink, ReplyReference, read_entry
from smartfeeds.formats.post import add_reply, complete
from smartfeeds.formats.xml import XML_LANG, Element, new_element, parse_stored
from smartfeeds.service.context import Context, find_for
from smartfeeds.service.drafts import PayloadDraft, draft_of
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.replies import find_comments
from smartfeeds.service.requests import (
    EmptyResult,
    GetItem,
    GetNodeInfo,
    ItemPrecondition,
    ItemShown,
    NodeInfo,
    Publish,
    Published,
    Retract,
)
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_

LIKE = "\u2665"  # the title of a like, as Movim publishes it
_LIKES = frozenset("\u2764\u2665\U0001f44d\U0001f499\U0001f49a\U0001f49b\U0001f49c\U0001f9e1")
_VARIANT = "\ufe0f"  # shows a character as a picture; clients send it or not
NO_ITEM = N_("Reply to a message that shows one item. To publish: post FEED TEXT")
OWN_ITEMS = 20  # items of the author among which `edit` and `delete` look for the newest


async def post(c: Conversation, rest: str) -> ChatReply:
    """Publishes a text. If the message corrects another one, the item of that message is replaced."""
    feed, text = take(rest)
    if not text:
        raise UsageError
    item_id = _item_id(c, c.message.replaces or c.message.message_id, "post")
    answer = await _publish(c, feed, item_id, draft_of(_entry(c, text), c.jid))
    if not c.in_room:
        await c.remember_language()  # the bot may write to the author from now on (`news`)
    name = cut(feed, NAME_CHARACTERS)
    done = c.say("Published in {feed}.", feed=name) if answer.created else c.say("Changed in {feed}.", feed=name)
    return ChatReply(done, (c.offer(DELETE, feed),))


async def edit(c: Conversation, rest: str) -> ChatReply:
    """Replaces the text of the author's newest item in a feed."""
    feed, text = take(rest)
    if not text:
        raise UsageError
    item = await _newest_own(c, feed)
    former = parse_stored(item.payload)
    draft = draft_of(_edited(c, text, former)) if former.tag == atom.ENTRY else draft_of(_entry(c, text), c.jid)
    # Without the precondition, an edit from elsewhere between the read and this write would be lost.
    await _publish(c, feed, item.id, draft, ItemPrecondition(frozenset({item_tag(item)})))
    return ChatReply(c.say("Changed in {feed}.", feed=cut(feed, NAME_CHARACTERS)))


async def delete(c: Conversation, rest: str) -> ChatReply:
    """Deletes the author's newest item in a feed."""
    feed, more = take(rest)
    if not feed or more:
        raise UsageError
    item = await _newest_own(c, feed)
    await c.ask(Retract(c.actor, c.service, feed, item.id, notify=True), EmptyResult)
    title = cut(read_entry(item).title.plain, TITLE_CHARACTERS)
    return ChatReply(c.say("Deleted from {feed}: {title}", feed=cut(feed, NAME_CHARACTERS), title=title))


async def reply(c: Conversation) -> ChatReply:
    """Publishes an answer to the item of the message that the user replies to (XEP-0461)."""
    item, feed, comments = await _target(c, c.message.reply_to)
    place = comments or feed
    await _check_reply(c, place, item)
    item_id = _item_id(c, c.message.replaces or c.message.message_id, "reply")
    entry = _entry(c, c.message.text.strip())
    _refer(c, entry, feed, item)
    await _publish(c, place, item_id, draft_of(entry, c.jid))
    return ChatReply(c.say("Your answer is published in {feed}.", feed=cut(place, NAME_CHARACTERS)))


async def _check_reply(c: Conversation, feed: str, item: Entry) -> None:
    """Raises RefusalError, which says who may answer an item, if the user may read a feed and not publish in it."""
    located = await c.read(partial(find_for, name=feed, actor=c.actor))
    if located is None or located.access.may_publish or not located.access.may_read:
        return  # the publish says what is wrong
    name = cut(feed, NAME_CHARACTERS)
    if located.node.options.publish_model is PublishModel.SUBSCRIBERS:
        command = c.command(SUBSCRIBE, feed)
        raise RefusalError(c.say("Only subscribers may answer in {feed}. Write: {command}", feed=name, command=command))
    # The owners, as far as the user may know them.
    owners = (await c.ask(GetNodeInfo(c.actor, c.service, feed), NodeInfo)).owners
    link = cut(item.alternate, LINK_CHARACTERS) if is_web(item.alternate) else ""
    # An owner may write an entry without an address beside those from elsewhere, and can let others answer it.
    if (link or set(owners) <= {c.service}) and await c.read(partial(_is_from_elsewhere, node=located.node)):
        raise RefusalError(
            c.say("Entries of other blogs are answered at their own address: {link}", link=link)
            if link
            else c.say("Entries of other blogs are answered at their own address. This one names none.")
        )
    people = c.names_of(owners)
    if people:
        raise RefusalError(
            c.say("Only its publishers may answer in {feed}. Ask its owner: {people}", feed=name, people=people)
        )
    raise RefusalError(c.say("Only its publishers may answer in {feed}. Ask its owner.", feed=name))


def _is_from_elsewhere(tx: ReadTx, context: Context, node: Node) -> bool:
    return bool(context.hooks.origins_of(tx, node.name))


async def react(c: Conversation) -> ChatReply:
    """Publishes a like of the item of the message, or takes it back (XEP-0444). Other reactions change nothing."""
    item, feed, comments = await _target(c, c.message.reacts_to)
    if not comments:
        raise RefusalError(c.say("This feed has no likes."))
    # One like for each person and item, however often the reaction changes.
    item_id = _item_id(c, item.atom_id, "like")
    if any(reaction.removesuffix(_VARIANT) in _LIKES for reaction in c.message.reactions):
        entry = _entry(c, LIKE)
        _refer(c, entry, feed, item)
        await _publish(c, comments, item_id, draft_of(entry, c.jid))
        return ChatReply("")
    try:
        await c.ask(Retract(c.actor, c.service, comments, item_id, notify=True), EmptyResult)
    except FeedError as error:
        # A reaction that was no like, or a like that is gone, leaves nothing to take back.
        if error.condition is not Condition.ITEM_NOT_FOUND:
            raise
    return ChatReply("")


async def _publish(
    c: Conversation, feed: str, item_id: str | None, draft: PayloadDraft, expected: ItemPrecondition | None = None
) -> Published:
    request = Publish(c.actor, c.service, feed, item_id, draft, expected=expected, may_create=False)
    return await c.ask(request, Published)


def _item_id(c: Conversation, message_id: str, purpose: str) -> str | None:
    """The item id for a message; None, which lets the service choose, if the message has no id."""
    if not message_id:
        return None
    digest = hashlib.sha256("\0".join((purpose, c.jid, message_id)).encode()).hexdigest()
    return f"chat-{digest[:32]}"


def _entry(c: Conversation, text: str) -> Element:
    """A new entry of a text. Raises FeedError."""
    entry = new_element(atom.ENTRY, {None: ATOM_NS})
    _write_text(c, entry, text)
    return entry


def _edited(c: Conversation, text: str, entry: Element) -> Element:
    """The entry with another text. Everything else stays, such as its id, its categories and its links."""
    # The service sets the time of the change.
    for tag in (atom.TITLE, atom.SUMMARY, atom.CONTENT, atom.MARKDOWN, atom.UPDATED):
        for child in entry.findall(tag):
            entry.remove(child)
    _write_text(c, entry, text)
    return entry


def _write_text(c: Conversation, entry: Element, text: str) -> None:
    """Adds a text to an entry without a text, as posts do (`formats.titles`)."""
    if is_language_tag(c.message.language):
        entry.set(XML_LANG, c.message.language)
    etree.SubElement(entry, atom.CONTENT, type="text").text = text
    complete(entry)


def _refer(c: Conversation, entry: Element, feed: str, item: Entry) -> None:
    """Makes an entry an answer to an item of a feed. The address leads to the item from any other feed too."""
    add_reply(entry, ReplyReference(item.atom_id, c.tools.links.lasting(feed, item.item_id)))


async def _newest_own(c: Conversation, feed: str) -> Item:
    """The author's newest item in a feed. Raises FeedError, RefusalError, UsageError."""
    if not feed:
        raise UsageError
    located = await c.read(partial(find_for, name=feed, actor=c.actor))
    # A feed that hides who publishes has no view by author.
    hidden = located is not None and not located.node.options.shows_publisher
    name = view_name(feed, [] if hidden else [f"author={c.jid}"])
    # Others may write any name as their author.
    own = [item for item in await pull_newest(c, name, OWN_ITEMS) if item.publisher == c.jid]
    if not own:
        raise RefusalError(
            c.say(
                "You wrote none of the newest {number} items in {feed}.",
                number=OWN_ITEMS,
                feed=cut(feed, NAME_CHARACTERS),
            )
        )
    return own[-1]


async def _target(c: Conversation, message_id: str) -> tuple[Entry, str, str]:
    """The item of a message of the bot, its feed, and the feed of its comments, which is empty if it has none.

    Raises FeedError, and RefusalError for another message.
    """
    key = parse_message_id(message_id)
    place = await c.read(lambda tx, _context: find_item(tx, key)) if key is not None else None
    if place is None:
        raise RefusalError(c.say(NO_ITEM))
    node, item_id = place
    # The request checks that the user may read the item.
    item = (await c.ask(GetItem(c.actor, c.service, node.name, item_id), ItemShown)).item
    entry = read_entry(item)
    find = partial(_find_comments, node=node, item=item, links=entry.links)
    return entry, node.name, await c.read(find)


def _find_comments(tx: ReadTx, context: Context, node: Node, item: Item, links: list[EntryLink]) -> str:
    comments = find_comments(tx, context.policy.domain, node, item, links)
    return "" if comments is None else comments.node.name
