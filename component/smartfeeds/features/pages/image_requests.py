"""Images of entries, loaded by this service, so that their hosts do not learn the addresses of readers.

`/images/DIGEST?url=ADDRESS` is the image at an address. The digest is made with a key of the service, so only the
addresses that its pages contain can be loaded: otherwise anybody could fetch anything through it.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from smartfeeds.core.times import US_PER_S
from smartfeeds.core.urls import IMAGES
from smartfeeds.errors import SmartfeedsError
from smartfeeds.features.pages.look import ImageLinks
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.operations import IF_NONE_MATCH, Operation, Parameter
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.http.shared_work import SharedWork

MAX_BYTES = 5_000_000  # of one image, which is in memory as a whole; three of this size fill the cache
CACHE_BYTES = 16 * 1024 * 1024  # browsers cache the images as well
# Browsers ask again after a day. A failure is tried again after five minutes, not for each reader.
STORED_S, FAILED_S = 86_400, 300
ACCEPT = "image/avif,image/webp,image/png,image/jpeg,image/gif"
# The first bytes decide the media type, whatever the host says. SVG is no image here: it may contain scripts.
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BRANDS = (b"avif", b"avis")  # of AVIF, behind `ftyp`
MEDIA_TYPES = tuple(ACCEPT.split(","))

GET_IMAGE = Operation(
    "image",
    "An image of an entry, which this service loads and caches",
    {200: {media_type: {"type": "string"} for media_type in MEDIA_TYPES}},
    errors=(404, 502),
    parameters=(Parameter("url", {"type": "string"}, "the address of the image"), IF_NONE_MATCH),
)

# Returns the body at an address of at most that many bytes. Raises SmartfeedsError. It bounds the requests at a time,
# in all and per host (`net.limiter`): a bound of our own would let the images of one slow host stop all others.
FetchImage = Callable[[str, str, int], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class ImageFetcher:
    """The part that loads images."""

    fetch: FetchImage


class Images:
    """Handles GET and HEAD of images. `links` is None if pages have no images; `now_us` returns microseconds."""

    def __init__(self, links: ImageLinks | None, fetch: FetchImage, now_us: Callable[[], int]) -> None:
        self.links = links
        self._fetch = fetch
        self._now_us = now_us
        self._shared = SharedWork(self._load)  # readers of one page ask for its images at once
        # The response to an address, None after a failure, and the time when it is loaded again.
        self._cache: ByteCache[str, tuple[Reply | None, int]] = ByteCache(CACHE_BYTES)

    async def get(self, call: HttpCall) -> Reply:
        """The image. Raises HttpError if the service did not make the address, or cannot load the image."""
        address = read_parameters(call.query, ("url",)).get("url", "")
        digest = call.path.removeprefix(IMAGES)
        if self.links is None or not hmac.compare_digest(digest.encode(), self.links.digest(address).encode()):
            raise HttpError(HTTPStatus.NOT_FOUND, "no page of this service has this image; reload the page")
        reply = await self._shared.get(address, "")
        if reply is None:
            text = "the host of the image does not provide it as PNG, JPEG, GIF, WebP or AVIF"
            raise HttpError(HTTPStatus.BAD_GATEWAY, text)
        return unless_known(call.header("If-None-Match"), reply)

    async def _load(self, address: str, _asker: str) -> Reply | None:
        entry = self._cache.get(address)
        if entry is not None and self._now_us() < entry[1]:
            return entry[0]
        try:
            body = await self._fetch(address, ACCEPT, MAX_BYTES)
        except SmartfeedsError:
            # The reader sees that the image is missing. Logging each broken link of the web would fill the log.
            body = b""
        reply = _image_reply(body)
        stored_s = FAILED_S if reply is None else STORED_S
        size_bytes = len(address) + (reply.size_bytes if reply else 0)
        self._cache.put(address, (reply, self._now_us() + stored_s * US_PER_S), size_bytes)
        return reply


def image_type(body: bytes) -> str:
    """Returns the media type of an image by its first bytes, "" for anything else."""
    if body[4:8] == b"ftyp":
        return "image/avif" if body[8:12] in _BRANDS else ""
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for beginning, media_type in _BEGINNINGS if body.startswith(beginning)), "")


def _image_reply(body: bytes) -> Reply | None:
    media_type = image_type(body)
    if not media_type:
        return None
    headers = {
        "ETag": f'"{hashlib.sha256(body).hexdigest()[:24]}"',
        "Cache-Control": f"public, max-age={STORED_S}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return Reply(body, media_type, headers=headers)
