"""Files whose address has a hash of their content, so browsers may cache them for ever (RFC 8246)."""

from dataclasses import dataclass, field
from hashlib import sha256

from smartfeeds.core.urls import STATIC
from smartfeeds.http.replies import Reply


# Compared by identity, because each file is made once and keys of caches hold it.
@dataclass(frozen=True, slots=True, eq=False)
class HashedFile:
    """A file: its path and its response."""

    path: str
    reply: Reply = field(repr=False)


def hashed_file(name: str, media_type: str, body: bytes, folder: str = STATIC) -> HashedFile:
    """Returns the file with a name such as `style.css`. `folder` is the path before its name."""
    digest = sha256(body).hexdigest()[:16]
    stem, _, suffix = name.partition(".")
    headers = {
        "ETag": f'"{digest}"',
        "Cache-Control": "public, max-age=31536000, immutable",
        "Vary": "Accept-Encoding",
    }
    return HashedFile(f"{folder}{stem}.{digest}.{suffix}", Reply(body, media_type, headers=headers))
