"""Bodies of requests: read within bounds of size and time, and made into what the service takes (RFC 9110 8, RFC 7303).

What a body may be is decided where payloads from XMPP are decided: the parser, its limits and the checks are the same.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType

from aiohttp import HttpVersion11

from smartfeeds.core.options import KIND, PUBSUB
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.activity import read_activities
from smartfeeds.formats.atom import ENTRY, accept_payload, shape_of
from smartfeeds.formats.atom_reader import FANOUT_ID, KEYS
from smartfeeds.formats.items import Skipped
from smartfeeds.formats.json_text import Json, JsonObject, load_json
from smartfeeds.formats.xml import Element, parse_payload, replace_by_text
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import Call
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import Form
from smartfeeds.service import requests as r

# So much more than allowed is read and thrown away, because who is still writing does not read the answer.
SPILLED_BYTES = 1_048_576
_ENTRIES: Mapping[str, Form] = MappingProxyType({kind: form for form in n.OF_ENTRY for kind in form.asked_as})
_CHARSETS = frozenset({"", "utf-8", "utf8", "us-ascii"})
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)
_DECLARATION = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml\s[^>]*\?>")
_CLOSE = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class Bodies:
    """Reads bodies of at most `limit_bytes`, which have to be there within `timeout_s`."""

    limit_bytes: int
    timeout_s: float

    async def draft(self, call: Call, item_id: str = "") -> tuple[r.Draft | None, Form]:
        """The entry or activity in a body, and which of both it is; None for an empty body, as an item without payload.

        `item_id` is the id it is to have, "" where it is still to be made; what the body says of it does not count.
        Raises FeedError for a payload that XMPP refuses too, HttpError for a body that cannot be read.
        """
        form = _form(call)
        data = await self.read(call)
        if not data.strip():
            return None, form
        root = _activity(data, item_id) if form is n.JSON else _entry(data, declared=bool(_charset(call)))
        shape = shape_of(root)
        payload = accept_payload(root)
        return r.Draft(payload, shape.entry, shape.feed, shape.complete, shape.deletion, shape.enclosure), form

    async def options(self, call: Call) -> r.Form:
        """The options of a new feed: none, or a JSON object of their names without prefix."""
        if not call.request.body_exists:
            return {KIND: ("feed",)}
        if _media_type(call) != n.JSON.asked_as[0] or _charset(call) not in _CHARSETS:
            raise _unsupported("options are a JSON object in UTF-8: application/json")
        value = load_json(await self.read(call)).value
        if not isinstance(value, dict):
            raise FeedError(Condition.BAD_REQUEST, 'options are a JSON object such as {"title": "News"}')
        return {KIND: ("feed",), **{f"{PUBSUB}{name}": _values(name, one) for name, one in value.items()}}

    async def read(self, call: Call) -> bytes:
        """A whole body. Raises HttpError: 413, 408, or 415 for one that is packed."""
        if call.header("Content-Encoding").strip().lower() not in ("", "identity"):
            raise _unsupported("a body comes as it is, without Content-Encoding")
        request = call.request
        length = request.content_length
        if length is not None and length > self.limit_bytes + SPILLED_BYTES:
            raise self._too_large()
        if call.header("Expect").lower() == "100-continue" and request.version == HttpVersion11:
            if length is not None and length > self.limit_bytes:
                raise self._too_large()
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        kept, size_bytes = bytearray(), 0
        try:
            async with asyncio.timeout(self.timeout_s):
                async for chunk in request.content.iter_any():
                    size_bytes += len(chunk)
                    if size_bytes <= self.limit_bytes:
                        kept += chunk
                    elif size_bytes > self.limit_bytes + SPILLED_BYTES:
                        break
        except TimeoutError:
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, "the body did not come in time", **_CLOSE) from None
        if size_bytes > self.limit_bytes:
            raise self._too_large()
        return bytes(kept)

    def _too_large(self) -> HttpError:
        text = f"a body is at most {self.limit_bytes} bytes long"
        return HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text, **_CLOSE)


def _media_type(call: Call) -> str:
    return call.header("Content-Type").partition(";")[0].strip().lower()


def _charset(call: Call) -> str:
    found = _CHARSET.search(call.header("Content-Type"))
    return found[1].lower() if found else ""


def _form(call: Call) -> Form:
    """What the body is said to be. Raises HttpError(415)."""
    form = _ENTRIES.get(_media_type(call))
    if form is None:
        raise _unsupported(f"an item is one of {', '.join(_ENTRIES)}")
    if _charset(call) not in _CHARSETS:
        raise _unsupported("a body with a charset is UTF-8")
    return form


def _unsupported(text: str) -> HttpError:
    return HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text, Accept=", ".join(_ENTRIES), Accept_Encoding="identity")


def _entry(data: bytes, *, declared: bool) -> Element:
    """The root of an Atom entry, without what our own documents add to it. A charset that was `declared` in the header
    wins over the one in the XML declaration (RFC 7303 3)."""
    root = parse_payload(_DECLARATION.sub(b"", data) if declared else data)
    if root.tag == ENTRY:
        for node in list(root.iterchildren(FANOUT_ID, KEYS)):
            replace_by_text(node, "")
    return root


def _activity(data: bytes, item_id: str) -> Element:
    """The entry that an activity says. What would be lost of it is refused."""
    value, warnings = load_json(data)
    if not isinstance(value, dict) or not (value.get("deleted") is True or isinstance(value.get("object"), dict)):
        raise FeedError(Condition.INVALID_PAYLOAD, "the body is one activity, a JSON object that has an object")
    members: JsonObject = {name: member for name, member in value.items() if name != "id"}
    if item_id:
        members["id"] = item_id
    found = next(read_activities({"count": 1, "items": [members]}, "")[1])
    if isinstance(found, Skipped):
        raise FeedError(Condition.INVALID_PAYLOAD, found.reason)
    if warnings or found.warnings:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the activity is faulty: {(*warnings, *found.warnings)[0]}")
    return found.entry


def _values(name: str, value: Json) -> tuple[str, ...]:
    """An option's values as a form has them."""
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int) for one in values):
        raise FeedError(
            Condition.BAD_REQUEST, f"{name[:40]}: a text, a whole number, true or false, or an array of these"
        )
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in values)
