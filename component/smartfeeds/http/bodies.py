"""Request bodies: read within limits of size and time, and parsed for the service (RFC 9110 8, RFC 7303).

The parser, its limits and its checks are those of payloads over XMPP.
"""

import asyncio
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from xml.parsers import expat

from aiohttp import HttpVersion11

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import KIND, OPTIONS, PUBSUB, FieldType, FormFields
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.additions import take_additions
from smartfeeds.formats.atom import ENTRY
from smartfeeds.formats.json_text import Json, load_json
from smartfeeds.formats.xml import Element, parse_payload
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.wire import invite_body

# A client that is still sending does not read the response, so this much beyond the limit is read and discarded.
SPILLED_BYTES = 1_048_576
_OPTIONS = n.JSON.accept_types[:1]
KIND_NAME = "kind"  # the member for the kind of a new node, beside its options
_KINDS = tuple(kind.value for kind in NodeKind)
CHARSETS = frozenset({"", "utf-8", "utf8", "us-ascii"})
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)
_DECLARATION = re.compile(rb"\A<\?xml\s[^>]*\?>")
_ENCODING = re.compile(rb"""\A<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._\-]+)["']""")
_BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_ENCODINGS = frozenset(
    {
        *("utf-8", "utf-8-sig", "utf-16", "us-ascii"),
        *("iso-8859-1", "iso-8859-2", "iso-8859-15", "windows-1251", "windows-1252"),
    }
)
_DTD = re.compile(rb"\A(?:\s+|<!--.*?-->|<\?.*?\?>)*+<!DOCTYPE", re.DOTALL)
_CLOSE = {"Connection": "close"}


# The reason to reject XML of this sender before it is parsed, "" to accept it. The XML library keeps every name that it
# has ever parsed, so the names are limited as over XMPP.
Admit = Callable[[Jid, bytes], str]


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies of at most `limit_bytes`, which must arrive within `timeout_s`."""

    limit_bytes: int
    timeout_s: float
    admit: Admit

    def entry(self, call: HttpCall, data: bytes) -> Element:
        """The root of an Atom entry in a body. Raises FeedError for a payload that XMPP would reject too."""
        text = _checked(_as_utf8(data, declared=bool(charset_of(call))))
        if fault := self.admit(call.actor, text):
            raise FeedError(Condition.NOT_ACCEPTABLE, fault)
        return _entry(text)

    async def options(self, call: HttpCall) -> FormFields:
        """The options of a new feed: an empty body, or a JSON object of option names without prefix and the kind.

        Raises FeedError(BAD_REQUEST) for an unknown name: a misspelt `access_model` must not create an open feed.
        Raises HttpError for a body that cannot be read.
        """
        if not call.request.body_exists:
            return {KIND: (NodeKind.FEED.value,)}
        if call.media_type not in _OPTIONS or charset_of(call) not in CHARSETS:
            raise unsupported("options are a JSON object in UTF-8: application/json", _OPTIONS)
        value = load_json(await self.read(call, _OPTIONS)).value
        if not isinstance(value, dict):
            raise FeedError(Condition.BAD_REQUEST, 'options are a JSON object such as {"title": "News"}')
        kind = value.pop(KIND_NAME, NodeKind.FEED.value)
        if kind not in _KINDS:
            raise FeedError(Condition.BAD_REQUEST, f"{KIND_NAME}: one of {', '.join(_KINDS)}")
        check_names(value)
        return {KIND: (str(kind),), **{f"{PUBSUB}{name}": form_values(name, one) for name, one in value.items()}}

    async def read(self, call: HttpCall, media_types: Iterable[str]) -> bytes:
        """A whole body, which is read once.

        Raises HttpError: 413, 408, or 415 with the supported media types for a compressed body.
        """
        if call.body is not None:
            return call.body
        if call.header("Content-Encoding").strip().lower() not in ("", "identity"):
            raise unsupported("a body must have no Content-Encoding", media_types)
        request = call.request
        length = request.content_length
        if length is not None and length > self.limit_bytes + SPILLED_BYTES:
            raise self._too_large()
        if call.header("Expect").lower() == "100-continue" and request.version == HttpVersion11:
            if length is not None and length > self.limit_bytes:
                raise self._too_large()
            await invite_body(request)
        body, size_bytes = bytearray(), 0
        try:
            async with asyncio.timeout(self.timeout_s):
                async for chunk in request.content.iter_any():
                    size_bytes += len(chunk)
                    if size_bytes <= self.limit_bytes:
                        body += chunk
                    elif size_bytes > self.limit_bytes + SPILLED_BYTES:
                        break
        except TimeoutError:
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time", **_CLOSE) from None
        if size_bytes > self.limit_bytes:
            raise self._too_large()
        call.body = bytes(body)
        return call.body

    def _too_large(self) -> HttpError:
        text = f"a body is at most {self.limit_bytes} bytes long"
        return HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text, **_CLOSE)


def charset_of(call: HttpCall) -> str:
    """The charset that Content-Type declares, in lower case, "" without one."""
    match = _CHARSET.search(call.header("Content-Type"))
    return match[1].lower() if match else ""


def unsupported(text: str, media_types: Iterable[str]) -> HttpError:
    """`media_types`: the media types that are supported (RFC 9110 15.5.16)."""
    return HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text, Accept=", ".join(media_types), Accept_Encoding="identity")


def _as_utf8(data: bytes, *, declared: bool) -> bytes:
    """XML in UTF-8 without its declaration. A charset that was `declared` in the header wins over the one in the
    document (RFC 7303 3). Raises FeedError(INVALID_PAYLOAD)."""
    name = "utf-8-sig"
    if not declared:
        match = _ENCODING.match(data)
        boms = (encoding for bom, encoding in _BOMS.items() if data.startswith(bom))
        name = next(boms, match[1].decode().lower() if match else "utf-8")
    if name not in _ENCODINGS:
        raise FeedError(
            Condition.INVALID_PAYLOAD, "the payload declares an encoding that is not known here: send UTF-8"
        )
    try:
        text = data.decode(name)
    except UnicodeDecodeError:
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload holds bytes that its encoding does not have") from None
    return _DECLARATION.sub(b"", text.encode())


def _checked(data: bytes) -> bytes:
    """XML that is well-formed and has no DTD. Runs before lxml, which keeps every name it parses. Raises FeedError."""
    if _DTD.match(data):
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload has a DTD, which is not allowed here")
    try:
        expat.ParserCreate("utf-8").Parse(data, True)
    except expat.ExpatError as error:
        raise FeedError(
            Condition.INVALID_PAYLOAD, f"the payload is not well-formed XML (line {error.lineno})"
        ) from None
    return data


def _entry(data: bytes) -> Element:
    """The root of an Atom entry, without the elements that our own documents add to it."""
    root = parse_payload(data)
    if root.tag == ENTRY:
        take_additions(root)
    return root


def check_names(names: Iterable[str]) -> None:
    known = (KIND_NAME, *OPTIONS)
    for name in names:
        if name not in OPTIONS:
            short_name = name[:40]
            similar = difflib.get_close_matches(short_name.removeprefix(PUBSUB).lower(), known, 1, 0.5)
            hint = f"did you mean {similar[0]}?" if similar else f"there are {', '.join(known)}"
            raise FeedError(Condition.BAD_REQUEST, f"{short_name} is no option of a feed: {hint}")


def form_values(name: str, value: Json) -> tuple[str, ...]:
    """The values of an option as a data form has them. Raises FeedError(BAD_REQUEST) for a value of another type."""
    accepts, expected = _JSON_TYPES.get(OPTIONS[name].type, _ONE_TEXT)
    if not accepts(value):
        raise FeedError(Condition.BAD_REQUEST, f"{name}: the value must be {expected}")
    values = value if isinstance(value, list) else [value]
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in values)


_ONE_TEXT: tuple[Callable[[Json], bool], str] = (lambda value: isinstance(value, str), "a text")
# The JSON of each type of an option (the schema Options in `openapi_schemas.py`), and its name.
_JSON_TYPES: Mapping[FieldType, tuple[Callable[[Json], bool], str]] = {
    FieldType.BOOLEAN: (lambda value: isinstance(value, bool), "true or false"),
    FieldType.TEXT_SINGLE: (
        lambda value: isinstance(value, str | int) and not isinstance(value, bool),
        "a text or a whole number",
    ),
    FieldType.JID_MULTI: (
        lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
        "an array of texts",
    ),
}
