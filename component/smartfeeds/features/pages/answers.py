"""Links to what an entry answers, for cards, feed pages and entry pages.

The title of the answered entry is shown to those who may read it. A reference that was not followed shows only what the
entry itself says: the name of a feed of this service, or an address elsewhere.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from smartfeeds.core.model import Item
from smartfeeds.core.text import cut
from smartfeeds.core.urls import entry_path
from smartfeeds.features.pages.sanitise import link_of
from smartfeeds.formats.entry import ReplyReference, read_entry, replies_of
from smartfeeds.service.replies import REFERENCES, Answered, AnsweredItems, stated_place
from smartfeeds.texts import Texts

TITLE = 80  # characters


class AnswerLink(NamedTuple):
    """A link to an answered entry. `path` is its page on this site, else `address` is elsewhere."""

    label: str
    path: str = ""
    address: str = ""


def links_of_item(
    texts: Texts, item: Item, answered: AnsweredItems, domain: str, base_url: str
) -> tuple[AnswerLink, ...]:
    """The links to the entries that an item answers. `answered` are those that several items answer."""
    references = replies_of(item.payload)
    known = {
        reference: answered[item.item_no, reference]
        for reference in references
        if (item.item_no, reference) in answered
    }
    return answer_links(texts, references, domain, base_url, known)


def answer_links(
    texts: Texts,
    references: Iterable[ReplyReference],
    domain: str,
    base_url: str,
    answered: Mapping[ReplyReference, Answered],
) -> tuple[AnswerLink, ...]:
    """The links to the entries that an entry answers, each once. `answered` are those that the reader may read."""
    links: dict[AnswerLink, None] = {}
    for reference in islice(references, REFERENCES):
        if (link := _link(texts, reference, domain, base_url, answered.get(reference))) is not None:
            links[link] = None
    return tuple(links)


def _link(
    texts: Texts, reference: ReplyReference, domain: str, base_url: str, answered: Answered | None
) -> AnswerLink | None:
    if answered is not None:
        path = entry_path(answered.node.name, answered.item.id)
        item = answered.item
        return AnswerLink(texts.say("a deleted entry") if item.deleted else read_entry(item).label(TITLE), path)
    place = stated_place(reference, domain, base_url)
    if place is not None:
        label = texts.say("an entry of {feed}", feed=cut(place.node, TITLE))
        return AnswerLink(label, entry_path(place.node, place.item_id))
    return AnswerLink(reference.href, address=reference.href) if link_of(reference.href) else None
