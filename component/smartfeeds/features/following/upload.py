"""The form with a list: its fields, and its only file in memory (RFC 7578)."""

from typing import Final, NamedTuple

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling.following_http import MAX_LIST_BYTES
from smartfeeds.http.bodies import BodyReader, content_too_large, paced, unique
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.multipart import chunks_of, next_part, open_parts, part_faults, read_field
from smartfeeds.texts import N_

_FIELD_BYTES: Final = 1_024
_MAX_PARTS: Final = 8


class UploadForm(NamedTuple):
    """The fields of the form, and the document in its file, empty if none was chosen."""

    fields: dict[str, str]
    document: bytes


async def read_upload_form(call: HttpCall, bodies: BodyReader) -> UploadForm:
    """Returns a form with one file. Raises FeedError(BAD_REQUEST), and HttpError: 408 or 413."""
    fields: list[tuple[str, str]] = []
    document: bytearray | None = None
    with part_faults():
        reader = await open_parts(call)
        for _ in range(_MAX_PARTS):
            part = await next_part(reader, bodies.timeout_s)
            if part is None:
                return UploadForm(unique(fields), bytes(document or b""))
            if part.filename is None:
                fields.append(await read_field(part, _FIELD_BYTES, bodies.timeout_s))
                continue
            if document is not None:
                raise FeedError(Condition.BAD_REQUEST, N_("the form has two files; send one list at a time"))
            document = bytearray()
            async for chunk in paced(chunks_of(part), bodies.timeout_s):
                document += chunk
                if len(document) > MAX_LIST_BYTES:
                    raise content_too_large(f"a list has at most {MAX_LIST_BYTES} bytes")
    raise FeedError(Condition.BAD_REQUEST, "the form has too many parts; load the page again")
