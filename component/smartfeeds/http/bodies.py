"""Request bodies: read within limits of size and time, and parsed for the service (RFC 9110 8, RFC 7303).

The parser, its limits and its checks are those of payloads over XMPP.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from aiohttp import HttpVersion11

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.additions import take_additions
from smartfeeds.formats.atom import ENTRY
from smartfeeds.formats.json_text import Json, load_json
from smartfeeds.formats.xml import Element, parse_payload
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import WEB_FORM
from smartfeeds.http.queries import read_fields
from smartfeeds.http.replies import invite_body
from smartfeeds.sync.record import MAX_CONFLICTS
from smartfeeds.texts import N_

T = TypeVar("T")

# A client that is still sending does not read the response, so this much beyond the limit is read and discarded.
SPILLED_BYTES = 1_048_576
# Of an upload, or its client could hold the connection for ever. The largest file by default, 16 MiB, takes 34 minutes.
SLOWEST_BYTES_PER_S = 8_192
MAX_FORM_FIELDS = 2 * MAX_CONFLICTS + 8  # the form of a conflict has two fields for each version
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
# Possessive, so that no byte is looked at twice. A group may be where it fails at its start or at the end of the text
# (tests/unit/test_layers.py).
_DTD = re.compile(rb"\A(?:\s+|<!--.*?-->|<\?.*?\?>)*+<!DOCTYPE", re.DOTALL)
_CLOSE = {"Connection": "close"}


# The reason to reject XML before it is parsed, "" to accept it. The limits are those of stanzas.
Admit = Callable[[bytes], str]


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies of at most `limit_bytes`, which must arrive within `timeout_s`."""

    limit_bytes: int
    timeout_s: float
    admit: Admit

    def entry(self, call: HttpCall, data: bytes) -> Element:
        """The root of an Atom entry in a body. Raises FeedError for a payload that XMPP would reject too."""
        text = _as_utf8(data, declared=bool(charset_of(call)))
        if _DTD.match(text):
            raise FeedError(Condition.INVALID_PAYLOAD, "the payload has a DTD, which is not allowed here")
        if fault := self.admit(text):
            raise FeedError(Condition.NOT_ACCEPTABLE, fault)
        return _entry(text)

    async def json(self, call: HttpCall, media_types: tuple[str, ...]) -> Json:
        """The value of a JSON body. Raises FeedError, and HttpError as `read` does."""
        if call.media_type not in media_types or charset_of(call) not in CHARSETS:
            raise unsupported(f"the body is JSON in UTF-8: {' or '.join(media_types)}", media_types)
        return load_json(await self.read(call, media_types)).value

    async def form(self, call: HttpCall) -> list[tuple[str, str]]:
        """The names and values of a URL-encoded form in their order. Raises FeedError, and HttpError as `read` does."""
        if call.media_type != WEB_FORM:
            raise unsupported(f"a form is {WEB_FORM}; programs use the resources of /openapi.json", (WEB_FORM,))
        body = await self.read(call, (WEB_FORM,))
        try:
            return read_fields(body.decode(), MAX_FORM_FIELDS)
        except UnicodeDecodeError:
            raise FeedError(Condition.BAD_REQUEST, "the form is not UTF-8") from None

    async def fields(self, call: HttpCall) -> dict[str, str]:
        """The fields of a form of a page, each once. Raises FeedError and HttpError as `form` does."""
        return unique(await self.form(call))

    async def read(self, call: HttpCall, media_types: Iterable[str]) -> bytes:
        """A whole body, which is read once.

        Raises HttpError: 413, 408, or 415 with the supported media types for a compressed body.
        """
        if call.body is None:
            check_coding(call, media_types)
        return await self.read_coded(call)

    async def read_coded(self, call: HttpCall) -> bytes:
        """A whole body as it was sent, perhaps compressed, which is read once. Raises HttpError: 413 or 408."""
        if call.body is None:
            too_large = content_too_large(
                f"the body is larger than {self.limit_bytes:,} bytes, which is the limit; send less at once"
            )
            length = call.request.content_length
            # A client that waits for an invitation has sent nothing that must be read before it reads the response.
            spilled_bytes = 0 if expects_invitation(call) else SPILLED_BYTES
            if length is not None and length > self.limit_bytes + spilled_bytes:
                raise too_large
            await invite(call)
            body = await within(self._collect(call), self.timeout_s)
            if len(body) > self.limit_bytes:
                raise too_large
            call.body = body
        return call.body

    async def _collect(self, call: HttpCall) -> bytes:
        """The body, or a little more than the limit of one that is too large."""
        body, size_bytes = bytearray(), 0
        async for chunk in call.request.content.iter_any():
            size_bytes += len(chunk)
            if len(body) <= self.limit_bytes:
                body += chunk
            elif size_bytes > self.limit_bytes + SPILLED_BYTES:
                break
        return bytes(body)


def unique(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The fields of a form, each once. Raises FeedError(BAD_REQUEST)."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise FeedError(Condition.BAD_REQUEST, N_("a field of the form is repeated; load the page again"))
    return fields


def check_coding(call: HttpCall, media_types: Iterable[str]) -> None:
    """Raises HttpError(415) for a compressed body."""
    if call.header("Content-Encoding").strip().lower() not in ("", "identity"):
        raise unsupported("a body must have no Content-Encoding", media_types)


def content_too_large(text: str) -> HttpError:
    """413, after which the connection ends: the rest of the body is not read."""
    return HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text, **_CLOSE)


def expects_invitation(call: HttpCall) -> bool:
    """Whether a client waits for 100 (Continue) before it sends the body (RFC 9110 10.1.1)."""
    return call.header("Expect").lower() == "100-continue" and call.request.version == HttpVersion11


async def invite(call: HttpCall) -> None:
    """Tells a client that waits for it to send its body."""
    if expects_invitation(call):
        await invite_body(call.request)


async def within(work: Awaitable[T], timeout_s: float) -> T:
    """The result of reading from a client. Raises HttpError(408)."""
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError:
        raise HttpError(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time", **_CLOSE) from None


async def paced(chunks: AsyncIterator[bytes], timeout_s: float) -> AsyncIterator[bytes]:
    """The chunks of a body. Raises HttpError(408) after a pause of `timeout_s`, or if the whole is slower than
    SLOWEST_BYTES_PER_S."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while (chunk := await within(anext(chunks, None), min(timeout_s, deadline_s - loop.time()))) is not None:
        deadline_s += len(chunk) / SLOWEST_BYTES_PER_S
        yield chunk


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


def _entry(data: bytes) -> Element:
    """The root of an Atom entry, without the elements that our own documents add to it."""
    root = parse_payload(data)
    if root.tag == ENTRY:
        take_additions(root)
    return root
