"""Files that belong to feeds: their names, media types and addresses in payloads.

The bytes of a file are stored once under their SHA-256 digest (`store.file_folder`); a row connects them with a feed.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from smartfeeds.core.urls import FILES

MAX_NAME_CHARACTERS = 120
OCTETS = "application/octet-stream"
ID_CHARACTERS = 32  # of the digest, 128 bits
FILE_ID_PATTERN = rf"[0-9a-f]{{{ID_CHARACTERS}}}(?:\.[a-z0-9]{{1,5}})?"
# What every address of a file contains. A payload without it refers to no file (`file_ids`).
MARK = FILES.encode()
# What no address contains unescaped, in XML and in quoted attributes.
_BREAK = re.compile(rb"[\s\"'<>?#]+")
_REFERENCE = re.compile(rb"/(%b)(?![0-9A-Za-z.])" % FILE_ID_PATTERN.encode())
# Extension -> media type. Not from the files of the operating system, so that every machine answers the same.
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "avif": "image/avif", "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png",
        "webp": "image/webp", "svg": "image/svg+xml", "heic": "image/heic",
        "aac": "audio/aac", "flac": "audio/flac", "m4a": "audio/mp4", "mp3": "audio/mpeg", "oga": "audio/ogg",
        "ogg": "audio/ogg", "opus": "audio/ogg", "wav": "audio/wav", "weba": "audio/webm",
        "m4v": "video/mp4", "mp4": "video/mp4", "mov": "video/quicktime", "ogv": "video/ogg", "webm": "video/webm",
        "pdf": "application/pdf", "epub": "application/epub+zip", "zip": "application/zip", "gz": "application/gzip",
        "tar": "application/x-tar", "ics": "text/calendar", "csv": "text/csv",
    }
)  # fmt: skip
_EXTENSIONS = {kind: extension for extension, kind in reversed(list(_TYPES.items()))}
LOGO_TYPES = {f".{extension}": _TYPES[extension] for extension in ("png", "svg")}  # of the logo of the site
# A browser shows files of these types and runs nothing of them. It saves all others.
SHOWN_TYPES = frozenset(
    {kind for kind in _TYPES.values() if kind.startswith(("image/", "audio/", "video/"))}
    - {"image/svg+xml", "image/heic"}
)
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_HEAD_BYTES = 24  # the signature, and the first chunk up to the height
_PLAYED = re.compile(r"(?:audio|video)/[a-z0-9.+-]{1,60}")
_UNSAFE_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f/\\:*?\"<>|\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def png_size(data: bytes) -> tuple[int, int]:
    """Returns the width and the height of a PNG file, zeros for bytes that are no PNG file."""
    head = data[:_PNG_HEAD_BYTES]
    if len(head) < _PNG_HEAD_BYTES or not head.startswith(_PNG_SIGNATURE) or head[12:16] != b"IHDR":
        return 0, 0
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:])


class StoredFile(NamedTuple):
    """The bytes of a file: their SHA-256 digest in hexadecimal digits, and their number."""

    digest: str
    size_bytes: int


class FeedFile(NamedTuple):
    """A file of a feed. `owner` is the bare JID whose quota it uses; `unused_us` is the time since which no item of the
    feed refers to the file, None if one does."""

    node_no: int
    file_id: str
    digest: str
    name: str
    media_type: str
    size_bytes: int
    owner: str
    created_us: int
    unused_us: int | None = None


def file_id_of(digest: str, media_type: str) -> str:
    """The id of a file in its address: the same bytes have the same address."""
    return digest[:ID_CHARACTERS] + extension_of(media_type)


def extension_of(media_type: str) -> str:
    """The ending of a file name for a media type with its dot, "" for an unknown type."""
    extension = _EXTENSIONS.get(media_type, "")
    return f".{extension}" if extension else ""


def is_shown(media_type: str) -> bool:
    """Whether a browser may show a file of this type: it runs nothing of sound, films and raster images."""
    return media_type in SHOWN_TYPES or _PLAYED.fullmatch(media_type) is not None


def file_ids(payload: bytes) -> set[str]:
    """The ids of the files to which a payload may refer: all ids that follow MARK in the same address.

    The time grows with the length of the payload only. A single expression from MARK to the id would read up to the
    whole rest of the payload for each MARK: 0.6 s for 56 KB, inside the transaction of a publish.
    """
    if MARK not in payload:
        return set()
    tails = (text.partition(MARK)[2] for text in _BREAK.split(payload))
    return {match.decode() for tail in tails for match in _REFERENCE.findall(tail)}


def media_type_of(name: str) -> str:
    """The media type that the extension of a file name means, "" for an unknown extension."""
    return _TYPES.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def safe_name(name: str) -> str:
    """A file name without folders, control characters and what some file systems forbid; "" if nothing is left."""
    last = re.split(r"[/\\]", name)[-1]
    text = " ".join(_UNSAFE_NAME.sub("_", last).split()).strip(". ")
    if len(text) <= MAX_NAME_CHARACTERS:
        return text
    stem, dot, extension = text.rpartition(".")
    if not dot or len(extension) > 10:
        return text[:MAX_NAME_CHARACTERS]
    return f"{stem[: MAX_NAME_CHARACTERS - len(extension) - 1]}.{extension}"
