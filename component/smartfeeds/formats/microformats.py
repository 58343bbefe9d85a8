"""Properties of an h-entry in JSON and the Atom entry that has them (microformats2; Micropub 3.3 to 3.7).

Each property is one row of a table: which elements of the entry it is, how it is written, how it is read. Creating an
entry writes properties, an update removes and writes them, and a query reads them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from smartfeeds.core.feed_files import media_type_of
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.entry import Entry, EntryLink, EntryText, TextKind
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.json_items import clean
from smartfeeds.formats.json_text import Json, JsonObject
from smartfeeds.formats.post import checked_address, checked_file_address, complete, first_line, made_title
from smartfeeds.formats.xml import Element

ENTRY_TYPE = "h-entry"
_FILES = ("photo", "video", "audio")
_KINDS = {"photo": "image", "video": "video", "audio": "audio"}
# The types of files whose addresses have no ending that says one.
_USUAL = {"photo": "image/jpeg", "video": "video/mp4", "audio": "audio/mpeg"}

Properties = Mapping[str, Sequence[Json]]


class Property(NamedTuple):
    """A property: whether an element of an entry belongs to it, how a value is added, how all values are read.
    `single`: a new value takes the place of the former one."""

    matches: Callable[[Element], bool]
    add: Callable[[EntryBuilder, Json], None]
    read: Callable[[Entry], list[Json]]
    single: bool = False


def fill(builder: EntryBuilder, properties: Properties) -> None:
    """Adds the known properties to an entry; others are ignored (Micropub 3.3). Raises FeedError(BAD_REQUEST)."""
    for name, values in properties.items():
        row = PROPERTIES.get(name)
        for value in values[:1] if row is not None and row.single else values:
            if row is not None:
                row.add(builder, value)
    complete(builder.entry, split=False)


def change(
    builder: EntryBuilder,
    entry: Entry,
    *,
    replace: Properties,
    add: Properties,
    delete: Properties | Iterable[str],
) -> None:
    """Changes an entry as an update says (Micropub 3.4). `entry` is what the element of the builder says before.

    A title that was made of the first line of the content is made again. Raises FeedError(BAD_REQUEST).
    """
    removals: Properties = delete if isinstance(delete, Mapping) else dict.fromkeys(delete, ())
    is_note = _is_note(entry)
    names = [name for name in PROPERTIES if name in replace or name in add or name in removals]
    if is_note and entry.content is None and "name" in names and "content" not in names:
        builder.add(atom.CONTENT, entry.title.plain)  # the text of a note of one line is its title
    for name in names:
        row = PROPERTIES[name]
        values = list(replace[name]) if name in replace else row.read(entry)
        if name in removals:
            values = [value for value in values if value not in removals[name]] if removals[name] else []
        values += [value for value in add.get(name, ()) if value not in values]
        _clear(builder.entry, row.matches)
        for value in values[-1:] if row.single else values:
            row.add(builder, value)
    if is_note and "content" in names and "name" not in names:
        _clear(builder.entry, PROPERTIES["name"].matches)
    # The service sets the time of the change.
    _clear(builder.entry, lambda child: child.tag == atom.UPDATED)
    complete(builder.entry, split=False)


def properties_of(entry: Entry) -> JsonObject:
    """The properties that an entry has."""
    return {name: values for name, row in PROPERTIES.items() if (values := row.read(entry))}


def _clear(root: Element, matches: Callable[[Element], bool]) -> None:
    for child in [child for child in root if matches(child)]:
        root.remove(child)


def _tagged(*tags: str) -> Callable[[Element], bool]:
    return lambda child: child.tag in tags


def _text(value: Json) -> str:
    """A value that is a text. Raises FeedError(BAD_REQUEST)."""
    if isinstance(value, dict):
        value = value.get("value", "")
    if not isinstance(value, str):
        raise FeedError(Condition.BAD_REQUEST, "the values of a property are texts, or objects with a value")
    return clean(value)


def _add_text(tag: str) -> Callable[[EntryBuilder, Json], None]:
    def add(builder: EntryBuilder, value: Json) -> None:
        builder.add(tag, _text(value))

    return add


def _add_content(builder: EntryBuilder, value: Json) -> None:
    html = value.get("html") if isinstance(value, dict) else None
    if isinstance(html, str):
        builder.add(atom.CONTENT, clean(html), type="html")
    else:
        builder.add(atom.CONTENT, _text(value).replace("\r\n", "\n"))


def _read_content(entry: Entry) -> list[Json]:
    content = entry.content
    if content is None:
        return [entry.title.plain] if entry.title.plain else []
    return [{"html": content.value, "value": content.plain}] if content.is_markup else [content.value]


def _add_date(builder: EntryBuilder, value: Json) -> None:
    time_us = builder.date(_text(value))
    if time_us is None:
        raise FeedError(Condition.BAD_REQUEST, f"published: {_text(value)[:40]!r} is no date; use 2026-01-02T03:04:05Z")
    builder.add(atom.PUBLISHED, format_datetime(time_us))


def _add_reply(builder: EntryBuilder, value: Json) -> None:
    address = checked_address(_text(value), "in-reply-to")
    builder.add_reply(address, address)


def _link(name: str, rel: str) -> Property:
    """A property whose values are addresses."""
    return Property(
        lambda child: child.tag == atom.LINK and child.get("rel", "alternate") == rel,
        lambda builder, value: builder.add_link(rel, checked_address(_text(value), name)),
        lambda entry: [link.href for link in entry.links if link.rel == rel],
    )


def _file(name: str) -> Property:
    """A property whose values are files of a kind: an address, or an object with `value` and `alt`."""
    kind = f"{_KINDS[name]}/"

    def add(builder: EntryBuilder, value: Json) -> None:
        link = value if isinstance(value, EntryLink) else None
        if link is None:
            alt = value.get("alt", "") if isinstance(value, dict) else ""
            address = checked_file_address(_text(value), name)
            guess = media_type_of(urlsplit(address).path)
            link = EntryLink("enclosure", address, guess if guess.startswith(kind) else _USUAL[name], _text(alt))
        builder.add_link("enclosure", link.href, clean(link.type), clean(link.title), link.length)

    def read(entry: Entry) -> list[Json]:
        links = [link for link in entry.enclosures if link.type.startswith(kind)]
        return [{"value": link.href, "alt": link.title} if link.title else link.href for link in links]

    def matches(child: Element) -> bool:
        is_file = child.tag == atom.LINK and child.get("rel") == "enclosure"
        return is_file and child.get("type", "").startswith(kind)

    return Property(matches, add, read)


PROPERTIES: Mapping[str, Property] = MappingProxyType(
    {
        "name": Property(
            _tagged(atom.TITLE),
            _add_text(atom.TITLE),
            lambda entry: [entry.title.plain] if entry.title.plain and not _is_note(entry) else [],
            single=True,
        ),
        "content": Property(_tagged(atom.CONTENT, atom.MARKDOWN), _add_content, _read_content, single=True),
        "summary": Property(
            _tagged(atom.SUMMARY),
            _add_text(atom.SUMMARY),
            lambda entry: [entry.summary.plain] if entry.summary is not None else [],
            single=True,
        ),
        "published": Property(
            _tagged(atom.PUBLISHED), _add_date, lambda entry: [format_datetime(entry.issued_us)], single=True
        ),
        "category": Property(
            _tagged(atom.CATEGORY),
            lambda builder, value: builder.add_category(_text(value)),
            lambda entry: [category.term for category in entry.categories],
        ),
        "in-reply-to": Property(
            _tagged(atom.IN_REPLY_TO),
            _add_reply,
            lambda entry: [reply.href or reply.ref for reply in entry.replies_to],
        ),
        "bookmark-of": _link("bookmark-of", "related"),
        **{name: _file(name) for name in _FILES},
    }
)


def _is_note(entry: Entry) -> bool:
    """Whether the title of an entry was made of its text, as `complete` does or as former versions did."""
    content = entry.content or EntryText(TextKind.TEXT, entry.title.plain)
    made = first_line(content.plain if content.is_markup else content.value)
    return entry.title.plain in (made, made_title(content.value, is_markup=content.is_markup))


def file_property(link: EntryLink) -> str:
    """The property for a file: photo, video or audio by its media type."""
    return next((name for name in _FILES if link.type.startswith(f"{_KINDS[name]}/")), _FILES[0])
