"""Taking up an interrupted download with a range, and what a response proves (RFC 9110 13.1.5, 14.2 to 14.4; PRE-019 to
PRE-024).

Sizes are bytes.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final, NamedTuple

_CONTENT_RANGE: Final = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", re.IGNORECASE)
_STRONG_TAG: Final = re.compile(r'"[!#-~\x80-\xff]*"')
# A date is a strong validator only if the file cannot have changed twice in its second (RFC 9110 8.8.2.2). A minute
# allows for clocks that differ.
_DATE_AGE_S: Final = 60
# More than this share of the length that was announced is not the file that was announced.
_SLACK: Final = 1.1
# Servers send these types for files whose type they do not know.
_GENERIC: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/force-download"})
_PAGE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
PAGE_BYTES: Final = 512  # of a file are enough to see that it is a web page
PARTIAL_CONTENT: Final = 206
RANGE_NOT_SATISFIABLE: Final = 416


class FileVersion(NamedTuple):
    """The version of a file, as a response describes it. `condition` is the validator for If-Range, "" if there is
    none."""

    total_bytes: int | None
    etag: str
    modified: str
    condition: str

    def may_continue(self, former: "FileVersion") -> bool:
        """Whether the bytes of a former response belong to the same version (PRE-022)."""
        same_length = None in (self.total_bytes, former.total_bytes) or self.total_bytes == former.total_bytes
        return same_length and (self.etag, self.modified) == (former.etag, former.modified)


class Continuation(Enum):
    """The relation of the body of a response to a partial file."""

    APPEND = "append"
    """The missing rest."""
    WHOLE = "whole"
    """The whole file: the partial one is thrown away."""
    AGAIN = "again"
    """Of no use: the partial file is thrown away, and the whole file is requested."""


def range_headers(partial_bytes: int, condition: str) -> dict[str, str]:
    """The fields of a request for what is missing of a file; none if the version of the partial file is not certain
    (PRE-021). Content codings would change the lengths (PRE-023)."""
    fields = {"Accept-Encoding": "identity"}
    if partial_bytes and condition:
        fields |= {"Range": f"bytes={partial_bytes}-", "If-Range": condition}
    return fields


def version_in(headers: Mapping[str, str], status: int) -> FileVersion:
    """The version of the file in a response."""
    etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    condition = etag if _STRONG_TAG.fullmatch(etag) else modified if _is_strong_date(headers) and not etag else ""
    if status == PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
        total = match[3] if match else "*"
    else:
        total = headers.get("Content-Length", "")
    return FileVersion(int(total) if total.isascii() and total.isdigit() else None, etag, modified, condition)


def continuation(
    status: int, headers: Mapping[str, str], partial_bytes: int, former: FileVersion, now: FileVersion
) -> Continuation:
    """Returns the relation of a response to a partial file (PRE-021, PRE-022)."""
    if status not in (PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE):
        return Continuation.WHOLE
    match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if status == RANGE_NOT_SATISFIABLE or match is None or int(match[1]) != partial_bytes:
        return Continuation.AGAIN
    is_rest = now.total_bytes is not None and int(match[2]) == now.total_bytes - 1
    return Continuation.APPEND if is_rest and now.may_continue(former) else Continuation.AGAIN


def has_provable_end(headers: Mapping[str, str]) -> bool:
    """Whether the end of the body can be told from a lost connection (PD-5; RFC 9112 section 8)."""
    return "Content-Length" in headers or "chunked" in headers.get("Transfer-Encoding", "").lower()


def most_bytes(max_bytes: int, total_bytes: int | None, announced_bytes: int | None) -> int:
    """Returns the number of bytes that a file may have (PRE-020). `announced_bytes` is the length in the item. It
    counts only if the server names none, because items are often wrong."""
    known_bytes = announced_bytes if total_bytes is None else total_bytes
    return max_bytes if known_bytes is None else min(max_bytes, int(known_bytes * _SLACK))


def answered_type(media_type: str, announced: str) -> str:
    """The media type of a file: that of the response, or that of the item if the server does not know (PRE-024)."""
    return announced if media_type in _GENERIC else media_type


def looks_like_page(beginning: bytes) -> bool:
    """Whether a file begins as a web page does, whatever its type says."""
    return _PAGE.match(beginning[:PAGE_BYTES]) is not None


def _is_strong_date(headers: Mapping[str, str]) -> bool:
    try:
        modified, date = (_date(headers[name]) for name in ("Last-Modified", "Date"))
    except (KeyError, ValueError, OverflowError):
        return False
    return (date - modified).total_seconds() >= _DATE_AGE_S


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    return date if date.tzinfo else date.replace(tzinfo=UTC)
