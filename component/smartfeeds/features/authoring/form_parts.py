"""Forms with files: fields as text, and files that go to a folder while they arrive (RFC 7578)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from aiohttp import BodyPartReader

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.post_fields import MAX_FIELDS
from smartfeeds.features.authoring.uploads import UploadName, Uploads
from smartfeeds.formats.entry import EntryLink
from smartfeeds.http.bodies import within
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.multipart import CHUNK_BYTES, chunks_of, next_part, open_parts, part_faults, read_field

MAX_FILES = 20  # of one item, whose page shows as many (`pages.entry_page`)


class FormParts(NamedTuple):
    """The fields and the files of a body, with their names, in their order."""

    fields: list[tuple[str, str]]
    files: list[tuple[str, EntryLink]]


BeforeFile = Callable[[Sequence[tuple[str, str]]], Awaitable[None]]


async def read_parts(
    call: HttpCall, uploads: Uploads, limit_bytes: int, before_file: BeforeFile | None = None
) -> FormParts:
    """The parts of a body. All fields together have at most `limit_bytes`. `before_file` is called with the fields that
    came before a file, and may reject the request.

    Raises HttpError, and FeedError(BAD_REQUEST) for a body that is malformed.
    """
    parts = FormParts([], [])
    with part_faults():
        reader = await open_parts(call)
        while (part := await next_part(reader, uploads.timeout_s)) is not None:
            if part.filename is not None:
                if before_file is not None:
                    await before_file(parts.fields)
                await _read_file(call, uploads, part, parts)
            else:
                if len(parts.fields) == MAX_FIELDS:
                    raise FeedError(Condition.BAD_REQUEST, f"a post has at most {MAX_FIELDS} fields")
                parts.fields.append(await read_field(part, limit_bytes, uploads.timeout_s))
                limit_bytes -= len(parts.fields[-1][1].encode())
    return parts


async def _read_file(call: HttpCall, uploads: Uploads, part: BodyPartReader, parts: FormParts) -> None:
    if len(parts.files) == MAX_FILES:
        raise FeedError(Condition.BAD_REQUEST, f"an item has at most {MAX_FILES} files")
    declared_type = part.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    name = UploadName.of(part.filename or "", declared_type)
    # A form without a chosen file sends an empty part without a name.
    first = await within(part.read_chunk(CHUNK_BYTES), uploads.timeout_s)
    if not name.name and not first:
        return
    link = await uploads.receive(call, name, chunks_of(part, first), await uploads.space_bytes(call))
    parts.files.append((part.name or "", link))
