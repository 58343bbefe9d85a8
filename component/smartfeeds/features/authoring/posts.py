"""Items in the body of a request, in every media type that people and programs send (docs/http.md, Publish).

The kernel takes Atom entries alone. Here each media type of a document has one reader in a table. The readers make Atom
entries of what they read. A body of any other media type, or with a file name, is a file: the enclosure of an entry.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from smartfeeds.core.feed_files import media_type_of
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.form_parts import read_parts
from smartfeeds.features.authoring.json_posts import read_json_item, read_json_post
from smartfeeds.features.authoring.post_fields import (
    ATTACH,
    CONTENT,
    CONTENT_HTML,
    FILENAME,
    LINK,
    MARKDOWN,
    POST_PARAMETERS,
    TAGS,
    TITLE,
    Fields,
    fields_of_call,
    is_set,
    known_fields,
    read_form,
    single,
)
from smartfeeds.features.authoring.rendering import MarkdownTurns
from smartfeeds.features.authoring.rights import WriterRights
from smartfeeds.features.authoring.uploads import UploadName, Uploads
from smartfeeds.formats.entry import EntryLink, EntryText, TextKind
from smartfeeds.formats.json_text import looks_like_json
from smartfeeds.formats.post import Post, entry_of, split_tags
from smartfeeds.formats.representation import Representation
from smartfeeds.formats.xml import Element
from smartfeeds.http import negotiation
from smartfeeds.http.bodies import CHARSETS, BodyReader, charset_of, unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.forms import FeedForms
from smartfeeds.http.operations import Content
from smartfeeds.http.publishing import POST_ITEM, PUT_ITEM

_HTML = negotiation.HTML.accept_types[0]
_XML_START = ("<?xml", "<entry", "<feed", "<rss")


@dataclass(slots=True)
class _Body:
    """A body on its way to an entry. `fields` are those of the headers and of the query string."""

    call: HttpCall
    item_id: str
    data: bytes
    fields: dict[str, str]


_Read = Callable[["PostReader", _Body], Awaitable[Element]]


_BODIES: Content = {
    kind: {"type": "string"}
    for kind in (*negotiation.ATOM.accept_types, negotiation.PLAIN, negotiation.MARKDOWN, _HTML)
} | {kind: {"type": "object"} for kind in (*negotiation.JSON.accept_types, negotiation.WEB_FORM, negotiation.MULTIPART)}
_FILE: Content = {"*/*": {"type": "string", "format": "binary"}}


def _item_content(forms: FeedForms) -> Content:
    """Items that stand alone in JSON, in the formats that the service has."""
    return {kind: {"type": "object"} for kind in forms.item_readers}


PUT_POST, SEND_POST = (
    replace(
        operation,
        parameters=(*operation.parameters, *POST_PARAMETERS),
        body={**_BODIES, **_FILE},
        body_forms=_item_content,
    )
    for operation in (PUT_ITEM, POST_ITEM)
)


class PostReader:
    """Reads the item in the body of a request."""

    def __init__(
        self, bodies: BodyReader, uploads: Uploads, markdown: MarkdownTurns, forms: FeedForms, rights: WriterRights
    ) -> None:
        self._bodies = bodies
        self._uploads = uploads
        self._markdown = markdown
        self._rights = rights
        self._items = forms.item_readers
        self._readers: Mapping[str, tuple[_Read, Representation]] = {
            **_READERS,
            **dict.fromkeys(self._items, (PostReader.item, negotiation.JSON)),
        }
        self._document_types = tuple(filter(None, self._readers))
        self._whole_feeds = forms.whole_feeds | _WHOLE_FEEDS
        self._own_fields = _OWN_FIELDS.union(self._items)

    async def read(self, call: HttpCall) -> tuple[Element | None, Representation]:
        """The item of a request, and the representation for the response if the client prefers none. None for an empty
        Atom or JSON body, an item without payload. An id in the body is ignored.

        Raises FeedError for a payload that XMPP would reject too, HttpError for a body that cannot be read.
        """
        if call.media_type in self._whole_feeds:
            raise unsupported(f"an item is one of {', '.join(self._document_types)}, or a file", self._document_types)
        fields = fields_of_call(call)
        if call.media_type == negotiation.MULTIPART:
            return await self._rights.fit(call, await self._multipart(call, fields)), negotiation.JSON
        if (name := _file_name(call, fields, call.item_id, self._readers)) is not None:
            return await self._rights.fit(call, await self._file(call, fields, name)), negotiation.JSON
        read_document, form = self._readers[call.media_type]
        if charset_of(call) not in CHARSETS:
            raise unsupported("the charset of a body must be UTF-8", self._document_types)
        body = _Body(call, call.item_id, await self._bodies.read(call, self._document_types), fields)
        if call.media_type in self._own_fields:
            if fields:
                raise FeedError(
                    Condition.BAD_REQUEST, f"{min(fields)}: the body has this itself; leave the header or parameter out"
                )
            if not body.data.strip():
                return None, form
        entry = await read_document(self, body)
        # Who sends an Atom entry has made its Markdown.
        return entry if form is negotiation.ATOM else await self._rights.fit(call, entry), form

    async def _file(self, call: HttpCall, fields: dict[str, str], name: UploadName) -> Element:
        """An entry with the body as its enclosure."""
        # What is wrong with the fields is found before the file is read.
        entry_of(_post({TITLE: name.media_type, **fields}, None))
        return await self._of_text(call, "", fields, (await self._uploads.from_body(call, name),))

    async def _multipart(self, call: HttpCall, fields: dict[str, str]) -> Element:
        """An entry with the fields and the files of a form."""
        parts = await read_parts(call, self._uploads, self._bodies.limit_bytes)
        return await self._of_fields(call, known_fields(parts.fields), fields, tuple(link for _, link in parts.files))

    async def entry(self, body: _Body) -> Element:
        """An Atom entry."""
        return self._bodies.entry(body.call, body.data)

    async def json(self, body: _Body) -> Element:
        """An activity, or the members of a post."""
        return read_json_post(body.data, body.item_id, next(iter(self._items.values()), None))

    async def item(self, body: _Body) -> Element:
        """An item that stands alone in JSON, such as that of a JSON Feed."""
        return read_json_item(body.data, self._items[body.call.media_type])

    async def default(self, body: _Body) -> Element:
        """A text of a client that states no media type. Entries and JSON are rejected: their sender meant no text."""
        text = _text(body.data)
        if text.lstrip().startswith(_XML_START):
            raise unsupported("the body is XML: send Content-Type: application/atom+xml", negotiation.ATOM.accept_types)
        if looks_like_json(body.data):
            raise unsupported(
                "the body is JSON: send Content-Type: application/json, or text/plain to publish it as a text",
                negotiation.JSON.accept_types,
            )
        return await self._of_text(body.call, text, body.fields)

    async def text(self, body: _Body) -> Element:
        """A plain text."""
        return await self._of_text(body.call, _text(body.data), body.fields)

    async def html(self, body: _Body) -> Element:
        """HTML, stored as it is; every page sanitises what it shows."""
        return await _entry_of_html(body.fields, _text(body.data))

    async def markdown(self, body: _Body) -> Element:
        """Markdown, stored as HTML."""
        return await self._of_text(body.call, _text(body.data), body.fields | {MARKDOWN: "true"})

    async def form(self, body: _Body) -> Element:
        """The fields of a form; what is no form is a text, because `curl -d` declares every body as a form."""
        fields = read_form(_text(body.data))
        return await (self.default(body) if fields is None else self._of_fields(body.call, fields, body.fields))

    async def _of_fields(
        self, call: HttpCall, fields: Fields, call_fields: Mapping[str, str], files: tuple[EntryLink, ...] = ()
    ) -> Element:
        own = {name: single(fields, name) for name in fields if name != TAGS}
        own[TAGS] = ",".join(fields.get(TAGS, ()))
        joined = {**call_fields, **{name: value for name, value in own.items() if value}}
        html = joined.pop(CONTENT_HTML, "")
        if not html:
            return await self._of_text(call, joined.pop(CONTENT, ""), joined, files)
        if CONTENT in joined:
            raise FeedError(Condition.BAD_REQUEST, f"{CONTENT} and {CONTENT_HTML} are the same; send one of them")
        return await _entry_of_html(joined, html, files)

    async def _of_text(
        self, call: HttpCall, text: str, fields: Mapping[str, str], files: tuple[EntryLink, ...] = ()
    ) -> Element:
        """A post with a text, or with the field of the text if the body is empty."""
        text = (text if text.strip() else fields.get(CONTENT, "")).replace("\r\n", "\n")
        if not is_set(MARKDOWN, fields.get(MARKDOWN, "")):
            return entry_of(_post(fields, EntryText(TextKind.TEXT, text.rstrip("\n")), files))
        markdown = await self._markdown.render(call.actor, text, take_title=not fields.get(TITLE, "").strip())
        named = fields if fields.get(TITLE, "").strip() else {**fields, TITLE: markdown.title}
        return await _entry_of_html(named, markdown.html, files, markdown.source)


async def _entry_of_html(
    fields: Mapping[str, str], html: str, files: tuple[EntryLink, ...] = (), markdown: str = ""
) -> Element:
    """The entry of a post with HTML. Made in a thread: reading the title out of hostile HTML takes up to 0.3 s."""
    post = replace(_post(fields, EntryText(TextKind.HTML, html), files), markdown=markdown)
    return await asyncio.to_thread(entry_of, post)


def _file_name(call: HttpCall, fields: Mapping[str, str], item_id: str, readers: Collection[str]) -> UploadName | None:
    """The name and type of the file that a body is, None if the body is a document.

    `curl -T photo.jpg` declares no type, and its address ends with the name of the file.
    """
    named = FILENAME in fields
    declared_type = "" if call.media_type in _UNDECLARED else call.media_type
    if not named and not declared_type and call.media_type != negotiation.WEB_FORM and media_type_of(item_id):
        return UploadName.of(item_id, "")
    if not named and call.media_type in readers:
        return None
    return UploadName.of(fields.get(FILENAME, "") or item_id, declared_type)


def _post(fields: Mapping[str, str], content: EntryText | None, files: tuple[EntryLink, ...] = ()) -> Post:
    address = fields.get(ATTACH, "").strip()
    return Post(
        fields.get(TITLE, ""),
        content,
        fields.get(LINK, "").strip(),
        split_tags([fields.get(TAGS, "")]),
        (*files, EntryLink("enclosure", address)) if address else files,
    )


def _text(data: bytes) -> str:
    """The text of a body. Raises FeedError(INVALID_PAYLOAD)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FeedError(
            Condition.INVALID_PAYLOAD,
            f"the text is not UTF-8 (byte {error.start}); send a file with its media type or the header Filename",
        ) from None


# Media type -> its reader, and the representation of the response if the client prefers none.
_READERS: Mapping[str, tuple[_Read, Representation]] = MappingProxyType(
    dict.fromkeys(negotiation.ATOM.accept_types, (PostReader.entry, negotiation.ATOM))
    | dict.fromkeys(negotiation.JSON.accept_types, (PostReader.json, negotiation.JSON))
    | {
        negotiation.PLAIN: (PostReader.text, negotiation.JSON),
        negotiation.MARKDOWN: (PostReader.markdown, negotiation.JSON),
        _HTML: (PostReader.html, negotiation.JSON),
        negotiation.WEB_FORM: (PostReader.form, negotiation.JSON),
        "": (PostReader.default, negotiation.JSON),
    }
)
# Media types that curl and a form send by default, whatever the body is.
_UNDECLARED = frozenset({"", negotiation.WEB_FORM})
# Documents that somebody might take for items: they are rejected, not stored as files.
_WHOLE_FEEDS = frozenset({"application/xml", "text/xml", negotiation.EVENTS.bare_type})
_OWN_FIELDS = frozenset({*negotiation.ATOM.accept_types, *negotiation.JSON.accept_types})
