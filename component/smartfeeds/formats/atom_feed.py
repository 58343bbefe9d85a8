"""A whole Atom feed document out of stored items: `export --to atom` (RFC 4287).

Entries are written as they are stored, with the additions of `additions` behind their children; `read_document`
removes these, so that an export read back gives the same ids, times and payloads. Deleted items are written as the
marked entries they are stored as (A-18: RFC 6721 is read, not written). A payload that is no Atom entry is the content
of an entry.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import id_segment
from smartfeeds.core.web_address import uri_of
from smartfeeds.formats.additions import FANOUT_NS, completion, id_mark, keys_mark
from smartfeeds.formats.atom import ATOM_NS, ENTRY_START, START_TAG, derived_id, with_child
from smartfeeds.formats.entry import Entry
from smartfeeds.formats.links import is_absolute
from smartfeeds.formats.payload import with_uris
from smartfeeds.formats.readable import readable
from smartfeeds.formats.rss_channel import NO_CHANNEL, Channel

END_OF_FEED = b"</feed>\n"
_LINK_TYPES = {
    **dict.fromkeys(("self", "next"), ' type="application/atom+xml"'),
    "alternate": ' type="text/html"',
}


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
    return _head(head if whole else replace(head, channel=replace(head.channel, authors=())))


def write_entry(item: Item, byline: str = "", address: str = "") -> bytes:
    """One item as a document of its own, an atom:entry with its item id (RFC 4287 2; SF-070).

    With a `byline` it is completed as `additions.completion` does.
    """
    payload = _as_entry(item)
    added = completion(payload, byline, address) if byline else b""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + with_child(payload, added + id_mark(item.id)) + b"\n"


def _head(head: FeedHead) -> bytes:
    """The head. It declares nothing that its entries inherit, because readers cut the entries out of the feed."""
    channel = head.channel
    language = f' xml:lang="{attribute(head.language)}"' if head.language else ""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<feed xmlns="{ATOM_NS}">',
        f"<id>{escape(head.id)}</id>",
        f"<title{language}>{escape(head.title)}</title>",
        f"<updated>{format_datetime(head.updated_us)}</updated>",
        *(f"<author><name>{escape(name)}</name></author>" for name in channel.authors),
    ]
    links = {
        "self": head.self_link,
        "next": head.next_link,
        "alternate": head.link,
        "via": head.via,
        "hub": channel.hub,
    }
    for rel, href in links.items():
        if href:
            # In other documents `link` can be a page of another site, whose type is not known.
            kind = _LINK_TYPES.get(rel, "") if rel != "alternate" or head.for_readers else ""
            lines.append(f'<link rel="{rel}"{kind} href="{attribute(uri_of(href))}"/>')
    extension = f' xmlns:fo="{FANOUT_NS}"'
    for tag, attributes, text in (
        ("subtitle", language, head.subtitle),
        ("icon", "", uri_of(channel.icon)),
        ("logo", "", uri_of(channel.logo)),
        ("rights", language, channel.copyright),
        ("generator", "", channel.generator),
        ("fo:total", extension, "" if head.total is None else str(head.total)),
        ("fo:prev_cursor", extension, head.prev_cursor),
        ("fo:last_cursor", extension, head.last_cursor),
    ):
        if text:
            lines.append(f"<{tag}{attributes}>{escape(text)}</{tag}>")
    for term, scheme in channel.categories:
        where = f' scheme="{attribute(scheme)}"' if scheme else ""
        lines.append(f'<category term="{attribute(term)}"{where}/>')
    own = "\n".join([*lines, ""]).encode()
    return own + b"".join(extension + b"\n" for extension in channel.extensions)


def entry_of_feed(head: FeedHead, item: Item, *, keys: bool = False, whole: bool = True) -> bytes:
    """The piece of `write_feed` with an item."""
    payload = _as_entry(item)
    simple = head.for_readers and not item.deleted
    if simple:
        payload = readable(payload, item.created_us)
    elif whole:
        payload = with_uris(payload)
    added = completion(payload, head.byline, head.entry_address(item.id), linked=simple) if whole else b""
    return with_child(payload, added + id_mark(item.id) + (keys_mark(item) if keys else b"")) + b"\n"


def _as_entry(item: Item) -> bytes:
    """The payload if it is an entry, else an entry with the payload as its content."""
    start = START_TAG.match(item.payload)
    return item.payload if start is not None and _is_entry(start[0], start[1]) else _wrapped(item)


def _is_entry(tag: bytes, name: bytes) -> bool:
    """Whether a canonical start tag is that of an atom:entry."""
    if tag.startswith(ENTRY_START):
        return True
    prefix, _, local = name.rpartition(b":")
    declaration = b' xmlns%s="%s"' % (b":" + prefix if prefix else b"", ATOM_NS.encode())
    return local == b"entry" and declaration in tag


def _wrapped(item: Item) -> bytes:
    kind = ' type="application/xml"' if item.payload else ""
    return (
        f'<entry xmlns="{ATOM_NS}"><id>{derived_id(item.id)}</id><title></title>'
        f"<updated>{format_datetime(item.modified_us)}</updated><content{kind}>"
    ).encode() + (item.payload + b"</content></entry>")
