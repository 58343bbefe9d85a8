"""Items in the body of a request, in every media type that people and programs send (docs/http.md, Publish).

Each media type has one reader in a table. The readers make Atom entries of what they read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.entry import EntryLink, EntryText, TextKind
from smartfeeds.formats.json_text import looks_like_json
from smartfeeds.formats.markdown import MAX_CHARACTERS, render_markdown
from smartfeeds.formats.post import Post, entry_of, split_tags
from smartfeeds.formats.xml import Element
from smartfeeds.http import negotiation as n
from smartfeeds.http import post_fields as f
from smartfeeds.http.bodies import CHARSETS, BodyReader, charset_of, unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.json_posts import read_json_post
from smartfeeds.http.negotiation import Representation
from smartfeeds.http.web.sanitise import harmless_html
from smartfeeds.service.drafts import PayloadDraft, draft_of

_HTML = n.HTML.accept_types[0]
_JSON_FEED = n.JSON_FEED.accept_types[0]
_XML_START = ("<?xml", "<entry", "<feed", "<rss")


@dataclass(slots=True)
class _Body:
    """A body on its way to an entry. `fields` are those of the headers and of the query string."""

    call: HttpCall
    item_id: str
    data: bytes
    fields: dict[str, str]


_Read = Callable[["PostReader", _Body], Awaitable[Element]]


class PostReader:
    """Reads the item in the body of a request."""

    def __init__(self, bodies: BodyReader) -> None:
        self._bodies = bodies

    async def draft(self, call: HttpCall, item_id: str = "") -> tuple[PayloadDraft | None, Representation]:
        """The item of a request, and the representation for the response if the client prefers none. None for an empty
        Atom or JSON body, an item without payload.

        `item_id` is the id from the path, "" if the service is to choose one; an id in the body is ignored. Raises
        FeedError for a payload that XMPP would reject too, HttpError for a body that cannot be read.
        """
        read, form = _READERS.get(call.media_type, (None, n.JSON))
        if read is None:
            raise unsupported(f"an item is one of {', '.join(filter(None, _READERS))}", filter(None, _READERS))
        if charset_of(call) not in CHARSETS:
            raise unsupported("the charset of a body must be UTF-8", filter(None, _READERS))
        fields = f.fields_of_call(call)
        body = _Body(call, item_id, await self._bodies.read(call, filter(None, _READERS)), fields)
        if call.media_type in _OWN_FIELDS:
            if fields:
                raise FeedError(
                    Condition.BAD_REQUEST, f"{min(fields)}: the body has this itself; leave the header or parameter out"
                )
            if not body.data.strip():
                return None, form
        return draft_of(await read(self, body)), form

    async def entry(self, body: _Body) -> Element:
        """An Atom entry."""
        return self._bodies.entry(body.call, body.data)

    async def json(self, body: _Body) -> Element:
        """An activity, or the members of a post."""
        return read_json_post(body.data, body.item_id)

    async def json_feed_item(self, body: _Body) -> Element:
        """An item of a JSON Feed."""
        return read_json_post(body.data, body.item_id, is_json_feed=True)

    async def default(self, body: _Body) -> Element:
        """A text of a client that states no media type. Entries and JSON are rejected: their sender meant no text."""
        text = _text(body.data)
        if text.lstrip().startswith(_XML_START):
            raise unsupported("the body is XML: send Content-Type: application/atom+xml", n.ATOM.accept_types)
        if looks_like_json(body.data):
            raise unsupported(
                "the body is JSON: send Content-Type: application/json, or text/plain to publish it as a text",
                n.JSON.accept_types,
            )
        return await self._of_text(text, body.fields)

    async def text(self, body: _Body) -> Element:
        """A plain text."""
        return await self._of_text(_text(body.data), body.fields)

    async def html(self, body: _Body) -> Element:
        """HTML, stored as it is; every page sanitises what it shows."""
        return entry_of(_post(body.fields, EntryText(TextKind.HTML, _text(body.data))))

    async def markdown(self, body: _Body) -> Element:
        """Markdown, stored as HTML."""
        return await self._of_text(_text(body.data), body.fields | {f.MARKDOWN: "true"})

    async def form(self, body: _Body) -> Element:
        """The fields of a form; what is no form is a text, because `curl -d` declares every body as a form."""
        fields = f.read_form(_text(body.data))
        return await (self.default(body) if fields is None else self._of_fields(fields, body.fields))

    async def _of_fields(self, fields: f.Fields, call_fields: Mapping[str, str]) -> Element:
        own = {name: f.single(fields, name) for name in fields if name != f.TAGS}
        own[f.TAGS] = ",".join(fields.get(f.TAGS, ()))
        joined = {**call_fields, **{name: value for name, value in own.items() if value}}
        html = joined.pop(f.CONTENT_HTML, "")
        if not html:
            return await self._of_text(joined.pop(f.CONTENT, ""), joined)
        if f.CONTENT in joined:
            raise FeedError(Condition.BAD_REQUEST, f"{f.CONTENT} and {f.CONTENT_HTML} are the same; send one of them")
        return entry_of(_post(joined, EntryText(TextKind.HTML, html)))

    async def _of_text(self, text: str, fields: Mapping[str, str]) -> Element:
        """A post with a text, or with the field of the text if the body is empty."""
        text = (text if text.strip() else fields.get(f.CONTENT, "")).replace("\r\n", "\n")
        if not f.is_set(f.MARKDOWN, fields.get(f.MARKDOWN, "")):
            return entry_of(_post(fields, EntryText(TextKind.TEXT, text.rstrip("\n"))))
        if len(text) > MAX_CHARACTERS:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG, f"{len(text)} characters of Markdown; the limit is {MAX_CHARACTERS}"
            )
        return await asyncio.to_thread(_of_markdown, text, fields)


def _of_markdown(text: str, fields: Mapping[str, str]) -> Element:
    markdown = render_markdown(text, take_heading=not fields.get(f.TITLE))
    content = EntryText(TextKind.HTML, harmless_html(markdown.html))
    return entry_of(_post({f.TITLE: markdown.heading, **fields}, content))


def _post(fields: Mapping[str, str], content: EntryText | None) -> Post:
    address = fields.get(f.ATTACH, "").strip()
    return Post(
        fields.get(f.TITLE, ""),
        content,
        fields.get(f.LINK, "").strip(),
        split_tags([fields.get(f.TAGS, "")]),
        (EntryLink("enclosure", address),) if address else (),
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
    dict.fromkeys(n.ATOM.accept_types, (PostReader.entry, n.ATOM))
    | dict.fromkeys(n.JSON.accept_types, (PostReader.json, n.JSON))
    | {
        _JSON_FEED: (PostReader.json_feed_item, n.JSON),
        n.PLAIN: (PostReader.text, n.JSON),
        n.MARKDOWN: (PostReader.markdown, n.JSON),
        _HTML: (PostReader.html, n.JSON),
        n.WEB_FORM: (PostReader.form, n.JSON),
        "": (PostReader.default, n.JSON),
    }
)
_OWN_FIELDS = frozenset({*n.ATOM.accept_types, *n.JSON.accept_types, _JSON_FEED})
