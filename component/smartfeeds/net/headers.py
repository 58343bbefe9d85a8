"""Header fields of responses: their limits, and their text (RFC 9110 section 5.5).

aiohttp's own limits are 8 KB a line and 128 fields. Feeds have `Link` fields and policies that are longer, and sites
with many cookies. The limits here are near those of curl and browsers.
"""

from typing import Final, TypedDict

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy

from smartfeeds.net.fetch import Headers

MAX_FIELD_BYTES: Final = 65_536
MAX_HEADERS_BYTES: Final = 262_144
MAX_FIELDS: Final = 300
MAX_INTERIM: Final = 20  # responses such as 103 Early Hints (RFC 8297), of which servers send one or two
_MEDIA_TYPE_BYTES: Final = 1_024
_UNUSABLE: Final = "gave no usable answer: "
# What aiohttp says before it quotes the response.
_TOO_LONG: Final = "Got more than"
_TOO_MANY: Final = "Too many headers"
_FAULTS: Final = frozenset(
    {
        "Bad status line",
        "Content-Length can't be present with Transfer-Encoding",
        "Duplicate Content-Length",
        "Invalid character in Content-Length",
        "Invalid header token",
    }
)


class ParserLimits(TypedDict):
    """The arguments of a session that limit the header of a response."""

    response_class: type[aiohttp.ClientResponse]
    max_line_size: int
    max_field_size: int
    max_headers: int


class BoundedResponse(aiohttp.ClientResponse):
    """A response that has at most `MAX_INTERIM` interim ones before it (RFC 9110 section 15.2). aiohttp reads any
    number, and the event loop has no time for others."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """As in the base class. Raises ClientConnectionError for more interim responses."""
        protocol = connection.protocol
        assert protocol is not None  # None only after the connection was released
        read = protocol.read
        read_count = 0

        async def counted() -> tuple[RawResponseMessage, StreamReader]:
            nonlocal read_count
            read_count += 1
            if read_count > MAX_INTERIM + 1:
                raise aiohttp.ClientConnectionError(f"it has more than {MAX_INTERIM} interim responses")
            return await read()

        # aiohttp 3.14 reads interim responses in a loop inside of `start`, so the limit can only be in what it calls.
        protocol.read = counted  # type: ignore[method-assign]
        try:
            return await super().start(connection)
        finally:
            del protocol.read  # the method of the class is in force again; the connection may be reused


# The parser reads a little more, so that a message can name the field.
PARSER_LIMITS: Final[ParserLimits] = {
    "response_class": BoundedResponse,
    "max_line_size": MAX_FIELD_BYTES,
    "max_field_size": 2 * MAX_FIELD_BYTES,
    "max_headers": MAX_FIELDS,
}


def header_fault(response: aiohttp.ClientResponse) -> str:
    """Returns the reason why the header of a response is not accepted, "" if it is."""
    total_bytes = 0
    for name, value in response.raw_headers:
        size_bytes = len(name) + len(value)
        if size_bytes > MAX_FIELD_BYTES:
            # The parser admits nothing but visible characters of ASCII in a name.
            return _over(f"the header {name[:64].decode('ascii', 'replace')} has", MAX_FIELD_BYTES, "bytes")
        total_bytes += size_bytes
    return _over("the headers have", MAX_HEADERS_BYTES, "bytes in all") if total_bytes > MAX_HEADERS_BYTES else ""


def parser_fault(error: aiohttp.ClientResponseError) -> str:
    """Returns the reason why the parser rejected a response, without text of the server."""
    if error.message.startswith(_TOO_MANY):
        return _over("it has", MAX_FIELDS, "headers")
    if error.message.startswith(_TOO_LONG):
        return _over("a header has", MAX_FIELD_BYTES, "bytes")
    fault = error.message.partition(":")[0]
    return f"{_UNUSABLE}it is not valid HTTP" + (f", {fault.lower()}" if fault in _FAULTS else "")


def _over(what: str, limit: int, unit: str) -> str:
    return f"{_UNUSABLE}{what} more than {limit} {unit}, which is the limit"


def headers_of(response: aiohttp.ClientResponse) -> Headers:
    """The fields as text: UTF-8, or else ISO 8859-1, which RFC 9110 section 5.5 calls historical.

    aiohttp gives surrogates for the latter, which nobody can store or send.
    """
    if all(value.isascii() for _name, value in response.raw_headers):
        return response.headers
    return CIMultiDictProxy(CIMultiDict((name.decode("latin-1"), _text(value)) for name, value in response.raw_headers))


def charset_of(response: aiohttp.ClientResponse) -> str:
    """The parameter `charset` of the media type, "" if there is none.

    Python's parser takes seconds for a media type with thousands of quotation marks, so longer ones are not parsed.
    """
    is_short = len(response.headers.get("Content-Type", "")) <= _MEDIA_TYPE_BYTES
    return (response.charset or "") if is_short else ""


def echoed(value: str) -> str:
    """A value that a later request repeats byte for byte, "" if it is not in ASCII: it could be sent in other bytes."""
    return value if value.isascii() else ""


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
