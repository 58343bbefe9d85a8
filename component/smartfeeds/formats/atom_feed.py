"""A whole Atom feed document out of stored items: `export --to atom` (RFC 4287).

Entries are written as they are stored, with the additions of `additions` behind their children; `read_document`
removes these, so that an export read back gives the same ids, times and payloads. Deleted items are written as the
marked entries they are stored as (A-18: RFC 6721 is read, not written). A payload that is no Atom entry is the content
of an entry.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import id_segment
from smartfeeds.core.web_address import uri_of
from smartfeeds.formats.additions import FANOUT_NS, completion, id_mark, is_complete, keys_mark
from smartfeeds.formats.atom import ATOM_NS, START_TAG, derived_id, with_child
from smartfeeds.formats.entry import Entry
from smartfeeds.formats.links import is_absolute
from smartfeeds.formats.payload import with_uris
from smartfeeds.formats.plain_entry import ENTRY_START
from smartfeeds.formats.readable import readable
from smartfeeds.formats.rss_channel import NO_CHANNEL, Channel

END_OF_FEED = b"</feed>\n"
_ATOM_TYPE = ' type="application/atom+xml"'
_FANOUT = f' xmlns:fo="{FANOUT_NS}"'


@dataclass(frozen=True, slots=True)
class FeedHead:
    """The metadata of a feed, for the writers of all formats. Empty values are left out.

    `id` is an atom:id (a URI), `updated_us` the time of its last change, `self_link` its own address, `next_link`
    that of its next page, `link` that of its page for people, `language` a tag of BCP 47. `total` is the number of
    items of the feed (SF-061), cursors are bare (SF-063). The authors of `channel` are those of all items that name no
    author. `entry_prefix` and the quoted item id make the address of an item, which is not known if the prefix is
    empty. `via` is the page of the feed that this one was imported from. With `for_readers` the document is for feed
    readers, not for a copy of the feed: entries without a page link to their page at the service, and Atom entries are
    written as `readable` does.
    """

    id: str
    title: str
    updated_us: int
    self_link: str = ""
    subtitle: str = ""
    link: str = ""
    next_link: str = ""
    language: str = ""
    total: int | None = None
    prev_cursor: str = ""
    last_cursor: str = ""
    channel: Channel = NO_CHANNEL
    entry_prefix: str = ""
    via: str = ""
    for_readers: bool = False

    @property
    def byline(self) -> str:
        """The author of an entry that has none in a feed that has none (RFC 4287 4.1.1)."""
        return "" if self.channel.authors else self.title.strip() or self.id

    def entry_address(self, item_id: str) -> str:
        """The address of an item, "" if it is not known."""
        if not self.entry_prefix:
            return ""
        return self.entry_prefix + id_segment(item_id)

    def page_of(self, entry: Entry) -> str:
        """The address of the page of an entry: its own, or that of the service in a document for feed readers."""
        if not self.for_readers or entry.deleted or is_absolute(entry.alternate):
            return entry.alternate
        return self.entry_address(entry.item_id)


def write_feed(head: FeedHead, items: Iterable[Item], *, keys: bool = True, whole: bool = True) -> Iterator[bytes]:
    """The document in pieces, one an item, in UTF-8. Raises ForbiddenCharacterError for texts XML cannot carry.

    Without `keys` entries do not say their ordering keys, as in a page of a feed (SF-066 to SF-071). With `whole` an
    entry gets the author, content or link that RFC 4287 requires and it lacks; entries with sync data do without,
    because FeedSync merges them as they are. For the same reason the feed has no authors then: its entries would
    inherit them (4.2.1).
    """
    yield start_of_feed(head, whole=whole)
    for item in items:
        yield entry_of_feed(head, item, keys=keys, whole=whole)
    yield END_OF_FEED


def start_of_feed(head: FeedHead, *, whole: bool = True) -> bytes:
    """The first piece of `write_feed`."""
    pieces = AtomHead.of(head if whole else replace(head, channel=replace(head.channel, authors=())))
    return pieces.write(head.updated_us, link_text(head.next_link), head.total, head.last_cursor, head.prev_cursor)


def write_entry(item: Item, byline: str = "", address: str = "") -> bytes:
    """One item as a document of its own, an atom:entry with its item id (RFC 4287 2; SF-070).

    With a `byline` it is completed as `additions.completion` does.
    """
    payload = _as_entry(item)
    added = completion(payload, byline, address) if byline else b""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + with_child(payload, added + id_mark(item.id)) + b"\n"


class AtomHead(NamedTuple):
    """The head of a document in pieces. Pages of a feed differ in what is between the pieces, and the pieces take ten
    times as long to write."""

    before_time: str
    before_next: str
    before_counts: str
    before_end: bytes

    @classmethod
    def of(cls, head: FeedHead) -> "AtomHead":
        """Returns the pieces of a head. They declare nothing that entries inherit, because readers cut the entries out
        of the feed."""
        channel = head.channel
        language = f' xml:lang="{attribute(head.language)}"' if head.language else ""
        # In other documents `link` can be a page of another site, whose type is not known.
        page_type = ' type="text/html"' if head.for_readers else ""
        authors = [f"<author><name>{escape(name)}</name></author>\n" for name in channel.authors]
        texts = (
            ("subtitle", language, head.subtitle),
            ("icon", "", uri_of(channel.icon)),
            ("logo", "", uri_of(channel.logo)),
            ("rights", language, channel.copyright),
            ("generator", "", channel.generator),
        )
        links = (
            _link("alternate", page_type, link_text(head.link)),
            _link("via", "", link_text(head.via)),
            _link("hub", "", link_text(channel.hub)),
        )
        scopes = [(term, f' scheme="{attribute(scheme)}"' if scheme else "") for term, scheme in channel.categories]
        categories = [f'<category term="{attribute(term)}"{scheme}/>\n' for term, scheme in scopes]
        return cls(
            f'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="{ATOM_NS}">\n<id>{escape(head.id)}</id>\n'
            f"<title{language}>{escape(head.title)}</title>\n<updated>",
            f"</updated>\n{''.join(authors)}{_link('self', _ATOM_TYPE, link_text(head.self_link))}",
            "".join([*links, *[_element(*each) for each in texts]]),
            "".join(categories).encode() + b"".join(extension + b"\n" for extension in channel.extensions),
        )

    def write(
        self, updated_us: int, next_link: str, total: int | None, last_cursor: str, prev_cursor: str = ""
    ) -> bytes:
        """Returns the head of a page. `next_link` is written by `link_text`."""
        count = f"<fo:total{_FANOUT}>{total}</fo:total>\n" if total is not None else ""
        before = _element("fo:prev_cursor", _FANOUT, prev_cursor) if prev_cursor else ""
        last = _element("fo:last_cursor", _FANOUT, last_cursor) if last_cursor else ""
        following = f'<link rel="next"{_ATOM_TYPE} href="{next_link}"/>\n' if next_link else ""
        return (
            f"{self.before_time}{format_datetime(updated_us)}{self.before_next}{following}{self.before_counts}"
            f"{count}{before}{last}"
        ).encode() + self.before_end


def link_text(address: str) -> str:
    """Returns an address as the attribute of a link."""
    return attribute(uri_of(address))


def _link(rel: str, kind: str, text: str) -> str:
    return f'<link rel="{rel}"{kind} href="{text}"/>\n' if text else ""


def _element(tag: str, attributes: str, text: str) -> str:
    return f"<{tag}{attributes}>{escape(text)}</{tag}>\n" if text else ""


def entry_of_feed(head: FeedHead, item: Item, *, keys: bool = False, whole: bool = True) -> bytes:
    """The piece of `write_feed` with an item."""
    payload, added = _as_entry(item), b""
    simple = head.for_readers and not item.deleted
    if simple:
        payload = readable(payload, item.created_us)
    elif whole:
        payload = with_uris(payload)
    # The address and the byline of most entries are not needed.
    if whole and (simple or not is_complete(payload)):
        added = completion(payload, head.byline, head.entry_address(item.id), linked=simple)
    end = payload.rindex(b"</")
    marks = added + id_mark(item.id) + (keys_mark(item) if keys else b"")
    return b"%b%b%b\n" % (payload[:end], marks, payload[end:])


def _as_entry(item: Item) -> bytes:
    """The payload if it is an entry, else an entry with the payload as its content."""
    if item.payload.startswith(ENTRY_START):
        return item.payload
    start = START_TAG.match(item.payload)
    return item.payload if start is not None and _is_entry(start[0], start[1]) else _wrapped(item)


def _is_entry(tag: bytes, name: bytes) -> bool:
    """Whether a canonical start tag is that of an atom:entry that has a prefix, or another attribute first."""
    prefix, _, local = name.rpartition(b":")
    declaration = b' xmlns%s="%s"' % (b":" + prefix if prefix else b"", ATOM_NS.encode())
    return local == b"entry" and declaration in tag


def _wrapped(item: Item) -> bytes:
    kind = ' type="application/xml"' if item.payload else ""
    return (
        f'<entry xmlns="{ATOM_NS}"><id>{derived_id(item.id)}</id><title></title>'
        f"<updated>{format_datetime(item.modified_us)}</updated><content{kind}>"
    ).encode() + (item.payload + b"</content></entry>")
