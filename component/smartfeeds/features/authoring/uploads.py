"""Uploads: the bytes of a file on their way from a request to the folder of files (`file`).

A file is never in memory as a whole. A client that disconnects, is too slow or sends too much leaves no file.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

from smartfeeds.core.feed_files import OCTETS, media_type_of, safe_name
from smartfeeds.core.limits import Quota
from smartfeeds.core.urls import FILES, entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.requests import AddFile, PlanUpload, UploadPlan, too_little_space
from smartfeeds.formats.entry import EntryLink
from smartfeeds.http.bodies import SPILLED_BYTES, check_coding, content_too_large, invite, paced
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import ask
from smartfeeds.service.requests import FileShown
from smartfeeds.store.file_folder import FileFolder, PendingFile

# Uploads of one user. Each may be as large as the space that the user has left: the space is counted at the end.
AT_ONCE = 4
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+\-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+\-]{0,126}")


@dataclass(frozen=True, slots=True)
class UploadName:
    """The name of a file, "" without one, and its media type."""

    name: str
    media_type: str

    @classmethod
    def of(cls, name: str, declared_type: str) -> "UploadName":
        """The name without folders; without a declared type that of the name. Raises HttpError(415)."""
        name = safe_name(name)
        # Many clients declare OCTETS for every file.
        media_type = declared_type if declared_type not in ("", OCTETS) else media_type_of(name) or OCTETS
        if _MEDIA_TYPE.fullmatch(media_type) is None:
            raise HttpError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"{media_type[:60]!r} is no media type such as image/jpeg"
            )
        return cls(name, media_type)


@dataclass(frozen=True, slots=True)
class UploadFolder:
    """The folder of uploaded files, and the largest size of a file, 0 if uploads are off."""

    files: FileFolder
    limit_bytes: int


class Uploads:
    """Receives files. `limit_bytes` is the largest size of a file, 0 if uploads are off; `timeout_s` is the longest
    pause of a client."""

    def __init__(self, tools: SiteTools, folder: UploadFolder) -> None:
        self._handle = tools.handle
        self._change = tools.perform
        self._service = tools.domain
        self._files = folder.files
        self.limit_bytes = folder.limit_bytes
        self.timeout_s = tools.bodies.timeout_s
        self._running = Quota(AT_ONCE)

    async def from_body(self, call: HttpCall, name: UploadName) -> EntryLink:
        """The file that a body is. Raises as `receive` does."""
        check_coding(call, ("*/*",))
        length = call.request.content_length
        most_bytes = await self.space_bytes(call)
        if length is not None and length > most_bytes:
            self._check(length, most_bytes)
        await invite(call)
        return await self.receive(call, name, call.request.content.iter_any(), most_bytes)

    async def space_bytes(self, call: HttpCall) -> int:
        """The size of the largest file that the caller may add. Raises FeedError if the caller may not publish."""
        if not self.limit_bytes:
            raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this service takes no files; link to the file instead")
        plan = await ask(self._handle, PlanUpload(call.actor, self._service, call.name), UploadPlan)
        return min(self.limit_bytes, plan.left_bytes)

    async def receive(
        self, call: HttpCall, name: UploadName, chunks: AsyncIterator[bytes], most_bytes: int
    ) -> EntryLink:
        """Stores a file of a feed, and returns the enclosure for it.

        Raises HttpError (408, 413), FeedError(BUSY) for too many uploads at once, ConnectionError.
        """
        user = call.actor.bare_text
        if not self._running.take(user):
            raise FeedError(Condition.BUSY, f"you are uploading {AT_ONCE} files already; wait for one to end")
        try:
            async with self._files.receive() as file:
                size_bytes = await self._write(file, chunks, most_bytes)
                if not size_bytes:
                    raise FeedError(Condition.BAD_REQUEST, "the file is empty")
                # The clean-up removes files without rows, so it must not run between the two.
                async with self._files.lock:
                    request = AddFile(
                        call.actor, self._service, call.name, await file.keep(), name.name, name.media_type
                    )
                    answer = await ask(self._change, request, FileShown)
        finally:
            self._running.release(user)
        url = f"{call.site_url}{entry_path(call.name, answer.file.file_id, FILES)}"
        return EntryLink("enclosure", url, name.media_type, name.name, size_bytes)

    async def _write(self, file: PendingFile, chunks: AsyncIterator[bytes], most_bytes: int) -> int:
        size_bytes = 0
        async for chunk in paced(chunks, self.timeout_s):
            size_bytes += len(chunk)
            if size_bytes <= most_bytes:
                await file.write(chunk)
            elif size_bytes > most_bytes + SPILLED_BYTES:
                break  # up to here the rest is read and discarded: a client that sends does not read the response
        self._check(size_bytes, most_bytes)
        return size_bytes

    def _check(self, size_bytes: int, most_bytes: int) -> None:
        """Raises HttpError(413) for a file above the limit, FeedError for one above the space of its owner."""
        if size_bytes > self.limit_bytes:
            raise content_too_large(
                f"the file is larger than {self.limit_bytes:,} bytes, which is the limit; choose a smaller one"
            )
        if size_bytes > most_bytes:
            raise too_little_space(most_bytes)
